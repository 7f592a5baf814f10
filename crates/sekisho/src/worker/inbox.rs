//! What waits to be settled, oldest first.
//!
//! Most of it comes from memory as soon as it is stored. Some is in the store alone: from before the start, because there
//! was no room here, or because an answer was lost. Where a route asks for order, nothing is settled while something
//! older may still be there, or on its way there.

use std::collections::{BTreeMap, BTreeSet};

use sekisho_core::Seq;

use super::desk::Work;

/// Jobs that may wait in memory.
pub const WORKS_MAX: usize = 4_096;
/// And what their bodies may take.
const BYTES_MAX: usize = 64 << 20;
/// Asked for even if there is no room, because all that fills it waits for these.
const OLDER: usize = 64;

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

/// New events that are stored together.
#[derive(Clone, Copy, Debug)]
pub struct Batch {
    pub oldest: Seq,
    pub events: usize,
    pub bytes: usize,
}

/// What may be older than something at hand.
struct Gaps {
    /// The oldest that may be in the store alone.
    stored: Option<Seq>,
    /// The oldest that was left there since the store was last asked.
    left: Option<Seq>,
    /// The oldest of each batch on its way there.
    under_way: BTreeSet<Seq>,
    /// An answer was lost: any may be there.
    in_doubt: bool,
}

impl Gaps {
    /// Only what is older may be settled.
    fn first(&self) -> Option<Seq> {
        let doubt = self.in_doubt.then_some(Seq::ZERO);
        [doubt, self.stored, self.under_way.first().copied()].into_iter().flatten().min()
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
            Gaps { stored: Some(Seq::ZERO), left: None, under_way: BTreeSet::new(), in_doubt: false };
        Self { has_more: true, gaps: keeps_order.then_some(unknown), ..Self::default() }
    }

    /// Whether so many new events can be settled from memory. If not, they will be in the store alone.
    pub fn has_room(&mut self, events: usize, bytes: usize) -> bool {
        let room = self.works.len() + self.reserved + events <= WORKS_MAX
            && self.bytes + self.reserved_bytes + bytes <= BYTES_MAX;
        self.has_more |= !room;
        room
    }

    /// A batch is about to be stored. True if room was set aside, so that it may be kept.
    pub fn announce(&mut self, batch: Batch, may_keep: bool) -> bool {
        if let Some(gaps) = &mut self.gaps {
            gaps.under_way.insert(batch.oldest);
        }
        let keeps = may_keep && self.has_room(batch.events, batch.bytes);
        if keeps {
            self.reserved += batch.events;
            self.reserved_bytes += batch.bytes;
        }
        keeps
    }

    /// The batch was stored, or given up. Order matters: what was kept of it is here already.
    pub fn conclude(&mut self, batch: Batch, keeps: bool) {
        if let Some(gaps) = &mut self.gaps {
            gaps.under_way.remove(&batch.oldest);
        }
        if keeps {
            self.reserved -= batch.events;
            self.reserved_bytes -= batch.bytes;
        } else {
            self.leave(batch.oldest);
        }
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
        self.works.len() < WORKS_MAX / 2 || self.is_behind()
    }

    fn is_behind(&self) -> bool {
        self.gaps.as_ref().is_some_and(|gaps| gaps.stored.is_some())
    }

    /// How many to ask the store for now, if any.
    pub fn ask(&mut self, all: bool) -> Option<usize> {
        let is_full = self.bytes > BYTES_MAX / 2;
        let room = if is_full { 0 } else { WORKS_MAX.saturating_sub(self.works.len()) };
        let wanted = if self.is_behind() { room.max(OLDER) } else { room };
        if !(all || self.has_more) || (wanted < WORKS_MAX / 2 && !self.is_behind()) {
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
            gaps.in_doubt = in_doubt;
        }
    }
}

#[cfg(test)]
mod tests {
    use sekisho_core::change::Job;
    use sekisho_core::{Epoch, Time};

    use super::*;

    fn work(id: i64) -> Work {
        Work::claimed(Job::born_with(Seq::from_i64(id), Time::from_ms(1), Epoch(1)), None)
    }

    fn batch(oldest: i64) -> Batch {
        Batch { oldest: Seq::from_i64(oldest), events: 1, bytes: 10 }
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
        assert!(inbox.announce(batch(50), true));
        inbox.put(work(50));
        inbox.conclude(batch(50), true);
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
        assert!(inbox.announce(batch(1), true) && inbox.announce(batch(2), true));
        inbox.put(work(2));
        inbox.conclude(batch(2), true);
        assert!(taken(&mut inbox).is_empty());
        inbox.put(work(1));
        inbox.conclude(batch(1), true);
        assert_eq!(taken(&mut inbox), [1, 2]);
    }

    #[test]
    fn c4_nothing_overtakes_what_was_left_to_the_store() {
        let mut inbox = at_hand();
        assert!(!inbox.announce(batch(1), false));
        // Asked before it was written: the answer says nothing of it.
        claimed(&mut inbox, &[], true);
        inbox.conclude(batch(1), false);
        inbox.put(work(2));
        assert!(taken(&mut inbox).is_empty());
        // Asked since, and the next was left there before the answer came.
        assert!(inbox.has_more && inbox.ask(false).is_some());
        inbox.put(work(1));
        inbox.leave(Seq::from_i64(3));
        inbox.answered(Some(Seq::from_i64(1)), true);
        inbox.put(work(4));
        assert_eq!(taken(&mut inbox), [1, 2]);
        claimed(&mut inbox, &[3], true);
        assert_eq!(taken(&mut inbox), [3, 4]);
    }

    #[test]
    fn c4_while_an_answer_is_lost_nothing_is_sure() {
        let mut inbox = at_hand();
        inbox.doubt(true);
        inbox.put(work(2));
        claimed(&mut inbox, &[], true);
        assert!(taken(&mut inbox).is_empty());
        inbox.put(work(1));
        inbox.doubt(false);
        assert_eq!(taken(&mut inbox), [1, 2]);
    }

    #[test]
    fn c4_a_full_inbox_still_asks_for_what_it_waits_for() {
        let mut inbox = Inbox::new(true);
        (1..=WORKS_MAX as i64).for_each(|id| inbox.put(work(1_000 + id)));
        assert!(!inbox.has_room(1, 1) && inbox.is_hungry());
        assert_eq!(inbox.ask(true), Some(OLDER));
        inbox.answered(None, true);
        assert_eq!(inbox.ask(true), None, "there is no room, and nothing older");
        assert_eq!(inbox.take(usize::MAX).len(), WORKS_MAX);
        assert_eq!(inbox.bytes, 0);
    }
}
