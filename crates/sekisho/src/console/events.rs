//! Events: searched, filtered, one page after the other.

use askama::Template;
use sekisho_core::Time;
use sekisho_store::{EventFilter, EventSummary, Status};

use super::frame::Frame;
use super::page::{Answer, Method, Page, Reply, VIEWER, Visit};
use super::trouble::Trouble;

pub const PAGES: &[Page] = &[Page {
    method: Method::Get,
    path: "/console/events",
    needs: VIEWER,
    run: |visit| Box::pin(list(visit)),
}];

/// Events on a page.
const PAGE: usize = 50;

#[derive(Template)]
#[template(path = "console/events.html")]
struct EventsPage {
    f: Frame,
    sources: Vec<String>,
    source: String,
    event_type: String,
    status: String,
    rows: Vec<EventRow>,
    /// Where the next page begins.
    next: Option<String>,
}

struct EventRow {
    id: String,
    event_type: String,
    source: String,
    status: &'static str,
    received_at: Time,
    object: String,
    note: String,
}

impl EventRow {
    fn of(event: &EventSummary) -> Self {
        Self {
            id: event.seq.as_event().to_string(),
            event_type: event.event_type.clone(),
            source: event.source.clone(),
            status: event.status.name(),
            received_at: event.received_at,
            object: event.object.as_ref().map(|(_, id)| id.clone()).unwrap_or_default(),
            note: event.note.clone().unwrap_or_default(),
        }
    }
}

async fn list(visit: Visit) -> Answer {
    let text = |name: &str| visit.param(name).unwrap_or_default().to_owned();
    let status = visit
        .param("status")
        .map(|word| Status::parse(word).ok_or_else(|| Trouble::wrong(format!("status: {word:?} is none"))));
    let filter = EventFilter {
        source: visit.param("source").map(str::to_owned),
        event_type: visit.param("type").map(str::to_owned),
        status: status.transpose()?,
        received: true,
        before: visit.before()?,
        limit: PAGE,
        ..EventFilter::default()
    };
    let found = visit.console.store.find_events(filter).await?;
    Reply::page(&EventsPage {
        f: visit.frame("events", visit.lang.t("Events", "イベント")),
        sources: visit.console.known.sources.clone(),
        source: text("source"),
        event_type: text("type"),
        status: text("status"),
        rows: found.events.iter().map(EventRow::of).collect(),
        next: found.next.map(|next| next.as_event().to_string()),
    })
}
