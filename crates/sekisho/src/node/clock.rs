//! Whether this machine's clock may be believed. The wall clock and the monotonic one must go on agreeing; the database's
//! time is believed before this machine's, because all nodes share it.
//!
//! Where nobody else knows the time, on SQLite, a clock that jumped is believed again when it went back, or when it has
//! run evenly for [`SETTLED_AFTER`]: a machine that slept, or a clock that was set right, does so.

use std::time::Duration;

use sekisho_core::Time;
use tokio::time::Instant;

use crate::env::Env;

/// Clocks further apart than this raise an alarm.
pub const SKEW_MAX_MS: i64 = 60_000;
/// How long a clock that jumped must run evenly before it is believed.
const SETTLED_AFTER: Duration = Duration::from_mins(5);
/// How far it may move meanwhile and still be even: whoever sets a clock right may do it in two steps.
const EVEN_WITHIN_MS: i64 = 5_000;

/// Both clocks of this machine, read at once.
#[derive(Clone, Copy)]
pub struct Moment {
    pub wall: Time,
    pub monotonic: Instant,
}

impl Moment {
    pub fn now(env: &Env) -> Self {
        Self { wall: env.wall(), monotonic: Instant::now() }
    }

    /// How far the wall clock has jumped between this moment and a later one.
    fn jump_ms(&self, later: Self) -> i64 {
        let passed = later.monotonic.duration_since(self.monotonic).as_millis() as i64;
        later.wall.ms() - self.wall.ms() - passed
    }
}

#[derive(Clone, Copy)]
pub struct Clock {
    /// A moment when the time was known.
    known: Moment,
    /// When the wall clock was last seen to run unevenly, if it is in doubt.
    jumped: Option<Moment>,
    /// All jumps together that are believed though nobody confirmed them.
    believed_ms: i64,
}

/// What a look at the clocks said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockChecked {
    pub is_sure: bool,
    /// How far the wall clock is from where it should be.
    pub jump_ms: i64,
    /// How far the database's is from the wall clock.
    pub skew_ms: i64,
    /// The jump was believed just now: the time by which work is due moved by as much.
    pub is_believed: bool,
}

impl Clock {
    pub fn known_at(known: Moment) -> Self {
        Self { known, jumped: None, believed_ms: 0 }
    }

    /// The wall clock, or where it should be if it jumped: what is due must not hang on a jump.
    pub fn steady(&self, at: Moment) -> Time {
        let jump = self.known.jump_ms(at);
        if jump.abs() <= SKEW_MAX_MS { at.wall } else { at.wall.plus_ms(-jump) }
    }

    pub fn believed_ms(&self) -> i64 {
        self.believed_ms
    }

    pub fn check(&mut self, at: Moment, store_time: Option<Time>) -> ClockChecked {
        let jump_ms = self.known.jump_ms(at);
        let Some(time) = store_time else { return self.check_alone(at, jump_ms) };
        let skew_ms = time.ms() - at.wall.ms();
        let is_sure = skew_ms.abs() <= SKEW_MAX_MS;
        self.known = Moment { wall: if is_sure { at.wall } else { time }, ..at };
        ClockChecked { is_sure, jump_ms, skew_ms, is_believed: false }
    }

    fn check_alone(&mut self, at: Moment, jump_ms: i64) -> ClockChecked {
        let mut checked = ClockChecked { is_sure: true, jump_ms, skew_ms: 0, is_believed: false };
        if jump_ms.abs() <= SKEW_MAX_MS {
            self.jumped = None;
            return checked;
        }
        let even = self.jumped.filter(|since| since.jump_ms(at).abs() <= EVEN_WITHIN_MS);
        if even.is_some_and(|since| at.monotonic.duration_since(since.monotonic) >= SETTLED_AFTER) {
            checked.is_believed = true;
            *self = Self { known: at, jumped: None, believed_ms: self.believed_ms + jump_ms };
        } else {
            checked.is_sure = false;
            self.jumped = Some(even.unwrap_or(at));
        }
        checked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: i64 = 3_600_000;

    /// A machine whose clocks are moved by hand, and which looks at them every two seconds, as a node does.
    struct Machine {
        clock: Clock,
        at: Moment,
        last: ClockChecked,
    }

    impl Machine {
        fn start() -> Self {
            let at = Moment { wall: Time::from_ms(1_780_000_000_000), monotonic: Instant::now() };
            let mut clock = Clock::known_at(at);
            let last = clock.check(at, None);
            Self { clock, at, last }
        }

        /// The wall clock jumps.
        fn jump(&mut self, ms: i64) {
            self.at.wall = self.at.wall.plus_ms(ms);
        }

        /// Time goes by; the wall clock moves so many times as fast.
        fn run(&mut self, seconds: u64, pace: i64) -> bool {
            for _ in 0..seconds / 2 {
                self.at.monotonic += Duration::from_secs(2);
                self.at.wall = self.at.wall.plus_ms(2_000 * pace);
                self.last = self.clock.check(self.at, None);
            }
            self.last.is_sure
        }
    }

    #[test]
    fn r10_a_clock_that_jumped_is_noticed_and_one_that_runs_is_not() {
        let mut machine = Machine::start();
        let known = machine.at;
        assert!(machine.run(7_200, 1), "it runs");
        let there = machine.at.wall;
        for wrong in [HOUR_MS, -HOUR_MS, 24 * HOUR_MS, -2 * HOUR_MS] {
            machine.jump(wrong);
            assert!(!machine.run(2, 1), "{wrong}");
            assert_eq!(machine.last.jump_ms, wrong);
            let steady = machine.clock.steady(machine.at);
            assert_eq!(steady, machine.at.wall.plus_ms(-wrong), "due times don't jump along");
            machine.jump(-wrong);
            assert!(machine.run(2, 1), "it went back");
        }
        machine.jump(30_000);
        assert!(machine.run(2, 1), "a small step is believed");
        assert_eq!(machine.clock.steady(machine.at), machine.at.wall);
        assert!(machine.at.wall > there && known.wall < there);
    }

    #[test]
    fn r10_on_sqlite_a_clock_that_was_set_right_is_believed_when_it_ran_evenly() {
        // A machine that slept, and clocks that were set by NTP, forward and back.
        for jump in [8 * HOUR_MS, 61_000, -61_000, -2 * HOUR_MS] {
            let mut machine = Machine::start();
            machine.jump(jump);
            assert!(!machine.run(298, 1), "{jump}: too early to tell");
            assert!(machine.run(6, 1), "{jump}");
            assert_eq!(machine.clock.believed_ms(), jump);
            assert_eq!(machine.clock.steady(machine.at), machine.at.wall, "{jump}: work is due by it");
            assert!(machine.run(600, 1));
            // And the next jump is one again.
            machine.jump(HOUR_MS);
            assert!(!machine.run(2, 1));
        }
    }

    #[test]
    fn r10_a_clock_that_stands_races_or_goes_on_jumping_is_not_believed() {
        let mut frozen = Machine::start();
        assert!(!frozen.run(3_600, 0));
        let mut racing = Machine::start();
        assert!(!racing.run(3_600, 2));
        let mut jumping = Machine::start();
        for _ in 0..20 {
            jumping.jump(HOUR_MS);
            assert!(!jumping.run(200, 1));
        }
        assert!(jumping.run(120, 1), "until it stops");
        assert_eq!(jumping.clock.believed_ms(), 20 * HOUR_MS);
    }

    #[test]
    fn r10_where_the_database_knows_the_time_its_word_counts_at_once() {
        let mut machine = Machine::start();
        let right = machine.at.wall;
        machine.jump(HOUR_MS);
        let wrong = machine.clock.check(machine.at, Some(right));
        assert_eq!((wrong.is_sure, wrong.skew_ms), (false, -HOUR_MS));
        assert_eq!(machine.clock.steady(machine.at), right, "the database's time");
        machine.jump(-HOUR_MS);
        assert!(machine.clock.check(machine.at, Some(right)).is_sure);
        assert_eq!(machine.clock.believed_ms(), 0);
    }
}
