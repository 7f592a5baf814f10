//! A SQLite file asked past all of the product's code, whether or not a server has it open.
//!
//! Never checkpoints: a file left behind by a killed server stays as that server left it.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags};

/// How long a question may wait for a writer.
const PATIENCE: Duration = Duration::from_mins(1);

/// Rows as lines, columns split by `|`, as `psql -A -t` prints them.
pub fn query(file: &Path, sql: &str) -> Result<String, String> {
    ask(file, sql).map_err(|error| format!("{} does not answer `{sql}`: {error}", file.display()))
}

fn ask(file: &Path, sql: &str) -> rusqlite::Result<String> {
    // Not read-only: after a kill the log's index must be rebuilt before anything can be read.
    let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.busy_timeout(PATIENCE)?;
    let mut statement = connection.prepare(sql)?;
    let columns = statement.column_count();
    let mut rows = statement.query([])?;
    let mut lines = Vec::new();
    while let Some(row) = rows.next()? {
        let cells = (0..columns).map(|n| row.get(n).map(text)).collect::<rusqlite::Result<Vec<_>>>()?;
        lines.push(cells.join("|"));
    }
    Ok(lines.join("\n"))
}

fn text(value: Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => text,
        Value::Blob(bytes) => format!("{} bytes", bytes.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_as_lines_and_the_log_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.db");
        let owner = Connection::open(&file).unwrap();
        owner.pragma_update(None, "journal_mode", "wal").unwrap();
        owner.execute_batch("CREATE TABLE t (n, x); INSERT INTO t VALUES (1, 'a'), (2, NULL)").unwrap();
        assert_eq!(query(&file, "SELECT n, x FROM t ORDER BY n").unwrap(), "1|a\n2|");
        std::mem::forget(owner);
        assert_eq!(query(&file, "SELECT count(*) FROM t").unwrap(), "2");
        assert!(dir.path().join("a.db-wal").metadata().unwrap().len() > 0);
        assert!(query(&file, "SELECT nothing").unwrap_err().contains("nothing"));
    }
}
