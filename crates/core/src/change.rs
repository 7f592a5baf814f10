//! The language between the crates. `core` decides in these words, `store` writes them whole or not at all,
//! `sekisho` carries them from one to the other. The store has no clock: every time and id comes in.

use std::sync::Arc;

use bytes::Bytes;

use crate::event::{DedupeKey, Trust};
use crate::id::{Epoch, Seq};
use crate::provider::Unusable;
use crate::time::Time;

/// One event on its way in, with everything its rows need. The event, its dedupe entry and its first job are
/// one commit; the job carries the event's own number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub key: DedupeKey,
    pub seq: Seq,
    pub received_at: Time,
    pub source: Arc<str>,
    pub event_id: String,
    pub event_type: String,
    pub created_at: Option<Time>,
    /// (kind, id) as the provider names them.
    pub object: Option<(String, String)>,
    pub account: Option<String>,
    pub livemode: Option<bool>,
    pub trust: Trust,
    /// JSON array of [name, value], as received, without what is secret or belongs to the connection.
    /// Shared by the events of one request.
    pub headers: Arc<str>,
    pub body: Bytes,
    pub next: Next,
}

/// What waits for an event once it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// A job in the settle lane.
    Settle,
    /// Genuine but not usable: kept as evidence, waiting for a person.
    Dead(Death),
}

impl Next {
    /// What becomes of an event at a source that takes only one mode, if it says which.
    pub fn of_mode(wanted: Option<bool>, found: Option<bool>) -> Self {
        if wanted.zip(found).is_some_and(|(wanted, found)| wanted != found) {
            let error = "the event's livemode is not the source's: test and live must not mix";
            return Self::Dead(Death { reason: "livemode_mismatch".into(), error: error.into() });
        }
        Self::Settle
    }

    /// What becomes of a genuine request without a usable event.
    pub fn of_unusable(unusable: &Unusable) -> Self {
        Self::Dead(Death { reason: "unusable_body".into(), error: unusable.to_string() })
    }
}

/// The store's answer to one [`Arrival`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    Admitted,
    /// Stored before, under this number.
    Duplicate(Seq),
    /// This row, and only this one, can't be stored.
    Refused(String),
}

/// What shares concurrency, rate and breaker.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane(pub String);

impl Lane {
    pub fn settle() -> Self {
        Self("settle".into())
    }
}

/// What a claim gives and the fence a commit shows. The attempt is in it, so that a second run inside one
/// epoch is fenced off too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lease {
    pub job: Seq,
    pub epoch: Epoch,
    pub attempt: i32,
}

/// Claimed work: settle the event that has the job's number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub lease: Lease,
    pub lane: Lane,
    pub event_type: String,
}

/// How a run ends. Written only while its lease still holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeSet {
    pub lease: Lease,
    pub end: End,
    pub at: Time,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Done(Outcome),
    Retry { due_at: Time },
    Dead(Death),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Success,
    Skipped { note: String },
}

impl Outcome {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Skipped { .. } => "skipped",
        }
    }

    pub fn note(&self) -> Option<&str> {
        match self {
            Self::Success => None,
            Self::Skipped { note } => Some(note),
        }
    }
}

/// Why something went to the dead letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Death {
    /// Stable word to filter by: `unusable_body`.
    pub reason: String,
    /// A sentence for a person.
    pub error: String,
}

/// The store's answer to one [`ChangeSet`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Committed {
    Applied,
    /// The lease was no longer held: nothing was written.
    Lost,
}

/// A refused request, or several alike: who knocked, where, and why they were turned away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    pub seq: Seq,
    pub at: Time,
    pub source: String,
    pub peer: String,
    /// Stable word: `bad_signature`, `stale_timestamp`, …
    pub reason: String,
    pub detail: String,
    pub request_id: String,
    /// How many alike this line stands for.
    pub count: i64,
}
