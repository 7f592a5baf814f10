//! Channels: the ways notices go by, and whether they are open.

use schemars::JsonSchema;
use sekisho_core::Time;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Channel {
    pub name: String,
    /// `smtp`, `slack`, `webhook`, …
    pub kind: String,
    /// `closed`, `open` or `half_open`.
    pub breaker: String,
    /// Why it is not closed.
    pub why: Option<String>,
    pub open_since: Option<Time>,
    pub open_until: Option<Time>,
    /// Messages of today; null without limits.
    pub used_today: Option<u64>,
    /// Most messages of a day.
    pub daily: Option<u64>,
    /// When its oldest waiting notice is due.
    pub oldest_due_at: Option<Time>,
}

/// What a resume did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resumed {
    pub channel: String,
    /// How the breaker stood: `closed`, `open` or `half_open`.
    pub was: String,
}
