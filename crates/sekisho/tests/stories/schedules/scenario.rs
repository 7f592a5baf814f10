//! The fixtures: what Stripe sends in each story, what its API answers, and what must be known in the end.

use std::path::Path;

use bytes::Bytes;
use sekisho_core::event::{Stored, Trust};
use sekisho_core::money::Currency;
use sekisho_core::settlement::order::MerchantRequest;
use sekisho_core::settlement::payment::MerchantOrder;
use sekisho_core::settlement::{self, Cause, Fetch, Reading, References};
use sekisho_core::source_name::{FETCHED, Origin};
use sekisho_core::{Seq, Time};
use serde_json::Value;

pub struct Scenario {
    pub name: String,
    pub events: Vec<Reading>,
    pub expected: Value,
    /// What the merchant calls it, if the events say so.
    pub order: Option<String>,
    /// Its ids and orders end so, in this copy.
    pub mark: String,
}

/// What the app does besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Nothing: the payment is found from events.
    Found,
    /// It announces the payment by the API, at any moment.
    Announced,
    /// The same, and the money fills a customer's balance.
    TopUp,
}

impl Variant {
    pub const ALL: [Self; 3] = [Self::Found, Self::Announced, Self::TopUp];
}

impl Scenario {
    pub fn all() -> Vec<Self> {
        Self::read("FAKE")
    }

    /// The same, with ids of their own, so that many runs fit in one database.
    pub fn all_of_run(n: u64) -> Vec<Self> {
        Self::read(&format!("RUN{n}"))
    }

    fn read(mark: &str) -> Vec<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src/settlement/fixtures/stripe");
        let text = |name: &str| {
            std::fs::read_to_string(folder.join(name))
                .unwrap()
                .replace("FAKE", mark)
                .replace("\"t_1\"", &format!("\"t_{mark}\""))
        };
        let index: Value = serde_json::from_str(&text("index.json")).unwrap();
        let scenarios = index["scenarios"].as_array().unwrap().iter().map(|scenario| {
            let name = scenario["scenario"].as_str().unwrap().to_owned();
            let files = scenario["events"].as_array().unwrap().iter();
            let mut bodies: Vec<_> = files.map(|event| text(event["file"].as_str().unwrap())).collect();
            let order = bodies.iter().find_map(|body| order_in(body));
            if let Some(order) = order.as_deref().filter(|_| mark != "FAKE") {
                let marked = format!("\"{order}-{mark}\"");
                bodies = bodies.iter().map(|body| body.replace(&format!("\"{order}\""), &marked)).collect();
            }
            let order = bodies.iter().find_map(|body| order_in(body));
            let mut events: Vec<_> = bodies.iter().map(|body| read(&event(body))).collect();
            let answers = [
                ("card_paid", "card_paid"),
                ("konbini_paid", "konbini_paid"),
                ("refund_partial_then_full", "card_paid"),
            ];
            for (_, file) in answers.into_iter().filter(|(of, _)| *of == name) {
                events.push(read(&answer(&text(&format!("api.balance_transaction.{file}.json")))));
            }
            Self { name, events, expected: scenario["expected_final"].clone(), order, mark: mark.to_owned() }
        });
        scenarios.collect()
    }

    /// Everything that is said in this story.
    /// What the app itself says comes last.
    pub fn told(&self, variant: Variant) -> Vec<Reading> {
        let mut told = self.events.clone();
        let purpose = match variant {
            Variant::Found => return told,
            Variant::Announced => None,
            Variant::TopUp => Some("balance".to_owned()),
        };
        let Some(order) = &self.order else { return told };
        let ours = MerchantOrder {
            amount: self.expected["amount_received"].as_i64().unwrap_or(0).max(1),
            currency: Currency::parse("jpy"),
            customer: Some(format!("customer-{}", self.mark)),
            purpose,
            reference: Some(order.clone()),
            for_all: true,
            ..MerchantOrder::default()
        };
        // Runs in one database have ids of their own.
        let number =
            self.mark.bytes().fold(7_i64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        let order = MerchantRequest { ours, livemode: None };
        told.push(order.input(Seq::from_i64(number & 0xffff_ffff), Cause::default()).reading);
        told
    }
}

fn order_in(body: &str) -> Option<String> {
    let body: Value = serde_json::from_str(body).unwrap();
    body["data"]["object"]["metadata"]["order_id"].as_str().map(str::to_owned)
}

fn event(body: &str) -> Stored {
    let said: Value = serde_json::from_str(body).unwrap();
    Stored {
        seq: Seq::ZERO,
        received_at: Time::from_seconds(said["created"].as_i64().unwrap()),
        source: "stripe".into(),
        event_id: said["id"].as_str().unwrap().to_owned(),
        event_type: said["type"].as_str().unwrap().to_owned(),
        created_at: said["created"].as_i64().map(Time::from_seconds),
        object: None,
        account: said["account"].as_str().map(str::to_owned),
        livemode: said["livemode"].as_bool(),
        trust: Trust::Signed,
        headers: "[]".into(),
        body: Bytes::from(body.to_owned()),
    }
}

/// What the API says, as it comes in.
fn answer(body: &str) -> Stored {
    let answer: Box<serde_json::value::RawValue> = serde_json::from_str(body).unwrap();
    let said: Value = serde_json::from_str(body).unwrap();
    let fetch = Fetch::of("stripe/-/test", "balance_transaction", said["id"].as_str().unwrap()).unwrap();
    let stored = fetch.arrival(Seq::ZERO, Time::from_seconds(1_770_000_000), &answer).stored();
    assert_eq!(&*stored.source, FETCHED);
    stored
}

fn read(event: &Stored) -> Reading {
    let stripe = Origin { provider: "stripe", livemode: None };
    settlement::read(stripe, event, &References::default()).unwrap().unwrap_or_default()
}
