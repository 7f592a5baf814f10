//! Billing: what a tenant subscribed to, and until when it has access. As the core writes it in business events too.

use schemars::JsonSchema;
use sekisho_core::Time;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Billing {
    pub id: String,
    /// `billing`
    pub object: String,
    pub tenant: Option<String>,
    /// `trialing`, `active`, `past_due`, `cancelled`, …
    pub status: String,
    /// Whether it has access now.
    pub access: bool,
    pub entitled_until: Option<Time>,
    pub paid_through: Option<Time>,
    pub current_period: Period,
    pub trial_end: Option<Time>,
    pub cancel_at: Option<Time>,
    pub ended_at: Option<Time>,
    pub currency: Option<String>,
    pub paid_invoices: usize,
    pub amount_paid_total: i64,
    pub livemode: Option<bool>,
    /// Why it needs attention.
    pub attention: Option<String>,
    pub subscriptions: Vec<Subscription>,
    pub invoices: Vec<Invoice>,
    pub references: BillingReferences,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Period {
    pub start: Option<Time>,
    pub end: Option<Time>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Subscription {
    pub id: String,
    pub status: String,
    pub currency: Option<String>,
    pub current_period: Period,
    pub trial_end: Option<Time>,
    pub cancel_at: Option<Time>,
    pub ended_at: Option<Time>,
    pub paid_through: Option<Time>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Invoice {
    pub id: String,
    pub status: String,
    pub subscription: Option<String>,
    pub amount_due: i64,
    pub amount_paid: i64,
    pub currency: Option<String>,
    pub paid_at: Option<Time>,
    pub paid_through: Option<Time>,
    pub payment_intents: Vec<String>,
}

/// What the provider calls everything that belongs to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BillingReferences {
    pub customers: Vec<String>,
    pub subscriptions: Vec<String>,
}
