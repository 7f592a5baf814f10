//! The language between the crates. `core` decides in these words, `store` writes them whole or not at all,
//! `sekisho` carries them from one to the other. The store has no clock: every time and id comes in.

use std::borrow::Cow;
mod job;

use std::sync::Arc;

use bytes::Bytes;

use crate::audit::{Entry, Role};
use crate::event::{BodyDigest, Created, DedupeKey, FirstBody, OtherBody, Stored, Trust};
use crate::id::{Epoch, Seq};
use crate::provider::Unusable;
use crate::queue::Class;
use crate::state::{Naming, Posting, Write};
use crate::time::Time;

pub use job::{Job, Kind, Lane, Lease, NewJob, delivery_key, effect_prefix, past_effects};

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
    pub held: Option<Death>,
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

    /// What its first job is told.
    pub fn payload(&self) -> Cow<'static, str> {
        self.held.as_ref().map_or(Cow::Borrowed(""), |death| Cow::Owned(death.payload()))
    }

    /// Its first job, if it is born leased.
    pub fn first_job(&self, epoch: Epoch) -> Job {
        let payload = self.payload().into_owned();
        Job { payload, ..Job::born_with(self.seq, self.received_at, epoch) }
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
    /// The jobs that end. Without any, nothing but versions and names guards the set.
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

impl ChangeSet {
    /// The same, with an entry in the audit log for every job that goes before a person.
    #[must_use]
    pub fn with_deaths_noted(mut self) -> Self {
        for ended in &self.ends {
            if let End::Dead(death) = &ended.end {
                let details = serde_json::json!({
                    "reason": death.reason,
                    "error": death.error,
                    "attempts": ended.lease.attempt,
                });
                self.audit.push(Entry {
                    at: self.at,
                    actor: None,
                    role: None,
                    action: "dead_letter.created".into(),
                    target: ("message".into(), ended.lease.job.as_message().to_string()),
                    tenant: ended.about.tenant.clone(),
                    event: None,
                    details: details.to_string(),
                });
            }
        }
        self
    }
}

/// How a leased job ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    pub lease: Lease,
    pub end: End,
    /// What the run saw outside, if it called anybody.
    pub attempt: Option<Attempt>,
    pub about: About,
}

impl Ended {
    pub const fn new(lease: Lease, end: End) -> Self {
        Self { lease, end, attempt: None, about: About { payment: None, billing: None, tenant: None } }
    }
}

/// What an event turned out to be about; kept with its outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    pub payment: Option<String>,
    pub billing: Option<String>,
    pub tenant: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Done(Outcome),
    Retry { due_at: Time },
    Dead(Death),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Success {
        note: Option<String>,
    },
    Skipped {
        note: String,
    },
    /// Taken out of the dead letters by a person.
    Discarded {
        note: String,
    },
}

impl Outcome {
    pub const SUCCESS: Self = Self::Success { note: None };

    pub const fn name(&self) -> &'static str {
        match self {
            Self::Success { .. } => "success",
            Self::Skipped { .. } => "skipped",
            Self::Discarded { .. } => "discarded",
        }
    }

    pub fn note(&self) -> Option<&str> {
        match self {
            Self::Success { note } => note.as_deref(),
            Self::Skipped { note } | Self::Discarded { note } => Some(note),
        }
    }

    /// The same, with something more to say.
    #[must_use]
    pub fn with_note(self, more: &str) -> Self {
        let note = self.note().map_or_else(|| more.to_owned(), |note| format!("{note}; {more}"));
        match self {
            Self::Success { .. } => Self::Success { note: Some(note) },
            Self::Skipped { .. } => Self::Skipped { note },
            Self::Discarded { .. } => Self::Discarded { note },
        }
    }

    pub fn parse(name: &str, note: Option<String>) -> Option<Self> {
        match name {
            "success" => Some(Self::Success { note }),
            "skipped" => Some(Self::Skipped { note: note.unwrap_or_default() }),
            "discarded" => Some(Self::Discarded { note: note.unwrap_or_default() }),
            _ => None,
        }
    }
}

/// Why something went to the dead letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Death {
    pub class: Class,
    /// Stable word to filter by: `unusable_body`.
    pub reason: String,
    /// A sentence for a person.
    pub error: String,
}

impl Death {
    pub fn terminal(reason: impl Into<String>, error: impl Into<String>) -> Self {
        Self { class: Class::Terminal, reason: reason.into(), error: error.into() }
    }

    /// Of an event at a source that takes only one mode, if it is of the other.
    pub fn of_mode(wanted: Option<bool>, found: Option<bool>) -> Option<Self> {
        let error = "the event's livemode is not the source's: test and live must not mix";
        let differ = wanted.zip(found).is_some_and(|(wanted, found)| wanted != found);
        differ.then(|| Self::terminal("livemode_mismatch", error))
    }

    /// Of an event at a source that takes only one account, if it names another.
    pub fn of_account(wanted: Option<&str>, found: Option<&str>) -> Option<Self> {
        let (wanted, found) = wanted.zip(found).filter(|(wanted, found)| wanted != found)?;
        let error =
            format!("the event is of the account {found}, and the source takes only those of {wanted}");
        Some(Self::terminal("account_mismatch", error))
    }

    /// Of an event older than anything that is remembered: whether it came before can't be told.
    pub fn of_age(created: Option<Created>, kept_since: Time) -> Option<Self> {
        let error = "the event is older than what is kept, so whether it was processed before can't be told";
        let is_old = created.is_some_and(|created| created.immutable && created.at < kept_since);
        is_old.then(|| Self::terminal("too_old", error))
    }

    /// Of a genuine request without a usable event.
    pub fn of_unusable(unusable: &Unusable) -> Self {
        Self::terminal("unusable_body", unusable.to_string())
    }

    /// As a settling is told that its event must not be acted upon.
    pub fn payload(&self) -> String {
        format!("{HELD}{}:{}", self.reason, self.error)
    }

    /// Why an event must not be acted upon, if its settling was told so.
    pub fn of_payload(payload: &str) -> Option<Self> {
        let (reason, error) = payload.strip_prefix(HELD)?.split_once(':')?;
        Some(Self::terminal(reason, error))
    }
}

const HELD: &str = "held:";

/// One call to somebody outside, and what came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    pub at: Time,
    pub took_ms: i64,
    pub status: Option<i32>,
    /// Stable word; `None` when it went well.
    pub reason: Option<String>,
    pub error: Option<String>,
    /// JSON array of [name, value].
    pub headers: Option<String>,
    /// The answer's first bytes.
    pub body: Option<Bytes>,
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
