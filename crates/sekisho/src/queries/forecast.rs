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
use sekisho_store::{Standing, Store, StoredMessage};

use super::context::OrderContext;
use crate::refusal::Result;
use crate::types::{ReplayReport, RouteForecast, Unanswered};
use announced::AnnouncedBefore;
use notices::NoticeOutlook;

/// Events whose bodies are in memory at once.
const LOADED: usize = 100;

/// Fills in what a dry run adds to the report.
pub async fn forecast(
    store: &dyn Store,
    context: &OrderContext,
    report: &mut ReplayReport,
    events: &[Seq],
    at: Time,
) -> Result<()> {
    let mut outlook = Outlook::new(context, at);
    let mut announced = AnnouncedBefore::default();
    for chunk in events.chunks(LOADED) {
        let mut readings = Vec::new();
        for event in store.load_events(chunk.to_vec()).await? {
            let settling = store.find_message(event.seq).await?;
            if settling.is_some_and(|message| is_unfinished(&message)) {
                report.unfinished += 1;
                continue;
            }
            let origin = context.origin(&event);
            let account = context.accounts.get(&*event.source).map(String::as_str);
            // What is held back, or can't be read, goes to the dead letters and nowhere else.
            let is_held = held_back(origin, account, &event).is_some();
            let Some(reading) = read(origin, &event, &context.references).ok().filter(|_| !is_held) else {
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
            outlook.ask(store, context.origin(event), event, &[], &drafts).await?;
        }
    }
    outlook.fill_in(report);
    Ok(())
}

impl OrderContext {
    fn origin(&self, event: &Stored) -> Origin {
        if &*event.source == FETCHED {
            return Fetch::origin(event);
        }
        self.origins.get(&*event.source).copied().unwrap_or_default()
    }
}

fn is_unfinished(message: &StoredMessage) -> bool {
    matches!(message.standing, Standing::Waiting(_) | Standing::Running)
}

/// What was foretold so far.
struct Outlook<'k> {
    context: &'k OrderContext,
    routes: Vec<RouteForecast>,
    notices: NoticeOutlook<'k>,
    unanswered: BTreeMap<(String, String), usize>,
}

impl<'k> Outlook<'k> {
    fn new(context: &'k OrderContext, at: Time) -> Self {
        let route = |name: &String| RouteForecast { route: name.clone(), ..RouteForecast::default() };
        Self {
            context,
            routes: context.routes.iter().map(|one| route(&one.name)).collect(),
            notices: NoticeOutlook::new(context, at),
            unanswered: BTreeMap::new(),
        }
    }

    /// Asks every route and every rule about an event, which caused this before; says whether a route takes it.
    async fn ask(
        &mut self,
        store: &dyn Store,
        origin: Origin,
        event: &Stored,
        before: &[StoredMessage],
        drafts: &BTreeMap<Key, State>,
    ) -> Result<bool> {
        let variables = Variables::of(event);
        let mut is_taken = false;
        for (route, forecast) in self.context.routes.iter().zip(&mut self.routes) {
            let mut tell = |RuleError(error)| {
                *self.unanswered.entry((format!("route {}", route.name), error)).or_default() += 1;
            };
            match route.matches(origin, event, &variables) {
                Ok(true) => {
                    is_taken = true;
                    forecast.add(before);
                    if let Err(error) = route.fifo_key(&variables) {
                        tell(error);
                    }
                }
                Ok(false) => {}
                Err(error) => tell(error),
            }
        }
        for (rule, RuleError(error)) in self.notices.ask(store, event, &variables, before, drafts).await? {
            *self.unanswered.entry((format!("notify {rule}"), error)).or_default() += 1;
        }
        Ok(is_taken)
    }

    fn fill_in(self, report: &mut ReplayReport) {
        let is_touched = |one: &RouteForecast| {
            *one != RouteForecast { route: one.route.clone(), ..RouteForecast::default() }
        };
        report.routes = self.routes.into_iter().filter(is_touched).collect();
        report.notices = self.notices.forecasts();
        let unanswered = self.unanswered.into_iter();
        report.unanswered =
            unanswered.map(|((rule, error), count)| Unanswered { rule, error, count }).collect();
    }
}

impl RouteForecast {
    /// Where the event's last delivery to this route stands, if there was one.
    fn add(&mut self, before: &[StoredMessage]) {
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
