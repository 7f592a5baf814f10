//! The trace of an event, as it is put together from what is stored.

use schemars::JsonSchema;
use sekisho_core::Time;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trace {
    /// 32 hex digits: what a collector knows it by.
    pub trace_id: String,
    /// Where people see it, if `telemetry.trace_url` says so.
    pub url: Option<String>,
    /// Microseconds from the first span's beginning to the last one's end.
    pub took_us: i64,
    /// Parents before children.
    pub spans: Vec<TraceSpan>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceSpan {
    /// 16 hex digits.
    pub id: String,
    /// The span it hangs below; the first one's may be the caller's.
    pub parent: Option<String>,
    /// `settle`, `deliver app`, …
    pub name: String,
    /// `server`, `client`, `producer` or `consumer`.
    pub kind: String,
    pub start: Time,
    /// Microseconds after the trace began.
    pub after_us: i64,
    pub took_us: i64,
    /// How many spans it hangs below.
    pub depth: usize,
    /// A stable word, where it went wrong.
    pub error: Option<String>,
    pub attributes: Vec<TraceAttribute>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceAttribute {
    pub name: String,
    pub value: String,
}
