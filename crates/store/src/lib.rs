//! What Sekisho remembers. One interface, [`Store`], on memory, SQLite and PostgreSQL; the only SQL in the house.
//!
//! Stores write what the core decided; they don't decide. They have no clock: every time and id comes in. Each
//! promise of [`Store`] is a test in [`conformance`], run for all three. `sqlite/` and `postgres/` hold the same
//! files in the same order, so that a diff of the two shows only what really differs.

mod audit;
pub mod conformance;
mod error;
mod find;
mod guard;
pub mod memory;
mod migration;
pub mod postgres;
pub mod sqlite;
mod url;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sekisho_core::change::{Act, Admission, Arrival, ChangeSet, Committed, Rejection, Replayed};
use sekisho_core::event::{DedupeKey, Stored};
use sekisho_core::job::{Attempt, Job, Lane, Lease, Settle};
use sekisho_core::state::{Key, State};
use sekisho_core::{Epoch, Seq, Time};

pub use audit::RETRIED;
pub use error::{Error, OpenError, Result, chain};
pub use find::{
    AuditFilter, AuditPage, BookedLine, ChainHead, Count, DeadFilter, DeadGroup, DeadLetter, DeliveryCounts,
    DeliveryFilter, DeliveryPage, DeliveryRecord, DeliveryStatus, EventFilter, EventPage, EventRecord,
    EventSummary, Forgotten, HourMoney, LastCall, LineFilter, NodeRecord, Order, PendingWork,
    RejectionFilter, Risk, Stake, Standing, StateFilter, Status, StoredMessage, Sum,
};
pub use sekisho_core::audit::{AuditLink, Numbered as AuditEntry};
pub use sekisho_core::state::Loaded;
pub use url::StoreUrl;

/// Most arrivals one `admit` takes.
pub const ADMIT_MAX: usize = 1_000;
/// Most jobs of a lane one `claim`, and change sets one `commit`, take.
pub const CLAIM_MAX: usize = 1_000;
/// Most rows one `find_…` returns.
pub const FIND_MAX: usize = 1_000;
/// Most events or audit entries one `find_…` looks at to fill its page: in a file with a million events a few milliseconds
/// when they follow each other, a few ten when an index leads to them one by one.
pub const SCAN_MAX: usize = 2_000;
/// Most jobs `find_work` looks at.
pub const WORK_MAX: usize = 100_000;
/// Most dead letters `find_dead_groups` looks at.
pub const GROUPED_MAX: usize = 10_000;
/// Rejections kept; older ones make room, so that an attacker can't fill the disk.
pub const REJECTIONS_MAX: usize = 10_000;
/// Of those, the most from one network, so that one attacker can't wash out what others did.
pub const REJECTIONS_OF_NETWORK_MAX: usize = 500;

/// How many `admit` calls are worth having under way at once, and how far apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committers {
    pub count: usize,
    /// While one is under way, the next begins this much later at the earliest. It carries more then.
    pub apart: Duration,
}

#[async_trait]
pub trait Store: Send + Sync {
    // --- nodes -----------------------------------------------------------------------------------------------

    /// Enters a new process. The epoch was never given before and is higher than all that were; `floor` is the largest id
    /// stored. No node that lives has the same [`Epoch::number`], and as long as another is free, none that was given up:
    /// it may only be paused, and write once more. `Unavailable` when [`NODES_MAX`] nodes live.
    ///
    /// [`NODES_MAX`]: sekisho_core::id::NODES_MAX
    async fn join(&self, now: Time) -> Result<Joined>;

    /// Says "I am alive" for the n-th time and hears who else is. `Ended` when another node gave this one up.
    async fn beat(&self, epoch: Epoch, n: i64) -> Result<Pulse>;

    /// Gives up a node whose beat still stands at `n`; false when it moved on, or went. Its number stays reserved.
    async fn end(&self, epoch: Epoch, n: i64) -> Result<bool>;

    /// A node goes by itself, and has nothing left to write: its number is free again. Twice is fine.
    async fn leave(&self, epoch: Epoch) -> Result<()>;

    // --- arrival ---------------------------------------------------------------------------------------------

    /// Stores each new event with its dedupe entry and its first job in one durable commit, and answers in
    /// order. With them it remembers the first body under the id of an arrival's `first_body`, and compares the later ones. With `keep`, first jobs are born leased to that node, at attempt 1. A row the database refuses fails
    /// alone. Safe to call again with the same rows after an unknown outcome: what had been stored under its own
    /// number is `Admitted` again.
    async fn admit(&self, arrivals: Arc<[Arrival]>, keep: Option<Epoch>) -> Result<Vec<Admission>>;

    /// How `admit` is best called.
    fn committers(&self) -> Committers;

    /// The numbers under which these keys are stored, in order. A read: it confirms what the gate believes.
    async fn known(&self, keys: &[DedupeKey]) -> Result<Vec<Option<Seq>>>;

    // --- work ------------------------------------------------------------------------------------------------

    /// Leases due jobs to this node, up to a number per lane, oldest first. Of jobs with the same `fifo` only the one
    /// with the lowest id can be had, and only when no lower one is unfinished.
    async fn claim(&self, epoch: Epoch, wants: Vec<(Lane, usize)>, now: Time) -> Result<Vec<Job>>;

    /// Writes each change set whole if its leases and versions still hold and its names are free, else not at all; answers
    /// in order. `Lost` comes before `Stale`. The sets of one call are meant to touch different things; those that don't
    /// come one after the other. First jobs of new events are born leased to the set's `keep`.
    async fn commit(&self, sets: Vec<ChangeSet>) -> Result<Vec<Committed>>;

    /// Notes that a leased job is about to run, so that a crash from here on is its own. Says whose lease held.
    async fn start(&self, leases: Vec<Lease>) -> Result<Vec<bool>>;

    /// Hands claimed jobs back untouched. The attempt is no try, and is never given out again.
    async fn release(&self, leases: Vec<Lease>) -> Result<()>;

    /// What this node has leased, by the store's account, with ids above `after`; at most [`CLAIM_MAX`].
    async fn owned(&self, epoch: Epoch, after: Seq) -> Result<Vec<Lease>>;

    /// Takes over leases that the node's memory does not hold, each under a new attempt, which is no try. A lease
    /// that moved on is left out.
    async fn adopt(&self, leases: Vec<Lease>) -> Result<Vec<Job>>;

    /// Frees up to `limit` jobs whose node is gone, counts the crash, and moves those with too many crashes to the
    /// suspect lane; there only a crash after `start` counts. The run that was cut off is no try. Says how many. Also
    /// frees a `fifo` whose turn was lost.
    async fn sweep(&self, limit: usize, suspect_after: i32) -> Result<usize>;

    /// Makes up to `limit` unleased jobs due that wait for later than `now`, all but timers. Says how many. For a start
    /// after a clock had been ahead: what was queued by it would wait until that time has really come.
    async fn make_due(&self, limit: usize, now: Time) -> Result<usize>;

    /// Every lane with unleased work, with when its oldest job is due.
    async fn lanes(&self) -> Result<Vec<(Lane, Time)>>;

    /// Events with body and headers, in the order of their numbers; unknown ones are left out.
    async fn load_events(&self, seqs: Vec<Seq>) -> Result<Vec<Stored>>;

    // --- acts of people --------------------------------------------------------------------------------------

    /// Queues dead letters again, each under its own id and as [`Task::retried`](sekisho_core::job::Task::retried) says; says
    /// which were there. Every one is audited.
    async fn retry(&self, jobs: Vec<Seq>, act: Act) -> Result<Vec<bool>>;

    /// Takes dead letters out for good; says which were there. Every one is audited.
    async fn discard(&self, jobs: Vec<Seq>, act: Act) -> Result<Vec<bool>>;

    /// Takes unfinished deliveries out of the queue for good; says which were there and not leased. Every one is audited.
    async fn cancel(&self, jobs: Vec<Seq>, act: Act) -> Result<Vec<bool>>;

    /// Queues events to be settled again, under the event's own number. Audited.
    async fn replay(&self, events: Vec<Seq>, settle: Settle, act: Act) -> Result<Vec<Replayed>>;

    // --- things ----------------------------------------------------------------------------------------------

    /// The things these names and keys lead to, in one consistent read. What was applied before is seen.
    async fn load(&self, names: Vec<String>, keys: Vec<Key>) -> Result<Loaded>;

    /// The words that follow a prefix in names, up to the next slash, each once and in order; at most `limit` and
    /// [`FIND_MAX`]. The prefix ends with a slash.
    async fn find_branches(&self, prefix: String, limit: usize) -> Result<Vec<String>>;

    /// One page of things of a kind, newest first; at most [`FIND_MAX`].
    async fn find_states(&self, filter: StateFilter) -> Result<Vec<State>>;

    /// What the books say of each account: the sum of its lines, by currency and mode.
    async fn find_sums(&self, account: Option<String>) -> Result<Vec<Sum>>;

    /// Lines of the books, newest first; at most [`FIND_MAX`].
    async fn find_lines(&self, filter: LineFilter) -> Result<Vec<BookedLine>>;

    // --- audit -----------------------------------------------------------------------------------------------

    /// One page of entries, newest first; at most [`FIND_MAX`], and after at most [`SCAN_MAX`] that were looked at.
    async fn find_audit(&self, filter: AuditFilter) -> Result<AuditPage>;

    /// Links with their entries, by chain and number, after one; at most `limit` and [`FIND_MAX`]. Entries that hang on no
    /// link show up in their place, under a link without a hash.
    async fn find_links(&self, after: Option<(i64, i64)>, limit: usize) -> Result<Vec<AuditLink>>;

    /// The links, by chain and number, that entries with these numbers hang on; the first [`FIND_MAX`] of them are looked
    /// for, unknown ones are left out.
    async fn find_places(&self, entries: Vec<i64>) -> Result<BTreeSet<(i64, i64)>>;

    /// The last link of every chain.
    async fn chain_heads(&self) -> Result<Vec<ChainHead>>;

    // --- upkeep ----------------------------------------------------------------------------------------------

    /// Keeps refused requests. One that is alike to a line of the same hour is counted there; of lines the newest
    /// [`REJECTIONS_OF_NETWORK_MAX`] of each network are kept, and the newest [`REJECTIONS_MAX`] of all.
    async fn reject(&self, rejections: Vec<Rejection>) -> Result<()>;

    /// Work that keeps the store in shape: partitions ahead, checkpoints. Cheap when there is nothing to do.
    async fn upkeep(&self, now: Time) -> Result<()>;

    /// Counts the events received in an hour by source, type and status, and sums up what the books gained and lost at
    /// providers in it, in place of an earlier count.
    async fn count_hour(&self, hour: Time) -> Result<()>;

    /// Lets go of up to `limit` events received before a time and numbered after `after`, with all their traces. An
    /// event with unfinished work or a dead letter stays. What is remembered of first bodies goes with them. Old
    /// traces of timers go too, and requests to the API that were remembered so that they are not carried out twice; up to
    /// `limit` of each, and the answer leads on until none is left.
    async fn forget(&self, before: Time, after: Seq, limit: usize) -> Result<Forgotten>;

    /// Lets go of up to `limit` meters with ids from one (with) to another (without); says how many.
    async fn forget_meters(&self, from: String, to: String, limit: usize) -> Result<usize>;

    // --- reads -----------------------------------------------------------------------------------------------

    /// One page of events; at most [`FIND_MAX`], and after at most [`SCAN_MAX`] that were looked at. What is asked for by
    /// payment, tenant, or as failed or received, is looked for only among those.
    async fn find_events(&self, filter: EventFilter) -> Result<EventPage>;

    /// One event with headers and body.
    async fn find_event(&self, seq: Seq) -> Result<Option<EventRecord>>;

    /// The number of an event by source and the provider's id, whenever it was created. Of several under one id the first.
    async fn find_seq(&self, source: &str, event_id: &str) -> Result<Option<Seq>>;

    /// One page of dead letters, newest first; at most [`FIND_MAX`].
    async fn find_dead(&self, filter: DeadFilter) -> Result<Vec<DeadLetter>>;

    /// What dead letters have in common, by reason, lane and class. Looks at the newest, as many as the filter's limit and
    /// [`GROUPED_MAX`] say.
    async fn find_dead_groups(&self, filter: DeadFilter) -> Result<Vec<DeadGroup>>;

    /// Unfinished work by lane, in their order; of the oldest [`WORK_MAX`] jobs.
    async fn find_work(&self) -> Result<Vec<PendingWork>>;

    /// The living nodes, by epoch; at most [`FIND_MAX`].
    async fn find_nodes(&self) -> Result<Vec<NodeRecord>>;

    /// Where a job stands, whether waiting, done or dead.
    async fn find_message(&self, job: Seq) -> Result<Option<StoredMessage>>;

    /// The jobs an event caused, by their keys.
    async fn find_messages(&self, event: Seq) -> Result<Vec<StoredMessage>>;

    /// One page of deliveries, newest first; at most [`FIND_MAX`], and after at most [`SCAN_MAX`] of each list that were looked
    /// at: unfinished ones, dead letters, and what is over.
    async fn find_deliveries(&self, filter: DeliveryFilter) -> Result<DeliveryPage>;

    /// What became of the deliveries of events, in the order of the events; at most [`FIND_MAX`] of them, and of each the first
    /// hundred deliveries.
    async fn find_delivery_counts(&self, events: Vec<Seq>) -> Result<Vec<DeliveryCounts>>;

    /// Every call a job made, in order.
    async fn find_attempts(&self, job: Seq) -> Result<Vec<(i32, Attempt)>>;

    /// Counts of hours from one (with) to another (without).
    async fn find_counts(&self, from: Time, to: Time) -> Result<Vec<Count>>;

    /// Money of hours from one (with) to another (without), as it was last counted.
    async fn find_money(&self, from: Time, to: Time) -> Result<Vec<HourMoney>>;

    /// One page of rejections, newest first; at most [`FIND_MAX`].
    async fn find_rejections(&self, filter: RejectionFilter) -> Result<Vec<Rejection>>;

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
        peers: Vec<PeerNode>,
        /// The database's clock, for an alarm when clocks disagree; it decides nothing.
        store_time: Option<Time>,
    },
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerNode {
    pub epoch: Epoch,
    pub beat: i64,
}

/// How a store is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To serve: brings the schema up to date, refuses unsafe durability settings.
    Serve { allow_unsafe_durability: bool },
    /// To do one thing by hand while no server runs. The schema must be current.
    Act,
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
