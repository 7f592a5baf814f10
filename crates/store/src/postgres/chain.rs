//! The chain that audit entries hang on. Each connection has its own: what a statement notes hangs on one link, and the
//! statement itself computes the hash, because only it knows which entries it wrote. After an answer that never came, or
//! on another connection, nobody knows where a chain ends; so another one begins.

use std::borrow::Cow;

use sekisho_core::audit::{BEGINNING, Entry};
use tokio_postgres::Row;

use super::failure::QueryFailure;
use super::upkeep::without_nul;

/// Where a chain ends.
pub struct Head {
    pub chain: i64,
    /// The number of the next link.
    pub next: i64,
    pub hash: Vec<u8>,
}

pub const NEW_CHAIN: &str = "SELECT nextval('chain')";

impl Head {
    pub fn beginning(chain: i64) -> Self {
        Self { chain, next: 1, hash: BEGINNING.to_vec() }
    }

    /// After a statement. The last column of its rows is the hash of the link, if it wrote one.
    pub fn after(self, rows: &[Row]) -> Result<Self, QueryFailure> {
        for row in rows {
            if let Some(hash) = row.try_get(row.len() - 1)? {
                return Ok(Self { hash, next: self.next + 1, ..self });
            }
        }
        Ok(self)
    }
}

/// An entry as the database can hold it: what is hashed is what is stored.
pub fn storable(entry: Entry) -> Entry {
    let clean = |text: String| match without_nul(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(clean) => clean,
    };
    Entry {
        at: entry.at,
        actor: entry.actor.map(clean),
        role: entry.role.map(clean),
        action: clean(entry.action),
        target: (clean(entry.target.0), clean(entry.target.1)),
        tenant: entry.tenant.map(clean),
        event: entry.event,
        details: clean(entry.details),
    }
}
