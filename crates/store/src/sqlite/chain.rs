//! The chain that audit entries hang on. The writer has one, begun anew with every start: what a transaction notes hangs
//! on one link, written just before COMMIT.

use std::cell::RefCell;
use std::ops::Deref;

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

/// An open transaction.
pub struct Tx<'c> {
    connection: &'c Connection,
    chain: RefCell<Chain>,
}

impl Deref for Tx<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}

impl<'c> Tx<'c> {
    /// The chain is a copy: a transaction that is rolled back leaves the writer's as it was.
    pub fn new(connection: &'c Connection, chain: &Chain) -> Self {
        Self { connection, chain: RefCell::new(chain.clone()) }
    }

    pub fn note(&self, entry: &Entry) -> rusqlite::Result<()> {
        let mut chain = self.chain.borrow_mut();
        let id = match chain.id {
            Some(id) => id,
            None => self.query_row("SELECT coalesce(max(chain), 0) + 1 FROM link", [], |row| row.get(0))?,
        };
        let digest = entry.digest();
        self.prepare_cached(
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
            chain.n + 1,
        ])?;
        chain.id = Some(id);
        chain.digests.push(digest);
        Ok(())
    }

    /// Hangs what was noted on one link, and gives the chain as it is once this is committed.
    pub fn link(self) -> rusqlite::Result<Chain> {
        let mut chain = self.chain.into_inner();
        if chain.digests.is_empty() {
            return Ok(chain);
        }
        let previous = chain.head;
        chain.head = audit::link(&previous, chain.digests.drain(..));
        chain.n += 1;
        self.connection
            .prepare_cached("INSERT INTO link (chain, n, previous, hash) VALUES ($1, $2, $3, $4)")?
            .execute(params![chain.id, chain.n, previous, chain.head])?;
        Ok(chain)
    }
}
