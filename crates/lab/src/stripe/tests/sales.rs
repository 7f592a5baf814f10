//! The shop on top: what it sells can be refunded, listed and delivered.

use super::*;
use crate::shop::{Course, Shop};

#[test]
fn e2_a_sale_is_whole_and_told_in_order() {
    let stripe = Stripe::start().unwrap();
    stripe.set_clock(1_780_000_000);
    let sold = stripe.sell(1200, "jpy", json!({ "order_id": "ORD-1" }));
    let charge = stripe.object(&sold.charge).unwrap();
    assert_eq!(
        (&charge["payment_intent"], &charge["amount_captured"]),
        (&json!(sold.payment_intent), &json!(1200))
    );
    let entry = body(&get(&stripe, &format!("/v1/balance_transactions/{}", sold.balance_transaction)));
    assert_eq!(
        (&entry["fee"], &entry["net"], &entry["source"]),
        (&json!(43), &json!(1157), &json!(sold.charge))
    );
    let unsent = stripe.take_unsent();
    let types: Vec<_> = unsent.iter().map(|event| text(event, "type")).collect();
    assert_eq!(types, ["payment_intent.created", "charge.succeeded", "payment_intent.succeeded"]);
    assert!(unsent.iter().all(|event| event["created"] == 1_780_000_000));
    let listed = body(&get(&stripe, "/v1/events"));
    let newest_first: Vec<_> = unsent.iter().rev().cloned().collect();
    assert_eq!(listed["data"], Value::Array(newest_first));

    stripe.set_clock(1_780_000_050);
    let other = stripe.sell_by_checkout(900, "jpy", json!({ "order_id": "ORD-2" }));
    let session = stripe.object(other.session.as_deref().unwrap()).unwrap();
    assert_eq!((&session["amount_total"], &session["metadata"]["order_id"]), (&json!(900), &json!("ORD-2")));
    assert_eq!(stripe.object(&other.payment_intent).unwrap()["metadata"]["order_id"], "ORD-2");
    assert_eq!((stripe.take_unsent().len(), stripe.take_unsent().len()), (4, 0));
    assert_eq!((stripe.events(), stripe.events_since(3).len()), (7, 4));
    let form = format!("payment_intent={}", other.payment_intent);
    assert_eq!(body(&refund(&stripe, "k1", &form))["amount"], 900);
}

#[test]
fn e2_an_event_can_exist_in_no_list() {
    let stripe = Stripe::start().unwrap();
    let sold = stripe.sell(1200, "jpy", json!({}));
    for event in stripe.take_unsent() {
        stripe.forget(&text(&event, "id"));
    }
    assert_eq!(body(&get(&stripe, "/v1/events"))["data"], json!([]));
    assert_eq!(get(&stripe, &format!("/v1/payment_intents/{}", sold.payment_intent)).status, 200);
    assert!(stripe.events_since(0).is_empty());
}

#[test]
fn e2_what_a_request_caused_names_it() {
    let stripe = fake();
    let answer = refund(&stripe, "k1", PART);
    let request = json!({ "id": answer.header("request-id"), "idempotency_key": "k1" });
    assert!(stripe.take_unsent().iter().all(|event| event["request"] == request));
    assert_eq!(stripe.calls()[0].request_id, request["id"]);
}

#[test]
fn e2_a_shop_of_the_demo_can_be_asked_about() {
    let now = 1_780_000_000;
    let shop = Shop::open(7, 200, now, "/in", "whsec_shop");
    let stripe = Stripe::start().unwrap();
    stripe.stock(&shop);
    let (mut listed, mut after) = (0, String::new());
    loop {
        let page = body(&get(&stripe, &format!("/v1/events?limit=100{after}")));
        let data = page["data"].as_array().unwrap();
        listed += data.len();
        after = format!("&starting_after={}", text(data.last().unwrap(), "id"));
        if page["has_more"] == false {
            break;
        }
    }
    assert_eq!(listed, shop.events.len());
    for sale in &shop.sales {
        let intent = stripe.object(&sale.intent).unwrap();
        assert_eq!(intent["amount_received"].as_i64(), Some(sale.charged), "{intent}");
        assert!((now as i64 - 3_600..=now as i64).contains(&intent["created"].as_i64().unwrap()));
        let refunded: i64 =
            stripe.refunds_of(&sale.intent).iter().filter_map(|one| one["amount"].as_i64()).sum();
        assert_eq!(refunded, sale.refunded);
    }
    let lost = shop.sales.iter().find(|sale| sale.course == Course::DisputeLost).unwrap();
    let form = format!("payment_intent={}", lost.intent);
    assert_eq!(error(&refund(&stripe, "k1", &form)), refused(400, "charge_disputed"));
}
