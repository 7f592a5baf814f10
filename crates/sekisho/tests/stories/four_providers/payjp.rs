//! PAY.JP: cards that are authorised and captured, of which only the sum of refunds is known.

use serde_json::{Value, json};

use super::{Order, Shop, with};
use crate::support::{Provider, each_store};

const TOKEN: &str = "whook_0123456789abcdef0123456789";
const WEEK_S: i64 = 604_800;

fn now() -> i64 {
    sekisho::now().seconds()
}

/// A charge of 500, which one of several events shows.
fn charge(n: &str, which: &str, kind: &str, more: &Value) -> Value {
    let charge = json!({
        "id": format!("ch_{n}"), "object": "charge", "amount": 500, "amount_refunded": 0, "captured": true,
        "paid": true, "refunded": false, "currency": "jpy", "customer": null, "expired_at": null,
        "failure_code": null, "livemode": true, "metadata": { "order_id": n }, "three_d_secure_status": null,
    });
    json!({
        "id": format!("evnt_{which}_{n}"), "object": "event", "type": kind, "livemode": true, "created": now(),
        "pending_webhooks": 1, "data": with(charge, more),
    })
}

fn authorized(n: &str) -> Value {
    charge(n, "a", "charge.succeeded", &json!({ "captured": false, "expired_at": now() + WEEK_S }))
}

const PAID: Order = Order {
    asked: 500,
    received: 500,
    events: |n| vec![charge(n, "s", "charge.succeeded", &json!({}))],
    ..super::PAID
};

const ORDERS: [Order; 7] = [
    PAID,
    Order {
        name: "failed-then-paid",
        events: |n| {
            let declined = json!({
                "id": format!("ch_declined_{n}"), "captured": false, "paid": false, "failure_code": "card_declined",
            });
            vec![
                charge(n, "f", "charge.failed", &declined),
                charge(
                    n,
                    "u",
                    "charge.updated",
                    &json!({ "paid": false, "three_d_secure_status": "unverified" }),
                ),
                charge(n, "s", "charge.succeeded", &json!({ "three_d_secure_status": "verified" })),
            ]
        },
        ..PAID
    },
    Order {
        name: "captured-in-part",
        asked: 400,
        events: |n| {
            vec![authorized(n), charge(n, "c", "charge.captured", &json!({ "amount_refunded": 100 }))]
        },
        received: 400,
        ..PAID
    },
    Order {
        name: "captured-in-part-and-refunded",
        asked: 400,
        events: |n| {
            vec![
                authorized(n),
                charge(n, "c", "charge.captured", &json!({ "amount_refunded": 100 })),
                charge(n, "r1", "charge.refunded", &json!({ "amount_refunded": 300, "refunded": true })),
                charge(n, "r2", "charge.refunded", &json!({ "amount_refunded": 500, "refunded": true })),
            ]
        },
        status: "refunded",
        received: 400,
        refunded: 400,
        told: &["payment.paid", "payment.refunded"],
        // Before the capture is known, nothing of it counts: it never seems overpaid.
        perhaps: &["payment.processing", "payment.partially_refunded"],
    },
    Order {
        name: "refunded-in-part",
        events: |n| {
            vec![
                charge(n, "s", "charge.succeeded", &json!({})),
                charge(n, "r1", "charge.refunded", &json!({ "amount_refunded": 200, "refunded": true })),
            ]
        },
        status: "partially_refunded",
        refunded: 200,
        told: &["payment.paid", "payment.partially_refunded"],
        ..PAID
    },
    Order {
        name: "released",
        events: |n| {
            let more = json!({
                "captured": false, "amount_refunded": 500, "refunded": true, "expired_at": now() + WEEK_S,
            });
            vec![authorized(n), charge(n, "x", "charge.refunded", &more)]
        },
        status: "cancelled",
        received: 0,
        told: &["payment.cancelled"],
        ..PAID
    },
    Order {
        name: "ran-out",
        events: |n| {
            let more = json!({ "captured": false, "amount_refunded": 500, "refunded": true, "expired_at": now() - 1 });
            vec![authorized(n), charge(n, "x", "charge.refunded", &more)]
        },
        status: "expired",
        received: 0,
        told: &["payment.expired"],
        ..PAID
    },
];

#[test]
fn d2_orders_paid_by_card_at_payjp_settle_whichever_way_they_are_told() {
    each_store(|place| {
        let source = format!("[[source]]\nname = \"payjp\"\nprovider = \"payjp\"\nsecrets = [\"{TOKEN}\"]\n");
        let payjp = Provider::new("payjp", TOKEN);
        let shop = Shop::open(place, &source, move |body| payjp.body(body));
        shop.sell(&ORDERS);
        assert_eq!(shop.payment("captured-in-part-back")["attention"], Value::Null);
    });
}
