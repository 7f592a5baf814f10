//! When a failed run may run again: exponential, with a cap, a little jitter, and what the other side asked for.
//!
//! The jitter is a hash of the work's own number and its run, so that the same failure always gives the same time and
//! a thousand failures of one moment don't come back in one moment.

use crate::time::Time;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Runs after the first.
    pub retries: u32,
    pub first_ms: i64,
    pub factor: u32,
    pub cap_ms: i64,
    /// Up to this much of the wait is added.
    pub jitter_percent: u32,
}

/// The longest wait that an answer may ask for.
pub const RETRY_AFTER_MAX_MS: i64 = 24 * 3_600_000;

impl Default for Retry {
    fn default() -> Self {
        Self { retries: 3, first_ms: 1_000, factor: 2, cap_ms: 3_600_000, jitter_percent: 25 }
    }
}

impl Retry {
    /// When to run again; `None` when the retries are used up. `tries` counts the runs so far, the failed one
    /// included.
    pub fn next(&self, tries: i32, salt: u64, now: Time, retry_after_ms: Option<i64>) -> Option<Time> {
        let tries = u32::try_from(tries).unwrap_or(0).max(1);
        if tries > self.retries {
            return None;
        }
        let asked = retry_after_ms.unwrap_or(0).min(RETRY_AFTER_MAX_MS);
        let wait = self.wait_ms(tries).max(asked);
        Some(now.plus_ms(wait).plus_ms(self.jitter_ms(wait, salt, tries)))
    }

    /// The wait after so many runs, before jitter.
    fn wait_ms(&self, tries: u32) -> i64 {
        let growth = i64::from(self.factor).saturating_pow(tries - 1);
        self.first_ms.max(0).saturating_mul(growth).min(self.cap_ms.max(0))
    }

    fn jitter_ms(&self, wait_ms: i64, salt: u64, tries: u32) -> i64 {
        let most = i128::from(wait_ms) * i128::from(self.jitter_percent) / 100;
        let jitter = i128::from(mix(salt ^ mix(u64::from(tries)))) % (most + 1);
        i64::try_from(jitter).unwrap_or(i64::MAX)
    }
}

/// Spreads near numbers far apart (SplitMix64's last steps).
fn mix(mut number: u64) -> u64 {
    number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Time = Time::from_ms(1_770_000_000_000);

    #[test]
    fn b3_by_default_three_retries_after_about_one_two_and_four_seconds() {
        let waits: Vec<_> = (1..=4).map(|tries| Retry::default().next(tries, 7, NOW, None)).collect();
        for (n, wait) in [1_000, 2_000, 4_000].into_iter().enumerate() {
            let at = waits[n].unwrap().ms() - NOW.ms();
            assert!((wait..=wait * 5 / 4).contains(&at), "retry {n} after {at} ms");
        }
        assert_eq!(waits[3], None);
    }

    #[test]
    fn b3_what_failed_together_does_not_come_back_together() {
        let times: std::collections::BTreeSet<_> =
            (0..1_000).map(|salt| Retry::default().next(3, salt, NOW, None)).collect();
        assert!(times.len() > 500, "{} different times", times.len());
    }

    #[test]
    fn b3_a_retry_after_is_honoured_within_a_day() {
        let at = |asked| Retry::default().next(1, 7, NOW, Some(asked)).unwrap().ms() - NOW.ms();
        assert!((60_000..=75_000).contains(&at(60_000)));
        assert!((1_000..=1_250).contains(&at(10)), "a shorter one does not shorten the wait");
        assert!((1_000..=1_250).contains(&at(-5)));
        assert!((RETRY_AFTER_MAX_MS..=RETRY_AFTER_MAX_MS / 4 * 5).contains(&at(i64::MAX)));
    }

    #[test]
    fn b3_absurd_policies_and_counts_do_not_overflow() {
        let absurd = Retry {
            retries: u32::MAX,
            first_ms: i64::MAX,
            factor: u32::MAX,
            cap_ms: i64::MAX,
            jitter_percent: u32::MAX,
        };
        for tries in [i32::MIN, 0, 1, i32::MAX] {
            assert_eq!(absurd.next(tries, u64::MAX, NOW, Some(i64::MAX)), Some(Time::from_ms(i64::MAX)));
        }
        let backwards = Retry { first_ms: -5, cap_ms: -5, factor: 0, ..Retry::default() };
        assert_eq!(backwards.next(2, 7, NOW, None), Some(NOW));
        assert_eq!(Retry { retries: 0, ..Retry::default() }.next(1, 7, NOW, None), None);
    }

    proptest! {
        #[test]
        fn b3_a_retry_is_never_too_early_nor_too_late(
            tries in 1..=40i32,
            salt: u64,
            first_ms in 0..100_000i64,
            factor in 1..10u32,
            cap_ms in 0..10_000_000i64,
            asked in prop::option::of(0..200_000_000i64),
        ) {
            let retry = Retry { retries: 40, first_ms, factor, cap_ms, jitter_percent: 25 };
            let wait = retry.wait_ms(tries as u32).max(asked.unwrap_or(0).min(RETRY_AFTER_MAX_MS));
            let at = retry.next(tries, salt, NOW, asked).unwrap();
            prop_assert!(at >= NOW.plus_ms(wait));
            prop_assert!(at <= NOW.plus_ms(wait + wait / 4));
            prop_assert!(wait <= cap_ms.max(RETRY_AFTER_MAX_MS));
            prop_assert_eq!(Some(at), retry.next(tries, salt, NOW, asked), "the same failure, the same time");
            prop_assert_eq!(retry.next(41, salt, NOW, asked), None);
        }

        #[test]
        fn b3_waits_grow_until_the_cap(salt: u64, first_ms in 1..10_000i64, factor in 2..5u32, tries in 1..20i32) {
            let retry = Retry { retries: 40, first_ms, factor, ..Retry::default() };
            let (sooner, later) = (retry.next(tries, salt, NOW, None), retry.next(tries + 1, salt, NOW, None));
            prop_assert!(retry.wait_ms(tries as u32 + 1) >= retry.wait_ms(tries as u32));
            // Growth by a factor of two or more outruns a quarter of jitter.
            prop_assert!(later > sooner || retry.wait_ms(tries as u32 + 1) == retry.cap_ms);
        }
    }
}
