//! The language between the crates. `core` decides in these words, `store` writes them whole or not at all,
//! `sekisho` carries them from one to the other. The store has no clock: every time and id comes in.

use std::sync::Arc;

use bytes::Bytes;

use crate::audit::{Entry, Role};
use crate::event::{About, BodyDigest, DedupeKey, FirstBody, OtherBody, Stored, Trust};
use crate::id::{Epoch, Seq};
use crate::job::{Attempt, DeadReason, End, Job, Lease, NewJob, Settle};
use crate::state::{Naming, Posting, Write};
use crate::time::{Time, hour_of};
use crate::traceparent::Traceparent;

/// One event on its way in, with everything its rows need. The event, its dedupe entry and its first job are
/// one commit; the job carries the event's own number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub key: DedupeKey,
    /// With which the store compares the body that came first under the same id.
    pub first_body: Option<FirstBody>,
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
    /// Why it must not be acted upon, though it is genuine: it is stored as evidence, and its settling ends before a
    /// person.
    pub held: Option<DeadReason>,
}

impl Arrival {
    /// The event as it will be read back.
    pub fn stored(&self) -> Stored {
        Stored {
            seq: self.seq,
            received_at: self.received_at,
            source: Arc::clone(&self.source),
            event_id: self.event_id.clone(),
            event_type: self.event_type.clone(),
            created_at: self.created_at,
            object: self.object.clone(),
            account: self.account.clone(),
            livemode: self.livemode,
            trust: self.trust,
            headers: Arc::clone(&self.headers),
            body: self.body.clone(),
        }
    }

    /// The digest of the body, where it is part of the key.
    pub fn digest_in_key(&self) -> Option<BodyDigest> {
        self.first_body.and_then(|first| (first.other == OtherBody::Noted).then_some(first.digest))
    }

    /// How it is settled first.
    pub fn settle(&self) -> Settle {
        self.held.as_ref().map_or(Settle::Once, |death| Settle::Held {
            reason: death.reason.clone(),
            error: death.error.clone(),
        })
    }

    /// The same in the trace of what made it.
    pub fn carry(&mut self, trace: Traceparent) {
        self.headers = trace.put_before(&self.headers).into();
    }

    /// Its first job, if it is born leased.
    pub fn first_job(&self, epoch: Epoch) -> Job {
        Job::born_with(self.seq, self.settle(), self.received_at, epoch)
    }
}

/// The store's answer to one [`Arrival`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    Admitted,
    /// Stored as well, though another body had come under its id.
    IdReused,
    /// Stored before, under this number.
    Duplicate(Seq),
    /// Not stored: another body had come under its transmission.
    OtherBody,
    /// This row, and only this one, can't be stored.
    Refused(String),
}

impl Admission {
    /// Whether it was new, and now is stored.
    pub fn is_stored(&self) -> bool {
        match self {
            Self::Admitted | Self::IdReused => true,
            Self::Duplicate(_) | Self::OtherBody | Self::Refused(_) => false,
        }
    }
}

/// What is to change: written whole while every lease is held and every version still holds, else not at all. The sets
/// of one commit touch different things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeSet {
    pub at: Time,
    /// The jobs that end, or whose run writes this and goes on. Without any, nothing but versions and names guards the set.
    pub ends: Vec<Ended>,
    pub jobs: Vec<NewJob>,
    pub writes: Vec<Write>,
    pub names: Vec<Naming>,
    /// Sum to zero.
    pub postings: Vec<Posting>,
    pub audit: Vec<Entry>,
    /// Events that this change makes. One whose dedupe key had been there before is left out. They are our own, so their bodies
    /// are compared with none.
    pub events: Vec<Arrival>,
    /// The node that runs the first jobs of those events, if it has room for them.
    pub keep: Option<Epoch>,
}

impl ChangeSet {
    /// Changes nothing.
    pub const fn nothing(at: Time) -> Self {
        Self {
            at,
            ends: Vec::new(),
            jobs: Vec::new(),
            writes: Vec::new(),
            names: Vec::new(),
            postings: Vec::new(),
            audit: Vec::new(),
            events: Vec::new(),
            keep: None,
        }
    }

    pub fn is_empty(&self) -> bool {
        let Self { at: _, ends, jobs, writes, names, postings, audit, events, keep: _ } = self;
        ends.is_empty()
            && jobs.is_empty()
            && writes.is_empty()
            && names.is_empty()
            && postings.is_empty()
            && audit.is_empty()
            && events.is_empty()
    }

    pub fn end(lease: Lease, end: End, at: Time) -> Self {
        Self { ends: vec![Ended::new(lease, end)], ..Self::nothing(at) }
    }

    pub fn queue(jobs: Vec<NewJob>, at: Time) -> Self {
        Self { jobs, ..Self::nothing(at) }
    }

    /// The same, with what its one run saw outside.
    #[must_use]
    pub fn with_attempt(mut self, attempt: Attempt) -> Self {
        if let Some(ended) = self.ends.first_mut() {
            ended.attempt = Some(attempt);
        }
        self
    }
}

/// How a leased job ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    pub lease: Lease,
    pub end: End,
    /// What the run saw outside, if it called anybody and has ended.
    pub attempt: Option<Attempt>,
    pub about: About,
}

impl Ended {
    pub const fn new(lease: Lease, end: End) -> Self {
        Self { lease, end, attempt: None, about: About { payment: None, billing: None, tenant: None } }
    }
}

/// The store's answer to one [`ChangeSet`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Committed {
    Applied {
        /// Jobs and events of the set that were left out, because their key had been there before.
        repeated: Vec<Seq>,
    },
    /// A version had moved on, or a name was taken: nothing was written. Load and decide again.
    Stale,
    /// A lease was no longer held: nothing was written.
    Lost,
}

/// Who does something by hand, when and why. Kept with what was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    pub at: Time,
    pub actor: String,
    pub role: Role,
    pub reason: String,
}

/// What became of an event that was to be settled again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replayed {
    Queued,
    /// Its work is not finished yet.
    Unfinished,
    /// No such event, or no longer kept.
    Unknown,
}

/// A refused request, or several alike: who knocked, where, and why they were turned away. Those from one network, at one
/// source, for one reason and within one hour are one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    pub seq: Seq,
    /// When the first of them came.
    pub at: Time,
    /// When the last of them came.
    pub last_at: Time,
    pub source: String,
    /// The first of them.
    pub peer: String,
    /// The network of all of them: `203.0.113.0/24`.
    pub network: String,
    /// Stable word: `bad_signature`, `stale_timestamp`, …
    pub reason: String,
    pub detail: String,
    pub request_id: String,
    /// How many alike this line stands for.
    pub count: i64,
}

impl Rejection {
    pub const fn hour(&self) -> Time {
        hour_of(self.at)
    }

    /// What makes two of them one line.
    pub fn line(&self) -> (&str, &str, &str, Time) {
        (&self.source, &self.reason, &self.network, self.hour())
    }

    /// Adds one that is alike.
    pub fn join(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.last_at = self.last_at.max(other.last_at);
    }

    /// Each line once, in an order that is the same for everybody. The first of those that are alike stays.
    pub fn lines(rejections: Vec<Self>) -> Vec<Self> {
        let mut lines = rejections;
        lines.sort_by(|one, other| one.line().cmp(&other.line()));
        lines.dedup_by(|later, first| {
            let is_alike = later.line() == first.line();
            if is_alike {
                first.join(later);
            }
            is_alike
        });
        lines
    }
}
