//! What a replay would lead to: each route is asked about each event, and the store what was done before. Nothing is
//! written.

use std::collections::BTreeMap;

use sekisho_core::Seq;
use sekisho_core::change::{Lane, Outcome};
use sekisho_core::rule::{Facts, RuleError};
use sekisho_core::settlement::held_back;
use sekisho_store::{Message, Standing, Store};
use serde::{Deserialize, Serialize};

use super::{Known, ReplayReport, Result};

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

/// A rule that can't be answered: by its filter a route does not get these events, by its `fifo` it gets them without order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unanswered {
    pub route: String,
    pub error: String,
    pub count: usize,
}

/// Fills in what a dry run adds to the report.
pub async fn forecast(
    store: &dyn Store,
    known: &Known,
    events: &[Seq],
    report: &mut ReplayReport,
) -> Result<()> {
    let routes = &known.routes;
    let mut forecasts: Vec<_> = routes
        .iter()
        .map(|route| RouteForecast { route: route.name.clone(), ..RouteForecast::default() })
        .collect();
    let mut unanswered: BTreeMap<(String, String), usize> = BTreeMap::new();
    for chunk in events.chunks(LOADED) {
        for event in store.load_events(chunk.to_vec()).await? {
            let settling = store.find_message(event.seq).await?;
            if settling.is_some_and(|message| is_unfinished(&message)) {
                report.unfinished += 1;
                continue;
            }
            let origin = known.origins.get(&*event.source).copied().unwrap_or_default();
            let account = known.accounts.get(&*event.source).map(String::as_str);
            if held_back(origin, account, &event).is_some() {
                report.without_route += 1;
                continue;
            }
            let before = store.find_messages(event.seq).await?;
            let facts = Facts::of(&event);
            let mut is_taken = false;
            for (route, forecast) in routes.iter().zip(&mut forecasts) {
                let mut tell =
                    |RuleError(error)| *unanswered.entry((route.name.clone(), error)).or_default() += 1;
                match route.matches(&event, &facts) {
                    Ok(true) => {
                        is_taken = true;
                        forecast.add(&before);
                        if let Err(error) = route.fifo_key(&facts) {
                            tell(error);
                        }
                    }
                    Ok(false) => {}
                    Err(error) => tell(error),
                }
            }
            report.without_route += usize::from(!is_taken);
        }
    }
    forecasts.retain(|forecast| {
        *forecast != RouteForecast { route: forecast.route.clone(), ..RouteForecast::default() }
    });
    report.routes = forecasts;
    let unanswered = unanswered.into_iter();
    report.unanswered =
        unanswered.map(|((route, error), count)| Unanswered { route, error, count }).collect();
    Ok(())
}

fn is_unfinished(message: &Message) -> bool {
    matches!(message.standing, Standing::Waiting(_) | Standing::Running)
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
