//! What comes in, as it comes in: rows of the event list as a stream, new ones and those that changed.
//!
//! Numbers of several nodes can be committed out of order, and events are settled some time after they came: so it is
//! not a cursor that moves on, but the last minute that is read once a second and compared with what was sent. A stream
//! ends by itself before the server's patience does, and at once when the server stops; the browser comes back with the
//! last number it saw.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use askama::Template as _;
use axum::body::Body;
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use sekisho_core::event::About;
use sekisho_core::{Seq, Time};
use sekisho_store::{DeliveryCounts, EventFilter, EventSummary, Status};
use tokio::time::Instant;

use super::Console;
use super::events::GivenFilters;
use super::events::rows::{self, EventRows};
use super::frame::Frame;
use super::page::{Answer, Page, PageMethod, Reply, VIEWER, Visit};
use super::trouble::Trouble;

pub const PAGES: &[Page] = &[Page {
    method: PageMethod::Get,
    path: "/console/events/live",
    needs: VIEWER,
    run: |visit| Box::pin(async { tail(visit) }),
}];

/// Streams of one process, and of one person.
pub const TAILS_MAX: usize = 50;
pub const TAILS_EACH_MAX: usize = 5;
/// Rows that are kept up to date: as many as the page keeps, so that what it shows has no gaps.
const ROWS_MAX: usize = 200;
const READ_EVERY: Duration = Duration::from_secs(1);
/// How far back rows are compared with what was sent.
const LOOK_BACK_MS: i64 = 60_000;
/// Commits of other nodes may come this much later than their numbers say.
const LATE_MS: i64 = 5_000;
const LASTS: Duration = Duration::from_secs(30);
/// A sign of life, so that nothing between us and the browser takes the silence for the end.
const BEAT: Duration = Duration::from_secs(10);
/// When the browser comes back, and when it may ask again where there was no room.
const RETRY: &str = "retry: 1000\n\n";
const NO_ROOM_RETRY_SECONDS: &str = "15";

fn tail(visit: Visit) -> Answer {
    let filter = GivenFilters::of(&visit)?.filter(&visit)?;
    let read = |name: &str, text: &str| {
        text.parse::<Seq>().map_err(|error| Trouble::wrong(format!("{name}: {error}")))
    };
    let after = match &visit.last_event_id {
        // What the browser saw last counts more than what the page began with.
        Some(id) => id.parse().ok(),
        None => visit.param("after").map(|text| read("after", text)).transpose()?,
    };
    let floor = visit.param("floor").map(|text| read("floor", text)).transpose()?;
    let Some(place) = visit.console.tails.enter(&visit.who.name) else { return Ok(no_room()) };
    let tail = Tail {
        f: visit.frame("events", ""),
        filter: EventFilter { limit: ROWS_MAX, ..filter },
        floor,
        after,
        sent: None,
        ends_at: Instant::now() + LASTS,
        spoke_at: Instant::now(),
        console: visit.console,
        _place: place,
    };
    let stream = futures_util::stream::unfold(tail, async |mut tail| {
        let text = tail.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(text)), tail))
    });
    let mut answer = Response::new(Body::from_stream(Box::pin(stream)));
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    // Proxies that collect answers before they hand them on are asked not to.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(Reply::Other(answer))
}

fn no_room() -> Reply {
    let mut answer =
        Response::new(Body::from("too many live views are open; close some, or reload the list"));
    *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(NO_ROOM_RETRY_SECONDS));
    Reply::Other(answer)
}

/// Who has how many open.
#[derive(Clone, Default)]
pub struct Tails(Arc<Mutex<BTreeMap<String, usize>>>);

/// One of them, for as long as it lasts.
struct Place {
    tails: Tails,
    name: String,
}

impl Tails {
    fn enter(&self, name: &str) -> Option<Place> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = open.get(name).copied().unwrap_or_default();
        if own >= TAILS_EACH_MAX || open.values().sum::<usize>() >= TAILS_MAX {
            return None;
        }
        open.insert(name.to_owned(), own + 1);
        Some(Place { tails: self.clone(), name: name.to_owned() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.tails.0.lock().unwrap_or_else(PoisonError::into_inner);
        match open.get_mut(&self.name) {
            Some(own) if *own > 1 => *own -= 1,
            _ => drop(open.remove(&self.name)),
        }
    }
}

struct Tail {
    console: Arc<Console>,
    f: Frame,
    filter: EventFilter,
    /// The last row of the page, if there are more behind it: what is older is not on it.
    floor: Option<Seq>,
    /// The newest that the browser has.
    after: Option<Seq>,
    /// What the rows looked like; none before the first read.
    sent: Option<BTreeMap<Seq, Look>>,
    ends_at: Instant,
    spoke_at: Instant,
    _place: Place,
}

/// What of a row can change.
type Look = (Status, Option<String>, About, DeliveryCounts);

impl Tail {
    /// What is said next; none at the end.
    async fn next(&mut self) -> Option<String> {
        if self.sent.is_none() {
            let rows = self.read().await?;
            return Some(format!("{RETRY}{rows}"));
        }
        loop {
            tokio::select! {
                biased;
                () = self.console.health.stopped() => return None,
                () = tokio::time::sleep(READ_EVERY) => {}
            }
            if Instant::now() >= self.ends_at {
                return None;
            }
            let rows = self.read().await?;
            if !rows.is_empty() {
                self.spoke_at = Instant::now();
                return Some(rows);
            }
            if self.spoke_at.elapsed() >= BEAT {
                self.spoke_at = Instant::now();
                return Some(": alive\n\n".into());
            }
        }
    }

    /// The rows that are news, as an event of the stream; empty when there are none. A store that does not answer ends
    /// the stream: the browser comes back.
    async fn read(&mut self) -> Option<String> {
        let store = &*self.console.store;
        let found = store
            .find_events(EventFilter {
                after: Some(self.begin(self.console.env().wall())),
                ..self.filter.clone()
            })
            .await;
        let mut news = found.ok()?.events;
        let counts = store.find_delivery_counts(news.iter().map(|event| event.seq).collect()).await.ok()?;
        let looks: BTreeMap<Seq, Look> =
            news.iter().zip(counts).map(|(event, counts)| (event.seq, look(event, counts))).collect();
        match &self.sent {
            Some(sent) => news.retain(|event| sent.get(&event.seq) != looks.get(&event.seq)),
            None => news.retain(|event| self.is_news(event)),
        }
        self.sent = Some(looks);
        if news.is_empty() {
            return Some(String::new());
        }
        // The oldest first, as if each had come alone.
        news.reverse();
        self.after = self.after.max(news.last().map(|event| event.seq));
        let rows = rows::of(store, &news).await.ok()?;
        let html = EventRows { f: &self.f, rows }.render().ok()?;
        Some(event(self.after, &html))
    }

    /// Below the first number that is read.
    fn begin(&self, now: Time) -> Seq {
        let mut begin = Seq::floor_of(now.plus_ms(-LOOK_BACK_MS));
        // After a long absence, all that came meanwhile.
        if let (None, Some(after)) = (&self.sent, self.after) {
            begin = begin.min(after);
        }
        let page = self.floor.map(|floor| Seq::from_i64(floor.as_i64() - 1));
        page.map_or(begin, |page| page.max(begin))
    }

    /// Whether the browser may not have it so: new, late, settled since, or still to be.
    fn is_news(&self, event: &EventSummary) -> bool {
        let Some(after) = self.after else { return true };
        let since = after.made_at().plus_ms(-LATE_MS);
        event.status == Status::Received
            || event.seq >= Seq::floor_of(since)
            || event.processed_at.is_some_and(|at| at >= since)
    }
}

fn look(event: &EventSummary, deliveries: DeliveryCounts) -> Look {
    (event.status, event.note.clone(), event.about.clone(), deliveries)
}

/// An event of the stream; each line of the markup is one of its own.
fn event(id: Option<Seq>, html: &str) -> String {
    let id = id.map(|id| format!("id: {}\n", id.as_event())).unwrap_or_default();
    let mut text = format!("{id}event: rows\n");
    for line in html.lines() {
        text += "data: ";
        text += line;
        text.push('\n');
    }
    text.push('\n');
    text
}
