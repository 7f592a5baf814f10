//! Work, waiting or leased: which lane it is in, what is to be done, who holds it, and the key that names its cause.

mod checkout;
pub mod fetch;
mod notify;
mod refund;
mod task;
mod timer;
mod wave;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::event::Created;
use crate::id::{Epoch, Seq};
use crate::provider::Unusable;
use crate::time::Time;
use bytes::Bytes;
pub use checkout::{CheckoutCall, CheckoutStep};
pub use fetch::Fetch;
pub use notify::Notify;
pub use refund::RefundCall;
pub use task::{JobKind, Settle, Task};
pub use timer::Timer;
pub use wave::{Wave, WaveCause};

/// What shares concurrency, rate and breaker: all settling, all timers, or one destination.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Lane(pub Arc<str>);

impl From<String> for Lane {
    fn from(name: String) -> Self {
        Self(name.into())
    }
}

impl From<Lane> for String {
    fn from(lane: Lane) -> Self {
        lane.0.to_string()
    }
}

impl Lane {
    pub fn settle() -> Self {
        Self("settle".into())
    }

    pub fn timer() -> Self {
        Self("timer".into())
    }

    /// Where sources are compared with their providers: that may take long, and keeps no other timer waiting.
    pub fn reconcile() -> Self {
        Self("reconcile".into())
    }

    /// Where orders are looked at when a time that was waited for has come.
    pub fn deadline() -> Self {
        Self("deadline".into())
    }

    /// Where a provider's API is asked.
    pub fn fetch(provider: &str) -> Self {
        Self(format!("fetch:{provider}").into())
    }

    /// Where a provider's API is told to give money back.
    pub fn refund(provider: &str) -> Self {
        Self(format!("refund:{provider}").into())
    }

    /// Where jobs run alone that were under way at several crashes.
    pub fn suspect() -> Self {
        Self("suspect".into())
    }

    /// Where it is worked out who is told what.
    pub fn notify() -> Self {
        Self("notify".into())
    }

    /// Where notices go out by one channel.
    pub fn by_channel(channel: &str) -> Self {
        Self(format!("{BY_CHANNEL}{channel}").into())
    }

    /// The channel this lane sends by, if it is one.
    pub fn channel(&self) -> Option<&str> {
        self.0.strip_prefix(BY_CHANNEL)
    }

    pub fn to_route(route: &str) -> Self {
        Self(format!("{TO_ROUTE}{route}").into())
    }

    /// The route this lane leads to, if it is one.
    pub fn route(&self) -> Option<&str> {
        self.0.strip_prefix(TO_ROUTE)
    }
}

const TO_ROUTE: &str = "to:";
const BY_CHANNEL: &str = "by:";

/// What a claim gives and the fence a commit shows. The attempt is in it, so that a second run inside one
/// epoch is fenced off too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lease {
    pub job: Seq,
    pub epoch: Epoch,
    pub attempt: i32,
}

/// What the keys of an event's effects begin with. Public ids of one length sort as their numbers do, so the keys
/// of old events are one range.
pub fn effect_prefix(event: Seq) -> String {
    format!("{}/", event.as_event())
}

/// Where the keys of effects lie that belong to no event and are of a time before this one: timers by their moment,
/// notices by their id, reminders by their day.
pub fn past_effects(before: Time) -> [(&'static str, String); 3] {
    let day: String = before.to_string().chars().take("2026-11-16".len()).collect();
    [
        ("timer/", format!("timer/{before}")),
        ("notice/", format!("notice/{}", Seq::floor_of(before).tagged("ntc_"))),
        ("remind/", format!("remind/{day}")),
    ]
}

/// The key of an event's delivery: the event and the lane are the fact. `again` counts forced repetitions.
pub fn delivery_key(event: Seq, lane: &Lane, again: usize) -> String {
    let repeated = if again == 0 { String::new() } else { format!("#{again}") };
    format!("{}{}{repeated}", effect_prefix(event), lane.0)
}

impl Lease {
    /// What a job is leased under when it is born leased.
    pub const fn born(job: Seq, epoch: Epoch) -> Self {
        Self { job, epoch, attempt: 1 }
    }
}

/// Work to be queued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewJob {
    pub id: Seq,
    /// Names the fact that causes it. A key makes one job, for ever.
    pub key: Option<String>,
    pub task: Task,
    pub lane: Lane,
    /// Jobs with the same text run one after the other, by their ids. One that was dead and is done again does not
    /// stop its successor that runs already.
    pub fifo: Option<String>,
    pub due_at: Time,
    pub event: Option<Seq>,
    /// Born leased: the caller has room for it and runs it from memory. Only due jobs without `fifo`.
    pub owner: Option<Epoch>,
}

/// Leased work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub lease: Lease,
    pub task: Task,
    pub lane: Lane,
    pub fifo: Option<String>,
    pub due_at: Time,
    pub event: Option<Seq>,
    /// Attempts that are no tries: made before it was last taken out of the dead letters, or cut off by a crash.
    pub base: i32,
    /// How often its node died while it held this job.
    pub crashes: i32,
}

impl Job {
    /// A job that was born leased, as the store would have given it.
    pub fn born(new: NewJob, epoch: Epoch) -> Self {
        let NewJob { id, task, lane, fifo, due_at, event, .. } = new;
        let lease = Lease::born(id, epoch);
        Self { lease, task, lane, fifo, due_at, event, base: 0, crashes: 0 }
    }

    /// The first job of an event that was born leased.
    pub fn born_with(event: Seq, settle: Settle, due_at: Time, epoch: Epoch) -> Self {
        let (lease, task, lane) = (Lease::born(event, epoch), Task::Settle(settle), Lane::settle());
        Self { lease, task, lane, fifo: None, due_at, event: Some(event), base: 0, crashes: 0 }
    }

    /// Which try this is, since it was new or last taken out of the dead letters; from 1.
    pub const fn tries(&self) -> i32 {
        self.lease.attempt - self.base
    }
}

/// Can another try help?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    Transient,
    Terminal,
}

impl Class {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Terminal => "terminal",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        [Self::Transient, Self::Terminal].into_iter().find(|class| class.name() == name)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Done(Outcome),
    Retry {
        due_at: Time,
    },
    /// It could not be tried: it waits, and that spends no try.
    Wait {
        due_at: Time,
    },
    Dead(DeadReason),
    /// The run goes on: its lease guards what the set writes, and is kept.
    NotYet,
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
pub struct DeadReason {
    pub class: Class,
    /// Stable word to filter by: `unusable_body`.
    pub reason: String,
    /// A sentence for a person.
    pub error: String,
}

impl DeadReason {
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
}

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
