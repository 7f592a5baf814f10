//! Short histories of money, each in every order, repeated and split: all end the same, what must be told is told, and what
//! is not true is never said.

mod back;

use serde_json::{Value, json};

use super::samples::*;
use super::scenarios::stored;
use super::*;
use crate::settlement::reading::References;
use crate::settlement::stripe;

#[derive(Default)]
struct History {
    /// What the app asked for, in yen.
    asked: Option<i64>,
    events: Vec<Value>,
    /// Fields of the payment's view at the end.
    ends: Value,
    /// Keys that were announced by then, whatever the order.
    told: Vec<&'static str>,
    /// Types that no order may announce.
    never: Vec<&'static str>,
}

/// An event as it was made in that second, of the version that Stripe sends by now.
fn event(at: i64, (event_type, object): (&str, Value)) -> Value {
    json!({
        "id": format!("evt_{at}_{event_type}"), "type": event_type, "created": at, "livemode": true,
        "api_version": "2026-10-28.endive", "data": { "object": object },
    })
}

/// The same of a version in which whatever lets a reservation go makes a refund.
fn older(at: i64, told: (&str, Value)) -> Value {
    with(event(at, told), json!({ "api_version": "2024-06-20" }))
}

fn part(event: &Value) -> Facts {
    stripe::read(&stored(event), &References::default()).unwrap().unwrap().payment.unwrap()
}

fn start(history: &History) -> Facts {
    let mut facts = Facts::default();
    if let Some(amount) = history.asked {
        let ours = MerchantOrder { amount, currency: Currency::parse("jpy"), ..MerchantOrder::default() };
        facts.ours.insert("pay_1".into(), ours);
    }
    facts
}

fn orders(count: usize) -> Vec<Vec<usize>> {
    let longer = |order: Vec<usize>| {
        (0..count)
            .filter(|n| !order.contains(n))
            .map(|n| [order.clone(), vec![n]].concat())
            .collect::<Vec<_>>()
    };
    (0..count).fold(vec![Vec::new()], |orders, _| orders.into_iter().flat_map(longer).collect())
}

fn check(history: &History) {
    let parts: Vec<Facts> = history.events.iter().map(part).collect();
    let mut whole = start(history);
    parts.iter().for_each(|part| whole.join(part));
    let shown = view("pay_1", &whole, &Derived::of(&whole));
    for (field, value) in history.ends.as_object().unwrap() {
        assert_eq!(&shown[field], value, "{field} of {shown:#}");
    }
    for order in orders(parts.len()) {
        let mut known = start(history);
        ask(&mut known);
        for n in order.iter().chain(&order) {
            known.join(&parts[*n]);
            ask(&mut known);
        }
        assert_eq!(Derived::of(&known), Derived::of(&whole), "{order:?}");
        assert_eq!(lines(&known, &Derived::of(&known)), lines(&whole, &Derived::of(&whole)), "{order:?}");
        for key in &history.told {
            assert!(known.emitted.contains(*key), "{order:?} tells {:?}, not {key}", known.emitted);
        }
        for kind in &history.never {
            let told = |key: &&String| key.split('/').next() == Some(kind);
            assert_eq!(known.emitted.iter().find(told), None, "{order:?}");
        }
        let (first, second) = order.split_at(order.len() / 2);
        let half = |some: &[usize]| {
            let mut facts = start(history);
            some.iter().for_each(|n| facts.join(&parts[*n]));
            facts
        };
        let mut both = half(second);
        both.join(&half(first));
        assert_eq!(both, whole, "{order:?}");
    }
}

fn captured(id: &str, intent: &str, fields: Value) -> (&'static str, Value) {
    ("charge.captured", charge(with(json!({ "id": id, "payment_intent": intent }), fields)))
}

fn declined(charge: &str) -> (&'static str, Value) {
    let error = json!({ "last_payment_error": { "code": "card_declined", "charge": charge } });
    ("payment_intent.payment_failed", with(intent("requires_payment_method", 0), error))
}

/// A failure for which nothing was charged.
fn ran_out() -> (&'static str, Value) {
    let error = json!({ "last_payment_error": { "code": "payment_intent_payment_attempt_expired" } });
    ("payment_intent.payment_failed", with(intent("requires_payment_method", 0), error))
}

fn failed_charge(id: &str) -> (&'static str, Value) {
    ("charge.failed", charge(json!({ "id": id, "status": "failed", "paid": false, "captured": false })))
}

#[test]
fn d2_less_than_was_asked_for_is_not_paid() {
    let [first, rest] = [("ch_1", "pi_1", 700), ("ch_2", "pi_2", 500)].map(|(id, intent, amount)| {
        event(1, captured(id, intent, json!({ "amount": amount, "amount_captured": amount })))
    });
    check(&History {
        asked: Some(1200),
        events: vec![first.clone()],
        ends: json!({
            "status": "partially_paid", "amount": 1200, "amount_received": 700, "amount_missing": 500,
            "attention": "underpaid",
        }),
        told: vec!["payment.underpaid/700"],
        never: vec!["payment.paid", "payment.overpaid"],
    });
    check(&History {
        asked: Some(1200),
        events: vec![first.clone(), rest],
        ends: json!({ "status": "paid", "amount_received": 1200, "amount_missing": 0, "attention": null }),
        told: vec!["payment.paid"],
        never: vec!["payment.overpaid"],
    });
    let (event_type, object) = refund("re_1", "succeeded", 700);
    check(&History {
        asked: Some(1200),
        events: vec![first, event(2, (event_type, object))],
        ends: json!({ "status": "refunded", "amount_refunded": 700 }),
        told: vec!["payment.refunded/700"],
        never: vec!["payment.paid"],
    });
}

#[test]
fn d2_money_in_another_currency_is_told_and_not_counted() {
    let dollars = json!({ "currency": "usd", "amount": 50, "amount_captured": 50 });
    check(&History {
        asked: Some(1200),
        events: vec![event(1, captured("ch_1", "pi_1", dollars.clone()))],
        ends: json!({ "status": "unpaid", "amount_received": 0, "attention": "currency_mismatch" }),
        told: vec!["payment.currency_mismatch/usd"],
        never: vec!["payment.paid", "payment.processing"],
    });
    check(&History {
        asked: Some(1200),
        events: vec![
            event(1, captured("ch_1", "pi_1", dollars)),
            event(2, captured("ch_2", "pi_2", json!({}))),
        ],
        ends: json!({ "status": "paid", "amount_received": 1200, "attention": "currency_mismatch" }),
        told: vec!["payment.currency_mismatch/usd", "payment.paid"],
        ..History::default()
    });
}

#[test]
fn d2_a_charge_captured_twice_costs_both_entries() {
    let capture = |amount: i64, entry: &str| {
        let fields = json!({ "amount": 1000, "amount_captured": amount, "balance_transaction": entry });
        event(1, captured("ch_1", "pi_1", fields))
    };
    let entry = |id: &str, amount: i64, fee: i64| {
        event(2, transaction(json!({ "id": id, "amount": amount, "fee": fee, "net": amount - fee })))
    };
    check(&History {
        events: vec![
            capture(600, "txn_b"),
            capture(1000, "txn_a"),
            entry("txn_b", 600, 22),
            entry("txn_a", 400, 14),
        ],
        ends: json!({ "status": "paid", "amount_received": 1000, "fee": 36, "net": 964 }),
        told: vec!["payment.fee_known/1000"],
        ..History::default()
    });
    check(&History {
        events: vec![capture(600, "txn_b"), capture(1000, "txn_a"), entry("txn_b", 600, 22)],
        ends: json!({ "fee": null, "net": null }),
        ..History::default()
    });
}

#[test]
fn d2_a_failed_try_hides_nothing_and_each_is_counted_once() {
    let first = [event(10, failed_charge("ch_a")), event(10, declined("ch_a"))];
    let second = [event(20, failed_charge("ch_b")), event(20, declined("ch_b"))];
    let failing = |events: Vec<Value>, tries: usize, told: Vec<&'static str>| History {
        events,
        ends: json!({ "status": "failed", "failed_tries": tries }),
        told,
        ..History::default()
    };
    check(&failing(first.to_vec(), 1, vec!["payment.failed/1"]));
    check(&failing([first.clone(), second].concat(), 2, vec!["payment.failed/2"]));
    let printed = event(30, voucher());
    let under_way = [&first[..], std::slice::from_ref(&printed)].concat();
    check(&History {
        events: under_way.clone(),
        ends: json!({ "status": "processing", "failed_tries": 1 }),
        told: vec!["payment.processing"],
        ..History::default()
    });
    check(&failing([&under_way[..], &[event(40, ran_out())]].concat(), 2, vec!["payment.failed/2"]));
    let debits = with(intent("processing", 0), json!({ "latest_charge": "ch_b" }));
    let debits = event(20, ("payment_intent.processing", debits));
    check(&History {
        events: [&first[..], std::slice::from_ref(&debits)].concat(),
        ends: json!({ "status": "processing", "failed_tries": 1 }),
        ..History::default()
    });
    let refused = event(25, failed_charge("ch_b"));
    check(&failing([&first[..], &[debits, refused]].concat(), 2, vec!["payment.failed/2"]));
    let completed = event(30, ("checkout.session.completed", session("complete", "unpaid")));
    check(&History {
        events: [&first[..], std::slice::from_ref(&completed)].concat(),
        ends: json!({ "status": "processing", "failed_tries": 1 }),
        ..History::default()
    });
    let gone = event(40, ("checkout.session.async_payment_failed", session("complete", "unpaid")));
    check(&failing(vec![printed, completed, event(40, ran_out()), gone], 1, vec!["payment.failed/1"]));
    let expired = event(50, ("checkout.session.expired", session("expired", "unpaid")));
    check(&History {
        events: [&first[..], &[expired]].concat(),
        ends: json!({ "status": "expired", "failed_tries": 1 }),
        told: vec!["payment.expired"],
        ..History::default()
    });
}

#[test]
fn d2_without_moments_a_declined_charge_ends_what_was_under_way() {
    let check = |charge: Value, expected: PaymentStatus| {
        let intents = json!({ "O-1": { "status": "processing", "amount": 5, "currency": "usd" } });
        let mut charges = json!({ "C-1": { "status": "failed", "intent": "O-1" } });
        charges["C-2"] = charge;
        let facts: Facts = serde_json::from_value(json!({ "intents": intents, "charges": charges })).unwrap();
        assert_eq!(Derived::of(&facts).status, expected, "{facts:?}");
    };
    check(json!({ "status": "failed", "intent": "O-1" }), PaymentStatus::Failed);
    check(json!({ "status": "pending", "intent": "O-1" }), PaymentStatus::Processing);
}

#[test]
fn d2_a_question_at_the_till_is_not_on_its_way() {
    for kind in ["use_stripe_sdk", "redirect_to_url", "brand_new"] {
        let asked = with(intent("requires_action", 0), json!({ "next_action": { "type": kind } }));
        check(&History {
            events: vec![event(1, ("payment_intent.requires_action", asked))],
            ends: json!({ "status": "unpaid" }),
            never: vec!["payment.processing"],
            ..History::default()
        });
    }
}

#[test]
fn d2_what_is_asked_for_last_is_the_amount() {
    let asks = |at, amount: i64| {
        let object = with(intent("requires_payment_method", 0), json!({ "amount": amount }));
        event(at, ("payment_intent.created", object))
    };
    check(&History {
        events: vec![asks(1, 1500), asks(2, 1200)],
        ends: json!({ "amount": 1200 }),
        ..History::default()
    });
}

#[test]
fn d2_an_order_of_nothing_is_paid() {
    let free = with(
        session("complete", "no_payment_required"),
        json!({ "amount_total": 0, "payment_intent": null }),
    );
    let free = event(1, ("checkout.session.completed", free));
    check(&History {
        events: vec![free.clone()],
        ends: json!({ "status": "paid", "amount": 0, "amount_received": 0 }),
        told: vec!["payment.paid"],
        ..History::default()
    });
    check(&History {
        asked: Some(1200),
        events: vec![free],
        ends: json!({ "status": "unpaid", "amount_missing": 1200, "attention": "underpaid" }),
        told: vec!["payment.underpaid/0"],
        never: vec!["payment.paid"],
    });
}
