//! Which events came before. Keys are mostly hash: inserted one by one, nearly each would change a page of its own, the
//! more are stored the surer. So the newest keys stand in memory and, in the order they came, in one of two tables.
//! When there are many, the other table takes the new ones, and these are merged into `dedupe_merged` in the order of the
//! keys, a few with each batch: a page then takes several at once.
//!
//! Nearly every key is new. A [`Sieve`] knows that, before anything is looked up.
//!
//! Memory holds what is committed. What an open transaction changes stands beside it, in [`Changes`], until COMMIT.
//!
//! No constraint holds across these tables. So whoever finds a key under two numbers, an event that was stored twice, ends
//! the process: see [`doubled`].

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard};

use rusqlite::{CachedStatement, Connection, OptionalExtension, params};
use sekisho_core::Seq;
use sekisho_core::event::DedupeKey;

use super::sieve::Sieve;
use super::writer;

/// Keys in memory before they are merged: about twelve megabytes, in a map of 2^18 places with room for the batch that
/// goes beyond. Few where tests run, so that all of them merge.
const NEWEST_MAX: usize = if cfg!(debug_assertions) { 64 } else { 3 << 16 };
/// Keys merged for each new one: the merging is done when the newest are half as many again.
const MERGED_PER_NEW: usize = 2;

const LOAD: [&str; 2] = ["SELECT key, seq FROM dedupe_fresh_0", "SELECT key, seq FROM dedupe_fresh_1"];
const INSERT: [&str; 2] = [
    "INSERT INTO dedupe_fresh_0 (seq, key) VALUES ($1, $2)",
    "INSERT INTO dedupe_fresh_1 (seq, key) VALUES ($1, $2)",
];
const REMOVE: [&str; 2] = [
    "DELETE FROM dedupe_fresh_0 WHERE seq = $1 AND key = $2",
    "DELETE FROM dedupe_fresh_1 WHERE seq = $1 AND key = $2",
];
const CLEAR: [&str; 2] = ["DELETE FROM dedupe_fresh_0", "DELETE FROM dedupe_fresh_1"];

type Entry = (DedupeKey, Seq);

pub struct DedupeKeys {
    fresh: Mutex<Fresh>,
    sieve: Mutex<Sieve>,
}

#[derive(Default)]
struct Fresh {
    newest: HashMap<DedupeKey, Seq>,
    /// The table they stand in.
    table: usize,
    /// Those of the other table, sorted.
    older: Vec<Entry>,
    /// How many of these are merged.
    merged: usize,
}

/// The statements by which new keys enter, looked up once for a batch.
pub struct Entering<'c> {
    merged: Merged<'c>,
    insert: CachedStatement<'c>,
}

/// What an open transaction did.
#[derive(Default)]
pub struct Changes {
    added: HashMap<DedupeKey, Seq>,
    removed: HashSet<DedupeKey>,
    merged: usize,
}

impl DedupeKeys {
    pub fn load(db: &Connection) -> rusqlite::Result<Self> {
        let (fresh, mut sieve) = (Fresh::load(db)?, Sieve::default());
        fresh.newest.keys().chain(fresh.older.iter().map(|(key, _)| key)).for_each(|key| sieve.add(key));
        Ok(Self { fresh: Mutex::new(fresh), sieve: Mutex::new(sieve) })
    }

    /// Reads again what is committed, when memory may be wrong about it.
    pub fn reload(&self, db: &Connection) -> rusqlite::Result<()> {
        *self.fresh() = Fresh::load(db)?;
        Ok(())
    }

    fn fresh(&self) -> MutexGuard<'_, Fresh> {
        self.fresh.lock().expect("no code panics here")
    }

    pub fn sieve(&self) -> MutexGuard<'_, Sieve> {
        self.sieve.lock().expect("no code panics here")
    }

    /// The numbers under which keys are stored, as committed.
    pub fn known(&self, db: &Connection, keys: &[DedupeKey]) -> rusqlite::Result<Vec<Option<Seq>>> {
        let fresh: Vec<_> = {
            let fresh = self.fresh();
            keys.iter().map(|key| fresh.get(key)).collect()
        };
        // What was merged since then is in the table: the read begins only now.
        let mut merged = Merged::prepare(db)?;
        keys.iter()
            .zip(fresh)
            .map(|(key, seq)| seq.map_or_else(|| merged.get(key), |seq| Ok(Some(seq))))
            .collect()
    }

    /// Which table takes new keys changes only between two transactions.
    pub fn prepare<'c>(&self, tx: &'c Connection) -> rusqlite::Result<Entering<'c>> {
        let insert = tx.prepare_cached(INSERT[self.fresh().table])?;
        Ok(Entering { merged: Merged::prepare(tx)?, insert })
    }

    /// Stores a key, unless it is stored already: then the number it has is told.
    pub fn enter(
        &self,
        entering: &mut Entering<'_>,
        changes: &mut Changes,
        (key, seq): Entry,
    ) -> rusqlite::Result<Option<Seq>> {
        let stored = self.stored(&mut entering.merged, changes, &key)?;
        if stored.is_none() {
            // Before it is committed: if that fails, it costs a needless look.
            self.sieve().add(&key);
            entering.insert.execute(params![seq.as_i64(), key.as_bytes()])?;
            changes.added.insert(key, seq);
        }
        Ok(stored)
    }

    fn stored(
        &self,
        merged: &mut Merged<'_>,
        changes: &Changes,
        key: &DedupeKey,
    ) -> rusqlite::Result<Option<Seq>> {
        if !self.sieve().may_hold(key) {
            return Ok(None);
        }
        if let Some(seq) = changes.added.get(key) {
            return Ok(Some(*seq));
        }
        if changes.removed.contains(key) {
            return Ok(None);
        }
        let fresh = self.fresh().get(key);
        fresh.map_or_else(|| merged.get(key), |seq| Ok(Some(seq)))
    }

    /// Removes a key, if it is stored under this number.
    pub fn remove(&self, tx: &Connection, changes: &mut Changes, (key, seq): Entry) -> rusqlite::Result<()> {
        if self.stored(&mut Merged::prepare(tx)?, changes, &key)? != Some(seq) {
            return Ok(());
        }
        for remove in REMOVE {
            tx.prepare_cached(remove)?.execute(params![seq.as_i64(), key.as_bytes()])?;
        }
        tx.prepare_cached("DELETE FROM dedupe_merged WHERE key = $1")?.execute([key.as_bytes()])?;
        changes.added.remove(&key);
        changes.removed.insert(key);
        Ok(())
    }

    /// Merges a few of the older keys, and clears their table after the last.
    pub fn merge(&self, tx: &Connection, changes: &mut Changes) -> rusqlite::Result<()> {
        let fresh = self.fresh();
        let waiting = &fresh.older[fresh.merged..];
        changes.merged = waiting.len().min(changes.added.len() * MERGED_PER_NEW);
        if changes.merged == 0 {
            return Ok(());
        }
        let mut insert =
            tx.prepare_cached("INSERT INTO dedupe_merged (key, seq) VALUES ($1, $2) ON CONFLICT DO NOTHING")?;
        let mut merged = Merged::prepare(tx)?;
        for (key, seq) in &waiting[..changes.merged] {
            if changes.removed.contains(key) || insert.execute(params![key.as_bytes(), seq.as_i64()])? == 1 {
                continue;
            }
            // Merged before, under the same number, if the process ended before the table was cleared.
            if let Some(stored) = merged.get(key)?.filter(|stored| stored != seq) {
                doubled(*seq, stored);
            }
        }
        if changes.merged == waiting.len() {
            tx.prepare_cached(CLEAR[1 - fresh.table])?.execute([])?;
        }
        Ok(())
    }

    /// Follows a committed transaction.
    pub fn apply(&self, changes: Changes) {
        self.fresh().apply(changes);
    }
}

impl Fresh {
    fn load(db: &Connection) -> rusqlite::Result<Self> {
        let [first, second] = [entries(db, LOAD[0])?, entries(db, LOAD[1])?];
        let latest = |entries: &[Entry]| entries.iter().map(|(_, seq)| *seq).max();
        let (table, newest, mut older) =
            if latest(&first) >= latest(&second) { (0, first, second) } else { (1, second, first) };
        older.sort_unstable();
        let mut fresh = Self { newest: HashMap::with_capacity(newest.len()), table, older, merged: 0 };
        if let Some(pair) = fresh.older.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            doubled(pair[0].1, pair[1].1);
        }
        for (key, seq) in newest {
            if let Some(stored) = fresh.get(&key) {
                doubled(seq, stored);
            }
            fresh.newest.insert(key, seq);
        }
        Ok(fresh)
    }

    fn get(&self, key: &DedupeKey) -> Option<Seq> {
        let older = || {
            let n = self.older.binary_search_by_key(key, |(key, _)| *key).ok()?;
            Some(self.older[n].1)
        };
        self.newest.get(key).copied().or_else(older)
    }

    fn apply(&mut self, changes: Changes) {
        self.merged += changes.merged;
        if !changes.removed.is_empty() {
            let gone = |(key, _): &Entry| changes.removed.contains(key);
            self.newest.retain(|key, _| !changes.removed.contains(key));
            self.merged -= self.older[..self.merged].iter().filter(|entry| gone(entry)).count();
            self.older.retain(|entry| !gone(entry));
        }
        self.newest.extend(changes.added);
        if self.merged == self.older.len() {
            (self.older, self.merged) = (Vec::new(), 0);
        }
        if self.older.is_empty() && self.newest.len() >= NEWEST_MAX {
            self.older = self.newest.drain().collect();
            self.older.sort_unstable();
            self.table = 1 - self.table;
        }
    }
}

/// One event is stored twice, and may have been settled and delivered twice. No path of this program leads here, so what it
/// believes about the file is wrong: nothing more is acknowledged, and a person must look.
fn doubled(one: Seq, other: Seq) -> ! {
    let (first, second) = (one.min(other), one.max(other));
    tracing::error!(error_type = "stored_twice",
        first = %first.as_event(),
        second = %second.as_event(),
        "an event is stored twice: leaving, because nothing that comes can be told from what came before; see \
         \"An event that is stored twice\" in docs/operating/sqlite.md"
    );
    std::process::exit(writer::EXIT_DOUBLED);
}

fn entries(db: &Connection, sql: &str) -> rusqlite::Result<Vec<Entry>> {
    let mut rows = db.prepare(sql)?;
    let rows =
        rows.query_map([], |row| Ok((DedupeKey::from_bytes(row.get(0)?), Seq::from_i64(row.get(1)?))))?;
    rows.collect()
}

/// The numbers under which keys are stored, by the tables alone.
pub fn stored(db: &Connection, keys: &[DedupeKey]) -> rusqlite::Result<Vec<Option<Seq>>> {
    keys.iter().map(|key| find(db, "key", key.as_bytes())).collect()
}

/// The number of an event by what its id alone makes of a key: the provider's clock is not known here, and where the
/// proof does not cover the id, the keys hold more than it.
pub fn by_id(db: &Connection, key: &DedupeKey) -> rusqlite::Result<Option<Seq>> {
    let mut first = db.prepare_cached("SELECT seq FROM first_body WHERE id = $1")?;
    let first = first.query_row([key.as_bytes()], |row| row.get(0).map(Seq::from_i64)).optional()?;
    first.map_or_else(|| find(db, "substr(key, 5)", key.hash()), |seq| Ok(Some(seq)))
}

fn find(db: &Connection, part: &str, value: &[u8]) -> rusqlite::Result<Option<Seq>> {
    let sql = format!(
        "SELECT seq FROM dedupe_merged WHERE {part} = $1
         UNION ALL SELECT seq FROM dedupe_fresh_0 WHERE {part} = $1
         UNION ALL SELECT seq FROM dedupe_fresh_1 WHERE {part} = $1
         ORDER BY seq DESC LIMIT 1"
    );
    db.prepare_cached(&sql)?.query_row([value], |row| row.get(0).map(Seq::from_i64)).optional()
}

struct Merged<'c>(CachedStatement<'c>);

impl<'c> Merged<'c> {
    fn prepare(db: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self(db.prepare_cached("SELECT seq FROM dedupe_merged WHERE key = $1")?))
    }

    fn get(&mut self, key: &DedupeKey) -> rusqlite::Result<Option<Seq>> {
        self.0.query_row([key.as_bytes()], |row| row.get(0).map(Seq::from_i64)).optional()
    }
}
