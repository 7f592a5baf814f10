//! KOMOJU: konbini vouchers, whose customers pay a fee of KOMOJU's own.

use serde_json::{Value, json};

use super::{Order, Shop, with};
use crate::support::{Provider, each_store};

const SECRET: &str = "komoju-webhook-secret-0123456789";

fn event(n: &str, which: &str, kind: &str, data: &Value) -> Value {
    json!({
        "id": format!("evt_{which}_{n}"), "type": kind, "resource": "event", "data": data, "reason": null,
        "created_at": sekisho::now().to_string(),
    })
}

/// A voucher over 1,100 with tax; the customer pays 190 more for it.
fn payment(n: &str, status: &str, more: &Value) -> Value {
    let payment = json!({
        "id": format!("kp_{n}"), "resource": "payment", "status": status, "amount": 1000, "tax": 100,
        "payment_method_fee": 190, "total": 1290, "currency": "JPY", "external_order_num": n, "metadata": {},
        "payment_details": { "type": "konbini", "store": "lawson", "email": "hanako@example.com" },
        "amount_refunded": 0, "refunds": [], "refund_requests": [],
    });
    with(payment, more)
}

fn authorized(n: &str) -> Value {
    event(n, "a", "payment.authorized", &payment(n, "authorized", &json!({})))
}

fn captured(n: &str) -> Value {
    event(n, "c", "payment.captured", &payment(n, "captured", &json!({})))
}

fn refund(n: &str, which: &str, amount: i64) -> Value {
    json!({
        "id": format!("kr_{which}_{n}"), "resource": "refund", "amount": amount, "currency": "JPY",
        "payment": format!("kp_{n}"), "chargeback": which == "chargeback",
    })
}

fn request(n: &str, status: &str) -> Value {
    let request = json!({
        "id": format!("kq_{n}"), "payment": format!("kp_{n}"), "status": status, "customer_name": "ｻｲﾄｳ ﾊﾅｺ",
        "bank_name": "サンプル銀行", "branch_number": "100", "account_number": "1234567",
    });
    event(n, status, "refund_request.updated", &request)
}

const PAID: Order =
    Order { asked: 1100, received: 1100, events: |n| vec![authorized(n), captured(n)], ..super::PAID };

const ORDERS: [Order; 7] = [
    PAID,
    Order {
        name: "failed-then-paid",
        events: |n| {
            let failed = event(n, "f", "payment.failed", &payment(n, "pending", &json!({})));
            vec![failed, authorized(n), captured(n)]
        },
        ..PAID
    },
    Order {
        name: "expired",
        events: |n| vec![authorized(n), event(n, "e", "payment.expired", &payment(n, "expired", &json!({})))],
        status: "expired",
        received: 0,
        told: &["payment.expired"],
        ..PAID
    },
    Order {
        name: "cancelled",
        events: |n| {
            vec![authorized(n), event(n, "x", "payment.cancelled", &payment(n, "cancelled", &json!({})))]
        },
        status: "cancelled",
        received: 0,
        told: &["payment.cancelled"],
        ..PAID
    },
    Order {
        name: "refunded",
        events: |n| {
            let first = json!({ "amount_refunded": 500, "refunds": [refund(n, "1", 500)] });
            let both =
                json!({ "amount_refunded": 1290, "refunds": [refund(n, "1", 500), refund(n, "2", 790)] });
            vec![
                captured(n),
                event(n, "r1", "payment.refund.created", &payment(n, "captured", &first)),
                event(n, "r2", "payment.refunded", &payment(n, "refunded", &both)),
            ]
        },
        status: "refunded",
        refunded: 1100,
        told: &["payment.paid", "payment.refunded"],
        perhaps: &["payment.partially_refunded"],
        ..PAID
    },
    Order {
        name: "refund-requested",
        events: |n| {
            let first = json!({ "amount_refunded": 500, "refunds": [refund(n, "1", 500)] });
            let created = event(n, "r1", "payment.refund.created", &payment(n, "captured", &first));
            vec![captured(n), request(n, "pending"), request(n, "completed"), created]
        },
        status: "partially_refunded",
        refunded: 500,
        told: &["payment.paid", "payment.partially_refunded"],
        ..PAID
    },
    Order {
        name: "charged-back",
        events: |n| {
            let back = json!({ "amount_refunded": 1290, "refunds": [refund(n, "chargeback", 1290)] });
            vec![captured(n), event(n, "b", "payment.refunded", &payment(n, "refunded", &back))]
        },
        status: "refunded",
        refunded: 1100,
        told: &["payment.paid", "payment.refunded"],
        ..PAID
    },
];

#[test]
fn d2_orders_paid_at_the_konbini_by_komoju_settle_whichever_way_they_are_told() {
    each_store(|place| {
        let source =
            format!("[[source]]\nname = \"komoju\"\nprovider = \"komoju\"\nsecrets = [\"{SECRET}\"]\n");
        let komoju = Provider::new("komoju", SECRET);
        let shop = Shop::open(place, &source, move |body| komoju.body(body));
        shop.sell(&ORDERS);
        let paid = shop.payment("paid-forth");
        assert_eq!((&paid["amount_surcharge"], &paid["attention"]), (&json!(190), &Value::Null));
        let asked = shop.payment("kq_refund-requested-forth");
        assert_eq!(asked["reference"], "refund-requested-forth", "found by the request for its refund");
    });
}
