//! How many events an hour usually has: the median of the same hour of the week over the last weeks, with today's level.

use crate::time::{HOUR_MS, Time};

const WEEK: i64 = 7 * 24;
/// Weeks that an hour is compared with, and how many of them must be known.
const WEEKS: i64 = 5;
const WEEKS_MIN: usize = 2;
/// Hours that today's level is taken from.
const LEVEL_HOURS: i64 = 24;
/// Hours of counts that are worth reading.
pub const HOURS_READ: i64 = 7 * WEEK + LEVEL_HOURS;

/// Counts of hours, without a gap, from the first that had any.
#[derive(Clone, Debug, PartialEq)]
pub struct UsualHours {
    first: i64,
    counts: Vec<f64>,
    /// Of each hour, as far as enough weeks are known.
    medians: Vec<Option<f64>>,
    /// What each hour should have had, with the level of its day.
    expected: Vec<Option<f64>>,
}

/// The number of an hour since 1970.
pub const fn hour_number(at: Time) -> i64 {
    at.ms().div_euclid(HOUR_MS)
}

impl UsualHours {
    /// Of counts by hour, up to `end` (without). `None` where nothing was ever counted.
    pub fn of(counts: impl IntoIterator<Item = (Time, i64)>, end: Time) -> Option<Self> {
        let counts: Vec<_> = counts.into_iter().map(|(hour, count)| (hour_number(hour), count)).collect();
        let first = counts.iter().filter(|(_, count)| *count > 0).map(|(hour, _)| *hour).min()?;
        let length = usize::try_from(hour_number(end) - first).ok()?;
        let mut dense = vec![0.0; length];
        for (hour, count) in counts {
            if let Some(own) = usize::try_from(hour - first).ok().and_then(|place| dense.get_mut(place)) {
                *own += count as f64;
            }
        }
        let mut own = Self { first, counts: dense, medians: Vec::new(), expected: Vec::new() };
        // One week beyond the end, so that hours that are still open have theirs.
        own.medians = (first..hour_number(end) + WEEK).map(|hour| own.median_of_weeks(hour)).collect();
        let hours = first..hour_number(end);
        own.expected = hours.map(|hour| Some(own.usual(hour)? * own.level(hour))).collect();
        Some(own)
    }

    pub const fn first(&self) -> i64 {
        self.first
    }

    pub fn count(&self, hour: i64) -> Option<f64> {
        usize::try_from(hour - self.first).ok().and_then(|place| self.counts.get(place).copied())
    }

    pub fn all(&self) -> f64 {
        self.counts.iter().sum()
    }

    fn median_of_weeks(&self, hour: i64) -> Option<f64> {
        let mut weeks: Vec<_> = (1..=WEEKS).filter_map(|week| self.count(hour - week * WEEK)).collect();
        (weeks.len() >= WEEKS_MIN).then(|| median(&mut weeks))
    }

    /// The median of the same hour of other weeks.
    pub fn usual(&self, hour: i64) -> Option<f64> {
        usize::try_from(hour - self.first).ok().and_then(|place| self.medians.get(place).copied().flatten())
    }

    /// How much busier than usual the hours before were.
    pub fn level(&self, hour: i64) -> f64 {
        let before = (hour - LEVEL_HOURS..hour).filter_map(|one| Some((self.count(one)?, self.usual(one)?)));
        let (seen, expected) = before.fold((5.0, 5.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        (seen / expected).clamp(0.5, 2.0)
    }

    pub fn expected(&self, hour: i64) -> Option<f64> {
        usize::try_from(hour - self.first).ok().and_then(|place| self.expected.get(place).copied().flatten())
    }
}

/// Of some numbers, of which there is at least one.
pub fn median(numbers: &mut [f64]) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    if numbers.len() % 2 == 1 { numbers[middle] } else { f64::midpoint(numbers[middle - 1], numbers[middle]) }
}
