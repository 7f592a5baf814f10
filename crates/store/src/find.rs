//! Bounded reads for pages, API and CLI, in words both databases understand.

mod branches;
mod condition;
mod dead;
mod delivery;
mod page;
mod row_reader;

use bytes::Bytes;
use sekisho_core::event::About;
use sekisho_core::job::{DeadReason, Lane, Outcome};
use sekisho_core::state::{self, Posting, State};
use sekisho_core::{Epoch, Seq, Time};

pub(crate) use branches::Branches;
pub(crate) use condition::Demand;
pub(crate) use dead::read_reason;
pub use dead::{DeadFilter, DeadGroup, DeadLetter, Risk, Stake};
pub(crate) use delivery::{COUNTED_MAX, DeliveryList, delivery_keys};
pub use delivery::{DeliveryCounts, DeliveryFilter, DeliveryPage, DeliveryRecord, DeliveryStatus, LastCall};
pub(crate) use page::{AuditLead, EventLead};
pub use page::{AuditPage, EventPage};
pub(crate) use row_reader::RowReader;

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

/// Exact, or a prefix when it ends in `*`.
pub(crate) fn matches_word(wanted: &str, found: &str) -> bool {
    match wanted.strip_suffix('*') {
        Some(prefix) => found.starts_with(prefix),
        None => found == wanted,
    }
}

/// Which events. All conditions must hold; none means all events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFilter {
    pub source: Option<String>,
    /// Only what came in from outside: nothing that Sekisho announced or fetched itself.
    pub received: bool,
    /// Exact, or a prefix when it ends in `*`.
    pub event_type: Option<String>,
    pub status: Option<Status>,
    /// The provider's id of what the event is about.
    pub object_id: Option<String>,
    /// What it turned out to be about, in our ids.
    pub payment: Option<String>,
    pub tenant: Option<String>,
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
    /// Another body had come under its id, which the provider's proof does not cover.
    pub id_reused: bool,
    /// Why it failed or was skipped.
    pub note: Option<String>,
    pub processed_at: Option<Time>,
    pub about: About,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRecord {
    pub summary: EventSummary,
    /// JSON array of [name, value].
    pub headers: String,
    pub body: Bytes,
}

/// One job and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMessage {
    pub job: Seq,
    pub lane: Lane,
    pub event: Option<Seq>,
    pub attempts: i32,
    pub standing: Standing,
    /// The effect key that made it; only where it was looked for by its event.
    pub key: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Not leased, due at this time.
    Waiting(Time),
    /// Leased to a node.
    Running,
    Done(Outcome, Time),
    Dead(DeadReason, Time),
}

/// The unfinished work of a lane. Waiting, retrying and running add up to all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingWork {
    pub lane: Lane,
    /// Not leased, and never failed.
    pub waiting: i64,
    /// Failed at least once, and waits for its next try.
    pub retrying: i64,
    /// Leased to a node.
    pub running: i64,
    /// When the oldest that is not leased is due.
    pub oldest_due: Option<Time>,
}

/// A process that was not given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeRecord {
    pub epoch: Epoch,
    pub beat: i64,
    pub joined_at: Time,
}

/// Which refused requests. All conditions must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RejectionFilter {
    pub source: Option<String>,
    pub reason: Option<String>,
    /// Only lower numbers: the cursor of a page.
    pub before: Option<Seq>,
    pub limit: usize,
}

/// Which things. All conditions must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateFilter {
    pub kind: state::Kind,
    pub status: Option<String>,
    pub tenant: Option<String>,
    pub customer: Option<String>,
    pub livemode: Option<bool>,
    /// Only those that a person should look at, for this reason; empty is any.
    pub attention: Option<String>,
    /// Only lower ids: the cursor of a page.
    pub before: Option<String>,
    pub limit: usize,
}

impl StateFilter {
    /// Everything of a kind.
    pub const fn all(kind: state::Kind, limit: usize) -> Self {
        Self {
            kind,
            status: None,
            tenant: None,
            customer: None,
            livemode: None,
            attention: None,
            before: None,
            limit,
        }
    }

    pub fn matches(&self, state: &State) -> bool {
        let is = |wanted: &Option<String>, found: &Option<String>| wanted.is_none() || wanted == found;
        state.key.kind == self.kind
            && is(&self.status, &state.index.status)
            && is(&self.tenant, &state.index.tenant)
            && is(&self.customer, &state.index.customer)
            && (self.livemode.is_none() || self.livemode == state.index.livemode)
            && self.attention.as_ref().is_none_or(|wanted| {
                state.index.attention.as_ref().is_some_and(|found| wanted.is_empty() || wanted == found)
            })
            && self.before.as_ref().is_none_or(|before| state.key.id < *before)
    }
}

/// What an account holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sum {
    pub account: String,
    pub currency: String,
    pub livemode: Option<bool>,
    pub amount: i64,
    pub lines: i64,
}

/// Which lines of the books. All conditions must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineFilter {
    pub account: Option<String>,
    pub payment: Option<String>,
    /// Only lower numbers: the cursor of a page.
    pub before: Option<i64>,
    pub limit: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookedLine {
    pub number: i64,
    pub at: Time,
    pub posting: Posting,
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

/// What the books gained or lost at providers in one hour, for one cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HourMoney {
    pub hour: Time,
    pub livemode: Option<bool>,
    pub currency: String,
    pub cause: String,
    /// In the currency's smallest unit; what was lost is negative.
    pub amount: i64,
    pub lines: i64,
}

impl HourMoney {
    /// The mode as it is stored: 1 live, 0 test, -1 where the provider does not say.
    pub(crate) const fn mode(livemode: Option<bool>) -> i32 {
        match livemode {
            Some(true) => 1,
            Some(false) => 0,
            None => -1,
        }
    }

    pub(crate) const fn livemode(mode: i32) -> Option<bool> {
        match mode {
            1 => Some(true),
            0 => Some(false),
            _ => None,
        }
    }
}

/// What a step of retention did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forgotten {
    pub events: usize,
    /// Where to go on; `None` when nothing old is left.
    pub next: Option<Seq>,
}

impl Forgotten {
    /// A step goes on after its last event if anything filled it to its limit.
    pub(crate) fn next(last: Seq, found: &[usize], limit: usize) -> Option<Seq> {
        (limit > 0 && found.iter().any(|count| *count >= limit)).then_some(last)
    }
}

/// Which entries of the audit log. All conditions must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    pub tenant: Option<String>,
    /// Exact, or a prefix when it ends in `*`.
    pub action: Option<String>,
    pub target: Option<String>,
    pub actor: Option<String>,
    pub since: Option<Time>,
    pub until: Option<Time>,
    /// Only lower numbers: the cursor of a page.
    pub before: Option<i64>,
    pub limit: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainHead {
    pub chain: i64,
    pub n: i64,
    pub hash: Vec<u8>,
}
