//! Slots, and the places of them that are reserved.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use sekisho_core::Time;
use serde::{Deserialize, Serialize};

/// Places that can be sold once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slot {
    /// What the app calls it, inside its tenant and mode.
    pub id: String,
    /// `slot`.
    pub object: String,
    pub capacity: u32,
    /// Places that are kept for customers who pay.
    pub held: u32,
    pub sold: u32,
    pub free: u32,
    pub starts_at: Option<Time>,
    pub title: Option<String>,
    pub livemode: Option<bool>,
    pub tenant: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSlot {
    /// 1 to 100 letters, digits, `.`, `_`, `:` or `-`.
    pub id: String,
    /// Places; 1 if nothing is said. It can be changed, but not below what is taken.
    pub capacity: Option<u32>,
    pub starts_at: Option<Time>,
    pub title: Option<String>,
    /// Live if nothing is said.
    pub livemode: Option<bool>,
    pub tenant: Option<String>,
}

/// Places of a slot that are somebody's, for a while or for good.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reservation {
    pub id: String,
    /// `reservation`.
    pub object: String,
    /// `hold`, `confirmed`, `expired` or `cancelled`.
    pub status: String,
    pub slot: String,
    pub quantity: u32,
    pub starts_at: Option<Time>,
    /// While it is held: until when.
    pub hold_expires_at: Option<Time>,
    /// Until when its customer may cancel it.
    pub cancel_until: Option<Time>,
    pub confirmed_at: Option<Time>,
    pub cancelled: Option<Cancellation>,
    pub reference: Option<String>,
    /// The payment that confirms it.
    pub payment: Option<String>,
    pub fulfilment: Option<String>,
    pub customer: Option<String>,
    pub language: Option<String>,
    pub livemode: bool,
    pub tenant: Option<String>,
    pub metadata: BTreeMap<String, String>,
    pub created_at: Time,
    /// The page of its customer, for callers that may write; see `[pages]`.
    pub customer_url: Option<String>,
    /// Where its customer pays now, for callers that may write; see `[checkout]`.
    pub checkout_url: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cancellation {
    pub at: Time,
    /// `SYSTEM`, `CUSTOMER`, `ADMIN:{name}` or `API:{key}`.
    pub by: String,
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewReservation {
    /// A slot that nobody has made is made with one place.
    pub slot: String,
    /// Places; 1 if nothing is said.
    pub quantity: Option<u32>,
    /// When what is reserved begins; of the slot, if nothing is said.
    pub starts_at: Option<Time>,
    /// How long it is held, such as `30m`; at most `[reservations] delayed_max`.
    pub hold: Option<String>,
    /// Your own order number: payments that carry it pay this reservation.
    pub reference: Option<String>,
    /// Live if nothing is said.
    pub livemode: Option<bool>,
    pub tenant: Option<String>,
    /// What is to be paid. Without it, it is confirmed at once.
    pub payment: Option<ReservedPayment>,
    pub customer: Option<String>,
    /// Where the customer hears of it.
    pub email: Option<String>,
    /// `ja` or `en`.
    pub language: Option<String>,
    /// What must be made once it is confirmed.
    pub fulfilment: Option<ReservedFulfilment>,
    /// Where the customer is sent to pay once more, if you make the sessions yourself.
    pub retry_url: Option<String>,
    /// Have a Checkout Session made for it. Waits up to 8 seconds for `checkout_url`.
    pub checkout: Option<ReservedCheckout>,
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReservedPayment {
    /// In the currency's smallest unit; 0 is for free.
    pub amount: i64,
    pub currency: String,
    pub description: Option<String>,
}

/// A Checkout Session that is to be made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReservedCheckout {
    /// The source whose `api_key` makes it; `[checkout] source` if nothing is said.
    pub source: Option<String>,
    /// Where the customer comes back to; the order's own page if nothing is said.
    pub success_url: Option<String>,
    /// Ways to pay, in the provider's words; `[checkout] methods` if nothing is said.
    pub methods: Option<Vec<String>>,
}

/// A Checkout Session that is to be made, or one that the app made itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewCheckout {
    pub source: Option<String>,
    pub success_url: Option<String>,
    pub methods: Option<Vec<String>>,
    /// The id of a session that the app made itself, `cs_…`: it is expired when the hold ends.
    pub session: Option<String>,
}

/// One try to pay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Checkout {
    /// `checkout`.
    pub object: String,
    pub reservation: String,
    pub payment: String,
    /// Which session of this payment it is; from 1.
    #[serde(rename = "try")]
    pub number: u32,
    /// `waiting`, `asked`, `open`, `complete`, `failed`, `expired` or `gave_up`.
    pub status: String,
    /// Where the customer pays; null until the provider answered, and when nobody can pay it any more.
    pub url: Option<String>,
    pub expires_at: Option<Time>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReservedFulfilment {
    /// What is made, in your words: `video`.
    pub kind: String,
    /// `paid` or `free`.
    pub tier: Option<String>,
    /// As its customer knows it.
    pub name: Option<String>,
    /// Handed to whoever makes it; at most 16 KB.
    pub input: Option<serde_json::Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Confirm {
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Extend {
    /// Until when it is held; later than now.
    pub until: Time,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    pub reason: String,
    /// Whether what was paid goes back; yes if nothing is said.
    pub refund: Option<bool>,
}
