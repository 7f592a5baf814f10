//! What was paid for and must be made.

use schemars::JsonSchema;
use sekisho_core::Time;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fulfilment {
    pub id: String,
    /// `fulfilment`.
    pub object: String,
    pub kind: String,
    pub name: Option<String>,
    /// `waiting`, `processing`, `done` or `failed`.
    pub status: String,
    /// What the customer has: `paid`, or `free` while it is not paid for or when the money went back.
    pub tier: String,
    /// Runs that failed.
    pub retry_count: u32,
    pub last_error: Option<String>,
    pub expires_at: Option<Time>,
    /// The money went back.
    pub downgraded: bool,
    /// Where what was made is.
    pub url: Option<String>,
    pub reservation: Option<String>,
    pub payment: Option<String>,
    pub customer: Option<String>,
    pub input: Option<serde_json::Value>,
    /// When its reservation was cancelled: no other run is asked for, and `status` stays what it was.
    pub stopped_at: Option<Time>,
    pub livemode: bool,
    pub tenant: Option<String>,
    pub created_at: Time,
    pub runs: Vec<FulfilmentRun>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FulfilmentRun {
    pub run: u32,
    pub requested_at: Option<Time>,
    /// `processing`, `done` or `failed`.
    pub status: String,
    pub ended_at: Option<Time>,
    pub error: Option<String>,
    pub url: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewFulfilment {
    /// What is made, in your words: `video`.
    pub kind: String,
    /// `paid` (starts when its payment is paid) or `free` (starts at once).
    pub tier: Option<String>,
    /// As its customer knows it.
    pub name: Option<String>,
    pub customer: Option<String>,
    /// The payment that pays for it.
    pub payment: Option<String>,
    /// Handed to whoever makes it; at most 16 KB.
    pub input: Option<serde_json::Value>,
    pub expires_at: Option<Time>,
    pub livemode: Option<bool>,
    pub tenant: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FulfilmentResult {
    /// Which run this is the result of.
    pub run: u32,
    /// `done` or `failed`.
    pub status: String,
    pub error: Option<String>,
    /// Where what was made is.
    pub url: Option<String>,
}

/// What became of a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CountedResult {
    pub counted: bool,
    /// Why it did not count: `repeated`, `older_run` or `done`.
    pub why: Option<String>,
    /// Where the fulfilment stands now.
    pub status: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryFulfilment {
    pub reason: String,
}
