//! Payments, as the core writes them in business events too.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AuditEntry, RefundOrder};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Payment {
    /// `pay_…`
    pub id: String,
    /// `payment`
    pub object: String,
    /// `unpaid`, `processing`, `failed`, `expired`, `cancelled`, `partially_paid`, `paid`, `partially_refunded` or
    /// `refunded`.
    pub status: String,
    /// What is due.
    pub amount: i64,
    pub currency: Option<String>,
    pub amount_received: i64,
    pub amount_missing: i64,
    /// Attempts to pay that failed.
    pub failed_tries: usize,
    pub amount_tip: i64,
    /// The provider's fee that the customer paid.
    pub amount_surcharge: i64,
    pub amount_refunded: i64,
    pub amount_refund_pending: i64,
    /// The provider's fee; null until it is known.
    pub fee: Option<i64>,
    /// What is left after the fee; null until it is known.
    pub net: Option<i64>,
    pub settled: Vec<SettledAmount>,
    pub disputed: bool,
    pub dispute_status: Option<String>,
    pub dispute_fee: i64,
    pub net_of_dispute: i64,
    pub livemode: Option<bool>,
    pub tenant: Option<String>,
    pub customer: Option<String>,
    pub purpose: Option<String>,
    /// The app's own word for it, such as an order's number.
    pub reference: Option<String>,
    pub description: Option<String>,
    pub metadata: BTreeMap<String, String>,
    /// Whether the app's order is known.
    pub linked: bool,
    /// Why it needs attention.
    pub attention: Option<String>,
    pub references: PaymentReferences,
    pub refunds: Vec<Refund>,
    /// Refunds that were ordered here.
    pub refund_orders: Vec<RefundOrder>,
    pub disputes: Vec<Dispute>,
    pub receipt_url: Option<String>,
    /// Its page in the provider's dashboard, for people.
    pub dashboard_url: Option<String>,
    pub facts: PaymentFacts,
}

/// What the provider booked in another currency than the payment's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SettledAmount {
    pub currency: String,
    pub amount: i64,
    pub fee: i64,
    pub net: i64,
}

/// What the provider calls everything that belongs to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PaymentReferences {
    pub payment_intents: Vec<String>,
    pub charges: Vec<String>,
    pub sessions: Vec<String>,
    pub orders: Vec<String>,
    pub invoices: Vec<String>,
    pub customers: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Refund {
    pub id: String,
    pub status: String,
    pub amount: i64,
    pub reason: Option<String>,
    pub failure: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Dispute {
    pub id: String,
    pub status: String,
    pub amount: i64,
    pub reason: Option<String>,
    pub withdrawn: i64,
    pub reinstated: i64,
    pub fee: i64,
    pub fee_returned: i64,
}

/// What is known of each of the provider's objects, by their ids.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PaymentFacts {
    pub intents: BTreeMap<String, Value>,
    pub charges: BTreeMap<String, Value>,
    pub sessions: BTreeMap<String, Value>,
    pub transactions: BTreeMap<String, Value>,
    pub refunds: BTreeMap<String, Value>,
    pub disputes: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPayment {
    /// In the currency's smallest unit, 1 or more: 1200 is 1,200 yen or 12 dollars.
    pub amount: i64,
    /// ISO 4217, such as `jpy`.
    pub currency: String,
    pub tenant: Option<String>,
    pub customer: Option<String>,
    pub purpose: Option<String>,
    /// The app's own word for it, under which the provider's events are joined with it.
    pub reference: Option<String>,
    /// The connected account at the provider that the reference belongs to.
    pub account: Option<String>,
    pub description: Option<String>,
    /// Up to 50 texts by their keys.
    pub metadata: Option<BTreeMap<String, String>>,
    pub livemode: Option<bool>,
}

/// What the audit log says of a payment and of everything that became part of it, the oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PaymentHistory {
    pub items: Vec<AuditEntry>,
    /// Whether these are all.
    pub complete: bool,
}
