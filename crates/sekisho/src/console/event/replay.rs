//! Settling past events again: first what would come of it, then the act. One event at once, many as a run.

use askama::Template;
use sekisho_core::calendar::Zone;
use sekisho_store::{EventFilter, FIND_MAX, Order as Sorted};

use crate::acts::{self, REASON_MAX, Replay, ReplayReport};
use crate::console::events;
use crate::console::frame::Frame;
use crate::console::page::{Answer, Reply, Visit};
use crate::console::runs::{self, BulkOrder};
use crate::console::trouble::Trouble;
use crate::types::EventQuery;

/// Events that are counted for a preview, and those that every route is asked about.
const COUNTED_MAX: usize = 10_000;
const FORECAST_MAX: usize = 200;

#[derive(Template)]
#[template(path = "console/replay.html")]
struct ReplayPage {
    f: Frame,
    /// Where the form goes, and where one came from.
    action: String,
    back: String,
    /// The event's type, when it is one.
    one: Option<String>,
    /// What the filter says, to be sent along.
    fields: Vec<(&'static str, String)>,
    count: usize,
    is_more: bool,
    /// Events that the forecast is of.
    forecast_of: usize,
    report: ReplayReport,
    reason_max: usize,
    /// Under which number the run is entered.
    run: String,
}

pub async fn preview_one(visit: Visit) -> Answer {
    let record = super::find(&visit).await?;
    let id = record.summary.seq.as_event().to_string();
    let order = Replay { ids: vec![id.clone()], dry_run: true, ..Replay::default() };
    let report = dry_run(&visit, &order).await?;
    Reply::page(&ReplayPage {
        f: visit.frame("events", visit.lang.t("Replay an event", "イベントのリプレイ")),
        action: format!("/console/events/{id}/replay"),
        back: format!("/console/events/{id}"),
        one: Some(record.summary.event_type),
        fields: Vec::new(),
        count: report.found,
        is_more: false,
        forecast_of: report.found,
        report,
        reason_max: REASON_MAX,
        run: runs::fresh_id(),
    })
}

pub async fn one(visit: Visit) -> Answer {
    let record = super::find(&visit).await?;
    let id = record.summary.seq.as_event().to_string();
    let back = format!("/console/events/{id}");
    let order = Replay { ids: vec![id], again: again(&visit), reason: reason(&visit), ..Replay::default() };
    let (store, known) = (&*visit.console.store, &visit.console.known);
    match acts::replay(store, known, &order, &visit.actor()).await {
        Ok(report) if report.queued == 1 => Reply::done(
            back,
            visit.lang.t("The event is processed again.", "イベントの再処理を開始しました。"),
        ),
        Ok(_) => Reply::failed(
            back,
            visit.lang.t(
                "Nothing was changed: the event is still being processed.",
                "まだ処理中のため、何も実行していません。",
            ),
        ),
        Err(refusal) => visit.refused(&back, refusal),
    }
}

pub async fn preview_many(visit: Visit) -> Answer {
    let mut chosen = Chosen::of(|name| visit.param(name), &visit.zone)?;
    // What comes in from now on was not looked at.
    chosen.query.until = chosen.query.until.or(Some(visit.at));
    let mut filter = EventFilter { order: Sorted::OldestFirst, limit: FIND_MAX, ..chosen.query.filter()? };
    let (mut count, mut first) = (0, Vec::new());
    let is_more = loop {
        let page = visit.console.store.find_events(filter.clone()).await?;
        let room = FORECAST_MAX - first.len();
        first.extend(page.events.iter().take(room).map(|event| event.seq.as_event().to_string()));
        count += page.events.len();
        filter.after = page.next;
        if page.next.is_none() || count >= COUNTED_MAX {
            break page.next.is_some();
        }
    };
    let forecast_of = first.len();
    let report = if first.is_empty() {
        ReplayReport::default()
    } else {
        dry_run(&visit, &Replay { ids: first, dry_run: true, ..Replay::default() }).await?
    };
    Reply::page(&ReplayPage {
        f: visit.frame("events", visit.lang.t("Replay events", "イベントの一括リプレイ")),
        action: "/console/events/replay".to_owned(),
        back: chosen.list(),
        one: None,
        fields: chosen.fields(),
        count,
        is_more,
        forecast_of,
        report,
        reason_max: REASON_MAX,
        run: runs::fresh_id(),
    })
}

pub fn many(visit: &Visit) -> Answer {
    let chosen = Chosen::of(|name| visit.field(name), &visit.zone)?;
    let order = Replay {
        filter: chosen.query.clone(),
        again: again(visit),
        reason: reason(visit),
        ..Replay::default()
    };
    runs::start(visit, BulkOrder::Replay(order), chosen.list())
}

async fn dry_run(visit: &Visit, order: &Replay) -> Result<ReplayReport, Trouble> {
    let (store, known) = (&*visit.console.store, &visit.console.known);
    Ok(acts::replay(store, known, order, &visit.actor()).await?)
}

fn again(visit: &Visit) -> bool {
    visit.field("again").is_some()
}

fn reason(visit: &Visit) -> String {
    visit.field("reason").unwrap_or_default().to_owned()
}

/// Which events, as the list's filters say it.
struct Chosen {
    query: EventQuery,
}

impl Chosen {
    fn of<'v>(get: impl Fn(&str) -> Option<&'v str>, zone: &Zone) -> Result<Self, Trouble> {
        let query = EventQuery { own: false, ..events::query(get, ["since", "until"], zone)? };
        Ok(Self { query })
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        let EventQuery {
            source,
            event_type,
            status,
            delivery,
            object,
            payment,
            tenant,
            since,
            until,
            own: _,
        } = &self.query;
        let texts = [
            ("source", source.clone()),
            ("type", event_type.clone()),
            ("status", status.clone()),
            ("delivery", delivery.clone()),
            ("object", object.clone()),
            ("payment", payment.clone()),
            ("tenant", tenant.clone()),
            ("since", since.map(|at| at.to_string())),
            ("until", until.map(|at| at.to_string())),
        ];
        texts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// The list it was chosen in.
    fn list(&self) -> String {
        let times = ["since", "until"];
        let fields = self.fields().into_iter().filter(|(name, _)| !times.contains(name));
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        format!("/console/events?{query}")
    }
}
