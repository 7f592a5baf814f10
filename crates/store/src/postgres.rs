//! The store on PostgreSQL: for several nodes, or a database that is already there.
//!
//! Every verb is one statement and so one transaction; arrays carry many rows in one round trip. Two connections
//! admit, one works, three read, and one counts and forgets. What the server says about durability is asserted before
//! anything is written.

mod act;
mod admit;
mod chain;
mod commit;
mod condition;
mod connection;
mod durability;
mod failure;
mod find;
mod find_audit;
mod find_delivery;
mod find_state;
mod find_work;
mod horizon;
mod migrate;
mod node;
mod partition;
mod row;
#[cfg(test)]
mod tests;
mod tls;
mod upkeep;
mod work;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use sekisho_core::change::{Act, Admission, Arrival, ChangeSet, Committed, Rejection, Replayed};
use sekisho_core::event::{DedupeKey, Stored};
use sekisho_core::job::{Attempt, Job, Lane, Lease, Settle};
use sekisho_core::state::{Key, State};
use sekisho_core::{Epoch, Seq, Time};

use crate::migration::Migration;
use crate::{
    Access, AuditFilter, AuditPage, BookedLine, ChainHead, Committers, Count, DeadFilter, DeadGroup,
    DeadLetter, DeliveryCounts, DeliveryFilter, DeliveryPage, EventFilter, EventPage, EventRecord, FIND_MAX,
    Forgotten, HourMoney, Joined, LineFilter, Loaded, NodeRecord, OpenError, PendingWork, Pulse,
    RejectionFilter, Result, StateFilter, Store, StoreUrl, StoredMessage, Sum,
};
use connection::{Link, Links, PostgresServer, Purpose};
use horizon::Horizon;

pub const MIGRATIONS: &[Migration] = &[
    Migration { number: 1, name: "schema", sql: include_str!("migrations/postgres/0001_schema.sql") },
    Migration { number: 2, name: "orders", sql: include_str!("migrations/postgres/0002_orders.sql") },
    Migration {
        number: 3,
        name: "hourly_money",
        sql: include_str!("migrations/postgres/0003_hourly_money.sql"),
    },
];

/// While one batch waits for a slow disk, the next is on its way. Where the disk is fast, one at a time is better: two
/// would be half as large, and a batch costs the database as much as a dozen events.
const COMMITTERS: usize = 2;
const APART: Duration = Duration::from_millis(3);

pub struct PostgresStore {
    committers: Links,
    work: Link,
    /// Apart from `pages`, so that a long look at history never holds up an arrival.
    gate: Link,
    /// What work waits to read. Apart from `work`, so that large bodies never hold up a beat.
    bodies: Link,
    pages: Link,
    upkeep: Link,
    /// The fifo from which lost turns are looked for next.
    turn: Mutex<String>,
    horizon: Mutex<Horizon>,
}

pub async fn open(url: &str, access: Access) -> std::result::Result<PostgresStore, OpenError> {
    let unreachable =
        |error| OpenError::Unreachable { url: StoreUrl::Postgres(url.to_owned()).to_string(), error };
    let (read_only, allow_unsafe) = match access {
        Access::Serve { allow_unsafe_durability } => (false, allow_unsafe_durability),
        Access::Act | Access::Migrate => (false, true),
        Access::Read => (true, true),
    };
    let server = Arc::new(PostgresServer::new(url, read_only, allow_unsafe).map_err(unreachable)?);
    let store = PostgresStore {
        committers: Links::new(&server, Purpose::Admit, COMMITTERS),
        work: Link::new(&server, Purpose::Work),
        gate: Link::new(&server, Purpose::Read),
        bodies: Link::new(&server, Purpose::Load),
        pages: Link::new(&server, Purpose::Read),
        upkeep: Link::new(&server, Purpose::Upkeep),
        turn: Mutex::default(),
        horizon: Mutex::default(),
    };
    let migrating = Link::new(&server, Purpose::Migrate);
    match access {
        Access::Serve { .. } => {
            // Order matters: an unsafe server is refused before it is changed.
            durability::require_for_opening(&store.work, unreachable).await?;
            migrate::bring_up_to_date(&migrating, unreachable).await?;
        }
        Access::Act => {
            durability::require_for_opening(&store.work, unreachable).await?;
            migrate::require_current(&migrating, unreachable).await?;
        }
        Access::Migrate => migrate::bring_up_to_date(&migrating, unreachable).await?,
        Access::Read => migrate::require_current(&migrating, unreachable).await?,
    }
    Ok(store)
}

#[async_trait]
impl Store for PostgresStore {
    async fn join(&self, now: Time) -> Result<Joined> {
        node::join(&self.work, now).await
    }

    async fn beat(&self, epoch: Epoch, n: i64) -> Result<Pulse> {
        node::beat(&self.work, epoch, n).await
    }

    async fn end(&self, epoch: Epoch, n: i64) -> Result<bool> {
        node::end(&self.work, epoch, n).await
    }

    async fn leave(&self, epoch: Epoch) -> Result<()> {
        node::leave(&self.work, epoch).await
    }

    async fn admit(&self, arrivals: Arc<[Arrival]>, keep: Option<Epoch>) -> Result<Vec<Admission>> {
        admit::admit(&self.committers, &self.work, &arrivals, keep).await
    }

    fn committers(&self) -> Committers {
        Committers { count: COMMITTERS, apart: APART }
    }

    async fn known(&self, keys: &[DedupeKey]) -> Result<Vec<Option<Seq>>> {
        admit::known(&self.gate, keys).await
    }

    async fn claim(&self, epoch: Epoch, wants: Vec<(Lane, usize)>, now: Time) -> Result<Vec<Job>> {
        work::claim(&self.work, &self.horizon, epoch, &wants, now).await
    }

    async fn commit(&self, sets: Vec<ChangeSet>) -> Result<Vec<Committed>> {
        commit::commit(&self.work, &sets).await
    }

    async fn start(&self, leases: Vec<Lease>) -> Result<Vec<bool>> {
        work::start(&self.work, &leases).await
    }

    async fn release(&self, leases: Vec<Lease>) -> Result<()> {
        work::release(&self.work, &leases).await
    }

    async fn owned(&self, epoch: Epoch, after: Seq) -> Result<Vec<Lease>> {
        work::owned(&self.pages, epoch, after).await
    }

    async fn adopt(&self, leases: Vec<Lease>) -> Result<Vec<Job>> {
        work::adopt(&self.work, &leases).await
    }

    async fn sweep(&self, limit: usize, suspect_after: i32) -> Result<usize> {
        work::sweep(&self.pages, &self.work, limit, suspect_after, &self.turn).await
    }

    async fn make_due(&self, limit: usize, now: Time) -> Result<usize> {
        work::make_due(&self.work, limit, now).await
    }

    async fn lanes(&self) -> Result<Vec<(Lane, Time)>> {
        work::lanes(&self.pages).await
    }

    async fn load_events(&self, seqs: Vec<Seq>) -> Result<Vec<Stored>> {
        let seqs = seqs.into_iter().collect();
        find::stored(&self.bodies, &seqs).await
    }

    async fn retry(&self, jobs: Vec<Seq>, act: Act) -> Result<Vec<bool>> {
        act::retry(&self.work, &jobs, &act).await
    }

    async fn discard(&self, jobs: Vec<Seq>, act: Act) -> Result<Vec<bool>> {
        act::discard(&self.work, &jobs, &act).await
    }

    async fn cancel(&self, jobs: Vec<Seq>, act: Act) -> Result<Vec<bool>> {
        act::cancel(&self.work, &jobs, &act).await
    }

    async fn replay(&self, events: Vec<Seq>, settle: Settle, act: Act) -> Result<Vec<Replayed>> {
        act::replay(&self.work, &events, &settle, &act).await
    }

    async fn load(&self, names: Vec<String>, keys: Vec<Key>) -> Result<Loaded> {
        find_state::load(&self.bodies, &names, &keys).await
    }

    async fn find_branches(&self, prefix: String, limit: usize) -> Result<Vec<String>> {
        find_state::branches(&self.pages, prefix, limit).await
    }

    async fn find_states(&self, filter: StateFilter) -> Result<Vec<State>> {
        find_state::states(&self.pages, &filter).await
    }

    async fn find_sums(&self, account: Option<String>) -> Result<Vec<Sum>> {
        find_state::sums(&self.pages, account.as_deref()).await
    }

    async fn find_lines(&self, filter: LineFilter) -> Result<Vec<BookedLine>> {
        find_state::lines(&self.pages, &filter).await
    }

    async fn find_audit(&self, filter: AuditFilter) -> Result<AuditPage> {
        find_audit::audit(&self.pages, &filter).await
    }

    async fn find_links(&self, after: Option<(i64, i64)>, limit: usize) -> Result<Vec<crate::AuditLink>> {
        find_audit::links(&self.pages, after, limit).await
    }

    async fn find_places(&self, entries: Vec<i64>) -> Result<BTreeSet<(i64, i64)>> {
        find_audit::places(&self.pages, &entries).await
    }

    async fn chain_heads(&self) -> Result<Vec<ChainHead>> {
        find_audit::heads(&self.pages).await
    }

    async fn reject(&self, rejections: Vec<Rejection>) -> Result<()> {
        upkeep::reject(&self.work, rejections).await
    }

    async fn upkeep(&self, now: Time) -> Result<()> {
        upkeep::upkeep(&self.work, now).await
    }

    async fn count_hour(&self, hour: Time) -> Result<()> {
        upkeep::count_hour(&self.upkeep, hour).await
    }

    async fn forget(&self, before: Time, after: Seq, limit: usize) -> Result<Forgotten> {
        upkeep::forget(&self.upkeep, before, after, limit).await
    }

    async fn forget_meters(&self, from: String, to: String, limit: usize) -> Result<usize> {
        upkeep::forget_meters(&self.upkeep, &from, &to, limit).await
    }

    async fn find_events(&self, filter: EventFilter) -> Result<EventPage> {
        find::events(&self.pages, &filter).await
    }

    async fn find_event(&self, seq: Seq) -> Result<Option<EventRecord>> {
        find::event(&self.pages, seq).await
    }

    async fn find_seq(&self, source: &str, event_id: &str) -> Result<Option<Seq>> {
        find::seq(&self.pages, &DedupeKey::new(source, event_id, None)).await
    }

    async fn find_dead(&self, filter: DeadFilter) -> Result<Vec<DeadLetter>> {
        find_work::dead(&self.pages, &filter).await
    }

    async fn find_dead_groups(&self, filter: DeadFilter) -> Result<Vec<DeadGroup>> {
        find_work::dead_groups(&self.pages, &filter).await
    }

    async fn find_work(&self) -> Result<Vec<PendingWork>> {
        find_work::work(&self.pages).await
    }

    async fn find_nodes(&self) -> Result<Vec<NodeRecord>> {
        find::nodes(&self.pages).await
    }

    async fn find_message(&self, job: Seq) -> Result<Option<StoredMessage>> {
        find_work::message(&self.pages, job).await
    }

    async fn find_messages(&self, event: Seq) -> Result<Vec<StoredMessage>> {
        find_work::messages(&self.pages, event).await
    }

    async fn find_deliveries(&self, filter: DeliveryFilter) -> Result<DeliveryPage> {
        find_delivery::deliveries(&self.pages, &filter).await
    }

    async fn find_delivery_counts(&self, mut events: Vec<Seq>) -> Result<Vec<DeliveryCounts>> {
        events.truncate(FIND_MAX);
        find_delivery::delivery_counts(&self.pages, &events).await
    }

    async fn find_attempts(&self, job: Seq) -> Result<Vec<(i32, Attempt)>> {
        find_work::attempts(&self.pages, job).await
    }

    async fn find_counts(&self, from: Time, to: Time) -> Result<Vec<Count>> {
        find_work::counts(&self.pages, from, to).await
    }

    async fn find_money(&self, from: Time, to: Time) -> Result<Vec<HourMoney>> {
        find_work::money(&self.pages, from, to).await
    }

    async fn find_rejections(&self, filter: RejectionFilter) -> Result<Vec<Rejection>> {
        find::rejections(&self.pages, &filter).await
    }

    async fn describe(&self) -> Result<Vec<(String, String)>> {
        find::describe(&self.pages).await
    }
}
