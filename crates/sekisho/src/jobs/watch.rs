//! Looks at the figures of all nodes once a minute, and tells operators of what is wrong, and of what is well again.
//!
//! One evaluation for all nodes: it is a timer's job, so whichever node has it looks, and what it decided, what it tells and
//! its own end are one commit. No leader; a node that dies leaves the job to another, and nothing is told twice.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use sekisho_core::alert::announce::announcement;
use sekisho_core::alert::read::{DeadCount, LaneWork, Sighting, SourceSight, TypeScore, read, unread};
use sekisho_core::alert::silent::{self, SourceHours};
use sekisho_core::alert::usual::{HOURS_READ, UsualHours, hour_number};
use sekisho_core::alert::{AlertPolicy, AlertState, Evaluated, evaluate, parse_alert_id, unusual};
use sekisho_core::change::{ChangeSet, Ended};
use sekisho_core::job::{End, Job, Lane, Outcome, Timer};
use sekisho_core::meter::MeterLog;
use sekisho_core::queue::{Breaker, Failure};
use sekisho_core::reconcile::SourceRegister;
use sekisho_core::state::{Key, Kind, Loaded, Wanted, Write};
use sekisho_core::time::{DAY_MS, HOUR_MS, Time, hour_of};
use sekisho_store::Count;
use serde::{Deserialize, Serialize};

use super::reconcile::{Reconciler, heard};
use super::{unavailable, unwritten};
use crate::config::Config;
use crate::engine::{Engine, Ran};
use crate::queries::{self, Present};
use crate::transact::transact;

/// Types whose hours are judged, the busiest of all sources.
const TYPES_MAX: usize = 200;
/// After so long without an evaluation, Sekisho was away.
const AWAY_MS: i64 = 5 * 60_000;

pub struct Watcher {
    policy: AlertPolicy,
    sources: Vec<String>,
    routes: Vec<String>,
    mail: Vec<String>,
    reconcile_every_ms: i64,
    reconciler: Arc<Reconciler>,
    /// Where the console is.
    base: String,
    /// What is usual changes once an hour.
    usual: Mutex<Option<Arc<Usual>>>,
}

struct Usual {
    /// The hour that counts end with (without).
    end: Time,
    /// Whether that hour was counted: hours without events leave no trace.
    is_counted: bool,
    sources: BTreeMap<String, SourceHours>,
    types: Vec<TypeScore>,
}

/// When this was last done, and since when without a break.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct WatchLog {
    last: Option<Time>,
    since: Option<Time>,
}

impl WatchLog {
    /// No alert has such a name.
    fn key() -> Key {
        Key::new(Kind::Alert, "-watch")
    }

    fn at(self, now: Time, every_ms: i64) -> Self {
        let was_away = self.last.is_none_or(|last| now.ms() - last.ms() > AWAY_MS.max(3 * every_ms));
        Self { last: Some(now), since: if was_away { Some(now) } else { self.since } }
    }
}

impl Watcher {
    pub fn new(config: &Config, reconciler: Arc<Reconciler>) -> Self {
        Self {
            policy: config.alerts.clone(),
            sources: config.sources.iter().map(|source| source.name.to_string()).collect(),
            routes: config.routes.iter().map(|one| Lane::to_route(&one.route.name).0.to_string()).collect(),
            mail: config.channels.iter().filter(|one| one.is_mail()).map(|one| one.name.clone()).collect(),
            reconcile_every_ms: config.reconcile.every_ms,
            reconciler,
            base: config.console_url(),
            usual: Mutex::default(),
        }
    }

    /// When it is next due.
    pub fn next_after(&self, at: Time) -> Time {
        let every_ms = self.policy.every_ms.max(1);
        Time::from_ms((at.ms().div_euclid(every_ms) + 1) * every_ms)
    }

    pub async fn run(&self, engine: &Engine, job: &Job) -> Result<Ran, Failure> {
        let store = &*engine.store;
        let now = engine.node.now();
        let known = store.load(Vec::new(), vec![WatchLog::key()]).await.map_err(unavailable)?;
        let watched = read_log(&known).at(now, self.policy.every_ms);
        let meters = queries::meter_log(store, now, HOUR_MS, DAY_MS).await.map_err(unavailable)?;
        let usual = self.usual(engine, &meters, now).await?;
        let present = queries::present(store).await.map_err(unavailable)?;
        let sighting = Sighting {
            now,
            meters: &meters,
            sources: self.sources(engine, &usual, watched.since, now).await?,
            types: usual.is_counted.then_some(&usual.types[..]),
            routes: self.routes.clone(),
            mail: self.mail.clone(),
            reconcile_every_ms: self.reconcile_every_ms,
            ..sight(&present, &meters, now)
        };
        let readings = read(&sighting, &self.policy);
        let unread = unread(&sighting);
        let stored = queries::alert_states(store).await.map_err(unavailable)?;
        let ids = stored.keys().map(|(alert, subject)| AlertState::key(*alert, subject));
        let ids = ids.chain(readings.iter().map(|one| AlertState::key(one.alert, &one.subject)));
        let wanted = Wanted::keys(ids.chain([WatchLog::key()]));
        let written = transact(store, wanted, |loaded| {
            let all = evaluate(
                &states(loaded),
                readings.clone(),
                &unread,
                &self.policy,
                self.reconcile_every_ms,
                now,
            );
            // One of a newer version is left as it is.
            let all = all.into_iter().filter(|one| {
                let key = AlertState::key(one.alert, &one.subject);
                loaded.read::<AlertState>(&key).is_ok()
            });
            let all: Vec<_> = all.collect();
            Ok((self.set(engine, job, loaded, &all, watched, now), all))
        });
        let all =
            written.await.map_err(|error| unwritten(error, "others changed the alerts all the time"))?;
        for one in all {
            let Some(step) = one.step else { continue };
            tracing::warn!(error_type = "alert_changed", alert = one.alert.name(), subject = one.subject, value = one.state.value,
                threshold = one.state.threshold, step = ?step, "an alert changed");
        }
        Ok(Ran::Committed)
    }

    /// States, what is told of them, the end of this run and the next one.
    fn set(
        &self,
        engine: &Engine,
        job: &Job,
        loaded: &Loaded,
        all: &[Evaluated],
        watched: WatchLog,
        now: Time,
    ) -> ChangeSet {
        let mut set = ChangeSet {
            ends: vec![Ended::new(job.lease, End::Done(Outcome::SUCCESS))],
            jobs: vec![Timer::Watch.job(engine.node.next_seq(now), self.next_after(now.max(job.due_at)))],
            writes: vec![Write::of(&WatchLog::key(), loaded.version(&WatchLog::key()), &watched)],
            ..ChangeSet::nothing(now)
        };
        for one in all {
            let key = AlertState::key(one.alert, &one.subject);
            let mut write = Write::of(&key, loaded.version(&key), &one.state);
            write.index.status = Some(one.state.phase.name().to_owned());
            set.writes.push(write);
            let told = one.step.map(|step| {
                announcement(one.alert, &one.subject, &one.state, step, &self.base, now)
                    .arrival(engine.node.next_seq(now))
            });
            set.events.extend(told);
        }
        set
    }

    async fn sources(
        &self,
        engine: &Engine,
        usual: &Usual,
        listens_since: Option<Time>,
        now: Time,
    ) -> Result<Vec<SourceSight>, Failure> {
        let keys: Vec<_> = self.sources.iter().map(|name| SourceRegister::key(name)).collect();
        let registers = engine.store.load(Vec::new(), keys).await.map_err(unavailable)?;
        let mut all = Vec::with_capacity(self.sources.len());
        for name in &self.sources {
            let last = heard(&engine.base(), name).await?.map(|heard| heard.received);
            let register = registers.read::<SourceRegister>(&SourceRegister::key(name)).ok().flatten();
            let register = register.map(|known| known.value).filter(|_| self.reconciler.compares(name));
            let none = SourceHours::default();
            let hours = usual.sources.get(name).unwrap_or(&none);
            let silent =
                silent::judge(hours, last, listens_since, register.as_ref(), self.policy.silent, now);
            let is_heard = last > listens_since;
            all.push(SourceSight { name: name.clone(), silent, is_heard, register });
        }
        Ok(all)
    }

    /// What is usual, read anew when an hour was counted.
    async fn usual(&self, engine: &Engine, meters: &MeterLog, now: Time) -> Result<Arc<Usual>, Failure> {
        let end = hour_of(now);
        // An hour is counted together with its meters.
        let is_counted = meters.hours.contains_key(&end.plus_ms(-HOUR_MS));
        let known = self.usual.lock().expect("no code panics here").clone();
        if let Some(known) = known.filter(|known| known.end == end && known.is_counted == is_counted) {
            return Ok(known);
        }
        let from = end.plus_ms(-HOURS_READ * HOUR_MS);
        let counts = engine.store.find_counts(from, end).await.map_err(unavailable)?;
        let limit = self.policy.unusual as f64;
        let usual = usual_of(&self.sources, &counts, end, is_counted, limit);
        let usual = Arc::new(usual);
        *self.usual.lock().expect("no code panics here") = Some(Arc::clone(&usual));
        Ok(usual)
    }
}

fn read_log(loaded: &Loaded) -> WatchLog {
    loaded.read(&WatchLog::key()).ok().flatten().map(|known| known.value).unwrap_or_default()
}

fn states(loaded: &Loaded) -> BTreeMap<(sekisho_core::alert::AlertName, String), AlertState> {
    let read = |(key, state): (&Key, &sekisho_core::state::State)| {
        let (alert, subject) = parse_alert_id(&key.id)?;
        Some(((alert, subject.to_owned()), serde_json::from_str(&state.facts).ok()?))
    };
    loaded.states.iter().filter_map(read).collect()
}

/// What is there now, as alerts see it.
fn sight<'s>(present: &Present, meters: &'s MeterLog, now: Time) -> Sighting<'s> {
    let mut dead: BTreeMap<String, DeadCount> = BTreeMap::new();
    for group in &present.dead {
        let own =
            dead.entry(group.lane.0.to_string()).or_insert(DeadCount { count: 0, oldest: group.oldest });
        own.count += group.count;
        own.oldest = own.oldest.min(group.oldest);
    }
    let work = present.work.iter().map(|own| LaneWork {
        lane: own.lane.0.to_string(),
        running: own.running,
        oldest_due: own.oldest_due,
    });
    let open = present.breakers.iter().filter(|(_, breaker)| Breaker::is_open(breaker));
    Sighting {
        now,
        meters,
        work: work.collect(),
        dead,
        open: open.map(|(lane, _)| lane.clone()).collect(),
        sources: Vec::new(),
        types: None,
        routes: Vec::new(),
        mail: Vec::new(),
        reconcile_every_ms: 0,
    }
}

fn usual_of(sources: &[String], counts: &[Count], end: Time, is_counted: bool, limit: f64) -> Usual {
    let mut by_type: BTreeMap<(&str, &str), Vec<(Time, i64)>> = BTreeMap::new();
    for count in counts.iter().filter(|count| sources.contains(&count.source)) {
        by_type.entry((&count.source, &count.event_type)).or_default().push((count.hour, count.events));
    }
    let all = |hours: &[(Time, i64)]| hours.iter().map(|(_, events)| *events).sum::<i64>();
    let mut busiest: Vec<_> = by_type.iter().collect();
    busiest.sort_by_key(|(name, hours)| (std::cmp::Reverse(all(hours)), **name));
    let of_source = |name: &String| {
        let own = || by_type.iter().filter(|((source, _), _)| source == name);
        let most = own().max_by_key(|(_, hours)| all(hours));
        let busiest = most.and_then(|(_, hours)| UsualHours::of(hours.iter().copied(), end));
        let all = UsualHours::of(own().flat_map(|(_, hours)| hours.iter().copied()), end);
        (name.clone(), SourceHours { busiest, all })
    };
    let closed = hour_number(end) - 1;
    let score = |(name, hours): &(&(&str, &str), &Vec<(Time, i64)>)| {
        let hours = UsualHours::of(hours.iter().copied(), end)?;
        let (score, is_unusual) = unusual::judge(&hours, closed, limit)?;
        Some(TypeScore { subject: format!("{}/{}", name.0, name.1), score, is_unusual })
    };
    Usual {
        end,
        is_counted,
        sources: sources.iter().map(of_source).collect(),
        types: busiest.iter().take(TYPES_MAX).filter_map(score).collect(),
    }
}
