use std::collections::BTreeMap;

use super::*;

fn programme(payments: u32) -> Programme {
    Programme::of(7, payments, "2099-01-01T10:00:00Z")
}

#[test]
fn the_same_seed_is_the_same_programme_and_more_want_places_than_there_are() {
    assert_eq!(programme(3_000), programme(3_000));
    assert_ne!(programme(3_000).visitors, Programme::of(8, 3_000, "2099-01-01T10:00:00Z").visitors);
    for (payments, visitors) in [(1, 40), (250, 40), (3_000, 300), (100_000, 400)] {
        let programme = programme(payments);
        assert_eq!(programme.visitors.len(), visitors, "{payments}");
        let wanted: u32 = programme.visitors.iter().map(|visitor| visitor.quantity).sum();
        assert!(wanted > 2 * programme.places(), "{wanted} for {}", programme.places());
    }
    let mut courses = BTreeMap::<_, usize>::new();
    for visitor in programme(250).visitors {
        *courses.entry(visitor.course).or_default() += 1;
    }
    assert_eq!(courses.len(), 6, "every course is taken: {courses:?}");
}

/// Asks for a refund as Sekisho does; the status, or `None` when the answer was lost.
fn refund(api: &RefundApi, address: SocketAddr, key: &str, form: &str) -> Option<(u16, Value)> {
    let headers = [("authorization", "Bearer sk"), ("idempotency-key", key)];
    let answer = http::post(address, "/v1/refunds", &headers, form.as_bytes()).ok()?;
    assert!(api.url().ends_with(&address.port().to_string()));
    Some((answer.status, serde_json::from_slice(&answer.body).unwrap()))
}

fn address(api: &RefundApi) -> SocketAddr {
    api.url().strip_prefix("http://").unwrap().parse().unwrap()
}

#[test]
fn a_refund_is_made_once_for_each_key_though_answers_are_lost() {
    let api = RefundApi::start(7, "sk").unwrap();
    let address = address(&api);
    let (mut lost, mut broken) = (0, 0);
    for n in 0..60 {
        let intent = api.pay(1_000, &format!("PL-{n}"));
        let form = format!("payment_intent={intent}&amount=1000&metadata%5Bsekisho_refund%5D=cancel%2F{n}");
        let key = format!("r{n}");
        loop {
            match refund(&api, address, &key, &form) {
                None => lost += 1,
                Some((500, _)) => broken += 1,
                Some((status, made)) => {
                    let order = Value::from(format!("cancel/{n}"));
                    assert_eq!((status, &made["metadata"]["sekisho_refund"]), (200, &order));
                    break;
                }
            }
        }
        let path = format!("/v1/refunds?payment_intent={intent}&limit=100");
        let listed = http::request(address, "GET", &path, &[("authorization", "Bearer sk")], b"").unwrap();
        let listed: Value = serde_json::from_slice(&listed.body).unwrap();
        assert_eq!(listed["data"].as_array().unwrap().len(), 1, "{listed}");
    }
    assert_eq!(api.refunds().len(), 60);
    assert!(lost > 0 && broken > 0, "{lost} lost, {broken} broken");
    assert_eq!(api.answers_lost(), lost + broken);
    assert_eq!(api.refunds().iter().filter(|made| made.is_sent_back).count(), 3);
    let events = api.take_events();
    let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!((count("payment_intent.succeeded"), count("refund.created")), (60, 60));
    assert_eq!((count("charge.refunded"), count("refund.failed")), (57, 3));
}

#[test]
fn no_more_is_refunded_than_came_and_not_to_everybody() {
    let api = RefundApi::start(1, "sk").unwrap();
    let address = address(&api);
    let intent = api.pay(1_000, "PL-1");
    let until_heard = |key: &str, form: String| loop {
        if let Some((status, body)) = refund(&api, address, key, &form)
            && status != 500
        {
            break (status, body["error"]["code"].clone());
        }
    };
    assert_eq!(until_heard("a", format!("payment_intent={intent}&amount=1001")).0, 400);
    assert_eq!(until_heard("b", format!("payment_intent={intent}")).0, 200);
    let again = until_heard("c", format!("payment_intent={intent}"));
    assert_eq!(again, (400, "charge_already_refunded".into()));
    assert_eq!(until_heard("d", "payment_intent=pi_other".to_owned()), (400, "resource_missing".into()));
    let stranger = http::get(address, "/v1/refunds").unwrap();
    assert_eq!(stranger.status, 401);
}
