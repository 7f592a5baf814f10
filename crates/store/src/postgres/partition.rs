//! One partition of `event` per day, so that old days can go without a trace. Made ahead of time, and on demand when
//! an event finds none; dropped when nothing in it is needed any more. Differs from SQLite, which has no partitions.
//!
//! A partition is detached first, which blocks nobody, and looked at once more when no arrival can reach it. Whatever
//! stops halfway is found by its name and finished at the next call.

use std::collections::BTreeSet;
use std::time::Duration;

use sekisho_core::time::DAY_MS;
use sekisho_core::{Seq, Time};

use super::connection::{Link, value};
use super::failure::QueryFailure;
use crate::error::{Error, Result};

/// Today and three more: a weekend without upkeep.
const DAYS_AHEAD: i64 = 3;
/// 2025-01-01 to 2094-01-01, what numbers can name. A wild clock makes no partition outside.
const SANE: std::ops::Range<i64> = 20_089..45_291;
/// Against other nodes that make the same partition, and against locks.
const TRIES_MAX: usize = 20;
const PAUSE: Duration = Duration::from_millis(50);
/// Most partitions dropped at once; the others wait for the next call.
const DROPS_MAX: usize = 31;

/// A day, counted from 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PartitionDay(i64);

impl PartitionDay {
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

    /// The day a partition is for, by its name.
    fn of_partition(name: &str) -> Option<Self> {
        let date = name.strip_prefix("event_").filter(|date| date.len() == 8 && date.is_ascii())?;
        let (year, month, day) = (&date[..4], &date[4..6], &date[6..]);
        Self::of(Time::parse_rfc3339(&format!("{year}-{month}-{day}T00:00:00Z"))?)
    }

    pub fn floor(self) -> i64 {
        Seq::floor_of(Time::from_ms(self.0 * DAY_MS)).as_i64()
    }

    fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// Partitions for today and the next days.
pub async fn make_ahead(link: &Link, now: Time) -> Result<()> {
    let days = (0..=DAYS_AHEAD).filter_map(|ahead| PartitionDay::of(now.plus_ms(ahead * DAY_MS))).collect();
    make(link, &days).await
}

/// Partitions for these days, unless they are there. Many nodes may do it at once.
pub async fn make(link: &Link, days: &BTreeSet<PartitionDay>) -> Result<()> {
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

async fn missing(link: &Link, days: &BTreeSet<PartitionDay>) -> Result<Vec<PartitionDay>> {
    let rows = link.query(PARTITIONS, &[]).await?;
    let present = rows.iter().map(|row| value(row, 0)).collect::<Result<BTreeSet<String>>>()?;
    Ok(days.iter().filter(|day| !present.contains(&day.partition())).copied().collect())
}

/// Created and then attached: CREATE … PARTITION OF would block ingest. The advisory lock saves nodes from racing;
/// nothing depends on it.
fn creation(day: PartitionDay) -> String {
    let (name, attachment) = (day.partition(), attachment(day));
    format!(
        "SELECT set_config('lock_timeout', '200ms', true);
         SELECT pg_advisory_xact_lock(hashtext('sekisho event partition'));
         CREATE TABLE {name} (LIKE event INCLUDING ALL);
         {attachment};"
    )
}

fn attachment(day: PartitionDay) -> String {
    let (name, from, to) = (day.partition(), day.floor(), day.next().floor());
    format!("ALTER TABLE event ATTACH PARTITION {name} FOR VALUES FROM ({from}) TO ({to})")
}

/// Tables that are named like partitions, and how they stand to `event`.
const TABLES: &str = "
SELECT relname::text, inhrelid IS NOT NULL, coalesce(inhdetachpending, false)
FROM pg_class LEFT JOIN pg_inherits ON inhrelid = pg_class.oid AND inhparent = 'event'::regclass
WHERE relkind = 'r' AND relname ~ '^event_[0-9]{8}$'
AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'event'::regclass)
ORDER BY relname";

/// Drops every day that was over before a time and of which nothing is needed. What can't be dropped now, because
/// somebody reads it or another node is at it, is dropped later: it blocks nobody meanwhile.
pub async fn drop_before(link: &Link, before: Time) -> Result<()> {
    let rows = link.query(TABLES, &[]).await?;
    let horizon = Seq::floor_of(before).as_i64();
    let mut drops = 0;
    for row in &rows {
        let name: &str = value(row, 0)?;
        let Some(day) = PartitionDay::of_partition(name) else { continue };
        let standing = match (value(row, 1)?, value(row, 2)?) {
            (true, false) if day.next().floor() > horizon => continue,
            (true, false) => Standing::Attached,
            (true, true) => Standing::Detaching,
            (false, _) => Standing::Detached,
        };
        match drop_day(link, day, standing).await {
            Ok(dropped) => drops += usize::from(dropped),
            Err(failure) => {
                tracing::warn!(
                    error_type = "partition_busy",
                    partition = name,
                    error = failure.message(),
                    "an old partition is dropped later"
                );
                break;
            }
        }
        if drops == DROPS_MAX {
            break;
        }
    }
    Ok(())
}

enum Standing {
    Attached,
    Detaching,
    Detached,
}

/// False when something of the day is needed.
async fn drop_day(
    link: &Link,
    day: PartitionDay,
    standing: Standing,
) -> std::result::Result<bool, QueryFailure> {
    let name = day.partition();
    match standing {
        Standing::Attached if is_needed(link, day).await? => return Ok(false),
        Standing::Attached => {
            link.script(&format!("ALTER TABLE event DETACH PARTITION {name} CONCURRENTLY")).await?;
        }
        Standing::Detaching => {
            link.script(&format!("ALTER TABLE event DETACH PARTITION {name} FINALIZE")).await?;
        }
        Standing::Detached => {}
    }
    link.script(&removal(day)).await?;
    let rows = link.query(IS_LOOSE, &[&name]).await?;
    let is_loose = rows.first().map_or(Ok(false), |row| row.try_get(0))?;
    if is_loose {
        link.script(&attachment(day)).await?;
    }
    Ok(!is_loose)
}

const IS_LOOSE: &str = "SELECT NOT relispartition FROM pg_class WHERE oid = to_regclass($1)";

async fn is_needed(link: &Link, day: PartitionDay) -> std::result::Result<bool, QueryFailure> {
    let rows = link.query_once(&format!("SELECT {}", needs(day)), &[]).await?;
    Ok(rows.first().map_or(Ok(true), |row| row.try_get(0))?)
}

/// Whether work or a dead letter is about an event of that day, or one was not let go yet.
fn needs(day: PartitionDay) -> String {
    let (name, from, to) = (day.partition(), day.floor(), day.next().floor());
    format!(
        "EXISTS (SELECT FROM outcome JOIN {name} ON seq = job WHERE job >= {from} AND job < {to})
         OR EXISTS (SELECT FROM dead WHERE event >= {from} AND event < {to})
         OR EXISTS (SELECT FROM job WHERE event >= {from} AND event < {to})"
    )
}

/// Under a lock, and only while it is detached: another node may have put it back.
fn removal(day: PartitionDay) -> String {
    let (name, needed) = (day.partition(), needs(day));
    format!(
        "DO $$ BEGIN
             IF (SELECT relispartition FROM pg_class WHERE oid = to_regclass('{name}')) IS NOT FALSE THEN RETURN; END IF;
             LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE;
             IF (SELECT relispartition FROM pg_class WHERE oid = to_regclass('{name}')) THEN RETURN; END IF;
             IF {needed} THEN RETURN; END IF;
             DROP TABLE {name};
         END $$"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_names_and_bounds_and_wild_ones_have_none() {
        let day = PartitionDay::of(Time::parse_rfc3339("2026-05-28T23:59:59.999Z").unwrap()).unwrap();
        assert_eq!(day.partition(), "event_20260528");
        assert_eq!(day.next().partition(), "event_20260529");
        assert_eq!(PartitionDay::of_partition("event_20260528"), Some(day));
        for odd in ["event_20261328", "event_2026052", "event_archive1", "event_関所xx", "job"] {
            assert_eq!(PartitionDay::of_partition(odd), None);
        }
        let noon = Seq::floor_of(Time::parse_rfc3339("2026-05-28T12:00:00Z").unwrap());
        assert!(day.floor() < noon.as_i64() && noon.as_i64() < day.next().floor());
        assert_eq!(PartitionDay::of_seq(noon), Some(day));
        assert_eq!(
            PartitionDay::of(Time::parse_rfc3339("2025-01-01T00:00:00Z").unwrap()).unwrap().floor(),
            0
        );
        let last = PartitionDay::of(Time::parse_rfc3339("2093-12-31T00:00:00Z").unwrap()).unwrap();
        assert!(last.floor() < last.next().floor());
        for wild in ["2024-12-31T23:59:59Z", "2094-01-01T00:00:00Z"] {
            assert_eq!(PartitionDay::of(Time::parse_rfc3339(wild).unwrap()), None);
        }
        assert_eq!(PartitionDay::of_seq(Seq::from_i64(-1)), None);
    }
}
