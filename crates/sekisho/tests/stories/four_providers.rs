//! D: what was paid by PayPal, KOMOJU, PAY.JP and Square. Every order is told twice by genuine requests: once as things
//! happened, and once backwards; and then everything comes again.

mod komoju;
mod payjp;
mod paypal;
mod square;

use std::collections::BTreeMap;

use sekisho_lab::app::{Behaviour, DemoApp};
use sekisho_lab::http;
use serde_json::{Value, json};

use crate::delivery::{came_to, route};
use crate::support::{Gateway, Letter, Place, wait_until};

const KEY: &str = "accountants-key-0123456789";

/// An order and where it must end.
struct Order {
    name: &'static str,
    /// What the app asks for, in yen.
    asked: i64,
    /// What the provider says, under ids that end so.
    events: fn(&str) -> Vec<Value>,
    status: &'static str,
    received: i64,
    refunded: i64,
    /// What the app is told, once each; and what only if it is news when it comes.
    told: &'static [&'static str],
    perhaps: &'static [&'static str],
}

/// Paid in full; each provider says by what, and how much.
const PAID: Order = Order {
    name: "paid",
    asked: 0,
    events: |_| Vec::new(),
    status: "paid",
    received: 0,
    refunded: 0,
    told: &["payment.paid"],
    perhaps: &["payment.processing", "payment.failed"],
};

/// A shop that is paid by one of them.
struct Shop {
    gateway: Gateway,
    app: DemoApp,
    sign: Box<dyn Fn(&str) -> Letter>,
}

impl Shop {
    fn open(place: &Place, source: &str, sign: impl Fn(&str) -> Letter + 'static) -> Self {
        let app = DemoApp::start(Behaviour::Ok).unwrap();
        let key = format!("[[key]]\nname = \"shop\"\nsecret = \"{KEY}\"\nscopes = [\"read\", \"write\"]\n");
        let config = format!("{source}\n{key}{}", route("settled", &app, "send = \"settled\""));
        Self { gateway: Gateway::with(place, &config), app, sign: Box::new(sign) }
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let bearer = format!("Bearer {KEY}");
        let headers = [("authorization", &*bearer), ("content-type", "application/json")];
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let answer = http::request(self.gateway.address(), method, path, &headers, &body).unwrap();
        (answer.status, serde_json::from_slice(&answer.body).unwrap_or_default())
    }

    /// The one payment that is called so, by the shop or by the provider.
    fn payment(&self, called: &str) -> Value {
        let (status, page) = self.ask("GET", &format!("/v1/payments?reference={called}"), &Value::Null);
        assert_eq!(status, 200, "{page}");
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 1, "{called} is one payment: {page}");
        items.first().cloned().unwrap_or_default()
    }

    fn sell(&self, orders: &[Order]) {
        for order in orders {
            for way in ["forth", "back"] {
                self.play(order, way);
            }
        }
        for order in orders {
            for way in ["forth", "back"] {
                self.check_told(order, &format!("{}-{way}", order.name));
            }
        }
    }

    fn play(&self, order: &Order, way: &str) {
        let reference = format!("{}-{way}", order.name);
        let mut events = (order.events)(&reference);
        if way == "back" {
            events.reverse();
        }
        let letters: Vec<_> = events.iter().map(|event| (self.sign)(&event.to_string())).collect();
        let posted = json!({ "amount": order.asked, "currency": "jpy", "reference": reference });
        assert_eq!(self.ask("POST", "/v1/payments", &posted).0, 201, "{reference}");
        for letter in letters.iter().chain(letters.iter().rev()) {
            assert_eq!(self.gateway.send(letter).status, 204, "{reference}");
        }
        let wanted = (json!(order.status), json!(order.received), json!(order.refunded));
        let mut found = Value::Null;
        let is_so = |found: &Value| {
            let field = |name: &str| found[name].clone();
            (field("status"), field("amount_received"), field("amount_refunded")) == wanted
        };
        wait_until(&format!("{reference} ends as {wanted:?}"), || {
            found = self.payment(&reference);
            is_so(&found)
        });
        for kind in ["payment_intents", "charges"] {
            for id in found["references"][kind].as_array().unwrap() {
                let same = self.payment(id.as_str().unwrap());
                assert_eq!(same["id"], found["id"], "{reference} is found by {id}, which the provider knows");
            }
        }
    }

    /// What the app heard of an order, by type, with how often.
    fn heard_of(&self, reference: &str) -> BTreeMap<String, usize> {
        let mut heard = BTreeMap::new();
        for one in came_to(&self.app, "settled") {
            let body: Value = serde_json::from_slice(&one.body).unwrap();
            // A dispute may be heard of before the payment that it is about: then only its own id says whose it is.
            let told_early = body["about"]["dispute"].as_str().is_some_and(|id| id.ends_with(reference));
            if body["data"]["reference"] == reference || told_early {
                *heard.entry(body["type"].as_str().unwrap().to_owned()).or_default() += 1;
            }
        }
        heard
    }

    fn check_told(&self, order: &Order, reference: &str) {
        wait_until(&format!("the app hears of {reference}"), || {
            let heard = self.heard_of(reference);
            order.told.iter().all(|told| heard.contains_key(*told))
        });
        let heard = self.heard_of(reference);
        let known = |kind: &str| order.told.contains(&kind) || order.perhaps.contains(&kind);
        assert!(heard.keys().all(|kind| known(kind)), "{reference}: {heard:?}");
        // Sums that were reached one after the other are announced one after the other.
        let again = |(kind, count): (&String, &usize)| *count > 1 && !kind.ends_with("refunded");
        assert!(!heard.iter().any(again), "{reference} hears something twice: {heard:?}");
    }
}

/// An object with some of its fields replaced.
fn with(mut object: Value, more: &Value) -> Value {
    for (field, value) in more.as_object().unwrap() {
        object[field] = value.clone();
    }
    object
}
