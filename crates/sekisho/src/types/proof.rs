//! A payment with all the evidence for it: what the endpoint of each thing shows, with hashes, and without what must not be
//! handed on.

use schemars::JsonSchema;
use sekisho_core::Time;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Dated, Event, Line, Message, Notice, Payment, SealedEntry};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PaymentProof {
    /// `payment_proof`
    pub object: String,
    pub made_at: Time,
    pub made_by: String,
    /// Whether every check passed.
    pub passed: bool,
    /// False: there is more than a report holds, the oldest was left out.
    pub complete: bool,
    pub checks: Vec<ProofCheck>,
    pub payment: Dated<Payment>,
    pub known_as: Vec<String>,
    /// Payments that were merged into it.
    pub parts: Vec<String>,
    pub events: Vec<ProofEvent>,
    pub decisions: Vec<ProofDecision>,
    pub deliveries: Vec<ProofDelivery>,
    /// Without their details, which may name more than this payment.
    pub notices: Vec<Notice>,
    pub books: ProofBooks,
    pub chain: ProofChain,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProofCheck {
    pub name: String,
    pub passed: bool,
    /// How many things were looked at.
    pub looked_at: usize,
    pub fault: Option<String>,
}

/// An event that is stored, or one that only the audit log remembers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ProofEvent {
    Stored(Box<StoredEvent>),
    Remembered(RememberedEvent),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StoredEvent {
    #[serde(flatten)]
    pub event: Event,
    /// Its body was deleted meanwhile.
    pub gone: bool,
    pub body_sha256: Option<String>,
    pub body_bytes: Option<usize>,
    pub headers_sha256: Option<String>,
    pub header_names: Option<Vec<String>>,
    /// What the body hashed to when it was processed, by the audit log.
    pub sealed_sha256: Option<String>,
}

/// It was deleted when it was old.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RememberedEvent {
    pub id: String,
    pub event_id: Option<String>,
    pub source: Option<String>,
    #[serde(rename = "type")]
    pub event_type: Option<String>,
    /// `true`
    pub gone: bool,
    pub body_sha256: Option<String>,
    pub sealed_sha256: Option<String>,
}

/// An entry of the audit log as a step from before to after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProofDecision {
    pub id: i64,
    pub at: Time,
    pub actor: Option<String>,
    pub role: Option<String>,
    pub action: String,
    pub payment: String,
    pub event: Option<String>,
    pub event_id: Option<String>,
    pub event_type: Option<String>,
    pub merged: Value,
    pub before: Value,
    pub after: Value,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProofDelivery {
    #[serde(flatten)]
    pub message: Message,
    pub calls: Vec<ProofCall>,
}

/// A call without what was answered: only how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProofCall {
    pub attempt: i32,
    pub at: Time,
    pub took_ms: i64,
    pub status: Option<i32>,
    pub reason: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProofBooks {
    pub lines: Vec<ProofLine>,
    /// By currency and mode, as posted: each must be zero.
    pub sums: Vec<ProofSum>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProofLine {
    #[serde(flatten)]
    pub line: Line,
    /// The amount as it is posted, which is what sums to zero.
    pub posted: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProofSum {
    pub currency: String,
    pub livemode: Option<bool>,
    /// A number as text: it may be larger than an integer.
    pub sum: String,
    pub balanced: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProofChain {
    /// The links of the audit log that hold entries of this payment.
    pub links: Vec<ProofLink>,
    pub heads: Vec<ProofHead>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProofLink {
    pub chain: i64,
    pub n: i64,
    pub previous: String,
    pub hash: String,
    /// What the link after it says of it; null where it is the last.
    pub followed_as: Option<String>,
    pub entries: Vec<ProofEntry>,
}

/// An entry of this payment is whole; of the others only what the link's hash is made of is shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ProofEntry {
    Own(Box<OwnEntry>),
    Other { id: i64, digest: String },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OwnEntry {
    #[serde(flatten)]
    pub entry: SealedEntry,
    /// Its digest can't be computed from what is masked.
    pub masked: bool,
}

/// The last link of a chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProofHead {
    pub chain: i64,
    pub n: i64,
    pub hash: String,
}
