//! What the conditions of rules see of an order.

use serde_json::{Value, json};

use super::reservation::is_in_time;
use super::{OrderMoney, OrderPolicy, tier, view};
use crate::fulfilment as ful;
use crate::reservation as rsv;
use crate::rule::OrderVariables;
use crate::settlement::payment::Attention;
use crate::time::Time;

/// An order as rules see it; what it has not is null. Rules see no clock but for what has come to its end by it.
pub fn conditions(
    money: Option<&OrderMoney<'_>>,
    reservation: Option<&rsv::ReservationFacts>,
    fulfilment: Option<&ful::FulfilmentFacts>,
    at: Time,
    policy: &OrderPolicy,
) -> OrderVariables {
    let of_reservation = reservation.map(|facts| {
        json!({
            "status": facts.status(at, policy.grace_ms).name(),
            "slot": view::slot_id(&facts.ours.slot),
            "quantity": facts.ours.quantity,
            "starts_at": facts.ours.starts_at,
            "hold_expires_at": facts.until,
            "was_confirmed": facts.confirmed > 0,
            "paid_in_time": is_in_time(facts, money, at, policy),
            "metadata": facts.ours.metadata,
        })
    });
    let of_fulfilment = fulfilment.map(|facts| {
        json!({
            "status": facts.status(policy.attempts).name(),
            "tier": tier(facts, money).name(),
            "kind": facts.ours.kind,
            "retry_count": facts.failed_runs(),
            "last_error": facts.last_error(),
            "downgraded": facts.downgraded_at.is_some(),
            "stopped": facts.stopped_at.is_some(),
        })
    });
    OrderVariables::new(
        money.map_or(Value::Null, of_payment),
        of_reservation.unwrap_or_default(),
        of_fulfilment.unwrap_or_default(),
    )
}

fn of_payment(money: &OrderMoney<'_>) -> Value {
    let OrderMoney { facts, derived, .. } = money;
    let ours = facts.ours.values().next();
    json!({
        "status": derived.status.name(),
        "paid": money.is_paid(),
        "amount": derived.amount,
        "currency": derived.currency,
        "amount_received": derived.received,
        "amount_refunded": derived.refunded,
        "amount_kept": money.kept(),
        "attention": derived.attention.map(Attention::name),
        "disputed": derived.disputed,
        "provider": facts.realms.first().and_then(|realm| realm.split('/').next()),
        "livemode": facts.livemode,
        "reference": derived.reference,
        "metadata": ours.map(|ours| ours.metadata.clone()).unwrap_or_default(),
    })
}
