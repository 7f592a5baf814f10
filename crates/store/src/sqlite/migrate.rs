//! Brings the schema up to date, one transaction per migration. The process lock keeps others out meanwhile.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, TransactionBehavior, params};

use super::{MIGRATIONS, connection};
use crate::error::OpenError;
use crate::migration::pending;

pub fn run(connection: &mut Connection, path: &Path) -> Result<(), OpenError> {
    let unreachable = |error| connection::unreachable(path, error);
    let create = "CREATE TABLE IF NOT EXISTS migration (
        number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at TEXT NOT NULL
    ) STRICT";
    connection.execute(create, []).map_err(unreachable)?;
    for migration in pending(MIGRATIONS, &applied(connection).map_err(unreachable)?)? {
        let mut apply = || -> rusqlite::Result<()> {
            let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            tx.execute_batch(migration.sql)?;
            tx.execute(
                "INSERT INTO migration (number, name, checksum, applied_at) VALUES ($1, $2, $3, datetime('now'))",
                params![migration.number, migration.name, migration.checksum()],
            )?;
            tx.commit()
        };
        apply().map_err(unreachable)?;
        tracing::info!(number = migration.number, name = migration.name, "the schema was brought forward");
    }
    Ok(())
}

/// Checksums of what was applied; empty for a file without our tables.
pub fn applied(connection: &Connection) -> rusqlite::Result<BTreeMap<i64, String>> {
    let ours = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'migration'";
    if connection.query_row(ours, [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(BTreeMap::new());
    }
    let mut statement = connection.prepare("SELECT number, checksum FROM migration")?;
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}
