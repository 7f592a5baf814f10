//! How much was done, and how well: what one node counted in one minute. Rows of all nodes add up, and those of a closed
//! hour become one, so figures survive restarts and say the same on every node.
//!
//! A row is written by its own node alone. It knows nothing of who reads it: targets and alerts do.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::id::Epoch;
use crate::job::Lane;
use crate::state::{Key, Kind};
use crate::time::{DAY_MS, HOUR_MS, Time, hour_of};

/// How long rows of minutes are kept, and those of hours.
pub const MINUTES_KEPT_MS: i64 = 8 * DAY_MS;
pub const HOURS_KEPT_MS: i64 = 400 * DAY_MS;

/// Upper edges of the buckets that times are counted in; one more is for what took longer.
pub const EDGES_MS: [i64; 23] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 8_000, 10_000, 15_000, 20_000, 30_000, 60_000,
    120_000, 300_000, 600_000, 1_800_000, 3_600_000,
];

/// What one node counted in one period, or all of them in an hour.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Meter {
    /// Events stored or known, and those that were answered 503.
    pub published: MeterTally,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, SourceMeter>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub lanes: BTreeMap<String, LaneMeter>,
    /// Notices by mail, by channel.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub mail: BTreeMap<String, MeterTally>,
    /// From receipt until an event was settled, and until it was delivered.
    pub settled: LatencyCounts,
    pub delivered: LatencyCounts,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MeterTally {
    pub good: u64,
    pub bad: u64,
    /// Bad ones since the last good one.
    pub bad_in_a_row: u64,
}

impl MeterTally {
    pub const fn all(self) -> u64 {
        self.good + self.bad
    }

    /// The same with what came after it.
    #[must_use]
    pub const fn then(self, later: Self) -> Self {
        let bad_in_a_row = if later.good > 0 { 0 } else { self.bad_in_a_row } + later.bad_in_a_row;
        Self { good: self.good + later.good, bad: self.bad + later.bad, bad_in_a_row }
    }
}

/// Requests at one source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceMeter {
    pub accepted: u64,
    pub refused: u64,
    /// Those of the refused whose signature was wrong.
    pub wrong_signature: u64,
}

/// Runs of one lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LaneMeter {
    /// Runs that ended well.
    pub good: u64,
    /// Runs that failed, whether they are tried again or not.
    pub failed: u64,
    /// Runs, of both, that were not a first try.
    pub retries: u64,
    /// Failed runs whose job became a dead letter.
    pub dead: u64,
}

impl LaneMeter {
    pub const fn runs(self) -> u64 {
        self.good + self.failed
    }

    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            good: self.good + other.good,
            failed: self.failed + other.failed,
            retries: self.retries + other.retries,
            dead: self.dead + other.dead,
        }
    }
}

/// How many times lie in each bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LatencyCounts(pub Vec<u64>);

impl LatencyCounts {
    /// The bucket that a time is counted in.
    pub fn bucket(ms: i64) -> usize {
        EDGES_MS.partition_point(|edge| *edge < ms)
    }

    pub fn count(&mut self, bucket: usize, times: u64) {
        if self.0.len() <= bucket {
            self.0.resize(bucket + 1, 0);
        }
        self.0[bucket] += times;
    }

    pub fn all(&self) -> u64 {
        self.0.iter().sum()
    }

    /// How many took longer. Exact where the limit is an edge; otherwise those above the next edge.
    pub fn above(&self, limit_ms: i64) -> u64 {
        self.0.iter().skip(Self::bucket(limit_ms) + 1).sum()
    }

    /// The upper edge of the bucket below which 95 of 100 lie; `None` without any, or above the last edge.
    pub fn p95_ms(&self) -> Option<i64> {
        let wanted = (self.all() * 95).div_ceil(100).max(1);
        let mut seen = 0;
        let bucket = self.0.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        bucket.and_then(|bucket| EDGES_MS.get(bucket).copied())
    }

    fn add(&mut self, other: &Self) {
        other.0.iter().enumerate().for_each(|(bucket, times)| self.count(bucket, *times));
    }
}

impl Meter {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds what was counted later, or elsewhere.
    pub fn add(&mut self, other: &Self) {
        self.published = self.published.then(other.published);
        for (name, more) in &other.sources {
            let own = self.sources.entry(name.clone()).or_default();
            own.accepted += more.accepted;
            own.refused += more.refused;
            own.wrong_signature += more.wrong_signature;
        }
        for (name, more) in &other.lanes {
            let own = self.lanes.entry(name.clone()).or_default();
            *own = own.plus(*more);
        }
        for (name, more) in &other.mail {
            let own = self.mail.entry(name.clone()).or_default();
            *own = own.then(*more);
        }
        self.settled.add(&other.settled);
        self.delivered.add(&other.delivered);
    }

    pub fn source(&self, name: &str) -> SourceMeter {
        self.sources.get(name).copied().unwrap_or_default()
    }

    pub fn lane(&self, name: &str) -> LaneMeter {
        self.lanes.get(name).copied().unwrap_or_default()
    }

    /// The work that an event causes: settling, fetching, working out who is told, deliveries.
    pub fn worker(&self) -> LaneMeter {
        self.lanes_that(|lane| is_inside(lane) || lane.route().is_some())
    }

    /// The same without deliveries.
    pub fn inside(&self) -> LaneMeter {
        self.lanes_that(is_inside)
    }

    pub fn all_lanes(&self) -> LaneMeter {
        self.lanes_that(|_| true)
    }

    pub fn all_mail(&self) -> MeterTally {
        self.mail.values().fold(MeterTally::default(), |sum, one| sum.then(*one))
    }

    fn lanes_that(&self, is_meant: impl Fn(&Lane) -> bool) -> LaneMeter {
        let meant = self.lanes.iter().filter(|(name, _)| is_meant(&Lane::from((*name).clone())));
        meant.fold(LaneMeter::default(), |sum, (_, one)| sum.plus(*one))
    }
}

/// Work that goes to no destination of the operator's.
fn is_inside(lane: &Lane) -> bool {
    *lane == Lane::settle() || *lane == Lane::notify() || lane.0.starts_with("fetch:")
}

/// Which row a node writes for a period that begins so.
pub fn period_key(start: Time, node: Epoch) -> Key {
    Key::new(Kind::Meter, format!("{}/{}", period_prefix(start), node.0))
}

/// Before the first row of a period.
pub fn period_prefix(start: Time) -> String {
    format!("{:011}", start.seconds())
}

/// What the ids of hours begin with; all of them come after those of periods.
pub const HOURS: &str = "h/";

pub fn hour_key(hour: Time) -> Key {
    Key::new(Kind::Meter, hour_id(hour))
}

pub fn hour_id(hour: Time) -> String {
    format!("{HOURS}{:011}", hour.seconds())
}

/// When the period or the hour of a row began.
pub fn began(id: &str) -> Option<Time> {
    let (seconds, is_hour) = match id.strip_prefix(HOURS) {
        Some(seconds) => (seconds, true),
        None => (id.split('/').next().unwrap_or_default(), false),
    };
    let start = seconds.parse().ok().map(Time::from_seconds)?;
    (!is_hour || hour_of(start) == start).then_some(start)
}

/// What all nodes counted: closed hours, and the periods since.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeterLog {
    /// Oldest first.
    pub periods: Vec<(Time, Meter)>,
    pub hours: BTreeMap<Time, Meter>,
}

impl MeterLog {
    /// Of the periods that began since then.
    pub fn periods_since(&self, from: Time) -> Meter {
        let mut sum = Meter::default();
        self.periods.iter().filter(|(start, _)| *start >= from).for_each(|(_, one)| sum.add(one));
        sum
    }

    /// Of whole hours where they are known, and of the periods of the others.
    pub fn since(&self, from: Time) -> Meter {
        let mut sum = Meter::default();
        let known: BTreeSet<_> = self.hours.keys().copied().collect();
        self.hours.range(hour_of(from)..).for_each(|(_, one)| sum.add(one));
        let others = self.periods.iter().filter(|(start, _)| *start >= from);
        others.filter(|(start, _)| !known.contains(&hour_of(*start))).for_each(|(_, one)| sum.add(one));
        sum
    }

    /// What was counted in an hour, of its periods alone.
    pub fn hour(&self, hour: Time) -> Meter {
        let mut sum = Meter::default();
        let end = hour.plus_ms(HOUR_MS);
        let own = self.periods.iter().filter(|(start, _)| (hour..end).contains(start));
        own.for_each(|(_, one)| sum.add(one));
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_ms(1_780_272_000_000);

    fn delivered(good: u64, failed: u64) -> Meter {
        let lane = LaneMeter { good, failed, retries: failed, dead: 0 };
        Meter { lanes: BTreeMap::from([("to:app".into(), lane)]), ..Meter::default() }
    }

    #[test]
    fn h3_a_time_lies_in_the_bucket_whose_edge_it_does_not_exceed() {
        for (ms, bucket) in [(0, 0), (1, 0), (2, 1), (3, 2), (8_000, 12), (8_001, 13), (3_600_001, 23)] {
            assert_eq!(LatencyCounts::bucket(ms), bucket, "{ms}");
        }
        let mut times = LatencyCounts::default();
        times.count(LatencyCounts::bucket(10_000), 95);
        assert_eq!((times.above(10_000), times.p95_ms()), (0, Some(10_000)));
        times.count(LatencyCounts::bucket(10_001), 6);
        assert_eq!((times.above(10_000), times.p95_ms()), (6, Some(15_000)));
        assert_eq!(LatencyCounts::default().p95_ms(), None);
    }

    #[test]
    fn h3_rows_of_all_nodes_add_up_and_an_hour_counts_once() {
        let mut log = MeterLog::default();
        for (minutes, node) in [(-70, 1), (-70, 2), (-1, 1), (-1, 2)] {
            log.periods.push((NOW.plus_ms(minutes * 60_000), delivered(node, 1)));
        }
        let day = NOW.plus_ms(-DAY_MS);
        assert_eq!(log.since(day).worker().runs(), 10);
        let closed = hour_of(NOW.plus_ms(-70 * 60_000));
        log.hours.insert(closed, log.hour(closed));
        assert_eq!(log.since(day).worker(), LaneMeter { good: 6, failed: 4, retries: 4, dead: 0 });
        assert_eq!(log.periods_since(NOW.plus_ms(-60_000)).worker().runs(), 5);
    }

    #[test]
    fn h3_what_failed_in_a_row_ends_with_what_went_well() {
        let bad = MeterTally { good: 0, bad: 2, bad_in_a_row: 2 };
        let good = MeterTally { good: 1, bad: 1, bad_in_a_row: 0 };
        assert_eq!(bad.then(bad).bad_in_a_row, 4);
        assert_eq!(bad.then(good).bad_in_a_row, 0);
        assert_eq!(bad.then(good).then(bad).bad_in_a_row, 2);
    }

    #[test]
    fn h3_rows_sort_by_time_hours_after_periods_and_a_row_of_another_version_is_read() {
        let one = period_key(NOW, Epoch(7)).id;
        assert!(one < period_key(NOW.plus_ms(60_000), Epoch(1)).id && one < hour_id(NOW));
        assert_eq!((began(&one), began(&hour_id(NOW)), began("odd")), (Some(NOW), Some(NOW), None));
        let row: Meter = serde_json::from_str(r#"{"published":{"good":3},"newer":{"a":1}}"#).unwrap();
        assert_eq!(row.published.good, 3);
    }
}
