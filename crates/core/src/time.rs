//! A moment, in milliseconds since 1970. It always comes in as an argument: the core has no clock.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(i64);

impl Time {
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms)
    }

    pub const fn from_seconds(seconds: i64) -> Self {
        Self(seconds.saturating_mul(1000))
    }

    pub const fn ms(self) -> i64 {
        self.0
    }

    pub const fn seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }

    #[must_use]
    pub const fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Reads RFC 3339 text such as `2026-02-02T02:40:00.000Z` or `…+09:00`.
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        text.parse::<jiff::Timestamp>().ok().map(|stamp| Self(stamp.as_millisecond()))
    }
}

pub const HOUR_MS: i64 = 3_600_000;
pub const DAY_MS: i64 = 24 * HOUR_MS;

/// The start of the hour a moment lies in.
pub const fn hour_of(time: Time) -> Time {
    Time::from_ms(time.ms().div_euclid(HOUR_MS) * HOUR_MS)
}

/// RFC 3339 in UTC with milliseconds; a moment no calendar can name prints as its number.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(stamp) => write!(f, "{stamp:.3}"),
            Err(_) => write!(f, "{}", self.0),
        }
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Reads back what is printed.
impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse_rfc3339(&text)
            .or_else(|| text.parse().ok().map(Self))
            .ok_or_else(|| D::Error::custom("expected a time such as 2026-02-02T02:40:00.000Z"))
    }
}

impl JsonSchema for Time {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_prints_as_rfc3339_and_reads_back() {
        let time = Time::from_ms(1_770_000_000_123);
        assert_eq!(time.to_string(), "2026-02-02T02:40:00.123Z");
        assert_eq!(Time::parse_rfc3339("2026-02-02T02:40:00.123Z"), Some(time));
        assert_eq!(Time::parse_rfc3339("2026-02-02T11:40:00.123+09:00"), Some(time));
        assert_eq!(Time::parse_rfc3339("yesterday"), None);
        for time in [time, Time::from_ms(i64::MAX)] {
            let json = serde_json::to_string(&time).unwrap();
            assert_eq!(serde_json::from_str::<Time>(&json).unwrap(), time);
        }
        assert!(serde_json::from_str::<Time>("\"yesterday\"").is_err());
    }

    #[test]
    fn absurd_times_print_and_do_not_panic() {
        assert_eq!(Time::from_ms(i64::MAX).to_string(), i64::MAX.to_string());
        assert_eq!(Time::from_seconds(i64::MAX).ms(), i64::MAX);
        assert_eq!(Time::from_ms(-1).seconds(), -1);
    }
}
