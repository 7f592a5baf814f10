//! Reconciliation: what a provider has, compared with what came here. Which part of its lists is read, which events of it
//! are a gap, whether an object says the same as our facts ([`compare`]), and what is remembered of it ([`register`]). Whether
//! a source is silent is an alert, which reads what is remembered here.
//!
//! Nobody is overruled: what is missing here is taken in and joins; what ours says and theirs denies is told to a person.

pub mod compare;
pub mod conclude;
pub mod register;

use crate::pattern::Pattern;
use crate::time::{DAY_MS, Time};

pub use compare::{Comparison, ReadAt, compare};
pub use conclude::ReconcileResult;
pub use register::{DayCount, Discrepancy, Done, EventStanding, Found, Heard, RunFigures, SourceRegister};

/// Objects are compared for so long after they were made, unless somebody asks for more.
const OBJECTS_MS: i64 = 3 * DAY_MS;
/// And in a deep run, where no event tells that an old one was paid: by bank transfer or at a shop that takes weeks.
const OBJECTS_DEEP_MS: i64 = 60 * DAY_MS;
/// How often everything that the provider still lists is read.
const DEEP_EVERY_MS: i64 = DAY_MS;
/// And after one that failed, not before.
const DEEP_AGAIN_MS: i64 = 60 * 60_000;
/// After so many runs that did not happen, Sekisho was away.
const MISSED_RUNS: i64 = 3;

/// What the operator wants.
#[derive(Clone, Debug)]
pub struct ReconcilePolicy {
    pub every_ms: i64,
    pub overlap_ms: i64,
    /// A webhook may be on its way for so long.
    pub grace_ms: i64,
    /// Types that are taken in besides those that are settled.
    pub events: Vec<Pattern>,
}

impl Default for ReconcilePolicy {
    fn default() -> Self {
        Self { every_ms: 5 * 60_000, overlap_ms: 3_600_000, grace_ms: 2 * 60_000, events: Vec::new() }
    }
}

/// Why a run happens, and how far back it is to look. Without `since`, a run by hand is deep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunOrder {
    /// Asked for by a person or an app; such a run may look back behind the first one.
    pub by_hand: bool,
    pub since: Option<Time>,
    /// Only what would happen.
    pub dry_run: bool,
}

/// How far back there is anything to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// How long the provider lists its events; `None` where it has no such list.
    pub listed_ms: Option<i64>,
    /// How long events are kept here. An older one was let go, and is no gap.
    pub kept_ms: i64,
}

/// What one run reads: everything made since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub events_since: Time,
    pub objects_since: Time,
    /// The provider's whole list was asked for.
    pub is_deep: bool,
}

impl ReconcilePolicy {
    pub fn window(&self, register: &SourceRegister, reach: Reach, order: RunOrder, at: Time) -> Window {
        let is_deep = order.since.is_none() && (order.by_hand || self.wants_deep(register, at));
        let oldest = at.plus_ms(-reach.listed_ms.unwrap_or(0).min(reach.kept_ms));
        let born = register.born.unwrap_or(at);
        // What was before the first run is imported by hand: the app may know it by other ways.
        let floor = if order.by_hand { oldest } else { oldest.max(born) };
        let from_water = register.water(at).map(|water| water.plus_ms(-self.overlap_ms));
        let events_since = match order.since {
            Some(since) => since,
            None if is_deep => floor,
            None => from_water.unwrap_or(floor),
        };
        let objects_ms = if is_deep && reach.listed_ms.is_none() { OBJECTS_DEEP_MS } else { OBJECTS_MS };
        let objects_since = order.since.unwrap_or(at.plus_ms(-objects_ms));
        let objects_floor = if order.by_hand { objects_since } else { born };
        Window {
            events_since: events_since.max(floor),
            objects_since: objects_since.max(objects_floor),
            is_deep,
        }
    }

    /// Once a day, and after a gap in our own runs.
    fn wants_deep(&self, register: &SourceRegister, at: Time) -> bool {
        // A moment to come was written by a clock that was ahead, and says nothing.
        let older =
            |time: Option<Time>, ms: i64| time.is_none_or(|time| time > at || at.ms() - time.ms() >= ms);
        let is_due = older(register.last_deep, DEEP_EVERY_MS) || older(register.last_good, self.overlap_ms);
        // What can't be read whole is not tried again at every turn.
        is_due && older(register.deep_tried, DEEP_AGAIN_MS)
    }

    /// Whether Sekisho was away before this run: what is missing then says nothing of the provider.
    pub fn was_away(&self, register: &SourceRegister, at: Time) -> bool {
        register
            .last_run
            .is_some_and(|last| at.ms() - last.ms() > MISSED_RUNS * self.every_ms + self.grace_ms)
    }

    /// An event that is listed and unknown is a gap once its webhook had time to come.
    pub fn is_gap(&self, created: Option<Time>, at: Time) -> bool {
        created.is_none_or(|created| at.ms() - created.ms() >= self.grace_ms)
    }

    /// When the next run is due.
    pub fn next_after(&self, at: Time) -> Time {
        Time::from_ms((at.ms().div_euclid(self.every_ms) + 1) * self.every_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::HOUR_MS;

    const NOW: Time = Time::from_ms(1_780_000_000_000);
    const REACH: Reach = Reach { listed_ms: Some(30 * DAY_MS), kept_ms: 90 * DAY_MS };

    fn register() -> SourceRegister {
        SourceRegister {
            born: Some(NOW.plus_ms(-100 * DAY_MS)),
            high_water: Some(NOW.plus_ms(-600_000)),
            last_run: Some(NOW.plus_ms(-300_000)),
            last_good: Some(NOW.plus_ms(-300_000)),
            last_deep: Some(NOW.plus_ms(-HOUR_MS)),
            ..SourceRegister::default()
        }
    }

    fn ago(time: Time) -> i64 {
        NOW.ms() - time.ms()
    }

    #[test]
    fn e2_a_run_reads_what_is_new_with_an_overlap_and_everything_once_a_day() {
        let policy = ReconcilePolicy::default();
        let window = |register: &SourceRegister, order| policy.window(register, REACH, order, NOW);
        let usual = window(&register(), RunOrder::default());
        assert_eq!((ago(usual.events_since), usual.is_deep), (600_000 + HOUR_MS, false));
        assert_eq!(ago(usual.objects_since), 3 * DAY_MS);
        for stale in [
            SourceRegister { last_deep: Some(NOW.plus_ms(-DAY_MS)), ..register() },
            SourceRegister { last_good: Some(NOW.plus_ms(-2 * HOUR_MS)), ..register() },
        ] {
            let deep = window(&stale, RunOrder::default());
            assert_eq!((ago(deep.events_since), deep.is_deep), (30 * DAY_MS, true));
        }
        let by_hand = RunOrder { by_hand: true, ..RunOrder::default() };
        assert_eq!(ago(window(&register(), by_hand).events_since), 30 * DAY_MS);
        let asked = RunOrder { since: Some(NOW.plus_ms(-60 * DAY_MS)), ..by_hand };
        let asked = window(&register(), asked);
        assert_eq!((ago(asked.events_since), ago(asked.objects_since)), (30 * DAY_MS, 60 * DAY_MS));
    }

    #[test]
    fn e2_no_run_by_itself_reaches_behind_the_first_and_none_behind_what_is_kept() {
        let policy = ReconcilePolicy::default();
        let first = policy.window(&SourceRegister::default(), REACH, RunOrder::default(), NOW);
        assert_eq!((ago(first.events_since), first.is_deep), (0, true));
        assert_eq!(ago(first.objects_since), 0);
        let by_hand = RunOrder { by_hand: true, ..RunOrder::default() };
        let first = policy.window(&SourceRegister::default(), REACH, by_hand, NOW);
        assert_eq!(ago(first.events_since), 30 * DAY_MS);
        let short = Reach { kept_ms: 7 * DAY_MS, ..REACH };
        assert_eq!(ago(policy.window(&register(), short, by_hand, NOW).events_since), 7 * DAY_MS);
    }

    #[test]
    fn e2_where_no_event_tells_of_it_what_was_paid_late_is_looked_for_once_a_day() {
        let policy = ReconcilePolicy::default();
        let no_events = Reach { listed_ms: None, ..REACH };
        let daily = SourceRegister { last_deep: Some(NOW.plus_ms(-DAY_MS)), ..register() };
        let objects = |register: &SourceRegister, reach, order| {
            ago(policy.window(register, reach, order, NOW).objects_since) / DAY_MS
        };
        assert_eq!(objects(&register(), no_events, RunOrder::default()), 3);
        assert_eq!(objects(&daily, no_events, RunOrder::default()), 60);
        assert_eq!(objects(&daily, REACH, RunOrder::default()), 3, "there the event tells of it");
        let by_hand = RunOrder { by_hand: true, ..RunOrder::default() };
        assert_eq!(objects(&register(), no_events, by_hand), 60);
        let young = SourceRegister { born: Some(NOW.plus_ms(-7 * DAY_MS)), ..daily };
        assert_eq!(objects(&young, no_events, RunOrder::default()), 7);
    }

    #[test]
    fn e2_a_clock_that_was_ahead_holds_up_no_run() {
        let policy = ReconcilePolicy::default();
        let later = Some(NOW.plus_ms(365 * DAY_MS));
        let ahead = SourceRegister {
            high_water: later,
            last_run: later,
            last_good: later,
            last_deep: later,
            deep_tried: later,
            ..register()
        };
        let window = policy.window(&ahead, REACH, RunOrder::default(), NOW);
        assert_eq!((ago(window.events_since), window.is_deep), (30 * DAY_MS, true));
    }

    #[test]
    fn e2_what_is_young_is_no_gap_and_a_missed_run_is_seen() {
        let policy = ReconcilePolicy::default();
        assert!(!policy.is_gap(Some(NOW.plus_ms(-119_999)), NOW));
        assert!(policy.is_gap(Some(NOW.plus_ms(-120_000)), NOW));
        assert!(!policy.was_away(&register(), NOW));
        assert!(
            policy.was_away(&SourceRegister { last_run: Some(NOW.plus_ms(-HOUR_MS)), ..register() }, NOW)
        );
        assert_eq!(policy.next_after(NOW).ms() % 300_000, 0);
        assert!(policy.next_after(NOW) > NOW);
    }
}
