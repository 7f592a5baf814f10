//! Work, waiting or leased: which lane it is in, what is to be done, who holds it, and the key that names its cause.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::{Epoch, Seq};
use crate::time::Time;

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

    /// Where a provider's API is asked.
    pub fn fetch(provider: &str) -> Self {
        Self(format!("fetch:{provider}").into())
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

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Find out what an event means. The payload is empty, `again` when delivered effects are to be repeated, or why it
    /// must not be acted upon ([`Death::payload`]).
    Settle,
    /// Send an event to the app. The payload is the route's name.
    Deliver,
    /// Do what is due. The payload says what, in the words of [`crate::timer`].
    Timer,
    /// Read something from the provider; the answer becomes an event. The payload is a [`crate::settlement::Fetch`].
    Fetch,
    /// Work out who is told what. The payload is a [`crate::notification::Task`].
    Notify,
    /// Send one notice. The payload is its id.
    Send,
}

impl Kind {
    pub const ALL: [Self; 6] =
        [Self::Settle, Self::Deliver, Self::Timer, Self::Fetch, Self::Notify, Self::Send];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Settle => "settle",
            Self::Deliver => "deliver",
            Self::Timer => "timer",
            Self::Fetch => "fetch",
            Self::Notify => "notify",
            Self::Send => "send",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == text)
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
    pub kind: Kind,
    pub lane: Lane,
    /// Jobs with the same text run one after the other, by their ids. One that was dead and is done again does not
    /// stop its successor that runs already.
    pub fifo: Option<String>,
    pub due_at: Time,
    pub event: Option<Seq>,
    pub payload: String,
    /// Born leased: the caller has room for it and runs it from memory. Only due jobs without `fifo`.
    pub owner: Option<Epoch>,
}

/// Leased work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub lease: Lease,
    pub kind: Kind,
    pub lane: Lane,
    pub fifo: Option<String>,
    pub due_at: Time,
    pub event: Option<Seq>,
    pub payload: String,
    /// Attempts that are no tries: made before it was last taken out of the dead letters, or cut off by a crash.
    pub base: i32,
    /// How often its node died while it held this job.
    pub crashes: i32,
}

impl Job {
    /// A job that was born leased, as the store would have given it.
    pub fn born(new: NewJob, epoch: Epoch) -> Self {
        let NewJob { id, kind, lane, fifo, due_at, event, payload, .. } = new;
        let lease = Lease::born(id, epoch);
        Self { lease, kind, lane, fifo, due_at, event, payload, base: 0, crashes: 0 }
    }

    /// The first job of an event that was born leased.
    pub fn born_with(event: Seq, due_at: Time, epoch: Epoch) -> Self {
        let lease = Lease::born(event, epoch);
        let (kind, lane, payload) = (Kind::Settle, Lane::settle(), String::new());
        Self { lease, kind, lane, fifo: None, due_at, event: Some(event), payload, base: 0, crashes: 0 }
    }

    /// Which try this is, since it was new or last taken out of the dead letters; from 1.
    pub const fn tries(&self) -> i32 {
        self.lease.attempt - self.base
    }
}
