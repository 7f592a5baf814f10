//! What becomes of refunds, disputes and sessions.

use super::*;

/// Types of the events that came about since the last look.
fn told(stripe: &Stripe) -> Vec<String> {
    stripe.take_unsent().iter().map(|event| text(event, "type")).collect()
}

fn status_of(stripe: &Stripe, id: &Value) -> String {
    text(&stripe.object(id.as_str().unwrap()).unwrap(), "status")
}

#[test]
fn e1_a_refund_begins_as_wanted_and_ends_when_told() {
    for (begin, end) in [
        ("pending", "succeeded"),
        ("pending", "canceled"),
        ("pending", "failed"),
        ("requires_action", "succeeded"),
        ("requires_action", "canceled"),
        ("succeeded", "failed"),
    ] {
        let stripe = fake();
        stripe.refunds_begin_as(begin);
        let made = body(&refund(&stripe, "k1", PART));
        assert_eq!((&made["status"], &made["pending_reason"]), (&json!(begin), &Value::Null));
        assert_eq!(made["balance_transaction"].is_null(), begin == "requires_action", "{begin}");
        assert_eq!(told(&stripe), ["refund.created", "charge.refunded"]);
        let ended = stripe.finish_refund(&text(&made, "id"), end);
        assert_eq!(status_of(&stripe, &made["id"]), end);
        let is_back = matches!(end, "failed" | "canceled");
        let charge = stripe.object("ch_1").unwrap();
        assert_eq!(charge["amount_refunded"], if is_back { 0 } else { 400 }, "{begin}, {end}");
        assert_eq!(ended["failure_reason"].is_null(), !is_back);
        let events = stripe.events_since(2);
        let types: Vec<_> = events.iter().map(|event| text(event, "type")).collect();
        let all = ["refund.failed", "refund.updated", "charge.refund.updated"];
        assert_eq!(types, all[usize::from(end != "failed")..]);
        for event in &events {
            assert_eq!(event["data"]["previous_attributes"]["status"], begin);
            assert_eq!((&event["data"]["object"], &event["request"]["id"]), (&ended, &Value::Null));
        }
        let left = if is_back { 1200 } else { 800 };
        stripe.refunds_begin_as("succeeded");
        assert_eq!(body(&refund(&stripe, "k2", FULL))["amount"], left);
    }
}

#[test]
fn e1_one_payment_may_begin_otherwise_than_all_others() {
    let stripe = fake();
    stripe.put(json!({
        "id": "ch_2", "object": "charge", "amount_captured": 900, "amount_refunded": 0, "payment_intent": null,
    }));
    stripe.refunds_begin_as("pending");
    stripe.refunds_of_begin_as("ch_2", "requires_action");
    assert_eq!(body(&refund(&stripe, "k1", "charge=ch_2"))["status"], "requires_action");
    assert_eq!(body(&refund(&stripe, "k2", PART))["status"], "pending");
}

#[test]
#[should_panic(expected = "a refund that is failed never becomes succeeded")]
fn e1_a_failed_refund_stays_failed() {
    let stripe = fake();
    let id = text(&body(&refund(&stripe, "k1", PART)), "id");
    stripe.finish_refund(&id, "failed");
    stripe.finish_refund(&id, "succeeded");
}

#[test]
fn e1_refunds_wait_for_the_balance_and_are_paid_when_it_is_topped_up() {
    let stripe = fake();
    stripe.set_balance(500);
    let paid = body(&refund(&stripe, "k1", PART));
    assert_eq!((paid["status"].as_str(), stripe.balance()), (Some("succeeded"), Some(100)));
    let waits = body(&refund(&stripe, "k2", "payment_intent=pi_1&amount=300"));
    assert_eq!(waits["status"], "pending");
    assert_eq!(waits["pending_reason"], "insufficient_funds");
    assert_eq!(waits["balance_transaction"], Value::Null);
    assert_eq!(stripe.object("ch_1").unwrap()["amount_refunded"], 700, "it counts already");
    told(&stripe);
    stripe.top_up(150);
    assert_eq!((status_of(&stripe, &waits["id"]), told(&stripe)), ("pending".into(), vec![]));
    stripe.top_up(100);
    assert_eq!(told(&stripe), ["refund.updated", "charge.refund.updated"]);
    let now = stripe.object(waits["id"].as_str().unwrap()).unwrap();
    assert_eq!((now["status"].as_str(), now.get("pending_reason")), (Some("succeeded"), None));
    assert_eq!(stripe.balance(), Some(50));
    stripe.finish_refund(&text(&paid, "id"), "failed");
    assert_eq!(stripe.balance(), Some(450), "a failed refund comes back");
    let entries = body(&get(&stripe, "/v1/balance_transactions"));
    let kinds: Vec<_> = entries["data"].as_array().unwrap().iter().map(|entry| text(entry, "type")).collect();
    assert_eq!(kinds, ["refund_failure", "refund", "refund"]);
}

#[test]
fn e1_a_refund_by_hand_is_nobodys() {
    let stripe = fake();
    let made = stripe.refund_by_hand(INTENT, Some(500)).unwrap();
    assert_eq!((&made["metadata"], &made["amount"]), (&json!({}), &json!(500)));
    assert!(stripe.calls().is_empty());
    assert_eq!(stripe.events_since(0)[0]["request"], json!({ "id": null, "idempotency_key": null }));
    assert_eq!(body(&refund(&stripe, "k1", FULL))["amount"], 700, "the rest");
    assert!(stripe.refund_by_hand(INTENT, None).unwrap_err().contains("already"));
}

#[test]
fn e1_a_disputed_charge_is_not_refunded_until_the_dispute_is_won() {
    let stripe = fake();
    for (n, (status, code)) in [
        ("needs_response", Some("charge_disputed")),
        ("under_review", Some("charge_disputed")),
        ("lost", Some("charge_disputed")),
        ("warning_needs_response", None),
        ("won", None),
    ]
    .into_iter()
    .enumerate()
    {
        stripe.put(json!({ "id": "du_1", "object": "dispute", "charge": "ch_1", "status": status }));
        let answer = refund(&stripe, &format!("k{n}"), "payment_intent=pi_1&amount=100");
        let expected = if code.is_some() { 400 } else { 200 };
        assert_eq!((answer.status, body(&answer)["error"]["code"].as_str()), (expected, code), "{status}");
    }
}

fn create_session(stripe: &Stripe) -> String {
    let form = "mode=payment&success_url=https://a.test/&metadata[order_id]=1\
                &payment_intent_data[metadata][order_id]=1\
                &line_items[0][price_data][currency]=jpy&line_items[0][price_data][unit_amount]=600\
                &line_items[0][quantity]=2";
    let answer =
        http::post(stripe.address(), "/v1/checkout/sessions", &headers(&[]), form.as_bytes()).unwrap();
    text(&body(&answer), "id")
}

fn expire(stripe: &Stripe, id: &str) -> Response {
    let path = format!("/v1/checkout/sessions/{id}/expire");
    http::post(stripe.address(), &path, &headers(&[("idempotency-key", "expire")]), b"").unwrap()
}

#[test]
fn e1_only_an_open_session_expires() {
    let stripe = Stripe::start().unwrap();
    let session = create_session(&stripe);
    let expired = expire(&stripe, &session);
    assert_eq!((expired.status, &body(&expired)["status"]), (200, &json!("expired")));
    assert_eq!(told(&stripe), ["checkout.session.expired"]);
    assert_eq!(expire(&stripe, &session).header("idempotent-replayed"), Some("true"));
    stripe.forget_keys();
    assert_eq!(error(&expire(&stripe, &session)), refused(400, ""), "once");
    stripe.forget_keys();
    let paid = create_session(&stripe);
    stripe.pay_session(&paid);
    let answer = expire(&stripe, &paid);
    assert!(answer.status == 400 && answer.text().contains("status of complete"), "{}", answer.text());
    stripe.forget_keys();
    assert_eq!(error(&expire(&stripe, "cs_9")), refused(404, "resource_missing"));
    let left = create_session(&stripe);
    stripe.abandon_session(&left);
    assert_eq!(stripe.object(&left).unwrap()["status"], "expired");
}

#[test]
fn e1_a_session_is_paid_by_card_or_by_voucher_or_not_at_all() {
    let stripe = Stripe::start().unwrap();
    let by_card = create_session(&stripe);
    let sold = stripe.pay_session(&by_card);
    let paid = ["payment_intent.created", "charge.succeeded", "payment_intent.succeeded"];
    assert_eq!(told(&stripe), [&paid[..], &["checkout.session.completed"]].concat());
    let session = stripe.object(&by_card).unwrap();
    assert_eq!(
        (&session["payment_status"], &session["payment_intent"]),
        (&json!("paid"), &json!(sold.payment_intent))
    );
    let intent = stripe.object(&sold.payment_intent).unwrap();
    assert_eq!((&intent["amount_received"], &intent["metadata"]["order_id"]), (&json!(1200), &json!("1")));

    let by_voucher = create_session(&stripe);
    let intent = stripe.take_voucher(&by_voucher);
    let shown = ["payment_intent.created", "payment_intent.requires_action", "checkout.session.completed"];
    assert_eq!(told(&stripe), shown);
    assert_eq!(stripe.object(&by_voucher).unwrap()["payment_status"], "unpaid");
    assert_eq!(stripe.pay_voucher(&by_voucher).payment_intent, intent);
    let came = ["charge.succeeded", "payment_intent.succeeded", "checkout.session.async_payment_succeeded"];
    assert_eq!(told(&stripe), came);

    let too_late = create_session(&stripe);
    let intent = stripe.take_voucher(&too_late);
    told(&stripe);
    stripe.expire_voucher(&too_late);
    assert_eq!(told(&stripe), ["payment_intent.payment_failed", "checkout.session.async_payment_failed"]);
    assert_eq!(stripe.object(&intent).unwrap()["status"], "requires_payment_method");
}

#[test]
fn e1_a_session_is_created_open_and_unpaid() {
    let stripe = fake();
    stripe.put(json!({ "id": "price_1", "object": "price", "unit_amount": 500, "currency": "jpy" }));
    let create = |form: &str| {
        http::post(stripe.address(), "/v1/checkout/sessions", &headers(&[]), form.as_bytes()).unwrap()
    };
    let session = create(
        "mode=payment&success_url=https://a.test/&client_reference_id=ORD-1&metadata[order_id]=1\
         &line_items[0][price_data][currency]=jpy&line_items[0][price_data][unit_amount]=600\
         &line_items[0][quantity]=2&line_items[1][price]=price_1",
    );
    let session = body(&session);
    assert_eq!((&session["amount_total"], &session["status"]), (&json!(1700), &json!("open")), "{session}");
    assert_eq!(session["payment_status"], "unpaid");
    let again = get(&stripe, &format!("/v1/checkout/sessions/{}", session["id"].as_str().unwrap()));
    assert_eq!(body(&again), session);
    for form in [
        "mode=payment",
        "success_url=a&expires_at=5",
        "success_url=a&line_items[0][price]=price_9",
        "success_url=a&line_items[0][price_data][currency]=jpy",
        "success_url=a&line_items[0][price_data][currency]=jpy&line_items[0][price_data][unit_amount]=9223372036854775807&line_items[0][quantity]=2",
    ] {
        assert_eq!(create(form).status, 400, "{form}");
    }
}
