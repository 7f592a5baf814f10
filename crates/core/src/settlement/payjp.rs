//! PAY.JP's events: each carries the charge as it is then. The charge is an intent, and once money was taken also a charge
//! of the same id. Refunds are no objects of their own: only their sum is known, and only its growth. Amounts are integers
//! in the currency's smallest unit.
//!
//! A refund of what was never captured gives no money back; the authorisation was released, or ran out. Where less is
//! captured than was authorised, PAY.JP counts the rest among the refunds, too. How much that was only the event of the
//! capture says, because after it real refunds add to the same sum.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

use super::fetch::answered;
use super::payment::{Capture, Charge, ChargeStatus, Intent, IntentStatus};
use super::reading::{Labels, Reading, References, Statement, UnreadableEvent, named, parse, unreadable};
use crate::event::Stored;
use crate::job::fetch::ApiProvider;
use crate::money::{self, Currency};
use crate::time::Time;

/// The family of events that speaks of payments.
const FAMILY: &str = "charge.";

/// What PAY.JP's event adds; `None` when it speaks of no payment.
pub fn read(event: &Stored, references: &References) -> Result<Option<Reading>, UnreadableEvent> {
    if let Some((kind, object)) = answered(ApiProvider::Payjp, event)? {
        let statement = match kind {
            "charge" => charge(parse(object)?, &event.event_type, event.created_at.map(Time::seconds))?,
            _ => return Ok(None),
        };
        return Ok(Some(statement.into_reading("payjp", event, references)));
    }
    if !event.event_type.starts_with(FAMILY) {
        return Ok(None);
    }
    let envelope: Envelope<'_> = serde_json::from_slice(&event.body).map_err(unreadable)?;
    let Some(data) = envelope.data else { return Ok(None) };
    let Kind { object: kind } = parse(data)?;
    let statement = match &*kind {
        "charge" => charge(parse(data)?, &event.event_type, envelope.created)?,
        _ => return Ok(None),
    };
    Ok(Some(statement.into_reading("payjp", event, references)))
}

#[derive(Deserialize)]
struct Envelope<'e> {
    created: Option<i64>,
    #[serde(borrow)]
    data: Option<&'e RawValue>,
}

#[derive(Deserialize)]
struct Kind<'e> {
    #[serde(borrow, default)]
    object: Cow<'e, str>,
}

#[derive(Deserialize)]
struct ChargeObject {
    id: String,
    amount: Option<i64>,
    amount_refunded: Option<i64>,
    /// The authorisation was given.
    paid: Option<bool>,
    captured: Option<bool>,
    /// Something of it was given back, or the authorisation ran out.
    refunded: Option<bool>,
    /// When an authorisation runs out that was not captured by then.
    expired_at: Option<i64>,
    three_d_secure_status: Option<String>,
    currency: Option<String>,
    customer: Option<String>,
    failure_code: Option<String>,
    metadata: Option<Value>,
}

fn charge(
    charge: ChargeObject,
    event_type: &str,
    created: Option<i64>,
) -> Result<Statement, UnreadableEvent> {
    let id = named(charge.id)?;
    let taken = charge.captured == Some(true) && charge.paid != Some(false);
    if taken && (charge.amount.is_none() || charge.currency.is_none()) {
        return Err(UnreadableEvent::Amount("nothing".to_owned()));
    }
    let total = amount(charge.amount)?;
    let refunded = amount(charge.amount_refunded)?;
    let currency = currency(charge.currency.as_deref())?;
    let is_paid = charge.paid == Some(true);
    let unverified = match charge.three_d_secure_status.as_deref() {
        Some(status @ ("failed" | "aborted" | "error")) if !is_paid => {
            Some(format!("three_d_secure_{status}"))
        }
        _ => None,
    };
    let failure = charge.failure_code.or(unverified);
    let failed = failure.is_some() || event_type == "charge.failed";
    let ran_out = charge.expired_at.zip(created).is_some_and(|(end, now)| now >= end);
    let status = match (taken, charge.refunded == Some(true) || refunded > 0) {
        (true, _) => IntentStatus::Succeeded,
        (false, true) if ran_out => IntentStatus::Expired,
        (false, true) => IntentStatus::Cancelled,
        (false, false) if is_paid => IntentStatus::Processing,
        (false, false) if failed => IntentStatus::Failed,
        (false, false) => IntentStatus::Waiting,
    };
    let mut statement =
        Statement { ids: vec![id.clone()], labels: labels(charge.metadata), ..Statement::default() };
    // How much was received only the charge says: no part of it that is released may stand here for good.
    statement
        .facts
        .intents
        .insert(id.clone(), Intent { status, amount: total, currency, failed, failure, ..Intent::default() });
    if taken {
        let charge = Charge {
            status: ChargeStatus::Succeeded,
            intent: Some(id.clone()),
            amount: total,
            captured: total,
            uncaptured: if event_type == "charge.captured" { refunded } else { 0 },
            capture: match event_type {
                "charge.captured" | "charge.succeeded" => Capture::Told,
                _ => Capture::Untold,
            },
            refunded,
            currency,
            ..Charge::default()
        };
        statement.facts.charges.insert(id, charge);
    }
    statement.facts.provider_customers.extend(charge.customer);
    Ok(statement)
}

fn labels(metadata: Option<Value>) -> Labels {
    let mut labels = Labels::default();
    if let Some(Value::Object(metadata)) = metadata {
        for (key, value) in metadata {
            if let Value::String(value) = value {
                labels.0.insert(format!("metadata.{key}"), value);
            }
        }
    }
    labels
}

fn amount(amount: Option<i64>) -> Result<i64, UnreadableEvent> {
    let amount = amount.unwrap_or(0);
    money::checked(amount).ok_or_else(|| UnreadableEvent::Amount(amount.to_string()))
}

fn currency(text: Option<&str>) -> Result<Option<Currency>, UnreadableEvent> {
    let parse = |text: &str| Currency::parse(text).ok_or_else(|| UnreadableEvent::Currency(text.to_owned()));
    text.map(parse).transpose()
}

#[cfg(test)]
mod flows;
#[cfg(test)]
mod tests;
