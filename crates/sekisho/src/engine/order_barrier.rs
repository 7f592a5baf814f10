//! Where a route asks for order, nothing is settled while something older may still be in the store alone, or on its way
//! there. This is what is known of such gaps.

use std::collections::BTreeSet;
use std::time::Duration;

use sekisho_core::Seq;
use tokio::time::Instant;

pub struct OrderBarrier {
    /// The oldest that may be in the store alone.
    pub stored: Option<Seq>,
    /// The oldest that was left there since the store was last asked.
    pub left: Option<Seq>,
    /// The oldest of each batch on its way there.
    pub under_way: BTreeSet<Seq>,
    /// Since when any may be there, because an answer was lost.
    pub in_doubt: Option<Instant>,
    /// So long may a doubt hold everything up.
    doubt_max: Duration,
}

impl OrderBarrier {
    /// At a start anything may be in the store.
    pub fn unknown(doubt_max: Duration) -> Self {
        let under_way = BTreeSet::new();
        Self { stored: Some(Seq::ZERO), left: None, under_way, in_doubt: None, doubt_max }
    }

    /// Only what is older may be settled.
    pub fn first(&self) -> Option<Seq> {
        let doubt = self.is_in_doubt().then_some(Seq::ZERO);
        [doubt, self.stored, self.under_way.first().copied()].into_iter().flatten().min()
    }

    pub fn is_in_doubt(&self) -> bool {
        self.in_doubt.is_some_and(|since| since.elapsed() < self.doubt_max)
    }

    pub fn leave(&mut self, oldest: Seq) {
        self.left = older(self.left, oldest);
        self.stored = older(self.stored, oldest);
    }

    /// What the store had is here: all of it, or what is not newer than this.
    pub fn answered(&mut self, newest: Option<Seq>, is_all: bool) {
        let next = |newest: Seq| Seq::from_i64(newest.as_i64() + 1);
        let stored = if is_all { None } else { newest.map(next).or(self.stored) };
        self.stored = stored.into_iter().chain(self.left).min();
    }

    /// A second doubt does not begin the first anew.
    pub fn set_doubt(&mut self, in_doubt: bool) {
        self.in_doubt = in_doubt.then(|| self.in_doubt.unwrap_or_else(Instant::now));
    }
}

fn older(one: Option<Seq>, other: Seq) -> Option<Seq> {
    Some(one.map_or(other, |one| one.min(other)))
}
