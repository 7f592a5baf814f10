//! Entries of the audit log, as they are listed and as they are exported for others to check.

use schemars::JsonSchema;
use sekisho_core::Time;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditEntry {
    pub id: i64,
    pub at: Time,
    /// Null is Sekisho itself.
    pub actor: Option<String>,
    pub role: Option<String>,
    /// `payment.paid`, `dead_letter.retried`, …
    pub action: String,
    /// The id of what was changed.
    pub target: String,
    pub target_type: String,
    pub tenant: Option<String>,
    /// The event that caused it: `evt_…`
    pub event: Option<String>,
    /// Why, as the actor said.
    pub reason: Option<String>,
    pub details: Value,
}

/// An entry with all that its digest is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SealedEntry {
    #[serde(flatten)]
    pub entry: AuditEntry,
    /// The details to the letter, as they are hashed.
    pub details_text: String,
    pub event_number: Option<i64>,
    pub digest: String,
}

/// An entry with all that the hash of its link is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExportedEntry {
    #[serde(flatten)]
    pub entry: SealedEntry,
    pub chain: i64,
    pub n: i64,
    pub previous: String,
    pub hash: String,
}

/// Whether the log is as it was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditCheck {
    pub entries: u64,
    pub links: u64,
    pub anchors: u64,
    /// What is not as it was written; none in a log that is whole.
    pub faults: Vec<String>,
    /// When the newest anchor was written: what was cut off the end after it can't be seen.
    pub anchored_at: Option<Time>,
    /// The number of that entry.
    pub anchor: Option<i64>,
}
