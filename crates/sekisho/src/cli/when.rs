//! Moments as people type them, past and future.

use sekisho_core::Time;

use crate::now;

/// `2026-02-02T02:40:00Z`, `2026-02-02` (midnight UTC), or so long ago: `90s`, `30m`, `2h`, `3d`.
pub fn moment(text: &str) -> Result<Time, String> {
    parse(text, now())
        .ok_or_else(|| "expected 2026-02-02T02:40:00Z, 2026-02-02, or how long ago: 30m, 2h, 3d".into())
}

/// The same of what is to come: `2026-02-02T02:40:00Z`, `2026-02-02` (midnight UTC), or in so long: `30m`, `2h`, `3d`.
pub fn later(text: &str) -> Result<Time, String> {
    parse_later(text, now())
        .ok_or_else(|| "expected 2026-02-02T02:40:00Z, 2026-02-02, or how long from now: 30m, 2h, 3d".into())
}

/// `24h`, as it could be typed: in the greatest unit that is even.
pub fn span_text(seconds: i64) -> String {
    const UNITS: [(char, i64); 3] = [('d', 86_400), ('h', 3_600), ('m', 60)];
    let even = UNITS.iter().find(|(_, unit)| seconds > 0 && seconds % unit == 0);
    even.map_or_else(|| format!("{seconds}s"), |(name, unit)| format!("{}{name}", seconds / unit))
}

fn parse(text: &str, now: Time) -> Option<Time> {
    span_ms(text).map(|ms| now.plus_ms(-ms)).or_else(|| date(text))
}

fn parse_later(text: &str, now: Time) -> Option<Time> {
    span_ms(text).map(|ms| now.plus_ms(ms)).or_else(|| date(text))
}

fn span_ms(text: &str) -> Option<i64> {
    const UNITS: [(char, i64); 4] = [('s', 1_000), ('m', 60_000), ('h', 3_600_000), ('d', 86_400_000)];
    UNITS.iter().find_map(|(unit, ms)| {
        let number: u32 = text.strip_suffix(*unit)?.parse().ok()?;
        Some(i64::from(number) * ms)
    })
}

fn date(text: &str) -> Option<Time> {
    Time::parse_rfc3339(text).or_else(|| Time::parse_rfc3339(&format!("{text}T00:00:00Z")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h2_a_moment_is_a_date_or_so_long_ago() {
        let now = Time::parse_rfc3339("2026-02-03T12:00:00Z").unwrap();
        let cases = [
            ("2026-02-02T02:40:00Z", Some("2026-02-02T02:40:00.000Z")),
            ("2026-02-02T11:40:00+09:00", Some("2026-02-02T02:40:00.000Z")),
            ("2026-02-02", Some("2026-02-02T00:00:00.000Z")),
            ("90s", Some("2026-02-03T11:58:30.000Z")),
            ("2h", Some("2026-02-03T10:00:00.000Z")),
            ("3d", Some("2026-01-31T12:00:00.000Z")),
            ("0m", Some("2026-02-03T12:00:00.000Z")),
            ("-2h", None),
            ("yesterday", None),
            ("", None),
            ("d", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text, now).map(|time| time.to_string()).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn h2_what_is_to_come_is_a_date_or_in_so_long() {
        let now = Time::parse_rfc3339("2026-02-03T12:00:00Z").unwrap();
        for (text, expected) in [
            ("2026-02-04", Some("2026-02-04T00:00:00.000Z")),
            ("2026-02-04T11:40:00+09:00", Some("2026-02-04T02:40:00.000Z")),
            ("30m", Some("2026-02-03T12:30:00.000Z")),
            ("2d", Some("2026-02-05T12:00:00.000Z")),
            ("-2h", None),
            ("tomorrow", None),
        ] {
            assert_eq!(parse_later(text, now).map(|time| time.to_string()).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn h2_a_span_is_shown_as_it_could_be_typed() {
        let cases =
            [(0, "0s"), (90, "90s"), (1_800, "30m"), (14_400, "4h"), (86_400, "1d"), (129_600, "36h")];
        for (seconds, expected) in cases {
            assert_eq!(span_text(seconds), expected);
        }
    }
}
