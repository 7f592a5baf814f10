//! What a load counts while it runs.

use std::collections::{BTreeMap, BTreeSet};

use hdrhistogram::Histogram;
use std::time::Instant;

use super::LATENCY_MAX_US;

pub struct Tally {
    pub statuses: BTreeMap<u16, u64>,
    pub unknown: u64,
    pub unsent: u64,
    pub connects: u64,
    pub connects_refused: u64,
    pub accepted: Histogram<u64>,
    pub refused: Histogram<u64>,
    pub last_answer: Option<Instant>,
    pub acknowledged: Vec<u64>,
    pub open: BTreeMap<u64, RequestOutcome>,
    /// Acknowledged, but not at the first try.
    pub resent: BTreeSet<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestOutcome {
    Unknown,
    Refused,
}

impl Tally {
    pub fn new() -> Self {
        let histogram = || Histogram::new_with_bounds(1, LATENCY_MAX_US, 3).expect("these bounds are valid");
        Self {
            statuses: BTreeMap::new(),
            unknown: 0,
            unsent: 0,
            connects: 0,
            connects_refused: 0,
            accepted: histogram(),
            refused: histogram(),
            last_answer: None,
            acknowledged: Vec::new(),
            open: BTreeMap::new(),
            resent: BTreeSet::new(),
        }
    }

    /// How an event was answered.
    pub fn note(&mut self, n: u64, accepted: bool) {
        if !accepted {
            // An earlier attempt of unknown outcome may have been stored: no later refusal undoes that.
            self.open.entry(n).or_insert(RequestOutcome::Refused);
            return;
        }
        self.acknowledged.push(n);
        if self.open.remove(&n).is_some() {
            self.resent.insert(n);
        }
    }
}
