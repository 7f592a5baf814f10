//! Deliveries: events on their way to the routes. Filtered, one page after the other; those that wait can be cancelled, those that
//! failed retried, many at once and after a look at what that would be.

mod cancel;
mod chosen;

use askama::Template;
use sekisho_core::{Seq, Time};
use sekisho_store::{DeliveryPage, Store};
use tokio::time::Instant;

use super::events::{LOOKS_MAX, LOOKS_WITHIN};
use super::frame::Frame;
use super::page::{Answer, OPERATOR, Page, PageMethod, Reply, VIEWER, Visit};
use super::trouble::Trouble;
use crate::queries;
use crate::types::{Delivery, DeliveryQuery};
use crate::view::{self, Outages};
use chosen::ChosenDeliveries;

pub const PAGES: &[Page] = &[
    Page {
        method: PageMethod::Get,
        path: "/console/deliveries",
        needs: VIEWER,
        run: |visit| Box::pin(list(visit)),
    },
    Page {
        method: PageMethod::Get,
        path: "/console/deliveries/cancel",
        needs: OPERATOR,
        run: |visit| Box::pin(cancel::preview(visit)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/deliveries/cancel",
        needs: OPERATOR,
        run: |visit| Box::pin(async move { cancel::start(&visit) }),
    },
];

const HOME: &str = "/console/deliveries";
/// Deliveries on a page.
pub const PAGE: usize = 50;

#[derive(Template)]
#[template(path = "console/deliveries.html")]
struct DeliveriesPage {
    f: Frame,
    chosen: ChosenDeliveries,
    routes: Vec<String>,
    rows: Vec<Delivery>,
    first: Option<String>,
    next: Option<Next>,
}

/// Where the next page begins.
struct Next {
    link: String,
    /// How far was looked, if it ended there and not because the page is full.
    looked_to: Option<Time>,
}

async fn list(visit: Visit) -> Answer {
    let chosen = ChosenDeliveries::of(|name| visit.param(name), &visit.zone)?;
    let before = visit.before()?;
    let found = look(&*visit.console.store, &chosen.query, before).await?;
    let rows = shown(&visit, &found).await?;
    let is_full = rows.len() == PAGE;
    let next = found.next.map(|next| Next {
        link: chosen.next(&next.as_message().to_string()),
        looked_to: (!is_full).then(|| next.made_at()),
    });
    let mut routes: Vec<String> = visit.console.places.iter().map(|place| place.name.clone()).collect();
    routes.extend(chosen.query.route.clone().filter(|route| !routes.contains(route)));
    Reply::page(&DeliveriesPage {
        f: visit.frame("deliveries", visit.lang.t("Deliveries", "配送")),
        first: before.map(|_| chosen.link(HOME)),
        chosen,
        routes,
        rows,
        next,
    })
}

/// As they are shown, with what they wait for.
pub async fn shown(visit: &Visit, found: &DeliveryPage) -> Result<Vec<Delivery>, Trouble> {
    let console = &visit.console;
    let outages = Outages::find(&*console.store).await?;
    let row = |one| view::delivery(one, &outages, &console.places, visit.at);
    Ok(found.deliveries.iter().map(row).collect())
}

/// One look is bounded in what it looks at; so while few were found, some more follow.
async fn look(
    store: &dyn Store,
    query: &DeliveryQuery,
    before: Option<Seq>,
) -> Result<DeliveryPage, Trouble> {
    let mut page = DeliveryPage { deliveries: Vec::new(), next: before };
    let began = Instant::now();
    for _ in 0..LOOKS_MAX {
        let left = PAGE - page.deliveries.len();
        let found = queries::find_deliveries(store, query, page.next, left).await?;
        page.deliveries.extend(found.deliveries);
        page.next = found.next;
        if page.deliveries.len() == PAGE || page.next.is_none() || began.elapsed() > LOOKS_WITHIN {
            break;
        }
    }
    Ok(page)
}
