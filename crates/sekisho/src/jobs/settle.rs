//! Settling: takes the events that wait, reads what each says, loads what is known of the things they speak of, asks the
//! core what follows, and commits it. Jobs for lanes with room are born leased and go on from memory, and so do the
//! events that a change makes.
//!
//! Another node may settle an event of the same payment at the same moment: then one of the two finds its versions
//! stale, loads again and decides again. Nothing is written by halves.

mod build;
mod processed;
mod read;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use sekisho_core::change::{ChangeSet, Committed};
use sekisho_core::delivery::Route;
use sekisho_core::job::{Job, Lease};
use sekisho_core::notification::NotifyRule;
use sekisho_core::queue::Failure;
use sekisho_core::settlement::follow::OrderPolicy;
use sekisho_core::settlement::{self, Change, References, Terms, Wanted};
use sekisho_core::state::Loaded;
use sekisho_core::{Epoch, Seq};
use tokio::time::Instant;

use super::accounts::ApiAccounts;
use super::sources::Sources;
use crate::config::Config;
use crate::engine::{Engine, Ran, Work};
use crate::stop::Stop;
use build::{SettlementDraft, born};
use read::{ReadEvent, inputs};

/// Events settled in one commit.
const BATCH: usize = 256;
/// How often a batch is decided again because others were faster; then each of it goes alone.
const ROUNDS_TOGETHER: usize = 3;
/// And how often alone, before it waits for a quieter time.
const ROUNDS_ALONE: usize = 20;
/// Pause before the store is asked again.
const AGAIN_AFTER: Duration = Duration::from_millis(50);

pub struct Settler {
    /// In the order of the configuration.
    routes: Vec<Route>,
    rules: Vec<NotifyRule>,
    sources: Arc<Sources>,
    references: References,
    accounts: Arc<ApiAccounts>,
    /// How long access goes on after what was paid for has ended.
    grace_ms: i64,
    orders: Arc<OrderPolicy>,
}

/// What all events of a batch have in common.
#[derive(Clone, Copy)]
struct Batch<'a> {
    engine: &'a Arc<Engine>,
    /// Under which its jobs are leased.
    epoch: Epoch,
    /// Under which new jobs may be born leased.
    keep: Option<Epoch>,
    stop: &'a Stop,
}

/// What became of deciding.
enum Decided {
    Changes(Vec<Change>),
    Panicked,
    /// Another node was given the work, or this one stops.
    Senseless,
}

impl Settler {
    pub fn new(
        config: &Config,
        orders: Arc<OrderPolicy>,
        sources: Arc<Sources>,
        accounts: Arc<ApiAccounts>,
    ) -> Self {
        Self {
            routes: config.routes.iter().map(|route| route.route.clone()).collect(),
            rules: config.rules(),
            sources,
            references: config.references.clone(),
            accounts,
            grace_ms: i64::try_from(config.grace.as_millis()).unwrap_or(i64::MAX),
            orders,
        }
    }

    /// Settles until told to stop.
    pub async fn run(self: Arc<Self>, engine: &Arc<Engine>, stop: Stop) {
        while !stop.is_told() {
            let epoch = engine.node.epoch();
            let mut works = engine.settle_queue.take(BATCH);
            if works.is_empty() {
                tokio::select! {
                    biased;
                    () = stop.told() => {}
                    () = engine.settle_queue.filled.notified() => {}
                }
                continue;
            }
            works.retain(|work| {
                let ours = work.job.lease.epoch == epoch;
                if !ours {
                    engine.held.let_go([work.job.lease]);
                }
                ours
            });
            begin(engine, &mut works);
            let batch = Batch { engine, epoch, keep: Some(epoch), stop: &stop };
            self.run_batch(batch, works).await;
        }
    }

    /// The settling of a suspect: by itself, and its jobs go through the store.
    pub async fn run_alone(self: &Arc<Self>, engine: &Arc<Engine>, work: &Work) -> Ran {
        note_pick_up(engine, work);
        self.settle_alone(engine, work).await;
        Ran::Committed
    }

    async fn settle_alone(self: &Arc<Self>, engine: &Arc<Engine>, work: &Work) {
        let batch = Batch { engine, epoch: work.job.lease.epoch, keep: None, stop: &Stop::never() };
        self.run_batch(batch, vec![work.clone()]).await;
    }

    /// Goes on until each is settled, put before a person, put off, or another node's.
    async fn run_batch(self: &Arc<Self>, batch: Batch<'_>, works: Vec<Work>) {
        let mut left = works;
        for _ in 0..ROUNDS_TOGETHER {
            if left.is_empty() {
                return;
            }
            left = self.run_round(batch, left).await;
        }
        for work in left {
            let mut again = vec![work.clone()];
            for round in 0..ROUNDS_ALONE {
                again = self.run_round(batch, again).await;
                if again.is_empty() {
                    break;
                }
                // Nodes that met here once must not meet again and again.
                let spread = (batch.epoch.0.unsigned_abs() * 7 + round as u64 * 13) % 50;
                tokio::time::sleep(Duration::from_millis(spread)).await;
            }
            if let Some(work) = again.pop() {
                let failure = Failure::transient("contended", "others changed the same things all the time");
                batch.engine.completer.push(&work, batch.failed(&work, &failure));
            }
        }
    }

    /// Settles what can be settled now; gives back what must be decided again.
    async fn run_round(self: &Arc<Self>, batch: Batch<'_>, mut works: Vec<Work>) -> Vec<Work> {
        let Batch { engine, epoch, stop, .. } = batch;
        works.sort_by_key(|work| work.event.as_ref().map(|event| event.seq));
        let (mut drafts, mut events) = (Vec::new(), Vec::new());
        for work in works {
            match self.read_event(batch, &work).await {
                Ok(event) => events.push(event),
                Err(set) => drafts.push(SettlementDraft { works: vec![work], set }),
            }
        }
        match self.decide(batch, &events).await {
            Decided::Changes(changes) => drafts.extend(batch.drafts(events, changes)),
            Decided::Panicked => drafts.extend(self.draft_singly(batch, events).await),
            Decided::Senseless => {
                // Another node was given it all, or this one stops: what is still ours is found again.
                engine.doubt_settling();
                let drafted = drafts.into_iter().flat_map(|draft| draft.works);
                let works = events.into_iter().map(|event| event.work).chain(drafted);
                engine.held.let_go(works.map(|work| work.job.lease));
                return Vec::new();
            }
        }

        // Order matters: held before the store is asked.
        engine.held.hold(drafts.iter().flat_map(|draft| born(&draft.set, epoch)));
        let sets = drafts.iter().map(|draft| draft.set.clone()).collect();
        let answers = engine.completer.commit(epoch, sets, stop).await;
        let mut answers = answers.into_iter().flatten();
        drafts.into_iter().flat_map(|draft| self.settled(batch, draft, answers.next())).collect()
    }

    /// Loads what the events speak of and decides what follows; what that leads to is loaded too, and decided again.
    async fn decide(&self, batch: Batch<'_>, events: &[ReadEvent]) -> Decided {
        let inputs = inputs(events);
        let mut wanted = settlement::names(&inputs);
        let can_fetch = |realm: &str| self.accounts.can_fetch(realm);
        loop {
            let Some(loaded) = batch.load(&wanted).await else { return Decided::Senseless };
            let at = batch.engine.node.now();
            let terms =
                Terms { grace_ms: self.grace_ms, can_fetch: &can_fetch, ..Terms::of(at, &self.orders) };
            let decided =
                catch_unwind(AssertUnwindSafe(|| settlement::decide(&inputs, &wanted, &loaded, &terms)));
            match decided {
                Ok(Ok(changes)) => return Decided::Changes(changes),
                Ok(Err(more)) => wanted.extend(more),
                Err(_) => return Decided::Panicked,
            }
        }
    }

    /// Finds the one that makes the program fail, so that the others get through.
    async fn draft_singly(&self, batch: Batch<'_>, events: Vec<ReadEvent>) -> Vec<SettlementDraft> {
        let mut drafts = Vec::new();
        for event in events {
            match self.decide(batch, std::slice::from_ref(&event)).await {
                Decided::Changes(changes) => drafts.extend(batch.drafts(vec![event], changes)),
                Decided::Panicked => {
                    let set = batch.failed(&event.work, &panicked());
                    drafts.push(SettlementDraft { works: vec![event.work], set });
                }
                Decided::Senseless => batch.engine.held.let_go([event.work.job.lease]),
            }
        }
        drafts
    }

    /// Hands on what was queued, gives up what was not; gives back what must be decided again.
    fn settled(
        self: &Arc<Self>,
        batch: Batch<'_>,
        draft: SettlementDraft,
        answer: Option<Committed>,
    ) -> Vec<Work> {
        let (engine, SettlementDraft { works, set }) = (batch.engine, draft);
        match answer {
            Some(Committed::Applied { repeated }) => {
                for (work, ended) in works.iter().zip(&set.ends) {
                    engine.completer.note(work, ended);
                    processed::tell(engine, work, ended, &set.writes);
                }
                let events = works.iter().filter_map(|work| work.event.as_ref());
                events.for_each(|event| engine.metrics.orders.announced(event));
                engine.held.let_go(works.iter().map(|work| work.job.lease));
                batch.hand_on(&works, set, &repeated);
                Vec::new()
            }
            Some(Committed::Stale) => {
                batch.give_up(&set);
                works
            }
            // One of several is not ours any more: the others are settled without it.
            Some(Committed::Lost) if works.len() > 1 => {
                batch.give_up(&set);
                let (settler, own) = (Arc::clone(self), Arc::clone(engine));
                engine.spawn(async move {
                    for work in works {
                        settler.settle_alone(&own, &work).await;
                    }
                });
                Vec::new()
            }
            // Not ours any more, or written while the answer was lost: then its jobs are ours and are adopted.
            Some(Committed::Lost) | None => {
                batch.give_up(&set);
                engine.held.let_go(works.iter().map(|work| work.job.lease));
                engine.doubt_settling();
                Vec::new()
            }
        }
    }
}

impl Batch<'_> {
    /// What is known of these, however often it takes; `None` when it became senseless to ask.
    async fn load(&self, wanted: &Wanted) -> Option<Loaded> {
        if wanted.is_empty() {
            return Some(Loaded::default());
        }
        while self.engine.node.epoch() == self.epoch && !self.stop.is_told() {
            let (names, keys) =
                (wanted.names.iter().cloned().collect(), wanted.keys.iter().cloned().collect());
            match self.engine.store.load(names, keys).await {
                Ok(loaded) => return Some(loaded),
                Err(error) => self.engine.health.store_failed(&error),
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
        None
    }

    fn failed(&self, work: &Work, failure: &Failure) -> ChangeSet {
        let end = self.engine.end_of_failed(work, failure);
        ChangeSet::end(work.job.lease, end, self.engine.node.now())
    }

    fn hand_on(&self, works: &[Work], set: ChangeSet, repeated: &[Seq]) {
        let Self { engine, epoch, .. } = *self;
        let events: BTreeMap<_, _> =
            works.iter().filter_map(|work| work.event.as_ref()).map(|event| (event.seq, event)).collect();
        for job in set.jobs.into_iter().filter(|job| job.owner.is_some()) {
            let lane = job.lane.clone();
            if repeated.contains(&job.id) {
                engine.lanes.unreserve(&lane);
                engine.held.let_go([Lease::born(job.id, epoch)]);
            } else {
                let event = job.event.and_then(|event| events.get(&event)).map(|event| Arc::clone(event));
                engine.lanes.arrive(Work::born(Job::born(job, epoch), event));
                engine.pump(&lane);
            }
        }
        if set.keep.is_none() {
            let oldest = set.events.iter().map(|event| event.seq).min();
            return oldest.into_iter().for_each(|oldest| engine.settle_queue.leave(oldest));
        }
        let (again, fresh): (Vec<_>, Vec<_>) =
            set.events.into_iter().partition(|event| repeated.contains(&event.seq));
        engine.held.let_go(again.iter().map(|event| Lease::born(event.seq, epoch)));
        engine.settle_queue.put(
            fresh.into_iter().map(|event| Work::born(event.first_job(epoch), Some(Arc::new(event.stored())))),
        );
    }

    fn give_up(&self, set: &ChangeSet) {
        let leased = set.jobs.iter().filter(|job| job.owner.is_some());
        leased.for_each(|job| self.engine.lanes.unreserve(&job.lane));
        self.engine.held.let_go(born(set, self.epoch));
    }
}

/// Notes when runs begin, and how long they waited for it.
fn begin(engine: &Engine, works: &mut [Work]) {
    let begun = (engine.node.now(), Instant::now());
    for work in works {
        note_pick_up(engine, work);
        work.begun = Some(begun);
    }
}

fn note_pick_up(engine: &Engine, work: &Work) {
    engine.metrics.picked_up(work.job.task.kind().name(), work.waited(engine.node.now()));
}

fn panicked() -> Failure {
    Failure::transient("panicked", "internal error while processing this event")
}
