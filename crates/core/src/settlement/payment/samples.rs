//! Stripe's objects in small, to tell stories with.

use serde_json::{Value, json};

use super::scenarios::stored;
use super::*;
use crate::settlement::reading::{Reading, References, UnreadableEvent};
use crate::settlement::stripe;

/// What an event of a connected account adds.
pub(super) fn read_of_account(livemode: bool, account: Option<&str>, object: Value) -> Facts {
    let event = json!({
        "type": "payment_intent.succeeded", "livemode": livemode, "account": account, "data": { "object": object },
    });
    stripe::read(&stored(&event), &References::default()).unwrap().unwrap().payment.unwrap()
}

pub(super) fn try_read(event_type: &str, object: Value) -> Result<Option<Reading>, UnreadableEvent> {
    let event = json!({ "type": event_type, "livemode": true, "data": { "object": object } });
    stripe::read(&stored(&event), &References::default())
}

pub(super) fn read(event_type: &str, object: Value) -> Facts {
    try_read(event_type, object).unwrap().unwrap().payment.unwrap()
}

pub(super) fn facts(events: &[(&str, Value)]) -> Facts {
    let mut facts = Facts::default();
    events.iter().for_each(|(event_type, object)| facts.join(&read(event_type, object.clone())));
    facts
}

pub(super) fn derived(events: &[(&str, Value)]) -> Derived {
    Derived::of(&facts(events))
}

/// The object with other fields.
pub(super) fn with(mut object: Value, fields: Value) -> Value {
    object.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    object
}

pub(super) fn intent(status: &str, received: i64) -> Value {
    json!({
        "object": "payment_intent", "id": "pi_1", "status": status, "amount": 1200, "amount_received": received,
        "currency": "jpy", "metadata": { "order_id": "o_1" },
    })
}

/// The customer has what to pay with at the konbini.
pub(super) fn voucher() -> (&'static str, Value) {
    let slip = json!({ "next_action": { "type": "konbini_display_details" } });
    ("payment_intent.requires_action", with(intent("requires_action", 0), slip))
}

pub(super) fn charge(fields: Value) -> Value {
    let whole = json!({
        "object": "charge", "id": "ch_1", "status": "succeeded", "paid": true, "captured": true, "amount": 1200,
        "amount_captured": 1200, "amount_refunded": 0, "currency": "jpy", "payment_intent": "pi_1",
    });
    with(whole, fields)
}

pub(super) fn refund(id: &str, status: &str, amount: i64) -> (&'static str, Value) {
    let object = json!({
        "object": "refund", "id": id, "status": status, "amount": amount, "currency": "jpy", "charge": "ch_1",
        "payment_intent": "pi_1",
    });
    ("refund.updated", object)
}

pub(super) fn dispute(status: &str, entries: Value) -> (&'static str, Value) {
    let object = json!({
        "object": "dispute", "id": "du_1", "status": status, "amount": 1200, "currency": "jpy", "charge": "ch_1",
        "balance_transactions": entries,
    });
    ("charge.dispute.updated", object)
}

pub(super) fn session(status: &str, payment_status: &str) -> Value {
    json!({
        "object": "checkout.session", "id": "cs_1", "mode": "payment", "status": status, "currency": "jpy",
        "payment_status": payment_status, "payment_intent": "pi_1", "amount_total": 1200,
        "client_reference_id": "o_1",
    })
}

pub(super) fn transaction(fields: Value) -> (&'static str, Value) {
    let whole = json!({
        "object": "balance_transaction", "id": "txn_1", "amount": 1200, "fee": 43, "net": 1157, "currency": "jpy",
        "source": "ch_1",
    });
    ("stripe.balance_transaction", with(whole, fields))
}

pub(super) fn succeeded() -> (&'static str, Value) {
    ("payment_intent.succeeded", intent("succeeded", 1200))
}

pub(super) fn paid() -> (&'static str, Value) {
    ("charge.succeeded", charge(json!({})))
}

/// What is asked for, beside what is only remembered; all of it then counts as asked for.
pub(super) fn ask(facts: &mut Facts) -> Vec<String> {
    let due = due(facts, &Derived::of(facts), |_| true);
    facts.emitted.extend(due.iter().map(|due| due.key.clone()));
    due.into_iter().filter(|due| due.what != DuePart::Remember).map(|due| due.key).collect()
}

/// What stands in one account for one cause.
pub(super) fn booked(lines: &Lines, currency: &str, cause: &str, account: &str) -> i64 {
    let is_meant = |line: &BookLine| {
        line.currency.as_str() == currency && line.cause == cause && line.account == account
    };
    lines.iter().filter(|(line, _)| is_meant(line)).map(|(_, amount)| *amount).sum()
}
