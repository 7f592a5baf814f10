//! Taking, keeping and giving back places of one slot. What was loaded of its blocks is worked on; which of them must be
//! loaded next is an answer.

use std::collections::BTreeMap;

use super::{Block, Claim, Slot};
use crate::time::Time;

/// A slot with those of its blocks that are known.
#[derive(Debug)]
pub struct Places<'s> {
    pub slot: &'s Slot,
    pub blocks: &'s mut BTreeMap<u32, Block>,
    pub at: Time,
    /// How long after its time a hold still keeps its places.
    pub grace_ms: i64,
}

/// Too few places are free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    pub free: u32,
    /// When the next hold ends, if nobody pays it.
    pub free_at: Option<Time>,
}

/// Why places were not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Untaken {
    Full(Full),
    /// These blocks must be known first.
    Unknown(Vec<u32>),
}

impl Places<'_> {
    /// Takes places for a reservation, in its first block and then in those that follow; says how many in which. Claims that
    /// are over make room there and then.
    pub fn take(&mut self, reservation: &str, claim: &Claim) -> Result<BTreeMap<u32, u32>, Untaken> {
        let (count, first) = (self.slot.blocks(), self.slot.first_block(reservation));
        let mut missing = claim.quantity;
        let mut parts = BTreeMap::new();
        for step in 0..count {
            let n = (first + step) % count;
            let Some(free) = self.free_of(n, reservation) else {
                // Each time as many again as were looked through: a full slot is known in a few rounds.
                let more = (0..(step * 3).max(1)).map(|more| (first + step + more) % count);
                let unknown = more.take(count as usize).filter(|n| !self.blocks.contains_key(n));
                return Err(Untaken::Unknown(unknown.collect()));
            };
            let part = free.min(missing);
            if part > 0 {
                parts.insert(n, part);
                missing -= part;
            }
            if missing == 0 {
                break;
            }
        }
        if missing > 0 {
            return Err(Untaken::Full(self.full()));
        }
        // What it held before, it holds no longer beside this.
        self.free(reservation);
        for (n, quantity) in &parts {
            let (at, grace_ms) = (self.at, self.grace_ms);
            let block = self.blocks.get_mut(n).expect("it was looked at");
            block.0.retain(|_, claim| claim.holds(at, grace_ms));
            block.0.insert(reservation.to_owned(), Claim { quantity: *quantity, ..claim.clone() });
        }
        Ok(parts)
    }

    /// Free places of a block for a reservation; what it holds there itself counts as free.
    fn free_of(&self, n: u32, reservation: &str) -> Option<u32> {
        let block = self.blocks.get(&n)?;
        let own = block.0.get(reservation).filter(|claim| claim.holds(self.at, self.grace_ms));
        let taken = block.taken(self.at, self.grace_ms).all() - own.map_or(0, |claim| claim.quantity);
        Some(self.slot.places_of(n).saturating_sub(taken))
    }

    fn full(&self) -> Full {
        let free = |(n, block): (&u32, &Block)| {
            self.slot.places_of(*n).saturating_sub(block.taken(self.at, self.grace_ms).all())
        };
        Full {
            free: self.blocks.iter().map(free).fold(0, u32::saturating_add),
            free_at: self.blocks.values().filter_map(|block| block.next_free(self.at, self.grace_ms)).min(),
        }
    }

    /// Whether every part of a claim is still there, and still counts.
    pub fn keeps(&self, reservation: &str, number: u32, parts: &BTreeMap<u32, u32>) -> bool {
        let is_there = |(n, quantity): (&u32, &u32)| {
            let claim = self.blocks.get(n).and_then(|block| block.0.get(reservation));
            claim.is_some_and(|claim| {
                claim.number == number && claim.quantity == *quantity && claim.holds(self.at, self.grace_ms)
            })
        };
        !parts.is_empty() && parts.iter().all(is_there)
    }

    /// Changes a claim wherever it has parts.
    pub fn change(&mut self, reservation: &str, number: u32, change: impl Fn(&mut Claim)) {
        for block in self.blocks.values_mut() {
            if let Some(claim) = block.0.get_mut(reservation).filter(|claim| claim.number == number) {
                change(claim);
            }
        }
    }

    /// Gives back the places of every claim of a reservation.
    pub fn free(&mut self, reservation: &str) {
        for block in self.blocks.values_mut() {
            block.0.remove(reservation);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_ms(1_780_000_000_000);
    const GRACE: i64 = 120_000;

    fn slot(capacity: u32) -> Slot {
        Slot { capacity, ..Slot::default() }
    }

    fn empty(slot: &Slot) -> BTreeMap<u32, Block> {
        (0..slot.blocks()).map(|n| (n, Block::default())).collect()
    }

    fn places<'s>(slot: &'s Slot, blocks: &'s mut BTreeMap<u32, Block>) -> Places<'s> {
        Places { slot, blocks, at: NOW, grace_ms: GRACE }
    }

    fn hold(quantity: u32) -> Claim {
        Claim { number: 1, quantity, until: NOW.plus_ms(60_000), sold: false }
    }

    fn taken(places: &Places<'_>) -> u32 {
        places.blocks.values().map(|block| block.taken(places.at, GRACE).all()).sum()
    }

    #[test]
    fn f1_the_last_place_is_taken_once() {
        let slot = slot(1);
        let mut blocks = empty(&slot);
        let mut places = places(&slot, &mut blocks);
        assert_eq!(places.take("rsv_1", &hold(1)), Ok([(0, 1)].into()));
        let full = Full { free: 0, free_at: Some(NOW.plus_ms(60_000 + GRACE)) };
        assert_eq!(places.take("rsv_2", &hold(1)), Err(Untaken::Full(full)));
        // The same again is no second place.
        assert_eq!(places.take("rsv_1", &hold(1)), Ok([(0, 1)].into()));
        assert_eq!(taken(&places), 1);
    }

    #[test]
    fn f1_a_hold_that_is_over_makes_room_with_no_sweep_and_not_before_its_grace() {
        let slot = slot(1);
        let mut blocks = empty(&slot);
        let mut places = places(&slot, &mut blocks);
        places.take("rsv_1", &hold(1)).unwrap();
        places.at = NOW.plus_ms(60_000 + GRACE - 1);
        assert!(matches!(places.take("rsv_2", &hold(1)), Err(Untaken::Full(_))));
        places.at = NOW.plus_ms(60_000 + GRACE);
        places.take("rsv_2", &Claim { until: places.at.plus_ms(1), ..hold(1) }).unwrap();
        assert_eq!(places.blocks[&0].0.keys().collect::<Vec<_>>(), ["rsv_2"]);
    }

    #[test]
    fn f1_what_is_sold_never_lapses() {
        let slot = slot(2);
        let mut blocks = empty(&slot);
        let mut places = places(&slot, &mut blocks);
        places.take("rsv_1", &hold(2)).unwrap();
        places.change("rsv_1", 1, |claim| claim.sold = true);
        places.at = NOW.plus_ms(i64::from(u32::MAX));
        assert!(places.keeps("rsv_1", 1, &[(0, 2)].into()));
        assert_eq!(places.take("rsv_2", &hold(1)), Err(Untaken::Full(Full { free: 0, free_at: None })));
    }

    #[test]
    fn f1_a_claim_may_lie_in_several_blocks_and_all_places_can_be_sold() {
        let slot = slot(600);
        assert_eq!((slot.blocks(), slot.places_of(0), slot.places_of(2)), (3, 256, 88));
        let mut blocks = empty(&slot);
        let mut places = places(&slot, &mut blocks);
        let mut held = 0;
        for n in 0..85 {
            let claim = hold(7);
            let parts = places.take(&format!("rsv_{n}"), &claim).unwrap();
            assert_eq!(parts.values().sum::<u32>(), 7);
            held += 7;
            assert_eq!(taken(&places), held);
        }
        // 5 are left, wherever they lie.
        assert_eq!(
            places.take("rsv_x", &hold(7)).unwrap_err(),
            Untaken::Full(Full { free: 5, ..places.full() })
        );
        places.take("rsv_y", &hold(5)).unwrap();
        for (n, block) in &*places.blocks {
            assert_eq!(block.taken(NOW, GRACE).all(), slot.places_of(*n));
        }
        places.free("rsv_7");
        assert_eq!(taken(&places), 593);
    }

    #[test]
    fn f1_blocks_are_asked_for_few_at_a_time() {
        let slot = slot(100_000);
        let mut blocks = BTreeMap::new();
        let mut places = places(&slot, &mut blocks);
        let full = Block([("other".to_owned(), Claim { quantity: 256, sold: true, ..hold(1) })].into());
        let mut rounds = 0;
        loop {
            match places.take("rsv_1", &hold(1)) {
                Err(Untaken::Unknown(more)) => {
                    assert!(!more.is_empty());
                    places.blocks.extend(more.into_iter().map(|n| (n, full.clone())));
                }
                other => break assert_eq!(other, Err(Untaken::Full(places.full()))),
            }
            rounds += 1;
        }
        assert_eq!(places.blocks.len(), 391);
        assert!(rounds < 10, "{rounds}");
    }
}
