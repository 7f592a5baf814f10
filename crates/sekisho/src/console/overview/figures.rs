//! A day, a week or a month in figures: what the stored counts add up to, by bar, by source and by type. What Sekisho itself
//! announced or fetched is left out: it did not come in.

use std::collections::BTreeMap;

use sekisho_core::{Time, source_name};
use sekisho_store::{Count, Status};

use super::range::OverviewRange;
use crate::console::events::address;

/// Sources and types that are listed.
const TOP: usize = 8;

#[derive(Debug)]
pub struct DayBar {
    /// Oldest first; the last is the open one.
    pub hours: Vec<Hour>,
    pub total: Tallied,
    pub sources: Vec<Share>,
    pub types: Vec<Share>,
}

#[derive(Clone, Copy, Debug)]
pub struct Hour {
    pub at: Time,
    pub tallied: Tallied,
}

/// Events by where they stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tallied {
    pub received: i64,
    pub success: i64,
    pub failed: i64,
    pub skipped: i64,
}

impl Tallied {
    fn add(&mut self, status: Status, events: i64) {
        let place = match status {
            Status::Received => &mut self.received,
            Status::Success => &mut self.success,
            Status::Failed => &mut self.failed,
            Status::Skipped => &mut self.skipped,
        };
        *place += events;
    }

    pub const fn all(&self) -> i64 {
        self.received + self.success + self.failed + self.skipped
    }
}

/// A name and how many are of it.
#[derive(Debug)]
pub struct Share {
    /// The filter that leads to them.
    by: &'static str,
    pub name: String,
    pub events: i64,
    /// Of the largest, in percent.
    pub percent: i64,
}

impl Share {
    pub fn link(&self) -> String {
        address("/console/events", [(self.by, &*self.name)])
    }
}

impl DayBar {
    pub fn of(counts: &[Count], range: OverviewRange, now: Time) -> Self {
        let begin = range.begin(now);
        let hour =
            |n: usize| Hour { at: begin.plus_ms(n as i64 * range.bar_ms()), tallied: Tallied::default() };
        let mut hours: Vec<Hour> = (0..range.bars()).map(hour).collect();
        let mut total = Tallied::default();
        let (mut sources, mut types) = (BTreeMap::new(), BTreeMap::new());
        let is_ours = |source: &str| [source_name::OWN, source_name::FETCHED].contains(&source);
        for count in counts.iter().filter(|count| !is_ours(&count.source)) {
            let bar = (count.hour.ms() - begin.ms()).div_euclid(range.bar_ms());
            let Some(hour) = usize::try_from(bar).ok().and_then(|bar| hours.get_mut(bar)) else { continue };
            hour.tallied.add(count.status, count.events);
            total.add(count.status, count.events);
            *sources.entry(count.source.as_str()).or_default() += count.events;
            *types.entry(count.event_type.as_str()).or_default() += count.events;
        }
        Self { hours, total, sources: top("source", sources), types: top("type", types) }
    }
}

/// The largest first; of equal ones, by name.
fn top(by: &'static str, of: BTreeMap<&str, i64>) -> Vec<Share> {
    let mut all: Vec<_> = of.into_iter().collect();
    all.sort_by_key(|(_, events)| std::cmp::Reverse(*events));
    let largest = all.first().map_or(1, |(_, events)| (*events).max(1));
    let share = |(name, events): (&str, i64)| Share {
        by,
        name: name.to_owned(),
        events,
        percent: (events * 100 / largest).max(1),
    };
    all.into_iter().take(TOP).map(share).collect()
}

#[cfg(test)]
mod tests {
    use sekisho_core::time::{HOUR_MS, hour_of};

    use super::*;

    const NOW: Time = Time::from_ms(1_780_000_000_000);

    fn count(hours_ago: i64, source: &str, event_type: &str, status: Status, events: i64) -> Count {
        let hour = hour_of(NOW).plus_ms(-hours_ago * HOUR_MS);
        Count { hour, source: source.into(), event_type: event_type.into(), status, events }
    }

    #[test]
    fn h1_a_day_has_24_hours_and_counts_only_what_came_in() {
        let day = DayBar::of(
            &[
                count(0, "stripe", "a", Status::Success, 3),
                count(0, "stripe", "b", Status::Failed, 1),
                count(23, "square", "a", Status::Skipped, 2),
                count(24, "stripe", "a", Status::Success, 100),
                count(0, "sekisho", "payment.paid", Status::Success, 50),
                count(0, "fetched", "charge", Status::Success, 50),
                count(5, "shop", "c", Status::Received, 4),
            ],
            OverviewRange::Day,
            NOW,
        );
        assert_eq!(day.hours.len(), 24);
        assert_eq!(day.total, Tallied { received: 4, success: 3, failed: 1, skipped: 2 });
        assert_eq!(day.total.all(), 10);
        let filled: Vec<_> = day.hours.iter().map(|hour| hour.tallied.all()).collect();
        assert_eq!((filled[0], filled[18], filled[23]), (2, 4, 4));
        let shown = |shares: &[Share]| {
            shares.iter().map(|share| (share.link(), share.events, share.percent)).collect::<Vec<_>>()
        };
        let to = |query: &str, events, percent| (format!("/console/events?{query}"), events, percent);
        let sources = [to("source=shop", 4, 100), to("source=stripe", 4, 100), to("source=square", 2, 50)];
        assert_eq!(shown(&day.sources), sources);
        assert_eq!(shown(&day.types), [to("type=a", 5, 100), to("type=c", 4, 80), to("type=b", 1, 20)]);
    }

    #[test]
    fn h1_a_week_and_a_month_are_counted_whole_in_longer_bars() {
        let counts: Vec<_> = (0..24 * 31).map(|ago| count(ago, "s", "t", Status::Success, 1)).collect();
        for (range, bars, each) in
            [(OverviewRange::Day, 24, 1), (OverviewRange::Week, 28, 6), (OverviewRange::Month, 30, 24)]
        {
            let figures = DayBar::of(&counts, range, NOW);
            assert_eq!(figures.total.all(), bars * each, "{range:?}");
            assert!(figures.hours.iter().all(|bar| bar.tallied.all() == each), "{range:?}");
        }
    }

    #[test]
    fn h1_only_the_largest_are_listed_and_none_vanishes() {
        let counts: Vec<_> =
            (0..20).map(|n| count(0, "s", &format!("t{n:02}"), Status::Success, 1 << n)).collect();
        let day = DayBar::of(&counts, OverviewRange::Day, NOW);
        assert_eq!((day.types.len(), day.types[0].name.as_str()), (TOP, "t19"));
        assert!(day.types.iter().all(|share| share.percent >= 1));
        assert!(DayBar::of(&[], OverviewRange::Day, NOW).sources.is_empty());
    }
}
