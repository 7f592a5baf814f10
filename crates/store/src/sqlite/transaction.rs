//! An open transaction of the writer, with what it changes in the writer's memory: the end of the audit chain and the
//! newest keys. Memory follows only when it is committed.

use std::cell::{RefCell, RefMut};
use std::ops::Deref;

use rusqlite::Connection;
use sekisho_core::Seq;
use sekisho_core::audit::Entry;
use sekisho_core::event::DedupeKey;

use super::admit::Inserts;
use super::chain::Chain;
use super::keys::{Changes, DedupeKeys, Entering};

pub struct Tx<'c> {
    connection: &'c Connection,
    chain: RefCell<Chain>,
    keys: &'c DedupeKeys,
    changes: RefCell<Changes>,
    inserts: RefCell<Option<Inserts<'c>>>,
}

/// What the writer remembers once a transaction is committed.
pub struct Closed {
    pub chain: Chain,
    pub keys: Changes,
}

impl Deref for Tx<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}

impl<'c> Tx<'c> {
    /// The chain is a copy: a transaction that is rolled back leaves the writer's as it was.
    pub fn new(connection: &'c Connection, chain: &Chain, keys: &'c DedupeKeys) -> Self {
        let (chain, changes) = (RefCell::new(chain.clone()), RefCell::default());
        Self { connection, chain, keys, changes, inserts: RefCell::default() }
    }

    pub fn note(&self, entry: &Entry) -> rusqlite::Result<()> {
        self.chain.borrow_mut().note(self, entry)
    }

    pub fn inserts(&self) -> rusqlite::Result<RefMut<'_, Inserts<'c>>> {
        let mut inserts = self.inserts.borrow_mut();
        if inserts.is_none() {
            *inserts = Some(Inserts::prepare(self.connection, self.keys)?);
        }
        Ok(RefMut::map(inserts, |inserts| inserts.as_mut().expect("they were just prepared")))
    }

    /// Stores a key, unless it is stored already: then the number it has is told.
    pub fn enter_key(
        &self,
        entering: &mut Entering<'_>,
        key: DedupeKey,
        seq: Seq,
    ) -> rusqlite::Result<Option<Seq>> {
        self.keys.enter(entering, &mut self.changes.borrow_mut(), (key, seq))
    }

    /// Removes a key, if it is stored under this number.
    pub fn remove_key(&self, key: DedupeKey, seq: Seq) -> rusqlite::Result<()> {
        self.keys.remove(self, &mut self.changes.borrow_mut(), (key, seq))
    }

    /// The last work before COMMIT.
    pub fn close(self) -> rusqlite::Result<Closed> {
        let (mut chain, mut keys) = (self.chain.into_inner(), self.changes.into_inner());
        chain.link(self.connection)?;
        self.keys.merge(self.connection, &mut keys)?;
        Ok(Closed { chain, keys })
    }
}
