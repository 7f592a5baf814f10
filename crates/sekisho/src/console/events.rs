//! Events: searched, filtered, one page after the other. The newest page moves by itself ([`live`](super::live)).
//!
//! One look is bounded. If it ends before the page is full, the page says how far it saw and offers to look further.

mod export;
pub mod rows;
mod search;

use std::time::Duration;

use askama::Template;
use sekisho_core::calendar::Zone;
use sekisho_core::{Seq, Time};
use sekisho_store::{DeliveryStatus, EventFilter, EventPage, Store};
use tokio::time::Instant;

use self::rows::EventRow;
use self::search::Lead;
pub use self::search::lead;
use super::frame::Frame;
use super::page::{Answer, Page, PageMethod, Reply, VIEWER, Visit, time};
use super::trouble::Trouble;
use crate::queries;
use crate::types::{EventQuery, read_query};

pub const PAGES: &[Page] = &[
    Page {
        method: PageMethod::Get,
        path: "/console/events",
        needs: VIEWER,
        run: |visit| Box::pin(list(visit)),
    },
    Page {
        method: PageMethod::Get,
        path: "/console/events/export",
        needs: VIEWER,
        run: |visit| Box::pin(export::export(visit)),
    },
];

/// Events on a page.
const PAGE: usize = 50;
/// Looks into the past for one page; and none begins later than this, so that a page is quick where the store is slow.
pub const LOOKS_MAX: usize = 10;
pub const LOOKS_WITHIN: Duration = Duration::from_millis(50);
/// Letters of what is searched for.
const TEXT_MAX: usize = 300;
/// What a list is narrowed by. `q` only says how somebody came to the rest.
const FILTERS: [&str; 11] =
    ["q", "source", "type", "status", "delivery", "object", "payment", "tenant", "from", "to", "own"];
/// What the live tail can narrow by.
const LIVE: [&str; 3] = ["source", "type", "own"];

#[derive(Template)]
#[template(path = "console/events.html")]
struct EventsPage {
    f: Frame,
    sources: Vec<String>,
    given: GivenFilters,
    rows: Vec<EventRow>,
    /// Where the list begins, if this is not its beginning.
    first: Option<String>,
    next: Option<Next>,
    /// Where new rows come from, if this page has them.
    live: Option<String>,
}

/// Where the next page begins.
struct Next {
    link: String,
    /// How far was looked, if it ended there and not because the page is full.
    looked_to: Option<Time>,
}

/// Filters as they stand in the address, each checked.
pub struct GivenFilters(Vec<(&'static str, String)>);

impl GivenFilters {
    pub fn of(visit: &Visit) -> Result<Self, Trouble> {
        let mut given = Vec::new();
        for name in FILTERS {
            let Some(value) = visit.param(name) else { continue };
            if value.contains(char::is_control) || value.chars().count() > TEXT_MAX {
                let wanted = "expected a text without control characters";
                return Err(Trouble::wrong(format!("{name}: {wanted}, at most {TEXT_MAX} characters")));
            }
            given.push((name, value.to_owned()));
        }
        Ok(Self(given))
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// For a form: empty when it was not given.
    fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// Whether any of the filters is given that are not always in sight.
    fn is_special(&self) -> bool {
        ["object", "payment", "tenant", "from", "to", "own"].iter().any(|name| self.get(name).is_some())
    }

    fn is_any(&self) -> bool {
        !self.0.is_empty()
    }

    pub fn filter(&self, visit: &Visit) -> Result<EventFilter, Trouble> {
        Ok(self.query(visit)?.filter()?)
    }

    fn query(&self, visit: &Visit) -> Result<EventQuery, Trouble> {
        query(|name| self.get(name), ["from", "to"], &visit.zone)
    }

    /// The replay of what this list shows.
    fn replay(&self) -> String {
        let own = self.0.iter().filter(|(name, _)| !["q", "own"].contains(name));
        let name = |name: &'static str| match name {
            "from" => "since",
            "to" => "until",
            other => other,
        };
        address("/console/events/replay", own.map(|(known, value)| (name(known), value.as_str())))
    }

    /// A replay needs to know of what.
    fn can_be_replayed(&self) -> bool {
        self.0.iter().any(|(name, _)| !["q", "own"].contains(name))
    }

    /// An address with these filters, and more.
    fn link(&self, path: &str, more: &[(&str, String)]) -> String {
        let own = self.0.iter().map(|(name, value)| (*name, value.as_str()));
        address(path, own.chain(more.iter().map(|(name, value)| (*name, value.as_str()))))
    }

    /// The address of the tail of this list, if it can be narrowed so: what is newer than the newest, and changes of
    /// what is there.
    fn live(&self, rows: &[EventRow], is_full: bool) -> Option<String> {
        let can = |(name, _): &(&str, String)| LIVE.contains(name) || *name == "q";
        let mut more = Vec::new();
        more.extend(rows.first().map(|row| ("after", row.id.clone())));
        more.extend(rows.last().filter(|_| is_full).map(|row| ("floor", row.id.clone())));
        self.0.iter().all(can).then(|| self.link("/console/events/live", &more))
    }
}

/// Which events, by what was given for each filter; `begin` and `end` are what the times are called.
pub fn query<'v>(
    get: impl Fn(&str) -> Option<&'v str>,
    [begin, end]: [&str; 2],
    zone: &Zone,
) -> Result<EventQuery, Trouble> {
    let (since, until) = (time(begin, get(begin), zone)?, time(end, get(end), zone)?);
    let query = read_query(|name| match name {
        "since" => since.map(|at| at.to_string()),
        "until" => until.map(|at| at.to_string()),
        "own" => get("own").map(|_| true.to_string()),
        other => get(other).map(str::to_owned),
    });
    query.map_err(|wrong| Trouble::wrong(wrong.to_string()))
}

/// A path with what comes after its `?`.
pub fn address<'a>(path: &str, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let begin = format!("{path}?");
    let at = begin.len();
    form_urlencoded::Serializer::for_suffix(begin, at).extend_pairs(pairs).finish()
}

async fn list(visit: Visit) -> Answer {
    let given = GivenFilters::of(&visit)?;
    if let (Some(text), [_]) = (given.get("q"), &*given.0) {
        return find(&visit, text).await;
    }
    let (mut filter, delivery) = (given.filter(&visit)?, given.query(&visit)?.delivery()?);
    let before = visit.before()?;
    // The cursor lies within what `to` allows.
    filter.before = [before, filter.before].into_iter().flatten().min();
    let found = look(&*visit.console.store, filter, delivery).await?;
    let rows = rows::of(&*visit.console.store, &found.events).await?;
    let is_full = rows.len() == PAGE;
    let next = |next: Seq| Next {
        link: given.link("/console/events", &[("before", next.as_event().to_string())]),
        looked_to: (!is_full).then(|| next.made_at()),
    };
    Reply::page(&EventsPage {
        f: visit.frame("events", visit.lang.t("Events", "イベント")),
        sources: visit.console.known.sources.clone(),
        next: found.next.map(next),
        first: before.map(|_| given.link("/console/events", &[])),
        live: given.live(&rows, is_full).filter(|_| before.is_none()),
        given,
        rows,
    })
}

/// One look is bounded in what it looks at; so while few were found, some more follow.
async fn look(
    store: &dyn Store,
    mut filter: EventFilter,
    delivery: Option<DeliveryStatus>,
) -> Result<EventPage, Trouble> {
    let mut page = EventPage { events: Vec::new(), next: filter.before };
    let began = Instant::now();
    for _ in 0..LOOKS_MAX {
        filter.limit = PAGE - page.events.len();
        let found = queries::find_events(store, filter.clone(), delivery).await?;
        page.events.extend(found.events);
        page.next = found.next;
        if page.events.len() == PAGE || page.next.is_none() || began.elapsed() > LOOKS_WITHIN {
            break;
        }
        filter.before = page.next;
    }
    Ok(page)
}

/// To where a text leads.
async fn find(visit: &Visit, text: &str) -> Answer {
    let lead = lead(&*visit.console.store, &visit.console.known.sources, text).await?;
    let (name, value) = match lead {
        Lead::Page(to) => return Ok(Reply::Go { to, flash: None }),
        Lead::Payment(id) => ("payment", id),
        Lead::Tenant(id) => ("tenant", id),
        Lead::Object(id) => ("object", id),
        Lead::Type(pattern) => ("type", pattern),
    };
    let to = GivenFilters(vec![("q", text.to_owned())]).link("/console/events", &[(name, value)]);
    Ok(Reply::Go { to, flash: None })
}
