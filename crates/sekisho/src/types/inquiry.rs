//! What customers ask by the form of their order's page.

use schemars::JsonSchema;
use sekisho_core::Time;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Inquiry {
    pub id: String,
    /// `inquiry`.
    pub object: String,
    /// `open` or `closed`.
    pub status: String,
    /// The reservation or fulfilment it is about.
    pub order: String,
    pub payment: Option<String>,
    pub name: String,
    /// Masked for callers that may only read.
    pub email: String,
    pub text: String,
    pub language: String,
    pub livemode: bool,
    pub tenant: Option<String>,
    pub created_at: Time,
    pub closed_at: Option<Time>,
    pub closed_by: Option<String>,
}
