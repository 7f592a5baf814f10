//! PayPal's events: orders that buyers approve, captures that take the money, refunds of captures, disputes. Amounts are
//! decimal text. What PayPal keeps of a capture stands in the capture itself, which therefore is its own transaction.
//!
//! A resource is what its type says: a capture's `REFUNDED` and `REVERSED` carry a refund. A `COMPLETED` order is no
//! evidence of money, because its captures may have been declined.

mod amounts;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::payment::{
    Charge, ChargeStatus, Dispute, DisputeStatus, Facts, Intent, IntentStatus, Refund, RefundStatus, Till,
};
use super::reading::{Labels, Reading, References, Statement, UnreadableEvent, named, parse, unreadable};
use crate::event::Stored;
use crate::money;
use amounts::{Breakdown, DecimalAmount, amount};

/// Families of events that speak of payments.
const FAMILIES: [&str; 5] =
    ["CHECKOUT.ORDER.", "CUSTOMER.DISPUTE.", LAPSED, "PAYMENT.CAPTURE.", "PAYMENT.REFUND."];

/// Nothing was captured of what the buyer approved, and PayPal lets it go. Its resource has no type.
const LAPSED: &str = "CHECKOUT.PAYMENT-APPROVAL.REVERSED";

/// What PayPal's event adds; `None` when it speaks of no payment.
pub fn read(event: &Stored, references: &References) -> Result<Option<Reading>, UnreadableEvent> {
    if !FAMILIES.iter().any(|family| event.event_type.starts_with(family)) {
        return Ok(None);
    }
    let envelope: Envelope<'_> = serde_json::from_slice(&event.body).map_err(unreadable)?;
    let Some(resource) = envelope.resource else { return Ok(None) };
    let statement = match envelope.resource_type.as_deref().unwrap_or_default() {
        _ if event.event_type == LAPSED => lapsed(parse(resource)?)?,
        "checkout-order" => order(parse(resource)?)?,
        "capture" => capture(parse(resource)?)?,
        "refund" => refund(parse(resource)?)?,
        "dispute" => dispute(parse(resource)?)?,
        _ => return Ok(None),
    };
    Ok(Some(statement.into_reading("paypal", event, references)))
}

#[derive(Deserialize)]
struct Envelope<'e> {
    #[serde(borrow)]
    resource_type: Option<Cow<'e, str>>,
    #[serde(borrow)]
    resource: Option<&'e RawValue>,
}

#[derive(Deserialize)]
struct OrderObject {
    id: String,
    status: Option<String>,
    purchase_units: Option<Vec<Unit>>,
    payer: Option<Payer>,
    /// By the way the buyer paid: `paypal`, `card`, `venmo`, …
    payment_source: Option<BTreeMap<String, Value>>,
}

#[derive(Deserialize)]
struct Unit {
    amount: Option<DecimalAmount>,
    custom_id: Option<String>,
    invoice_id: Option<String>,
}

#[derive(Deserialize)]
struct Payer {
    payer_id: Option<String>,
    email_address: Option<String>,
}

/// The buyer's address: PayPal's older orders have it with the payer, newer ones with the way of paying.
fn email<'o>(payer: Option<&'o Payer>, sources: Option<&'o BTreeMap<String, Value>>) -> Option<&'o str> {
    let of_payer = payer.and_then(|payer| payer.email_address.as_deref());
    let mut of_sources = sources.into_iter().flat_map(BTreeMap::values);
    let of_source = || of_sources.find_map(|source| source["email_address"].as_str());
    of_payer.or_else(of_source)
}

fn order(order: OrderObject) -> Result<Statement, UnreadableEvent> {
    let id = named(order.id)?;
    let mut intent = Intent {
        status: match order.status.as_deref() {
            Some("APPROVED" | "COMPLETED") => IntentStatus::Processing,
            Some("PAYER_ACTION_REQUIRED") => IntentStatus::RequiresAction,
            Some("VOIDED") => IntentStatus::Cancelled,
            _ => IntentStatus::Waiting,
        },
        ..Intent::default()
    };
    let mut statement = Statement { ids: vec![id.clone()], ..Statement::default() };
    for unit in order.purchase_units.into_iter().flatten() {
        let (amount, currency) = amount(unit.amount.as_ref())?;
        let total = money::sum([intent.amount, amount]);
        intent.amount = money::checked(total).ok_or_else(|| UnreadableEvent::Amount(total.to_string()))?;
        if let (Some(one), Some(other)) = (intent.currency, currency)
            && one != other
        {
            return Err(UnreadableEvent::Currency(format!("{one} and {other}")));
        }
        intent.currency = intent.currency.or(currency);
        for (field, value) in labels(unit.custom_id, unit.invoice_id).0 {
            statement.labels.0.entry(field).or_insert(value);
        }
    }
    statement.facts.intents.insert(id, intent);
    let email = email(order.payer.as_ref(), order.payment_source.as_ref());
    statement.facts.reached_at(email, Till::Buyer);
    statement.facts.provider_customers.extend(order.payer.and_then(|payer| payer.payer_id));
    Ok(statement)
}

#[derive(Deserialize)]
struct LapsedOrder {
    order_id: String,
    purchase_units: Option<Vec<Unit>>,
}

fn lapsed(order: LapsedOrder) -> Result<Statement, UnreadableEvent> {
    let id = named(order.order_id)?;
    let mut statement = Statement { ids: vec![id.clone()], ..Statement::default() };
    for unit in order.purchase_units.into_iter().flatten() {
        for (field, value) in labels(unit.custom_id, unit.invoice_id).0 {
            statement.labels.0.entry(field).or_insert(value);
        }
    }
    statement.facts.intents.insert(id, Intent { status: IntentStatus::Expired, ..Intent::default() });
    Ok(statement)
}

#[derive(Deserialize)]
struct CaptureObject {
    id: String,
    status: Option<String>,
    status_details: Option<StatusDetails>,
    amount: Option<DecimalAmount>,
    custom_id: Option<String>,
    invoice_id: Option<String>,
    seller_receivable_breakdown: Option<Breakdown>,
    supplementary_data: Option<Supplementary>,
    links: Option<Vec<Link>>,
}

fn capture(capture: CaptureObject) -> Result<Statement, UnreadableEvent> {
    let id = named(capture.id)?;
    let status = match capture.status.as_deref() {
        Some("COMPLETED" | "PARTIALLY_REFUNDED" | "REFUNDED") => ChargeStatus::Succeeded,
        Some("DECLINED" | "DENIED" | "FAILED") => ChargeStatus::Failed,
        _ => ChargeStatus::Pending,
    };
    let (amount, currency) = amount(capture.amount.as_ref())?;
    if status == ChargeStatus::Succeeded && currency.is_none() {
        return Err(UnreadableEvent::Amount("nothing".to_owned()));
    }
    let related = related(capture.supplementary_data);
    let order = related.order.or_else(|| above(capture.links.as_deref(), "/orders"));
    let transaction = match capture.seller_receivable_breakdown {
        Some(breakdown) => breakdown.transaction(&id)?,
        None => None,
    };
    let reason = capture.status_details.and_then(|details| details.reason);
    let mut facts = Facts::default();
    facts.charges.insert(
        id.clone(),
        Charge {
            status,
            intent: order.clone(),
            amount,
            captured: if status == ChargeStatus::Succeeded { amount } else { 0 },
            refunded: if capture.status.as_deref() == Some("REFUNDED") { amount } else { 0 },
            currency,
            transactions: transaction.is_some().then(|| id.clone()).into_iter().collect(),
            failure: reason.or(capture.status).filter(|_| status == ChargeStatus::Failed),
            ..Charge::default()
        },
    );
    facts.transactions.extend(transaction.map(|transaction| (id.clone(), transaction)));
    // The order stays approved when its capture is declined, and nothing is under way any more.
    if let Some(order) = order.clone().filter(|_| status == ChargeStatus::Failed) {
        facts.intents.insert(order, Intent { status: IntentStatus::Failed, currency, ..Intent::default() });
    }
    let ids = [Some(id), order, related.authorization].into_iter().flatten().collect();
    Ok(Statement { ids, labels: labels(capture.custom_id, capture.invoice_id), facts })
}

#[derive(Deserialize)]
struct RefundObject {
    id: String,
    status: Option<String>,
    status_details: Option<StatusDetails>,
    amount: Option<DecimalAmount>,
    custom_id: Option<String>,
    invoice_id: Option<String>,
    note_to_payer: Option<String>,
    supplementary_data: Option<Supplementary>,
    links: Option<Vec<Link>>,
}

fn refund(refund: RefundObject) -> Result<Statement, UnreadableEvent> {
    let id = named(refund.id)?;
    let status = match refund.status.as_deref() {
        Some("COMPLETED") => RefundStatus::Succeeded,
        Some("CANCELLED" | "CANCELED") => RefundStatus::Cancelled,
        Some("FAILED") => RefundStatus::Failed,
        _ => RefundStatus::Pending,
    };
    let (amount, currency) = amount(refund.amount.as_ref())?;
    let related = related(refund.supplementary_data);
    let charge = above(refund.links.as_deref(), "/captures").or(related.capture);
    let failed = matches!(status, RefundStatus::Cancelled | RefundStatus::Failed);
    let failure = refund.status_details.and_then(|details| details.reason).filter(|_| failed);
    // A refund may bear a number of its own, so what it says of the order counts only where the capture is not known.
    let labels = match charge {
        Some(_) => Labels::default(),
        None => labels(refund.custom_id, refund.invoice_id),
    };
    let mut facts = Facts::default();
    facts.refunds.insert(
        id.clone(),
        Refund {
            status,
            charge: charge.clone(),
            amount,
            currency,
            reason: refund.note_to_payer,
            failure,
            ..Refund::default()
        },
    );
    let ids = [Some(id), charge, related.order, related.authorization].into_iter().flatten().collect();
    Ok(Statement { ids, labels, facts })
}

#[derive(Deserialize)]
struct DisputeObject {
    dispute_id: String,
    status: Option<String>,
    reason: Option<String>,
    dispute_amount: Option<DecimalAmount>,
    dispute_life_cycle_stage: Option<String>,
    dispute_outcome: Option<DisputeOutcome>,
    disputed_transactions: Option<Vec<Disputed>>,
}

#[derive(Deserialize)]
struct DisputeOutcome {
    outcome_code: Option<String>,
}

#[derive(Deserialize)]
struct Disputed {
    seller_transaction_id: Option<String>,
    custom: Option<String>,
    invoice_number: Option<String>,
}

/// DecimalAmount that a dispute moves comes as a reversal of the capture, so none is taken here.
fn dispute(dispute: DisputeObject) -> Result<Statement, UnreadableEvent> {
    let id = named(dispute.dispute_id)?;
    let inquiry = dispute.dispute_life_cycle_stage.as_deref() == Some("INQUIRY");
    let outcome = dispute.dispute_outcome.and_then(|outcome| outcome.outcome_code);
    let status = match (dispute.status.as_deref(), outcome.as_deref()) {
        (Some("RESOLVED"), Some("RESOLVED_BUYER_FAVOUR" | "ACCEPTED")) => DisputeStatus::Lost,
        (Some("RESOLVED"), _) if inquiry => DisputeStatus::InquiryClosed,
        (
            Some("RESOLVED"),
            Some("RESOLVED_SELLER_FAVOUR" | "RESOLVED_WITH_PAYOUT" | "CANCELED_BY_BUYER" | "DENIED"),
        ) => DisputeStatus::Won,
        _ if inquiry => DisputeStatus::Inquiry,
        (Some("OPEN" | "WAITING_FOR_SELLER_RESPONSE") | None, _) => DisputeStatus::NeedsResponse,
        _ => DisputeStatus::UnderReview,
    };
    let (amount, currency) = amount(dispute.dispute_amount.as_ref())?;
    // Several would make one payment of what are several.
    let disputed = dispute.disputed_transactions.and_then(|disputed| disputed.into_iter().next());
    let (charge, labels) = match disputed {
        Some(one) => (one.seller_transaction_id, labels(one.custom, one.invoice_number)),
        None => (None, Labels::default()),
    };
    let mut facts = Facts::default();
    facts.disputes.insert(
        id.clone(),
        Dispute {
            status,
            charge: charge.clone(),
            amount,
            currency,
            reason: dispute.reason,
            ..Dispute::default()
        },
    );
    Ok(Statement { ids: [Some(id), charge].into_iter().flatten().collect(), labels, facts })
}

#[derive(Deserialize)]
struct StatusDetails {
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Supplementary {
    related_ids: Option<Related>,
}

#[derive(Default, Deserialize)]
struct Related {
    #[serde(rename = "order_id")]
    order: Option<String>,
    #[serde(rename = "authorization_id")]
    authorization: Option<String>,
    #[serde(rename = "capture_id")]
    capture: Option<String>,
}

fn related(data: Option<Supplementary>) -> Related {
    data.and_then(|data| data.related_ids).unwrap_or_default()
}

#[derive(Deserialize)]
struct Link {
    rel: Option<String>,
    href: Option<String>,
}

/// The id of the object of such a collection that this one hangs from.
fn above(links: Option<&[Link]>, collection: &str) -> Option<String> {
    let up = links?.iter().find(|link| link.rel.as_deref() == Some("up"))?;
    let (path, id) = up.href.as_deref()?.rsplit_once('/')?;
    (path.ends_with(collection) && !id.is_empty()).then(|| id.to_owned())
}

fn labels(custom_id: Option<String>, invoice_id: Option<String>) -> Labels {
    let fields = [("custom_id", custom_id), ("invoice_id", invoice_id)];
    let said = fields.into_iter().filter_map(|(field, value)| Some((field.to_owned(), value?)));
    Labels(said.collect::<BTreeMap<_, _>>())
}

#[cfg(test)]
mod flows;
#[cfg(test)]
mod tests;
