//! The links by which customers open the pages of their orders.

use schemars::JsonSchema;
use sekisho_core::Time;
use serde::{Deserialize, Serialize};

/// A link that opens the page of an order. Whoever has it may cancel the order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CustomerLink {
    /// The reservation, or the fulfilment where there is none.
    pub order: String,
    /// `order_link`.
    pub object: String,
    /// Null while `[pages] url` is empty.
    pub url: Option<String>,
    pub expires_at: Time,
    /// How often links to this order were revoked.
    pub generation: u32,
}
