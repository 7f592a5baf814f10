//! Messages: one piece of work, where it stands, and the calls it made.

use schemars::JsonSchema;
use sekisho_core::Time;
use serde::{Deserialize, Serialize};

use super::{Content, Outage};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// `msg_…`
    pub id: String,
    /// Where it goes: `to:app`, `by:mail`, `settle`.
    pub lane: String,
    /// The route, of a delivery.
    pub route: Option<String>,
    /// What it is about: `evt_…`
    pub event: Option<String>,
    pub attempts: i32,
    /// `waiting`, `running`, `dead`, or how it ended.
    pub standing: String,
    /// When it ended.
    pub at: Option<Time>,
    /// When it is tried next.
    pub due_at: Option<Time>,
    pub note: Option<String>,
    /// Why it is dead, such as `timeout`.
    pub reason: Option<String>,
    /// `transient` or `terminal`.
    pub class: Option<String>,
    pub error: Option<String>,
    /// Its destination does not answer: it waits until it does.
    pub outage: Option<Outage>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MessageDetail {
    #[serde(flatten)]
    pub message: Message,
    pub calls: Vec<Call>,
}

/// One call to a destination, and what it answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Call {
    pub attempt: i32,
    pub at: Time,
    pub took_ms: i64,
    /// The HTTP status of the answer.
    pub status: Option<i32>,
    /// Why it failed, such as `timeout`.
    pub reason: Option<String>,
    pub error: Option<String>,
    #[serde(flatten)]
    pub answer: Content,
}
