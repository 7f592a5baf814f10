//! The switch between the languages.

use super::page::{Answer, Page, PageMethod, PageNeeds, Reply, Visit, within};
use super::trouble::{Resource, Trouble};

pub const PAGES: &[Page] = &[Page {
    method: PageMethod::Get,
    path: "/console/language/{lang}",
    needs: PageNeeds::Nothing,
    run: |visit| Box::pin(async move { choose(&visit) }),
}];

fn choose(visit: &Visit) -> Answer {
    let lang = visit.id.parse().map_err(|_| Trouble::unknown(Resource::Page, &visit.here))?;
    Ok(Reply::Language { to: within(visit.param("to")), lang })
}
