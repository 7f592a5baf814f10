//! A Checkout Session to be made or expired by a provider's API: one generation of one try of a payment, or one session. What
//! is sold, and why, stands in the payment; what is asked for, and what follows: [`crate::settlement::checkout`].

use serde::{Deserialize, Serialize};

use super::Lane;
use super::fetch::ApiProvider;

impl Lane {
    /// Where a provider's API is told to make or expire Checkout Sessions.
    pub fn checkout(provider: &str) -> Self {
        Self(format!("checkout:{provider}").into())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckoutCall {
    pub provider: ApiProvider,
    pub livemode: Option<bool>,
    /// Our id of the payment.
    pub payment: String,
    /// Which try of it.
    #[serde(rename = "try")]
    pub number: u32,
    #[serde(flatten)]
    pub step: CheckoutStep,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckoutStep {
    /// Make the session, under the key of this generation.
    Create { generation: u32 },
    /// See to it that nobody can pay this session any more.
    Expire { session: String },
}
