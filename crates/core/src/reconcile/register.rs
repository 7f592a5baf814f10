//! What is remembered of a source's reconciliations: how far its list was read, what was found, and how complete each day is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::state::{Key, Kind};
use crate::time::{DAY_MS, Time};

/// Days that are shown, and differences.
const DAYS_MAX: usize = 31;
const DIFFERENCES_MAX: usize = 100;

/// The kinds of a difference: the provider had something that we lacked, which was taken in; or we say what it denies.
pub const THEIRS: &str = "theirs_only";
pub const OURS: &str = "ours_only";

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceRegister {
    /// Before this, nothing is looked for unless somebody asks.
    pub born: Option<Time>,
    /// The newest event of a list of which every page was read.
    pub high_water: Option<Time>,
    pub last_run: Option<Time>,
    pub last_good: Option<Time>,
    pub last_deep: Option<Time>,
    /// When everything that is listed was last tried to be read.
    pub deep_tried: Option<Time>,
    /// Why the last run did not end well, as a word and a sentence.
    pub error: Option<(String, String)>,
    pub last: RunFigures,
    /// By day, in UTC.
    pub days: BTreeMap<String, DayCount>,
    /// The newest first.
    pub differences: Vec<Discrepancy>,
    pub heard: Option<Heard>,
    /// The oldest event that is newer than all that came by themselves, and was only listed.
    pub unheard: Option<Time>,
    /// Since when Sekisho itself listens without a break, if there was one.
    pub resumed_at: Option<Time>,
}

/// The last event that came by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heard {
    pub event: String,
    /// By the provider's clock.
    pub created: Time,
    pub received: Time,
}

/// What a run found, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunFigures {
    /// Events in the provider's list.
    pub listed: u64,
    /// Those that had come, or may still be on their way.
    pub known: u64,
    pub missing: u64,
    /// Those of the missing that were taken in.
    pub closed: u64,
    /// Objects that do not say what we say.
    pub differing: u64,
}

/// How complete a day is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DayCount {
    pub listed: u64,
    pub missing: u64,
    pub closed: u64,
}

impl DayCount {
    /// Of a hundred events at the provider, how many are here; rounded down, so that only all are 100.
    pub fn percent(&self) -> u64 {
        let here = self.listed.saturating_sub(self.missing.saturating_sub(self.closed));
        if self.listed == 0 { 100 } else { (here * 100).div_euclid(self.listed) }
    }

    fn add(&mut self, other: &Self) {
        self.listed += other.listed;
        self.missing += other.missing;
        self.closed += other.closed;
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Discrepancy {
    pub object: String,
    pub id: String,
    /// [`THEIRS`] or [`OURS`].
    pub kind: String,
    pub detail: String,
    pub at: Time,
}

/// What a run found, while it reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub figures: RunFigures,
    /// Counted anew by this run: of events that no run before has counted.
    fresh: BTreeMap<String, DayCount>,
    /// Everything that this run saw.
    seen: BTreeMap<String, DayCount>,
    newest: Option<Time>,
    /// When events were made that did not come by themselves, as far as is known.
    unheard: Vec<Time>,
    pub differences: Vec<Discrepancy>,
    /// Objects with a difference of before that agree by now.
    pub agreed: Vec<String>,
}

/// How an event of the list stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventStanding {
    Known,
    /// It may still come by itself, and was taken in all the same.
    Young,
    Closed,
    /// It is missing, and this run takes nothing in.
    Missing,
}

impl Found {
    /// Counts an event of the list.
    pub fn note(&mut self, created: Option<Time>, standing: EventStanding, water: Option<Time>) {
        let is_missing = matches!(standing, EventStanding::Closed | EventStanding::Missing);
        let is_closed = standing == EventStanding::Closed;
        let figures = &mut self.figures;
        figures.listed += 1;
        figures.known += u64::from(!is_missing);
        figures.missing += u64::from(is_missing);
        figures.closed += u64::from(is_closed);
        let Some(created) = created else { return };
        self.newest = self.newest.max(Some(created));
        if standing != EventStanding::Known {
            self.unheard.push(created);
        }
        let one = DayCount { listed: 1, missing: u64::from(is_missing), closed: u64::from(is_closed) };
        self.seen.entry(day(created)).or_default().add(&one);
        if is_missing || water.is_none_or(|water| created > water) {
            self.fresh.entry(day(created)).or_default().add(&one);
        }
    }

    pub fn has_found(&self) -> bool {
        self.figures.closed > 0 || !self.differences.is_empty()
    }
}

/// What was read, and how far back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    pub at: Time,
    pub since: Time,
    pub is_deep: bool,
}

impl SourceRegister {
    pub fn key(source: &str) -> Key {
        Key::new(Kind::Reconciliation, source)
    }

    /// The high water, unless a clock that was ahead wrote it: it would pass over what is made until then.
    pub fn water(&self, at: Time) -> Option<Time> {
        self.high_water.filter(|water| *water <= at)
    }

    /// Every page was read: the high water moves.
    pub fn complete(&mut self, found: &Found, done: Done) {
        self.last_run = Some(done.at);
        // A short run by hand says nothing of what lies before it.
        let water = self.water(done.at);
        let is_whole = done.is_deep || water.is_none_or(|water| done.since <= water);
        if is_whole {
            self.last_good = Some(done.at);
        }
        if done.is_deep {
            self.last_deep = Some(done.at);
        }
        self.error = None;
        self.last = found.figures;
        // A clock of theirs that is ahead must not make us pass over what is made until then.
        let newest = found.newest.filter(|_| is_whole).map(|newest| newest.min(done.at));
        self.high_water = water.max(newest);
        self.count_days(found, done);
        let is_old = |one: &Discrepancy| found.agreed.contains(&one.id) && one.kind == OURS;
        self.differences.retain(|one| !is_old(one));
        self.add_differences(found);
    }

    /// Whatever was only listed is remembered until something newer comes by itself.
    pub fn remember_unheard(&mut self, found: &Found) {
        let floor = self.heard.as_ref().map(|heard| heard.created).or(self.born);
        let is_newer = |one: &Time| floor.is_none_or(|floor| *one > floor);
        let all = found.unheard.iter().copied().chain(self.unheard);
        self.unheard = all.filter(is_newer).min();
    }

    /// It broke off: what was taken in is here, and the next run begins where this one did.
    pub fn fail(&mut self, found: &Found, reason: &str, error: &str, at: Time) {
        self.last_run = Some(at);
        self.error = Some((reason.to_owned(), error.to_owned()));
        self.last = found.figures;
        for (date, seen) in &found.fresh {
            let missing = DayCount { listed: seen.missing, ..*seen };
            self.days.entry(date.clone()).or_default().add(&missing);
        }
        self.keep_days();
        self.add_differences(found);
    }

    /// A day that was read whole is what this run saw of it; of others only what is new is added. What was missing once
    /// stays counted.
    fn count_days(&mut self, found: &Found, done: Done) {
        let first_whole = day(done.since.plus_ms(DAY_MS - 1));
        for (date, fresh) in &found.fresh {
            self.days.entry(date.clone()).or_default().add(fresh);
        }
        for (date, seen) in found.seen.iter().filter(|(date, _)| **date >= first_whole) {
            let known = self.days.entry(date.clone()).or_default();
            known.listed = seen.listed;
        }
        self.keep_days();
    }

    fn keep_days(&mut self) {
        while self.days.len() > DAYS_MAX {
            self.days.pop_first();
        }
    }

    fn add_differences(&mut self, found: &Found) {
        let is_new = |one: &&Discrepancy| !self.differs(&one.id, &one.kind);
        let new: Vec<Discrepancy> = found.differences.iter().filter(is_new).cloned().collect();
        self.differences.splice(0..0, new);
        self.differences.truncate(DIFFERENCES_MAX);
    }

    /// Whether this difference was found before.
    pub fn differs(&self, id: &str, kind: &str) -> bool {
        self.differences.iter().any(|one| one.id == id && one.kind == kind)
    }

    /// Of all days that are kept.
    pub fn percent(&self) -> u64 {
        let mut all = DayCount::default();
        self.days.values().for_each(|day| all.add(day));
        all.percent()
    }
}

fn day(at: Time) -> String {
    at.to_string().chars().take(10).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::HOUR_MS;

    /// Noon.
    const NOW: Time = Time::from_ms(1_780_056_000_000);

    fn found(events: &[(i64, EventStanding)], water: Option<Time>) -> Found {
        let mut found = Found::default();
        events.iter().for_each(|(ago_ms, standing)| found.note(Some(NOW.plus_ms(-ago_ms)), *standing, water));
        found
    }

    fn done(since_ms: i64) -> Done {
        Done { at: NOW, since: NOW.plus_ms(-since_ms), is_deep: since_ms >= DAY_MS }
    }

    #[test]
    fn e2_the_high_water_is_the_newest_that_was_listed_and_moves_with_whole_runs_only() {
        let mut register = SourceRegister::default();
        let half = found(&[(5_000, EventStanding::Closed), (9_000, EventStanding::Known)], None);
        register.fail(&half, "broken", "page 2", NOW);
        assert_eq!((register.high_water, register.last_good), (None, None));
        assert_eq!(register.days[&day(NOW)], DayCount { listed: 1, missing: 1, closed: 1 });
        register.complete(&half, done(HOUR_MS));
        assert_eq!(register.high_water, Some(NOW.plus_ms(-5_000)));
        register.complete(&found(&[(-HOUR_MS, EventStanding::Known)], register.high_water), done(HOUR_MS));
        assert_eq!(register.high_water, Some(NOW), "never ahead of our own clock");
        register.complete(&found(&[(HOUR_MS, EventStanding::Known)], register.high_water), done(HOUR_MS));
        assert_eq!(register.high_water, Some(NOW), "nor back");
    }

    #[test]
    fn e2_a_high_water_of_a_clock_that_was_ahead_is_forgotten() {
        let mut register =
            SourceRegister { high_water: Some(NOW.plus_ms(DAY_MS)), ..SourceRegister::default() };
        let listed = found(&[(5_000, EventStanding::Known)], register.water(NOW));
        register.complete(&listed, done(HOUR_MS));
        assert_eq!((register.high_water, register.last_good), (Some(NOW.plus_ms(-5_000)), Some(NOW)));
        assert_eq!(register.days[&day(NOW)].listed, 1);
    }

    #[test]
    fn e2_an_event_that_is_listed_again_is_counted_once() {
        let mut register = SourceRegister::default();
        let two = [(5_000, EventStanding::Closed), (9_000, EventStanding::Known)];
        register.complete(&found(&two, None), done(HOUR_MS));
        let again =
            [(5_000, EventStanding::Known), (9_000, EventStanding::Known), (1_000, EventStanding::Known)];
        register.complete(&found(&again, register.high_water), done(HOUR_MS));
        assert_eq!(register.days[&day(NOW)], DayCount { listed: 3, missing: 1, closed: 1 });
        assert_eq!(register.days[&day(NOW)].percent(), 100);
        // A deep run counts whole days anew.
        register.complete(&found(&again, register.high_water), done(30 * DAY_MS));
        assert_eq!(register.days[&day(NOW)], DayCount { listed: 3, missing: 1, closed: 1 });
        assert_eq!(DayCount { listed: 300, missing: 1, closed: 0 }.percent(), 99, "only all are 100");
    }

    #[test]
    fn e2_a_difference_is_kept_once_until_both_agree() {
        let ours = Discrepancy {
            object: "payment_intent".into(),
            id: "pi_1".into(),
            kind: OURS.into(),
            detail: String::new(),
            at: NOW,
        };
        let mut register = SourceRegister::default();
        let found = Found { differences: vec![ours.clone()], ..Found::default() };
        register.complete(&found, done(HOUR_MS));
        register.complete(&found, done(HOUR_MS));
        assert_eq!(register.differences, [ours]);
        register.complete(&Found { agreed: vec!["pi_1".into()], ..Found::default() }, done(HOUR_MS));
        assert_eq!(register.differences, []);
    }

    #[test]
    fn e2_a_register_is_read_as_it_was_written_and_stays_small() {
        let mut register = SourceRegister::default();
        for n in 0..60 {
            register.complete(&found(&[(n * DAY_MS, EventStanding::Known)], None), done(HOUR_MS));
        }
        assert_eq!(register.days.len(), DAYS_MAX);
        let text = serde_json::to_string(&register).unwrap();
        assert_eq!(serde_json::from_str::<SourceRegister>(&text).unwrap(), register);
        assert_eq!(serde_json::from_str::<SourceRegister>("{}").unwrap(), SourceRegister::default());
    }
}
