//! How runs ended, committed together: whatever has ended by the time the store is free goes in one transaction.
//!
//! The store may lose its answer. The same sets are given again until it speaks: what had been written is then
//! `Lost`, because its lease is spent, and nothing is written twice.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use sekisho_core::announcement::about_own;
use sekisho_core::audit::Entry;
use sekisho_core::audit::died::{Case, OF_DEAD_LETTERS, is_noted};
use sekisho_core::change::{ChangeSet, Committed, Ended};
use sekisho_core::event::About;
use sekisho_core::job::{Attempt, DeadReason, End, Lane, Lease, Settle, Task};
use sekisho_core::time::HOUR_MS;
use sekisho_core::{Epoch, Time};
use sekisho_store::{AuditFilter, Error, EventRecord};
use tokio::sync::Notify;

use super::Base;
use super::held_jobs::HeldJobs;
use super::lanes::Lanes;
use super::traces;
use super::work::Work;
use crate::stop::Stop;
use crate::telemetry::{JobLabels, MeteredRun, RunLabels};

/// Sets committed together.
const BATCH: usize = 256;
/// Pause before the same sets are tried again.
const RETRY_AFTER: Duration = Duration::from_millis(50);
/// Tries after the process was told to stop.
const TRIES_AT_THE_END: usize = 100;

pub struct Completer {
    base: Base,
    held: Arc<HeldJobs>,
    lanes: Arc<Lanes>,
    /// Calls the dispatcher.
    wake: Arc<Notify>,
    ended: Mutex<Vec<Run>>,
    arrived: Notify,
}

struct Run {
    lease: Lease,
    /// The lane in which a successor now has its turn.
    next_in: Option<Lane>,
    set: ChangeSet,
}

impl Completer {
    pub fn new(base: Base, held: Arc<HeldJobs>, lanes: Arc<Lanes>, wake: Arc<Notify>) -> Self {
        Self { base, held, lanes, wake, ended: Mutex::default(), arrived: Notify::new() }
    }

    pub fn push(&self, work: &Work, set: ChangeSet) {
        set.ends.iter().for_each(|ended| self.note(work, ended));
        let next_in = work.job.fifo.is_some().then(|| work.job.lane.clone());
        let ended = Run { lease: work.job.lease, next_in, set };
        self.ended.lock().expect("no code panics here").push(ended);
        self.arrived.notify_one();
    }

    /// Commits until told to stop and nothing is left.
    pub async fn run(&self, stop: Stop) {
        loop {
            let batch = self.take();
            if !batch.is_empty() {
                self.complete(batch, &stop).await;
                continue;
            }
            if stop.is_told() {
                return;
            }
            tokio::select! {
                biased;
                () = stop.told() => {}
                () = self.arrived.notified() => {}
            }
        }
    }

    fn take(&self) -> Vec<Run> {
        let mut ended = self.ended.lock().expect("no code panics here");
        let count = ended.len().min(BATCH);
        ended.drain(..count).collect()
    }

    async fn complete(&self, batch: Vec<Run>, stop: &Stop) {
        let epoch = self.base.node.epoch();
        // What ran in an earlier life of this node is another's by now.
        let (batch, stale): (Vec<_>, Vec<_>) =
            batch.into_iter().partition(|ended| ended.lease.epoch == epoch);
        self.held.let_go(stale.iter().map(|ended| ended.lease));
        let leases: Vec<_> = batch.iter().map(|ended| ended.lease).collect();
        let next_in: Vec<_> = batch.iter().filter_map(|ended| ended.next_in.clone()).collect();
        let sets = batch.into_iter().map(|ended| ended.set).collect();
        let answers = self.commit(epoch, sets, stop).await;
        let lost = answers.iter().flatten().filter(|answer| **answer == Committed::Lost).count();
        if lost > 0 {
            tracing::warn!(
                error_type = "lease_lost",
                jobs = lost,
                "leases were lost before the jobs were committed; other workers run them"
            );
        }
        self.held.let_go(leases);
        if !next_in.is_empty() {
            next_in.iter().for_each(|lane| self.lanes.expect_more(lane));
            self.wake.notify_one();
        }
    }

    /// Commits, however often it takes, with an entry in the audit log for every job that goes before a person. `None` when
    /// it became senseless, because another node was given it all. A set that the store refuses for good is found by
    /// halving, and its job put before a person.
    pub async fn commit(
        &self,
        epoch: Epoch,
        mut sets: Vec<ChangeSet>,
        stop: &Stop,
    ) -> Option<Vec<Committed>> {
        for set in &mut sets {
            self.note_deaths(set).await;
        }
        self.write(epoch, &sets, stop).await
    }

    async fn note_deaths(&self, set: &mut ChangeSet) {
        for ended in &set.ends {
            let End::Dead(death) = &ended.end else { continue };
            match self.obituary(ended, death, set.at).await {
                Ok(entry) => set.audit.extend(entry),
                // Rather an entry that says less, or says it twice, than none.
                Err(error) => {
                    self.base.health.store_failed(&error);
                    let case = Case { about: ended.about.clone(), ..Case::default() };
                    set.audit.push(case.entry(ended.lease, death, set.at));
                }
            }
        }
    }

    /// What the log says of a job that goes before a person; `None` when it says so already. Nobody else can write it
    /// meanwhile: the job is ours.
    async fn obituary(
        &self,
        ended: &Ended,
        death: &DeadReason,
        at: Time,
    ) -> sekisho_store::Result<Option<Entry>> {
        let filter = AuditFilter {
            target: Some(ended.lease.job.as_message().to_string()),
            action: Some(OF_DEAD_LETTERS.into()),
            limit: 1,
            ..AuditFilter::default()
        };
        let newest = self.base.store.find_audit(filter).await?.entries.pop();
        if is_noted(newest.as_ref().map(|one| &one.entry), death) {
            return Ok(None);
        }
        let message = self.base.store.find_message(ended.lease.job).await?;
        let event = message.as_ref().and_then(|message| message.event);
        let record = match event {
            Some(event) => self.base.store.find_event(event).await?,
            None => None,
        };
        let mut case = Case {
            lane: message.map(|message| message.lane),
            event,
            ..record.map(case_of).unwrap_or_default()
        };
        if case.about == About::default() {
            case.about = ended.about.clone();
        }
        Ok(Some(case.entry(ended.lease, death, at)))
    }

    async fn write(&self, epoch: Epoch, sets: &[ChangeSet], stop: &Stop) -> Option<Vec<Committed>> {
        let mut tries_left = TRIES_AT_THE_END;
        loop {
            match self.base.store.commit(sets.to_vec()).await {
                Ok(answers) => {
                    self.base.health.store_answered();
                    return Some(answers);
                }
                Err(Error::Corrupt(error)) => return self.write_parts(epoch, sets, stop, &*error).await,
                Err(error) => self.base.health.store_failed(&error),
            }
            // Whether it was written or not: what is still ours is found again.
            self.held.doubt();
            if stop.is_told() {
                tries_left -= 1;
            }
            if tries_left == 0 || self.base.node.epoch() != epoch {
                return None;
            }
            tokio::time::sleep(RETRY_AFTER).await;
        }
    }

    async fn write_parts(
        &self,
        epoch: Epoch,
        sets: &[ChangeSet],
        stop: &Stop,
        error: &(dyn std::error::Error + Send + Sync),
    ) -> Option<Vec<Committed>> {
        if let [set] = sets {
            let error = sekisho_store::chain(error);
            tracing::error!(
                error_type = "unstorable",
                error,
                "the database refused the result of a job; it becomes a dead letter"
            );
            self.held.doubt();
            let death =
                DeadReason::terminal("unstorable", format!("the database refused its result: {error}"));
            let ends = set.ends.iter().map(|ended| Ended::new(ended.lease, End::Dead(death.clone())));
            let mut dead = ChangeSet { ends: ends.collect(), ..ChangeSet::nothing(set.at) };
            self.note_deaths(&mut dead).await;
            // Its jobs were not queued: to the caller that is as if the lease were lost.
            return self.base.store.commit(vec![dead]).await.ok().map(|_| vec![Committed::Lost]);
        }
        let (left, right) = sets.split_at(sets.len() / 2);
        let mut answers = Box::pin(self.write(epoch, left, stop)).await?;
        answers.extend(Box::pin(self.write(epoch, right, stop)).await?);
        Some(answers)
    }

    /// Counts an end, and says what a person may want to know.
    pub fn note(&self, work: &Work, ended: &Ended) {
        let Ended { lease, end, attempt, about } = ended;
        let (message_id, lane) = (lease.job.as_message(), &*work.job.lane.0);
        let event = work.event.as_deref();
        let (event_id, source) = event.map(|event| (&*event.event_id, &*event.source)).unwrap_or_default();
        traces::record(&self.base.tracer, work, ended);
        let result = match end {
            End::Done(outcome) => outcome.name(),
            // It will be noted when it has ended.
            End::NotYet => return,
            End::Retry { due_at } => {
                // Without an attempt, whoever decided so has said why.
                if let Some(Attempt { reason: Some(reason), error, .. }) = attempt {
                    tell_retry(work, *due_at, reason, error.as_deref().unwrap_or_default());
                }
                "retry"
            }
            End::Wait { .. } => "waiting",
            End::Dead(death) => {
                let trace_id = work.trace_id(&self.base.tracer).map(|trace| trace.to_string());
                tracing::error!(%message_id, trace_id, event_id, source, lane, error_type = death.reason, error = death.error,
                    attempt = lease.attempt, payment_id = about.payment, tenant = about.tenant,
                    "job failed permanently; it is a dead letter now");
                "dead"
            }
        };
        self.base.metrics.jobs.get_or_create(&JobLabels { lane: lane.to_owned(), result }).inc();
        self.count(work, end);
    }

    /// For targets and alerts. What could not be tried is no run.
    fn count(&self, work: &Work, end: &End) {
        let (is_good, is_dead, result) = match end {
            End::Done(_) => (true, false, "success"),
            End::Retry { .. } => (false, false, "retry"),
            End::Dead(_) => (false, true, "dead"),
            End::Wait { .. } | End::NotYet => return,
        };
        let (job, metrics) = (&work.job, &self.base.metrics);
        let is_retry = job.tries() > 1;
        metrics.meters.ran(&job.lane, MeteredRun { is_good, is_dead, is_retry });
        let first = if is_retry { "false" } else { "true" };
        metrics.runs.get_or_create(&RunLabels { kind: job.task.kind().name(), result, first }).inc();
        let Some(event) = work.event.as_ref().filter(|_| is_good && job.base == 0) else { return };
        let stage = match &job.task {
            Task::Settle(Settle::Once) => "settled",
            Task::Deliver { .. } => "delivered",
            Task::Settle(Settle::Again | Settle::Held { .. })
            | Task::Send { .. }
            | Task::Notify(_)
            | Task::Fetch(_)
            | Task::Refund(_)
            | Task::Checkout(_)
            | Task::Timer(_)
            | Task::Unreadable { .. } => return,
        };
        // A replay queues a delivery long after its event came: then the delivery counts from there.
        let queued = job.lease.job.made_at();
        let is_replay = queued.ms() - event.received_at.ms() > HOUR_MS;
        let from = if is_replay { queued } else { event.received_at };
        metrics.arrived(stage, (self.base.node.now().ms() - from.ms()).max(0));
    }
}

/// What an event's record says of the work it caused. What it turned out to be about is not known if it was never settled,
/// but an announcement names it.
fn case_of(record: EventRecord) -> Case {
    let EventRecord { summary, body, .. } = record;
    let mut about = summary.about;
    if about == About::default() {
        about = about_own(&summary.source, summary.object.as_ref(), &body);
    }
    Case {
        event_id: Some(summary.event_id),
        event_type: Some(summary.event_type),
        source: Some(summary.source),
        about,
        ..Case::default()
    }
}

/// One run went wrong; the next may go well.
pub fn tell_retry(work: &Work, due_at: Time, reason: &str, error: &str) {
    let (lease, lane) = (work.job.lease, &*work.job.lane.0);
    let event = work.event.as_deref();
    let (event_id, source) = event.map(|event| (&*event.event_id, &*event.source)).unwrap_or_default();
    tracing::warn!(message_id = %lease.job.as_message(), event_id, source, lane, error_type = reason, error,
        attempt = lease.attempt, next = %due_at, "job failed; it will be retried");
}
