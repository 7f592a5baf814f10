//! A replay: which events are processed again, and what comes of it.

use schemars::JsonSchema;
use sekisho_core::Time;
use serde::{Deserialize, Serialize};

use super::EventQuery;

/// Which events to process again, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Replay {
    /// Sekisho's `evt_…`, or the provider's.
    pub ids: Vec<String>,
    pub filter: EventQuery,
    pub all: bool,
    /// Make deliveries again that were made before.
    pub again: bool,
    pub dry_run: bool,
    /// Recorded in the audit log.
    pub reason: String,
}

/// What was queued; in a dry run, what would come of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayReport {
    pub dry_run: bool,
    /// Only what was received before this: a filter that finds the same and nothing newer.
    pub until: Option<Time>,
    pub again: bool,
    pub found: usize,
    /// Queued to be processed again; none in a dry run.
    pub queued: usize,
    /// Their work is not finished yet, so they are not replayed.
    pub unfinished: usize,
    /// Ids that no event has.
    pub missing: Vec<String>,
    /// More match than one request may touch.
    pub more: bool,
    /// Only in a dry run, like the rest.
    pub routes: Vec<RouteForecast>,
    /// Who would be told of them, rule by rule.
    pub notices: Vec<NoticeForecast>,
    /// What would be announced for the first time. Its deliveries and notices are among those above.
    pub announcements: usize,
    /// Events that no route takes.
    pub without_route: usize,
    /// Rules that can't be evaluated for some of the events.
    pub unanswered: Vec<Unanswered>,
}

/// Deliveries of the replayed events to one route.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RouteForecast {
    pub route: String,
    /// Never made: the replay makes them.
    pub new: usize,
    /// Made before: not repeated unless asked for again. So are the next three.
    pub delivered: usize,
    pub waiting: usize,
    /// Among the dead letters, where a retry redoes them.
    pub dead: usize,
    pub discarded: usize,
}

/// Notices of the replayed events by one `[[notify]]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NoticeForecast {
    pub rule: String,
    pub channel: String,
    /// Never recorded: the replay records them, and they are sent.
    pub new: usize,
    /// Recorded before, or being worked out: not repeated, not even by `again`.
    pub told: usize,
    /// Never recorded, and nothing goes out: no address, switched off, or suppressed. The record will say so.
    pub unsent: usize,
}

/// A rule that can't be evaluated: by its filter a route or a `[[notify]]` does not get these events, by its `fifo` a
/// route gets them without order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unanswered {
    /// `route app`, `notify receipt`.
    pub rule: String,
    pub error: String,
    pub count: usize,
}
