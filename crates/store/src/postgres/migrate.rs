//! Brings the schema up to date. Safe when many nodes start at once: a migration and its entry in `migration` are one
//! transaction, so whoever comes second fails on the entry, looks again and finds nothing left to do.

use std::collections::BTreeMap;
use std::time::Duration;

use super::MIGRATIONS;
use super::connection::{Link, value};
use crate::error::{Error, OpenError, Result};
use crate::migration::{self, Migration};

/// How often a node that lost the race looks again.
const TRIES_MAX: usize = 20;
const PAUSE: Duration = Duration::from_millis(50);

pub async fn bring_up_to_date(
    link: &Link,
    unreachable: impl Fn(Error) -> OpenError,
) -> std::result::Result<(), OpenError> {
    let mut tries = 0;
    loop {
        let applied = applied(link).await.map_err(&unreachable)?;
        let Some(next) = migration::pending(MIGRATIONS, &applied)?.into_iter().next() else { return Ok(()) };
        match link.script(&script(next)).await {
            Ok(()) => {
                tracing::info!(number = next.number, name = next.name, "the store's schema was migrated");
            }
            Err(failure) if failure.is_a_race() && tries < TRIES_MAX => {
                tries += 1;
                tokio::time::sleep(PAUSE).await;
            }
            Err(failure) => return Err(unreachable(failure.into())),
        }
    }
}

pub async fn require_current(
    link: &Link,
    unreachable: impl Fn(Error) -> OpenError,
) -> std::result::Result<(), OpenError> {
    migration::require_current(MIGRATIONS, &applied(link).await.map_err(&unreachable)?)
}

const IS_NEW: &str = "SELECT to_regclass('migration') IS NULL";
const APPLIED: &str = "SELECT number, checksum FROM migration";

async fn applied(link: &Link) -> Result<BTreeMap<i64, String>> {
    let rows = link.query(IS_NEW, &[]).await?;
    let is_new: bool = rows.first().map_or(Ok(true), |row| value(row, 0))?;
    if is_new {
        return Ok(BTreeMap::new());
    }
    let rows = link.query(APPLIED, &[]).await?;
    rows.iter().map(|row| Ok((value(row, 0)?, value(row, 1)?))).collect()
}

/// The entry comes first, so that the loser of a race fails before it touches anything. The advisory lock lets it
/// wait instead of failing; nothing depends on it. The time is the server's: it is for people only.
fn script(migration: &Migration) -> String {
    format!(
        "SELECT pg_advisory_xact_lock(hashtext('sekisho migration'));
         CREATE TABLE IF NOT EXISTS migration (
             number bigint PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at timestamptz NOT NULL
         );
         INSERT INTO migration VALUES ({}, '{}', '{}', now());
         {}",
        migration.number,
        migration.name,
        migration.checksum(),
        migration.sql
    )
}
