//! Money to be given back by a provider's API: one generation of one refund order at one object. How much, and why, stands in
//! the payment; how it is asked for, and what the answer means: [`crate::settlement::refund`].

use serde::{Deserialize, Serialize};

use super::fetch::ApiProvider;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefundCall {
    pub provider: ApiProvider,
    pub account: Option<String>,
    pub livemode: Option<bool>,
    /// What it is, in the provider's words: `payment_intent`, or `charge`.
    pub object: String,
    pub id: String,
    /// The order's key, and which of its calls this is.
    pub order: String,
    pub generation: u32,
    /// Our id of the payment when it was ordered, for whoever looks at the refund: the same in every try.
    #[serde(default)]
    pub payment: String,
    /// The trace of what ordered it, while traces are kept: a `traceparent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}
