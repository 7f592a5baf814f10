//! The chain that audit entries hang on. The writer has one, begun anew with every start: what a transaction notes hangs
//! on one link, written just before COMMIT.

use rusqlite::{Connection, params};
use sekisho_core::Seq;
use sekisho_core::audit::{self, BEGINNING, Entry, Hash};

/// Where a chain ends.
#[derive(Clone)]
pub struct Chain {
    /// Given with its first entry.
    id: Option<i64>,
    n: i64,
    head: Hash,
    /// Noted in this transaction.
    digests: Vec<Hash>,
}

impl Default for Chain {
    fn default() -> Self {
        Self { id: None, n: 0, head: BEGINNING, digests: Vec::new() }
    }
}

impl Chain {
    pub fn note(&mut self, db: &Connection, entry: &Entry) -> rusqlite::Result<()> {
        let id = match self.id {
            Some(id) => id,
            None => db.query_row("SELECT coalesce(max(chain), 0) + 1 FROM link", [], |row| row.get(0))?,
        };
        let digest = entry.digest();
        db.prepare_cached(
            "INSERT INTO audit (at, actor, role, action, target_kind, target_id, tenant, event, details, digest, chain, n)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
        )?
        .execute(params![
            entry.at.ms(),
            entry.actor,
            entry.role,
            entry.action,
            entry.target.0,
            entry.target.1,
            entry.tenant,
            entry.event.map(Seq::as_i64),
            entry.details,
            digest,
            id,
            self.n + 1,
        ])?;
        self.id = Some(id);
        self.digests.push(digest);
        Ok(())
    }

    /// Hangs what was noted on one link; the chain is then as it is once this is committed.
    pub fn link(&mut self, db: &Connection) -> rusqlite::Result<()> {
        if self.digests.is_empty() {
            return Ok(());
        }
        let previous = self.head;
        self.head = audit::link(&previous, self.digests.drain(..));
        self.n += 1;
        db.prepare_cached("INSERT INTO link (chain, n, previous, hash) VALUES ($1, $2, $3, $4)")?
            .execute(params![self.id, self.n, previous, self.head])?;
        Ok(())
    }
}
