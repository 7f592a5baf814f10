//! The store of one life: passes everything on to a real one, writes down what was committed, loses some answers on the way,
//! and distorts what passes where a bug is planted. The product itself is not touched.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use sekisho_core::change::{Act, Admission, Arrival, ChangeSet, Committed, Rejection, Replayed};
use sekisho_core::event::{DedupeKey, Stored};
use sekisho_core::job::{Attempt, Job, Lane, Lease, RefundCall, Settle, Task, Timer};
use sekisho_core::state::{Key, Kind, Posting, State};
use sekisho_core::{Epoch, Seq, Time};
use sekisho_lab::rng::Rng;
use sekisho_store::{
    AuditFilter, AuditLink, AuditPage, BookedLine, ChainHead, Committers, Count, DeadFilter, DeadGroup,
    DeadLetter, DeliveryCounts, DeliveryFilter, DeliveryPage, Error, EventFilter, EventPage, EventRecord,
    Forgotten, HourMoney, Joined, LineFilter, Loaded, NodeRecord, PendingWork, Pulse, RejectionFilter,
    Result, StateFilter, Store, StoredMessage, Sum,
};
use serde_json::Value;

use super::bugs::Planted;

/// What was committed in one life.
#[derive(Default)]
pub struct Written {
    /// Timers that were planned, by due time: what locks the order.
    pub timers: BTreeSet<(i64, String, String)>,
    /// Refunds that somebody has to carry out, by the key of their job.
    pub calls: BTreeMap<String, RefundCall>,
    /// Keys of jobs: each makes one, for ever.
    keys: BTreeSet<String>,
    /// The bodies of announcements, in the order of their commits.
    pub told: Vec<Value>,
    pub cases: BTreeSet<String>,
    pub log: BTreeSet<String>,
    pub postings: Vec<Posting>,
    /// Sets whose lines of the books don't sum to zero.
    pub uneven: usize,
}

pub struct WatchedStore {
    inner: Arc<dyn Store>,
    written: Mutex<Written>,
    faults: Mutex<(Rng, f64)>,
    planted: Mutex<Planted>,
}

impl WatchedStore {
    pub fn new(inner: Arc<dyn Store>, seed: u64, faults: f64, planted: Planted) -> Self {
        Self {
            inner,
            written: Mutex::default(),
            faults: Mutex::new((Rng::new(seed), faults)),
            planted: Mutex::new(planted),
        }
    }

    pub fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap()
    }

    pub fn planted(&self) -> MutexGuard<'_, Planted> {
        self.planted.lock().unwrap()
    }

    /// From now on every answer arrives.
    pub fn mend(&self) {
        self.faults.lock().unwrap().1 = 0.0;
    }

    fn fails(&self) -> bool {
        let mut faults = self.faults.lock().unwrap();
        let chance = faults.1;
        faults.0.chance(chance)
    }

    async fn load_through(&self, names: Vec<String>, keys: Vec<Key>) -> Result<Loaded> {
        let asked: Vec<Key> = keys.iter().map(|key| self.planted().key(key)).collect();
        let mut loaded = self.inner.load(names, asked.clone()).await?;
        for (own, other) in keys.iter().zip(&asked).filter(|(own, other)| own != other) {
            if let Some(state) = loaded.states.remove(other) {
                loaded.states.insert(own.clone(), State { key: own.clone(), ..state });
            }
        }
        loaded.states.values_mut().for_each(|state| self.planted().read(state));
        // Others may come between a look and what follows from it.
        tokio::task::yield_now().await;
        Ok(loaded)
    }

    async fn commit_through(&self, mut sets: Vec<ChangeSet>) -> Result<Vec<Committed>> {
        tokio::task::yield_now().await;
        for set in &mut sets {
            self.planted().write(set);
            for write in &mut set.writes {
                write.key = self.planted().key(&write.key);
            }
        }
        if self.fails() {
            return Err(Error::unavailable("it was not reached"));
        }
        let answers = self.inner.commit(sets.clone()).await?;
        for (set, answer) in sets.iter().zip(&answers) {
            if let Committed::Applied { .. } = answer {
                self.note(set);
            }
        }
        if self.fails() {
            return Err(Error::unavailable("its answer was lost"));
        }
        Ok(answers)
    }

    fn note(&self, set: &ChangeSet) {
        let mut written = self.written();
        for job in &set.jobs {
            let Some(key) = job.key.clone().filter(|key| written.keys.insert(key.clone())) else { continue };
            match &job.task {
                Task::Timer(Timer::Deadline { kind, id }) => {
                    written.timers.insert((job.due_at.ms(), kind.clone(), id.clone()));
                }
                Task::Refund(call) => drop(written.calls.insert(key, (**call).clone())),
                _ => {}
            }
        }
        written.told.extend(set.events.iter().map(|event| serde_json::from_slice(&event.body).unwrap()));
        for key in set.writes.iter().map(|write| &write.key) {
            match key.kind {
                Kind::Case => drop(written.cases.insert(key.id.clone())),
                Kind::Compensation => drop(written.log.insert(key.id.clone())),
                _ => {}
            }
        }
        let sum: i64 = set.postings.iter().map(|line| line.amount).sum();
        written.uneven += usize::from(sum != 0);
        written.postings.extend(set.postings.iter().cloned());
    }
}

/// Everything else is asked of the real one.
macro_rules! passed_on {
    ($($name:ident($($arg:ident: $type:ty),*) -> $answer:ty;)*) => {
        #[async_trait]
        impl Store for WatchedStore {
            fn committers(&self) -> Committers {
                self.inner.committers()
            }

            async fn load(&self, names: Vec<String>, keys: Vec<Key>) -> Result<Loaded> {
                self.load_through(names, keys).await
            }

            async fn commit(&self, sets: Vec<ChangeSet>) -> Result<Vec<Committed>> {
                self.commit_through(sets).await
            }

            async fn known(&self, keys: &[DedupeKey]) -> Result<Vec<Option<Seq>>> {
                self.inner.known(keys).await
            }

            async fn find_seq(&self, source: &str, event_id: &str) -> Result<Option<Seq>> {
                self.inner.find_seq(source, event_id).await
            }

            $(async fn $name(&self, $($arg: $type),*) -> Result<$answer> {
                self.inner.$name($($arg),*).await
            })*
        }
    };
}

passed_on! {
    join(now: Time) -> Joined;
    beat(epoch: Epoch, n: i64) -> Pulse;
    end(epoch: Epoch, n: i64) -> bool;
    leave(epoch: Epoch) -> ();
    admit(arrivals: Arc<[Arrival]>, keep: Option<Epoch>) -> Vec<Admission>;
    claim(epoch: Epoch, wants: Vec<(Lane, usize)>, now: Time) -> Vec<Job>;
    start(leases: Vec<Lease>) -> Vec<bool>;
    release(leases: Vec<Lease>) -> ();
    owned(epoch: Epoch, after: Seq) -> Vec<Lease>;
    adopt(leases: Vec<Lease>) -> Vec<Job>;
    sweep(limit: usize, suspect_after: i32) -> usize;
    make_due(limit: usize, now: Time) -> usize;
    lanes() -> Vec<(Lane, Time)>;
    load_events(seqs: Vec<Seq>) -> Vec<Stored>;
    retry(jobs: Vec<Seq>, act: Act) -> Vec<bool>;
    discard(jobs: Vec<Seq>, act: Act) -> Vec<bool>;
    cancel(jobs: Vec<Seq>, act: Act) -> Vec<bool>;
    replay(events: Vec<Seq>, settle: Settle, act: Act) -> Vec<Replayed>;
    find_branches(prefix: String, limit: usize) -> Vec<String>;
    find_states(filter: StateFilter) -> Vec<State>;
    find_sums(account: Option<String>) -> Vec<Sum>;
    find_lines(filter: LineFilter) -> Vec<BookedLine>;
    find_audit(filter: AuditFilter) -> AuditPage;
    find_links(after: Option<(i64, i64)>, limit: usize) -> Vec<AuditLink>;
    find_places(entries: Vec<i64>) -> BTreeSet<(i64, i64)>;
    chain_heads() -> Vec<ChainHead>;
    reject(rejections: Vec<Rejection>) -> ();
    upkeep(now: Time) -> ();
    count_hour(hour: Time) -> ();
    forget(before: Time, after: Seq, limit: usize) -> Forgotten;
    forget_meters(first: String, last: String, limit: usize) -> usize;
    find_events(filter: EventFilter) -> EventPage;
    find_event(seq: Seq) -> Option<EventRecord>;
    find_dead(filter: DeadFilter) -> Vec<DeadLetter>;
    find_dead_groups(filter: DeadFilter) -> Vec<DeadGroup>;
    find_work() -> Vec<PendingWork>;
    find_nodes() -> Vec<NodeRecord>;
    find_message(job: Seq) -> Option<StoredMessage>;
    find_messages(event: Seq) -> Vec<StoredMessage>;
    find_attempts(job: Seq) -> Vec<(i32, Attempt)>;
    find_deliveries(filter: DeliveryFilter) -> DeliveryPage;
    find_delivery_counts(events: Vec<Seq>) -> Vec<DeliveryCounts>;
    find_counts(from: Time, to: Time) -> Vec<Count>;
    find_money(from: Time, to: Time) -> Vec<HourMoney>;
    find_rejections(filter: RejectionFilter) -> Vec<Rejection>;
    describe() -> Vec<(String, String)>;
}
