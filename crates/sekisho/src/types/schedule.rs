//! Schedules: which events Sekisho makes itself, and when the next one is due.

use schemars::JsonSchema;
use sekisho_core::Time;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Schedule {
    pub name: String,
    #[serde(rename = "type")]
    pub event_type: String,
    pub cron: String,
    pub timezone: String,
    pub next_at: Option<Time>,
}
