//! Arrival: an event, its dedupe entry and its first job in one transaction.

use std::sync::Arc;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, OptionalExtension, ToSql, params};
use sekisho_core::change::{Admission, Arrival};
use sekisho_core::event::{BodyDigest, FirstBody, OtherBody};
use sekisho_core::{Epoch, Seq};

use super::SqliteStore;
use super::keys::{DedupeKeys, Entering};
use super::transaction::Tx;
use super::writer::WriteFailure;
use crate::error::Result;

pub async fn admit(
    store: &SqliteStore,
    arrivals: Arc<[Arrival]>,
    keep: Option<Epoch>,
) -> Result<Vec<Admission>> {
    match try_admit(store, Arc::clone(&arrivals), keep).await {
        Ok(admissions) => Ok(admissions),
        Err(WriteFailure::Unavailable(error)) => Err(error),
        Err(WriteFailure::Refused(_)) => one_by_one(store, &arrivals, keep).await,
    }
}

/// Finds the row the database refuses, so that it can't fail its neighbours.
async fn one_by_one(
    store: &SqliteStore,
    arrivals: &[Arrival],
    keep: Option<Epoch>,
) -> Result<Vec<Admission>> {
    let mut admissions = Vec::with_capacity(arrivals.len());
    for arrival in arrivals {
        admissions.push(match try_admit(store, Arc::new([arrival.clone()]), keep).await {
            Ok(mut alone) => alone.remove(0),
            Err(WriteFailure::Refused(reason)) => Admission::Refused(reason),
            Err(WriteFailure::Unavailable(error)) => return Err(error),
        });
    }
    Ok(admissions)
}

async fn try_admit(
    store: &SqliteStore,
    arrivals: Arc<[Arrival]>,
    keep: Option<Epoch>,
) -> std::result::Result<Vec<Admission>, WriteFailure> {
    let run = move |tx: &Tx<'_>| {
        let mut inserts = tx.inserts()?;
        arrivals.iter().map(|arrival| inserts.run(tx, arrival, keep)).collect()
    };
    store.try_write(run).await
}

/// The statements of a transaction, looked up once.
pub struct Inserts<'c> {
    keys: Entering<'c>,
    first_body: CachedStatement<'c>,
    new_body: CachedStatement<'c>,
    event: CachedStatement<'c>,
    job: CachedStatement<'c>,
}

/// What became of an arrival.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Added {
    New {
        id_reused: bool,
    },
    /// It had been there before, under this number.
    Known(Seq),
    OtherBody,
}

impl<'c> Inserts<'c> {
    pub fn prepare(tx: &'c Connection, keys: &DedupeKeys) -> rusqlite::Result<Self> {
        Ok(Self {
            keys: keys.prepare(tx)?,
            first_body: tx.prepare_cached("SELECT digest FROM first_body WHERE id = $1")?,
            new_body: tx.prepare_cached("INSERT INTO first_body (id, digest, seq) VALUES ($1, $2, $3)")?,
            event: tx.prepare_cached(
                "INSERT INTO event (seq, received_at, source, event_id, type, created_at, object_kind, object_id,
                                    account, livemode, trust, headers, body, digest, id_reused)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)",
            )?,
            job: tx.prepare_cached(
                "INSERT INTO job (id, lane, due_at, owner, attempt, kind, event, payload)
                 VALUES ($1, 'settle', $2, $3, $4, 'settle', $1, $5)",
            )?,
        })
    }

    fn run(&mut self, tx: &Tx<'_>, arrival: &Arrival, keep: Option<Epoch>) -> rusqlite::Result<Admission> {
        Ok(match self.add(tx, arrival, keep)? {
            Added::OtherBody => Admission::OtherBody,
            Added::Known(stored) if stored != arrival.seq => Admission::Duplicate(stored),
            Added::New { id_reused: true } => Admission::IdReused,
            Added::New { id_reused: false } => Admission::Admitted,
            Added::Known(_) => match noted(arrival) {
                Some(first) if self.is_other_body(first, arrival.seq)? => Admission::IdReused,
                _ => Admission::Admitted,
            },
        })
    }

    /// Adds nothing when its key had been there before, or its body must not be believed.
    pub fn add(&mut self, tx: &Tx<'_>, arrival: &Arrival, keep: Option<Epoch>) -> rusqlite::Result<Added> {
        let sent = arrival.first_body.filter(|first| first.other == OtherBody::Refused);
        // A transmission is remembered whether its event is new or not.
        if let Some(first) = sent
            && self.is_other_body(first, arrival.seq)?
        {
            return Ok(Added::OtherBody);
        }
        if let Some(stored) = tx.enter_key(&mut self.keys, arrival.key, arrival.seq)? {
            return Ok(Added::Known(stored));
        }
        let id_reused = match noted(arrival) {
            Some(first) => self.is_other_body(first, arrival.seq)?,
            None => false,
        };
        let seq = arrival.seq.as_i64();
        let object = arrival.object.as_ref();
        self.event.execute(params![
            seq,
            arrival.received_at.ms(),
            &*arrival.source,
            arrival.event_id,
            arrival.event_type,
            arrival.created_at.map(sekisho_core::Time::ms),
            object.map(|(kind, _)| kind),
            object.map(|(_, id)| id),
            arrival.account,
            arrival.livemode,
            arrival.trust.name(),
            &*arrival.headers,
            Body(&arrival.body),
            arrival.digest_in_key().map(|digest| *digest.as_bytes()),
            id_reused,
        ])?;
        let (due_at, owner) = (arrival.received_at.ms(), keep.map(|epoch| epoch.0));
        self.job.execute(params![
            seq,
            due_at,
            owner,
            i32::from(owner.is_some()),
            arrival.settle().payload()
        ])?;
        Ok(Added::New { id_reused })
    }

    /// Whether another body came under its id before. The first is remembered.
    fn is_other_body(&mut self, first: FirstBody, seq: Seq) -> rusqlite::Result<bool> {
        let known = self.first_body.query_row([first.id.as_bytes()], |row| row.get(0)).optional()?;
        if known.is_none() {
            self.new_body.execute(params![first.id.as_bytes(), first.digest.as_bytes(), seq.as_i64()])?;
        }
        Ok(known.is_some_and(|digest| BodyDigest::from_bytes(digest) != first.digest))
    }
}

/// Its body, where the proof does not cover its id.
fn noted(arrival: &Arrival) -> Option<FirstBody> {
    arrival.first_body.filter(|first| first.other == OtherBody::Noted)
}

/// Text when it is UTF-8, so that people can read it with SQL; else the bytes.
struct Body<'a>(&'a [u8]);

impl ToSql for Body<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let is_utf8 = std::str::from_utf8(self.0).is_ok();
        Ok(ToSqlOutput::Borrowed(if is_utf8 { ValueRef::Text(self.0) } else { ValueRef::Blob(self.0) }))
    }
}
