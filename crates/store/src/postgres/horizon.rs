//! From where a lane is looked through. While somebody holds an old snapshot, the index keeps its entries of jobs that are
//! long done, and a look from the beginning passes all of them: every claim would take longer than the one before.
//!
//! So, once looks are slow, a whole one may take a fiftieth of the time, and between two of them a claim begins where the last
//! one ended. What lies further back waits for the next whole look, and nothing else changes.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use sekisho_core::Time;
use sekisho_core::change::Lane;

/// Looks are slow when each of the last ones took longer than this: one alone may have waited for the processor.
const SLOW: Duration = Duration::from_millis(3);
const LAST: usize = 8;
/// What a whole look took, it may take again after so many times as long.
const REST: u32 = 50;
/// A short look begins so long before now at the latest: jobs are written a moment after they are due, and the clocks of
/// nodes differ.
const BACK_MS: i64 = 1_000;

#[derive(Default)]
pub struct Horizon {
    /// Where the next short look through a lane begins. Kept only while looks are slow.
    starts: BTreeMap<Lane, Time>,
    /// What the last whole looks took.
    took: VecDeque<Duration>,
    next_whole: Option<Instant>,
}

impl Horizon {
    pub fn allows_whole(&self, now: Instant) -> bool {
        self.next_whole.is_none_or(|next| now >= next)
    }

    /// A short look at this lane begins here.
    pub fn of(&self, lane: &Lane) -> Time {
        self.starts.get(lane).copied().unwrap_or(Time::from_ms(i64::MIN))
    }

    pub fn looked_whole(&mut self, now: Instant, took: Duration) {
        self.took.push_back(took);
        if self.took.len() > LAST {
            self.took.pop_front();
        }
        let slow = self.took.len() == LAST && self.took.iter().all(|took| *took > SLOW);
        self.next_whole = slow.then(|| now + took * REST);
        if !slow {
            self.starts.clear();
        }
    }

    /// A look took all that was due by now in this lane, or got as far as its limit.
    pub fn reached(&mut self, lane: &Lane, now: Time, limit: Option<Time>) {
        if self.next_whole.is_some() {
            let latest = now.plus_ms(-BACK_MS);
            self.starts.insert(lane.clone(), limit.map_or(latest, |limit| limit.min(latest)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r24_only_where_looks_are_slow_are_they_short() {
        let (lane, now, start) = (Lane("app".into()), Time::from_ms(60_000), Instant::now());
        let mut horizon = Horizon::default();
        let look = |horizon: &mut Horizon, took_ms| {
            horizon.looked_whole(start, Duration::from_millis(took_ms));
            horizon.reached(&lane, now, None);
        };
        (0..7).for_each(|_| look(&mut horizon, 10));
        assert!(horizon.allows_whole(start) && horizon.of(&lane) == Time::from_ms(i64::MIN), "not yet");
        look(&mut horizon, 100);
        assert!(!horizon.allows_whole(start + Duration::from_millis(4_999)));
        assert_eq!(horizon.of(&lane), Time::from_ms(59_000));
        horizon.reached(&lane, now, Some(Time::from_ms(7_000)));
        assert_eq!(horizon.of(&lane), Time::from_ms(7_000), "far behind: there it goes on");
        assert_eq!(horizon.of(&Lane("other".into())), Time::from_ms(i64::MIN), "never looked at");
        assert!(horizon.allows_whole(start + Duration::from_secs(5)));
        look(&mut horizon, 1);
        assert!(horizon.allows_whole(start) && horizon.of(&lane) == Time::from_ms(i64::MIN), "quick again");
    }
}
