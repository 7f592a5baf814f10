use std::time::Duration;

use serde_json::json;

use super::books::text;
use super::*;
use crate::app::Reply;
use crate::http::{self, Response};

mod clients;
mod ledger;
mod lifecycle;
mod lists;
mod sales;

const INTENT: &str = "pi_1";

fn fake() -> Stripe {
    let stripe = Stripe::start().unwrap();
    stripe.put(json!({
        "id": INTENT, "object": "payment_intent", "created": 100, "currency": "jpy",
        "amount_received": 1200, "latest_charge": "ch_1", "status": "succeeded",
    }));
    stripe.put(json!({
        "id": "ch_1", "object": "charge", "created": 100, "currency": "jpy", "payment_intent": INTENT,
        "amount_captured": 1200, "amount_refunded": 0, "refunded": false,
    }));
    stripe
}

fn headers<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    [&[("authorization", "Bearer sk_test_lab4242")], more].concat()
}

fn get(stripe: &Stripe, path: &str) -> Response {
    http::request(stripe.address(), "GET", path, &headers(&[]), b"").unwrap()
}

fn try_refund(stripe: &Stripe, key: &str, form: &str) -> io::Result<Response> {
    let headers = headers(&[("idempotency-key", key)]);
    http::post(stripe.address(), "/v1/refunds", &headers, form.as_bytes())
}

fn refund(stripe: &Stripe, key: &str, form: &str) -> Response {
    try_refund(stripe, key, form).unwrap()
}

fn body(response: &Response) -> Value {
    serde_json::from_slice(&response.body).unwrap()
}

fn error(response: &Response) -> (u16, String, String) {
    let body = body(response);
    let text = |name: &str| body["error"][name].as_str().unwrap_or_default().to_owned();
    (response.status, text("type"), text("code"))
}

fn refused(status: u16, code: &str) -> (u16, String, String) {
    (status, "invalid_request_error".into(), code.into())
}

/// Status, replayed and refunds made so far.
fn seen(stripe: &Stripe, response: &Response) -> (u16, bool, usize) {
    let replayed = response.header("idempotent-replayed") == Some("true");
    (response.status, replayed, stripe.refunds_of(INTENT).len())
}

const FULL: &str = "payment_intent=pi_1";
const PART: &str = "payment_intent=pi_1&amount=400&metadata[refund_request_id]=rr_1";

#[test]
fn e1_without_the_right_key_nothing_is_told() {
    let stripe = fake();
    let ask = |headers: &[(&str, &str)]| {
        http::request(stripe.address(), "GET", "/v1/charges/ch_1", headers, b"").unwrap()
    };
    assert_eq!(error(&ask(&[])), refused(401, ""));
    let wrong = ask(&[("authorization", "Bearer sk_test_wrong_key_9999")]);
    assert_eq!(error(&wrong), refused(401, ""));
    assert!(wrong.text().contains("*9999") && !wrong.text().contains("wrong"), "{}", wrong.text());
    assert_eq!(ask(&headers(&[])).status, 200);
}

#[test]
fn e1_a_key_is_refused_restricted_changed_and_mended_while_callers_are_at_work() {
    let stripe = fake();
    stripe.refuse_key();
    assert_eq!(error(&get(&stripe, "/v1/charges/ch_1")), refused(401, ""));
    assert_eq!(error(&refund(&stripe, "k1", PART)), refused(401, ""));
    stripe.restrict_key();
    assert_eq!(get(&stripe, "/v1/refunds?payment_intent=pi_1").status, 200);
    assert_eq!(error(&refund(&stripe, "k1", PART)), refused(403, ""));
    stripe.set_key("sk_test_another");
    assert_eq!(error(&refund(&stripe, "k1", PART)), refused(401, ""));
    stripe.set_key(KEY);
    stripe.accept_key();
    assert_eq!(seen(&stripe, &refund(&stripe, "k1", PART)), (200, false, 1), "refusals left nothing behind");
}

#[test]
fn e1_objects_are_served_as_they_were_put() {
    let stripe = fake();
    let answer = get(&stripe, "/v1/charges/ch_1");
    assert_eq!((answer.status, body(&answer)), (200, stripe.object("ch_1").unwrap()));
    assert!(answer.header("request-id").is_some());
    assert_eq!(error(&get(&stripe, "/v1/charges/ch_9")), refused(404, "resource_missing"));
    assert_eq!(error(&get(&stripe, "/v1/charges/pi_1")), refused(404, "resource_missing"), "another kind");
    assert_eq!(error(&get(&stripe, "/v1/nonsense")), refused(404, ""));
    assert_eq!(error(&get(&stripe, "/")), refused(404, ""));
    assert_eq!(error(&get(&stripe, "/v1/charges/ch_1?limit=5")), refused(400, "parameter_unknown"));
    let expanding = get(&stripe, "/v1/charges/ch_1?expand[]=balance_transaction");
    assert_eq!(error(&expanding), refused(400, "property_cannot_be_expanded"));
}

#[test]
fn e1_accounts_do_not_see_each_other() {
    let stripe = fake();
    stripe.put_for("acct_1", json!({ "id": "ch_2", "object": "charge" }));
    let ask = |account, id: &str| {
        let headers = headers(&[("stripe-account", account)]);
        http::request(stripe.address(), "GET", &format!("/v1/charges/{id}"), &headers, b"").unwrap()
    };
    assert_eq!(ask("acct_1", "ch_2").status, 200);
    assert_eq!(ask("acct_1", "ch_1").status, 404);
    assert_eq!(get(&stripe, "/v1/charges/ch_2").status, 404);
    assert_eq!(error(&ask("acct_9", "ch_2")), refused(403, "account_invalid"));
}

#[test]
fn e1_a_refund_never_exceeds_what_was_received() {
    let stripe = fake();
    let made = body(&refund(&stripe, "k1", PART));
    assert_eq!((&made["amount"], &made["charge"]), (&json!(400), &json!("ch_1")));
    assert_eq!(made["metadata"], json!({ "refund_request_id": "rr_1" }));
    let entry =
        get(&stripe, &format!("/v1/balance_transactions/{}", made["balance_transaction"].as_str().unwrap()));
    assert_eq!(body(&entry)["net"], -400);
    assert_eq!(error(&refund(&stripe, "k2", "charge=ch_1&amount=801")), refused(400, ""));
    assert_eq!(body(&refund(&stripe, "k3", FULL))["amount"], 800, "the rest");
    assert_eq!(error(&refund(&stripe, "k4", FULL)), refused(400, "charge_already_refunded"));
    let charge = stripe.object("ch_1").unwrap();
    assert_eq!((&charge["amount_refunded"], &charge["refunded"]), (&json!(1200), &json!(true)));

    let mut failed = made;
    failed["status"] = "failed".into();
    stripe.put(failed);
    assert_eq!(body(&refund(&stripe, "k5", FULL))["amount"], 400, "a failed refund can be made again");
    let kinds = ["refund.created", "charge.refunded"];
    for kind in kinds {
        let events = body(&get(&stripe, &format!("/v1/events?type={kind}")));
        assert_eq!(events["data"].as_array().unwrap().len(), 3, "{kind}");
    }
}

#[test]
fn e1_refunds_that_make_no_sense_are_refused() {
    let stripe = fake();
    stripe.put(json!({ "id": "pi_2", "object": "payment_intent", "amount_received": 0 }));
    for (form, code) in [
        ("", "parameter_missing"),
        ("payment_intent=pi_9", "resource_missing"),
        ("payment_intent=pi_2", ""),
        ("payment_intent=pi_1&amount=0", "parameter_invalid"),
        ("payment_intent=pi_1&amount=-5", "parameter_invalid"),
        ("payment_intent=pi_1&note=x", "parameter_unknown"),
    ] {
        assert_eq!(error(&refund(&stripe, &format!("key {form}"), form)).2, code, "{form}");
    }
    assert_eq!(stripe.refunds_of(INTENT).len(), 0);
}

#[test]
fn r8_the_first_answer_is_replayed_and_the_work_done_once() {
    let stripe = fake();
    let first = refund(&stripe, "k1", PART);
    let again = refund(&stripe, "k1", PART);
    assert_eq!(seen(&stripe, &first), (200, false, 1));
    assert_eq!(seen(&stripe, &again), (200, true, 1));
    assert_eq!(first.body, again.body);
    let calls = stripe.calls();
    assert_eq!(
        calls.iter().map(|call| (call.worked, call.replayed)).collect::<Vec<_>>(),
        [(true, false), (false, true)]
    );
    assert_eq!((calls[0].key.as_deref(), calls[0].status), (Some("k1"), 200));
    assert_eq!(calls[0].params["metadata"]["refund_request_id"], "rr_1");
}

#[test]
fn r8_a_key_belongs_to_its_parameters() {
    let stripe = fake();
    refund(&stripe, "k1", PART);
    let other = refund(&stripe, "k1", "payment_intent=pi_1&amount=500");
    assert_eq!(error(&other), (400, "idempotency_error".into(), String::new()));
    assert!(other.text().contains("'k1'"), "{}", other.text());
    assert_eq!(error(&refund(&stripe, &"k".repeat(256), PART)), refused(400, ""));
    assert_eq!(stripe.refunds_of(INTENT).len(), 1);
}

#[test]
fn r8_what_was_refused_before_any_work_can_be_corrected_under_its_key() {
    let stripe = fake();
    assert_eq!(refund(&stripe, "k1", "payment_intent=pi_1&ammount=400").status, 400);
    assert_eq!(seen(&stripe, &refund(&stripe, "k1", PART)), (200, false, 1));
}

#[test]
fn r8_a_forgotten_key_works_again() {
    let stripe = fake();
    refund(&stripe, "k1", PART);
    stripe.forget_keys();
    assert_eq!(seen(&stripe, &refund(&stripe, "k1", PART)), (200, false, 2));
}

#[test]
fn r8_a_key_under_way_is_in_use() {
    let stripe = fake();
    stripe.order(StripeFault::LateWork(Duration::from_millis(300)));
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| refund(&stripe, "k1", PART));
        let refused = loop {
            // Its fault is taken in the same turn as its key.
            if locked(&stripe.shared.state).faults.is_empty() {
                break refund(&stripe, "k1", PART);
            }
            std::thread::yield_now();
        };
        assert_eq!(error(&refused), self::refused(409, "idempotency_key_in_use"));
        assert_eq!(slow.join().unwrap().status, 200);
    });
    assert_eq!(seen(&stripe, &refund(&stripe, "k1", PART)), (200, true, 1));
}

#[test]
fn r8_faults_at_the_door_leave_nothing_behind() {
    let stripe = fake();
    for (fault, status, code) in [
        (StripeFault::RateLimited { retry_after_s: Some(2) }, 429, "rate_limit"),
        (StripeFault::LockTimeout, 429, "lock_timeout"),
        (StripeFault::LockConflict, 409, "lock_timeout"),
        (StripeFault::KeyInUse, 409, "idempotency_key_in_use"),
        (StripeFault::Error, 500, ""),
        (StripeFault::Instead(Reply::status(503).with_body("{}")), 503, ""),
    ] {
        stripe.order(fault.clone());
        let answer = refund(&stripe, "k1", PART);
        assert_eq!((answer.status, error(&answer).2.as_str()), (status, code));
        let asked = matches!(fault, StripeFault::RateLimited { .. }).then_some("2");
        assert_eq!(answer.header("retry-after"), asked);
    }
    assert_eq!(seen(&stripe, &refund(&stripe, "k1", PART)), (200, false, 1));
}

#[test]
fn r8_a_stored_500_is_replayed_with_and_without_the_work_done() {
    for (fault, made) in [(StripeFault::StoredError, 0), (StripeFault::ErrorAfterWork, 1)] {
        let stripe = fake();
        stripe.order(fault);
        assert_eq!(seen(&stripe, &refund(&stripe, "k1", PART)), (500, false, made));
        assert_eq!(seen(&stripe, &refund(&stripe, "k1", PART)), (500, true, made));
        assert_eq!(seen(&stripe, &refund(&stripe, "k2", PART)), (200, false, made + 1));
    }
}

#[test]
fn r8_a_lost_or_late_answer_was_still_the_work() {
    for fault in [StripeFault::Cut { after_bytes: 0 }, StripeFault::Cut { after_bytes: 40 }] {
        let stripe = fake();
        stripe.order(fault);
        assert!(try_refund(&stripe, "k1", PART).is_err());
        assert_eq!(seen(&stripe, &refund(&stripe, "k1", PART)), (200, true, 1));
    }
    let stripe = fake();
    stripe.order(StripeFault::LateAnswer(Duration::from_millis(20)));
    assert_eq!(seen(&stripe, &refund(&stripe, "k1", PART)), (200, false, 1));
}

#[test]
fn r8_late_work_is_done_after_the_caller_hung_up() {
    let stripe = fake();
    stripe.order(StripeFault::LateWork(Duration::from_millis(50)));
    let mut caller = std::net::TcpStream::connect(stripe.address()).unwrap();
    let head = format!(
        "POST /v1/refunds HTTP/1.1\r\nauthorization: Bearer {KEY}\r\nidempotency-key: k1\r\ncontent-length: {}\r\n\r\n",
        PART.len()
    );
    io::Write::write_all(&mut caller, (head + PART).as_bytes()).unwrap();
    while !locked(&stripe.shared.state).faults.is_empty() {
        std::thread::yield_now();
    }
    drop(caller);
    while stripe.calls().is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(seen(&stripe, &refund(&stripe, "k1", PART)), (200, true, 1));
}

#[test]
fn r8_a_refusal_of_the_work_itself_is_kept_under_its_key() {
    let stripe = fake();
    stripe.order(StripeFault::Disputed);
    assert_eq!(error(&refund(&stripe, "k1", PART)), refused(400, "charge_disputed"));
    assert_eq!(seen(&stripe, &refund(&stripe, "k1", PART)), (400, true, 0));
    assert_eq!(seen(&stripe, &refund(&stripe, "k2", PART)), (200, false, 1));
}

#[test]
fn r8_a_fault_waits_for_its_endpoint() {
    let stripe = fake();
    stripe.order_for("GET /v1/charges/{id}", StripeFault::Error);
    stripe.order(StripeFault::LockTimeout);
    assert_eq!(refund(&stripe, "k1", PART).status, 429);
    assert_eq!(refund(&stripe, "k1", PART).status, 200);
    assert_eq!(get(&stripe, "/v1/charges/ch_1").status, 500);
    assert_eq!(get(&stripe, "/v1/charges/ch_1").status, 200);
}

#[test]
fn faults_are_read_from_text() {
    let ms = Duration::from_millis(250);
    for (text, fault) in [
        ("429", StripeFault::RateLimited { retry_after_s: None }),
        ("429:2", StripeFault::RateLimited { retry_after_s: Some(2) }),
        ("lock_timeout", StripeFault::LockTimeout),
        ("lock_timeout:409", StripeFault::LockConflict),
        ("in_use", StripeFault::KeyInUse),
        ("disputed", StripeFault::Disputed),
        ("500", StripeFault::Error),
        ("stored_500", StripeFault::StoredError),
        ("500_after_work", StripeFault::ErrorAfterWork),
        ("late_work:250", StripeFault::LateWork(ms)),
        ("late_answer:250", StripeFault::LateAnswer(ms)),
        ("cut", StripeFault::Cut { after_bytes: 0 }),
        ("cut:40", StripeFault::Cut { after_bytes: 40 }),
    ] {
        assert_eq!(text.parse(), Ok(fault), "{text}");
    }
    for bad in ["", "often", "429:x", "lock_timeout:5", "late_work", "cut:-1"] {
        assert!(bad.parse::<StripeFault>().is_err(), "{bad}");
    }
}

#[test]
fn e1_a_text_is_put_with_the_object_in_its_event() {
    let stripe = Stripe::start().unwrap();
    let event = json!({
        "id": "evt_1", "object": "event", "created": 1,
        "data": { "object": { "id": "ch_5", "object": "charge" } },
    });
    stripe.put_text(&event.to_string()).unwrap();
    assert_eq!(get(&stripe, "/v1/events/evt_1").status, 200);
    assert_eq!(get(&stripe, "/v1/charges/ch_5").status, 200);
    assert!(stripe.put_text("{}").is_err() && stripe.put_text("no").is_err());
}
