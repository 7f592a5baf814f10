//! Square: tips, several tenders of one order, and a merchant whom nobody has to name.

use serde_json::{Value, json};

use super::{Order, Shop, with};
use crate::support::{Provider, each_store};

const SECRET: &str = "square-signature-key-0123456789";
const URL: &str = "https://shop.example.test/webhooks/square";

fn yen(amount: i64) -> Value {
    json!({ "amount": amount, "currency": "JPY" })
}

fn event(which: &str, kind: &str, name: &str, object: &Value) -> Value {
    json!({
        "merchant_id": "6SSW7HV8K2ST5", "type": kind, "event_id": format!("evt-{which}"),
        "created_at": sekisho::now().to_string(),
        "data": { "type": name, "id": object["id"], "object": { name: object } },
    })
}

/// A payment of 1,000 with a tip of 100.
fn payment(n: &str, which: &str, status: &str, more: &Value) -> Value {
    let payment = json!({
        "id": format!("sq_{n}"), "status": status, "amount_money": yen(1000), "tip_money": yen(100),
        "total_money": yen(1100), "source_type": "CARD", "location_id": "S8GWD5R9QB376",
        "order_id": format!("so_{n}"), "reference_id": n, "buyer_email_address": "hanako@example.com",
    });
    event(&format!("{which}-{status}-{n}"), "payment.updated", "payment", &with(payment, more))
}

fn completed(n: &str) -> Value {
    payment(n, "p", "COMPLETED", &json!({}))
}

fn tender(n: &str, which: &str, status: &str, amount: i64) -> Value {
    let more = json!({
        "id": format!("sq_{which}_{n}"), "amount_money": yen(amount), "tip_money": yen(0), "total_money": yen(amount),
    });
    payment(n, which, status, &more)
}

fn refund(n: &str, which: &str, status: &str, amount: i64) -> Value {
    let refund = json!({
        "id": format!("sr_{which}_{n}"), "status": status, "amount_money": yen(amount),
        "payment_id": format!("sq_{n}"), "order_id": format!("sro_{which}_{n}"), "reason": "damaged",
    });
    event(&format!("{which}-{status}-{n}"), "refund.updated", "refund", &refund)
}

fn dispute(n: &str, state: &str) -> Value {
    let dispute = json!({
        "id": format!("sd_{n}"), "state": state, "amount_money": yen(1100), "reason": "NOT_AS_DESCRIBED",
        "disputed_payment": { "payment_id": format!("sq_{n}") },
    });
    event(&format!("{state}-{n}"), "dispute.state.updated", "dispute", &dispute)
}

const PAID: Order = Order {
    name: "paid-with-a-tip",
    asked: 1000,
    received: 1000,
    events: |n| vec![payment(n, "p", "APPROVED", &json!({})), completed(n)],
    ..super::PAID
};

const ORDERS: [Order; 7] = [
    PAID,
    Order {
        name: "two-tenders",
        asked: 5000,
        events: |n| {
            let one = |which, status, amount| tender(n, which, status, amount);
            vec![
                one("card", "APPROVED", 3000),
                one("gift", "APPROVED", 2000),
                one("card", "COMPLETED", 3000),
                one("gift", "COMPLETED", 2000),
            ]
        },
        received: 5000,
        perhaps: &["payment.processing", "payment.underpaid"],
        ..PAID
    },
    Order {
        name: "failed-then-paid",
        events: |n| vec![tender(n, "declined", "FAILED", 1000), completed(n)],
        ..PAID
    },
    Order {
        name: "let-go",
        events: |n| vec![payment(n, "p", "APPROVED", &json!({})), payment(n, "p", "CANCELED", &json!({}))],
        status: "cancelled",
        received: 0,
        told: &["payment.cancelled"],
        ..PAID
    },
    Order {
        name: "refunded-in-part",
        events: |n| vec![completed(n), refund(n, "1", "PENDING", 400), refund(n, "1", "COMPLETED", 400)],
        status: "partially_refunded",
        refunded: 400,
        told: &["payment.paid", "payment.partially_refunded"],
        perhaps: &["payment.refund_pending"],
        ..PAID
    },
    Order {
        name: "refunded-with-its-tip",
        events: |n| vec![completed(n), refund(n, "1", "COMPLETED", 400), refund(n, "2", "COMPLETED", 700)],
        status: "refunded",
        refunded: 1000,
        told: &["payment.paid", "payment.refunded"],
        perhaps: &["payment.partially_refunded"],
        ..PAID
    },
    Order {
        name: "disputed",
        events: |n| vec![completed(n), dispute(n, "EVIDENCE_REQUIRED"), dispute(n, "LOST")],
        told: &["payment.paid", "payment.dispute_lost"],
        perhaps: &["payment.disputed"],
        ..PAID
    },
];

#[test]
fn d2_orders_paid_by_square_settle_and_are_found_without_naming_the_merchant() {
    each_store(|place| {
        let source = format!(
            "[[source]]\nname = \"square\"\nprovider = \"square\"\nsecrets = [\"{SECRET}\"]\npublic_url = \"{URL}\"\n"
        );
        let square = Provider::with("square", &[SECRET], &[], Some(URL));
        let shop = Shop::open(place, &source, move |body| square.body(body));
        shop.sell(&ORDERS);
        let paid = shop.payment("paid-with-a-tip-back");
        assert_eq!((&paid["amount_tip"], &paid["attention"]), (&json!(100), &Value::Null));
        for id in ["so_two-tenders-forth", "sq_gift_two-tenders-forth"] {
            let found = shop.payment(id);
            assert_eq!(
                (&found["reference"], &found["attention"]),
                (&json!("two-tenders-forth"), &Value::Null)
            );
            shop.gateway.type_in(&["payments", "show", id]).done().mentions(&["two-tenders-forth"]);
        }
        let (status, none) =
            shop.ask("GET", "/v1/payments?reference=so_paid-with-a-tip-back&account=M0", &Value::Null);
        assert_eq!((status, &none["items"]), (200, &json!([])), "another merchant was named");
    });
}
