//! A tenant's billing as the API shows it and as events carry it.

use serde_json::{Value, json};

use super::derive::BillingStanding;
use super::{BillingAttention, BillingDerived, BillingFacts, BillingStatus, Invoice, Subscription};
use crate::time::Time;

pub fn view(id: &str, facts: &BillingFacts, derived: &BillingDerived, now: Time, grace_ms: i64) -> Value {
    let subscriptions = facts.subscriptions.iter().map(|(id, known)| subscription(facts, id, known));
    let invoices = facts.invoices.iter().map(|(id, known)| invoice(id, known));
    json!({
        "id": id,
        "object": "billing",
        "tenant": derived.tenant,
        "status": derived.status.name(),
        "access": derived.access(now, grace_ms),
        "entitled_until": derived.entitled_until,
        "paid_through": derived.paid_through,
        "current_period": {"start": derived.period_start, "end": derived.period_end},
        "trial_end": derived.trial_end,
        "cancel_at": derived.cancel_at,
        "ended_at": derived.ended_at,
        "currency": derived.currency,
        "paid_invoices": derived.paid_invoices,
        "amount_paid_total": derived.amount_paid_total,
        "livemode": facts.livemode,
        "attention": derived.attention.map(BillingAttention::name),
        "subscriptions": subscriptions.collect::<Vec<_>>(),
        "invoices": invoices.collect::<Vec<_>>(),
        "references": {
            "customers": facts.provider_customers,
            "subscriptions": facts.subscriptions.keys().collect::<Vec<_>>(),
        },
    })
}

fn subscription(facts: &BillingFacts, id: &str, known: &Subscription) -> Value {
    let standing = BillingStanding::of(facts, id);
    let snapshot = known.newest.as_ref();
    let time = |seconds: Option<i64>| seconds.map(Time::from_seconds);
    json!({
        "id": id,
        "status": standing.as_ref().map_or(BillingStatus::None, |standing| standing.status).name(),
        "currency": known.currency,
        "current_period": {
            "start": time(snapshot.and_then(|snapshot| snapshot.period_start)),
            "end": time(snapshot.and_then(|snapshot| snapshot.period_end)),
        },
        "trial_end": time(snapshot.and_then(|snapshot| snapshot.trial_end)),
        "cancel_at": time(snapshot.and_then(|snapshot| snapshot.cancel_at)),
        "ended_at": time(snapshot.and_then(|snapshot| snapshot.ended_at)),
        "paid_through": time(standing.and_then(|standing| standing.paid_through)),
    })
}

fn invoice(id: &str, known: &Invoice) -> Value {
    json!({
        "id": id,
        "status": known.status,
        "subscription": known.subscription,
        "amount_due": known.amount_due,
        "amount_paid": known.amount_paid,
        "currency": known.currency,
        "paid_at": known.paid_at.map(Time::from_seconds),
        "paid_through": known.paid_through.map(Time::from_seconds),
        "payment_intents": known.intents,
    })
}
