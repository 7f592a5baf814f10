//! When a cron line is due, in the time zone of whoever wrote it.
//!
//! Daylight saving follows what people expect of a clock on the wall: a fixed time happens once a day, at the end of the
//! gap when the clock jumps over it and the first time when it comes twice. Zones come with the program, not with the
//! machine.

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::tz::{TimeZone, TimeZoneDatabase};

use crate::time::Time;

#[derive(Clone, Debug)]
pub struct Schedule {
    cron: Cron,
    zone: TimeZone,
}

/// A date to look from whether a line is ever due: 2025-01-01.
const ANY_DAY: Time = Time::from_ms(1_735_689_600_000);

/// A time zone by its IANA name.
pub fn zone(name: &str) -> Result<TimeZone, String> {
    TimeZoneDatabase::bundled().get(name).map_err(|_| {
        format!(
            "there is no time zone {name:?}; expected a name such as \"UTC\", \"Asia/Tokyo\" or \"Europe/Berlin\""
        )
    })
}

/// Which field of a line can't be read: the one that can't be read among stars either.
fn fault(parser: CronParser, line: &str) -> String {
    const NAMES: [&str; 6] = ["second", "minute", "hour", "day", "month", "weekday"];
    let fields: Vec<_> = line.split_whitespace().collect();
    let Some(names) = NAMES.len().checked_sub(fields.len()).filter(|first| *first < 2).map(|n| &NAMES[n..])
    else {
        return format!("it has {} fields", fields.len());
    };
    let alone = |n: usize| {
        let line: Vec<_> = (0..fields.len()).map(|at| if at == n { fields[n] } else { "*" }).collect();
        line.join(" ")
    };
    match (0..fields.len()).find(|n| parser.parse(&alone(*n)).is_err()) {
        Some(n) => format!("{:?} is no {}", fields[n], names[n]),
        None => "its fields don't go together".to_owned(),
    }
}

impl Schedule {
    /// Five fields, or six with seconds first; the zone by its IANA name.
    pub fn parse(cron: &str, zone: &str) -> Result<Self, String> {
        let zone = self::zone(zone)?;
        let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
        let cron = parser.parse(cron).map_err(|_| {
            let wrong = fault(parser, cron);
            format!(
                "{cron:?} is no cron line: {wrong}; expected minute, hour, day, month and weekday such as \"0 9 * * MON-FRI\""
            )
        })?;
        let schedule = Self { cron, zone };
        if schedule.next_after(ANY_DAY).is_none() {
            return Err(format!("{:?} is never due; there is no such day", schedule.cron.as_str()));
        }
        Ok(schedule)
    }

    /// The first occurrence later than this.
    pub fn next_after(&self, after: Time) -> Option<Time> {
        let from = jiff::Timestamp::from_millisecond(after.ms()).ok()?.to_zoned(self.zone.clone());
        let next = self.cron.find_next_occurrence(&from, false).ok()?;
        Some(Time::from_ms(next.timestamp().as_millisecond())).filter(|next| *next > after)
    }

    /// Is this moment an occurrence?
    pub fn is_due_at(&self, at: Time) -> bool {
        self.next_after(at.plus_ms(-1)) == Some(at)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn times(cron: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
        let schedule = Schedule::parse(cron, zone).unwrap();
        let first = Time::parse_rfc3339(after).unwrap();
        let all = std::iter::successors(schedule.next_after(first), |last| schedule.next_after(*last));
        all.take(count).map(|time| time.to_string().replace(":00.000Z", "Z")).collect()
    }

    #[test]
    fn a_line_is_due_in_its_zone() {
        assert_eq!(
            times("0 9 * * MON-FRI", "Asia/Tokyo", "2026-02-06T00:00:00Z", 2),
            ["2026-02-09T00:00Z", "2026-02-10T00:00Z"]
        );
        assert_eq!(
            times("*/20 * * * *", "UTC", "2026-02-06T00:19:59.999Z", 2),
            ["2026-02-06T00:20Z", "2026-02-06T00:40Z"]
        );
        assert_eq!(
            times("0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", 2),
            ["2028-02-29T00:00Z", "2032-02-29T00:00Z"]
        );
        assert_eq!(times("0 0 L * *", "UTC", "2026-02-01T00:00:00Z", 1), ["2026-02-28T00:00Z"]);
        let seconds = Schedule::parse("*/10 * * * * *", "UTC").unwrap();
        assert_eq!(seconds.next_after(Time::from_ms(10_000)), Some(Time::from_ms(20_000)));
    }

    #[test]
    fn a_line_that_is_none_is_told_where() {
        for (line, wrong) in [
            ("at 3", "it has 2 fields"),
            ("1 2 3 4 5 6 7", "it has 7 fields"),
            ("61 9 * * *", "\"61\" is no minute"),
            ("0 9 * * FOO", "\"FOO\" is no weekday"),
            ("x 0 9 * * *", "\"x\" is no second"),
            ("0 0 30 2 *", "never due"),
        ] {
            let refusal = Schedule::parse(line, "UTC").unwrap_err();
            assert!(refusal.contains(wrong), "{refusal}");
        }
    }

    #[test]
    fn a_time_in_the_spring_gap_happens_once() {
        // 2026-03-29: from 02:00 (+01:00) the clock jumps to 03:00 (+02:00), at 01:00 UTC.
        assert_eq!(
            times("30 2 * * *", "Europe/Berlin", "2026-03-27T12:00:00Z", 3),
            ["2026-03-28T01:30Z", "2026-03-29T01:00Z", "2026-03-30T00:30Z"]
        );
        assert_eq!(
            times("0 * * * *", "Europe/Berlin", "2026-03-28T23:30:00Z", 3),
            ["2026-03-29T00:00Z", "2026-03-29T01:00Z", "2026-03-29T02:00Z"]
        );
    }

    #[test]
    fn a_time_in_the_autumn_overlap_happens_once() {
        // 2026-10-25: at 03:00 (+02:00) the clock goes back to 02:00 (+01:00), at 01:00 UTC.
        assert_eq!(
            times("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2),
            ["2026-10-25T00:30Z", "2026-10-26T01:30Z"]
        );
        assert_eq!(
            times("0 * * * *", "Europe/Berlin", "2026-10-24T23:30:00Z", 3),
            ["2026-10-25T00:00Z", "2026-10-25T01:00Z", "2026-10-25T02:00Z"]
        );
    }

    #[test]
    fn an_occurrence_is_known() {
        let schedule = Schedule::parse("30 2 * * *", "Europe/Berlin").unwrap();
        let due = |text: &str| schedule.is_due_at(Time::parse_rfc3339(text).unwrap());
        assert!(due("2026-03-28T01:30:00Z") && due("2026-10-25T00:30:00Z"));
        assert!(!due("2026-10-25T01:30:00Z"), "the second 02:30 of that day");
        assert!(!due("2026-03-28T01:30:00.001Z") && !due("2026-03-28T01:29:59.999Z"));
    }

    #[test]
    fn what_is_no_line_or_zone_is_said_with_an_example() {
        for line in ["", "x", "* * *", "60 * * * *", "0 0 30 2 *", "* * * * * * 2030", "0 25 * * *"] {
            assert!(Schedule::parse(line, "UTC").is_err(), "{line}");
        }
        assert!(Schedule::parse("0 25 * * *", "UTC").unwrap_err().contains("0 9 * * MON-FRI"));
        assert!(Schedule::parse("0 0 30 2 *", "UTC").unwrap_err().contains("never"));
        for zone in ["", "Tokyo", "Asia/Edo"] {
            assert!(Schedule::parse("0 9 * * *", zone).unwrap_err().contains("Asia/Tokyo"), "{zone}");
        }
    }

    #[test]
    fn absurd_moments_have_no_next() {
        let schedule = Schedule::parse("* * * * *", "UTC").unwrap();
        for ms in [i64::MIN, i64::MAX] {
            assert_eq!(schedule.next_after(Time::from_ms(ms)), None);
            assert!(!schedule.is_due_at(Time::from_ms(ms)));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn the_next_time_is_later_and_due(
            ms in 1_700_000_000_000i64..2_000_000_000_000,
            line in prop::sample::select(vec!["* * * * *", "*/7 1-3 * * *", "30 2 * * *", "0 0 1 * *", "15,45 * * * SUN"]),
            zone in prop::sample::select(vec!["UTC", "Europe/Berlin", "Asia/Tokyo", "America/New_York", "Australia/Lord_Howe"]),
        ) {
            let schedule = Schedule::parse(line, zone).unwrap();
            let after = Time::from_ms(ms);
            let next = schedule.next_after(after).unwrap();
            prop_assert!(next > after);
            prop_assert!(schedule.is_due_at(next));
        }
    }
}
