//! What is written for events that were read and decided: one set for each group that speaks of the same things, and one
//! for each event that speaks of none.

use sekisho_core::announcement::about_own;
use sekisho_core::change::{ChangeSet, Ended};
use sekisho_core::delivery::Delivery;
use sekisho_core::event::Stored;
use sekisho_core::job::{DeadReason, End, Lease, NewJob, Task, delivery_key};
use sekisho_core::settlement::Change;
use sekisho_core::{Epoch, Seq, Time};

use super::Batch;
use super::read::ReadEvent;
use crate::engine::Work;

/// What is to be written, and for whom.
pub struct SettlementDraft {
    pub works: Vec<Work>,
    pub set: ChangeSet,
}

impl Batch<'_> {
    pub(super) fn drafts(&self, events: Vec<ReadEvent>, changes: Vec<Change>) -> Vec<SettlementDraft> {
        let at = self.engine.node.now();
        let (known, plain): (Vec<_>, Vec<_>) = events.into_iter().partition(|read| read.reading.is_some());
        let mut known: Vec<_> = known.into_iter().map(Some).collect();
        let mut drafts: Vec<_> = plain
            .into_iter()
            .map(|read| {
                let Stored { source, object, body, .. } = &*read.event;
                let about = vec![about_own(source, object.as_ref(), body)];
                self.build_change(vec![read], Change { about, ..Change::default() }, at)
            })
            .collect();
        for change in changes {
            let group = change.inputs.iter().filter_map(|n| known[*n].take()).collect();
            drafts.push(self.build_change(group, change, at));
        }
        drafts
    }

    fn build_change(&self, events: Vec<ReadEvent>, change: Change, at: Time) -> SettlementDraft {
        let node = &self.engine.node;
        let works: Vec<_> = events.iter().map(|read| read.work.clone()).collect();
        if let Some(refused) = change.refused {
            let death = DeadReason::terminal("unreadable_state", refused);
            let ends = works.iter().map(|work| Ended::new(work.job.lease, End::Dead(death.clone())));
            let set = ChangeSet { ends: ends.collect(), ..ChangeSet::nothing(at) };
            return SettlementDraft { works, set };
        }
        let (mut ends, mut jobs) = (Vec::new(), Vec::new());
        for (read, about) in events.into_iter().zip(change.about.clone()) {
            let end = End::Done(read.outcome.clone());
            ends.push(Ended { about, ..Ended::new(read.work.job.lease, end) });
            jobs.extend(self.jobs(read, at));
        }
        let mut asked = change.into_set(at, || node.next_seq(at));
        self.carry(&works, &mut asked);
        jobs.extend_from_slice(&asked.jobs);
        let mut set = ChangeSet { ends, jobs, ..asked };
        let bytes = set.events.iter().map(|event| event.body.len()).sum();
        set.keep = self.keep.filter(|_| self.engine.settle_queue.has_room(set.events.len(), bytes));
        SettlementDraft { works, set }
    }

    /// What is made goes on in the trace of what made it; of several causes, of the first that is recorded.
    fn carry(&self, works: &[Work], asked: &mut ChangeSet) {
        let tracer = &self.engine.tracer;
        if !tracer.is_on() || (asked.events.is_empty() && asked.jobs.is_empty()) {
            return;
        }
        let traces: Vec<_> = works.iter().filter_map(|work| work.traceparent(tracer)).collect();
        let Some(trace) = traces.iter().find(|trace| trace.is_sampled).or(traces.first()) else { return };
        asked.events.iter_mut().for_each(|event| event.carry(*trace));
        asked.jobs.iter_mut().for_each(|job| job.task.carry(*trace));
    }

    /// The deliveries of an event, and what is worked out because of it. They are born leased where there is room.
    fn jobs(&self, read: ReadEvent, at: Time) -> Vec<NewJob> {
        let ReadEvent { event, deliveries, tasks, asks, before, .. } = read;
        let told = tasks.iter().map(|task| task.job(self.engine.node.next_seq(at), Some(event.seq), at));
        let told: Vec<_> = told.collect();
        let asked = asks.map(|fetch| fetch.job_for(event.seq, self.engine.node.next_seq(at), at));
        let job = |(id, delivery): (Seq, Delivery)| {
            let again = before.iter().filter(|lane| **lane == delivery.lane).count();
            let leased =
                delivery.fifo.is_none() && self.keep.is_some() && self.engine.lanes.reserve(&delivery.lane);
            NewJob {
                id,
                key: Some(delivery_key(event.seq, &delivery.lane, again)),
                task: Task::Deliver { route: delivery.route },
                lane: delivery.lane,
                fifo: delivery.fifo,
                due_at: at,
                event: Some(event.seq),
                owner: self.keep.filter(|_| leased),
            }
        };
        deliveries.into_iter().map(job).chain(told).chain(asked).collect()
    }
}

/// Whatever of a set will be ours without having been claimed.
pub fn born(set: &ChangeSet, epoch: Epoch) -> impl Iterator<Item = Lease> {
    let jobs = set.jobs.iter().filter(|job| job.owner.is_some()).map(|job| job.id);
    let events = set.events.iter().filter(|_| set.keep.is_some()).map(|event| event.seq);
    jobs.chain(events).map(move |id| Lease::born(id, epoch))
}
