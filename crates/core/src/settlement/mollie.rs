//! Mollie's payments, as its API shows them: classic webhooks say only that something changed. A payment is an intent, and
//! once money was taken also a charge of the same id. Amounts are decimal text. Refunds are known by their sum alone;
//! chargebacks are not read.

use serde::Deserialize;
use serde_json::Value;

use super::fetch::answered;
use super::payment::{Charge, ChargeStatus, Intent, IntentStatus};
use super::reading::{Labels, Reading, References, Statement, UnreadableEvent, named, parse};
use crate::event::Stored;
use crate::job::fetch::ApiProvider;
use crate::money::{self, Currency};

/// What was read from Mollie; `None` when it is no payment.
pub fn read(event: &Stored, references: &References) -> Result<Option<Reading>, UnreadableEvent> {
    let Some(("payment", object)) = answered(ApiProvider::MollieClassic, event)? else { return Ok(None) };
    let statement = payment(parse(object)?)?;
    Ok(Some(statement.into_reading("mollie_classic", event, references)))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PaymentObject {
    id: String,
    status: Option<String>,
    amount: Option<Money>,
    /// Where money is taken in parts, or later than it was promised.
    amount_captured: Option<Money>,
    amount_refunded: Option<Money>,
    customer_id: Option<String>,
    metadata: Option<Value>,
    details: Option<Details>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Details {
    failure_reason: Option<String>,
}

fn payment(payment: PaymentObject) -> Result<Statement, UnreadableEvent> {
    let id = named(payment.id)?;
    let status = match payment.status.as_deref() {
        Some("paid") => IntentStatus::Succeeded,
        Some("canceled") => IntentStatus::Cancelled,
        Some("expired") => IntentStatus::Expired,
        Some("failed") => IntentStatus::Failed,
        Some("pending" | "authorized") => IntentStatus::Processing,
        _ => IntentStatus::Waiting,
    };
    let taken = status == IntentStatus::Succeeded;
    let (asked, currency) = amount(payment.amount)?;
    if taken && currency.is_none() {
        return Err(UnreadableEvent::Amount("nothing".to_owned()));
    }
    let (captured, refunded) = (amount(payment.amount_captured)?, amount(payment.amount_refunded)?);
    let received = if captured.1.is_some() { captured.0 } else { asked };
    let mut statement =
        Statement { ids: vec![id.clone()], labels: labels(payment.metadata), ..Statement::default() };
    statement.facts.intents.insert(
        id.clone(),
        Intent {
            status,
            amount: asked,
            received: if taken { received } else { 0 },
            currency,
            failed: status == IntentStatus::Failed,
            failure: payment.details.and_then(|details| details.failure_reason),
            ..Intent::default()
        },
    );
    if taken {
        let charge = Charge {
            status: ChargeStatus::Succeeded,
            intent: Some(id.clone()),
            amount: asked,
            captured: received,
            refunded: refunded.0,
            currency,
            ..Charge::default()
        };
        statement.facts.charges.insert(id, charge);
    }
    statement.facts.provider_customers.extend(payment.customer_id);
    Ok(statement)
}

#[derive(Deserialize)]
struct Money {
    currency: String,
    value: String,
}

fn amount(money: Option<Money>) -> Result<(i64, Option<Currency>), UnreadableEvent> {
    let Some(Money { currency, value }) = money else { return Ok((0, None)) };
    let currency = Currency::parse(&currency).ok_or(UnreadableEvent::Currency(currency))?;
    let amount = money::parse_decimal(&value, currency);
    Ok((amount.ok_or_else(|| UnreadableEvent::Amount(format!("{value:?}")))?, Some(currency)))
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

#[cfg(test)]
mod tests;
