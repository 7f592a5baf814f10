//! Settling: takes the events that wait, asks the core what each leads to, and commits that with the jobs it causes.
//! Jobs for lanes with room are born leased and go on from memory.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use sekisho_core::change::{ChangeSet, Committed, Death, End, Job, Kind, Lane, Lease, NewJob, delivery_key};
use sekisho_core::event::Stored;
use sekisho_core::queue::{self, Failure};
use sekisho_core::settlement::{self, Settled};
use sekisho_core::{Epoch, Seq};
use tokio::sync::watch;

use super::desk::Work;
use super::{RETRY, Worker};
use crate::{fault, told_to_stop};

/// Events settled in one commit.
const BATCH: usize = 256;
/// The payload of a settling that repeats deliveries which were made before.
pub const AGAIN: &str = "again";

impl Worker {
    /// Settles until told to stop.
    pub async fn settle(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        while !*stop.borrow() {
            let epoch = self.node.epoch();
            let mut works = self.desk.take_settle(BATCH);
            if works.is_empty() {
                tokio::select! {
                    () = self.desk.to_settle.notified() => {}
                    () = told_to_stop(&mut stop) => {}
                }
                continue;
            }
            works.retain(|work| {
                let ours = work.job.lease.epoch == epoch;
                if !ours {
                    self.desk.let_go([work.job.lease]);
                }
                ours
            });
            self.settle_batch(works, epoch, &stop).await;
        }
    }

    async fn settle_batch(self: &Arc<Self>, works: Vec<Work>, epoch: Epoch, stop: &watch::Receiver<bool>) {
        let mut sets = Vec::with_capacity(works.len());
        for work in &works {
            sets.push(self.decide(work, Some(epoch)).await);
        }
        // Order matters: held before the store is asked.
        self.desk.hold(sets.iter().flat_map(born).map(|job| Lease::born(job.id, epoch)));
        works.iter().zip(&sets).for_each(|(work, set)| self.closer.note(work, set));
        let answers = self.closer.commit(epoch, &sets, stop).await;
        let mut answers = answers.into_iter().flatten();
        for (work, set) in works.into_iter().zip(sets) {
            self.settled(&work, set, answers.next(), epoch);
        }
    }

    /// Hands on what was queued, gives up what was not.
    fn settled(self: &Arc<Self>, work: &Work, set: ChangeSet, answer: Option<Committed>, epoch: Epoch) {
        self.desk.let_go([work.job.lease]);
        let Some(Committed::Applied { repeated }) = answer else {
            // Not ours any more, or written while the answer was lost: then its jobs are ours and are adopted.
            for job in born(&set) {
                self.desk.unreserve(&job.lane);
                self.desk.let_go([Lease::born(job.id, epoch)]);
            }
            self.desk.doubt();
            return;
        };
        for job in set.jobs.into_iter().filter(|job| job.owner.is_some()) {
            let lane = job.lane.clone();
            if repeated.contains(&job.id) {
                self.desk.unreserve(&lane);
                self.desk.let_go([Lease::born(job.id, epoch)]);
            } else {
                self.desk.arrive(Work::born(Job::born(job, epoch), work.event.clone()));
                self.pump(&lane);
            }
        }
    }

    /// The settling of a suspect: by itself, and its jobs go through the store.
    pub(super) async fn settle_alone(&self, work: &Work) -> ChangeSet {
        self.decide(work, None).await
    }

    /// What settling this event changes. With `keep`, jobs are born leased where there is room.
    async fn decide(&self, work: &Work, keep: Option<Epoch>) -> ChangeSet {
        let at = self.node.now();
        let lease = work.job.lease;
        self.metrics.picked_up(work.job.kind.name(), work.waited(at));
        let decided = match &work.event {
            Some(event) => match self.ask(event) {
                // What was held back at the door stays held back, and comes before a person again.
                Ok(Err(death)) => return ChangeSet::end(lease, End::Dead(death), at),
                Ok(Ok(settled)) => Ok(settled),
                Err(failure) => Err(failure),
            },
            None => Err(Failure::terminal("event_missing", "it has no event")),
        };
        // Order matters: before anything is reserved. Without knowing what was made, nothing could be made again.
        let event = work.event.as_ref().map_or(lease.job, |event| event.seq);
        let before = if work.job.payload == AGAIN { self.made_before(event).await } else { Ok(Vec::new()) };
        let decided = decided.and_then(|settled| before.map(|before| (settled, before)));
        let (settled, before) = match decided {
            Ok(settled) => settled,
            Err(failure) => {
                let end = queue::after(&failure, &RETRY, work.job.tries(), lease.job.as_i64() as u64, at);
                return ChangeSet::end(lease, end, at);
            }
        };
        let jobs = settled.deliveries.into_iter().map(|delivery| {
            let again = before.iter().filter(|lane| **lane == delivery.lane).count();
            let leased = delivery.fifo.is_none() && keep.is_some() && self.desk.reserve(&delivery.lane);
            NewJob {
                id: self.node.next_seq(at),
                key: Some(delivery_key(event, &delivery.lane, again)),
                kind: Kind::Deliver,
                lane: delivery.lane,
                fifo: delivery.fifo,
                due_at: at,
                event: Some(event),
                payload: delivery.route,
                owner: keep.filter(|_| leased),
            }
        });
        let jobs = jobs.collect();
        ChangeSet { jobs, ..ChangeSet::end(lease, End::Done(settled.outcome), at) }
    }

    fn ask(&self, event: &Stored) -> Result<Result<Settled, Death>, Failure> {
        fault::crash_on(&event.event_type);
        let origin = self.origins.get(&*event.source).copied().unwrap_or_default();
        let routes = self.targets.iter().map(|target| &target.route);
        catch_unwind(AssertUnwindSafe(|| settlement::settle(origin, event, routes)))
            .map_err(|_| Failure::transient("panicked", "the program failed while it settled this event"))
    }

    /// The lanes of deliveries this event already caused.
    async fn made_before(&self, event: Seq) -> Result<Vec<Lane>, Failure> {
        let messages = self.store.find_messages(event).await;
        let messages = messages.map_err(|error| Failure::transient("store_unavailable", error.chain()))?;
        Ok(messages.into_iter().map(|message| message.lane).collect())
    }
}

fn born(set: &ChangeSet) -> impl Iterator<Item = &NewJob> {
    set.jobs.iter().filter(|job| job.owner.is_some())
}
