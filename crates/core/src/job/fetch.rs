//! Something to be read from a provider. How it is asked for, and what its answer becomes: [`crate::settlement`].

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fetch {
    pub provider: Provider,
    pub account: Option<String>,
    pub livemode: Option<bool>,
    /// What it is, in the provider's words: `balance_transaction`.
    pub object: String,
    pub id: String,
    /// How much later it is read, to see what became of it meanwhile.
    #[serde(default, skip_serializing_if = "is_default")]
    pub after_days: u32,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Who can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    Stripe,
}

impl Provider {
    pub const ALL: [Self; 1] = [Self::Stripe];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Stripe => "stripe",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|provider| provider.name() == name)
    }
}
