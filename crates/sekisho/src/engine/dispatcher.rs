//! Claims what is due for every lane with room, adopts what memory lost, hands both out, and gives back what is left
//! at the end.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sekisho_core::Seq;
use sekisho_core::change::ChangeSet;
use sekisho_core::event::Stored;
use sekisho_core::job::{DeadReason, End, Job, Lane};
use sekisho_store::CLAIM_MAX;
use tokio::time::Instant;

use super::{Engine, Work};
use crate::env::Timing;
use crate::stop::Stop;

/// Events loaded at once.
const PIECE: usize = 64;
pub struct Dispatcher(pub Arc<Engine>);

impl Dispatcher {
    /// Claims and hands out until told to stop; then lets what runs finish, and hands back the rest.
    pub async fn run(self, stop: Stop) {
        let engine = &self.0;
        let timing = engine.node.env.timing;
        let mut rounds = Rounds::new(timing);
        let mut epoch = engine.node.epoch();
        while !stop.is_told() {
            if epoch != engine.node.epoch() {
                epoch = engine.node.epoch();
                self.forget_waiting();
                engine.doubt_settling();
            }
            if !self.try_round(&mut rounds).await {
                // Whoever calls meanwhile must wait, too: a store that is down is not asked faster.
                rounds.all = true;
                tokio::select! {
                    biased;
                    () = stop.told() => break,
                    () = tokio::time::sleep(timing.poll) => continue,
                }
            }
            // All: each may have waited for its rate.
            engine.lanes.names.iter().for_each(|lane| engine.pump(lane));
            rounds.all = tokio::select! {
                biased;
                () = stop.told() => break,
                () = tokio::time::sleep_until(rounds.next_poll) => true,
                () = engine.wake.notified() => false,
            };
        }
        self.leave().await;
    }

    /// False when this node may not work, or the store did not answer.
    async fn try_round(&self, rounds: &mut Rounds) -> bool {
        let engine = &self.0;
        if !engine.node.may_work() {
            return false;
        }
        let Err(error) = self.round(rounds).await else { return true };
        engine.health.store_failed(&error);
        engine.doubt_settling();
        false
    }

    async fn round(&self, rounds: &mut Rounds) -> sekisho_store::Result<()> {
        let engine = &self.0;
        let timing = engine.node.env.timing;
        if engine.held.take_doubt() {
            rounds.adopt_at = Instant::now();
            rounds.adopt_again = true;
        }
        if rounds.adopt_at <= Instant::now() {
            // A look that failed must not keep anything else from being done.
            let pause = match self.adopt().await {
                Ok(()) => {
                    engine.settle_queue.set_doubt(|| engine.held.is_in_doubt());
                    if std::mem::take(&mut rounds.adopt_again) { timing.adopt_again } else { timing.adopt }
                }
                Err(error) => {
                    engine.health.store_failed(&error);
                    timing.adopt_failed
                }
            };
            rounds.adopt_at = Instant::now() + pause;
        }
        if rounds.glance_at <= Instant::now() {
            rounds.glance_at = Instant::now() + timing.glance;
            engine.read_breakers().await?;
            if engine.parts.schedules {
                engine.kinds.plan(engine).await?;
            }
        }
        if rounds.unserved_at <= Instant::now() {
            rounds.unserved_at = Instant::now() + timing.unserved;
            if let Err(error) = engine.end_unserved().await {
                engine.health.store_failed(&error);
            }
        }
        if rounds.all {
            rounds.next_poll = Instant::now() + timing.poll;
        }
        let to_settle = engine.settle_queue.ask(rounds.all).map(|wanted| (Lane::settle(), wanted));
        let lanes = engine.lanes.wants(rounds.all, engine.node.now());
        let mut wants: Vec<_> = to_settle.into_iter().chain(lanes).collect();
        if !engine.node.clock_is_sure() {
            // Nothing is due by a clock that jumped.
            wants.retain(|(lane, _)| ![Lane::timer(), Lane::reconcile(), Lane::deadline()].contains(lane));
        }
        if engine.node.age() < timing.suspects_after {
            // A process that dies young is not killed by what it has not begun; then suspects must not be blamed.
            wants.retain(|(lane, _)| *lane != Lane::suspect());
        }
        if wants.is_empty() {
            return Ok(());
        }
        let jobs = engine.store.claim(engine.node.epoch(), wants.clone(), engine.node.now()).await?;
        engine.health.store_answered();
        let mut settling = None;
        for (lane, wanted) in &wants {
            let found = jobs.iter().filter(|job| job.lane == *lane);
            let (count, newest) = (found.clone().count(), found.map(|job| job.lease.job).max());
            if *lane == Lane::settle() {
                settling = Some((newest, count < *wanted));
            } else if count == *wanted {
                engine.lanes.expect_more(lane);
            }
        }
        self.hand_out(jobs).await?;
        if let Some((newest, is_all)) = settling {
            engine.settle_queue.answered(newest, is_all);
        }
        Ok(())
    }

    /// Takes over what the store counts as ours and nobody here holds.
    async fn adopt(&self) -> sekisho_store::Result<()> {
        let engine = &self.0;
        let (epoch, mut after) = (engine.node.epoch(), Seq::ZERO);
        loop {
            let owned = engine.store.owned(epoch, after).await?;
            let more = owned.len() == CLAIM_MAX;
            after = owned.last().map_or(after, |lease| lease.job);
            // Order matters: what is not held now, after the read, was not held when it was read, or has ended since.
            let lost: Vec<_> = owned.into_iter().filter(|lease| !engine.held.holds(lease.job)).collect();
            if !lost.is_empty() {
                let jobs = engine.store.adopt(lost).await?;
                tracing::info!(jobs = jobs.len(), "jobs missing from memory were picked up again");
                self.hand_out(jobs).await?;
            }
            if !more {
                return Ok(());
            }
        }
    }

    /// Gives leased jobs to their lanes, each with its event. In pieces, so that large events are not all loaded at
    /// once; a piece that can't be loaded now goes back.
    async fn hand_out(&self, jobs: Vec<Job>) -> sekisho_store::Result<()> {
        let engine = &self.0;
        engine.held.hold(jobs.iter().map(|job| job.lease));
        let mut result = Ok(());
        for piece in jobs.chunks(PIECE) {
            match engine.store.load_events(piece.iter().filter_map(|job| job.event).collect()).await {
                Ok(events) => self.place(piece, events).await,
                Err(error) => {
                    // Order matters: those after them wait until these are here.
                    let settling = piece.iter().filter(|job| job.lane == Lane::settle());
                    if let Some(oldest) = settling.map(|job| job.lease.job).min() {
                        engine.settle_queue.leave(oldest);
                    }
                    engine.release(piece.iter().map(|job| Work::claimed(job.clone(), None)).collect()).await;
                    result = Err(error);
                }
            }
        }
        result
    }

    async fn place(&self, jobs: &[Job], events: Vec<Stored>) {
        let engine = &self.0;
        let events: HashMap<_, _> = events.into_iter().map(|event| (event.seq, Arc::new(event))).collect();
        let (mut settle, mut unwanted) = (Vec::new(), Vec::new());
        for job in jobs {
            let event = job.event.and_then(|event| events.get(&event)).cloned();
            let work = Work::claimed(job.clone(), event);
            if work.job.event.is_some() && work.event.is_none() {
                self.dead_letter(
                    work,
                    DeadReason::terminal("event_missing", "the event it is about is no longer kept"),
                );
            } else if work.job.lane == Lane::settle() {
                settle.push(work);
            } else {
                unwanted.extend(engine.lanes.put(work));
            }
        }
        if !unwanted.is_empty() {
            engine.release(unwanted).await;
        }
        engine.settle_queue.put(settle);
        engine.lanes.names.iter().for_each(|lane| engine.pump(lane));
    }

    fn dead_letter(&self, work: Work, death: DeadReason) {
        let engine = &self.0;
        let set = ChangeSet::end(work.job.lease, End::Dead(death), engine.node.now());
        engine.completer.push(&work, set);
    }

    async fn leave(&self) {
        let engine = &self.0;
        engine.leaving.store(true, Ordering::Relaxed);
        engine.release(self.take_waiting()).await;
        let deadline = Instant::now() + engine.stop_within;
        while !engine.lanes.running().is_empty() && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let unfinished = engine.lanes.running();
        if !unfinished.is_empty() {
            tracing::warn!(
                error_type = "stop_timeout",
                jobs = unfinished.len(),
                "some jobs did not finish in time; they are released"
            );
            let _ = engine.store.release(unfinished).await;
        }
    }

    /// Forgets everything that waits: another node has been given it.
    fn forget_waiting(&self) {
        self.0.held.let_go(self.take_waiting().iter().map(|work| work.job.lease));
    }

    /// Everything that waits.
    fn take_waiting(&self) -> Vec<Work> {
        let mut waiting = self.0.settle_queue.clear();
        waiting.extend(self.0.lanes.take_waiting());
        waiting
    }
}

/// When the dispatcher does what.
struct Rounds {
    all: bool,
    next_poll: Instant,
    adopt_at: Instant,
    adopt_again: bool,
    glance_at: Instant,
    unserved_at: Instant,
}

impl Rounds {
    fn new(timing: Timing) -> Self {
        let now = Instant::now();
        Self {
            all: true,
            next_poll: now,
            adopt_at: now + timing.adopt,
            adopt_again: false,
            glance_at: now,
            unserved_at: now,
        }
    }
}
