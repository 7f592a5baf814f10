//! Stripe's events, of any API version: fields that moved are looked for in both places, what is not known is left alone.
//! Objects are told apart by what they say they are, never by the letters their ids begin with.

mod billing;
mod payment;
mod said;
mod status;
mod types;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::reading::{Labels, Reading, Realm, References, UnreadableEvent};
use crate::event::Stored;
use crate::money::{self, Currency};

pub use payment::listed_refund;
pub use types::{LISTED, is_read};

/// What Stripe's event adds; `None` when it speaks of nothing we keep books of.
pub fn read(event: &Stored, references: &References) -> Result<Option<Reading>, UnreadableEvent> {
    let envelope: Envelope<'_> = serde_json::from_slice(&event.body).map_err(unreadable)?;
    let Some(object) = envelope.data.and_then(|data| data.object).map(RawValue::get) else { return Ok(None) };
    let created = envelope.created.as_ref().and_then(serde_json::Value::as_i64);
    let Kind { object: kind } = serde_json::from_str(object).map_err(unreadable)?;
    if !types::is_known(&kind, &event.event_type) {
        return Ok(None);
    }
    let context = Context {
        realm: Realm { provider: "stripe", account: event.account.clone(), livemode: event.livemode },
        event_id: &event.event_id,
        event_type: &event.event_type,
        refunds_releases: envelope.api_version.is_some_and(|version| *version < *NO_REFUND_FOR_RELEASES),
        created: created.unwrap_or_else(|| event.received_at.seconds()),
        references,
    };
    let reading = match &*kind {
        "payment_intent" => payment::intent(&context, object)?,
        "charge" => payment::charge(&context, object)?,
        "checkout.session" => payment::session(&context, object)?,
        "refund" => payment::read_refund(&context, object)?,
        "dispute" => payment::dispute(&context, object)?,
        "balance_transaction" => payment::transaction(&context, object)?,
        "subscription" => billing::subscription(&context, object)?,
        "invoice" => billing::invoice(&context, object)?,
        "invoice_payment" => billing::invoice_payment(&context, object)?,
        "customer" => billing::customer(&context, object)?,
        _ => return Ok(None),
    };
    Ok(Some(reading).filter(|reading| reading.payment.is_some() || reading.billing.is_some()))
}

/// What every object of an event is read with.
struct Context<'e> {
    realm: Realm,
    event_id: &'e str,
    event_type: &'e str,
    /// Seconds; when the event was made. Two events of one second can't be ordered by it.
    created: i64,
    /// Its version calls it a refund, too, when a reservation is let go, whole or in part.
    refunds_releases: bool,
    references: &'e References,
}

/// The first API version in which a capture of a part, or a cancellation, makes no refund.
const NO_REFUND_FOR_RELEASES: &str = "2025-03-31";

#[derive(Deserialize)]
struct Envelope<'e> {
    #[serde(borrow)]
    api_version: Option<Cow<'e, str>>,
    /// Seconds; text in thin events, which hold no object.
    created: Option<serde_json::Value>,
    #[serde(borrow)]
    data: Option<Data<'e>>,
}

#[derive(Deserialize)]
struct Data<'e> {
    #[serde(borrow)]
    object: Option<&'e RawValue>,
}

#[derive(Deserialize)]
struct Kind<'e> {
    #[serde(borrow, default)]
    object: Cow<'e, str>,
}

/// A reference to another object: its id, or the object itself where it was expanded.
#[derive(Deserialize)]
#[serde(untagged)]
enum Ref {
    Id(String),
    Object { id: String },
}

impl Ref {
    fn into_id(self) -> String {
        match self {
            Self::Id(id) | Self::Object { id } => id,
        }
    }
}

type Metadata = BTreeMap<String, serde_json::Value>;

fn labels(metadata: Option<Metadata>, client_reference_id: Option<String>) -> Labels {
    let mut labels = BTreeMap::new();
    for (key, value) in metadata.into_iter().flatten() {
        if let serde_json::Value::String(value) = value {
            labels.insert(format!("metadata.{key}"), value);
        }
    }
    labels.extend(client_reference_id.map(|reference| ("client_reference_id".to_owned(), reference)));
    Labels(labels)
}

fn amount(amount: Option<i64>) -> Result<i64, UnreadableEvent> {
    let amount = amount.unwrap_or(0);
    money::checked(amount).ok_or_else(|| UnreadableEvent::Amount(amount.to_string()))
}

fn currency(text: Option<&str>) -> Result<Option<Currency>, UnreadableEvent> {
    let parse = |text: &str| Currency::parse(text).ok_or_else(|| UnreadableEvent::Currency(text.to_owned()));
    text.map(parse).transpose()
}

fn unreadable(error: serde_json::Error) -> UnreadableEvent {
    UnreadableEvent::Body(error.to_string())
}
