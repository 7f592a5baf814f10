//! Orders paid by Square, from the first event to the last, in every order of events.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::event::Stored;
use crate::settlement::payment::{Attention, Derived};
use crate::settlement::world::{Ending, World, WorldStep, every_way};

const MERCHANT: &str = "6SSW7HV8K2ST5";
const POSTED: WorldStep = WorldStep::Posted("order-7", 1000);

fn yen(amount: i64) -> Value {
    json!({ "amount": amount, "currency": "JPY" })
}

fn event(kind: &str, name: &str, object: &Value) -> WorldStep {
    let body = json!({
        "merchant_id": MERCHANT, "type": kind, "event_id": "evt-1", "created_at": "2026-03-01T01:00:00.000Z",
        "data": { "type": name, "id": object["id"], "object": { name: object } },
    });
    let body = Bytes::from(body.to_string());
    let account = Some(MERCHANT.to_owned());
    WorldStep::Event(Stored { event_type: kind.into(), account, livemode: None, body, ..Stored::nothing() })
}

/// A payment of one Square order, with a tip.
fn payment(id: &str, status: &str, (amount, tip): (i64, i64), more: &Value) -> WorldStep {
    let mut object = json!({
        "id": id, "status": status, "amount_money": yen(amount), "tip_money": yen(tip),
        "total_money": yen(amount + tip), "approved_money": yen(amount + tip), "source_type": "CARD",
        "location_id": "S8GWD5R9QB376", "order_id": "03O3USaPaAaFnI6kkwB1JxGgBsUZY", "reference_id": "order-7",
        "buyer_email_address": "hanako@example.com", "version": 1,
    });
    for (field, value) in more.as_object().unwrap() {
        object[field] = value.clone();
    }
    event("payment.updated", "payment", &object)
}

fn refund(id: &str, status: &str, amount: i64) -> WorldStep {
    let object = json!({
        "id": id, "status": status, "amount_money": yen(amount), "payment_id": "sq_1", "reason": "damaged",
        "order_id": "9ltv0bx5PuvGXUYHYHxYSKEqC3IZY", "location_id": "S8GWD5R9QB376",
    });
    event("refund.updated", "refund", &object)
}

fn dispute(state: &str) -> WorldStep {
    let object = json!({
        "id": "dp_1", "dispute_id": "dp_1", "state": state, "amount_money": yen(1100), "reason": "NOT_AS_DESCRIBED",
        "disputed_payment": { "payment_id": "sq_1" }, "version": 1,
    });
    event("dispute.state.updated", "dispute", &object)
}

fn approved() -> WorldStep {
    payment("sq_1", "APPROVED", (1000, 100), &json!({}))
}

fn completed() -> WorldStep {
    payment("sq_1", "COMPLETED", (1000, 100), &json!({}))
}

/// As Square sends it hours later.
fn booked() -> WorldStep {
    let fees =
        json!([{ "type": "INITIAL", "effective_at": "2026-03-01T03:00:00.000Z", "amount_money": yen(36) }]);
    payment("sq_1", "COMPLETED", (1000, 100), &json!({ "processing_fee": fees }))
}

const PAID: Ending = Ending {
    status: "paid",
    amount: 1000,
    received: 1000,
    refunded: 0,
    attention: None,
    told: &["payment.paid"],
    perhaps: &["payment.processing", "payment.failed/1"],
};

#[test]
fn d2_a_tip_is_no_overpayment() {
    every_way("square", &[POSTED, approved(), completed()], &PAID);
    let ending = Ending { told: &["payment.paid", "payment.fee_known/1000"], ..PAID };
    every_way("square", &[POSTED, approved(), completed(), booked()], &ending);
}

#[test]
fn d7_a_tip_is_booked_beside_the_sale_and_stays_in_the_net() {
    let mut world = World::of("square");
    world.steps(vec![booked()]);
    let facts = &world.facts().next().unwrap();
    let derived = Derived::of(facts);
    assert_eq!((derived.received, derived.tips, derived.fee, derived.net), (1000, 100, Some(36), Some(1064)));
    assert_eq!(world.booked("sales"), -1000);
    assert_eq!(world.booked("tips"), -100);
    assert_eq!(world.booked("provider/square/6SSW7HV8K2ST5/any"), 1064, "as Square itself has it");
    world.steps(vec![refund("re_1", "COMPLETED", 1100)]);
    assert_eq!((world.booked("sales"), world.booked("tips")), (0, 0));
    assert_eq!(Derived::of(&world.facts().next().unwrap()).refunded, 1000);
}

#[test]
fn d2_two_tenders_of_one_square_order_are_its_parts() {
    let part = |id: &str, status: &str, amount: i64| payment(id, status, (amount, 0), &json!({}));
    let (card, cash) = (part("sq_1", "COMPLETED", 3000), part("sq_2", "COMPLETED", 2000));
    let ending = Ending { amount: 5000, received: 5000, ..PAID };
    every_way("square", &[card.clone(), cash.clone()], &ending);
    let approved = [part("sq_1", "APPROVED", 3000), part("sq_2", "APPROVED", 2000)];
    every_way("square", &[&approved[..], &[card.clone(), cash.clone()]].concat(), &ending);
    let (declined, let_go) = (part("sq_3", "FAILED", 3000), part("sq_4", "CANCELED", 500));
    let news = Ending { perhaps: &["payment.failed/1", "payment.cancelled"], ..ending };
    every_way("square", &[declined, let_go, card.clone(), cash.clone()], &news);
    for (asked, attention) in [(5000, None), (4000, Some("overpaid")), (6000, Some("underpaid"))] {
        let mut world = World::of("square");
        world.steps(vec![card.clone(), WorldStep::Posted("order-7", asked), cash.clone()]);
        let derived = Derived::of(&world.facts().next().unwrap());
        assert_eq!((derived.amount, derived.received), (asked, 5000), "what the app asked for decides");
        assert_eq!(derived.attention.map(Attention::name), attention);
    }
}

#[test]
fn d2_two_square_orders_for_one_reference_were_paid_twice() {
    let other = payment("sq_2", "COMPLETED", (1000, 0), &json!({ "order_id": "another" }));
    let ending = Ending {
        received: 2000,
        attention: Some("overpaid"),
        told: &["payment.paid", "payment.overpaid/2000"],
        ..PAID
    };
    every_way("square", &[completed(), other.clone()], &ending);
    every_way("square", &[completed(), other, POSTED], &ending);
}

#[test]
fn d2_a_payment_that_failed_or_was_let_go_can_be_followed_by_one_that_pays() {
    let errors = json!({ "errors": [{ "category": "PAYMENT_METHOD_ERROR", "code": "GENERIC_DECLINE" }] });
    let failed = payment("sq_0", "FAILED", (1000, 0), &json!({ "card_details": errors }));
    let pending = payment("sq_0", "PENDING", (1000, 0), &json!({}));
    let unpaid = Ending { status: "failed", received: 0, told: &["payment.failed/1"], ..PAID };
    every_way("square", &[POSTED, pending.clone(), failed.clone()], &unpaid);
    every_way("square", &[POSTED, pending, failed, completed()], &PAID);
    let let_go = payment("sq_1", "CANCELED", (1000, 0), &json!({}));
    let ending = Ending { status: "cancelled", received: 0, told: &["payment.cancelled"], ..PAID };
    every_way("square", &[POSTED, approved(), let_go], &ending);
}

#[test]
fn d2_refunds_in_part_and_whole_end_the_same_whichever_comes_first() {
    let first = [refund("re_1", "PENDING", 400), refund("re_1", "COMPLETED", 400)];
    let ending = Ending {
        status: "partially_refunded",
        refunded: 400,
        told: &["payment.paid", "payment.partially_refunded/400"],
        perhaps: &["payment.refund_pending/400"],
        ..PAID
    };
    every_way("square", &[&first[..], &[POSTED, completed()]].concat(), &ending);
    let counted = payment("sq_1", "COMPLETED", (1000, 100), &json!({ "refunded_money": yen(400) }));
    let ending = Ending {
        status: "refunded",
        refunded: 1000,
        told: &["payment.paid", "payment.refunded/1000"],
        perhaps: &[
            "payment.partially_refunded/400",
            "payment.partially_refunded/700",
            "payment.refund_pending/400",
            "payment.refund_pending/1000",
        ],
        ..PAID
    };
    every_way(
        "square",
        &[&first[..], &[POSTED, completed(), counted, refund("re_2", "COMPLETED", 700)]].concat(),
        &ending,
    );
}

#[test]
fn d2_a_refund_that_is_rejected_needs_a_person() {
    let ending = Ending {
        attention: Some("refund_failed"),
        told: &["payment.paid", "payment.refund_failed/re_1"],
        perhaps: &["payment.refund_pending/400"],
        ..PAID
    };
    let steps = [POSTED, completed(), refund("re_1", "PENDING", 400), refund("re_1", "REJECTED", 400)];
    every_way("square", &steps, &ending);
}

#[test]
fn d2_a_dispute_is_told_and_its_end() {
    let opened = dispute("EVIDENCE_REQUIRED");
    let lost = Ending {
        told: &["payment.paid", "payment.dispute_lost/dp_1"],
        perhaps: &["payment.disputed/dp_1"],
        ..PAID
    };
    every_way("square", &[POSTED, completed(), opened.clone(), dispute("LOST")], &lost);
    let won = Ending { told: &["payment.paid", "payment.dispute_won/dp_1"], ..lost };
    every_way("square", &[POSTED, completed(), opened, dispute("WON")], &won);
}
