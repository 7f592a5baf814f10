//! Moments as people type them.

use sekisho_core::Time;

use crate::now;

/// `2026-02-02T02:40:00Z`, `2026-02-02` (midnight UTC), or so long ago: `90s`, `30m`, `2h`, `3d`.
pub fn moment(text: &str) -> Result<Time, String> {
    parse(text, now())
        .ok_or_else(|| "expected 2026-02-02T02:40:00Z, 2026-02-02, or how long ago: 30m, 2h, 3d".into())
}

fn parse(text: &str, now: Time) -> Option<Time> {
    const UNITS: [(char, i64); 4] = [('s', 1_000), ('m', 60_000), ('h', 3_600_000), ('d', 86_400_000)];
    let ago = UNITS.iter().find_map(|(unit, ms)| {
        let number: u32 = text.strip_suffix(*unit)?.parse().ok()?;
        Some(now.plus_ms(-(i64::from(number) * ms)))
    });
    ago.or_else(|| Time::parse_rfc3339(text)).or_else(|| Time::parse_rfc3339(&format!("{text}T00:00:00Z")))
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
}
