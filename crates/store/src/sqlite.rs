//! The store on SQLite: one writer thread that commits everything queued at once, a few connections that read.
//!
//! One process serves a file; a lock beside it says so. WAL with synchronous=FULL: what was answered is on disk.

mod act;
mod admit;
mod chain;
mod commit;
mod condition;
mod connection;
mod find;
mod find_audit;
mod find_delivery;
mod find_state;
mod find_work;
mod keys;
mod log;
mod log_file;
mod migrate;
mod node;
mod row;
mod sieve;
#[cfg(test)]
mod tests;
mod transaction;
mod upkeep;
mod work;
mod writer;

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sekisho_core::change::{Act, Admission, Arrival, ChangeSet, Committed, Rejection, Replayed};
use sekisho_core::event::{DedupeKey, Stored};
use sekisho_core::job::{Attempt, Job, Lane, Lease, Settle};
use sekisho_core::state::{Key, State};
use sekisho_core::{Epoch, Seq, Time};

use crate::migration::Migration;
use crate::{
    Access, AuditFilter, AuditLink, AuditPage, BookedLine, ChainHead, Committers, Count, DeadFilter,
    DeadGroup, DeadLetter, DeliveryCounts, DeliveryFilter, DeliveryPage, Error, EventFilter, EventPage,
    EventRecord, FIND_MAX, Forgotten, HourMoney, Joined, LineFilter, Loaded, NodeRecord, OpenError,
    PendingWork, Pulse, RejectionFilter, Result, StateFilter, Store, StoredMessage, Sum,
};
use connection::ReaderPool;
use keys::DedupeKeys;
use log::WriteAheadLog;
use writer::Writer;

pub const MIGRATIONS: &[Migration] = &[
    Migration { number: 1, name: "schema", sql: include_str!("migrations/sqlite/0001_schema.sql") },
    Migration { number: 2, name: "orders", sql: include_str!("migrations/sqlite/0002_orders.sql") },
    Migration {
        number: 3,
        name: "hourly_money",
        sql: include_str!("migrations/sqlite/0003_hourly_money.sql"),
    },
];

pub struct SqliteStore {
    /// Absent when the store was opened only to look, and so are the keys.
    writer: Option<Writer>,
    keys: Option<Arc<DedupeKeys>>,
    pages: ReaderPool,
    engine: ReaderPool,
    /// Held for as long as this process serves the file.
    _lock: Option<File>,
}

/// Opens or creates the file. The folder is created too, readable by its owner alone.
pub async fn open(path: &Path, access: Access) -> std::result::Result<SqliteStore, OpenError> {
    let path = path.to_owned();
    let opened = tokio::task::spawn_blocking(move || open_blocking(&path, access)).await;
    opened.expect("opening a file does not panic")
}

fn open_blocking(path: &Path, access: Access) -> std::result::Result<SqliteStore, OpenError> {
    if access == Access::Read {
        let pages = ReaderPool::for_pages(path)?;
        pages.require_current(path)?;
        return Ok(SqliteStore {
            writer: None,
            keys: None,
            pages,
            engine: ReaderPool::for_engine(path)?,
            _lock: None,
        });
    }
    if access == Access::Act {
        ReaderPool::for_pages(path)?.require_current(path)?;
    }
    let lock = connection::lock(path)?;
    let mut connection = connection::open_writer(path)?;
    if access != Access::Act {
        migrate::run(&mut connection, path)?;
    }
    if let Access::Serve { allow_unsafe_durability } = access {
        connection::assert_durable(&connection, path, allow_unsafe_durability)?;
        // One process serves the file, so every earlier node is dead.
        connection.execute("DELETE FROM node", []).map_err(|error| connection::unreachable(path, error))?;
    }
    let (pages, engine) = (ReaderPool::for_pages(path)?, ReaderPool::for_engine(path)?);
    let unreachable = |error| connection::unreachable(path, error);
    let keys = Arc::new(DedupeKeys::load(&connection).map_err(unreachable)?);
    let log = WriteAheadLog::follow(&mut connection, path).map_err(unreachable)?;
    let writer = Writer::start(connection, log, Arc::clone(&keys));
    if matches!(access, Access::Serve { .. }) {
        sieve::fill_beside(&keys, path).map_err(unreachable)?;
    }
    Ok(SqliteStore { writer: Some(writer), keys: Some(keys), pages, engine, _lock: Some(lock) })
}

#[async_trait]
impl Store for SqliteStore {
    async fn join(&self, now: Time) -> Result<Joined> {
        self.write(move |tx| node::join(tx, now)).await?.ok_or_else(Error::crowded)
    }

    async fn beat(&self, epoch: Epoch, n: i64) -> Result<Pulse> {
        self.write(move |tx| node::beat(tx, epoch, n)).await
    }

    async fn end(&self, epoch: Epoch, n: i64) -> Result<bool> {
        self.write(move |tx| node::end(tx, epoch, n)).await
    }

    async fn leave(&self, epoch: Epoch) -> Result<()> {
        self.write(move |tx| node::leave(tx, epoch)).await
    }

    async fn admit(&self, arrivals: Arc<[Arrival]>, keep: Option<Epoch>) -> Result<Vec<Admission>> {
        admit::admit(self, arrivals, keep).await
    }

    fn committers(&self) -> Committers {
        // The one writer commits together whatever waits when it is free; it should never wait for the next to come.
        Committers { count: 16, apart: Duration::ZERO }
    }

    async fn known(&self, keys: &[DedupeKey]) -> Result<Vec<Option<Seq>>> {
        let (asked, memory) = (keys.to_vec(), self.keys.clone());
        let read = move |db: &_| match memory {
            Some(memory) => memory.known(db, &asked),
            None => keys::stored(db, &asked),
        };
        self.look_up(read).await
    }

    async fn claim(&self, epoch: Epoch, wants: Vec<(Lane, usize)>, now: Time) -> Result<Vec<Job>> {
        self.write(move |tx| work::claim(tx, epoch, &wants, now)).await
    }

    async fn commit(&self, sets: Vec<ChangeSet>) -> Result<Vec<Committed>> {
        self.write(move |tx| commit::commit(tx, &sets)).await
    }

    async fn start(&self, leases: Vec<Lease>) -> Result<Vec<bool>> {
        self.write(move |tx| work::start(tx, &leases)).await
    }

    async fn release(&self, leases: Vec<Lease>) -> Result<()> {
        self.write(move |tx| work::release(tx, &leases)).await
    }

    async fn owned(&self, epoch: Epoch, after: Seq) -> Result<Vec<Lease>> {
        self.look_up(move |db| work::owned(db, epoch, after)).await
    }

    async fn adopt(&self, leases: Vec<Lease>) -> Result<Vec<Job>> {
        self.write(move |tx| work::adopt(tx, &leases)).await
    }

    async fn sweep(&self, limit: usize, suspect_after: i32) -> Result<usize> {
        self.write(move |tx| work::sweep(tx, limit, suspect_after)).await
    }

    async fn make_due(&self, limit: usize, now: Time) -> Result<usize> {
        self.write(move |tx| work::make_due(tx, limit, now)).await
    }

    async fn lanes(&self) -> Result<Vec<(Lane, Time)>> {
        self.look_up(work::lanes).await
    }

    async fn load_events(&self, seqs: Vec<Seq>) -> Result<Vec<Stored>> {
        let seqs = seqs.into_iter().collect();
        self.look_up(move |db| find::stored(db, &seqs)).await
    }

    async fn retry(&self, jobs: Vec<Seq>, act: Act) -> Result<Vec<bool>> {
        self.write(move |tx| act::retry(tx, &jobs, &act)).await
    }

    async fn discard(&self, jobs: Vec<Seq>, act: Act) -> Result<Vec<bool>> {
        self.write(move |tx| act::discard(tx, &jobs, &act)).await
    }

    async fn cancel(&self, jobs: Vec<Seq>, act: Act) -> Result<Vec<bool>> {
        self.write(move |tx| act::cancel(tx, &jobs, &act)).await
    }

    async fn replay(&self, events: Vec<Seq>, settle: Settle, act: Act) -> Result<Vec<Replayed>> {
        self.write(move |tx| act::replay(tx, &events, &settle, &act)).await
    }

    async fn load(&self, names: Vec<String>, keys: Vec<Key>) -> Result<Loaded> {
        self.look_up(move |db| find_state::load(db, names, keys)).await
    }

    async fn find_branches(&self, prefix: String, limit: usize) -> Result<Vec<String>> {
        self.read(move |db| find_state::branches(db, prefix, limit)).await
    }

    async fn find_states(&self, filter: StateFilter) -> Result<Vec<State>> {
        self.read(move |db| find_state::states(db, &filter)).await
    }

    async fn find_sums(&self, account: Option<String>) -> Result<Vec<Sum>> {
        self.read(move |db| find_state::sums(db, account.as_deref())).await
    }

    async fn find_lines(&self, filter: LineFilter) -> Result<Vec<BookedLine>> {
        self.read(move |db| find_state::lines(db, &filter)).await
    }

    async fn find_audit(&self, filter: AuditFilter) -> Result<AuditPage> {
        self.read(move |db| find_audit::audit(db, &filter)).await
    }

    async fn find_links(&self, after: Option<(i64, i64)>, limit: usize) -> Result<Vec<AuditLink>> {
        self.read(move |db| find_audit::links(db, after, limit)).await
    }

    async fn find_places(&self, entries: Vec<i64>) -> Result<BTreeSet<(i64, i64)>> {
        self.read(move |db| find_audit::places(db, &entries)).await
    }

    async fn chain_heads(&self) -> Result<Vec<ChainHead>> {
        self.read(find_audit::heads).await
    }

    async fn reject(&self, rejections: Vec<Rejection>) -> Result<()> {
        self.write(move |tx| upkeep::reject(tx, &rejections)).await
    }

    async fn upkeep(&self, _now: Time) -> Result<()> {
        // Differs from PostgreSQL: no partitions to make, and the log is tended by the writer.
        Ok(())
    }

    async fn count_hour(&self, hour: Time) -> Result<()> {
        self.write(move |tx| upkeep::count_hour(tx, hour)).await
    }

    async fn forget(&self, before: Time, after: Seq, limit: usize) -> Result<Forgotten> {
        self.write(move |tx| upkeep::forget(tx, before, after, limit)).await
    }

    async fn forget_meters(&self, from: String, to: String, limit: usize) -> Result<usize> {
        self.write(move |tx| upkeep::forget_meters(tx, &from, &to, limit)).await
    }

    async fn find_events(&self, filter: EventFilter) -> Result<EventPage> {
        self.read(move |db| find::events(db, &filter)).await
    }

    async fn find_event(&self, seq: Seq) -> Result<Option<EventRecord>> {
        self.read(move |db| find::event(db, seq)).await
    }

    async fn find_seq(&self, source: &str, event_id: &str) -> Result<Option<Seq>> {
        let key = DedupeKey::new(source, event_id, None);
        self.read(move |db| keys::by_id(db, &key)).await
    }

    async fn find_dead(&self, filter: DeadFilter) -> Result<Vec<DeadLetter>> {
        self.read(move |db| find_work::dead(db, &filter)).await
    }

    async fn find_dead_groups(&self, filter: DeadFilter) -> Result<Vec<DeadGroup>> {
        self.read(move |db| find_work::dead_groups(db, &filter)).await
    }

    async fn find_work(&self) -> Result<Vec<PendingWork>> {
        self.read(find_work::work).await
    }

    async fn find_nodes(&self) -> Result<Vec<NodeRecord>> {
        self.read(find::nodes).await
    }

    async fn find_message(&self, job: Seq) -> Result<Option<StoredMessage>> {
        self.read(move |db| find_work::message(db, job)).await
    }

    async fn find_messages(&self, event: Seq) -> Result<Vec<StoredMessage>> {
        self.read(move |db| find_work::messages(db, event)).await
    }

    async fn find_deliveries(&self, filter: DeliveryFilter) -> Result<DeliveryPage> {
        self.read(move |db| find_delivery::deliveries(db, &filter)).await
    }

    async fn find_delivery_counts(&self, mut events: Vec<Seq>) -> Result<Vec<DeliveryCounts>> {
        events.truncate(FIND_MAX);
        self.read(move |db| find_delivery::delivery_counts(db, &events)).await
    }

    async fn find_attempts(&self, job: Seq) -> Result<Vec<(i32, Attempt)>> {
        self.read(move |db| find_work::attempts(db, job)).await
    }

    async fn find_counts(&self, from: Time, to: Time) -> Result<Vec<Count>> {
        self.read(move |db| find_work::counts(db, from, to)).await
    }

    async fn find_money(&self, from: Time, to: Time) -> Result<Vec<HourMoney>> {
        self.read(move |db| find_work::money(db, from, to)).await
    }

    async fn find_rejections(&self, filter: RejectionFilter) -> Result<Vec<Rejection>> {
        self.read(move |db| find::rejections(db, &filter)).await
    }

    async fn describe(&self) -> Result<Vec<(String, String)>> {
        self.read(connection::describe).await
    }
}
