//! Refunds that are ordered here.

use schemars::JsonSchema;
use sekisho_core::Time;
use serde::{Deserialize, Serialize};

/// A refund that was ordered here, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RefundOrder {
    /// What names it.
    pub order: String,
    /// `ordered` (the provider has said nothing yet), `pending` (on its way), `done`, `met_elsewhere` (nothing was left: it was
    /// refunded otherwise), `failed` or `held_back` (waits for a release).
    pub status: String,
    pub amount: i64,
    pub currency: Option<String>,
    /// What caused it, such as `OPERATOR`.
    pub trigger: String,
    /// `SYSTEM`, `ADMIN:{name}`, `API:{key}` or `CUSTOMER`.
    pub by: String,
    pub reason: String,
    pub notes: Option<String>,
    /// The provider has no command for it: somebody must refund it there. Its own event closes the order.
    pub by_hand: bool,
    pub ordered_at: Time,
    pub released_at: Option<Time>,
    pub released_by: Option<String>,
    /// The provider's ids of the refunds that carry it out.
    pub refunds: Vec<String>,
    /// Why nothing more is asked of the provider.
    pub error: Option<String>,
}

/// A refund order, and the payment it belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RefundOrdered {
    pub payment: String,
    #[serde(flatten)]
    pub order: RefundOrder,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRefund {
    /// In the currency's smallest unit; without it, all that is left.
    pub amount: Option<i64>,
    /// Must be the payment's own, if it is given.
    pub currency: Option<String>,
    /// Why. Stripe is told `requested_by_customer` and `duplicate`; other words are kept here.
    pub reason: String,
    pub notes: Option<String>,
    /// Ordered by a rule of yours, and by no person: counts for `[refunds] automatic_per_hour`, beyond which it is held back.
    pub automatic: Option<bool>,
    /// Only say what would be ordered.
    pub dry_run: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseRefund {
    /// Which order.
    pub order: String,
}
