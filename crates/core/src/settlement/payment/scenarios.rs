//! Whole stories, as the provider tells them: whatever arrives in whatever order, as often as it likes, ends the same,
//! and the books hold at every step.

use std::collections::BTreeSet;

use bytes::Bytes;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use super::*;
use crate::event::Stored;
use crate::settlement::reading::References;
use crate::settlement::stripe;

/// What a story must end in.
struct Scenario {
    name: String,
    parts: Vec<Facts>,
    expected: Value,
}

#[expect(clippy::disallowed_methods, reason = "the stories are files")]
fn file(name: &str) -> Value {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/settlement/fixtures/stripe");
    let text = std::fs::read_to_string(format!("{folder}/{name}")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The event as it would be stored.
pub(super) fn stored(event: &Value) -> Stored {
    Stored {
        event_id: event["id"].as_str().unwrap_or_default().to_owned(),
        event_type: event["type"].as_str().unwrap().to_owned(),
        account: event["account"].as_str().map(str::to_owned),
        livemode: event["livemode"].as_bool(),
        body: Bytes::from(event.to_string()),
        ..Stored::nothing()
    }
}

fn part(event: &Value) -> Option<Facts> {
    let reading = stripe::read(&stored(event), &References::default()).unwrap();
    reading.and_then(|reading| reading.payment)
}

/// The provider's entries are read by a call and arrive as events of ours.
fn fetched() -> Vec<Facts> {
    let files = ["api.balance_transaction.card_paid.json", "api.balance_transaction.konbini_paid.json"];
    let event = |object: Value| {
        part(
            &json!({ "type": "stripe.balance_transaction", "livemode": false, "data": { "object": object } }),
        )
    };
    files.into_iter().filter_map(|name| event(file(name))).collect()
}

fn scenarios() -> Vec<Scenario> {
    let index = file("index.json");
    let fetched = fetched();
    let scenario = |scenario: &Value| {
        let events = scenario["events"].as_array().unwrap().iter();
        let mut parts: Vec<_> =
            events.filter_map(|event| part(&file(event["file"].as_str().unwrap()))).collect();
        let names: BTreeSet<_> = parts.iter().flat_map(|part| part.names.clone()).collect();
        parts.extend(fetched.iter().filter(|entry| !entry.names.is_disjoint(&names)).cloned());
        Scenario {
            name: scenario["scenario"].as_str().unwrap().to_owned(),
            parts,
            expected: scenario["expected_final"].clone(),
        }
    };
    index["scenarios"].as_array().unwrap().iter().map(scenario).collect()
}

/// The stories that are about one payment.
fn payments() -> Vec<Scenario> {
    let all = scenarios().into_iter().filter(|scenario| scenario.expected["amount_received"].is_i64());
    let found: Vec<_> = all.collect();
    assert_eq!(found.len(), 10, "no story is left out");
    found
}

/// A payment on its way: what is known, what the books hold, what was asked for.
#[derive(Default)]
struct Walk {
    facts: Facts,
    books: Lines,
    asked: Vec<PaymentDue>,
}

impl Walk {
    fn step(&mut self, part: &Facts) {
        let before = lines(&self.facts, &Derived::of(&self.facts));
        self.facts.join(part);
        let derived = Derived::of(&self.facts);
        let after = lines(&self.facts, &derived);
        for (line, amount) in before {
            *self.books.entry(line).or_default() -= amount;
        }
        for (line, amount) in &after {
            *self.books.entry(line.clone()).or_default() += amount;
        }
        self.books.retain(|_, amount| *amount != 0);
        assert_eq!(self.books, after, "the books are what the facts say");
        self.laws();
        for due in due(&self.facts, &derived, |_| true) {
            assert!(self.facts.emitted.insert(due.key.clone()), "asked twice: {}", due.key);
            self.asked.push(due);
        }
    }

    /// What holds at every step, in any order.
    fn laws(&self) {
        let mut totals: BTreeMap<Currency, i64> = BTreeMap::new();
        for (line, amount) in &self.books {
            *totals.entry(line.currency).or_default() += amount;
        }
        assert!(totals.values().all(|total| *total == 0), "{:?}", self.books);
        let posted = |wanted: &str| {
            let of = |line: &BookLine| line.cause == wanted && line.account.starts_with("provider/");
            self.books.iter().filter(|(line, _)| of(line)).map(|(_, amount)| *amount).sum::<i64>()
        };
        assert!(-posted("refunded") <= posted("captured"), "{:?}", self.books);
    }

    fn count(&self, wanted: &str) -> usize {
        let announced = |due: &&PaymentDue| matches!(&due.what, DuePart::Announce { event_type, .. } if *event_type == wanted);
        self.asked.iter().filter(announced).count()
    }
}

fn check(scenario: &Scenario, walk: &Walk) {
    let Scenario { name, expected, .. } = scenario;
    let facts = &walk.facts;
    let derived = Derived::of(facts);
    let refund = facts.refunds.values().map(|refund| refund.status).max();
    let found = json!({
        "session_status": facts.session_status(),
        "payment_status": derived.payment_status(),
        "settled": derived.received > 0,
        "failed": derived.status == PaymentStatus::Failed,
        "amount_received": derived.received,
        "amount_refunded": derived.refunded,
        "refunded": derived.status == PaymentStatus::Refunded,
        "refund_count": facts.refunds.len(),
        "refund_status": refund,
        "manual_attention": derived.attention == Some(Attention::RefundFailed),
        "fee": derived.fee,
        "net": derived.net,
        "currency": derived.currency,
        "order_ref": derived.reference,
        "fulfil_count": walk.count("payment.paid"),
        "dispute_status": derived.dispute_status,
        "dispute_fee": derived.dispute_fee,
        "disputed": derived.disputed,
        "net_of_dispute": derived.net_of_dispute,
    });
    for (field, value) in expected.as_object().unwrap().iter().filter(|(field, _)| *field != "note") {
        assert_eq!(&found[field], value, "{name}: {field}");
    }
    assert!(derived.refunded <= derived.received, "{name}");
}

/// Everything once, some of it again, in any order.
fn shuffled(parts: &[Facts], again: &[Index], order: &[u32]) -> Vec<Facts> {
    let all = parts.iter().chain(again.iter().map(|index| index.get(parts)));
    let mut keyed: Vec<_> = all.zip(order.iter().cycle()).collect();
    keyed.sort_by_key(|(_, key)| **key);
    keyed.into_iter().map(|(part, _)| part.clone()).collect()
}

#[test]
fn d1_every_story_told_in_order_ends_as_expected() {
    for scenario in payments() {
        let mut walk = Walk::default();
        scenario.parts.iter().for_each(|part| walk.step(part));
        check(&scenario, &walk);
    }
}

#[test]
fn d1_everything_of_one_story_finds_the_same_payment() {
    for scenario in payments() {
        let mut parts = scenario.parts;
        let mut names = parts.remove(0).names;
        while let Some(next) = parts.iter().position(|part| !part.names.is_disjoint(&names)) {
            names.extend(parts.remove(next).names);
        }
        assert!(parts.is_empty(), "{}: {parts:?}", scenario.name);
    }
}

#[test]
fn d3_every_payment_of_a_subscription_is_a_payment_of_its_own() {
    let all = scenarios();
    let subscription = all.iter().find(|scenario| scenario.name == "subscription").unwrap();
    let intents: BTreeSet<_> = subscription.parts.iter().flat_map(|part| part.intents.keys()).collect();
    assert_eq!(intents.len(), 1, "the session and the invoices make none");
    let legacy = all.iter().find(|scenario| scenario.name == "subscription_legacy_api").unwrap();
    assert!(legacy.parts[0].invoices.contains("in_testD0061FAKE"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn d1_any_order_and_repetition_of_a_story_ends_as_expected(
        again in prop::collection::vec(any::<Index>(), 0..6),
        order in prop::collection::vec(any::<u32>(), 14),
    ) {
        for scenario in payments_once() {
            let mut walk = Walk::default();
            shuffled(&scenario.parts, &again, &order).iter().for_each(|part| walk.step(part));
            check(scenario, &walk);
        }
    }

    #[test]
    fn d1_joining_is_commutative_associative_and_idempotent(
        first in prop::collection::vec(any::<Index>(), 0..8),
        second in prop::collection::vec(any::<Index>(), 0..8),
        third in prop::collection::vec(any::<Index>(), 0..8),
    ) {
        let (a, b, c) = (picked(&first), picked(&second), picked(&third));
        prop_assert_eq!(joined(&a, &b), joined(&b, &a));
        prop_assert_eq!(joined(&joined(&a, &b), &c), joined(&a, &joined(&b, &c)));
        prop_assert_eq!(&joined(&a, &a), &a);
        prop_assert_eq!(joined(&joined(&a, &b), &b), joined(&a, &b));
    }

    #[test]
    fn d1_facts_are_kept_and_read_back_unchanged(some in prop::collection::vec(any::<Index>(), 0..8)) {
        let facts = picked(&some);
        let text = serde_json::to_string(&facts).unwrap();
        prop_assert_eq!(serde_json::from_str::<Facts>(&text).unwrap(), facts);
    }

    #[test]
    fn d1_strange_mixtures_keep_the_books_balanced(
        some in prop::collection::vec(any::<Index>(), 0..16),
        top_up in any::<bool>(),
    ) {
        let mut walk = Walk::default();
        if top_up {
            walk.facts.customers.insert("c_1".to_owned());
            walk.facts.purposes.insert("top_up".to_owned());
        }
        some.iter().for_each(|index| walk.step(index.get(every())));
    }
}

fn joined(one: &Facts, other: &Facts) -> Facts {
    let mut facts = one.clone();
    facts.join(other);
    facts
}

/// What some events of any story add up to.
fn picked(some: &[Index]) -> Facts {
    some.iter().fold(Facts::default(), |known, index| joined(&known, index.get(every())))
}

fn every() -> &'static [Facts] {
    static ONCE: std::sync::OnceLock<Vec<Facts>> = std::sync::OnceLock::new();
    ONCE.get_or_init(|| payments_once().iter().flat_map(|one| one.parts.clone()).collect())
}

fn payments_once() -> &'static [Scenario] {
    static ONCE: std::sync::OnceLock<Vec<Scenario>> = std::sync::OnceLock::new();
    ONCE.get_or_init(payments)
}
