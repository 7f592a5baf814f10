//! What belongs together, and above all what does not: small stories over a store that is a map.

use bytes::Bytes;
use serde_json::{Value, json};

use super::*;
use crate::event::Trust;
use crate::money::Currency;
use crate::settlement::payment::{Facts, Ours};
use crate::settlement::reading::order_name;
use crate::settlement::{self, Origin, References};
use crate::state::State;

const NOW: Time = Time::from_ms(1_780_000_000_000);

#[derive(Default)]
struct World {
    loaded: Loaded,
    seq: i64,
    postings: Vec<Posting>,
    told: Vec<Announcement>,
}

impl World {
    fn event(&mut self, origin: Origin, event: &Value) -> Input {
        self.seq += 1;
        let event = Stored {
            seq: Seq::from_i64(self.seq),
            received_at: NOW,
            source: "source".into(),
            event_id: format!("evt_{}", self.seq),
            event_type: event["type"].as_str().unwrap().to_owned(),
            created_at: None,
            object: None,
            account: event["account"].as_str().map(str::to_owned),
            livemode: event["livemode"].as_bool(),
            trust: Trust::Signed,
            headers: "[]".into(),
            body: Bytes::from(event.to_string()),
        };
        let reading = settlement::read(origin, &event, &References::default()).unwrap().unwrap();
        Input { seq: event.seq, reading, cause: Cause::of(&event) }
    }

    fn hears(&mut self, event: &Value) {
        let input = self.event(STRIPE, event);
        self.settle(&[input]);
    }

    /// The app announces a payment, of any mode or of one.
    fn announces(&mut self, reference: &str, livemode: Option<bool>, tenant: Option<&str>) {
        self.seq += 1;
        let modes = livemode.map_or(vec![None, Some(true), Some(false)], |mode| vec![None, Some(mode)]);
        let ours = Ours {
            amount: 1000,
            currency: Currency::parse("jpy"),
            tenant: tenant.map(str::to_owned),
            reference: Some(reference.to_owned()),
            ..Ours::default()
        };
        let facts = Facts { livemode, ours: [(format!("pay_{reference}"), ours)].into(), ..Facts::default() };
        let names = modes.into_iter().map(|mode| order_name(mode, None, reference)).collect();
        let reading = Reading { payment: Some(Part { names, facts }), billing: None };
        self.settle(&[Input { seq: Seq::from_i64(self.seq), reading, cause: Cause::default() }]);
    }

    /// As a store would: only what is named is loaded, and every guard holds.
    fn settle(&mut self, inputs: &[Input]) {
        let wanted = names(inputs);
        let mut seen = Loaded { states: self.loaded.states.clone(), ..Loaded::default() };
        let known = self.loaded.names.iter().filter(|(name, _)| wanted.contains(*name));
        seen.names.extend(known.map(|(name, key)| (name.clone(), key.clone())));
        for change in decide(inputs, &seen, &|_| false, NOW) {
            assert_eq!(change.refused, None);
            let sum: i64 = change.postings.iter().map(|line| line.amount).sum();
            assert_eq!(sum, 0, "{:?}", change.postings);
            for naming in change.names {
                let was = self.loaded.names.insert(naming.name.clone(), naming.key.clone());
                assert_eq!(was, naming.was, "{} would be stale", naming.name);
            }
            for write in change.writes {
                let Write { key, version, facts, index } = write;
                assert_eq!(self.loaded.states.get(&key).map_or(0, |state| state.version), version);
                let (created_at, changed_at) = (NOW, NOW);
                let state =
                    State { key: key.clone(), version: version + 1, facts, index, created_at, changed_at };
                self.loaded.states.insert(key, state);
            }
            self.postings.extend(change.postings);
            self.told.extend(change.announcements);
        }
    }

    /// Every payment or billing that stands, by (reference or tenant, status, amount received, mode).
    fn payments(&self) -> Vec<(String, String, i64, Option<bool>)> {
        let states = self.loaded.states.values().filter(|state| state.key.kind == Kind::Payment);
        let facts = states.map(|state| serde_json::from_str::<Facts>(&state.facts).unwrap());
        let mut all: Vec<_> = facts
            .filter(|facts| facts.merged_into.is_none())
            .map(|facts| {
                let derived = payment::Derived::of(&facts);
                let reference = derived.reference.unwrap_or_default();
                (reference, derived.status.name().to_owned(), derived.received, facts.livemode)
            })
            .collect();
        all.sort();
        all
    }

    fn told(&self) -> Vec<&str> {
        self.told.iter().map(|told| &*told.event_type).collect()
    }
}

const STRIPE: Origin = Origin { provider: "stripe", livemode: None };

fn intent(id: &str, livemode: bool, received: i64, metadata: &Value) -> Value {
    let status = if received > 0 { "succeeded" } else { "requires_payment_method" };
    json!({
        "type": "payment_intent.succeeded", "livemode": livemode,
        "data": { "object": {
            "object": "payment_intent", "id": id, "status": status, "amount": 1000, "amount_received": received,
            "currency": "jpy", "metadata": metadata,
        } },
    })
}

fn session(intent: &str, reference: &str, link: Option<&str>) -> Value {
    json!({
        "type": "checkout.session.completed", "livemode": true,
        "data": { "object": {
            "object": "checkout.session", "id": format!("cs_{intent}"), "mode": "payment", "status": "complete",
            "payment_status": "paid", "payment_intent": intent, "client_reference_id": reference, "payment_link": link,
            "amount_total": 1000, "currency": "jpy",
        } },
    })
}

fn seen(reference: &str, status: &str, received: i64, livemode: bool) -> (String, String, i64, Option<bool>) {
    (reference.to_owned(), status.to_owned(), received, Some(livemode))
}

#[test]
fn d1_live_and_test_of_one_order_never_meet_not_even_in_one_batch() {
    let mut world = World::default();
    world.announces("o", None, None);
    let live = world.event(STRIPE, &intent("pi_live", true, 0, &json!({ "order_id": "o" })));
    let test = world.event(STRIPE, &intent("pi_test", false, 1000, &json!({ "order_id": "o" })));
    world.settle(&[live, test]);
    assert_eq!(world.payments(), [seen("o", "paid", 1000, false), seen("o", "unpaid", 0, true)]);
}

#[test]
fn d1_a_customer_cannot_choose_whose_order_a_payment_link_pays() {
    let mut world = World::default();
    world.announces("victim", Some(true), None);
    world.hears(&intent("pi_1", true, 100, &json!({})));
    world.hears(&session("pi_1", "victim", Some("plink_1")));
    assert_eq!(world.payments(), [seen("", "paid", 100, true), seen("victim", "unpaid", 0, true)]);
}

#[test]
fn d1_two_that_the_app_announced_are_never_made_one() {
    let mut world = World::default();
    world.announces("one", Some(true), None);
    world.announces("two", Some(true), None);
    world.hears(&intent("pi_1", true, 1000, &json!({ "order_id": "one" })));
    world.hears(&session("pi_1", "two", None));
    world.hears(&intent("pi_2", true, 1000, &json!({ "order_id": "two" })));
    assert_eq!(world.payments(), [seen("one", "paid", 1000, true), seen("two", "paid", 1000, true)]);
    let conflicts =
        world.loaded.states.values().filter(|state| state.index.attention.as_deref() == Some("conflict"));
    assert_eq!(conflicts.count(), 1);
}

#[test]
fn d1_one_reference_of_two_tenants_or_accounts_is_two_orders() {
    let mut world = World::default();
    world.announces("o", None, Some("a"));
    world.hears(&intent("pi_b", true, 1000, &json!({ "order_id": "o", "tenant_id": "b" })));
    world.hears(&intent("pi_a", true, 1000, &json!({ "order_id": "o", "tenant_id": "a" })));
    assert_eq!(world.payments(), [seen("o", "paid", 1000, true), seen("o", "paid", 1000, true)]);

    let mut world = World::default();
    for account in ["acct_1", "acct_2"] {
        let mut event = intent(&format!("pi_{account}"), true, 1000, &json!({ "order_id": "o" }));
        event["account"] = account.into();
        world.hears(&event);
    }
    assert_eq!(world.payments().len(), 2);
    assert_eq!(world.told(), ["payment.paid", "payment.paid"]);
}

#[test]
fn d1_a_source_that_is_said_to_be_of_one_mode_pays_nothing_of_the_other() {
    let mut world = World::default();
    world.announces("o", Some(true), None);
    let event = json!({ "type": "payment.captured", "data": {
        "resource": "payment", "id": "k_1", "status": "captured", "amount": 1000, "total": 1000, "currency": "JPY",
        "external_order_num": "o",
    } });
    let test = Origin { provider: "komoju", livemode: Some(false) };
    let input = world.event(test, &event);
    world.settle(&[input]);
    assert_eq!(world.payments(), [seen("o", "paid", 1000, false), seen("o", "unpaid", 0, true)]);
}

#[test]
fn d2_money_that_was_told_without_its_order_is_told_again_when_the_order_is_known() {
    let mut world = World::default();
    world.hears(&intent("pi_1", true, 1000, &json!({})));
    assert_eq!(world.told(), ["payment.paid"]);
    world.hears(&session("pi_1", "o", None));
    world.hears(&session("pi_1", "o", None));
    assert_eq!(world.told(), ["payment.paid", "payment.linked"]);
    assert_eq!(world.told[1].data["reference"], "o");
}

#[test]
fn d2_an_order_that_is_paid_twice_is_put_before_a_person_and_told() {
    let mut world = World::default();
    world.hears(&intent("pi_1", true, 1000, &json!({ "order_id": "o" })));
    world.hears(&intent("pi_2", true, 1000, &json!({ "order_id": "o" })));
    assert_eq!(world.payments(), [seen("o", "paid", 2000, true)]);
    assert_eq!(world.told(), ["payment.paid", "payment.overpaid"]);
}

#[test]
fn d3_two_tenants_of_one_customer_have_a_billing_each() {
    let mut world = World::default();
    for tenant in ["a", "b"] {
        world.hears(&json!({
            "type": "customer.subscription.created", "livemode": true, "created": 1_780_000_000,
            "data": { "object": {
                "object": "subscription", "id": format!("sub_{tenant}"), "customer": "cus_agency", "status": "active",
                "metadata": { "tenant_id": tenant },
            } },
        }));
    }
    let billings = world.loaded.states.values().filter(|state| state.key.kind == Kind::Billing);
    let tenants: Vec<_> = billings.map(|state| state.index.tenant.as_deref()).collect();
    assert_eq!(tenants, [Some("a"), Some("b")]);
}

#[test]
fn d7_a_mode_that_becomes_known_later_moves_the_lines_there() {
    let mut world = World::default();
    let event = json!({ "type": "PAYMENT.CAPTURE.COMPLETED", "resource_type": "capture", "resource": {
        "id": "C1", "status": "COMPLETED", "amount": { "value": "1000", "currency_code": "JPY" }, "custom_id": "o",
    } });
    let input = world.event(Origin { provider: "paypal", livemode: None }, &event);
    world.settle(&[input]);
    world.announces("o", Some(true), None);
    let mut sums: BTreeMap<(Option<bool>, &str), i64> = BTreeMap::new();
    for line in &world.postings {
        *sums.entry((line.livemode, &line.account)).or_default() += line.amount;
    }
    sums.retain(|_, sum| *sum != 0);
    assert_eq!(sums.into_keys().map(|(mode, _)| mode).collect::<Vec<_>>(), [Some(true); 2]);
}
