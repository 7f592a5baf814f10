//! The search in the header of every page: it leads to the one thing that has the name, or to the events that are like it.

use super::events::{address, lead};
use super::page::{Answer, Page, PageMethod, Reply, VIEWER, Visit};
use super::trouble::Trouble;

pub const PAGES: &[Page] = &[Page {
    method: PageMethod::Get,
    path: "/console/search",
    needs: VIEWER,
    run: |visit| Box::pin(search(visit)),
}];

async fn search(visit: Visit) -> Answer {
    let Some(text) = visit.param("q") else {
        return Ok(Reply::Go { to: "/console/events".into(), flash: None });
    };
    let to = lead(&*visit.console.store, &visit.console.known.sources, text).await.map_err(Trouble::from)?;
    let to = to.page().unwrap_or_else(|| address("/console/events", [("q", text)]));
    Ok(Reply::Go { to, flash: None })
}
