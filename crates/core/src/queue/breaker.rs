//! Whether a destination is asked at all: after many failures in a row it is left alone for a while, then one probe
//! decides.
//!
//! A plain value, stored and shown as JSON. Only failures that blame the destination belong here; which ones do, the
//! caller knows.

use serde::{Deserialize, Serialize};

use crate::time::Time;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Breaker {
    Closed {
        /// In a row.
        failures: u32,
        /// When the first of them was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<Time>,
    },
    Open {
        /// When the first of the failures in a row was that opened it; failed probes don't move it.
        since: Time,
        /// When it was opened, or its last probe failed.
        at: Time,
        until: Time,
        /// Times in a row: each is longer than the one before.
        opened: u32,
        /// What is wrong, where the other side said so; otherwise it failed too often in a row.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// One probe is under way.
    HalfOpen {
        since: Time,
        /// When the probe started.
        at: Time,
        opened: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// So many failures in a row open it; 0 never.
    pub failures: u32,
    pub open_ms: i64,
    /// Doubles each time in a row, up to this.
    pub open_max_ms: i64,
}

/// A probe that never answered is forgotten by then: its node may have died.
const PROBE_FORGOTTEN_MS: i64 = 120_000;

impl Default for Policy {
    fn default() -> Self {
        Self { failures: 30, open_ms: 5_000, open_max_ms: 60_000 }
    }
}

impl Policy {
    fn open_ms(&self, opened: u32) -> i64 {
        let doubled = 2i64.saturating_pow(opened.saturating_sub(1));
        self.open_ms.max(0).saturating_mul(doubled).min(self.open_max_ms.max(0))
    }
}

impl Default for Breaker {
    fn default() -> Self {
        Self::Closed { failures: 0, since: None }
    }
}

impl Breaker {
    /// `closed`, `open` or `half_open`. Compared before and after, it tells a change worth storing and logging.
    pub const fn state(&self) -> &'static str {
        match self {
            Self::Closed { .. } => "closed",
            Self::Open { .. } => "open",
            Self::HalfOpen { .. } => "half_open",
        }
    }

    /// Since when the destination of an open one fails.
    pub const fn since(&self) -> Option<Time> {
        match self {
            Self::Closed { .. } => None,
            Self::Open { since, .. } | Self::HalfOpen { since, .. } => Some(*since),
        }
    }

    /// Neither closed nor trusted again yet.
    pub const fn is_open(&self) -> bool {
        match self {
            Self::Closed { .. } => false,
            Self::Open { .. } | Self::HalfOpen { .. } => true,
        }
    }

    /// May work for this destination start now? Lets exactly one probe through when the time is up.
    pub fn may_start(&mut self, now: Time) -> bool {
        let (due_at, since, at, opened, why) = match self {
            Self::Closed { .. } => return true,
            Self::Open { since, at, until, opened, why } => (*until, *since, *at, *opened, why),
            Self::HalfOpen { since, at, opened, why } => {
                (at.plus_ms(PROBE_FORGOTTEN_MS), *since, *at, *opened, why)
            }
        };
        // A clock that was set back must not keep it open for as long as it jumped.
        if now < due_at && now >= at {
            return false;
        }
        *self = Self::HalfOpen { since, at: now, opened, why: why.take() };
        true
    }

    /// Any answer that does not blame the destination.
    pub fn succeeded(&mut self) {
        // Runs that started before it was shut say nothing new.
        if matches!(self, Self::Open { why: Some(_), .. }) {
            return;
        }
        *self = Self::default();
    }

    pub fn failed(&mut self, policy: &Policy, now: Time) {
        if policy.failures == 0 {
            return self.reset();
        }
        let (since, opened) = match *self {
            Self::Closed { failures, since } => {
                let (failures, since) = (failures.saturating_add(1), since.unwrap_or(now));
                if failures < policy.failures {
                    *self = Self::Closed { failures, since: Some(since) };
                    return;
                }
                (since, 1)
            }
            // Runs that started before it opened say nothing new.
            Self::Open { .. } => return,
            Self::HalfOpen { since, opened, .. } => (since, opened.saturating_add(1)),
        };
        let until = now.plus_ms(policy.open_ms(opened));
        *self = Self::Open { since, at: now, until, opened, why: None };
    }

    /// The other side said that nothing goes before a time, and why.
    pub fn shut(&mut self, why: impl Into<String>, until: Time, now: Time) {
        let since = self.since().unwrap_or(now);
        *self = Self::Open { since, at: now, until, opened: 1, why: Some(why.into()) };
    }

    /// Why it is open, where the other side said so.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Open { why, .. } | Self::HalfOpen { why, .. } => why.as_deref(),
            Self::Closed { .. } => None,
        }
    }

    /// The probe ended without an answer: another may start at once.
    pub fn unanswered(&mut self, now: Time) {
        if let Self::HalfOpen { since, opened, why, .. } = self {
            *self = Self::Open { since: *since, at: now, until: now, opened: *opened, why: why.take() };
        }
    }

    /// When the next probe may start, while none is under way.
    pub const fn next_probe(&self) -> Option<Time> {
        match self {
            Self::Open { until, .. } => Some(*until),
            Self::Closed { .. } | Self::HalfOpen { .. } => None,
        }
    }

    /// The same outage, as another node saw it begin.
    pub fn began(&mut self, earlier: Time) {
        match self {
            Self::Open { since, .. } | Self::HalfOpen { since, .. } => *since = earlier.min(*since),
            Self::Closed { .. } => {}
        }
    }

    /// By hand, or because the policy was turned off.
    pub fn reset(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_ms(1_770_000_000_000);

    fn at(ms: i64) -> Time {
        NOW.plus_ms(ms)
    }

    fn opened() -> Breaker {
        let mut breaker = Breaker::default();
        (0..30).for_each(|_| breaker.failed(&Policy::default(), NOW));
        breaker
    }

    #[test]
    fn c4_only_failures_in_a_row_open_it() {
        let mut breaker = Breaker::default();
        (0..29).for_each(|_| breaker.failed(&Policy::default(), NOW));
        breaker.succeeded();
        (0..29).for_each(|_| breaker.failed(&Policy::default(), NOW));
        assert!(breaker.may_start(NOW) && breaker.state() == "closed");
        breaker.failed(&Policy::default(), NOW);
        assert!(breaker.is_open() && !breaker.may_start(NOW) && !breaker.may_start(at(4_999)));
    }

    #[test]
    fn c4_one_probe_decides() {
        let mut breaker = opened();
        assert!(breaker.may_start(at(5_000)));
        assert_eq!(breaker.state(), "half_open");
        assert!(!breaker.may_start(at(5_000)), "exactly one");
        breaker.succeeded();
        assert_eq!(breaker, Breaker::default());
        assert!(breaker.may_start(at(5_001)));
    }

    #[test]
    fn c4_each_time_in_a_row_is_longer_up_to_the_limit() {
        let mut breaker = opened();
        let mut now = NOW;
        for wait in [5_000, 10_000, 20_000, 40_000, 60_000, 60_000] {
            assert!(!breaker.may_start(now.plus_ms(wait - 1)));
            now = now.plus_ms(wait);
            assert!(breaker.may_start(now), "after {wait} ms");
            breaker.failed(&Policy::default(), now);
        }
        breaker.reset();
        assert_eq!(breaker, Breaker::default());
    }

    #[test]
    fn c4_late_failures_do_not_prolong_it_and_a_lost_probe_is_forgotten() {
        let mut breaker = opened();
        let before = breaker.clone();
        breaker.failed(&Policy::default(), at(3_000));
        assert_eq!(breaker, before);
        assert!(breaker.may_start(at(5_000)));
        assert!(!breaker.may_start(at(5_000 + PROBE_FORGOTTEN_MS - 1)));
        assert!(breaker.may_start(at(5_000 + PROBE_FORGOTTEN_MS)));
        assert!(!breaker.may_start(at(5_000 + PROBE_FORGOTTEN_MS)));
    }

    #[test]
    fn c4_open_since_is_the_first_failure_whatever_the_probes_say() {
        let mut breaker = Breaker::default();
        (0..30).for_each(|n| breaker.failed(&Policy::default(), at(n * 100)));
        assert_eq!(breaker.since(), Some(NOW), "not when it opened");
        let mut now = at(2_900);
        for _ in 0..10 {
            now = breaker.next_probe().unwrap();
            assert!(breaker.may_start(now));
            assert_eq!((breaker.since(), breaker.next_probe()), (Some(NOW), None), "a probe is under way");
            breaker.failed(&Policy::default(), now);
            assert_eq!(breaker.since(), Some(NOW));
        }
        breaker.may_start(breaker.next_probe().unwrap());
        breaker.unanswered(now);
        assert_eq!(breaker.since(), Some(NOW));
        breaker.began(at(-5_000));
        breaker.began(at(5_000));
        assert_eq!(breaker.since(), Some(at(-5_000)), "another node saw it earlier");
        breaker.reset();
        breaker.failed(&Policy { failures: 1, ..Policy::default() }, now);
        assert_eq!(breaker.since(), Some(now), "another outage");
    }

    #[test]
    fn c4_a_clock_set_back_and_absurd_policies_do_not_lock_it() {
        assert!(opened().may_start(at(-3_600_000)));
        let absurd = Policy { failures: 1, open_ms: i64::MAX, open_max_ms: i64::MAX };
        let mut breaker = Breaker::HalfOpen { since: NOW, at: NOW, opened: u32::MAX, why: None };
        breaker.failed(&absurd, NOW);
        assert!(!breaker.may_start(at(1)));
        breaker.failed(&Policy { failures: 0, ..absurd }, NOW);
        assert!(breaker.may_start(NOW), "turned off");
    }

    #[test]
    fn g2_what_was_shut_stays_shut_until_a_probe_says_otherwise() {
        let mut breaker = Breaker::default();
        breaker.shut("bad_credentials", at(60_000), NOW);
        breaker.succeeded();
        assert!(breaker.is_open(), "a run that started before");
        assert!(!breaker.may_start(at(59_999)) && breaker.may_start(at(60_000)));
        assert_eq!(breaker.why(), Some("bad_credentials"), "the probe knows what it looks for");
        breaker.succeeded();
        assert_eq!(breaker, Breaker::default());
    }

    #[test]
    fn c4_it_is_stored_and_read_back() {
        let mut half_open = opened();
        half_open.may_start(at(5_000));
        for breaker in [Breaker::default(), opened(), half_open] {
            let json = serde_json::to_string(&breaker).unwrap();
            assert!(json.contains(breaker.state()), "{json}");
            assert_eq!(serde_json::from_str::<Breaker>(&json).unwrap(), breaker);
        }
    }
}
