//! Whether the comparison itself can be trusted: an end that is exactly the truth has no fault, and one that is bent in any one place
//! has. No product takes part.

use serde_json::{Value, json};

use super::compare::Seen;
use super::truth::{End, Payment, Wanted};
use super::world::World;

/// What a product without faults would show.
pub fn end(world: &World, end: &End) -> Seen {
    let mut seen =
        Seen { orders: vec![None; world.orders.len()], balances: end.balances.clone(), ..Seen::default() };
    for (n, payment) in end.payments.iter().enumerate() {
        let id = format!("pay_{n}");
        let (orders, objects): (Vec<_>, Vec<_>) =
            payment.members.iter().partition(|one| one.starts_with("order#"));
        for order in orders {
            seen.orders[order["order#".len()..].parse::<usize>().unwrap()] = Some(id.clone());
        }
        let named = objects.first().map_or(&id, |object| *object);
        seen.announcements.extend(announcements(payment, named));
        seen.payments.push(shown(payment, &id, &objects));
    }
    for billing in &end.billings {
        let subscriptions: Vec<_> = billing.subscriptions.iter().map(|id| json!({ "id": id })).collect();
        seen.billings.push(json!({
            "tenant": billing.tenant, "livemode": billing.live, "status": billing.status.unwrap_or("active"),
            "access": billing.access, "paid_invoices": billing.paid_invoices, "amount_paid_total": billing.amount_paid,
            "subscriptions": subscriptions,
        }));
    }
    for invoice in &end.invoices {
        let id = format!("{invoice}/billing.payment_succeeded");
        seen.announcements
            .push(json!({ "id": id, "type": "billing.payment_succeeded", "about": { "invoice": invoice } }));
    }
    seen
}

fn shown(payment: &Payment, id: &str, objects: &[&String]) -> Value {
    json!({
        "id": id, "tenant": payment.tenant.clone().value(), "livemode": payment.live,
        "status": payment.status.unwrap_or("unpaid"), "amount_received": payment.received,
        "amount_refunded": payment.refunded, "amount_refund_pending": payment.refund_pending, "fee": payment.fee.value(),
        "net": payment.net.value(), "dispute_status": payment.dispute.value(),
        "net_of_dispute": payment.left_after_dispute.unwrap_or(0), "references": { "payment_intents": objects },
    })
}

fn announcements(payment: &Payment, named: &str) -> Vec<Value> {
    let mut told = Vec::new();
    let mut tell = |kind: &str, about: Value| {
        let id = format!("provider/-/live/{named}/{kind}/{}", told.len());
        told.push(json!({ "id": id, "type": kind, "about": about }));
    };
    for _ in 0..payment.told.paid.0 {
        tell("payment.paid", json!({}));
    }
    if let Some((kind, sum)) = payment.told.refunds {
        tell(kind, json!({ "amount_refunded": sum }));
    }
    if payment.told.underpaid {
        tell("payment.underpaid", json!({}));
    }
    if payment.told.currency_mismatch {
        tell("payment.currency_mismatch", json!({}));
    }
    told
}

/// One place that is wrong; says whether there was such a place.
pub type Bend = fn(&mut Seen, &End) -> bool;

pub const BENDS: &[(&str, Bend)] = &[
    ("a payment is lost", |seen, _| seen.payments.pop().is_some()),
    ("two payments are one", |seen, _| {
        let [.., one, other] = &mut *seen.payments else { return false };
        let more = other["references"]["payment_intents"].as_array().cloned().unwrap_or_default();
        let Some(objects) = one["references"]["payment_intents"].as_array_mut() else { return false };
        objects.extend(more.iter().cloned());
        !more.is_empty() && seen.payments.pop().is_some()
    }),
    ("another tenant's", |seen, end| {
        let known = end.payments.iter().position(|one| one.tenant != Wanted::Any);
        known.map(|n| seen.payments[n]["tenant"] = json!("office-z")).is_some()
    }),
    ("the other mode's", |seen, end| {
        let known = end.payments.iter().position(|one| one.live.is_some());
        known.map(|n| seen.payments[n]["livemode"] = json!(!end.payments[n].live.unwrap_or(false))).is_some()
    }),
    ("underpaid is paid", |seen, _| all_of(&mut seen.payments, "status", "partially_paid", "paid")),
    ("a voucher under way has failed", |seen, _| {
        all_of(&mut seen.payments, "status", "processing", "failed")
    }),
    ("expired is failed", |seen, _| all_of(&mut seen.payments, "status", "expired", "failed")),
    ("expired is cancelled", |seen, _| all_of(&mut seen.payments, "status", "expired", "cancelled")),
    ("a part is all", |seen, _| all_of(&mut seen.payments, "status", "partially_refunded", "refunded")),
    ("won is lost", |seen, _| all_of(&mut seen.payments, "dispute_status", "won", "lost")),
    ("one yen more came", |seen, _| more(&mut seen.payments, "amount_received", 1)),
    ("one yen more went back", |seen, _| more(&mut seen.payments, "amount_refunded", 1)),
    ("one yen more is under way", |seen, _| more(&mut seen.payments, "amount_refund_pending", 1)),
    ("the fee of a part is the fee", |seen, end| {
        let known = end.payments.iter().position(|one| matches!(one.fee, Wanted::Is(_)));
        known.map(|n| seen.payments[n]["fee"] = json!(1)).is_some()
    }),
    ("an unknown fee is known", |seen, end| {
        let unknown = end.payments.iter().position(|one| one.fee == Wanted::Unknown);
        unknown.map(|n| seen.payments[n]["fee"] = json!(0)).is_some()
    }),
    ("paid is not told", |seen, _| untold(seen, "payment.paid")),
    ("a refund is not told", |seen, _| untold(seen, "payment.refunded")),
    ("a partial refund is not told", |seen, _| untold(seen, "payment.partially_refunded")),
    ("underpaid is not told", |seen, _| untold(seen, "payment.underpaid")),
    ("dollars are not told", |seen, _| untold(seen, "payment.currency_mismatch")),
    ("an invoice is not recorded", |seen, _| untold(seen, "billing.payment_succeeded")),
    ("a refund is told twice", |seen, _| again(seen, "payment.refunded")),
    ("an invoice is recorded twice", |seen, _| again(seen, "billing.payment_succeeded")),
    ("one id is told twice", |seen, _| {
        let last = seen.announcements.last().cloned();
        seen.announcements.extend(last);
        !seen.announcements.is_empty()
    }),
    ("a billing record is lost", |seen, _| seen.billings.pop().is_some()),
    ("a billing record is another tenant's", |seen, _| {
        seen.billings.last_mut().map(|one| one["tenant"] = json!("office-z")).is_some()
    }),
    ("whoever was out is in", |seen, _| all_of(&mut seen.billings, "access", false, true)),
    ("whoever was in is out", |seen, _| all_of(&mut seen.billings, "access", true, false)),
    ("a payment of a subscription counts twice", |seen, _| more(&mut seen.billings, "paid_invoices", 1)),
    ("a subscription's sum is wrong", |seen, _| more(&mut seen.billings, "amount_paid_total", 1)),
    ("a balance is wrong", |seen, _| {
        seen.balances.values_mut().next().map(|balance| *balance += 1).is_some()
    }),
    ("an order was refused", |seen, _| {
        seen.problems.push("order#0 was refused".to_owned());
        true
    }),
];

fn all_of(things: &mut [Value], field: &str, from: impl Into<Value>, to: impl Into<Value>) -> bool {
    let (from, to) = (from.into(), to.into());
    let found: Vec<_> = things.iter_mut().filter(|one| one[field] == from).collect();
    let is_there = !found.is_empty();
    found.into_iter().for_each(|one| one[field] = to.clone());
    is_there
}

fn more(things: &mut [Value], field: &str, by: i64) -> bool {
    things.last_mut().map(|one| one[field] = json!(one[field].as_i64().unwrap_or(0) + by)).is_some()
}

fn untold(seen: &mut Seen, kind: &str) -> bool {
    let before = seen.announcements.len();
    seen.announcements.retain(|told| told["type"] != kind);
    seen.announcements.len() < before
}

fn again(seen: &mut Seen, kind: &str) -> bool {
    let Some(mut told) = seen.announcements.iter().find(|told| told["type"] == kind).cloned() else {
        return false;
    };
    told["id"] = json!(format!("{}/again", told["id"].as_str().unwrap_or_default()));
    seen.announcements.push(told);
    true
}
