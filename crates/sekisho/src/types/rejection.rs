//! Rejections: whose requests were rejected, when, and why.

use schemars::JsonSchema;
use sekisho_core::Time;
use serde::{Deserialize, Serialize};

/// Rejected requests of one network for one reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rejection {
    pub id: String,
    /// When the first of them came.
    pub at: Time,
    /// When the last of them came.
    pub last_at: Time,
    pub source: String,
    /// The address of the first of them.
    pub peer: String,
    /// The network of all of them: `203.0.113.0/24`.
    pub network: String,
    /// `bad_signature`, `stale_timestamp`, …
    pub reason: String,
    pub detail: String,
    pub request_id: String,
    pub count: i64,
}
