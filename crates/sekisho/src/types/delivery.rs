//! Deliveries: events on their way to the routes, and what became of them.

use schemars::JsonSchema;
use sekisho_core::Time;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Delivery {
    /// `msg_…`
    pub id: String,
    pub route: String,
    /// `waiting`, `running`, `delivered`, `failed` or `cancelled`.
    pub status: String,
    /// What is delivered: `evt_…`
    pub event: Option<String>,
    /// The provider's id of that event.
    pub event_id: Option<String>,
    #[serde(rename = "type")]
    pub event_type: Option<String>,
    pub source: Option<String>,
    pub attempts: i32,
    /// When it was queued.
    pub queued_at: Time,
    /// When the last attempt began.
    pub last_attempt_at: Option<Time>,
    /// How long that took.
    pub took_ms: Option<i64>,
    /// What the app answered to it.
    pub http_status: Option<i32>,
    /// Why it failed, such as `timeout`; null when it went well.
    pub reason: Option<String>,
    /// When it is tried next; of a failed one, when it is tried again automatically at the latest.
    pub next_try_at: Option<Time>,
    /// When it was delivered, failed or was cancelled.
    pub ended_at: Option<Time>,
    /// Its destination does not answer: it waits until it does.
    pub outage: Option<Outage>,
}

/// A destination whose deliveries are paused, because it fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outage {
    pub route: String,
    /// When it began to fail.
    pub since: Time,
    /// When one delivery tries whether it answers again; null while one does.
    pub next_probe_at: Option<Time>,
}

/// What became of the deliveries of an event, by route.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventDeliveries {
    /// `failed` if one failed, else `waiting` if one waits, else `delivered` or `cancelled`; null when it goes to no route.
    pub status: Option<String>,
    /// Routes that it goes to.
    pub total: usize,
    pub delivered: usize,
    pub waiting: usize,
    pub failed: usize,
    pub cancelled: usize,
}

/// Which deliveries. All conditions must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DeliveryQuery {
    /// Only those to this route.
    pub route: Option<String>,
    /// `waiting` (also those that run), `delivered`, `failed` or `cancelled`.
    pub status: Option<String>,
    /// Only those of this event: `evt_…`
    pub event: Option<String>,
    /// Queued at or after.
    pub since: Option<Time>,
    /// Queued before.
    pub until: Option<Time>,
}

/// Which waiting deliveries to cancel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DeliverySelection {
    /// `msg_…`
    pub ids: Vec<String>,
    pub filter: DeliveryQuery,
    pub all: bool,
    pub dry_run: bool,
    /// Recorded in the audit log. Needed to cancel.
    pub reason: String,
}

/// What was cancelled, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeliveryReport {
    pub dry_run: bool,
    /// Only what was queued before this: a filter that finds the same and nothing newer.
    pub until: Option<Time>,
    pub found: usize,
    /// Cancelled now; none in a dry run, and none that ran at that moment.
    pub done: usize,
    /// Ids of no waiting delivery, or not any more.
    pub missing: Vec<String>,
    /// More match than one request may touch: the same request again takes the next.
    pub more: bool,
    pub routes: Vec<RouteShare>,
}

/// Deliveries to one route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RouteShare {
    pub route: String,
    pub count: usize,
}
