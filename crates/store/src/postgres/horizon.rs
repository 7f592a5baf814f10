//! From where a lane is looked through. While somebody holds an old snapshot, the index keeps its entries of jobs that are
//! long done, and a look from the beginning passes all of them: every claim would take longer than the one before.
//!
//! So, once looks at a lane are slow, a whole one may take a fiftieth of the time, and between two of them a claim begins
//! where the last one ended. What lies further back waits for the next whole look, and nothing else changes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sekisho_core::Time;
use sekisho_core::job::Lane;

/// A look is slow that takes longer than this and what each of its jobs may take. Long where tests run, so that none of
/// them meets it by chance.
const SLOW: Duration = Duration::from_millis(if cfg!(debug_assertions) { 100 } else { 3 });
const SLOW_PER_JOB: Duration = Duration::from_micros(50);
/// So many in a row make a lane slow: one alone may have waited for the processor.
const IN_A_ROW: u32 = 8;
/// What a whole look took, it may take again after so many times as long, and after this long in any case.
const REST: u32 = 50;
const REST_MAX: Duration = Duration::from_secs(10);
/// A short look begins so long before now at the latest: jobs are written a moment after they are due, and the clocks of
/// nodes differ.
const BACK_MS: i64 = 1_000;

const BEGINNING: Time = Time::from_ms(i64::MIN);

/// Of the lanes whose last whole look was slow.
#[derive(Default)]
pub struct Horizon(BTreeMap<Lane, Slow>);

struct Slow {
    in_a_row: u32,
    start: Time,
    next_whole: Instant,
}

/// How a look through a lane ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// It took all that was due.
    All,
    /// There may be more, from here on.
    Until(Time),
}

impl Horizon {
    /// Where a look at this lane begins now.
    pub fn start(&self, lane: &Lane, now: Instant) -> Time {
        match self.0.get(lane) {
            Some(slow) if slow.in_a_row >= IN_A_ROW && now < slow.next_whole => slow.start,
            _ => BEGINNING,
        }
    }

    /// Follows a look at this lane that began there and found so many jobs.
    pub fn looked(
        &mut self,
        lane: &Lane,
        start: Time,
        jobs: usize,
        took: Duration,
        (now, at): (Instant, Time),
    ) {
        if start != BEGINNING {
            return;
        }
        if took <= SLOW + SLOW_PER_JOB * jobs as u32 {
            self.0.remove(lane);
            return;
        }
        let slow = self.0.entry(lane.clone()).or_insert(Slow { in_a_row: 0, start: at, next_whole: now });
        slow.in_a_row += 1;
        slow.next_whole = now + (took * REST).min(REST_MAX);
    }

    pub fn reached(&mut self, lane: &Lane, at: Time, reached: Reached) {
        let latest = at.plus_ms(-BACK_MS);
        if let Some(slow) = self.0.get_mut(lane) {
            slow.start = match reached {
                Reached::All => latest,
                Reached::Until(limit) => limit.min(latest),
            };
        }
    }

    /// Follows a look that took longer than a statement may: a whole one is too much for now. A look that met a broken
    /// connection, or a server that restarts, has said nothing.
    pub fn failed(&mut self, lane: &Lane, (now, at): (Instant, Time)) {
        let slow = Slow { in_a_row: IN_A_ROW, start: at.plus_ms(-BACK_MS), next_whole: now + REST_MAX };
        self.0.insert(lane.clone(), slow);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r24_only_where_looks_are_slow_are_they_short() {
        let (lane, other) = (Lane("app".into()), Lane("other".into()));
        let (at, now) = (Time::from_ms(60_000), Instant::now());
        let mut horizon = Horizon::default();
        let look = |horizon: &mut Horizon, took_ms| {
            horizon.looked(&lane, BEGINNING, 10, Duration::from_millis(took_ms), (now, at));
            horizon.reached(&lane, at, Reached::All);
        };
        (1..IN_A_ROW).for_each(|_| look(&mut horizon, 150));
        assert_eq!(horizon.start(&lane, now), BEGINNING, "not yet");
        look(&mut horizon, 160);
        assert_eq!(horizon.start(&lane, now + Duration::from_millis(7_999)), Time::from_ms(59_000));
        assert_eq!(horizon.start(&other, now), BEGINNING, "each lane by itself");
        horizon.reached(&lane, at, Reached::Until(Time::from_ms(7_000)));
        assert_eq!(horizon.start(&lane, now), Time::from_ms(7_000), "far behind: there it goes on");
        assert_eq!(horizon.start(&lane, now + Duration::from_secs(8)), BEGINNING);
        look(&mut horizon, 60_000);
        assert_eq!(horizon.start(&lane, now + REST_MAX), BEGINNING, "a rest has an end");
        look(&mut horizon, 1);
        assert_eq!(horizon.start(&lane, now), BEGINNING, "quick again");
    }

    #[test]
    fn r24_a_look_that_took_too_long_is_not_tried_again_at_once() {
        let (lane, at, now) = (Lane("app".into()), Time::from_ms(60_000), Instant::now());
        let mut horizon = Horizon::default();
        horizon.failed(&lane, (now, at));
        assert_eq!(horizon.start(&lane, now), Time::from_ms(59_000));
        assert_eq!(horizon.start(&lane, now + REST_MAX), BEGINNING);
    }
}
