//! Pages of events and of objects.

use super::*;

/// Ten events, `evt_0` the oldest, two in each second.
fn events() -> Stripe {
    let stripe = Stripe::start().unwrap();
    for n in 0..10 {
        let kind = if n % 5 == 0 { "charge.succeeded" } else { "refund.created" };
        stripe.put(json!({
            "id": format!("evt_{n}"), "object": "event", "created": 100 + n / 2, "type": kind,
            "pending_webhooks": n % 2,
        }));
    }
    stripe
}

fn listed(stripe: &Stripe, query: &str) -> (Vec<u32>, bool) {
    let answer = get(stripe, &format!("/v1/events?{query}"));
    assert_eq!(answer.status, 200, "{query}: {}", answer.text());
    let page = body(&answer);
    let number = |event: &Value| event["id"].as_str().unwrap()[4..].parse().unwrap();
    (page["data"].as_array().unwrap().iter().map(number).collect(), page["has_more"] == true)
}

#[test]
fn e2_events_are_listed_newest_first_by_page() {
    let stripe = events();
    assert_eq!(listed(&stripe, ""), (vec![9, 8, 7, 6, 5, 4, 3, 2, 1, 0], false));
    assert_eq!(listed(&stripe, "limit=3"), (vec![9, 8, 7], true));
    assert_eq!(listed(&stripe, "limit=3&starting_after=evt_7"), (vec![6, 5, 4], true));
    assert_eq!(listed(&stripe, "limit=3&starting_after=evt_3"), (vec![2, 1, 0], false));
    assert_eq!(listed(&stripe, "limit=3&ending_before=evt_3"), (vec![6, 5, 4], true), "the page next to it");
    assert_eq!(listed(&stripe, "limit=3&ending_before=evt_6"), (vec![9, 8, 7], false));
    assert_eq!(listed(&stripe, "ending_before=evt_9"), (vec![], false));
}

#[test]
fn e2_events_are_filtered_before_they_are_cut() {
    let stripe = events();
    assert_eq!(listed(&stripe, "type=charge.succeeded"), (vec![5, 0], false));
    assert_eq!(listed(&stripe, "type=charge.*"), (vec![5, 0], false));
    assert_eq!(listed(&stripe, "types[]=charge.succeeded&types[]=nothing&limit=1"), (vec![5], true));
    assert_eq!(listed(&stripe, "created[gte]=104"), (vec![9, 8], false));
    assert_eq!(listed(&stripe, "created[gt]=102&created[lt]=104"), (vec![7, 6], false));
    assert_eq!(listed(&stripe, "created[lte]=100"), (vec![1, 0], false));
    assert_eq!(listed(&stripe, "delivery_success=false&limit=2"), (vec![9, 7], true));
}

#[test]
fn e2_a_list_refuses_what_it_can_not_honour() {
    let stripe = events();
    let types = "&types[]=charge.*".repeat(21);
    for query in [
        "limit=0",
        "limit=101",
        "limit=many",
        "starting_after=evt_99",
        "starting_after=evt_1&ending_before=evt_2",
        "type=a&types[]=b",
        "created[since]=1",
        "order=asc",
        &types,
    ] {
        assert_eq!(get(&stripe, &format!("/v1/events?{query}")).status, 400, "{query}");
    }
    stripe.forget("evt_3");
    let gone = get(&stripe, "/v1/events?starting_after=evt_3");
    assert_eq!(error(&gone), refused(400, "resource_missing"));
    assert_eq!(listed(&stripe, "starting_after=evt_4").0, [2, 1, 0]);
}

#[test]
fn e1_refunds_are_listed_by_what_they_refund() {
    let stripe = fake();
    stripe.put(json!({ "id": "pi_2", "object": "payment_intent", "created": 100 }));
    refund(&stripe, "k1", PART);
    refund(&stripe, "k2", FULL);
    for (query, amounts) in [
        ("payment_intent=pi_1", vec![800, 400]),
        ("charge=ch_1", vec![800, 400]),
        ("payment_intent=pi_1&limit=1", vec![800]),
        ("payment_intent=pi_1&created[lt]=5", vec![]),
        ("payment_intent=pi_2", vec![]),
        ("", vec![800, 400]),
    ] {
        let page = body(&get(&stripe, &format!("/v1/refunds?{query}")));
        let listed: Vec<_> =
            page["data"].as_array().unwrap().iter().map(|one| one["amount"].as_i64().unwrap()).collect();
        assert_eq!(listed, amounts, "{query}");
    }
}

#[test]
fn e2_a_list_about_a_payment_that_does_not_exist_is_refused() {
    let stripe = fake();
    for path in [
        "/v1/refunds?payment_intent=pi_9",
        "/v1/refunds?charge=ch_9",
        "/v1/refunds?payment_intent=pi_1&charge=ch_9",
        "/v1/charges?payment_intent=pi_9",
        "/v1/checkout/sessions?payment_intent=pi_9",
    ] {
        assert_eq!(error(&get(&stripe, path)), refused(404, "resource_missing"), "{path}");
    }
}

#[test]
fn e2_objects_of_every_kind_are_listed_by_payment_and_by_age() {
    let stripe = Stripe::start().unwrap();
    let mut sold = Vec::new();
    for at in [1_000, 2_000, 3_000] {
        stripe.set_clock(at);
        sold.push(stripe.sell_by_checkout(500, "jpy", json!({})));
    }
    stripe.sell(700, "usd", json!({}));
    let ids = |path: &str| -> Vec<String> {
        let page = body(&get(&stripe, path));
        page["data"].as_array().unwrap().iter().map(|one| text(one, "id")).collect()
    };
    let second = &sold[1];
    let of = format!("payment_intent={}", second.payment_intent);
    assert_eq!(ids(&format!("/v1/charges?{of}")), [&*second.charge]);
    assert_eq!(ids(&format!("/v1/checkout/sessions?{of}")), [second.session.as_deref().unwrap()]);
    assert_eq!(ids(&format!("/v1/refunds?{of}")), Vec::<String>::new());
    let source = format!("/v1/balance_transactions?source={}", second.charge);
    assert_eq!(ids(&source), [&*second.balance_transaction]);
    let window = "created[gte]=2000&created[lt]=3000";
    assert_eq!(ids(&format!("/v1/payment_intents?{window}")), [&*second.payment_intent]);
    assert_eq!(ids(&format!("/v1/charges?{window}")), [&*second.charge]);
    assert_eq!(
        ids(&format!("/v1/balance_transactions?{window}&type=charge")),
        [&*second.balance_transaction]
    );
    assert_eq!(ids("/v1/balance_transactions?currency=usd").len(), 1);
    assert_eq!(ids("/v1/checkout/sessions?status=complete&limit=2").len(), 2);
    assert_eq!(
        ids("/v1/events?types[]=charge.*&types[]=checkout.session.completed&created[gt]=1000").len(),
        5
    );
}
