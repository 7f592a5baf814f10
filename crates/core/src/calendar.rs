//! Dates and the places where they begin: a deadline is a day on somebody's wall, not a moment.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use jiff::civil::Date;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::schedule;
use crate::time::Time;

/// A day of the calendar, written `2026-04-01`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Day(Date);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no day of the calendar; expected YYYY-MM-DD such as 2026-04-01")]
pub struct NotADay;

impl Day {
    /// How many days from this one to another; negative when that one is over.
    pub fn days_until(self, other: Self) -> i32 {
        (other.0 - self.0).get_days()
    }
}

impl FromStr for Day {
    type Err = NotADay;

    fn from_str(text: &str) -> Result<Self, NotADay> {
        // Other ways to write a date, or a time beside it, are not taken: they would not read back as they were written.
        let day = text.parse().ok().map(Self);
        day.filter(|day| day.to_string() == text).ok_or(NotADay)
    }
}

impl TryFrom<String> for Day {
    type Error = NotADay;

    fn try_from(text: String) -> Result<Self, NotADay> {
        text.parse()
    }
}

impl From<Day> for String {
    fn from(day: Day) -> Self {
        day.to_string()
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl JsonSchema for Day {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Day".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date" })
    }
}

/// A time zone by its IANA name, as the zones that come with the program spell it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Zone(String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no time zone; expected a name such as Asia/Tokyo, Europe/Berlin or UTC")]
pub struct NotAZone;

impl Zone {
    pub fn name(&self) -> &str {
        &self.0
    }

    /// The moment at which a clock there shows this: `2026-02-02T11:40`, as forms send it, seconds or not. What comes
    /// twice is meant the first time.
    pub fn moment(&self, shown: &str) -> Option<Time> {
        let there =
            shown.parse::<jiff::civil::DateTime>().ok()?.to_zoned(schedule::zone(&self.0).ok()?).ok()?;
        Some(Time::from_ms(there.timestamp().as_millisecond()))
    }

    /// What a clock there shows, to the second: `2026-02-02 11:40:00`. A moment no calendar knows is its number.
    pub fn clock(&self, at: Time) -> String {
        let stamp = jiff::Timestamp::from_millisecond(at.ms()).ok();
        let there = stamp.zip(schedule::zone(&self.0).ok()).map(|(stamp, zone)| stamp.to_zoned(zone));
        there.map_or_else(|| at.to_string(), |there| there.strftime("%Y-%m-%d %H:%M:%S").to_string())
    }
}

impl FromStr for Zone {
    type Err = NotAZone;

    fn from_str(text: &str) -> Result<Self, NotAZone> {
        let zone = schedule::zone(text).map_err(|_| NotAZone)?;
        Ok(Self(zone.iana_name().unwrap_or(text).to_owned()))
    }
}

impl TryFrom<String> for Zone {
    type Error = NotAZone;

    fn try_from(text: String) -> Result<Self, NotAZone> {
        text.parse()
    }
}

impl From<Zone> for String {
    fn from(zone: Zone) -> Self {
        zone.0
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Which day it is there at a moment; `None` for a zone or a moment that no calendar knows.
pub fn local_date(zone: &str, at: Time) -> Option<Day> {
    let stamp = jiff::Timestamp::from_millisecond(at.ms()).ok()?;
    Some(Day(stamp.to_zoned(schedule::zone(zone).ok()?).date()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h1_what_a_clock_shows_leads_back_to_its_moment() {
        let moment = |zone: &str, shown| zone.parse::<Zone>().unwrap().moment(shown).map(|at| at.to_string());
        for (zone, shown, at) in [
            ("Asia/Tokyo", "2026-02-02T11:40", Some("2026-02-02T02:40:00.000Z")),
            ("Asia/Tokyo", "2026-02-02T11:40:30", Some("2026-02-02T02:40:30.000Z")),
            ("Europe/Berlin", "2026-10-25T02:30", Some("2026-10-25T00:30:00.000Z")),
            ("UTC", "2026-02-30T11:40", None),
            ("UTC", "yesterday", None),
            ("UTC", "", None),
        ] {
            assert_eq!(moment(zone, shown).as_deref(), at, "{zone} {shown}");
        }
    }

    #[test]
    fn g4_a_day_is_one_of_the_calendar_and_written_in_one_way() {
        for good in ["2026-04-01", "2028-02-29", "0001-01-01", "9999-12-31"] {
            let day: Day = good.parse().unwrap();
            assert_eq!(day.to_string(), good);
            assert_eq!(serde_json::to_string(&day).unwrap(), format!("\"{good}\""));
        }
        for bad in [
            "",
            "2026-02-30",
            "2026-02-29",
            "2026-13-01",
            "2026-4-1",
            "2026/04/01",
            "20260401",
            "2026-04-01T00:00:00",
            " 2026-04-01",
            "令和8年4月1日",
        ] {
            assert_eq!(bad.parse::<Day>(), Err(NotADay), "{bad}");
            assert!(serde_json::from_value::<Day>(bad.into()).is_err(), "{bad}");
        }
        let day = |text: &str| text.parse::<Day>().unwrap();
        assert_eq!(day("2026-02-27").days_until(day("2026-03-02")), 3);
        assert_eq!(day("2026-03-02").days_until(day("2026-02-27")), -3);
        assert_eq!(day("0001-01-01").days_until(day("9999-12-31")), 3_652_058);
    }

    #[test]
    fn h1_what_a_clock_shows_is_the_moment_it_showed_it() {
        for (zone, shown, moment) in [
            ("Asia/Tokyo", "2026-02-02T11:40", Some("2026-02-02T02:40:00Z")),
            ("Asia/Tokyo", "2026-02-02T11:40:09", Some("2026-02-02T02:40:09Z")),
            ("UTC", "2026-02-02 11:40", Some("2026-02-02T11:40:00Z")),
            ("Europe/Berlin", "2026-10-25T02:30", Some("2026-10-25T00:30:00Z")),
            ("UTC", "yesterday", None),
            ("UTC", "", None),
        ] {
            let zone: Zone = zone.parse().unwrap();
            assert_eq!(zone.moment(shown), moment.and_then(Time::parse_rfc3339), "{zone} {shown}");
        }
    }

    #[test]
    fn g4_a_zone_is_known_and_spelt_as_its_zone_is() {
        for (given, kept) in [("Asia/Tokyo", "Asia/Tokyo"), ("asia/tokyo", "Asia/Tokyo"), ("UTC", "UTC")] {
            assert_eq!(given.parse::<Zone>().unwrap().name(), kept);
        }
        for bad in ["", "Tokyo", "Asia/Edo", "JST-9", "+09:00"] {
            assert_eq!(bad.parse::<Zone>(), Err(NotAZone), "{bad}");
        }
    }

    #[test]
    fn g4_a_day_begins_when_it_begins_there() {
        let cases = [
            ("Asia/Tokyo", "2026-03-31T14:59:59Z", Some("2026-03-31")),
            ("Asia/Tokyo", "2026-03-31T15:00:00Z", Some("2026-04-01")),
            ("UTC", "2026-03-31T15:00:00Z", Some("2026-03-31")),
            ("America/New_York", "2026-03-31T03:59:59Z", Some("2026-03-30")),
            ("Asia/Edo", "2026-03-31T15:00:00Z", None),
        ];
        for (zone, at, expected) in cases {
            let found = local_date(zone, Time::parse_rfc3339(at).unwrap()).map(|day| day.to_string());
            assert_eq!(found.as_deref(), expected, "{zone} {at}");
        }
        assert_eq!(local_date("UTC", Time::from_ms(i64::MAX)), None);
    }
}
