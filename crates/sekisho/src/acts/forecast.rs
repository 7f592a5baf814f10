//! What a replay would lead to: each route and each rule is asked about each event, the store what was done before, and
//! the core what would be announced for the first time. Nothing is written.

mod announced;
mod notices;

use std::collections::BTreeMap;

use sekisho_core::event::Stored;
use sekisho_core::job::{Lane, Outcome};
use sekisho_core::rule::{RuleError, Variables};
use sekisho_core::settlement::{Fetch, held_back, read};
use sekisho_core::source_name::{FETCHED, Origin};
use sekisho_core::state::{Key, State};
use sekisho_core::{Seq, Time};
use sekisho_store::{Message, Standing, Store};
use serde::{Deserialize, Serialize};

use super::{Known, ReplayReport, Result};
use announced::Announced;
use notices::Told;

pub use notices::NoticeForecast;

/// Events whose bodies are in memory at once.
const LOADED: usize = 100;

/// Deliveries of the replayed events to one route.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteForecast {
    pub route: String,
    /// Never made: the replay makes them.
    pub new: usize,
    /// Made before: left alone unless asked for again. So are the next three.
    pub delivered: usize,
    pub waiting: usize,
    /// Among the dead letters, where a retry redoes them.
    pub dead: usize,
    pub discarded: usize,
}

/// A rule that can't be answered: by its filter a route or a `[[notify]]` does not get these events, by its `fifo` a route
/// gets them without order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unanswered {
    /// `route app`, `notify receipt`.
    pub rule: String,
    pub error: String,
    pub count: usize,
}

/// Fills in what a dry run adds to the report.
pub async fn forecast(
    store: &dyn Store,
    known: &Known,
    events: &[Seq],
    at: Time,
    report: &mut ReplayReport,
) -> Result<()> {
    let mut outlook = Outlook::new(known, at);
    let mut announced = Announced::default();
    for chunk in events.chunks(LOADED) {
        let mut readings = Vec::new();
        for event in store.load_events(chunk.to_vec()).await? {
            let settling = store.find_message(event.seq).await?;
            if settling.is_some_and(|message| is_unfinished(&message)) {
                report.unfinished += 1;
                continue;
            }
            let origin = known.origin(&event);
            let account = known.accounts.get(&*event.source).map(String::as_str);
            // What is held back, or can't be read, goes to the dead letters and nowhere else.
            let is_held = held_back(origin, account, &event).is_some();
            let Some(reading) = read(origin, &event, &known.references).ok().filter(|_| !is_held) else {
                report.without_route += 1;
                continue;
            };
            let before = store.find_messages(event.seq).await?;
            let is_taken = outlook.ask(store, origin, &event, &before, &BTreeMap::new()).await?;
            report.without_route += usize::from(!is_taken);
            readings.extend(reading.map(|reading| (event, reading)));
        }
        let (news, drafts) = announced.by(store, readings, at).await?;
        report.announcements += news.len();
        for event in &news {
            outlook.ask(store, known.origin(event), event, &[], &drafts).await?;
        }
    }
    outlook.fill_in(report);
    Ok(())
}

impl Known {
    fn origin(&self, event: &Stored) -> Origin {
        if &*event.source == FETCHED {
            return Fetch::origin(event);
        }
        self.origins.get(&*event.source).copied().unwrap_or_default()
    }
}

fn is_unfinished(message: &Message) -> bool {
    matches!(message.standing, Standing::Waiting(_) | Standing::Running)
}

/// What was foretold so far.
struct Outlook<'k> {
    known: &'k Known,
    routes: Vec<RouteForecast>,
    told: Told<'k>,
    unanswered: BTreeMap<(String, String), usize>,
}

impl<'k> Outlook<'k> {
    fn new(known: &'k Known, at: Time) -> Self {
        let route = |name: &String| RouteForecast { route: name.clone(), ..RouteForecast::default() };
        Self {
            known,
            routes: known.routes.iter().map(|one| route(&one.name)).collect(),
            told: Told::new(known, at),
            unanswered: BTreeMap::new(),
        }
    }

    /// Asks every route and every rule about an event, which caused this before; says whether a route takes it.
    async fn ask(
        &mut self,
        store: &dyn Store,
        origin: Origin,
        event: &Stored,
        before: &[Message],
        drafts: &BTreeMap<Key, State>,
    ) -> Result<bool> {
        let facts = Variables::of(event);
        let mut is_taken = false;
        for (route, forecast) in self.known.routes.iter().zip(&mut self.routes) {
            let mut tell = |RuleError(error)| {
                *self.unanswered.entry((format!("route {}", route.name), error)).or_default() += 1;
            };
            match route.matches(origin, event, &facts) {
                Ok(true) => {
                    is_taken = true;
                    forecast.add(before);
                    if let Err(error) = route.fifo_key(&facts) {
                        tell(error);
                    }
                }
                Ok(false) => {}
                Err(error) => tell(error),
            }
        }
        for (rule, RuleError(error)) in self.told.ask(store, event, &facts, before, drafts).await? {
            *self.unanswered.entry((format!("notify {rule}"), error)).or_default() += 1;
        }
        Ok(is_taken)
    }

    fn fill_in(self, report: &mut ReplayReport) {
        let is_touched = |one: &RouteForecast| {
            *one != RouteForecast { route: one.route.clone(), ..RouteForecast::default() }
        };
        report.routes = self.routes.into_iter().filter(is_touched).collect();
        report.notices = self.told.forecasts();
        let unanswered = self.unanswered.into_iter();
        report.unanswered =
            unanswered.map(|((rule, error), count)| Unanswered { rule, error, count }).collect();
    }
}

impl RouteForecast {
    /// Where the event's last delivery to this route stands, if there was one.
    fn add(&mut self, before: &[Message]) {
        let lane = Lane::to_route(&self.route);
        let last = before.iter().filter(|message| message.lane == lane).max_by_key(|message| message.job);
        let count = match last.map(|message| &message.standing) {
            None => &mut self.new,
            Some(Standing::Waiting(_) | Standing::Running) => &mut self.waiting,
            Some(Standing::Dead(..)) => &mut self.dead,
            Some(Standing::Done(Outcome::Discarded { .. }, _)) => &mut self.discarded,
            Some(Standing::Done(..)) => &mut self.delivered,
        };
        *count += 1;
    }
}
