//! The store on PostgreSQL: for several nodes, or a database that is already there.
//!
//! Every verb is one statement and so one transaction; arrays carry many rows in one round trip. Two connections
//! admit, one works, two read. What the server says about durability is asserted before anything is written.

mod admit;
mod connection;
mod durability;
mod failure;
mod find;
mod migrate;
mod partition;
mod tls;
mod upkeep;
mod work;

use std::sync::Arc;

use async_trait::async_trait;
use sekisho_core::change::{Admission, Arrival, ChangeSet, Committed, Job, Lane, Lease, Rejection};
use sekisho_core::event::DedupeKey;
use sekisho_core::{Epoch, Seq, Time};

use crate::migration::Migration;
use crate::{
    Access, EventFilter, EventRecord, EventSummary, Joined, OpenError, Pulse, Result, Store, StoreUrl,
};
use connection::{Link, Links, Purpose, Server};

pub const MIGRATIONS: &[Migration] = &[Migration {
    number: 1,
    name: "checkpoint",
    sql: include_str!("migrations/postgres/0001_checkpoint.sql"),
}];

/// While one batch waits for the disk, the next is on its way; more would only make batches smaller.
const COMMITTERS: usize = 2;

pub struct PostgresStore {
    committers: Links,
    work: Link,
    /// Apart from `pages`, so that a long look at history never holds up an arrival.
    gate: Link,
    pages: Link,
}

pub async fn open(url: &str, access: Access) -> std::result::Result<PostgresStore, OpenError> {
    let unreachable =
        |error| OpenError::Unreachable { url: StoreUrl::Postgres(url.to_owned()).to_string(), error };
    let (read_only, allow_unsafe) = match access {
        Access::Serve { allow_unsafe_durability } => (false, allow_unsafe_durability),
        Access::Migrate => (false, true),
        Access::Read => (true, true),
    };
    let server = Arc::new(Server::new(url, read_only, allow_unsafe).map_err(unreachable)?);
    let store = PostgresStore {
        committers: Links::new(&server, Purpose::Admit, COMMITTERS),
        work: Link::new(&server, Purpose::Work),
        gate: Link::new(&server, Purpose::Read),
        pages: Link::new(&server, Purpose::Read),
    };
    let migrating = Link::new(&server, Purpose::Migrate);
    match access {
        Access::Serve { .. } => {
            // Order matters: an unsafe server is refused before it is changed.
            durability::require_for_opening(&store.work, unreachable).await?;
            migrate::bring_up_to_date(&migrating, unreachable).await?;
        }
        Access::Migrate => migrate::bring_up_to_date(&migrating, unreachable).await?,
        Access::Read => migrate::require_current(&migrating, unreachable).await?,
    }
    Ok(store)
}

#[async_trait]
impl Store for PostgresStore {
    async fn join(&self, now: Time) -> Result<Joined> {
        work::join(&self.work, now).await
    }

    async fn beat(&self, epoch: Epoch, n: i64) -> Result<Pulse> {
        work::beat(&self.work, epoch, n).await
    }

    async fn end(&self, epoch: Epoch, n: i64) -> Result<bool> {
        work::end(&self.work, epoch, n).await
    }

    async fn admit(&self, arrivals: Arc<[Arrival]>) -> Result<Vec<Admission>> {
        admit::admit(&self.committers, &self.work, &arrivals).await
    }

    fn committers(&self) -> usize {
        COMMITTERS
    }

    async fn known(&self, keys: &[DedupeKey]) -> Result<Vec<Option<Seq>>> {
        admit::known(&self.gate, keys).await
    }

    async fn claim(&self, epoch: Epoch, lane: &Lane, limit: usize, now: Time) -> Result<Vec<Job>> {
        work::claim(&self.work, epoch, lane, limit, now).await
    }

    async fn commit(&self, sets: Vec<ChangeSet>) -> Result<Vec<Committed>> {
        work::commit(&self.work, &sets).await
    }

    async fn sweep(&self, limit: usize) -> Result<usize> {
        work::sweep(&self.work, limit).await
    }

    async fn release(&self, leases: Vec<Lease>) -> Result<()> {
        work::release(&self.work, &leases).await
    }

    async fn reject(&self, rejections: Vec<Rejection>) -> Result<()> {
        upkeep::reject(&self.work, &rejections).await
    }

    async fn upkeep(&self, now: Time) -> Result<()> {
        upkeep::upkeep(&self.work, now).await
    }

    async fn find_events(&self, filter: EventFilter) -> Result<Vec<EventSummary>> {
        find::events(&self.pages, &filter).await
    }

    async fn find_event(&self, seq: Seq) -> Result<Option<EventRecord>> {
        find::event(&self.pages, seq).await
    }

    async fn find_seq(&self, source: &str, event_id: &str) -> Result<Option<Seq>> {
        find::seq(&self.pages, source, event_id).await
    }

    async fn find_rejections(&self, source: Option<String>, limit: usize) -> Result<Vec<Rejection>> {
        find::rejections(&self.pages, source.as_deref(), limit).await
    }

    async fn describe(&self) -> Result<Vec<(String, String)>> {
        find::describe(&self.pages).await
    }
}
