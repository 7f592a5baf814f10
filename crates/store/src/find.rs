//! Bounded reads for pages, API and CLI, in words both databases understand.

use bytes::Bytes;
use sekisho_core::change::{Death, Kind, Lane, Outcome};
use sekisho_core::{Seq, Time};

/// Where an event stands. `failed` means: in the dead letters, waiting for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Received,
    Success,
    Failed,
    Skipped,
}

impl Status {
    pub const ALL: [Self; 4] = [Self::Received, Self::Success, Self::Failed, Self::Skipped];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Success => "success",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == text)
    }

    /// What an event is called whose settling ended so. What a person put aside counts as skipped.
    pub fn of_result(result: &str) -> Option<Self> {
        match result {
            "success" => Some(Self::Success),
            "skipped" | "discarded" => Some(Self::Skipped),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Order {
    #[default]
    NewestFirst,
    OldestFirst,
}

/// Which events. All conditions must hold; none means all events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFilter {
    pub source: Option<String>,
    /// Exact, or a prefix when it ends in `*`.
    pub event_type: Option<String>,
    pub status: Option<Status>,
    /// The provider's id of what the event is about.
    pub object_id: Option<String>,
    /// Only numbers above, and below: cursors of a page.
    pub after: Option<Seq>,
    pub before: Option<Seq>,
    pub order: Order,
    pub limit: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSummary {
    pub seq: Seq,
    pub event_id: String,
    pub source: String,
    pub event_type: String,
    pub status: Status,
    pub received_at: Time,
    pub created_at: Option<Time>,
    pub object: Option<(String, String)>,
    pub account: Option<String>,
    pub livemode: Option<bool>,
    pub trust: String,
    /// Why it failed or was skipped.
    pub note: Option<String>,
    pub processed_at: Option<Time>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRecord {
    pub summary: EventSummary,
    /// JSON array of [name, value].
    pub headers: String,
    pub body: Bytes,
}

/// Which dead letters. All conditions must hold; none means all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadFilter {
    pub source: Option<String>,
    /// Exact, or a prefix when it ends in `*`.
    pub event_type: Option<String>,
    pub reason: Option<String>,
    pub lane: Option<Lane>,
    pub event: Option<Seq>,
    /// When it died: not before, and before.
    pub since: Option<Time>,
    pub until: Option<Time>,
    /// Only lower numbers: the cursor of a page.
    pub before: Option<Seq>,
    pub limit: usize,
}

/// Work that failed for good and waits for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    pub job: Seq,
    pub kind: Kind,
    pub lane: Lane,
    pub fifo: Option<String>,
    pub payload: String,
    pub attempts: i32,
    pub crashes: i32,
    pub death: Death,
    pub at: Time,
    /// What it is about, as far as that is still kept: number, provider's id, type and source.
    pub event: Option<Seq>,
    pub event_id: Option<String>,
    pub event_type: Option<String>,
    pub source: Option<String>,
}

/// One job and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub job: Seq,
    pub lane: Lane,
    pub event: Option<Seq>,
    pub attempts: i32,
    pub standing: Standing,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Not leased, due at this time.
    Waiting(Time),
    /// Leased to a node.
    Running,
    Done(Outcome, Time),
    Dead(Death, Time),
}

/// A small fact shared by all nodes, such as a breaker: who it is about, and its JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    pub kind: String,
    pub id: String,
    pub version: i64,
    pub facts: String,
}

/// Events of one hour that are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    pub hour: Time,
    pub source: String,
    pub event_type: String,
    pub status: Status,
    pub events: i64,
}

/// What a step of retention did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forgotten {
    pub events: usize,
    /// Where to go on; `None` when nothing old is left.
    pub next: Option<Seq>,
}

/// Something done by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    pub at: Time,
    pub actor: String,
    /// `dead_letter.retried`, `dead_letter.discarded`, `event.replayed`.
    pub action: String,
    pub target: String,
    pub reason: String,
}
