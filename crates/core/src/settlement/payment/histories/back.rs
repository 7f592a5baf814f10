//! Money that goes back, or is taken back: refunds, releases, disputes.

use serde_json::{Value, json};

use super::super::samples::*;
use super::super::*;
use super::{History, captured, check, event, older, part};

fn konbini(fields: Value) -> Value {
    with(charge(json!({ "payment_method_details": { "type": "konbini" } })), fields)
}

#[test]
fn d2_what_is_let_go_of_a_reservation_is_no_refund() {
    let part = json!({ "amount_captured": 800, "amount_refunded": 400, "balance_transaction": "txn_c" });
    let (_, release) = refund("re_r", "succeeded", 400);
    let release = with(release, json!({ "balance_transaction": "txn_r" }));
    let entry = |fields: Value| event(9, transaction(fields));
    let mut history = History {
        events: vec![
            older(1, captured("ch_1", "pi_1", part)),
            older(1, ("refund.created", release)),
            entry(json!({ "id": "txn_c" })),
            entry(json!({ "id": "txn_r", "amount": -400, "fee": -14, "net": -386, "source": "re_r" })),
        ],
        ends: json!({ "status": "paid", "amount_received": 800, "amount_refunded": 0, "fee": 29, "net": 771 }),
        told: vec!["payment.paid", "payment.fee_known/800"],
        never: vec!["payment.partially_refunded", "payment.refunded", "payment.refund_pending"],
        ..History::default()
    };
    check(&history);
    let more = json!({ "amount_captured": 800, "amount_refunded": 500 });
    history.events.truncate(2);
    history.events.push(older(5, ("charge.refunded", charge(more))));
    history.events.push(older(5, refund("re_t", "succeeded", 100)));
    history.ends = json!({ "status": "partially_refunded", "amount_refunded": 100 });
    history.told = vec!["payment.paid", "payment.partially_refunded/100"];
    history.never = vec!["payment.refunded", "payment.overpaid"];
    check(&history);
    // Since then the same numbers mean what they say.
    let said = json!({ "amount_captured": 800, "amount_refunded": 100 });
    check(&History {
        events: vec![
            event(1, captured("ch_1", "pi_1", json!({ "amount_captured": 800 }))),
            event(2, ("charge.refunded", charge(said))),
        ],
        ends: json!({ "status": "partially_refunded", "amount_received": 800, "amount_refunded": 100 }),
        ..History::default()
    });
}

#[test]
fn d2_a_reservation_that_was_let_go_gives_nothing_back() {
    let reserved = charge(json!({ "captured": false, "amount_captured": 0 }));
    let released = with(reserved.clone(), json!({ "refunded": true, "amount_refunded": 1200 }));
    let mut history = History {
        events: vec![
            older(1, ("charge.succeeded", reserved.clone())),
            older(2, ("charge.refunded", released)),
            older(2, refund("re_1", "succeeded", 1200)),
            older(2, ("payment_intent.canceled", intent("canceled", 0))),
        ],
        ends: json!({ "status": "cancelled", "amount_refunded": 0, "amount_refund_pending": 0 }),
        told: vec!["payment.cancelled"],
        never: vec!["payment.refunded", "payment.paid"],
        ..History::default()
    };
    check(&history);
    history.events.truncate(3);
    check(&history);
    let expired = ("charge.expired", reserved.clone());
    let both = vec![event(1, ("charge.succeeded", reserved.clone())), event(2, expired)];
    check(&History { events: both, ends: json!({ "status": "cancelled" }), ..History::default() });
    let alone = vec![event(1, ("charge.succeeded", reserved))];
    let told = vec!["payment.processing"];
    check(&History { events: alone, ends: json!({ "status": "processing" }), told, ..History::default() });
}

#[test]
fn d2_a_lost_dispute_can_still_be_won_and_its_fee_come_back() {
    let taken = json!([{ "id": "txn_2", "amount": -1200, "fee": 1500, "currency": "jpy" }]);
    let back = json!([
        { "id": "txn_2", "amount": -1200, "fee": 1500, "currency": "jpy" },
        { "id": "txn_3", "amount": 1200, "fee": -1500, "currency": "jpy" },
    ]);
    let lost = vec![event(1, paid()), event(2, dispute("lost", taken))];
    check(&History {
        events: lost.clone(),
        ends: json!({ "dispute_status": "lost", "dispute_fee": 1500, "net_of_dispute": 0 }),
        told: vec!["payment.dispute_lost/du_1"],
        ..History::default()
    });
    check(&History {
        events: [lost, vec![event(3, dispute("won", back))]].concat(),
        ends: json!({ "dispute_status": "won", "dispute_fee": 0, "net_of_dispute": 1200 }),
        told: vec!["payment.dispute_won/du_1"],
        ..History::default()
    });
}

#[test]
fn d2_a_refund_that_waits_is_on_its_way_and_its_end_is_told() {
    let came = event(1, ("charge.succeeded", konbini(json!({}))));
    let said = event(2, ("charge.refunded", konbini(json!({ "amount_refunded": 1200, "refunded": true }))));
    let told = |status: &str| event(3, refund("re_1", status, 1200));
    let done = vec!["payment.refunded", "payment.partially_refunded"];
    check(&History {
        events: vec![came.clone(), said.clone()],
        ends: json!({ "status": "paid", "amount_refunded": 0, "amount_refund_pending": 1200 }),
        told: vec!["payment.refund_pending/1200"],
        never: done.clone(),
        ..History::default()
    });
    check(&History {
        events: vec![came.clone(), said.clone(), told("requires_action")],
        ends: json!({ "status": "paid", "amount_refunded": 0, "amount_refund_pending": 1200 }),
        told: vec!["payment.refund_pending/1200/requires_action"],
        never: done.clone(),
        ..History::default()
    });
    check(&History {
        asked: Some(1200),
        events: vec![came.clone(), said.clone(), told("requires_action"), told("canceled")],
        ends: json!({ "status": "paid", "amount_refund_pending": 0, "attention": "refund_cancelled" }),
        told: vec!["payment.refund_cancelled/re_1"],
        never: done,
    });
    check(&History {
        events: vec![came, said, told("pending"), told("succeeded")],
        ends: json!({ "status": "refunded", "amount_refunded": 1200, "amount_refund_pending": 0 }),
        told: vec!["payment.refunded/1200"],
        ..History::default()
    });
    let card = json!({ "amount_refunded": 1200, "payment_method_details": { "type": "card" } });
    check(&History {
        events: vec![event(1, paid()), event(2, ("charge.refunded", charge(card)))],
        ends: json!({ "status": "refunded", "amount_refunded": 1200 }),
        told: vec!["payment.refunded/1200"],
        never: vec!["payment.refund_pending"],
        ..History::default()
    });
}

#[test]
fn d2_a_surplus_that_was_given_back_needs_nobody() {
    check(&History {
        asked: Some(1000),
        events: vec![event(1, paid())],
        ends: json!({ "status": "paid", "attention": "overpaid" }),
        told: vec!["payment.paid", "payment.overpaid/1200"],
        ..History::default()
    });
    check(&History {
        asked: Some(1000),
        events: vec![event(1, paid()), event(2, refund("re_1", "succeeded", 200))],
        ends: json!({ "status": "partially_refunded", "attention": null }),
        told: vec!["payment.paid", "payment.partially_refunded/200"],
        ..History::default()
    });
}

#[test]
fn d7_more_money_fills_a_balance_and_a_lost_dispute_takes_it_back() {
    let label = json!({ "metadata": { "purpose": "top_up", "customer_id": "c_1" } });
    let came = |id: &str, intent: &str| event(1, captured(id, intent, label.clone()));
    let both = vec![came("ch_1", "pi_1"), came("ch_2", "pi_2")];
    check(&History {
        events: both.clone(),
        told: vec!["balance.credited/2400"],
        ends: json!({}),
        ..History::default()
    });
    let taken = json!([{ "id": "txn_2", "amount": -1200, "fee": 0, "currency": "jpy" }]);
    let lost = [both, vec![event(2, dispute("lost", taken))]].concat();
    let balance = |events: &[Value]| {
        let mut facts = Facts::default();
        events.iter().for_each(|event| facts.join(&part(event)));
        let entries = lines(&facts, &Derived::of(&facts));
        let own = entries.iter().filter(|(line, _)| line.account == customer_account(None, "c_1"));
        balance_of(&customer_account(None, "c_1"), own.map(|(_, amount)| *amount).sum())
    };
    assert_eq!(balance(&lost), 1200);
    check(&History {
        events: lost.clone(),
        told: vec!["balance.credited/2400", "balance.debited/1200"],
        ends: json!({}),
        ..History::default()
    });
    let won = [lost, vec![event(3, dispute("won", json!([])))]].concat();
    assert_eq!(balance(&won), 2400);
    let mut known = Facts::default();
    let told: Vec<_> = won
        .iter()
        .flat_map(|event| {
            known.join(&part(event));
            ask(&mut known).into_iter().filter(|key| key.starts_with("balance.")).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(
        told,
        ["balance.credited/1200", "balance.credited/2400", "balance.debited/1200", "balance.credited/0-1200"]
    );
    check(&History {
        events: won,
        ends: json!({}),
        told: vec!["balance.credited/2400"],
        ..History::default()
    });
}
