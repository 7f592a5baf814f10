//! By whose clock times are shown: the browser's, UTC or the office's. A browser with a script says its own zone once, if nobody
//! has chosen one.

use super::page::{Answer, Page, PageMethod, PageNeeds, Reply, Visit, within};
use super::trouble::Trouble;

pub const PAGES: &[Page] = &[Page {
    method: PageMethod::Get,
    path: "/console/zone",
    needs: PageNeeds::Nothing,
    run: |visit| Box::pin(async move { choose(&visit) }),
}];

fn choose(visit: &Visit) -> Answer {
    let name = visit.param("zone").unwrap_or_default();
    let zone = name.parse().map_err(|error| Trouble::wrong(format!("zone: {name:?} is {error}")))?;
    Ok(Reply::Zone { to: within(visit.param("to")), zone })
}
