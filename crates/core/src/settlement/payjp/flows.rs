//! Orders paid by PAY.JP, from the first event to the last, in every order of events.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::event::Stored;
use crate::settlement::world::{Ending, WorldStep, every_way};

const NOW: i64 = 1_772_326_800;
const POSTED: WorldStep = WorldStep::Posted("order-7", 500);

/// A charge of 500, as PAY.JP shows one that was captured at once.
fn charge(kind: &str, more: &Value) -> WorldStep {
    let mut data = json!({
        "id": "ch_1", "object": "charge", "amount": 500, "amount_refunded": 0, "captured": true, "captured_at": NOW,
        "card": { "id": "car_1", "object": "card", "brand": "Visa", "three_d_secure_status": null },
        "created": NOW, "currency": "jpy", "customer": null, "description": null, "expired_at": null,
        "failure_code": null, "failure_message": null, "fee_rate": "3.00", "livemode": true,
        "metadata": { "order_id": "order-7" }, "paid": true, "refund_reason": null, "refunded": false,
        "subscription": null, "three_d_secure_status": null,
    });
    for (field, value) in more.as_object().unwrap() {
        data[field] = value.clone();
    }
    let body = json!({
        "id": "evnt_1", "object": "event", "type": kind, "livemode": true, "created": NOW, "pending_webhooks": 1,
        "data": data,
    });
    let body = Bytes::from(body.to_string());
    WorldStep::Event(Stored {
        event_type: kind.into(),
        account: None,
        livemode: Some(true),
        body,
        ..Stored::nothing()
    })
}

fn authorized() -> WorldStep {
    charge(
        "charge.succeeded",
        &json!({ "captured": false, "captured_at": null, "expired_at": NOW + 604_800 }),
    )
}

const PAID: Ending = Ending {
    status: "paid",
    amount: 500,
    received: 500,
    refunded: 0,
    attention: None,
    told: &["payment.paid"],
    perhaps: &["payment.processing", "payment.failed/1"],
};

#[test]
fn d2_capturing_less_than_was_authorised_is_no_refund() {
    let captured = charge("charge.captured", &json!({ "amount_refunded": 100 }));
    let ending = Ending { received: 400, ..PAID };
    every_way("payjp", &[authorized(), captured.clone()], &ending);
    // What is only described anew afterwards still counts the released part among the refunds.
    let described = charge("charge.updated", &json!({ "amount_refunded": 100, "description": "a book" }));
    let told_early = Ending { perhaps: &["payment.processing", "payment.partially_refunded/100"], ..ending };
    every_way("payjp", &[authorized(), captured, described], &told_early);
}

#[test]
fn d2_refunds_after_such_a_capture_add_to_what_was_released() {
    let captured = charge("charge.captured", &json!({ "amount_refunded": 100 }));
    let partly = charge("charge.refunded", &json!({ "amount_refunded": 300, "refunded": true }));
    let whole = charge("charge.refunded", &json!({ "amount_refunded": 500, "refunded": true }));
    let ending = Ending {
        status: "partially_refunded",
        received: 400,
        refunded: 200,
        told: &["payment.paid", "payment.partially_refunded/200"],
        perhaps: &["payment.processing", "payment.partially_refunded/300"],
        ..PAID
    };
    every_way("payjp", &[authorized(), captured.clone(), partly.clone()], &ending);
    let ending = Ending {
        status: "refunded",
        received: 400,
        refunded: 400,
        told: &["payment.paid", "payment.refunded/400"],
        perhaps: &[
            "payment.processing",
            "payment.partially_refunded/200",
            "payment.partially_refunded/300",
            "payment.refunded/500",
        ],
        ..PAID
    };
    every_way("payjp", &[authorized(), captured, partly, whole], &ending);
}

#[test]
fn d2_a_charge_that_is_captured_at_once_is_paid_and_refunded_by_its_sum() {
    let paid = || charge("charge.succeeded", &json!({}));
    every_way("payjp", &[POSTED, paid()], &PAID);
    let partly = charge("charge.refunded", &json!({ "amount_refunded": 200, "refunded": true }));
    let whole = charge("charge.refunded", &json!({ "amount_refunded": 500, "refunded": true }));
    let ending = Ending {
        status: "refunded",
        refunded: 500,
        told: &["payment.paid", "payment.refunded/500"],
        perhaps: &["payment.partially_refunded/200"],
        ..PAID
    };
    every_way("payjp", &[POSTED, paid(), partly, whole], &ending);
}

#[test]
fn d2_a_card_that_is_declined_or_not_verified_fails_and_another_can_pay() {
    let declined = json!({
        "id": "ch_0", "captured": false, "paid": false, "failure_code": "card_declined", "captured_at": null,
    });
    let declined = charge("charge.failed", &declined);
    let unpaid = Ending { status: "failed", received: 0, told: &["payment.failed/1"], ..PAID };
    every_way("payjp", &[POSTED, declined.clone()], &unpaid);
    every_way("payjp", &[POSTED, declined, charge("charge.succeeded", &json!({}))], &PAID);
    let begun = charge("charge.updated", &json!({ "paid": false, "three_d_secure_status": "unverified" }));
    let verified = charge("charge.succeeded", &json!({ "three_d_secure_status": "verified" }));
    every_way("payjp", &[POSTED, begun.clone(), verified], &PAID);
    let waits = Ending { status: "unpaid", received: 0, told: &[], perhaps: &[], ..PAID };
    every_way("payjp", &[POSTED, begun.clone()], &waits);
    let refused = charge("charge.updated", &json!({ "paid": false, "three_d_secure_status": "failed" }));
    every_way("payjp", &[POSTED, begun, refused], &unpaid);
}

#[test]
fn d2_an_authorisation_is_cancelled_when_it_is_released_and_expired_when_it_ran_out() {
    let more = |end: i64| {
        json!({
            "captured": false, "captured_at": null, "amount_refunded": 500, "refunded": true, "expired_at": end,
        })
    };
    let released = charge("charge.refunded", &more(NOW + 604_800));
    let ending = Ending { status: "cancelled", received: 0, told: &["payment.cancelled"], ..PAID };
    every_way("payjp", &[POSTED, authorized(), released], &ending);
    let ran_out = charge("charge.refunded", &more(NOW));
    let ending = Ending { status: "expired", received: 0, told: &["payment.expired"], ..PAID };
    every_way("payjp", &[POSTED, authorized(), ran_out], &ending);
}
