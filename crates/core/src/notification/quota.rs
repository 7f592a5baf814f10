//! How fast and how much a channel may send, on all nodes together: moments to send at, reserved in blocks.
//!
//! Whoever wants to send takes the next free moments and moves the mark behind them, by a write that only one node can
//! win. So there are no bursts, whoever sends, and a node that dies takes no more than its block with it.

use serde::{Deserialize, Serialize};

use crate::time::{DAY_MS, Time};

/// What was given out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Quota {
    /// The next free moment, in milliseconds.
    pub next_ms: i64,
    /// The day (UTC, since 1970) that `used` belongs to.
    pub day: i64,
    pub used: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Between two sends.
    pub gap_ms: i64,
    /// On one day; `None` is no limit.
    pub daily: Option<u64>,
}

impl Limits {
    /// So many a second at most, and never closer than `spacing_ms`.
    pub fn new(per_second: Option<u32>, spacing_ms: i64, daily: Option<u64>) -> Self {
        let by_rate = per_second.map_or(0, |rate| i64::from(1_000_u32.div_ceil(rate.max(1))));
        Self { gap_ms: by_rate.max(spacing_ms), daily }
    }

    /// Moments to reserve at once, at most: what a node that dies takes with it, and others wait behind.
    pub fn block(self) -> usize {
        (BLOCK_MS / self.gap_ms.max(1)).clamp(1, BLOCK_MAX) as usize
    }

    /// Nothing to keep to.
    pub const fn is_free(self) -> bool {
        self.gap_ms == 0 && self.daily.is_none()
    }
}

#[derive(Debug, PartialEq, Eq)]
pub enum Reserved {
    /// Send at these moments; write this down first.
    At(Vec<Time>, Quota),
    /// The day's quota is used up; there is more from this moment on.
    UsedUp { until: Time },
}

const BLOCK_MS: i64 = 2_000;
const BLOCK_MAX: i64 = 10;
/// A mark further ahead than this, and than some blocks, was left by a clock that was wrong.
const AHEAD_MAX_MS: i64 = 60_000;
const AHEAD_MAX_GAPS: i64 = 20;

impl Quota {
    /// Up to `wanted` moments from now on.
    pub fn reserve(&self, limits: Limits, wanted: usize, now: Time) -> Reserved {
        let now_ms = now.ms();
        let today = now_ms.div_euclid(DAY_MS);
        let used = if self.day == today { self.used } else { 0 };
        let left = limits.daily.map_or(u64::MAX, |daily| daily.saturating_sub(used));
        if left == 0 {
            return Reserved::UsedUp { until: Time::from_ms((today + 1) * DAY_MS) };
        }
        let count = (wanted.max(1) as u64).min(left) as i64;
        let mark = self.next_ms.saturating_sub(now_ms);
        let ahead_max_ms = AHEAD_MAX_MS.max(limits.gap_ms.saturating_mul(AHEAD_MAX_GAPS));
        let first = if (0..=ahead_max_ms).contains(&mark) { self.next_ms } else { now_ms };
        let moments = (0..count).map(|n| Time::from_ms(first + n * limits.gap_ms)).collect();
        let next_ms = first + count * limits.gap_ms;
        Reserved::At(moments, Self { next_ms, day: today, used: used + count as u64 })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Time = Time::from_ms(1_780_000_000_000);

    #[test]
    fn g2_ses_is_sent_to_every_100_ms_and_no_more_than_its_day() {
        assert_eq!(Limits::new(Some(14), 100, Some(50_000)).gap_ms, 100);
        assert_eq!(Limits::new(Some(5), 100, None).gap_ms, 200);
        assert_eq!(Limits::new(Some(14), 0, None).gap_ms, 72, "never above 14 a second");
        let limits = Limits::new(Some(14), 100, Some(3));
        let Reserved::At(moments, quota) = Quota::default().reserve(limits, 2, NOW) else {
            panic!("there is room")
        };
        assert_eq!(moments, [NOW, NOW.plus_ms(100)]);
        let Reserved::At(moments, quota) = quota.reserve(limits, 10, NOW.plus_ms(50)) else {
            panic!("one is left")
        };
        assert_eq!(moments, [NOW.plus_ms(200)]);
        let Reserved::UsedUp { until } = quota.reserve(limits, 1, NOW) else { panic!("used up") };
        assert!(until > NOW && until.ms() % DAY_MS == 0);
        assert!(matches!(quota.reserve(limits, 1, until), Reserved::At(..)), "a new day");
    }

    #[test]
    fn g2_a_mark_of_a_wrong_clock_holds_nothing_up() {
        let limits = Limits::new(None, 100, None);
        let ahead = Quota { next_ms: NOW.ms() + 3_600_000, ..Quota::default() };
        let Reserved::At(moments, _) = ahead.reserve(limits, 1, NOW) else { panic!("there is room") };
        assert_eq!(moments, [NOW]);
    }

    #[test]
    fn g2_a_long_spacing_is_kept_too() {
        let limits = Limits::new(None, 120_000, None);
        assert_eq!(limits.block(), 1);
        let Reserved::At(_, quota) = Quota::default().reserve(limits, 1, NOW) else {
            panic!("there is room")
        };
        let Reserved::At(next, _) = quota.reserve(limits, 1, NOW.plus_ms(10)) else {
            panic!("there is room")
        };
        assert_eq!(next, [NOW.plus_ms(120_000)]);
        assert_eq!(Limits::new(Some(14), 100, None).block(), 10);
    }

    proptest! {
        #[test]
        fn g2_moments_are_never_closer_than_the_gap(steps in prop::collection::vec((0i64..500, 1usize..10), 1..60)) {
            let limits = Limits::new(Some(14), 100, None);
            let (mut quota, mut now, mut all) = (Quota::default(), NOW, Vec::new());
            for (wait, wanted) in steps {
                now = now.plus_ms(wait);
                let Reserved::At(moments, next) = quota.reserve(limits, wanted, now) else { panic!("no daily limit") };
                all.extend(moments);
                quota = next;
            }
            // At most 59 steps of 9 moments are 54 s: no mark is taken for that of a wrong clock.
            for pair in all.windows(2) {
                prop_assert!(pair[1].ms() - pair[0].ms() >= 100);
            }
        }
    }
}
