//! What Sekisho remembers. One interface, [`Store`], on memory, SQLite and PostgreSQL; the only SQL in the house.
//!
//! Stores write what the core decided; they don't decide. They have no clock: every time and id comes in. Each
//! promise of [`Store`] is a test in [`conformance`], run for all three. `sqlite/` and `postgres/` hold the same
//! files in the same order, so that a diff of the two shows only what really differs.

pub mod conformance;
mod error;
mod find;
pub mod memory;
mod migration;
pub mod postgres;
pub mod sqlite;
mod url;

use std::sync::Arc;

use async_trait::async_trait;
use sekisho_core::change::{Admission, Arrival, ChangeSet, Committed, Job, Lane, Lease, Rejection};
use sekisho_core::event::DedupeKey;
use sekisho_core::{Epoch, Seq, Time};

pub use error::{Error, OpenError, Result, chain};
pub use find::{EventFilter, EventRecord, EventSummary, Order, Status};
pub use url::StoreUrl;

/// Most arrivals one `admit` takes.
pub const ADMIT_MAX: usize = 1_000;
/// Most jobs one `claim`, and change sets one `commit`, take.
pub const CLAIM_MAX: usize = 1_000;
/// Most rows one `find_…` returns.
pub const FIND_MAX: usize = 1_000;
/// Rejections kept; older ones make room, so that an attacker can't fill the disk.
pub const REJECTIONS_MAX: usize = 10_000;

#[async_trait]
pub trait Store: Send + Sync {
    // --- nodes -----------------------------------------------------------------------------------------------

    /// Enters a new process. The epoch was never given before; `floor` is the largest number stored.
    async fn join(&self, now: Time) -> Result<Joined>;

    /// Says "I am alive" for the n-th time and hears who else is. `Ended` when another node gave this one up.
    async fn beat(&self, epoch: Epoch, n: i64) -> Result<Pulse>;

    /// Gives up a node whose beat still stands at `n`; false when it moved on. Also how a node leaves.
    async fn end(&self, epoch: Epoch, n: i64) -> Result<bool>;

    // --- arrival ---------------------------------------------------------------------------------------------

    /// Stores each new event with its dedupe entry and its first job in one durable commit, and answers in
    /// order. A row the database refuses fails alone. Safe to call again with the same rows after an
    /// unknown outcome: what had been stored under its own number is `Admitted` again.
    async fn admit(&self, arrivals: Arc<[Arrival]>) -> Result<Vec<Admission>>;

    /// How many `admit` calls are worth having under way at once.
    fn committers(&self) -> usize;

    /// The numbers under which these keys are stored, in order. A read: it confirms what the gate believes.
    async fn known(&self, keys: &[DedupeKey]) -> Result<Vec<Option<Seq>>>;

    // --- work ------------------------------------------------------------------------------------------------

    /// Leases up to `limit` due jobs of a lane to this node, oldest first.
    async fn claim(&self, epoch: Epoch, lane: &Lane, limit: usize, now: Time) -> Result<Vec<Job>>;

    /// Writes each change set whole if its lease still holds, else not at all; answers in order.
    async fn commit(&self, sets: Vec<ChangeSet>) -> Result<Vec<Committed>>;

    /// Frees up to `limit` jobs whose node is gone; says how many.
    async fn sweep(&self, limit: usize) -> Result<usize>;

    /// Hands claimed jobs back untouched, at shutdown.
    async fn release(&self, leases: Vec<Lease>) -> Result<()>;

    // --- the rest --------------------------------------------------------------------------------------------

    /// Keeps refused requests, the newest [`REJECTIONS_MAX`] of them.
    async fn reject(&self, rejections: Vec<Rejection>) -> Result<()>;

    /// Work that keeps the store in shape: partitions ahead, checkpoints. Cheap when there is nothing to do.
    async fn upkeep(&self, now: Time) -> Result<()>;

    /// One page of events; at most [`FIND_MAX`].
    async fn find_events(&self, filter: EventFilter) -> Result<Vec<EventSummary>>;

    /// One event with headers and body.
    async fn find_event(&self, seq: Seq) -> Result<Option<EventRecord>>;

    /// The number of an event by source and the provider's id, whenever it was created.
    async fn find_seq(&self, source: &str, event_id: &str) -> Result<Option<Seq>>;

    /// The newest rejections first.
    async fn find_rejections(&self, source: Option<String>, limit: usize) -> Result<Vec<Rejection>>;

    /// What the database is and how it is set, for `doctor`: name and value.
    async fn describe(&self) -> Result<Vec<(String, String)>>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joined {
    pub epoch: Epoch,
    pub floor: Seq,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pulse {
    Alive {
        peers: Vec<Peer>,
        /// The database's clock, for an alarm when clocks disagree; it decides nothing.
        store_time: Option<Time>,
    },
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    pub epoch: Epoch,
    pub beat: i64,
}

/// How a store is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To serve: brings the schema up to date, refuses unsafe durability settings.
    Serve { allow_unsafe_durability: bool },
    /// To bring the schema up to date, and nothing else.
    Migrate,
    /// To look, beside a running server. The schema must be current.
    Read,
}

/// Opens the store a URL names.
pub async fn open(url: &StoreUrl, access: Access) -> std::result::Result<Arc<dyn Store>, OpenError> {
    match url {
        StoreUrl::Sqlite(path) => Ok(Arc::new(sqlite::open(path, access).await?)),
        StoreUrl::Postgres(url) => Ok(Arc::new(postgres::open(url, access).await?)),
    }
}
