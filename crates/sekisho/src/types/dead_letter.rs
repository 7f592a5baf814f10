//! Dead letters: what waits for a person, and what the person decides.

use schemars::JsonSchema;
use sekisho_core::Time;
use serde::{Deserialize, Serialize};

use super::{About, Call, Content, Object};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeadLetter {
    /// `msg_…`
    pub id: String,
    /// The kind of work: `deliver`, `settle`, `send`, …
    pub kind: String,
    /// Where it was to go: `to:app`, `by:mail`, `settle`.
    pub lane: String,
    /// The route, of a delivery.
    pub route: Option<String>,
    /// Why it failed, such as `timeout`.
    pub reason: String,
    /// `transient` or `terminal`.
    pub class: String,
    pub error: String,
    pub attempts: i32,
    /// How often the server crashed while it was at work on it.
    pub crashes: i32,
    pub died_at: Time,
    /// When it is tried again automatically, at the latest; null when only a person can retry it.
    pub next_try_at: Option<Time>,
    /// What it is about: `evt_…`
    pub event: Option<String>,
    /// The provider's id of that event.
    pub event_id: Option<String>,
    #[serde(rename = "type")]
    pub event_type: Option<String>,
    pub source: Option<String>,
    pub about: About,
    /// The amount of the payment it is about.
    pub amount: Option<i64>,
    pub currency: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeadLetterDetail {
    #[serde(flatten)]
    pub letter: DeadLetter,
    /// What its event is about, in the provider's ids.
    pub object: Option<Object>,
    /// The timer that failed.
    pub timer: Option<String>,
    /// The notice that could not be sent: `ntc_…`
    pub notice: Option<String>,
    /// The request of its event.
    #[serde(flatten)]
    pub content: Content,
    /// The calls that failed.
    pub calls: Vec<Call>,
}

/// Which dead letters. All conditions must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DeadQuery {
    /// Only this source.
    pub source: Option<String>,
    /// Only this type; a `*` at the end stands for anything.
    #[serde(rename = "type")]
    pub event_type: Option<String>,
    /// Why it failed, such as `timeout`.
    pub reason: Option<String>,
    /// The route it was to go to.
    pub route: Option<String>,
    /// Where it was to go, whatever that is: `by:mail`, `settle`. A route is a lane, too: `to:app`.
    pub lane: Option<String>,
    /// What it is about: `evt_…`
    pub event: Option<String>,
    /// Failed at or after.
    pub since: Option<Time>,
    /// Failed before.
    pub until: Option<Time>,
}

/// What to do with which dead letters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DeadLetterSelection {
    /// `msg_…`
    pub ids: Vec<String>,
    pub filter: DeadQuery,
    pub all: bool,
    pub dry_run: bool,
    /// Recorded in the audit log. Needed to discard.
    pub reason: String,
}

/// What was done, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeadReport {
    pub dry_run: bool,
    /// Only what failed before this: a filter that finds the same and nothing newer.
    pub until: Option<Time>,
    pub found: usize,
    /// Retried or discarded now; none in a dry run.
    pub done: usize,
    /// Not retried among others, because it is unknown whether it arrived: it must be named, by its id or its reason.
    pub in_doubt: usize,
    /// Ids that no dead letter has, or has any more.
    pub missing: Vec<String>,
    /// More match than one request may touch: the same request again takes the next.
    pub more: bool,
    pub groups: Vec<DeadGroup>,
}

/// Dead letters that are alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeadGroup {
    pub reason: String,
    pub class: String,
    pub lane: String,
    pub count: usize,
    /// When the first of them failed.
    pub oldest: Time,
    /// When the last of them failed.
    pub newest: Time,
    /// The amounts of their payments, by currency. A payment counts once, however many dead letters it has.
    pub at_risk: Vec<Risk>,
}

/// Money of one currency that depends on dead letters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Risk {
    pub currency: String,
    pub amount: i64,
    pub payments: usize,
}
