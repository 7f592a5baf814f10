//! LINE Pay's transactions, as its API shows them: callbacks prove nothing. A transaction is an intent, and once money was
//! taken also a charge of the same id, with its refunds. Amounts are numbers in whole units of the currency, ids are
//! numbers of 19 digits.

use serde::Deserialize;
use serde_json::Value;

use super::fetch::answered;
use super::payment::{Charge, ChargeStatus, Intent, IntentStatus, Refund, RefundStatus};
use super::reading::{Labels, Reading, References, Statement, UnreadableEvent, named, parse};
use crate::event::Stored;
use crate::job::fetch::ApiProvider;
use crate::money::{self, Currency};

/// What was read from LINE Pay; `None` when it is no payment.
pub fn read(event: &Stored, references: &References) -> Result<Option<Reading>, UnreadableEvent> {
    let Some(("payment", object)) = answered(ApiProvider::LinePay, event)? else { return Ok(None) };
    let statement = payment(parse(object)?)?;
    Ok(Some(statement.into_reading("line_pay", event, references)))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Transaction {
    #[serde(rename = "transactionId")]
    id: Value,
    pay_status: Option<String>,
    currency: Option<String>,
    order_id: Option<String>,
    /// What was paid in which way; all of it together.
    pay_info: Option<Vec<Part>>,
    refund_list: Option<Vec<Refunded>>,
}

#[derive(Deserialize)]
struct Part {
    amount: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Refunded {
    refund_transaction_id: Value,
    refund_amount: Option<Value>,
}

fn payment(payment: Transaction) -> Result<Statement, UnreadableEvent> {
    let id = named(text(&payment.id))?;
    let status = match payment.pay_status.as_deref() {
        Some("CAPTURE") => IntentStatus::Succeeded,
        Some("AUTHORIZATION") => IntentStatus::Processing,
        Some("VOIDED_AUTHORIZATION") => IntentStatus::Cancelled,
        Some("EXPIRED_AUTHORIZATION") => IntentStatus::Expired,
        _ => IntentStatus::Waiting,
    };
    let taken = status == IntentStatus::Succeeded;
    let currency = match payment.currency {
        Some(text) => Some(Currency::parse(&text).ok_or(UnreadableEvent::Currency(text))?),
        None if taken => return Err(UnreadableEvent::Amount("nothing".to_owned())),
        None => None,
    };
    let parts = payment.pay_info.into_iter().flatten().map(|part| amount(part.amount, currency));
    let asked = money::sum(parts.collect::<Result<Vec<_>, _>>()?);
    let asked = money::checked(asked).ok_or_else(|| UnreadableEvent::Amount(asked.to_string()))?;
    let labels = payment.order_id.map(|order| ("orderId".to_owned(), order));
    let labels = Labels(labels.into_iter().collect());
    let mut statement = Statement { ids: vec![id.clone()], labels, ..Statement::default() };
    statement.facts.intents.insert(
        id.clone(),
        Intent {
            status,
            amount: asked,
            received: if taken { asked } else { 0 },
            currency,
            ..Intent::default()
        },
    );
    for refunded in payment.refund_list.into_iter().flatten() {
        let refund_id = named(text(&refunded.refund_transaction_id))?;
        let refund = Refund {
            status: RefundStatus::Succeeded,
            charge: Some(id.clone()),
            amount: amount(refunded.refund_amount, currency)?,
            currency,
            ..Refund::default()
        };
        statement.ids.push(refund_id.clone());
        statement.facts.refunds.insert(refund_id, refund);
    }
    if taken {
        let charge = Charge {
            status: ChargeStatus::Succeeded,
            intent: Some(id.clone()),
            amount: asked,
            captured: asked,
            currency,
            ..Charge::default()
        };
        statement.facts.charges.insert(id, charge);
    }
    Ok(statement)
}

/// Of a refund LINE Pay writes the amount with a minus.
fn amount(written: Option<Value>, currency: Option<Currency>) -> Result<i64, UnreadableEvent> {
    let (Some(written), Some(currency)) = (written, currency) else { return Ok(0) };
    let number = text(&written);
    let amount = money::parse_decimal(number.strip_prefix('-').unwrap_or(&number), currency);
    amount.ok_or(UnreadableEvent::Amount(number))
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => String::new(),
    }
}

#[cfg(test)]
mod tests;
