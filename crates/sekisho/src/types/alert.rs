//! Alerts and targets: what is wrong now, and whether what was promised is reached.

use schemars::JsonSchema;
use sekisho_core::Time;
use serde::{Deserialize, Serialize};

/// How an alert stands. It is one for all nodes, and counts live and test traffic together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AlertStanding {
    /// `NAME/SUBJECT`, or only the name.
    pub id: String,
    pub name: String,
    /// The lane, source, channel or type it is about; null for the whole installation, and for an alert that never fired.
    pub subject: Option<String>,
    /// `ok`, `pending` (beyond its threshold, for less than its hold time), `firing`, or `off`.
    pub state: String,
    /// Since when it is in that state.
    pub since: Option<Time>,
    /// What was measured last, while it was beyond its threshold.
    pub value: Option<String>,
    pub threshold: String,
    /// How often it fired.
    pub incidents: u64,
    /// When operators were last told of the incident.
    pub told_at: Option<Time>,
    pub silenced_until: Option<Time>,
    pub silenced_by: Option<String>,
    pub silence_reason: Option<String>,
    pub fires_when: String,
    pub what_to_do: String,
}

/// Nobody is told for a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SilenceAlert {
    /// How long, such as `30m`, `2h` or `1d`, up to 30 days; `0m` ends a silence.
    #[serde(rename = "for")]
    pub lasts: String,
    /// Why, for the audit log.
    pub reason: String,
}

/// A trial that was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AlertTrial {
    /// The event that tells of it.
    pub event_id: String,
    /// The channel that operators hear it by; null where none is configured.
    pub channel: Option<String>,
}

/// One target over the last hour, day and 30 days.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TargetStanding {
    /// `publish`, `worker`, `retry`, `dead_letters` or `mail`.
    pub name: String,
    pub title: String,
    /// What is to be reached, such as `99.9 %`; with `<` or `≤` where it is a limit.
    pub target: String,
    /// Which traffic the figures cover.
    pub covers: String,
    pub windows: Vec<TargetWindow>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TargetWindow {
    /// `1h`, `24h` or `30d`.
    pub window: String,
    /// `met`, `missed`, or `too_little` to say.
    pub verdict: String,
    /// The share or number that compares with the target; null without any samples.
    pub value: Option<String>,
    pub bad: u64,
    pub all: u64,
    /// Of what may go wrong, so many percent went wrong; null where nothing may.
    pub budget_spent_percent: Option<u64>,
}
