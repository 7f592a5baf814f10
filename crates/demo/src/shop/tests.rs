use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::*;

const NOW: u64 = 1_780_000_000;

fn open(seed: u64) -> Shop {
    Shop::open(seed, 2_000, NOW, "/in", "whsec_shop")
}

fn body(event: &ShopEvent) -> Value {
    serde_json::from_str(&event.body).unwrap()
}

fn request(traffic: &dyn Traffic, n: u64) -> (String, String) {
    let mut bytes = Vec::new();
    traffic.write(n, &mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

#[test]
fn h6_the_same_seed_is_the_same_traffic() {
    let (one, same, other) = (open(7), open(7), open(8));
    assert_eq!((&one.sales, &one.events, &one.requests), (&same.sales, &same.events, &same.requests));
    let ids = |shop: &Shop| shop.events.iter().map(|event| event.id.clone()).collect::<BTreeSet<_>>();
    assert_eq!(ids(&one).len(), one.events.len(), "every event has an id of its own");
    assert!(ids(&one).is_disjoint(&ids(&other)));
}

#[test]
fn h6_every_course_is_taken_and_events_repeat_overtake_and_come_late() {
    let shop = open(7);
    let courses: BTreeSet<_> = shop.sales.iter().map(|sale| sale.course).collect();
    assert_eq!(courses, Course::ALL.map(|(course, _)| course).into());
    assert_eq!(Course::ALL.iter().map(|(_, weight)| weight).sum::<u64>(), 100);
    let sent: BTreeSet<_> = shop.requests.iter().collect();
    assert_eq!(sent.len(), shop.events.len(), "everything is sent");
    let repeats = shop.requests() - shop.events.len() as u64;
    assert_eq!(shop.repeats_among(u64::MAX), repeats);
    assert_eq!((shop.repeats_among(0), shop.repeats_among(1)), (0, 0));
    assert!((8..25).contains(&(repeats * 100 / shop.events.len() as u64)), "{repeats}");
    let overtaken = shop.requests.windows(2).filter(|pair| pair[0] > pair[1]).count();
    assert!(overtaken > shop.events.len() / 10, "{overtaken}");
    let far = shop.events.len() / 10;
    let late = shop.requests.iter().enumerate().filter(|(at, event)| *at > **event * 11 / 10 + far).count();
    assert!(late > 20, "{late}");
}

#[test]
fn h6_what_moved_by_the_sales_is_what_the_events_say() {
    let shop = open(9);
    let mut said = BTreeMap::<String, Money>::new();
    for event in &shop.events {
        let object = body(event)["data"]["object"].clone();
        let money = said.entry(object["currency"].as_str().unwrap_or_default().to_owned()).or_default();
        let number = |name: &str| object[name].as_i64().unwrap();
        match event.kind {
            "payment_intent.succeeded" => money.charged += number("amount_received"),
            "refund.updated" => money.refunded += number("amount"),
            "charge.dispute.closed" => {
                let entries = object["balance_transactions"].as_array().unwrap();
                money.disputed -= entries.iter().map(|entry| entry["net"].as_i64().unwrap()).sum::<i64>();
            }
            _ => {}
        }
    }
    said.retain(|_, money| *money != Money::default());
    let own: BTreeMap<_, _> =
        shop.money().into_iter().map(|(name, money)| (name.to_owned(), money)).collect();
    assert_eq!(said, own);
    assert_eq!(own.keys().collect::<Vec<_>>(), ["jpy", "usd"]);
    assert!(own.values().all(|money| money.refunded > 0 && money.disputed > 0 && money.left() > 0));
    let names: String = shop.events.iter().map(|event| event.body.as_str()).collect();
    assert!(names.contains("花子") && names.contains("García") && names.contains("桜まつり"));
}

#[test]
fn h6_a_forgery_is_never_what_stripe_would_have_sent() {
    use sekisho_core::provider::{self, Request, Setup};
    use sekisho_core::{Secret, Time};

    let shop = Arc::new(open(7));
    let setup = Setup { secrets: vec![Secret::new("whsec_shop")], ..Setup::default() };
    let scheme = provider::find("stripe").unwrap().open(&setup).unwrap();
    let is_genuine = |traffic: &dyn Traffic, n| {
        let mut bytes = Vec::new();
        traffic.write(n, &mut bytes);
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let pairs = head.lines().filter_map(|line| line.split_once(": "));
        let headers: http::HeaderMap = pairs
            .map(|(name, value)| (name.parse::<http::HeaderName>().unwrap(), value.parse().unwrap()))
            .collect();
        let method = http::Method::POST;
        let body = &bytes[end + 4..];
        let request = Request { method: &method, headers: &headers, query: "", body, certificate: None };
        provider::verify(scheme.as_ref(), request, Time::from_seconds(now_seconds() as i64)).is_ok()
    };
    let forger = Forger::beside(Arc::clone(&shop), 1);
    for n in 0..40 {
        assert!(is_genuine(&*shop, n));
        assert!(!is_genuine(&forger, n), "{}", FORGERIES[n as usize % FORGERIES.len()]);
    }
    let (head, body) = request(&forger, 2);
    assert!(head.starts_with("POST /in ") && body.contains(&forger.event_id(2)), "{head}\n{body}");
}
