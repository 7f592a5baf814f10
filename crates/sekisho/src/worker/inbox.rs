//! What waits to be settled, oldest first.
//!
//! Most of it comes from memory as soon as it is stored. Some is in the store alone: from before the start, because there
//! was no room here, or because an answer was lost. Where a route asks for order, nothing is settled while something
//! older may still be there, or on its way there.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use sekisho_core::Seq;

use super::desk::Work;

/// Jobs that may wait in memory.
pub const WORKS_MAX: usize = 4_096;
/// And what their bodies may take.
const BYTES_MAX: usize = 64 << 20;
/// Asked for even if there is no room, because all that fills it waits for these.
const OLDER: usize = 64;
/// So long may a doubt hold everything up; then order is given up before delivery is.
const DOUBT_MAX: Duration = Duration::from_secs(30);

#[derive(Default)]
pub struct Inbox {
    works: BTreeMap<Seq, Work>,
    bytes: usize,
    /// Set aside for batches on their way into the store.
    reserved: usize,
    reserved_bytes: usize,
    /// The store holds more than fitted, or may.
    pub has_more: bool,
    /// If order matters.
    gaps: Option<Gaps>,
}

/// What may be older than something at hand.
struct Gaps {
    /// The oldest that may be in the store alone.
    stored: Option<Seq>,
    /// The oldest that was left there since the store was last asked.
    left: Option<Seq>,
    /// The oldest of each batch on its way there.
    under_way: BTreeSet<Seq>,
    /// Since when any may be there, because an answer was lost.
    in_doubt: Option<Instant>,
}

impl Gaps {
    /// Only what is older may be settled.
    fn first(&self) -> Option<Seq> {
        let doubt = self.is_in_doubt().then_some(Seq::ZERO);
        [doubt, self.stored, self.under_way.first().copied()].into_iter().flatten().min()
    }

    fn is_in_doubt(&self) -> bool {
        self.in_doubt.is_some_and(|since| since.elapsed() < DOUBT_MAX)
    }

    fn leave(&mut self, oldest: Seq) {
        self.left = older(self.left, oldest);
        self.stored = older(self.stored, oldest);
    }
}

fn older(one: Option<Seq>, other: Seq) -> Option<Seq> {
    Some(one.map_or(other, |one| one.min(other)))
}

impl Inbox {
    pub fn new(keeps_order: bool) -> Self {
        let unknown =
            Gaps { stored: Some(Seq::ZERO), left: None, under_way: BTreeSet::new(), in_doubt: None };
        Self { has_more: true, gaps: keeps_order.then_some(unknown), ..Self::default() }
    }

    /// Whether so many new events can be settled from memory. If not, they will be in the store alone.
    pub fn has_room(&mut self, events: usize, bytes: usize) -> bool {
        let room = self.works.len() + self.reserved + events <= WORKS_MAX
            && self.bytes + self.reserved_bytes + bytes <= BYTES_MAX;
        self.has_more |= !room;
        room
    }

    /// A batch that begins with this one sets out for the store.
    pub fn set_out(&mut self, oldest: Seq) {
        if let Some(gaps) = &mut self.gaps {
            gaps.under_way.insert(oldest);
        }
    }

    /// It is stored, or its senders were told that it is not. Order matters: what was kept of it is here already.
    pub fn arrive(&mut self, oldest: Seq) {
        if let Some(gaps) = &mut self.gaps {
            gaps.under_way.remove(&oldest);
        }
    }

    /// Sets room aside for what is to be kept in memory, if there is any.
    pub fn reserve(&mut self, events: usize, bytes: usize) -> bool {
        let room = self.has_room(events, bytes);
        if room {
            self.reserved += events;
            self.reserved_bytes += bytes;
        }
        room
    }

    pub fn give_back(&mut self, events: usize, bytes: usize) {
        self.reserved -= events;
        self.reserved_bytes -= bytes;
    }

    /// New events went into the store and were not kept.
    pub fn leave(&mut self, oldest: Seq) {
        self.has_more = true;
        if let Some(gaps) = &mut self.gaps {
            gaps.leave(oldest);
        }
    }

    pub fn put(&mut self, work: Work) {
        self.bytes += work.bytes();
        if let Some(twice) = self.works.insert(work.id(), work) {
            self.bytes -= twice.bytes();
        }
    }

    /// The oldest, unless something older may still come.
    pub fn take(&mut self, most: usize) -> Vec<Work> {
        let end = self.gaps.as_ref().and_then(Gaps::first);
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
    pub fn clear(&mut self) -> Vec<Work> {
        (self.bytes, self.has_more) = (0, true);
        if let Some(gaps) = &mut self.gaps {
            gaps.stored = Some(Seq::ZERO);
        }
        std::mem::take(&mut self.works).into_values().collect()
    }

    /// It is worth asking the store: there is room, or nothing can go on without.
    pub fn is_hungry(&self) -> bool {
        self.works.len() < WORKS_MAX / 2 || self.is_stuck()
    }

    /// All that is at hand waits for something in the store.
    fn is_stuck(&self) -> bool {
        let Some(gaps) = &self.gaps else { return false };
        let (Some(stored), Some(first)) = (gaps.stored, self.works.first_key_value()) else { return false };
        !gaps.is_in_doubt() && gaps.first() == Some(stored) && *first.0 >= stored
    }

    /// How many to ask the store for now, if any.
    pub fn ask(&mut self, all: bool) -> Option<usize> {
        let is_full = self.bytes > BYTES_MAX / 2;
        let room = if is_full { 0 } else { WORKS_MAX.saturating_sub(self.works.len()) };
        let wanted = if self.is_stuck() { room.max(OLDER) } else { room };
        if !(all || self.has_more) || (wanted < WORKS_MAX / 2 && !self.is_stuck()) {
            return None;
        }
        self.has_more = false;
        if let Some(gaps) = &mut self.gaps {
            gaps.left = None;
        }
        Some(wanted.min(sekisho_store::CLAIM_MAX))
    }

    /// What the store had is here: all of it, or what is not newer than this.
    pub fn answered(&mut self, newest: Option<Seq>, is_all: bool) {
        let Some(gaps) = &mut self.gaps else { return };
        let next = |newest: Seq| Seq::from_i64(newest.as_i64() + 1);
        let stored = if is_all { None } else { newest.map(next).or(gaps.stored) };
        gaps.stored = stored.into_iter().chain(gaps.left).min();
    }

    /// Whether something may be in the store that should be here.
    pub fn doubt(&mut self, in_doubt: bool) {
        if let Some(gaps) = &mut self.gaps {
            gaps.in_doubt = in_doubt.then(|| gaps.in_doubt.unwrap_or_else(Instant::now));
        }
    }
}

#[cfg(test)]
mod tests {
    use sekisho_core::job::Job;
    use sekisho_core::{Epoch, Time};

    use super::*;

    fn work(id: i64) -> Work {
        Work::claimed(Job::born_with(Seq::from_i64(id), Time::from_ms(1), Epoch(1)), None)
    }

    fn seq(id: i64) -> Seq {
        Seq::from_i64(id)
    }

    fn taken(inbox: &mut Inbox) -> Vec<i64> {
        inbox.take(100).iter().map(|work| work.id().as_i64()).collect()
    }

    /// Asked, and this is what came.
    fn claimed(inbox: &mut Inbox, ids: &[i64], is_all: bool) {
        assert!(inbox.ask(true).is_some());
        ids.iter().for_each(|id| inbox.put(work(*id)));
        inbox.answered(ids.iter().max().map(|id| Seq::from_i64(*id)), is_all);
    }

    fn at_hand() -> Inbox {
        let mut inbox = Inbox::new(true);
        claimed(&mut inbox, &[], true);
        inbox
    }

    #[test]
    fn c4_what_came_before_the_start_goes_first() {
        let mut inbox = Inbox::new(true);
        inbox.put(work(50));
        assert!(taken(&mut inbox).is_empty());
        claimed(&mut inbox, &[1, 2], false);
        assert_eq!(taken(&mut inbox), [1, 2]);
        claimed(&mut inbox, &[3], true);
        assert_eq!(taken(&mut inbox), [3, 50]);
        let mut plain = Inbox::new(false);
        plain.put(work(50));
        assert_eq!(taken(&mut plain), [50], "without order nobody waits");
    }

    #[test]
    fn c4_nothing_overtakes_a_batch_that_is_on_its_way() {
        let mut inbox = at_hand();
        inbox.set_out(seq(1));
        inbox.set_out(seq(2));
        inbox.put(work(2));
        inbox.arrive(seq(2));
        assert!(taken(&mut inbox).is_empty());
        inbox.put(work(1));
        inbox.arrive(seq(1));
        assert_eq!(taken(&mut inbox), [1, 2]);
    }

    #[test]
    fn c4_nothing_overtakes_what_was_left_to_the_store() {
        let mut inbox = at_hand();
        inbox.set_out(seq(1));
        // Asked before it was written: the answer says nothing of it.
        claimed(&mut inbox, &[], true);
        inbox.leave(seq(1));
        inbox.arrive(seq(1));
        inbox.put(work(2));
        assert!(taken(&mut inbox).is_empty());
        // Asked since, and the next was left there before the answer came.
        assert!(inbox.has_more && inbox.ask(false).is_some());
        inbox.put(work(1));
        inbox.leave(seq(3));
        inbox.answered(Some(seq(1)), true);
        inbox.put(work(4));
        assert_eq!(taken(&mut inbox), [1, 2]);
        claimed(&mut inbox, &[3], true);
        assert_eq!(taken(&mut inbox), [3, 4]);
    }

    #[test]
    fn c4_while_an_answer_is_lost_nothing_is_sure_but_not_for_ever() {
        let mut inbox = at_hand();
        inbox.doubt(true);
        inbox.put(work(2));
        claimed(&mut inbox, &[], true);
        assert!(taken(&mut inbox).is_empty());
        inbox.put(work(1));
        inbox.doubt(false);
        assert_eq!(taken(&mut inbox), [1, 2]);
        inbox.put(work(3));
        inbox.gaps.as_mut().unwrap().in_doubt = Instant::now().checked_sub(DOUBT_MAX);
        inbox.doubt(true);
        assert_eq!(taken(&mut inbox), [3], "a second doubt does not begin it anew");
    }

    #[test]
    fn h2_a_full_inbox_asks_only_for_what_all_of_it_waits_for() {
        let mut inbox = Inbox::new(true);
        (1..=WORKS_MAX as i64).for_each(|id| inbox.put(work(1_000 + id)));
        assert!(!inbox.has_room(1, 1) && inbox.is_hungry());
        assert_eq!(inbox.ask(true), Some(OLDER));
        inbox.doubt(true);
        assert_eq!(inbox.ask(true), None, "the store can't end a doubt");
        inbox.doubt(false);
        inbox.answered(Some(seq(1_500)), false);
        assert_eq!(inbox.ask(true), None, "some of it can be settled first");
        assert_eq!(inbox.take(usize::MAX).len(), 500);
        inbox.answered(None, true);
        assert_eq!(inbox.take(usize::MAX).len(), WORKS_MAX - 500);
        assert_eq!(inbox.bytes, 0);
    }
}
