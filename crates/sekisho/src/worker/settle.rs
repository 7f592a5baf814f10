//! Settling: takes the events that wait, reads what each says, loads what is known of the things they speak of, asks the
//! core what follows, and commits it. Jobs for lanes with room are born leased and go on from memory, and so do the
//! events that a change makes.
//!
//! Another node may settle an event of the same payment at the same moment: then one of the two finds its versions
//! stale, loads again and decides again. Nothing is written by halves.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use sekisho_core::announcement::about_own;
use sekisho_core::change::{ChangeSet, Committed, Ended};
use sekisho_core::delivery::{Delivery, deliveries};
use sekisho_core::event::Stored;
use sekisho_core::job::{AGAIN, DeadReason, End, Job, Kind, Lane, Lease, NewJob, Outcome, delivery_key};
use sekisho_core::notification::{self, Task};
use sekisho_core::queue::Failure;
use sekisho_core::settlement::{self, Cause, Change, Fetch, Input, Reading, Terms, Wanted};
use sekisho_core::source_name::{FETCHED, Origin};
use sekisho_core::state::Loaded;
use sekisho_core::{Epoch, Seq, Time};
use sekisho_store::{AuditFilter, RETRIED};
use tokio::sync::watch;

use super::Worker;
use super::desk::Work;
use crate::{failpoint, told_to_stop};

/// Events settled in one commit.
const BATCH: usize = 256;
/// How often a batch is decided again because others were faster; then each of it goes alone.
const ROUNDS_TOGETHER: usize = 3;
/// And how often alone, before it waits for a quieter time.
const ROUNDS_ALONE: usize = 20;
/// Pause before the store is asked again.
const AGAIN_AFTER: Duration = Duration::from_millis(50);
/// An event as it was read, before the books are opened.
struct Paper {
    work: Work,
    event: Arc<Stored>,
    reading: Option<Reading>,
    /// Under the numbers they will have, which rise from event to event: by these, deliveries of one key are in order.
    deliveries: Vec<(Seq, Delivery)>,
    /// Who may have to be told of it.
    tasks: Vec<Task>,
    /// The lanes of deliveries that were made before, if they are to be made again.
    before: Vec<Lane>,
    outcome: Outcome,
}

/// What is to be written, and for whom.
struct Draft {
    works: Vec<Work>,
    set: ChangeSet,
}

/// What became of deciding.
enum Decided {
    Changes(Vec<Change>),
    Panicked,
    /// Another node was given the work, or this one stops.
    Senseless,
}

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
            let at = self.node.now();
            works.iter().for_each(|work| self.metrics.picked_up(work.job.kind.name(), work.waited(at)));
            self.settle_all(works, epoch, Some(epoch), &stop).await;
        }
    }

    /// The settling of a suspect: by itself, and its jobs go through the store.
    pub(super) async fn settle_alone(self: &Arc<Self>, work: &Work) {
        let (_never, stop) = watch::channel(false);
        self.settle_all(vec![work.clone()], work.job.lease.epoch, None, &stop).await;
    }

    /// Goes on until each is settled, put before a person, put off, or another node's.
    async fn settle_all(
        self: &Arc<Self>,
        works: Vec<Work>,
        epoch: Epoch,
        keep: Option<Epoch>,
        stop: &watch::Receiver<bool>,
    ) {
        let mut left = works;
        for _ in 0..ROUNDS_TOGETHER {
            if left.is_empty() {
                return;
            }
            left = self.settle_batch(left, epoch, keep, stop).await;
        }
        for work in left {
            let mut again = vec![work.clone()];
            for round in 0..ROUNDS_ALONE {
                again = self.settle_batch(again, epoch, keep, stop).await;
                if again.is_empty() {
                    break;
                }
                // Nodes that met here once must not meet again and again.
                let spread = (epoch.0.unsigned_abs() * 7 + round as u64 * 13) % 50;
                tokio::time::sleep(Duration::from_millis(spread)).await;
            }
            if let Some(work) = again.pop() {
                let failure = Failure::transient("contended", "others changed the same things all the time");
                self.closer.push(&work, self.failed(&work, &failure));
            }
        }
    }

    /// Settles what can be settled now; gives back what must be decided again.
    async fn settle_batch(
        self: &Arc<Self>,
        mut works: Vec<Work>,
        epoch: Epoch,
        keep: Option<Epoch>,
        stop: &watch::Receiver<bool>,
    ) -> Vec<Work> {
        works.sort_by_key(|work| work.event.as_ref().map(|event| event.seq));
        let (mut drafts, mut papers) = (Vec::new(), Vec::new());
        for work in works {
            match self.look_at(&work).await {
                Ok(paper) => papers.push(paper),
                Err(set) => drafts.push(Draft { works: vec![work], set }),
            }
        }
        match self.decide(&papers, epoch, stop).await {
            Decided::Changes(changes) => drafts.extend(self.draft(papers, changes, keep)),
            Decided::Panicked => drafts.extend(self.draft_singly(papers, epoch, keep, stop).await),
            Decided::Senseless => {
                // Another node was given it all, or this one stops: what is still ours is found again.
                self.desk.doubt_settling();
                let works = papers
                    .into_iter()
                    .map(|paper| paper.work)
                    .chain(drafts.into_iter().flat_map(|draft| draft.works));
                self.desk.let_go(works.map(|work| work.job.lease));
                return Vec::new();
            }
        }

        // Order matters: held before the store is asked.
        self.desk.hold(drafts.iter().flat_map(|draft| born(&draft.set, epoch)));
        let sets = drafts.iter().map(|draft| draft.set.clone()).collect();
        let answers = self.closer.commit(epoch, sets, stop).await;
        let mut answers = answers.into_iter().flatten();
        drafts.into_iter().flat_map(|draft| self.settled(draft, answers.next(), epoch)).collect()
    }

    /// Reads an event. What can't be settled at all ends here.
    async fn look_at(&self, work: &Work) -> Result<Paper, ChangeSet> {
        let dead = |death| ChangeSet::end(work.job.lease, End::Dead(death), self.node.now());
        let failed = |failure: Failure| self.failed(work, &failure);
        let Some(event) = &work.event else {
            return Err(failed(Failure::terminal("event_missing", "it has no event")));
        };
        failpoint::crash_on(&event.event_type);
        let origin = self.origin(event);
        if let Some(death) = DeadReason::of_payload(&work.job.payload)
            && !self.was_retried(work.job.lease.job).await.map_err(failed)?
        {
            return Err(dead(death));
        }
        if let Some(death) = settlement::held_back(origin, self.account(event), event) {
            return Err(dead(death));
        }
        let routes = self.targets.iter().map(|target| &target.route);
        let seen = catch_unwind(AssertUnwindSafe(|| {
            (
                settlement::read(origin, event, &self.references),
                deliveries(origin, event, routes),
                notification::tasks(origin, event, self.rules.iter()),
            )
        }));
        let (read, (deliveries, mut unanswered), (tasks, untold)) = seen.map_err(|_| failed(panicked()))?;
        unanswered.extend(untold);
        let reading =
            read.map_err(|error| dead(DeadReason::terminal("unreadable_event", error.to_string())))?;
        let mut outcome = settlement::outcome(event, reading.is_some());
        if !unanswered.is_empty() {
            outcome = outcome.with_note(&unanswered.join("; "));
        }
        let before = if work.job.payload == AGAIN {
            self.made_before(event.seq).await.map_err(failed)?
        } else {
            Vec::new()
        };
        let at = self.node.now();
        let deliveries = deliveries.into_iter().map(|delivery| (self.node.next_seq(at), delivery)).collect();
        let (work, event) = (work.clone(), Arc::clone(event));
        Ok(Paper { work, event, reading, deliveries, tasks, before, outcome })
    }

    pub(super) fn origin(&self, event: &Stored) -> Origin {
        if &*event.source == FETCHED {
            return Fetch::origin(event);
        }
        self.origins.get(&*event.source).copied().unwrap_or_default()
    }

    fn account(&self, event: &Stored) -> Option<&str> {
        self.accounts.get(&*event.source).map(String::as_str)
    }

    fn failed(&self, work: &Work, failure: &Failure) -> ChangeSet {
        ChangeSet::end(work.job.lease, self.end_of_failed(work, failure), self.node.now())
    }

    /// Loads what the events speak of and decides what follows; what that leads to is loaded too, and decided again.
    async fn decide(&self, papers: &[Paper], epoch: Epoch, stop: &watch::Receiver<bool>) -> Decided {
        let inputs = inputs(papers);
        let mut wanted = settlement::names(&inputs);
        let can_fetch = |realm: &str| self.fetchers.can_fetch(realm);
        loop {
            let Some(loaded) = self.load(&wanted, epoch, stop).await else { return Decided::Senseless };
            let terms = Terms { at: self.node.now(), grace_ms: self.grace_ms, can_fetch: &can_fetch };
            let decided =
                catch_unwind(AssertUnwindSafe(|| settlement::decide(&inputs, &wanted, &loaded, &terms)));
            match decided {
                Ok(Ok(changes)) => return Decided::Changes(changes),
                Ok(Err(more)) => wanted.extend(more),
                Err(_) => return Decided::Panicked,
            }
        }
    }

    /// What is known of these, however often it takes; `None` when it became senseless to ask.
    async fn load(&self, wanted: &Wanted, epoch: Epoch, stop: &watch::Receiver<bool>) -> Option<Loaded> {
        if wanted.is_empty() {
            return Some(Loaded::default());
        }
        while self.node.epoch() == epoch && !*stop.borrow() {
            let (names, keys) =
                (wanted.names.iter().cloned().collect(), wanted.keys.iter().cloned().collect());
            match self.store.load(names, keys).await {
                Ok(loaded) => return Some(loaded),
                Err(error) => self.health.store_failed(&error),
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
        None
    }

    /// What is written for these events: one set for each group that speaks of the same things, and one for each event
    /// that speaks of none.
    fn draft(&self, papers: Vec<Paper>, changes: Vec<Change>, keep: Option<Epoch>) -> Vec<Draft> {
        let at = self.node.now();
        let (known, plain): (Vec<_>, Vec<_>) = papers.into_iter().partition(|paper| paper.reading.is_some());
        let mut known: Vec<_> = known.into_iter().map(Some).collect();
        let mut drafts: Vec<_> = plain
            .into_iter()
            .map(|paper| {
                let Stored { source, object, body, .. } = &*paper.event;
                let about = vec![about_own(source, object.as_ref(), body)];
                self.write_down(vec![paper], Change { about, ..Change::default() }, keep, at)
            })
            .collect();
        for change in changes {
            let group = change.inputs.iter().filter_map(|n| known[*n].take()).collect();
            drafts.push(self.write_down(group, change, keep, at));
        }
        drafts
    }

    /// Finds the one that makes the program fail, so that the others get through.
    async fn draft_singly(
        &self,
        papers: Vec<Paper>,
        epoch: Epoch,
        keep: Option<Epoch>,
        stop: &watch::Receiver<bool>,
    ) -> Vec<Draft> {
        let mut drafts = Vec::new();
        for paper in papers {
            match self.decide(std::slice::from_ref(&paper), epoch, stop).await {
                Decided::Changes(changes) => drafts.extend(self.draft(vec![paper], changes, keep)),
                Decided::Panicked => {
                    let set = self.failed(&paper.work, &panicked());
                    drafts.push(Draft { works: vec![paper.work], set });
                }
                Decided::Senseless => self.desk.let_go([paper.work.job.lease]),
            }
        }
        drafts
    }

    fn write_down(&self, papers: Vec<Paper>, change: Change, keep: Option<Epoch>, at: Time) -> Draft {
        let works: Vec<_> = papers.iter().map(|paper| paper.work.clone()).collect();
        if let Some(refused) = change.refused {
            let death = DeadReason::terminal("unreadable_state", refused);
            let ends = works.iter().map(|work| Ended::new(work.job.lease, End::Dead(death.clone())));
            let set = ChangeSet { ends: ends.collect(), ..ChangeSet::nothing(at) };
            return Draft { works, set };
        }
        let (mut ends, mut jobs) = (Vec::new(), Vec::new());
        for (paper, about) in papers.into_iter().zip(change.about.clone()) {
            let end = End::Done(paper.outcome.clone());
            ends.push(Ended { about, ..Ended::new(paper.work.job.lease, end) });
            jobs.extend(self.jobs(paper, keep, at));
        }
        jobs.extend(change.fetches.iter().map(|fetch| fetch.job(self.node.next_seq(at), at)));
        let mut set = ChangeSet { ends, jobs, ..change.into_set(at, || self.node.next_seq(at)) };
        let bytes = set.events.iter().map(|event| event.body.len()).sum();
        set.keep = keep.filter(|_| self.desk.has_settle_room(set.events.len(), bytes));
        Draft { works, set }
    }

    /// The deliveries of an event, and what is worked out because of it. With `keep`, they are born leased where there is room.
    fn jobs(&self, paper: Paper, keep: Option<Epoch>, at: Time) -> Vec<NewJob> {
        let Paper { event, deliveries, tasks, before, .. } = paper;
        let told = tasks.iter().map(|task| task.job(self.node.next_seq(at), Some(event.seq), at));
        let told: Vec<_> = told.collect();
        let job = |(id, delivery): (Seq, Delivery)| {
            let again = before.iter().filter(|lane| **lane == delivery.lane).count();
            let leased = delivery.fifo.is_none() && keep.is_some() && self.desk.reserve(&delivery.lane);
            NewJob {
                id,
                key: Some(delivery_key(event.seq, &delivery.lane, again)),
                kind: Kind::Deliver,
                lane: delivery.lane,
                fifo: delivery.fifo,
                due_at: at,
                event: Some(event.seq),
                payload: delivery.route,
                owner: keep.filter(|_| leased),
            }
        };
        deliveries.into_iter().map(job).chain(told).collect()
    }

    /// Hands on what was queued, gives up what was not; gives back what must be decided again.
    fn settled(self: &Arc<Self>, draft: Draft, answer: Option<Committed>, epoch: Epoch) -> Vec<Work> {
        let Draft { works, set } = draft;
        match answer {
            Some(Committed::Applied { repeated }) => {
                works.iter().zip(&set.ends).for_each(|(work, ended)| self.closer.note(work, ended));
                self.desk.let_go(works.iter().map(|work| work.job.lease));
                self.hand_on(&works, set, &repeated, epoch);
                Vec::new()
            }
            Some(Committed::Stale) => {
                self.give_up(&set, epoch);
                works
            }
            // One of several is not ours any more: the others are settled without it.
            Some(Committed::Lost) if works.len() > 1 => {
                self.give_up(&set, epoch);
                let worker = Arc::clone(self);
                tokio::spawn(async move {
                    for work in works {
                        worker.settle_alone(&work).await;
                    }
                });
                Vec::new()
            }
            // Not ours any more, or written while the answer was lost: then its jobs are ours and are adopted.
            Some(Committed::Lost) | None => {
                self.give_up(&set, epoch);
                self.desk.let_go(works.iter().map(|work| work.job.lease));
                self.desk.doubt_settling();
                Vec::new()
            }
        }
    }

    fn hand_on(self: &Arc<Self>, works: &[Work], set: ChangeSet, repeated: &[Seq], epoch: Epoch) {
        let events: BTreeMap<_, _> =
            works.iter().filter_map(|work| work.event.as_ref()).map(|event| (event.seq, event)).collect();
        for job in set.jobs.into_iter().filter(|job| job.owner.is_some()) {
            let lane = job.lane.clone();
            if repeated.contains(&job.id) {
                self.desk.unreserve(&lane);
                self.desk.let_go([Lease::born(job.id, epoch)]);
            } else {
                let event = job.event.and_then(|event| events.get(&event)).map(|event| Arc::clone(event));
                self.desk.arrive(Work::born(Job::born(job, epoch), event));
                self.pump(&lane);
            }
        }
        if set.keep.is_none() {
            let oldest = set.events.iter().map(|event| event.seq).min();
            return oldest.into_iter().for_each(|oldest| self.desk.leave(oldest));
        }
        let (again, fresh): (Vec<_>, Vec<_>) =
            set.events.into_iter().partition(|event| repeated.contains(&event.seq));
        self.desk.let_go(again.iter().map(|event| Lease::born(event.seq, epoch)));
        self.desk.settle(
            fresh.into_iter().map(|event| Work::born(event.first_job(epoch), Some(Arc::new(event.stored())))),
        );
    }

    fn give_up(&self, set: &ChangeSet, epoch: Epoch) {
        set.jobs.iter().filter(|job| job.owner.is_some()).for_each(|job| self.desk.unreserve(&job.lane));
        self.desk.let_go(born(set, epoch));
    }

    /// Whether a person took it out of the dead letters, whatever had been seen at the door. Whoever did stands in the
    /// audit log.
    async fn was_retried(&self, job: Seq) -> Result<bool, Failure> {
        let filter = AuditFilter {
            target: Some(job.as_message().to_string()),
            action: Some(RETRIED.into()),
            limit: 1,
            ..AuditFilter::default()
        };
        let found = self.store.find_audit(filter).await;
        let found = found.map_err(|error| Failure::transient("store_unavailable", error.chain()))?;
        Ok(!found.entries.is_empty())
    }

    /// The lanes of deliveries this event already caused.
    async fn made_before(&self, event: Seq) -> Result<Vec<Lane>, Failure> {
        let messages = self.store.find_messages(event).await;
        let messages = messages.map_err(|error| Failure::transient("store_unavailable", error.chain()))?;
        Ok(messages.into_iter().map(|message| message.lane).collect())
    }
}

/// Those of the events that say something, in their order.
fn inputs(papers: &[Paper]) -> Vec<Input> {
    let read = papers.iter().filter_map(|paper| {
        let reading = paper.reading.clone()?;
        Some(Input { seq: paper.event.seq, reading, cause: Cause::of(&paper.event) })
    });
    read.collect()
}

/// Whatever of a set will be ours without having been claimed.
fn born(set: &ChangeSet, epoch: Epoch) -> impl Iterator<Item = Lease> {
    let jobs = set.jobs.iter().filter(|job| job.owner.is_some()).map(|job| job.id);
    let events = set.events.iter().filter(|_| set.keep.is_some()).map(|event| event.seq);
    jobs.chain(events).map(move |id| Lease::born(id, epoch))
}

fn panicked() -> Failure {
    Failure::transient("panicked", "internal error while processing this event")
}
