//! Cases: what went wrong with orders and who sees to it; and the record of what was done.

use schemars::JsonSchema;
use sekisho_core::Time;
use serde::{Deserialize, Serialize};

/// Something went wrong with an order, and is put right by a rule or by a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Case {
    pub id: String,
    /// `case`.
    pub object: String,
    /// `RENDER_FAILURE`, `EXPIRED_PAYMENT`, `REFUND_FAILED`, …
    pub trigger: String,
    /// What it is about: the id of a fulfilment, a reservation or a payment.
    pub subject: String,
    /// How often it has begun.
    pub episode: u32,
    /// `open`, `acknowledged` or `resolved`.
    pub status: String,
    /// The highest level of escalation that was reached, 0 to 3.
    pub level: u8,
    pub since: Option<Time>,
    /// Until when somebody should acknowledge it.
    pub respond_by: Option<Time>,
    pub overdue: bool,
    /// When a rule gives the money back, if nothing changes.
    pub refund_at: Option<Time>,
    pub acknowledged: Option<CaseWord>,
    pub resolved: Option<CaseWord>,
    pub payment: Option<String>,
    pub reservation: Option<String>,
    pub livemode: Option<bool>,
    pub tenant: Option<String>,
    /// What rules do next.
    pub next: Vec<CaseNext>,
}

/// What somebody said of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseWord {
    pub at: Time,
    /// `SYSTEM`, `ADMIN:{name}` or `API:{key}`.
    pub by: String,
    /// `fixed`, `by_hand`, `no_action`, or `cleared` if it holds no longer; empty of an acknowledgement.
    #[serde(default)]
    pub how: String,
    #[serde(default)]
    pub note: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseNext {
    pub rule: String,
    pub at: Time,
    /// `none`, `refund` or `refund_surplus`.
    pub action: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcknowledgeCase {
    pub note: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResolveCase {
    /// `fixed`, `by_hand` or `no_action`.
    pub how: String,
    pub note: Option<String>,
}

/// Something that was done because something had gone wrong; written once, never changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Compensation {
    pub id: String,
    /// `compensation`.
    pub object: String,
    /// `REFUND`, `SLOT_REASSIGN` or `MANUAL_RESOLUTION`.
    #[serde(rename = "type")]
    pub kind: String,
    pub trigger: String,
    pub reservation: Option<String>,
    pub payment: Option<String>,
    pub fulfilment: Option<String>,
    pub amount: Option<i64>,
    pub currency: Option<String>,
    /// `SYSTEM`, `ADMIN:{name}`, `API:{key}`, `CUSTOMER` or `PROVIDER`.
    pub resolved_by: String,
    pub notes: Option<String>,
    pub at: Time,
    /// The refund order that it records, and the provider's refunds.
    pub order: Option<String>,
    pub refunds: Vec<String>,
    pub livemode: Option<bool>,
    pub tenant: Option<String>,
}
