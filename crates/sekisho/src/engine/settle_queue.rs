//! What waits to be settled, oldest first.
//!
//! Most of it comes from memory as soon as it is stored. Some is in the store alone: from before the start, because there
//! was no room here, or because an answer was lost. Where a route asks for order, an [`OrderBarrier`] keeps newer ones
//! back until older ones are here.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use sekisho_core::Seq;
use tokio::sync::Notify;

use super::order_barrier::OrderBarrier;
use super::work::Work;

/// Jobs that may wait in memory.
const WORKS_MAX: usize = 4_096;
/// And what their bodies may take.
const BYTES_MAX: usize = 64 << 20;
/// Asked for even if there is no room, because all that fills it waits for these.
const OLDER: usize = 64;

pub struct SettleQueue {
    waiting: Mutex<Waiting>,
    /// Whether this node settles events.
    settles: bool,
    /// Calls the settler.
    pub filled: Notify,
    /// Calls the dispatcher.
    wake: Arc<Notify>,
}

impl SettleQueue {
    /// With a barrier, events are settled in the order in which they came.
    pub fn new(settles: bool, barrier: Option<OrderBarrier>, wake: Arc<Notify>) -> Self {
        Self { waiting: Mutex::new(Waiting::new(barrier)), settles, filled: Notify::new(), wake }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().expect("no code panics while it holds the queue")
    }

    /// Whether so many new events can be settled from memory.
    pub fn has_room(&self, events: usize, bytes: usize) -> bool {
        self.settles && self.lock().has_room(events, bytes)
    }

    /// Sets room aside for new events, while they are on their way into the store.
    pub fn reserve(&self, events: usize, bytes: usize) -> Option<ReservedRoom<'_>> {
        let is_reserved = self.settles && self.lock().reserve(events, bytes);
        // Not `then_some`: one that is made and dropped gives back what it never had.
        is_reserved.then(|| ReservedRoom { queue: self, events, bytes })
    }

    /// A batch of new events that begins with this one sets out for the store.
    pub fn set_out(&self, oldest: Seq) {
        self.lock().set_out(oldest);
    }

    /// It is stored and handed on, or its senders were told that it is not.
    pub fn arrived(&self, oldest: Seq) {
        self.lock().arrive(oldest);
        self.filled.notify_one();
    }

    pub fn put(&self, works: impl IntoIterator<Item = Work>) {
        let mut waiting = self.lock();
        works.into_iter().for_each(|work| waiting.put(work));
        drop(waiting);
        self.filled.notify_one();
    }

    /// New events that are to be settled went into the store and were not kept.
    pub fn leave(&self, oldest: Seq) {
        let mut waiting = self.lock();
        waiting.leave(oldest);
        if self.settles && waiting.is_hungry() {
            self.wake.notify_one();
        }
    }

    pub fn take(&self, most: usize) -> Vec<Work> {
        let mut waiting = self.lock();
        let taken = waiting.take(most);
        if waiting.has_more && waiting.is_hungry() {
            self.wake.notify_one();
        }
        taken
    }

    /// Everything, to be handed back or forgotten.
    pub fn clear(&self) -> Vec<Work> {
        self.lock().clear()
    }

    /// How many to ask the store for now, if any.
    pub fn ask(&self, all: bool) -> Option<usize> {
        if self.settles { self.lock().ask(all) } else { None }
    }

    /// What the store had to be settled is in hand: all of it, or what is not newer than this.
    pub fn answered(&self, newest: Option<Seq>, is_all: bool) {
        let mut waiting = self.lock();
        waiting.answered(newest, is_all);
        if waiting.has_more && waiting.is_hungry() {
            self.wake.notify_one();
        }
        drop(waiting);
        self.filled.notify_one();
    }

    /// Whether something may be in the store that should be here. Asked while nobody else can say otherwise.
    pub fn set_doubt(&self, in_doubt: impl FnOnce() -> bool) {
        let mut waiting = self.lock();
        let in_doubt = in_doubt();
        waiting.set_doubt(in_doubt);
        drop(waiting);
        if !in_doubt {
            self.filled.notify_one();
        }
    }
}

/// Room for events that are on their way into the store; it ends with them.
pub struct ReservedRoom<'q> {
    queue: &'q SettleQueue,
    events: usize,
    bytes: usize,
}

impl Drop for ReservedRoom<'_> {
    fn drop(&mut self) {
        self.queue.lock().give_back(self.events, self.bytes);
    }
}

#[derive(Default)]
struct Waiting {
    works: BTreeMap<Seq, Work>,
    bytes: usize,
    /// Set aside for batches on their way into the store.
    reserved: usize,
    reserved_bytes: usize,
    /// The store holds more than fitted, or may.
    has_more: bool,
    /// If order matters.
    barrier: Option<OrderBarrier>,
}

impl Waiting {
    fn new(barrier: Option<OrderBarrier>) -> Self {
        Self { has_more: true, barrier, ..Self::default() }
    }

    /// Whether so many new events can be settled from memory. If not, they will be in the store alone.
    fn has_room(&mut self, events: usize, bytes: usize) -> bool {
        let room = self.works.len() + self.reserved + events <= WORKS_MAX
            && self.bytes + self.reserved_bytes + bytes <= BYTES_MAX;
        self.has_more |= !room;
        room
    }

    /// A batch that begins with this one sets out for the store.
    fn set_out(&mut self, oldest: Seq) {
        if let Some(barrier) = &mut self.barrier {
            barrier.under_way.insert(oldest);
        }
    }

    /// It is stored, or its senders were told that it is not. Order matters: what was kept of it is here already.
    fn arrive(&mut self, oldest: Seq) {
        if let Some(barrier) = &mut self.barrier {
            barrier.under_way.remove(&oldest);
        }
    }

    /// Sets room aside for what is to be kept in memory, if there is any.
    fn reserve(&mut self, events: usize, bytes: usize) -> bool {
        let room = self.has_room(events, bytes);
        if room {
            self.reserved += events;
            self.reserved_bytes += bytes;
        }
        room
    }

    fn give_back(&mut self, events: usize, bytes: usize) {
        self.reserved -= events;
        self.reserved_bytes -= bytes;
    }

    /// New events went into the store and were not kept.
    fn leave(&mut self, oldest: Seq) {
        self.has_more = true;
        if let Some(barrier) = &mut self.barrier {
            barrier.leave(oldest);
        }
    }

    fn put(&mut self, work: Work) {
        self.bytes += work.bytes();
        if let Some(twice) = self.works.insert(work.id(), work) {
            self.bytes -= twice.bytes();
        }
    }

    /// The oldest, unless something older may still come.
    fn take(&mut self, most: usize) -> Vec<Work> {
        let end = self.barrier.as_ref().and_then(OrderBarrier::first);
        let mut taken = Vec::new();
        while taken.len() < most {
            let Some(first) = self.works.first_entry() else { break };
            if end.is_some_and(|end| *first.key() >= end) {
                break;
            }
            taken.push(first.remove());
        }
        self.bytes -= taken.iter().map(Work::bytes).sum::<usize>();
        taken
    }

    /// Everything, whoever has it next.
    fn clear(&mut self) -> Vec<Work> {
        (self.bytes, self.has_more) = (0, true);
        if let Some(barrier) = &mut self.barrier {
            barrier.stored = Some(Seq::ZERO);
        }
        std::mem::take(&mut self.works).into_values().collect()
    }

    /// It is worth asking the store: there is room, or nothing can go on without.
    fn is_hungry(&self) -> bool {
        self.works.len() < WORKS_MAX / 2 || self.is_stuck()
    }

    /// All that is at hand waits for something in the store.
    fn is_stuck(&self) -> bool {
        let Some(barrier) = &self.barrier else { return false };
        let (Some(stored), Some(first)) = (barrier.stored, self.works.first_key_value()) else {
            return false;
        };
        !barrier.is_in_doubt() && barrier.first() == Some(stored) && *first.0 >= stored
    }

    /// How many to ask the store for now, if any.
    fn ask(&mut self, all: bool) -> Option<usize> {
        let is_full = self.bytes > BYTES_MAX / 2;
        let room = if is_full { 0 } else { WORKS_MAX.saturating_sub(self.works.len()) };
        let wanted = if self.is_stuck() { room.max(OLDER) } else { room };
        if !(all || self.has_more) || (wanted < WORKS_MAX / 2 && !self.is_stuck()) {
            return None;
        }
        self.has_more = false;
        if let Some(barrier) = &mut self.barrier {
            barrier.left = None;
        }
        Some(wanted.min(sekisho_store::CLAIM_MAX))
    }

    /// What the store had is here: all of it, or what is not newer than this.
    fn answered(&mut self, newest: Option<Seq>, is_all: bool) {
        self.has_more |= !is_all;
        if let Some(barrier) = &mut self.barrier {
            barrier.answered(newest, is_all);
        }
    }

    fn set_doubt(&mut self, in_doubt: bool) {
        if let Some(barrier) = &mut self.barrier {
            barrier.set_doubt(in_doubt);
        }
    }
}

#[cfg(test)]
mod tests {
    use sekisho_core::job::{Job, Settle};
    use sekisho_core::{Epoch, Time};

    use super::*;
    use crate::env::Timing;
    use tokio::time::Instant;

    fn work(id: i64) -> Work {
        Work::claimed(Job::born_with(Seq::from_i64(id), Settle::Once, Time::from_ms(1), Epoch(1)), None)
    }

    fn barrier() -> Option<OrderBarrier> {
        Some(OrderBarrier::unknown(Timing::DEFAULT.doubt_max))
    }

    fn seq(id: i64) -> Seq {
        Seq::from_i64(id)
    }

    fn taken(waiting: &mut Waiting) -> Vec<i64> {
        waiting.take(100).iter().map(|work| work.id().as_i64()).collect()
    }

    /// Asked, and this is what came.
    fn claimed(waiting: &mut Waiting, ids: &[i64], is_all: bool) {
        assert!(waiting.ask(true).is_some());
        ids.iter().for_each(|id| waiting.put(work(*id)));
        waiting.answered(ids.iter().max().map(|id| Seq::from_i64(*id)), is_all);
    }

    fn at_hand() -> Waiting {
        let mut waiting = Waiting::new(barrier());
        claimed(&mut waiting, &[], true);
        waiting
    }

    #[test]
    fn a6_room_is_set_aside_until_the_reservation_ends() {
        let queue = SettleQueue::new(true, None, Arc::new(Notify::new()));
        let most = queue.reserve(WORKS_MAX, 1).unwrap();
        assert!(queue.reserve(1, 1).is_none() && queue.reserve(1, 1).is_none(), "a refusal frees nothing");
        drop(most);
        assert!(queue.reserve(WORKS_MAX, 1).is_some());
        let idle = SettleQueue::new(false, None, Arc::new(Notify::new()));
        assert!(idle.reserve(1, 1).is_none(), "a node that does not settle keeps nothing");
    }

    #[test]
    fn c4_what_came_before_the_start_goes_first() {
        let mut waiting = Waiting::new(barrier());
        waiting.put(work(50));
        assert!(taken(&mut waiting).is_empty());
        claimed(&mut waiting, &[1, 2], false);
        assert_eq!(taken(&mut waiting), [1, 2]);
        claimed(&mut waiting, &[3], true);
        assert_eq!(taken(&mut waiting), [3, 50]);
        let mut plain = Waiting::new(None);
        plain.put(work(50));
        assert_eq!(taken(&mut plain), [50], "without order nobody waits");
    }

    #[test]
    fn c4_nothing_overtakes_a_batch_that_is_on_its_way() {
        let mut waiting = at_hand();
        waiting.set_out(seq(1));
        waiting.set_out(seq(2));
        waiting.put(work(2));
        waiting.arrive(seq(2));
        assert!(taken(&mut waiting).is_empty());
        waiting.put(work(1));
        waiting.arrive(seq(1));
        assert_eq!(taken(&mut waiting), [1, 2]);
    }

    #[test]
    fn c4_nothing_overtakes_what_was_left_to_the_store() {
        let mut waiting = at_hand();
        waiting.set_out(seq(1));
        // Asked before it was written: the answer says nothing of it.
        claimed(&mut waiting, &[], true);
        waiting.leave(seq(1));
        waiting.arrive(seq(1));
        waiting.put(work(2));
        assert!(taken(&mut waiting).is_empty());
        // Asked since, and the next was left there before the answer came.
        assert!(waiting.has_more && waiting.ask(false).is_some());
        waiting.put(work(1));
        waiting.leave(seq(3));
        waiting.answered(Some(seq(1)), true);
        waiting.put(work(4));
        assert_eq!(taken(&mut waiting), [1, 2]);
        claimed(&mut waiting, &[3], true);
        assert_eq!(taken(&mut waiting), [3, 4]);
    }

    #[test]
    fn c4_while_an_answer_is_lost_nothing_is_sure_but_not_for_ever() {
        let mut waiting = at_hand();
        waiting.set_doubt(true);
        waiting.put(work(2));
        claimed(&mut waiting, &[], true);
        assert!(taken(&mut waiting).is_empty());
        waiting.put(work(1));
        waiting.set_doubt(false);
        assert_eq!(taken(&mut waiting), [1, 2]);
        waiting.put(work(3));
        waiting.barrier.as_mut().unwrap().in_doubt = Instant::now().checked_sub(Timing::DEFAULT.doubt_max);
        waiting.set_doubt(true);
        assert_eq!(taken(&mut waiting), [3], "a second doubt does not begin it anew");
    }

    #[test]
    fn h2_a_full_queue_asks_only_for_what_all_of_it_waits_for() {
        let mut waiting = Waiting::new(barrier());
        (1..=WORKS_MAX as i64).for_each(|id| waiting.put(work(1_000 + id)));
        assert!(!waiting.has_room(1, 1) && waiting.is_hungry());
        assert_eq!(waiting.ask(true), Some(OLDER));
        waiting.set_doubt(true);
        assert_eq!(waiting.ask(true), None, "the store can't end a doubt");
        waiting.set_doubt(false);
        waiting.answered(Some(seq(1_500)), false);
        assert_eq!(waiting.ask(true), None, "some of it can be settled first");
        assert_eq!(waiting.take(usize::MAX).len(), 500);
        waiting.answered(None, true);
        assert_eq!(waiting.take(usize::MAX).len(), WORKS_MAX - 500);
        assert_eq!(waiting.bytes, 0);
    }
}
