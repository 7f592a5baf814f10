//! Many waiting deliveries, cancelled at once: what would be done, then a run that does it.

use askama::Template;

use super::HOME;
use super::chosen::ChosenDeliveries;
use crate::acts::{self, DeliveryReport, DeliverySelection, REASON_MAX};
use crate::console::frame::Frame;
use crate::console::page::{Answer, Reply, Visit, within};
use crate::console::runs::{self, BulkOrder};
use crate::console::trouble::Trouble;

#[derive(Template)]
#[template(path = "console/deliveries_cancel.html")]
struct CancelPage {
    f: Frame,
    back: String,
    fields: Vec<(String, String)>,
    report: DeliveryReport,
    reason_max: usize,
    /// Under which number the run is entered.
    run: String,
}

pub async fn preview(visit: Visit) -> Answer {
    let chosen = ChosenDeliveries::of(|name| visit.param(name), &visit.zone)?;
    // What is queued from now on was not looked at.
    let bounded = chosen.until(visit.at);
    let order = DeliverySelection { dry_run: true, ..order(&bounded) };
    let report = acts::cancel(&*visit.console.store, &order, &visit.actor()).await?;
    Reply::page(&CancelPage {
        f: visit.frame("deliveries", visit.lang.t("Cancel deliveries", "配送の一括取り消し")),
        back: visit.param("back").map_or_else(|| chosen.link(HOME), |back| within(Some(back))),
        fields: bounded.fields(),
        report,
        reason_max: REASON_MAX,
        run: runs::fresh_id(),
    })
}

pub fn start(visit: &Visit) -> Answer {
    let chosen = ChosenDeliveries::of(|name| visit.field(name), &visit.zone)?;
    let reason = visit.field("why").unwrap_or_default().to_owned();
    if reason.is_empty() {
        let text = "a reason is required to cancel; it is recorded in the audit log";
        return Err(Trouble::wrong(text.to_owned()));
    }
    let order = DeliverySelection { reason, ..order(&chosen) };
    runs::start(visit, BulkOrder::Cancel(order), within(visit.field("back")))
}

fn order(chosen: &ChosenDeliveries) -> DeliverySelection {
    DeliverySelection { filter: chosen.query.clone(), all: chosen.is_all(), ..DeliverySelection::default() }
}
