//! Something to be read from a provider. How it is asked for, and what its answer becomes: [`crate::settlement`].

use serde::{Deserialize, Serialize};

use crate::time::Time;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fetch {
    pub provider: ApiProvider,
    pub account: Option<String>,
    pub livemode: Option<bool>,
    /// What it is, in the provider's words: `balance_transaction`.
    pub object: String,
    pub id: String,
    /// How much later it is read, to see what became of it meanwhile.
    #[serde(default, skip_serializing_if = "is_default")]
    pub after_days: u32,
    /// Of several questions about one thing, which this is.
    #[serde(default, skip_serializing_if = "is_default")]
    pub moment: Option<Time>,
    /// The trace of what asked for it, while traces are kept: a `traceparent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Who can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApiProvider {
    Stripe,
    Paypal,
    Square,
    Payjp,
    Komoju,
    MollieClassic,
    LinePay,
}

impl ApiProvider {
    pub const ALL: [Self; 7] = [
        Self::Stripe,
        Self::Paypal,
        Self::Square,
        Self::Payjp,
        Self::Komoju,
        Self::MollieClassic,
        Self::LinePay,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Stripe => "stripe",
            Self::Paypal => "paypal",
            Self::Square => "square",
            Self::Payjp => "payjp",
            Self::Komoju => "komoju",
            Self::MollieClassic => "mollie_classic",
            Self::LinePay => "line_pay",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|provider| provider.name() == name)
    }

    /// Whether money is given back by its API. At the others a person does it.
    pub const fn can_refund(self) -> bool {
        match self {
            Self::Stripe => true,
            Self::Paypal
            | Self::Square
            | Self::Payjp
            | Self::Komoju
            | Self::MollieClassic
            | Self::LinePay => false,
        }
    }

    /// Whether Checkout Sessions are made by its API.
    pub const fn can_check_out(self) -> bool {
        match self {
            Self::Stripe => true,
            Self::Paypal
            | Self::Square
            | Self::Payjp
            | Self::Komoju
            | Self::MollieClassic
            | Self::LinePay => false,
        }
    }

    /// What can be read from it by its id, in its own words. Everything else is read from its lists.
    pub const fn objects(self) -> &'static [&'static str] {
        match self {
            Self::Stripe => {
                &["balance_transaction", "payment_intent", "charge", "refund", "checkout.session"]
            }
            Self::MollieClassic | Self::LinePay => &["payment"],
            Self::Paypal | Self::Square | Self::Payjp | Self::Komoju => &[],
        }
    }

    /// How long something that a hint names may be unknown to it. LINE Pay shows a payment once it is confirmed, which the
    /// merchant has 20 minutes to do.
    pub const fn unknown_within_ms(self) -> i64 {
        match self {
            Self::LinePay => 20 * 60_000,
            Self::Stripe | Self::Paypal | Self::Square | Self::Payjp | Self::Komoju | Self::MollieClassic => {
                0
            }
        }
    }

    /// Whether its webhooks prove nothing, so that it is asked about each of them.
    pub const fn only_hints(self) -> bool {
        match self {
            Self::MollieClassic | Self::LinePay => true,
            Self::Stripe | Self::Paypal | Self::Square | Self::Payjp | Self::Komoju => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider;

    #[test]
    fn e1_whoever_can_be_asked_is_a_provider_and_is_written_by_its_name() {
        for one in ApiProvider::ALL {
            assert!(provider::find(one.name()).is_some(), "{one:?}");
            assert_eq!(serde_json::to_value(one).unwrap(), one.name());
            assert_eq!(ApiProvider::parse(one.name()), Some(one));
            let trust = provider::find(one.name()).unwrap().about().trust;
            assert_eq!(one.only_hints(), trust == crate::event::Trust::Hint, "{one:?}");
        }
    }
}
