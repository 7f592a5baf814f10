//! One lane of this node: what waits and runs in it, its room, its rate and its breaker.

use std::collections::VecDeque;

use sekisho_core::Time;
use sekisho_core::queue::Breaker;
use sekisho_core::queue::breaker::Policy;
use tokio::time::Instant;

use super::work::Work;
use crate::limits::Rate;

/// What the bodies of one lane may take, but for those of a last claim.
pub const LANE_BYTES_MAX: usize = 32 << 20;

/// How a lane may be used.
#[derive(Clone, Debug)]
pub struct LanePolicy {
    pub concurrency: usize,
    pub rate: Option<u32>,
    pub breaker: Policy,
}

pub struct LaneState {
    pub policy: LanePolicy,
    pub running: usize,
    /// Promised to jobs that are being queued.
    pub reserved: usize,
    pub waiting: VecDeque<Work>,
    /// Of the events of those that run and wait.
    pub bytes: usize,
    pub rate: Option<Rate>,
    pub breaker: Breaker,
    /// When this node last changed it in kind.
    pub judged: Option<Instant>,
    /// Something of this lane became a dead letter here that may come back when the destination answers again.
    pub has_dead: bool,
    /// When that was last made use of.
    pub brought_back: Option<Instant>,
    /// The store holds more than fitted.
    pub has_more: bool,
}

impl LaneState {
    pub fn new(policy: LanePolicy) -> Self {
        let rate = policy.rate.map(Rate::per_second);
        let (waiting, breaker) = (VecDeque::new(), Breaker::default());
        Self {
            policy,
            running: 0,
            reserved: 0,
            waiting,
            bytes: 0,
            rate,
            breaker,
            judged: None,
            has_dead: false,
            brought_back: None,
            has_more: true,
        }
    }

    /// Running, and as many again ready to run, as far as memory allows.
    pub fn room(&self) -> usize {
        if self.bytes >= LANE_BYTES_MAX {
            return 0;
        }
        (2 * self.policy.concurrency).saturating_sub(self.running + self.reserved + self.waiting.len())
    }

    /// Asked for in halves, so that not every job that ends costs a question.
    pub fn wanted(&self, now: Time) -> usize {
        if self.breaker.is_open() {
            let idle = self.running + self.reserved + self.waiting.len() == 0;
            return usize::from(idle && self.breaker.clone().may_start(now));
        }
        if self.room() >= self.policy.concurrency { self.room() } else { 0 }
    }

    pub fn push(&mut self, work: Work) {
        self.bytes += work.bytes();
        self.waiting.push_back(work);
    }

    pub fn take_waiting(&mut self) -> Vec<Work> {
        self.bytes -= self.waiting.iter().map(Work::bytes).sum::<usize>();
        self.waiting.drain(..).collect()
    }
}
