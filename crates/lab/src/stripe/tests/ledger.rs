//! What a checker can count.

use super::*;

const ORDER: &str = "payment_intent=pi_1&amount=400&metadata[sekisho_refund]=rule/A/1";

fn look(stripe: &Stripe) {
    assert_eq!(get(stripe, "/v1/refunds?payment_intent=pi_1").status, 200);
}

fn keys(calls: Vec<&StripeCall>) -> Vec<&str> {
    calls.into_iter().filter_map(|call| call.key.as_deref()).collect()
}

#[test]
fn e1_refunds_posts_and_works_are_counted() {
    let stripe = fake();
    stripe.order_for("POST /v1/refunds", StripeFault::RateLimited { retry_after_s: None });
    for key in ["k1", "k1", "k1", "k2"] {
        refund(&stripe, key, ORDER);
    }
    stripe.refund_by_hand(INTENT, Some(100)).unwrap();
    let ledger = stripe.ledger();
    assert_eq!(ledger.posts_by_key(), [("k1", 3), ("k2", 1)].into());
    assert_eq!(ledger.works_by_key(), [("k1", 1), ("k2", 1)].into());
    assert_eq!(ledger.calls[0].payment(), Some(INTENT), "what was asked, though it was refused");
    let made = stripe.refunds_by_order();
    let count = |order: &str| made[&(order.to_owned(), INTENT.to_owned())].len();
    assert_eq!((made.len(), count("rule/A/1"), count("")), (2, 2, 1));
    assert_eq!(ledger.calls[1].made.as_deref(), made.values().last().unwrap()[0]["id"].as_str());
    assert_eq!((stripe.take_calls().len(), stripe.calls().len()), (4, 0));
}

#[test]
fn e1_a_post_without_a_look_before_it_is_found() {
    let stripe = fake();
    look(&stripe);
    refund(&stripe, "k1", ORDER);
    refund(&stripe, "k2", ORDER);
    let ledger = stripe.ledger();
    assert_eq!(keys(ledger.first_posts_without_list()), Vec::<&str>::new());
    assert_eq!(keys(ledger.posts_without_list()), ["k2"], "since the POST before");

    let stripe = fake();
    refund(&stripe, "k1", ORDER);
    stripe.order_for("GET /v1/refunds", StripeFault::Cut { after_bytes: 20 });
    http::request(stripe.address(), "GET", "/v1/refunds?charge=ch_1", &headers(&[]), b"").unwrap_err();
    refund(&stripe, "k1", "charge=ch_1&amount=400");
    refund(&stripe, "k2", "charge=ch_1&amount=400");
    let ledger = stripe.ledger();
    assert_eq!(keys(ledger.first_posts_without_list()), ["k1", "k2"], "a list that was cut is none");
    assert_eq!(keys(ledger.posts_without_list()), ["k1", "k1", "k2"]);
}

#[test]
fn e1_a_look_during_late_work_came_after_its_post() {
    let stripe = fake();
    stripe.order_for("POST /v1/refunds", StripeFault::LateWork(Duration::from_millis(100)));
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| refund(&stripe, "k1", ORDER));
        while !locked(&stripe.shared.state).faults.is_empty() {
            std::thread::yield_now();
        }
        look(&stripe);
        assert_eq!(slow.join().unwrap().status, 200);
    });
    let ledger = stripe.ledger();
    assert_eq!(ledger.calls[0].method, "GET", "in the order of their answers");
    assert_eq!(keys(ledger.first_posts_without_list()), ["k1"]);
}
