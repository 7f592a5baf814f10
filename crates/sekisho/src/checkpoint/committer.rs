//! Group commit. Requests queue their events here; whenever a committer is free it gives all that wait to the store, which
//! writes them in one transaction, so that durability costs one sync per batch. Under no load a batch is one event and leaves
//! at once; under much load it is many. The queue is bounded by events and by estimated wait, so that overload is answered
//! early instead of late.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sekisho_core::change::{Admission, Arrival};
use sekisho_core::event::OtherBody;
use sekisho_core::job::Lease;
use sekisho_core::{Epoch, Seq};
use sekisho_store::{ADMIT_MAX, Store};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::gate::Gate;
use crate::config;
use crate::engine::settle_queue::ReservedRoom;
use crate::engine::{Engine, Work};
use crate::limits::Held;
use crate::node::{Health, Node};
use crate::stop::Stop;
use crate::telemetry::Metrics;

/// Bytes of bodies in one batch.
const BATCH_BYTES_MAX: usize = 4 << 20;
/// Pause before the same rows are tried again after the store did not answer.
const RETRY: Duration = Duration::from_millis(50);

pub struct Committer {
    store: Arc<dyn Store>,
    gate: Arc<dyn Gate>,
    health: Arc<Health>,
    metrics: Arc<Metrics>,
    limits: config::Admission,
    queue: Mutex<Queue>,
    /// Calls a committer when something waits.
    arrived: Notify,
    /// Where first jobs go on from memory, when this node also works.
    engine: Arc<Engine>,
    node: Arc<Node>,
    pace: Mutex<Pace>,
}

/// How long batches lately took, and how many events they had.
#[derive(Default)]
struct Pace {
    seconds: f64,
    events: f64,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    /// Waiting, or with the store.
    events: usize,
    /// Batches that committers have, and when the last of them was begun.
    under_way: usize,
    begun: Option<Instant>,
    closed: bool,
}

/// What a free committer does next.
enum Next {
    Store(Vec<Waiting>),
    /// The store has a batch, and the next should not follow so soon.
    Pause(Duration),
    Idle,
}

struct Waiting {
    arrivals: Vec<Arrival>,
    /// The memory they take, given back when they are stored or given up.
    held: Held,
    since: Instant,
    reply: oneshot::Sender<Answer>,
}

/// One answer per event, in order, or nothing could be stored in time.
pub type Answer = Result<Vec<Admission>, Unavailable>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unavailable;

/// Too much waits already; come again after this many seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overloaded {
    pub retry_after: u64,
}

impl Committer {
    pub fn new(gate: Arc<dyn Gate>, limits: config::Admission, engine: Arc<Engine>) -> Self {
        let (queue, arrived, pace) = (Mutex::default(), Notify::new(), Mutex::default());
        let (store, health) = (Arc::clone(&engine.store), Arc::clone(&engine.health));
        let (metrics, node) = (Arc::clone(&engine.metrics), Arc::clone(&engine.node));
        Self { store, gate, health, metrics, limits, queue, arrived, engine, node, pace }
    }

    /// Is there room for another request? Asked before its body is read.
    pub fn check_room(&self) -> Result<(), Overloaded> {
        self.room(self.queue.lock().expect("no code panics here").events)
    }

    fn room(&self, waiting: usize) -> Result<(), Overloaded> {
        let wait = self.pace.lock().expect("no code panics here").of(waiting, self.store.committers().count);
        if waiting < self.limits.waiting_max && wait < self.limits.deadline * 2 / 3 {
            return Ok(());
        }
        Err(Overloaded { retry_after: wait.as_secs().clamp(1, 30) })
    }

    /// Stores a request's events together. `Err` in the answer means: not known to be stored, send it again.
    pub async fn admit(&self, arrivals: Vec<Arrival>, held: Held) -> Result<Answer, Overloaded> {
        let (reply, answer) = oneshot::channel();
        {
            let mut queue = self.queue.lock().expect("no code panics here");
            if queue.closed {
                return Ok(Err(Unavailable));
            }
            self.room(queue.events)?;
            queue.events += arrivals.len();
            self.metrics.waiting_events.set(queue.events as i64);
            queue.waiting.push_back(Waiting { arrivals, held, since: Instant::now(), reply });
        }
        self.arrived.notify_one();
        let Ok(answer) = tokio::time::timeout(self.limits.deadline, answer).await else {
            self.health.store_is_late();
            return Ok(Err(Unavailable));
        };
        Ok(answer.unwrap_or(Err(Unavailable)))
    }

    /// One committer: takes what waits, stores it, answers; until told to stop and nothing waits any more.
    pub async fn run(&self, stop: Stop) {
        let apart = self.store.committers().apart;
        loop {
            match self.take(apart) {
                Next::Store(batch) => {
                    self.store(batch).await;
                    continue;
                }
                Next::Pause(left) => {
                    tokio::time::sleep(left).await;
                    continue;
                }
                Next::Idle => {}
            }
            if self.queue.lock().expect("no code panics here").closed {
                // The other committers must hear it too.
                self.arrived.notify_one();
                return;
            }
            tokio::select! {
                biased;
                () = self.arrived.notified() => {}
                () = stop.told() => self.queue.lock().expect("no code panics here").closed = true,
            }
        }
    }

    fn take(&self, apart: Duration) -> Next {
        let mut queue = self.queue.lock().expect("no code panics here");
        let next = queue.next(Instant::now(), apart);
        if let Next::Store(batch) = &next {
            // Order matters: before another committer can take what came later.
            self.engine.settle_queue.set_out(oldest(batch));
        }
        next
    }

    async fn store(&self, batch: Vec<Waiting>) {
        let started = Instant::now();
        let deadline = batch.first().map_or(started, |first| first.since) + self.limits.deadline;
        let last_deadline = batch.last().map_or(started, |last| last.since) + self.limits.deadline;
        let oldest = oldest(&batch);
        let mut replies = Vec::with_capacity(batch.len());
        let mut arrivals = Vec::with_capacity(batch.len());
        let mut held = Vec::with_capacity(batch.len());
        for waiting in batch {
            replies.push((waiting.arrivals.len(), waiting.reply));
            held.push(waiting.held);
            arrivals.extend(waiting.arrivals);
        }
        let events = arrivals.len();
        let mut storing = pin!(self.store_until(deadline, arrivals));
        let in_time = tokio::time::timeout_at(last_deadline, storing.as_mut()).await;
        let admissions = if let Ok(admissions) = in_time {
            admissions
        } else {
            // Order matters: its senders are told to come again, all of them, before anything overtakes it.
            replies.drain(..).for_each(|(_, reply)| drop(reply.send(Err(Unavailable))));
            self.engine.settle_queue.arrived(oldest);
            storing.await
        };
        self.engine.settle_queue.arrived(oldest);
        self.let_go(events);
        let Some(admissions) = admissions else {
            replies.into_iter().for_each(|(_, reply)| drop(reply.send(Err(Unavailable))));
            return;
        };
        drop(held);
        let mut admissions = admissions.into_iter();
        for (events, reply) in replies {
            // A caller that gave up is gone; what was stored stays stored.
            let _ = reply.send(Ok(admissions.by_ref().take(events).collect()));
        }
        let elapsed = started.elapsed();
        self.note_pace(elapsed, events);
        self.metrics.commit_seconds.observe(elapsed.as_secs_f64());
        self.metrics.batch_events.observe(events as f64);
    }

    /// Tries until the deadline. After an unknown outcome the very same rows are given again: what had been
    /// stored is recognised by its number.
    async fn store_until(&self, deadline: Instant, arrivals: Vec<Arrival>) -> Option<Vec<Admission>> {
        let known = self.ask_gate(&arrivals).await;
        let fresh: Arc<[Arrival]> = match &known {
            None => arrivals.into(),
            Some(known) => {
                let unknown = arrivals.into_iter().zip(known).filter(|(_, known)| known.is_none());
                unknown.map(|(arrival, _)| arrival).collect()
            }
        };
        let stored = self.admit_until(deadline, &fresh).await?;
        let keys: Vec<_> = fresh.iter().map(|arrival| arrival.key).collect();
        self.gate.fill(&keys);
        let Some(known) = known else { return Some(stored) };
        let mut stored = stored.into_iter();
        Some(
            known
                .into_iter()
                .map(|known| known.or_else(|| stored.next()).expect("one answer each"))
                .collect(),
        )
    }

    async fn admit_until(&self, deadline: Instant, fresh: &Arc<[Arrival]>) -> Option<Vec<Admission>> {
        if fresh.is_empty() {
            return Some(Vec::new());
        }
        let kept = self.room_to_keep(fresh);
        let admissions = self.try_until(deadline, fresh, kept.as_ref().map(|(epoch, _)| *epoch)).await;
        match (kept, fresh.iter().map(|arrival| arrival.seq).min()) {
            (Some((epoch, room)), _) => {
                // Order matters: what is put into the queue takes the room that was set aside for it.
                drop(room);
                self.hand_on(fresh, admissions.as_deref(), epoch);
            }
            (None, Some(oldest)) => self.engine.settle_queue.leave(oldest),
            (None, None) => {}
        }
        admissions
    }

    async fn try_until(
        &self,
        deadline: Instant,
        fresh: &Arc<[Arrival]>,
        keep: Option<Epoch>,
    ) -> Option<Vec<Admission>> {
        loop {
            match self.store.admit(Arc::clone(fresh), keep).await {
                Ok(admissions) => {
                    self.health.store_answered();
                    return Some(admissions);
                }
                Err(error) => self.health.store_failed(&error),
            }
            if Instant::now() + RETRY >= deadline {
                return None;
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// The epoch under which first jobs are born leased, and the room that is set aside for them, if this node can settle
    /// them from memory. Order matters: they are held before the store is asked.
    fn room_to_keep(&self, fresh: &[Arrival]) -> Option<(Epoch, ReservedRoom<'_>)> {
        if !self.node.may_work() {
            return None;
        }
        let room = self.engine.settle_queue.reserve(fresh.len(), bytes_of(fresh))?;
        let epoch = self.node.epoch();
        self.engine.held.hold(fresh.iter().map(|arrival| Lease::born(arrival.seq, epoch)));
        Some((epoch, room))
    }

    /// Gives what was stored to the settler; the rest is held no longer. After an unknown outcome all is: what was
    /// stored after all is adopted.
    fn hand_on(&self, fresh: &[Arrival], admissions: Option<&[Admission]>, epoch: Epoch) {
        let Some(admissions) = admissions else {
            self.engine.held.let_go(fresh.iter().map(|arrival| Lease::born(arrival.seq, epoch)));
            return self.engine.held.doubt();
        };
        let (mut works, mut gone) = (Vec::with_capacity(fresh.len()), Vec::new());
        for (arrival, admission) in fresh.iter().zip(admissions) {
            if admission.is_stored() {
                works.push(Work::born(arrival.first_job(epoch), Some(Arc::new(arrival.stored()))));
            } else {
                gone.push(Lease::born(arrival.seq, epoch));
            }
        }
        self.engine.held.let_go(gone);
        self.engine.settle_queue.put(works);
    }

    /// What the gate believes to be stored is confirmed by a read; only then is it a duplicate. `None` when
    /// nothing is: the usual case.
    async fn ask_gate(&self, arrivals: &[Arrival]) -> Option<Vec<Option<Admission>>> {
        let keys: Vec<_> = arrivals.iter().map(|arrival| arrival.key).collect();
        let seen = self.gate.seen(&keys).await;
        // What must be compared with the first body under its transmission is for the store to say.
        let is_compared =
            |arrival: &Arrival| arrival.first_body.is_some_and(|first| first.other == OtherBody::Refused);
        let hints: Vec<_> = (0..keys.len()).filter(|n| seen[*n] && !is_compared(&arrivals[*n])).collect();
        if hints.is_empty() {
            return None;
        }
        self.metrics.gate_hints.inc_by(hints.len() as u64);
        let asked: Vec<_> = hints.iter().map(|n| keys[*n]).collect();
        // If the read fails or dawdles, `admit` decides as it always does.
        let confirmed =
            tokio::time::timeout(self.limits.deadline / 4, self.store.known(&asked)).await.ok()?.ok()?;
        let mut known = vec![None; arrivals.len()];
        for (n, seq) in hints.into_iter().zip(confirmed) {
            if let Some(seq) = seq {
                self.metrics.gate_confirmed.inc();
                known[n] = Some(Admission::Duplicate(seq));
            }
        }
        Some(known)
    }

    fn let_go(&self, events: usize) {
        let mut queue = self.queue.lock().expect("no code panics here");
        queue.events -= events;
        queue.under_way -= 1;
        self.metrics.waiting_events.set(queue.events as i64);
    }

    fn note_pace(&self, elapsed: Duration, events: usize) {
        self.pace.lock().expect("no code panics here").note(elapsed, events);
    }
}

impl Queue {
    fn next(&mut self, now: Instant, apart: Duration) -> Next {
        if self.waiting.is_empty() {
            return Next::Idle;
        }
        let due = self.begun.filter(|_| self.under_way > 0).map(|begun| begun + apart);
        if let Some(due) = due.filter(|due| *due > now) {
            return Next::Pause(due.saturating_duration_since(now));
        }
        (self.under_way, self.begun) = (self.under_way + 1, Some(now));
        Next::Store(self.take())
    }

    /// The oldest that wait, as many as go into one batch.
    fn take(&mut self) -> Vec<Waiting> {
        let mut batch = Vec::new();
        let (mut events, mut bytes) = (0, 0);
        while let Some(next) = self.waiting.front() {
            events += next.arrivals.len();
            bytes += next.arrivals.iter().map(|arrival| arrival.body.len()).sum::<usize>();
            if !batch.is_empty() && (events > ADMIT_MAX || bytes > BATCH_BYTES_MAX) {
                break;
            }
            batch.push(self.waiting.pop_front().expect("it was just seen"));
        }
        batch
    }
}

fn oldest(batch: &[Waiting]) -> Seq {
    let seqs = batch.iter().flat_map(|waiting| &waiting.arrivals).map(|arrival| arrival.seq);
    seqs.min().unwrap_or(Seq::ZERO)
}

fn bytes_of(arrivals: &[Arrival]) -> usize {
    arrivals.iter().map(|arrival| arrival.body.len() + arrival.headers.len()).sum()
}

impl Pace {
    /// A large batch counts as much as its events: many small ones beside it say little.
    fn note(&mut self, elapsed: Duration, events: usize) {
        self.seconds += (elapsed.as_secs_f64() - self.seconds) / 16.0;
        self.events += (events as f64 - self.events) / 16.0;
    }

    /// How long so many events take when all committers are at work.
    fn of(&self, events: usize, committers: usize) -> Duration {
        let batches = events as f64 / self.events.max(1.0) / committers as f64;
        Duration::try_from_secs_f64(self.seconds * batches).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Bytes;

    #[test]
    fn a7_small_batches_beside_a_large_one_do_not_make_the_store_look_slow() {
        let mut pace = Pace::default();
        for _ in 0..100 {
            (0..15).for_each(|_| pace.note(Duration::from_millis(40), 1));
            pace.note(Duration::from_millis(40), 900);
        }
        // 915 events in 40 ms.
        let wait = pace.of(915, 16);
        assert!(wait > Duration::from_millis(5) && wait < Duration::from_millis(100), "{wait:?}");
        assert_eq!(Pace::default().of(1_000, 16), Duration::ZERO, "nothing is known yet");
    }

    #[test]
    fn a7_the_next_batch_follows_at_once_when_the_store_is_free_and_soon_when_it_is_slow() {
        let apart = Duration::from_millis(3);
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        let mut queue = Queue::default();
        assert!(matches!(queue.next(start, apart), Next::Idle));
        let begins = |queue: &mut Queue, ms| {
            if queue.waiting.is_empty() {
                let (held, reply) = (Bytes::new(0).hold(), oneshot::channel().0);
                queue.waiting.push_back(Waiting { arrivals: Vec::new(), held, since: start, reply });
            }
            match queue.next(after(ms), apart) {
                Next::Store(batch) => Ok(batch.len()),
                Next::Pause(left) => Err(left.as_millis()),
                Next::Idle => panic!("something waits"),
            }
        };
        assert_eq!(begins(&mut queue, 0), Ok(1));
        assert_eq!(begins(&mut queue, 1), Err(2), "the first is under way");
        queue.under_way -= 1;
        assert_eq!(begins(&mut queue, 1), Ok(1), "the first is stored");
        assert_eq!(begins(&mut queue, 3), Err(1), "counted from the last");
        assert_eq!(begins(&mut queue, 4), Ok(1), "it takes its time");
        assert_eq!(queue.under_way, 2);
    }
}
