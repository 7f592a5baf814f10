//! One partition of `event` per day, so that old days can go without a trace. Made ahead of time, and on demand when
//! an event finds none. Differs from SQLite, which has no partitions.

use std::collections::BTreeSet;
use std::time::Duration;

use sekisho_core::{Seq, Time};

use super::connection::{Link, value};
use crate::error::{Error, Result};

const DAY_MS: i64 = 86_400_000;
/// Today and three more: a weekend without upkeep.
const DAYS_AHEAD: i64 = 3;
/// 2025-01-01 to 2094-01-01, what numbers can name. A wild clock makes no partition outside.
const SANE: std::ops::Range<i64> = 20_089..45_291;
/// Against other nodes that make the same partition, and against locks.
const TRIES_MAX: usize = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// A day, counted from 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(i64);

impl Day {
    pub fn of(time: Time) -> Option<Self> {
        Some(time.ms().div_euclid(DAY_MS)).filter(|day| SANE.contains(day)).map(Self)
    }

    pub fn of_seq(seq: Seq) -> Option<Self> {
        Self::of(seq.made_at())
    }

    /// `event_20260528`
    fn partition(self) -> String {
        let date = Time::from_ms(self.0 * DAY_MS).to_string();
        format!("event_{}", date[..10].replace('-', ""))
    }

    fn floor(self) -> i64 {
        Seq::floor_of(Time::from_ms(self.0 * DAY_MS)).as_i64()
    }

    fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// Partitions for today and the next days.
pub async fn make_ahead(link: &Link, now: Time) -> Result<()> {
    let days = (0..=DAYS_AHEAD).filter_map(|ahead| Day::of(now.plus_ms(ahead * DAY_MS))).collect();
    make(link, &days).await
}

/// Partitions for these days, unless they are there. Many nodes may do it at once.
pub async fn make(link: &Link, days: &BTreeSet<Day>) -> Result<()> {
    let mut missing = missing(link, days).await?;
    let mut tries = 0;
    while let Some(&day) = missing.first() {
        match link.script(&creation(day)).await {
            Ok(()) => {}
            Err(failure) if failure.is_a_race() && tries < TRIES_MAX => {
                tries += 1;
                tokio::time::sleep(PAUSE).await;
            }
            // Always worth another try: nothing was lost, and the obstacle is named.
            Err(failure) => return Err(Error::unavailable(failure)),
        }
        missing = self::missing(link, days).await?;
    }
    Ok(())
}

const PARTITIONS: &str = "SELECT relname::text FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
    WHERE inhparent = 'event'::regclass";

async fn missing(link: &Link, days: &BTreeSet<Day>) -> Result<Vec<Day>> {
    let rows = link.query(PARTITIONS, &[]).await?;
    let present = rows.iter().map(|row| value(row, 0)).collect::<Result<BTreeSet<String>>>()?;
    Ok(days.iter().filter(|day| !present.contains(&day.partition())).copied().collect())
}

/// Created and then attached: CREATE … PARTITION OF would block ingest. The advisory lock saves nodes from racing;
/// nothing depends on it.
fn creation(day: Day) -> String {
    let (name, from, to) = (day.partition(), day.floor(), day.next().floor());
    format!(
        "SELECT set_config('lock_timeout', '200ms', true);
         SELECT pg_advisory_xact_lock(hashtext('sekisho event partition'));
         CREATE TABLE {name} (LIKE event INCLUDING ALL);
         ALTER TABLE event ATTACH PARTITION {name} FOR VALUES FROM ({from}) TO ({to});"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_names_and_bounds_and_wild_ones_have_none() {
        let day = Day::of(Time::parse_rfc3339("2026-05-28T23:59:59.999Z").unwrap()).unwrap();
        assert_eq!(day.partition(), "event_20260528");
        assert_eq!(day.next().partition(), "event_20260529");
        let noon = Seq::floor_of(Time::parse_rfc3339("2026-05-28T12:00:00Z").unwrap());
        assert!(day.floor() < noon.as_i64() && noon.as_i64() < day.next().floor());
        assert_eq!(Day::of_seq(noon), Some(day));
        assert_eq!(Day::of(Time::parse_rfc3339("2025-01-01T00:00:00Z").unwrap()).unwrap().floor(), 0);
        let last = Day::of(Time::parse_rfc3339("2093-12-31T00:00:00Z").unwrap()).unwrap();
        assert!(last.floor() < last.next().floor());
        for wild in ["2024-12-31T23:59:59Z", "2094-01-01T00:00:00Z"] {
            assert_eq!(Day::of(Time::parse_rfc3339(wild).unwrap()), None);
        }
        assert_eq!(Day::of_seq(Seq::from_i64(-1)), None);
    }
}
