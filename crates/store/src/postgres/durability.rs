//! Whether this server keeps what it acknowledged. Asked before the first write on every connection that writes.

use std::collections::HashMap;

use tokio_postgres::Client;

use super::connection::Link;
use super::failure::QueryFailure;
use crate::error::{Error, OpenError};

/// The oldest PostgreSQL we know: lz4, and partitions that detach without blocking.
const VERSION_MIN: i64 = 140_000;

/// What is wrong with the server's settings, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[error("{what}. {cure}")]
pub struct Unsafe {
    pub what: String,
    pub cure: String,
}

/// At the start an unsafe server is an error of its own, with its cure.
pub async fn require_for_opening(
    link: &Link,
    unreachable: impl Fn(Error) -> OpenError,
) -> std::result::Result<(), OpenError> {
    match link.query("SELECT 1", &[]).await {
        Ok(_) => Ok(()),
        Err(QueryFailure::Unsafe(Unsafe { what, cure })) => Err(OpenError::Unsafe { what, cure }),
        Err(failure) => Err(unreachable(failure.into())),
    }
}

/// Every setting that must hold here.
const ASK: &str = "SELECT name, setting FROM pg_settings WHERE name IN
    ('server_version_num', 'server_encoding', 'fsync', 'full_page_writes', 'synchronous_commit',
     'synchronous_standby_names')";

/// `allow_unsafe` forgives what could lose acknowledged events, but never a server that can't work at all.
/// Says whether commits wait for a standby.
pub async fn require(client: &Client, allow_unsafe: bool) -> Result<bool, QueryFailure> {
    let rows = client.query(ASK, &[]).await?;
    let mut found = HashMap::new();
    for row in &rows {
        found.insert(row.try_get::<_, String>(0)?, row.try_get::<_, String>(1)?);
    }
    let setting = |name: &str| found.get(name).map_or("", String::as_str);
    check(setting, allow_unsafe)?;
    Ok(!setting("synchronous_standby_names").is_empty())
}

fn check<'s>(setting: impl Fn(&str) -> &'s str, allow_unsafe: bool) -> Result<(), Unsafe> {
    let version = setting("server_version_num");
    if version.parse::<i64>().is_ok_and(|version| version < VERSION_MIN) {
        return Err(Unsafe {
            what: format!("the server's version is {version}"),
            cure: "Use PostgreSQL 14 or newer".into(),
        });
    }
    if setting("server_encoding") != "UTF8" {
        return Err(Unsafe {
            what: format!("the database's encoding is {}", setting("server_encoding")),
            cure: "Make it anew: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0".into(),
        });
    }
    for (name, refused) in [("fsync", "off"), ("full_page_writes", "off"), ("synchronous_commit", "off")] {
        if setting(name) == refused && allow_unsafe {
            tracing::warn!(
                error_type = "unsafe_durability",
                name,
                "durability is not assured, and [store] allow_unsafe_durability permits it"
            );
        } else if setting(name) == refused {
            return Err(Unsafe {
                what: format!("PostgreSQL runs with {name} = {refused}"),
                cure: format!(
                    "Set {name} = on (see SHOW {name}; ALTER DATABASE and ALTER ROLE can set it too)"
                ),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a5_settings_that_lose_acknowledged_events_are_refused() {
        let safe = [
            ("server_version_num", "150018"),
            ("server_encoding", "UTF8"),
            ("fsync", "on"),
            ("full_page_writes", "on"),
            ("synchronous_commit", "on"),
        ];
        // (changed setting, its value, refused, refused even when unsafe durability is allowed)
        let cases = [
            ("fsync", "on", false, false),
            ("fsync", "off", true, false),
            ("full_page_writes", "off", true, false),
            ("synchronous_commit", "off", true, false),
            ("synchronous_commit", "remote_apply", false, false),
            ("synchronous_commit", "local", false, false),
            ("server_version_num", "130011", true, true),
            ("server_encoding", "LATIN1", true, true),
        ];
        for (name, value, refused, always) in cases {
            let mut settings = HashMap::from(safe);
            settings.insert(name, value);
            let setting = |name: &str| settings[name];
            assert_eq!(check(setting, false).is_err(), refused, "{name} = {value}");
            assert_eq!(check(setting, true).is_err(), always, "{name} = {value}");
        }
    }
}
