//! The switch between the languages.

use super::page::{Answer, Method, Needs, Page, Reply, Visit, within};
use super::trouble::Trouble;
use super::words::Lang;

pub const PAGES: &[Page] = &[Page {
    method: Method::Get,
    path: "/console/language/{lang}",
    needs: Needs::Nothing,
    run: |visit| Box::pin(async move { choose(&visit) }),
}];

fn choose(visit: &Visit) -> Answer {
    let lang = Lang::parse(&visit.id).ok_or_else(|| Trouble::missing(visit.id.clone()))?;
    Ok(Reply::Language { to: within(visit.param("to")), lang })
}
