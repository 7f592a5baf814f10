//! KOMOJU's events: each carries the payment as it is then. One payment can be tried several times, so it is an intent,
//! and once money was taken also a charge of the same id. Amounts are integers in the currency's smallest unit.
//!
//! `authorized` means two things: at the konbini, by bank transfer and by Pay-easy the customer has yet to pay; on a
//! card the merchant has yet to capture.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

use super::payment::{Charge, ChargeStatus, Intent, IntentStatus, Refund, RefundStatus, Till};
use super::reading::{Labels, Reading, References, Told, Unreadable, named, parse, unreadable};
use crate::event::Stored;
use crate::money::{self, Currency};

/// The family of events that speaks of payments.
const FAMILY: &str = "payment.";

/// What KOMOJU's event adds; `None` when it speaks of no payment.
pub fn read(event: &Stored, references: &References) -> Result<Option<Reading>, Unreadable> {
    if !event.event_type.starts_with(FAMILY) {
        return Ok(None);
    }
    let envelope: Envelope<'_> = serde_json::from_slice(&event.body).map_err(unreadable)?;
    let Some(data) = envelope.data else { return Ok(None) };
    let Kind { resource: kind } = parse(data)?;
    let told = match &*kind {
        "payment" => payment(parse(data)?, &event.event_type)?,
        "refund" => refund(parse(data)?)?,
        _ => return Ok(None),
    };
    Ok(Some(told.into_reading("komoju", event, references)))
}

#[derive(Deserialize)]
struct Envelope<'e> {
    #[serde(borrow)]
    data: Option<&'e RawValue>,
}

#[derive(Deserialize)]
struct Kind<'e> {
    #[serde(borrow, default)]
    resource: Cow<'e, str>,
}

#[derive(Deserialize)]
struct PaymentObject {
    id: String,
    status: Option<String>,
    amount: Option<i64>,
    /// With tax and what the customer pays for the method.
    total: Option<i64>,
    currency: Option<String>,
    customer: Option<String>,
    external_order_num: Option<String>,
    metadata: Option<Value>,
    payment_details: Option<Details>,
    amount_refunded: Option<i64>,
    refunds: Option<Vec<RefundObject>>,
}

#[derive(Deserialize)]
struct Details {
    #[serde(rename = "type")]
    method: Option<String>,
    email: Option<String>,
}

fn payment(payment: PaymentObject, event_type: &str) -> Result<Told, Unreadable> {
    let id = named(payment.id)?;
    let state = payment.status.as_deref();
    let details = payment.payment_details;
    let method = details.as_ref().and_then(|details| details.method.clone());
    let status = match state {
        Some("captured" | "refunded") => IntentStatus::Succeeded,
        Some("cancelled" | "expired") => IntentStatus::Cancelled,
        Some("authorized") => match method.as_deref() {
            Some("konbini" | "bank_transfer" | "pay_easy") => IntentStatus::RequiresAction,
            _ => IntentStatus::Processing,
        },
        _ => IntentStatus::Waiting,
    };
    let (taken, returned) = (status == IntentStatus::Succeeded, state == Some("refunded"));
    let total = payment.total.or(payment.amount);
    if taken && (total.is_none() || payment.currency.is_none()) {
        return Err(Unreadable::Amount("nothing".to_owned()));
    }
    let total = amount(total)?;
    let refunded = amount(payment.amount_refunded)?.max(if returned { total } else { 0 });
    let currency = currency(payment.currency.as_deref())?;
    let labels = labels(payment.metadata, payment.external_order_num);
    let mut told = Told { ids: vec![id.clone()], labels, ..Told::default() };
    told.facts.intents.insert(
        id.clone(),
        Intent {
            status,
            amount: total,
            received: if taken { total } else { 0 },
            currency,
            failed: state == Some("failed") || event_type == "payment.failed",
            failure: (state == Some("expired")).then(|| "expired".to_owned()),
            charges: BTreeSet::new(),
        },
    );
    if taken {
        let charge = Charge {
            status: ChargeStatus::Succeeded,
            intent: Some(id.clone()),
            amount: total,
            captured: total,
            refunded,
            currency,
            ..Charge::default()
        };
        told.facts.charges.insert(id.clone(), charge);
    }
    for refund in payment.refunds.into_iter().flatten() {
        told.add_refund(refund, Some(&id), currency, returned)?;
    }
    told.facts.provider_customers.extend(payment.customer);
    let email = details.and_then(|details| details.email);
    told.facts.reached_at(email.as_deref(), Till::Buyer);
    Ok(told)
}

#[derive(Deserialize)]
struct RefundObject {
    id: String,
    payment: Option<String>,
    amount: Option<i64>,
    currency: Option<String>,
    description: Option<String>,
    /// Where the customer says how cash shall be given back.
    redirect_url: Option<String>,
    chargeback: Option<bool>,
}

fn refund(refund: RefundObject) -> Result<Told, Unreadable> {
    let mut told = Told::default();
    told.add_refund(refund, None, None, false)?;
    Ok(told)
}

impl Told {
    /// Cash is given back when the customer fetches it; only the payment says that this was done.
    fn add_refund(
        &mut self,
        refund: RefundObject,
        payment: Option<&String>,
        of_payment: Option<Currency>,
        returned: bool,
    ) -> Result<(), Unreadable> {
        let id = named(refund.id)?;
        let charge = payment.cloned().or(refund.payment);
        let waits = refund.redirect_url.is_some() && !returned;
        let chargeback = refund.chargeback == Some(true);
        let refund = Refund {
            status: if waits { RefundStatus::RequiresAction } else { RefundStatus::Succeeded },
            charge: charge.clone(),
            amount: amount(refund.amount)?,
            currency: currency(refund.currency.as_deref())?.or(of_payment),
            reason: if chargeback { Some("chargeback".to_owned()) } else { refund.description },
            failure: None,
        };
        self.facts.refunds.insert(id.clone(), refund);
        self.ids.extend([Some(id), charge].into_iter().flatten());
        Ok(())
    }
}

fn labels(metadata: Option<Value>, external_order_num: Option<String>) -> Labels {
    let mut labels = Labels::default();
    if let Some(Value::Object(metadata)) = metadata {
        for (key, value) in metadata {
            if let Value::String(value) = value {
                labels.0.insert(format!("metadata.{key}"), value);
            }
        }
    }
    labels.0.extend(external_order_num.map(|reference| ("external_order_num".to_owned(), reference)));
    labels
}

fn amount(amount: Option<i64>) -> Result<i64, Unreadable> {
    let amount = amount.unwrap_or(0);
    money::checked(amount).ok_or_else(|| Unreadable::Amount(amount.to_string()))
}

fn currency(text: Option<&str>) -> Result<Option<Currency>, Unreadable> {
    let parse = |text: &str| Currency::parse(text).ok_or_else(|| Unreadable::Currency(text.to_owned()));
    text.map(parse).transpose()
}

#[cfg(test)]
mod tests;
