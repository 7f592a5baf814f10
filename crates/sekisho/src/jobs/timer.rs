//! Timers: schedules that put events in, counts of closed hours, looking after alerts, comparing sources with their providers, trying
//! dead letters again, and letting go of what was kept long enough. Each
//! firing plans the next; a key that names the moment keeps two nodes from planning it twice.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sekisho_core::audit::{self, Entry};
use sekisho_core::calendar::local_date;
use sekisho_core::change::{Arrival, ChangeSet};
use sekisho_core::event::{DedupeKey, Trust};
use sekisho_core::job::{End, Notify, Outcome, Timer};
use sekisho_core::notification::reminder::{QUARTER_MS, due_day};
use sekisho_core::provider::encode_hex;
use sekisho_core::queue::Failure;
use sekisho_core::source_name::SCHEDULE;
use sekisho_core::time::{DAY_MS, HOUR_MS, hour_of};
use sekisho_core::{Seq, Time};
use sekisho_store::CLAIM_MAX;

use super::deadline::Deadlines;
use super::reconcile::Reconciler;
use super::retry_dead::DeadRetrier;
use super::watch::Watcher;
use super::{meters, unavailable};
use crate::config::{Config, Notifications, Schedule};
use crate::engine::{Engine, Ran, Work};
use crate::transact::queue;
use crate::{acts, queries};

/// Timers that fire at once.
pub const AT_ONCE: usize = 4;
/// An hour is counted when its last events have been settled.
const COUNT_AFTER_MS: i64 = 5 * 60_000;
const FORGET_AFTER_MS: i64 = 35 * 60_000;
const ANCHOR_AFTER_MS: i64 = 50 * 60_000;
/// Events let go in one step, and the pause after it, so that others get their turn.
const FORGET_MAX: usize = 1_000;
const FORGET_PAUSE: Duration = Duration::from_millis(20);
/// A schedule that this node does not know is left for others so long: they may have a newer configuration.
const STRANGE_MS: i64 = 10 * 60_000;

pub struct Timers {
    schedules: Vec<Schedule>,
    notifications: Notifications,
    kept_ms: i64,
    /// How long what customers ask is kept.
    inquiries_ms: i64,
    reconciler: Arc<Reconciler>,
    deadlines: Deadlines,
    dead_retrier: DeadRetrier,
    watcher: Watcher,
    /// What was planned lately, so that the store is not asked again and again.
    planned: Mutex<Vec<(Timer, Time)>>,
    /// The ends of the audit log's chains that were written down.
    anchored: Mutex<BTreeMap<i64, i64>>,
}

impl Timers {
    pub fn new(config: &Config, reconciler: Arc<Reconciler>, deadlines: Deadlines, watcher: Watcher) -> Self {
        Self {
            schedules: config.schedules.clone(),
            notifications: config.notifications.clone(),
            kept_ms: config.retention.kept_ms(),
            inquiries_ms: i64::try_from(config.pages.inquiries.as_millis()).unwrap_or(i64::MAX),
            reconciler,
            deadlines,
            dead_retrier: DeadRetrier::new(config),
            watcher,
            planned: Mutex::default(),
            anchored: Mutex::default(),
        }
    }

    /// Makes sure that everything that repeats has its next moment.
    pub async fn plan(&self, engine: &Engine) -> sekisho_store::Result<()> {
        let at = engine.node.now();
        let next_hour = hour_of(at).plus_ms(HOUR_MS);
        let mut due = vec![
            (Timer::Count, next_hour.plus_ms(COUNT_AFTER_MS)),
            (Timer::Forget, next_hour.plus_ms(FORGET_AFTER_MS)),
            (Timer::Anchor, next_hour.plus_ms(ANCHOR_AFTER_MS)),
            (Timer::Watch, self.watcher.next_after(at)),
        ];
        if self.notifications.reminders.is_some() {
            let next = at.ms().div_euclid(QUARTER_MS) * QUARTER_MS + QUARTER_MS;
            due.push((Timer::Remind, Time::from_ms(next)));
        }
        for schedule in &self.schedules {
            let next = schedule.times.next_after(at);
            due.extend(next.map(|next| (Timer::Schedule(schedule.name.clone()), next)));
        }
        due.extend(self.reconciler.due(at));
        due.extend(self.dead_retrier.due(at));
        due.retain(|one| !self.is_planned(one));
        if due.is_empty() {
            return Ok(());
        }
        let jobs = due.iter().map(|(timer, due_at)| timer.job(engine.node.next_seq(at), *due_at)).collect();
        queue(&*engine.store, jobs, at).await?;
        let mut planned = self.planned.lock().expect("no code panics here");
        planned.retain(|(_, due_at)| *due_at > at);
        planned.extend(due);
        Ok(())
    }

    fn is_planned(&self, one: &(Timer, Time)) -> bool {
        self.planned.lock().expect("no code panics here").contains(one)
    }

    pub async fn run(&self, engine: &Engine, work: &Work, timer: &Timer) -> Result<Ran, Failure> {
        let job = &work.job;
        let mut audit = Vec::new();
        let (outcome, next) = match timer {
            Timer::Schedule(name) => self.put_event_in(engine, name, job.due_at).await?,
            Timer::Count => {
                let closed = hour_of(job.due_at).plus_ms(-HOUR_MS);
                // Once more a day later: what failed then may be mended now.
                for hour in [closed, closed.plus_ms(-DAY_MS)] {
                    engine.store.count_hour(hour).await.map_err(unavailable)?;
                    // Order matters: an hour that has its meters was counted.
                    meters::fold(&*engine.store, hour, engine.node.now()).await.map_err(unavailable)?;
                }
                (Outcome::SUCCESS, Some(job.due_at.plus_ms(HOUR_MS)))
            }
            Timer::Forget => {
                let forgotten = self.forget(engine).await.map_err(unavailable)?;
                if engine.node.may_forget() {
                    meters::forget(&*engine.store, engine.node.now()).await.map_err(unavailable)?;
                }
                let inquiries = self.forget_inquiries(engine).await?;
                let note = match (forgotten, inquiries) {
                    (0, 0) => None,
                    (events, 0) => Some(format!("{events} events deleted")),
                    (events, inquiries) => Some(format!("{events} events and {inquiries} inquiries deleted")),
                };
                (
                    Outcome::Success { note },
                    Some(hour_of(engine.node.now()).plus_ms(HOUR_MS + FORGET_AFTER_MS)),
                )
            }
            Timer::Remind => {
                let offices = self.remind_offices(engine, job.due_at).await?;
                let note = (offices > 0).then(|| format!("{offices} offices"));
                (Outcome::Success { note }, Some(job.due_at.plus_ms(QUARTER_MS)))
            }
            Timer::Anchor => {
                audit.push(self.anchor(engine).await?);
                (Outcome::SUCCESS, Some(job.due_at.plus_ms(HOUR_MS)))
            }
            Timer::Reconcile { source } => self.reconciler.fire(engine, source, job.due_at).await?,
            Timer::Watch => return self.watcher.run(engine, job).await,
            Timer::Deadline { kind, id } => return self.deadlines.run(engine, work, kind, id).await,
            Timer::RetryDead { route, wave } => {
                return self.dead_retrier.run(engine, work, route, wave.as_ref()).await;
            }
        };
        let at = engine.node.now();
        let jobs = next.map(|due_at| timer.job(engine.node.next_seq(at), due_at)).into_iter().collect();
        Ok(Ran::Ended(ChangeSet { jobs, audit, ..ChangeSet::end(job.lease, End::Done(outcome), at) }))
    }

    /// Where every chain of the audit log ends now, as an entry of its own and in the log.
    async fn anchor(&self, engine: &Engine) -> Result<Entry, Failure> {
        let at = engine.node.now();
        let heads = engine.store.chain_heads().await.map_err(unavailable)?;
        // What stood still since this process last wrote it down stands there already.
        let mut anchored = self.anchored.lock().expect("no code panics here");
        let heads: Vec<_> = heads
            .into_iter()
            .filter(|head| anchored.insert(head.chain, head.n) != Some(head.n))
            .map(|head| (head.chain, head.n, encode_hex(head.hash)))
            .collect();
        drop(anchored);
        let entry = audit::anchor(&heads, at);
        tracing::info!(
            anchor = encode_hex(entry.digest()),
            chains = heads.len(),
            "the audit log was anchored"
        );
        Ok(entry)
    }

    /// One occurrence of a schedule becomes one event: its id names the schedule and the moment. Occurrences that were
    /// missed are caught up by one.
    async fn put_event_in(
        &self,
        engine: &Engine,
        name: &str,
        due_at: Time,
    ) -> Result<(Outcome, Option<Time>), Failure> {
        let schedule = self.schedules.iter().find(|schedule| schedule.name == name);
        if schedule.is_none() && engine.node.now().ms() - due_at.ms() < STRANGE_MS {
            let error = format!("this node knows no schedule {name}; a newer one may");
            return Err(Failure::transient("unknown_schedule", error));
        }
        let Some(schedule) = schedule.filter(|schedule| schedule.times.is_due_at(due_at)) else {
            let note = format!("the schedule {name} is no longer due at {due_at}");
            return Ok((Outcome::Skipped { note }, None));
        };
        let at = engine.node.now();
        let arrival = arrival(schedule, due_at, at, engine.node.next_seq(at));
        engine.store.admit(Arc::new([arrival]), None).await.map_err(unavailable)?;
        Ok((Outcome::SUCCESS, schedule.times.next_after(at.max(due_at))))
    }

    /// Queues the day's reminders of every office whose clock shows the time for them; says how many there are.
    async fn remind_offices(&self, engine: &Engine, due_at: Time) -> Result<usize, Failure> {
        let notifications = &self.notifications;
        if notifications.reminders.is_none() {
            return Ok(0);
        }
        let offices = queries::offices(&*engine.store, None).await;
        let offices =
            offices.map_err(|refusal| Failure::transient("store_unavailable", refusal.to_string()))?;
        let at = engine.node.now();
        let due = offices.into_iter().filter_map(|(id, tenant)| {
            let zone = tenant.zone(&notifications.house.time_zone);
            let day = due_day(zone, due_at, notifications.remind_at)?;
            // Late rather than never; but not a day late, when the next ones are about to come.
            let is_today = local_date(zone, at) == Some(day);
            is_today.then(|| Notify::Remind { tenant: id, date: day.to_string() })
        });
        let jobs: Vec<_> = due.map(|task| task.job(engine.node.next_seq(at), None, at)).collect();
        for piece in jobs.chunks(CLAIM_MAX) {
            queue(&*engine.store, piece.to_vec(), at).await.map_err(unavailable)?;
        }
        Ok(jobs.len())
    }

    async fn forget(&self, engine: &Engine) -> sekisho_store::Result<usize> {
        if !engine.node.may_forget() {
            tracing::warn!(
                error_type = "clock_in_doubt",
                "nothing had been stored for more than 30 days when Sekisho started, so the clock may be wrong: no \
                 event is deleted before the next start"
            );
            return Ok(0);
        }
        let before = engine.node.now().plus_ms(-self.kept_ms);
        let (mut after, mut events) = (Seq::ZERO, 0);
        loop {
            let step = engine.store.forget(before, after, FORGET_MAX).await?;
            events += step.events;
            let Some(next) = step.next else { break };
            after = next;
            tokio::time::sleep(FORGET_PAUSE).await;
        }
        Ok(events)
    }

    async fn forget_inquiries(&self, engine: &Engine) -> Result<usize, Failure> {
        if !engine.node.may_forget() {
            return Ok(0);
        }
        let at = engine.node.now();
        let before = at.plus_ms(self.inquiries_ms.saturating_neg());
        let forgotten = acts::forget_inquiries(&*engine.store, before, at).await;
        forgotten.map_err(|refusal| Failure::transient("store_unavailable", refusal.to_string()))
    }
}

fn arrival(schedule: &Schedule, due_at: Time, at: Time, seq: Seq) -> Arrival {
    let event_id = format!("{}@{due_at}", schedule.name);
    let body = serde_json::json!({
        "id": event_id,
        "type": schedule.event_type,
        "schedule": schedule.name,
        "due_at": due_at,
        "fired_at": at,
        "data": schedule.data.as_deref().map(|data| serde_json::from_str::<serde_json::Value>(data).ok()),
    });
    Arrival {
        key: DedupeKey::new(SCHEDULE, &event_id, None),
        first_body: None,
        seq,
        received_at: at,
        source: SCHEDULE.into(),
        event_id,
        event_type: schedule.event_type.clone(),
        created_at: Some(due_at),
        object: None,
        account: None,
        livemode: None,
        trust: Trust::Signed,
        headers: r#"[["content-type","application/json"]]"#.into(),
        body: body.to_string().into(),
        held: None,
    }
}
