//! Square's events: payments, refunds and disputes, each as it is then. A payment is an intent, and once money was taken
//! also a charge of the same id; its fees stand in it, so it is its own transaction. Amounts are integers in the currency's
//! smallest unit. A tip pays for no order.
//!
//! Several payments of one Square order are its parts: Square takes no more for an order than it costs. A refund belongs to
//! an order of its own, which says nothing of what was bought.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::fetch::answered;
use super::payment::{
    Charge, ChargeStatus, Dispute, DisputeStatus, Facts, Intent, IntentStatus, Refund, RefundStatus, Till,
    Transaction,
};
use super::reading::{Labels, Reading, References, Statement, UnreadableEvent, named, parse, unreadable};
use crate::event::Stored;
use crate::job::fetch::ApiProvider;
use crate::money::{self, Currency};

/// Families of events that speak of payments.
const FAMILIES: [&str; 3] = ["dispute.", "payment.", "refund."];

/// What Square's event adds; `None` when it speaks of no payment.
pub fn read(event: &Stored, references: &References) -> Result<Option<Reading>, UnreadableEvent> {
    if let Some((kind, object)) = answered(ApiProvider::Square, event)? {
        let statement = match kind {
            "payment" => payment(parse(object)?)?,
            "refund" => refund(parse(object)?)?,
            _ => return Ok(None),
        };
        return Ok(Some(statement.into_reading("square", event, references)));
    }
    if !FAMILIES.iter().any(|family| event.event_type.starts_with(family)) {
        return Ok(None);
    }
    let envelope: Envelope<'_> = serde_json::from_slice(&event.body).map_err(unreadable)?;
    let Some(object) = envelope.data.and_then(|data| data.object) else { return Ok(None) };
    let statement = match object {
        Object { payment: Some(object), .. } => payment(parse(object)?)?,
        Object { refund: Some(object), .. } => refund(parse(object)?)?,
        Object { dispute: Some(object), .. } => dispute(parse(object)?)?,
        Object { payment: None, refund: None, dispute: None } => return Ok(None),
    };
    Ok(Some(statement.into_reading("square", event, references)))
}

#[derive(Deserialize)]
struct Envelope<'e> {
    #[serde(borrow)]
    data: Option<Data<'e>>,
}

#[derive(Deserialize)]
struct Data<'e> {
    #[serde(borrow)]
    object: Option<Object<'e>>,
}

#[derive(Deserialize)]
struct Object<'e> {
    #[serde(borrow)]
    payment: Option<&'e RawValue>,
    #[serde(borrow)]
    refund: Option<&'e RawValue>,
    #[serde(borrow)]
    dispute: Option<&'e RawValue>,
}

#[derive(Deserialize)]
struct PaymentObject {
    id: String,
    status: Option<String>,
    amount_money: Option<Money>,
    tip_money: Option<Money>,
    /// Both together.
    total_money: Option<Money>,
    refunded_money: Option<Money>,
    processing_fee: Option<Vec<Fee>>,
    order_id: Option<String>,
    reference_id: Option<String>,
    customer_id: Option<String>,
    buyer_email_address: Option<String>,
    receipt_url: Option<String>,
    card_details: Option<CardDetails>,
}

#[derive(Deserialize)]
struct Fee {
    amount_money: Option<Money>,
}

#[derive(Deserialize)]
struct CardDetails {
    errors: Option<Vec<CardError>>,
}

#[derive(Deserialize)]
struct CardError {
    code: Option<String>,
}

fn payment(payment: PaymentObject) -> Result<Statement, UnreadableEvent> {
    let id = named(payment.id)?;
    let status = match payment.status.as_deref() {
        Some("COMPLETED") => IntentStatus::Succeeded,
        Some("CANCELED") => IntentStatus::Cancelled,
        Some("FAILED") => IntentStatus::Failed,
        Some("APPROVED" | "PENDING") => IntentStatus::Processing,
        _ => IntentStatus::Waiting,
    };
    let taken = status == IntentStatus::Succeeded;
    let (tip, _) = amount(payment.tip_money)?;
    let (total, currency) = if payment.total_money.is_some() {
        amount(payment.total_money)?
    } else {
        let (asked, currency) = amount(payment.amount_money)?;
        (checked(money::sum([asked, tip]))?, currency)
    };
    if taken && currency.is_none() {
        return Err(UnreadableEvent::Amount("nothing".to_owned()));
    }
    let asked = checked(money::minus(total, tip))?;
    let (refunded, _) = amount(payment.refunded_money)?;
    let errors = payment.card_details.and_then(|details| details.errors);
    let mut facts = Facts::default();
    facts.intents.insert(
        id.clone(),
        Intent {
            status,
            amount: asked,
            received: if taken { asked } else { 0 },
            currency,
            failed: status == IntentStatus::Failed,
            failure: errors.and_then(|errors| errors.into_iter().find_map(|error| error.code)),
            part_of: payment.order_id.clone(),
            ..Intent::default()
        },
    );
    if taken {
        let transaction = transaction(&id, (total, currency), payment.processing_fee)?;
        let charge = Charge {
            status: ChargeStatus::Succeeded,
            intent: Some(id.clone()),
            amount: asked,
            captured: asked,
            tip,
            refunded,
            currency,
            transactions: transaction.is_some().then(|| id.clone()).into_iter().collect(),
            receipt_url: payment.receipt_url,
            ..Charge::default()
        };
        facts.charges.insert(id.clone(), charge);
        facts.transactions.extend(transaction.map(|transaction| (id.clone(), transaction)));
    }
    facts.provider_customers.extend(payment.customer_id);
    facts.reached_at(payment.buyer_email_address.as_deref(), Till::Buyer);
    let labels = labels(payment.reference_id, payment.order_id.clone());
    Ok(Statement { ids: [Some(id), payment.order_id].into_iter().flatten().collect(), labels, facts })
}

/// What was booked; `None` while the fees are not known, or where they are not in the payment's currency.
fn transaction(
    source: &str,
    (amount, currency): (i64, Option<Currency>),
    fees: Option<Vec<Fee>>,
) -> Result<Option<Transaction>, UnreadableEvent> {
    let fees = fees.into_iter().flatten().filter_map(|fee| fee.amount_money);
    // An adjustment can give back some of the fee.
    let fees = fees.map(Money::read_signed).collect::<Result<Vec<_>, _>>()?;
    if fees.is_empty() || fees.iter().any(|(_, of_fee)| *of_fee != currency) {
        return Ok(None);
    }
    let fee = money::sum(fees.into_iter().map(|(fee, _)| fee));
    let net = money::minus(amount, fee);
    Ok(Some(Transaction { source: Some(source.to_owned()), amount, fee, net, currency }))
}

#[derive(Deserialize)]
struct RefundObject {
    id: String,
    status: Option<String>,
    amount_money: Option<Money>,
    payment_id: Option<String>,
    order_id: Option<String>,
    reason: Option<String>,
}

fn refund(refund: RefundObject) -> Result<Statement, UnreadableEvent> {
    let id = named(refund.id)?;
    let status = match refund.status.as_deref() {
        Some("COMPLETED") => RefundStatus::Succeeded,
        Some("REJECTED" | "FAILED") => RefundStatus::Failed,
        _ => RefundStatus::Pending,
    };
    let (amount, currency) = amount(refund.amount_money)?;
    let failure = refund.status.filter(|_| status == RefundStatus::Failed);
    let mut facts = Facts::default();
    facts.refunds.insert(
        id.clone(),
        Refund {
            status,
            charge: refund.payment_id.clone(),
            amount,
            currency,
            reason: refund.reason,
            failure,
            ..Refund::default()
        },
    );
    let ids = [Some(id), refund.payment_id, refund.order_id].into_iter().flatten().collect();
    Ok(Statement { ids, facts, ..Statement::default() })
}

#[derive(Deserialize)]
struct DisputeObject {
    id: Option<String>,
    /// What older versions of the API call its id.
    dispute_id: Option<String>,
    state: Option<String>,
    amount_money: Option<Money>,
    reason: Option<String>,
    disputed_payment: Option<Disputed>,
}

#[derive(Deserialize)]
struct Disputed {
    payment_id: Option<String>,
}

fn dispute(dispute: DisputeObject) -> Result<Statement, UnreadableEvent> {
    let id = named(dispute.id.or(dispute.dispute_id).unwrap_or_default())?;
    let status = match dispute.state.as_deref() {
        Some("EVIDENCE_REQUIRED") => DisputeStatus::NeedsResponse,
        Some("PROCESSING") => DisputeStatus::UnderReview,
        Some("INQUIRY_CLOSED") => DisputeStatus::InquiryClosed,
        Some("WON") => DisputeStatus::Won,
        Some("LOST" | "ACCEPTED") => DisputeStatus::Lost,
        _ => DisputeStatus::Inquiry,
    };
    let (amount, currency) = amount(dispute.amount_money)?;
    let charge = dispute.disputed_payment.and_then(|disputed| disputed.payment_id);
    let mut facts = Facts::default();
    facts.disputes.insert(
        id.clone(),
        Dispute {
            status,
            charge: charge.clone(),
            amount,
            currency,
            reason: dispute.reason,
            withdrawn: if status == DisputeStatus::Lost { amount } else { 0 },
            ..Dispute::default()
        },
    );
    Ok(Statement { ids: [Some(id), charge].into_iter().flatten().collect(), facts, ..Statement::default() })
}

#[derive(Deserialize)]
struct Money {
    amount: Option<i64>,
    currency: Option<String>,
}

impl Money {
    fn read_signed(self) -> Result<(i64, Option<Currency>), UnreadableEvent> {
        let amount = self.amount.unwrap_or(0);
        let allowed = (-money::AMOUNT_MAX..=money::AMOUNT_MAX).contains(&amount);
        let amount = allowed.then_some(amount).ok_or_else(|| UnreadableEvent::Amount(amount.to_string()))?;
        Ok((amount, currency(self.currency.as_deref())?))
    }
}

fn amount(money: Option<Money>) -> Result<(i64, Option<Currency>), UnreadableEvent> {
    let Some(money) = money else { return Ok((0, None)) };
    let (amount, currency) = money.read_signed()?;
    Ok((checked(amount)?, currency))
}

fn checked(amount: i64) -> Result<i64, UnreadableEvent> {
    money::checked(amount).ok_or_else(|| UnreadableEvent::Amount(amount.to_string()))
}

fn labels(reference_id: Option<String>, order_id: Option<String>) -> Labels {
    let fields = [("reference_id", reference_id), ("order_id", order_id)];
    Labels(fields.into_iter().filter_map(|(field, value)| Some((field.to_owned(), value?))).collect())
}

fn currency(text: Option<&str>) -> Result<Option<Currency>, UnreadableEvent> {
    let parse = |text: &str| Currency::parse(text).ok_or_else(|| UnreadableEvent::Currency(text.to_owned()));
    text.map(parse).transpose()
}

#[cfg(test)]
mod flows;
#[cfg(test)]
mod tests;
