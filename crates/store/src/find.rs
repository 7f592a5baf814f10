//! Bounded reads for pages, API and CLI, in words both databases understand.

use bytes::Bytes;
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
