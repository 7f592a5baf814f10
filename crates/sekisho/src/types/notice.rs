//! Notices: what was told to whom, and what became of it.

use schemars::JsonSchema;
use sekisho_core::Time;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::AuditEntry;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Notice {
    /// `ntc_…`
    pub id: String,
    /// `notice`
    pub object: String,
    /// `queued`, `sending`, `retrying`, `sent`, `failed`, `uncertain`, `suppressed`, `rate_limited`, `off`, `bounced` or
    /// `complained`.
    pub status: String,
    /// Of a mail. Masked, unless asked for with `addresses=full`.
    pub to: Option<String>,
    pub name: Option<String>,
    pub channel: String,
    /// `customer`, `staff` or `operator`.
    pub audience: String,
    pub template: String,
    pub language: String,
    pub tenant: Option<String>,
    pub payment: Option<String>,
    /// The event that caused it: `evt_…`
    pub event: Option<String>,
    /// The run it belongs to: `reminders/2026-11-16`.
    pub batch: Option<String>,
    /// The message that sends it: `msg_…`
    pub message: Option<String>,
    /// Why it has this status.
    pub reason: Option<String>,
    /// What the other side said, or what went wrong.
    pub note: Option<String>,
    /// What to do next.
    pub advice: Option<String>,
    /// What it tells, to be read by people and programs: counts, thresholds, names.
    pub details: Value,
    pub attempts: usize,
    /// How often an operator resent it.
    pub resent: u32,
    pub created_at: Option<Time>,
    pub changed_at: Option<Time>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoticeDetail {
    #[serde(flatten)]
    pub notice: Notice,
    pub steps: Vec<Step>,
    /// What the audit log says of it, the oldest first.
    pub audit: Vec<AuditEntry>,
}

/// Something that happened to a notice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    pub at: Time,
    pub status: String,
    pub reason: Option<String>,
    pub note: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resend {
    /// Another mail address; default: the one it had.
    pub to: Option<String>,
}
