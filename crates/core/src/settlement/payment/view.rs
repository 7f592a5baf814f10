//! A payment as people and programs read it: the answer of `GET /v1/payments/{id}` and the data of business events.
//! Amounts are whole numbers in the currency's smallest unit.

use serde_json::{Value, json};

use super::amounts::{Exchanged, exchanged};
use super::{Attention, Derived, Facts, RefundOrder};
use crate::money::Currency;
use crate::settlement::dashboard;

pub fn view(id: &str, facts: &Facts, derived: &Derived) -> Value {
    let ours = facts.ours.values().next();
    json!({
        "id": id,
        "object": "payment",
        "status": derived.status.name(),
        "amount": derived.amount,
        "currency": derived.currency,
        "amount_received": derived.received,
        "amount_missing": derived.missing,
        "failed_tries": derived.failed_tries,
        "amount_tip": derived.tips,
        "amount_surcharge": derived.surcharge,
        "amount_refunded": derived.refunded,
        "amount_refund_pending": derived.refund_pending,
        "fee": derived.fee,
        "net": derived.net,
        "settled": settled(facts, derived),
        "disputed": derived.disputed,
        "dispute_status": derived.dispute_status,
        "dispute_fee": derived.dispute_fee,
        "net_of_dispute": derived.net_of_dispute,
        "livemode": facts.livemode,
        "tenant": derived.tenant,
        "customer": derived.customer,
        "purpose": derived.purpose,
        "reference": derived.reference,
        "description": ours.and_then(|ours| ours.description.as_ref()),
        "metadata": ours.map(|ours| ours.metadata.clone()).unwrap_or_default(),
        "linked": derived.linked,
        "attention": derived.attention.map(Attention::name),
        "references": references(facts),
        "refunds": refunds(facts),
        "refund_orders": refund_orders(facts),
        "disputes": disputes(facts),
        "receipt_url": facts.charges.values().rev().find_map(|charge| charge.receipt_url.as_ref()),
        "dashboard_url": dashboard::of(facts),
        "facts": {
            "intents": facts.intents,
            "charges": facts.charges,
            "sessions": facts.sessions,
            "transactions": facts.transactions,
            "refunds": facts.refunds,
            "disputes": facts.disputes,
        },
    })
}

/// What the provider took in and kept of it, where it books in another currency than the payment's.
fn settled(facts: &Facts, derived: &Derived) -> Vec<Value> {
    let each = exchanged(facts, derived.currency).into_iter();
    let shown = |(currency, sums): (Currency, Exchanged)| json!({ "currency": currency, "amount": sums.amount, "fee": sums.fee, "net": sums.net });
    each.map(shown).collect()
}

/// What the provider calls everything that belongs to it.
fn references(facts: &Facts) -> Value {
    json!({
        "payment_intents": facts.intents.keys().collect::<Vec<_>>(),
        "charges": facts.charges.keys().collect::<Vec<_>>(),
        "sessions": facts.sessions.keys().collect::<Vec<_>>(),
        "orders": facts.orders.union(&facts.client_references).collect::<Vec<_>>(),
        "invoices": facts.invoices,
        "customers": facts.provider_customers,
    })
}

fn refunds(facts: &Facts) -> Vec<Value> {
    let each = facts.refunds.iter().map(|(id, refund)| {
        json!({
            "id": id,
            "status": refund.status,
            "amount": refund.amount,
            "reason": refund.reason,
            "failure": refund.failure,
        })
    });
    each.collect()
}

fn refund_orders(facts: &Facts) -> Vec<Value> {
    let each = facts.refund_orders.iter().map(|(key, order)| refund_order(facts, key, order));
    each.collect()
}

/// A refund that was ordered here, and what became of it.
pub fn refund_order(facts: &Facts, key: &str, order: &RefundOrder) -> Value {
    let wish = &order.wish;
    json!({
        "order": key,
        "status": facts.refund_order_status(key, order).name(),
        "amount": order.amount(wish.currency),
        "currency": wish.currency,
        "trigger": wish.trigger,
        "by": wish.by,
        "reason": wish.reason,
        "notes": wish.notes,
        "by_hand": wish.by_hand.is_some(),
        "ordered_at": wish.at,
        "released_at": order.released.as_ref().map(|release| release.at),
        "released_by": order.released.as_ref().map(|release| &release.by),
        "refunds": facts.refunds_by(key).map(|(id, _)| id).collect::<Vec<_>>(),
        "error": order.gave_up.values().next(),
    })
}

fn disputes(facts: &Facts) -> Vec<Value> {
    let each = facts.disputes.iter().map(|(id, dispute)| {
        json!({
            "id": id,
            "status": dispute.status,
            "amount": dispute.amount,
            "reason": dispute.reason,
            "withdrawn": dispute.withdrawn,
            "reinstated": dispute.reinstated,
            "fee": dispute.fee,
            "fee_returned": dispute.fee_returned,
        })
    });
    each.collect()
}
