//! Many dead letters at once: what would be done, then a run that does it.

use askama::Template;

use super::chosen::Chosen;
use super::{GroupRow, HOME};
use crate::acts::{self, DeadLetterSelection, DeadReport, REASON_MAX};
use crate::console::frame::Frame;
use crate::console::page::{Answer, Reply, Visit};
use crate::console::runs::{self, BulkOrder};
use crate::console::trouble::Trouble;

/// What is done with dead letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Retry,
    Discard,
}

#[derive(Template)]
#[template(path = "console/dead_many.html")]
struct ManyPage {
    f: Frame,
    action: &'static str,
    is_retry: bool,
    back: String,
    fields: Vec<(String, String)>,
    report: DeadReport,
    groups: Vec<GroupRow>,
    reason_max: usize,
    /// Under which number the run is entered.
    run: String,
}

pub async fn preview(visit: Visit, action: Action) -> Answer {
    let chosen = Chosen::of(|name| visit.param(name), &visit.zone)?;
    // What dies from now on was not looked at.
    let bounded = chosen.until(visit.at);
    let mut report = dry_run(&visit, action, &bounded).await?;
    let is_retry = action == Action::Retry;
    let title = if is_retry {
        visit.lang.t("Retry dead letters", "デッドレターの一括再試行")
    } else {
        visit.lang.t("Discard dead letters", "デッドレターの一括破棄")
    };
    let f = visit.frame("dead", title);
    let groups = std::mem::take(&mut report.groups);
    Reply::page(&ManyPage {
        action: if is_retry { "/console/dead/retry" } else { "/console/dead/discard" },
        is_retry,
        back: chosen.link(HOME),
        fields: bounded.fields(),
        groups: groups.into_iter().map(|group| GroupRow::of(group, &chosen, &f)).collect(),
        report,
        reason_max: REASON_MAX,
        run: runs::fresh_id(),
        f,
    })
}

pub fn start(visit: &Visit, action: Action) -> Answer {
    let chosen = Chosen::of(|name| visit.field(name), &visit.zone)?;
    // Not `reason`: that is a filter here.
    let reason = visit.field("why").unwrap_or_default().to_owned();
    if action == Action::Discard && reason.is_empty() {
        let text = "a reason is required to discard; it is recorded in the audit log";
        return Err(Trouble::wrong(text.to_owned()));
    }
    let redo = DeadLetterSelection { reason, ..order(&chosen) };
    let order = match action {
        Action::Retry => BulkOrder::Retry(redo),
        Action::Discard => BulkOrder::Discard(redo),
    };
    runs::start(visit, order, back(visit))
}

/// The list it was chosen in: without the moment of the preview, which is nobody's filter.
fn back(visit: &Visit) -> String {
    crate::console::page::within(visit.field("back"))
}

async fn dry_run(visit: &Visit, action: Action, chosen: &Chosen) -> Result<DeadReport, Trouble> {
    let order = DeadLetterSelection { dry_run: true, ..order(chosen) };
    let (store, actor) = (&*visit.console.store, visit.actor());
    let report = match action {
        Action::Retry => acts::retry(store, &order, &actor).await?,
        Action::Discard => acts::discard(store, &order, &actor).await?,
    };
    Ok(report)
}

fn order(chosen: &Chosen) -> DeadLetterSelection {
    DeadLetterSelection {
        filter: chosen.query.clone(),
        all: chosen.is_all(),
        ..DeadLetterSelection::default()
    }
}
