//! KOMOJU's events: each carries the payment as it is then. One payment can be tried several times, so it is an intent,
//! and once money was taken also a charge of the same id. Amounts are integers in the currency's smallest unit.
//!
//! `authorized` means two things: at the konbini, by bank transfer and by Pay-easy the customer has yet to pay; on a
//! card the merchant has yet to capture. `total` has what the customer pays KOMOJU for the method, which pays for no order.
//!
//! A refund request asks KOMOJU to transfer cash back. It says no amount: what went back is told by the refund that
//! follows, so a request is a refund of nothing that waits, is done or failed.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

use super::fetch::answered;
use super::payment::{Charge, ChargeStatus, Intent, IntentStatus, Refund, RefundStatus, Till};
use super::reading::{Labels, Reading, References, Statement, UnreadableEvent, named, parse, unreadable};
use crate::event::Stored;
use crate::job::fetch::ApiProvider;
use crate::money::{self, Currency};

/// Families of events that speak of payments.
const FAMILIES: [&str; 2] = ["payment.", "refund_request."];

/// What KOMOJU's event adds; `None` when it speaks of no payment.
pub fn read(event: &Stored, references: &References) -> Result<Option<Reading>, UnreadableEvent> {
    if let Some((kind, object)) = answered(ApiProvider::Komoju, event)? {
        let statement = match kind {
            "payment" => payment(parse(object)?, &event.event_type)?,
            _ => return Ok(None),
        };
        return Ok(Some(statement.into_reading("komoju", event, references)));
    }
    if !FAMILIES.iter().any(|family| event.event_type.starts_with(family)) {
        return Ok(None);
    }
    let envelope: Envelope<'_> = serde_json::from_slice(&event.body).map_err(unreadable)?;
    let Some(data) = envelope.data else { return Ok(None) };
    let Kind { resource: kind } = parse(data)?;
    let statement = match &*kind {
        "payment" => payment(parse(data)?, &event.event_type)?,
        "refund" => refund(parse(data)?)?,
        "refund_request" => refund_request(parse(data)?)?,
        // A request does not say what it is.
        "" if event.event_type.starts_with("refund_request.") => refund_request(parse(data)?)?,
        _ => return Ok(None),
    };
    Ok(Some(statement.into_reading("komoju", event, references)))
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
    tax: Option<i64>,
    /// What the customer pays KOMOJU for the method.
    payment_method_fee: Option<i64>,
    /// All three together.
    total: Option<i64>,
    currency: Option<String>,
    customer: Option<String>,
    external_order_num: Option<String>,
    metadata: Option<Value>,
    payment_details: Option<Details>,
    amount_refunded: Option<i64>,
    refunds: Option<Vec<RefundObject>>,
    refund_requests: Option<Vec<RefundRequest>>,
}

#[derive(Deserialize)]
struct Details {
    #[serde(rename = "type")]
    method: Option<String>,
    email: Option<String>,
}

fn payment(payment: PaymentObject, event_type: &str) -> Result<Statement, UnreadableEvent> {
    let id = named(payment.id)?;
    let state = payment.status.as_deref();
    let details = payment.payment_details;
    let method = details.as_ref().and_then(|details| details.method.clone());
    let status = match state {
        Some("captured" | "refunded") => IntentStatus::Succeeded,
        Some("cancelled") => IntentStatus::Cancelled,
        Some("expired") => IntentStatus::Expired,
        Some("failed") => IntentStatus::Failed,
        Some("authorized") => match method.as_deref() {
            Some("konbini" | "bank_transfer" | "pay_easy") => IntentStatus::RequiresAction,
            _ => IntentStatus::Processing,
        },
        _ => IntentStatus::Waiting,
    };
    let (taken, returned) = (status == IntentStatus::Succeeded, state == Some("refunded"));
    if taken && (payment.total.or(payment.amount).is_none() || payment.currency.is_none()) {
        return Err(UnreadableEvent::Amount("nothing".to_owned()));
    }
    let surcharge = amount(payment.payment_method_fee)?;
    let asked = match payment.total {
        Some(total) => amount(Some(money::minus(total, surcharge)))?,
        None => amount(Some(money::sum([amount(payment.amount)?, amount(payment.tax)?])))?,
    };
    let refunded = amount(payment.amount_refunded)?.max(if returned { asked } else { 0 });
    let currency = currency(payment.currency.as_deref())?;
    let labels = labels(payment.metadata, payment.external_order_num);
    let mut statement = Statement { ids: vec![id.clone()], labels, ..Statement::default() };
    statement.facts.intents.insert(
        id.clone(),
        Intent {
            status,
            amount: asked,
            received: if taken { asked } else { 0 },
            currency,
            failed: state == Some("failed") || event_type == "payment.failed",
            ..Intent::default()
        },
    );
    if taken {
        let charge = Charge {
            status: ChargeStatus::Succeeded,
            intent: Some(id.clone()),
            amount: asked,
            captured: asked,
            surcharge,
            refunded,
            currency,
            ..Charge::default()
        };
        statement.facts.charges.insert(id.clone(), charge);
    }
    let refunds = payment.refunds.unwrap_or_default();
    // Cash waits for the customer until the payment counts it among what went back.
    let listed = money::sum(refunds.iter().filter_map(|refund| refund.amount));
    let counted = returned || refunded >= listed;
    for refund in refunds {
        statement.add_refund(refund, Some(&id), currency, counted)?;
    }
    for request in payment.refund_requests.into_iter().flatten() {
        statement.add_request(request, Some(&id))?;
    }
    statement.facts.provider_customers.extend(payment.customer);
    let email = details.and_then(|details| details.email);
    statement.facts.reached_at(email.as_deref(), Till::Buyer);
    Ok(statement)
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

fn refund(refund: RefundObject) -> Result<Statement, UnreadableEvent> {
    let mut statement = Statement::default();
    statement.add_refund(refund, None, None, false)?;
    Ok(statement)
}

#[derive(Deserialize)]
struct RefundRequest {
    id: String,
    payment: Option<String>,
    status: Option<String>,
    description: Option<String>,
}

fn refund_request(request: RefundRequest) -> Result<Statement, UnreadableEvent> {
    let mut statement = Statement::default();
    statement.add_request(request, None)?;
    Ok(statement)
}

impl Statement {
    fn add_request(
        &mut self,
        request: RefundRequest,
        payment: Option<&String>,
    ) -> Result<(), UnreadableEvent> {
        let id = named(request.id)?;
        let charge = payment.cloned().or(request.payment);
        let status = match request.status.as_deref() {
            Some("completed") => RefundStatus::Succeeded,
            Some("cancelled") => RefundStatus::Cancelled,
            Some("rejected") => RefundStatus::Failed,
            _ => RefundStatus::Pending,
        };
        let refund = Refund {
            status,
            charge: charge.clone(),
            reason: request.description,
            failure: request.status.filter(|_| status == RefundStatus::Failed),
            ..Refund::default()
        };
        self.facts.refunds.insert(id.clone(), refund);
        self.ids.extend([Some(id), charge].into_iter().flatten());
        Ok(())
    }

    /// Cash is given back when the customer fetches it; only the payment says that this was done.
    fn add_refund(
        &mut self,
        refund: RefundObject,
        payment: Option<&String>,
        of_payment: Option<Currency>,
        counted: bool,
    ) -> Result<(), UnreadableEvent> {
        let id = named(refund.id)?;
        let charge = payment.cloned().or(refund.payment);
        let waits = refund.redirect_url.is_some() && !counted;
        let chargeback = refund.chargeback == Some(true);
        let refund = Refund {
            status: if waits { RefundStatus::RequiresAction } else { RefundStatus::Succeeded },
            charge: charge.clone(),
            amount: amount(refund.amount)?,
            currency: currency(refund.currency.as_deref())?.or(of_payment),
            reason: if chargeback { Some("chargeback".to_owned()) } else { refund.description },
            ..Refund::default()
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
