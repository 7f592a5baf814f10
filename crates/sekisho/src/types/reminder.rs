//! Reminders of deadlines: a day's run, and how it stands.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use sekisho_core::calendar::Day;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is to be run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Remind {
    /// The day, for all, such as `2026-11-16`; default: the one that each office has now.
    pub date: Option<String>,
    /// One office; default: all.
    pub tenant: Option<String>,
    pub dry_run: bool,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RemindReport {
    pub dry_run: bool,
    /// The channel they go by.
    pub channel: String,
    /// The days that were run.
    pub days: Vec<String>,
    pub offices: usize,
    /// Reminders that are due.
    pub due: usize,
    /// Those of them that were not recorded before.
    pub new: usize,
    /// Of the new ones: to be sent.
    pub queued: usize,
    /// Of the new ones: not sent, because notifications are switched off.
    pub off: usize,
    /// Whom they go to; the first of them.
    pub recipients: Vec<Reminded>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reminded {
    /// Masked.
    pub to: Option<String>,
    pub tenant: Option<String>,
    pub status: String,
    pub language: String,
    pub details: Value,
}

/// How many reminders of a day there are of each status.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReminderSummary {
    /// `reminders`
    pub object: String,
    pub date: Day,
    pub total: usize,
    /// Those whose status is not final.
    pub waiting: usize,
    pub by_status: BTreeMap<String, usize>,
}
