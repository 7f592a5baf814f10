//! Stories of a subscription, as Stripe tells them.

use std::collections::BTreeSet;

use bytes::Bytes;
use serde_json::{Value, json};

use super::{BillingAttention, BillingDerived, BillingFacts, BillingStatus, GRACE, anchor, due, view};
use crate::event::Stored;
use crate::settlement::decide::Aggregate;
use crate::settlement::reading::{Reading, References, UnreadableEvent};
use crate::settlement::stripe;
use crate::settlement::world::{NOW, World};
use crate::state::{Key, Kind, State, UNHEARD};
use crate::time::Time;

const INDEX: &str = include_str!("../fixtures/stripe/index.json");
pub const SUBSCRIPTION: [&str; 20] = [
    include_str!("../fixtures/stripe/subscription.01.customer.created.json"),
    include_str!("../fixtures/stripe/subscription.02.customer.subscription.created.json"),
    include_str!("../fixtures/stripe/subscription.03.invoice.created.json"),
    include_str!("../fixtures/stripe/subscription.04.invoice.finalized.json"),
    include_str!("../fixtures/stripe/subscription.05.charge.succeeded.json"),
    include_str!("../fixtures/stripe/subscription.06.payment_intent.succeeded.json"),
    include_str!("../fixtures/stripe/subscription.07.invoice.paid.json"),
    include_str!("../fixtures/stripe/subscription.08.invoice.payment_succeeded.json"),
    include_str!("../fixtures/stripe/subscription.09.invoice_payment.paid.json"),
    include_str!("../fixtures/stripe/subscription.10.customer.subscription.updated.json"),
    include_str!("../fixtures/stripe/subscription.11.checkout.session.completed.json"),
    include_str!("../fixtures/stripe/subscription.12.customer.subscription.updated.json"),
    include_str!("../fixtures/stripe/subscription.13.invoice.created.json"),
    include_str!("../fixtures/stripe/subscription.14.invoice.payment_failed.json"),
    include_str!("../fixtures/stripe/subscription.15.customer.subscription.updated.json"),
    include_str!("../fixtures/stripe/subscription.16.invoice.paid.json"),
    include_str!("../fixtures/stripe/subscription.17.invoice_payment.paid.json"),
    include_str!("../fixtures/stripe/subscription.18.customer.subscription.updated.json"),
    include_str!("../fixtures/stripe/subscription.19.customer.subscription.updated.json"),
    include_str!("../fixtures/stripe/subscription.20.customer.subscription.deleted.json"),
];
pub const LEGACY: [&str; 3] = [
    include_str!("../fixtures/stripe/subscription_legacy_api.01.customer.subscription.created.json"),
    include_str!("../fixtures/stripe/subscription_legacy_api.02.invoice.paid.json"),
    include_str!("../fixtures/stripe/subscription_legacy_api.03.payment_intent.succeeded.json"),
];

/// What is known of everybody after events were settled.
#[derive(Default)]
pub struct Books {
    world: World,
    pub announced: Vec<String>,
}

impl Books {
    pub fn after<'e>(events: impl IntoIterator<Item = &'e str>) -> Self {
        let mut books = Self::default();
        events.into_iter().for_each(|event| books.arrives(event));
        books
    }

    /// With this record to begin with.
    pub fn with(facts: &BillingFacts) -> Self {
        let mut books = Self::default();
        let key = Key::new(Kind::Billing, facts.born.clone().unwrap());
        let names = facts
            .names
            .iter()
            .cloned()
            .chain(facts.claims())
            .map(|name| (BillingFacts::full(&name), key.clone()));
        books.world.loaded.names.extend(names);
        let (index, facts) = (facts.derivation().index, serde_json::to_string(facts).unwrap());
        let state = State { key: key.clone(), version: 1, facts, index, created_at: NOW, changed_at: NOW };
        books.world.loaded.states.insert(key, state);
        books
    }

    pub fn arrives(&mut self, event: &str) {
        self.world.hears(&serde_json::from_str(event).unwrap());
        let told = self.world.told.drain(..).filter(|told| told.event_type.starts_with("billing."));
        // Behind provider, account, mode and the object that it is called after.
        let key = |id: &str| id.splitn(5, '/').nth(4).unwrap().to_owned();
        self.announced.extend(told.map(|told| key(&told.id)));
    }

    /// The only one there is, also if it is deleted.
    pub fn facts(&self) -> BillingFacts {
        let is_known = |state: &&State| {
            state.key.kind == Kind::Billing && state.index.status.as_deref() != Some(UNHEARD)
        };
        let states = self.world.loaded.states.values().filter(is_known);
        let known: Vec<BillingFacts> =
            states.map(|state| BillingFacts::parse(&state.facts).unwrap()).collect();
        let mut standing: Vec<BillingFacts> =
            known.into_iter().filter(|facts| facts.merged_into.is_none()).collect();
        assert_eq!(standing.len(), 1, "{standing:?}");
        standing.remove(0)
    }

    fn derived(&self) -> BillingDerived {
        BillingDerived::of(&self.facts())
    }

    fn status(&self) -> BillingStatus {
        self.derived().status
    }
}

fn read(event: &str) -> Result<Reading, UnreadableEvent> {
    let body: Value = serde_json::from_str(event).unwrap();
    let stored = Stored {
        event_type: body["type"].as_str().unwrap().to_owned(),
        livemode: body["livemode"].as_bool(),
        account: None,
        body: Bytes::copy_from_slice(event.as_bytes()),
        ..Stored::nothing()
    };
    stripe::read(&stored, &References::default()).map(Option::unwrap_or_default)
}

pub fn event(kind: &str, created: i64, object: Value) -> String {
    json!({"type": kind, "created": created, "livemode": false, "data": {"object": object}}).to_string()
}

pub fn subscription(what: &str, at: i64, status: &str) -> String {
    let object = json!({
        "object": "subscription", "id": "sub_1", "customer": "cus_1", "status": status, "currency": "jpy",
        "metadata": {"tenant_id": "office"}, "trial_end": 10,
    });
    event(&format!("customer.subscription.{what}"), at, object)
}

/// It pays for a period of ten.
pub fn invoice(id: &str, what: &str, at: i64, status: &str, paid: i64, through: i64) -> String {
    let line = json!({"subscription": "sub_1", "period": {"start": through - 10, "end": through}});
    let object = json!({
        "object": "invoice", "id": id, "customer": "cus_1", "subscription": "sub_1", "status": status,
        "currency": "jpy", "amount_due": 500, "amount_paid": paid, "lines": {"data": [line]},
        "status_transitions": {"paid_at": (status == "paid").then_some(at)},
    });
    event(&format!("invoice.{what}"), at, object)
}

fn scenario(name: &str) -> Value {
    let index: Value = serde_json::from_str(INDEX).unwrap();
    let scenarios = index["scenarios"].as_array().unwrap();
    scenarios.iter().find(|scenario| scenario["scenario"] == name).unwrap().clone()
}

/// Compares with what a scenario expects, in the provider's words.
pub fn check(name: &str, after: Option<&str>, facts: &BillingFacts, now: i64) {
    let scenario = scenario(name);
    let expected =
        after.map_or(&scenario["expected_final"], |event| &scenario["expected_after_event"][event]);
    let derived = BillingDerived::of(facts);
    for (field, expected) in expected.as_object().unwrap() {
        let found = match &**field {
            "subscription_status" => json!(derived.status.name().replace("cancelled", "canceled")),
            "access" => json!(derived.access(Time::from_seconds(now), GRACE)),
            "paid_invoices" => json!(derived.paid_invoices),
            "amount_paid_total" => json!(derived.amount_paid_total),
            "paid_through" => json!(derived.paid_through.unwrap().seconds()),
            "invoice_status" => {
                facts.invoices.iter().map(|(id, invoice)| (id.clone(), json!(invoice.status))).collect()
            }
            "links" => {
                let intent = |intents: &BTreeSet<String>| json!(intents.iter().next().unwrap());
                let links = facts.invoices.iter().map(|(id, invoice)| (id.clone(), intent(&invoice.intents)));
                json!({"invoice_to_payment_intent": links.collect::<Value>()})
            }
            other => panic!("{other} is not compared"),
        };
        assert_eq!(&found, expected, "{name} {field}");
    }
}

#[test]
fn d3_a_subscription_as_it_happens() {
    let mut books = Books::default();
    let mut told = Vec::new();
    for (n, event) in SUBSCRIPTION.iter().enumerate() {
        books.arrives(event);
        if n + 1 == 18 {
            check("subscription", Some("18"), &books.facts(), 1_783_134_982);
        }
        told.extend(books.announced.drain(..).map(|key| (n + 1, key)));
    }
    check("subscription", None, &books.facts(), 1_785_464_182);
    let expected = [
        (7, "billing.payment_succeeded/in_testD0048FAKE"),
        (7, "billing.active/sub_testD0046FAKE/1780280182"),
        (14, "billing.past_due/sub_testD0046FAKE/1782875782"),
        (16, "billing.payment_succeeded/in_testD0055FAKE"),
        (16, "billing.active/sub_testD0046FAKE/1783134982"),
        (20, "billing.cancelled/sub_testD0046FAKE/1785464182"),
    ];
    assert_eq!(told, expected.map(|(n, key)| (n, key.to_owned())));
    assert_eq!(books.derived().tenant.as_deref(), Some("t_1"));
}

#[test]
fn d3_late_old_events_announce_no_status() {
    let mut books = Books::after(SUBSCRIPTION.into_iter().rev());
    let (payments, turns): (Vec<_>, Vec<_>) =
        books.announced.drain(..).partition(|key| key.starts_with("billing.payment_succeeded/"));
    assert_eq!(turns, ["billing.cancelled/sub_testD0046FAKE/1785464182"]);
    assert_eq!(payments.len(), 2);
    SUBSCRIPTION.iter().for_each(|event| books.arrives(event));
    assert!(books.announced.is_empty(), "{:?}", books.announced);
}

#[test]
fn d3_one_invoice_is_one_recorded_payment() {
    let paid = |what| invoice("in_1", what, 5, "paid", 500, 20);
    let object = json!({
        "object": "invoice_payment", "id": "inpay_1", "invoice": "in_1", "status": "paid",
        "payment": {"type": "payment_intent", "payment_intent": "pi_1"},
    });
    let payment = event("invoice_payment.paid", 5, object);
    let books =
        Books::after([&*payment, &*paid("paid"), &*paid("payment_succeeded"), &*payment, &*paid("updated")]);
    assert_eq!(books.announced, ["billing.payment_succeeded/in_1"]);
    let derived = books.derived();
    assert_eq!((derived.paid_invoices, derived.amount_paid_total), (1, 500));
    assert_eq!(derived.attention, Some(BillingAttention::Unlinked));
}

#[test]
fn d3_a_trial_becomes_active_by_the_payment_at_its_end() {
    let mut books = Books::after([
        &*subscription("created", 0, "trialing"),
        &*invoice("in_free", "paid", 0, "paid", 0, 10),
    ]);
    assert_eq!(books.status(), BillingStatus::Trialing, "a trial's invoice over nothing is no payment");
    assert_eq!(books.derived().paid_invoices, 0);
    books.arrives(&invoice("in_fee", "paid", 1, "paid", 300, 10));
    assert_eq!(books.status(), BillingStatus::Trialing, "a fee paid during the trial does not end it");
    books.arrives(&invoice("in_1", "paid", 10, "paid", 500, 20));
    assert_eq!(books.status(), BillingStatus::Active);
    books.arrives(&subscription("updated", 10, "active"));
    books.arrives(&subscription("trial_will_end", 7, "trialing"));
    assert_eq!(books.status(), BillingStatus::Active);
    let turns = ["billing.trialing/sub_1/0", "billing.active/sub_1/10"];
    let told: Vec<_> = books.announced.iter().filter(|key| !key.contains("payment_succeeded")).collect();
    assert_eq!(told, turns);
}

#[test]
fn d3_failure_recovery_and_deletion_without_a_word_of_the_subscription_itself() {
    let mut books = Books::after([&*subscription("created", 20, "active")]);
    let steps = [
        (invoice("in_1", "payment_failed", 20, "open", 0, 40), BillingStatus::PastDue),
        (invoice("in_1", "payment_failed", 23, "open", 0, 40), BillingStatus::PastDue),
        (invoice("in_1", "paid", 23, "paid", 500, 40), BillingStatus::Active),
        (subscription("updated", 23, "past_due"), BillingStatus::Active),
        (subscription("updated", 24, "past_due"), BillingStatus::PastDue),
        (invoice("in_1", "payment_failed", 22, "open", 0, 40), BillingStatus::PastDue),
        (subscription("updated", 30, "active"), BillingStatus::Active),
        (invoice("in_0", "payment_failed", 31, "open", 0, 30), BillingStatus::Active),
        (invoice("in_2", "payment_failed", 40, "open", 0, 50), BillingStatus::PastDue),
        (invoice("in_2", "voided", 41, "void", 0, 50), BillingStatus::Active),
        (subscription("deleted", 50, "canceled"), BillingStatus::Cancelled),
        (subscription("updated", 60, "active"), BillingStatus::Cancelled),
    ];
    for (n, (event, expected)) in steps.into_iter().enumerate() {
        books.arrives(&event);
        assert_eq!(books.status(), expected, "step {n}");
    }
}

#[test]
fn d3_one_payment_does_not_cure_another_failure() {
    let mut books = Books::after([
        &*invoice("in_1", "payment_failed", 20, "open", 0, 40),
        &*invoice("in_2", "payment_failed", 20, "open", 0, 40),
        &*subscription("updated", 20, "past_due"),
        &*invoice("in_1", "paid", 21, "paid", 500, 40),
    ]);
    assert_eq!(books.status(), BillingStatus::PastDue);
    books.arrives(&invoice("in_2", "paid", 22, "paid", 500, 40));
    assert_eq!(books.status(), BillingStatus::Active);
    books.arrives(&subscription("updated", 22, "active").replace("office", "other"));
    assert_eq!(books.derived().attention, Some(BillingAttention::SeveralTenants));
}

#[test]
fn d3_a_status_that_turns_within_a_second_is_told_each_time() {
    let books = Books::after([
        &*subscription("created", 5, "active"),
        &*invoice("in_1", "payment_failed", 5, "open", 0, 40),
        &*invoice("in_1", "paid", 5, "paid", 0, 40),
        &*invoice("in_2", "payment_failed", 5, "open", 0, 50),
    ]);
    let turns = ["active/sub_1/5", "past_due/sub_1/5#1", "active/sub_1/5#2", "past_due/sub_1/5#3"];
    assert_eq!(books.announced, turns.map(|turn| format!("billing.{turn}")));
}

#[test]
fn d3_access_ends_with_what_was_paid() {
    let failed = invoice("in_2", "payment_failed", 20, "open", 0, 30);
    let paid = invoice("in_1", "paid", 10, "paid", 500, 20);
    let cases = [
        (vec![subscription("created", 0, "trialing")], 9, true, Some(10)),
        (vec![subscription("created", 0, "trialing")], 10, false, Some(10)),
        (vec![subscription("created", 0, "incomplete")], 0, false, None),
        (vec![subscription("updated", 10, "active"), paid.clone()], 19, true, Some(20)),
        (vec![subscription("updated", 10, "active"), paid.clone()], 20, false, Some(20)),
        (vec![subscription("updated", 10, "active")], 99, true, None),
        (vec![subscription("updated", 10, "active"), paid.clone(), failed.clone()], 19, true, Some(20)),
        (vec![subscription("updated", 10, "active"), paid.clone(), failed], 20, false, Some(20)),
        (vec![subscription("updated", 10, "unpaid")], 0, false, None),
        (vec![subscription("updated", 10, "paused")], 0, false, None),
        (vec![subscription("updated", 10, "incomplete_expired")], 0, false, None),
        (vec![subscription("deleted", 10, "canceled"), paid], 0, false, Some(20)),
    ];
    for (events, now, access, until) in cases {
        let derived = Books::after(events.iter().map(String::as_str)).derived();
        let found = (derived.access(Time::from_seconds(now), 0), derived.entitled_until.map(Time::seconds));
        assert_eq!(found, (access, until), "{events:?}");
    }
}

#[test]
fn d3_access_ends_by_the_clock_after_the_grace() {
    let leaving = json!({
        "object": "subscription", "id": "sub_1", "customer": "cus_1", "status": "active", "cancel_at": 15,
        "current_period_end": 20,
    });
    let paid = invoice("in_1", "paid", 10, "paid", 500, 20);
    let failed = invoice("in_2", "payment_failed", 20, "open", 0, 30);
    let active = subscription("updated", 10, "active");
    // (what is known, the last second of access without and with a grace of five seconds)
    let cases = [
        (vec![active.clone(), paid.clone()], 19, 24),
        (vec![subscription("created", 0, "trialing")], 9, 14),
        (vec![event("customer.subscription.updated", 10, leaving)], 14, 19),
        (vec![active, paid, failed], 19, 19),
    ];
    for (events, plain, graceful) in cases {
        let derived = Books::after(events.iter().map(String::as_str)).derived();
        for (last, grace) in [(plain, 0), (graceful, 5_000)] {
            assert!(derived.access(Time::from_seconds(last), grace), "{events:?}");
            assert!(!derived.access(Time::from_seconds(last + 1), grace), "{events:?}");
        }
    }
}

#[test]
fn d3_of_several_subscriptions_the_best_decides() {
    let other = |what: &str, at, status: &str| subscription(what, at, status).replace("sub_1", "sub_2");
    let mut books =
        Books::after([&*subscription("created", 10, "active"), &*other("updated", 5, "past_due")]);
    assert_eq!(books.status(), BillingStatus::Active);
    books.arrives(&subscription("deleted", 12, "canceled"));
    assert_eq!(books.status(), BillingStatus::PastDue);
    books.arrives(&other("deleted", 13, "canceled"));
    assert_eq!(books.derived().subscription.as_deref(), Some("sub_2"));
    let turns = ["active/sub_1/10", "past_due/sub_2/12", "cancelled/sub_2/13"];
    assert_eq!(books.announced, turns.map(|turn| format!("billing.{turn}")));
}

#[test]
fn d1_an_invoice_leads_to_its_payment_in_both_shapes() {
    for (event, invoice, names) in [
        (SUBSCRIPTION[8], "in_testD0048FAKE", ["stripe/-/test/pi_testD0050FAKE"]),
        (LEGACY[1], "in_testD0061FAKE", ["stripe/-/test/pi_testD0063FAKE"]),
    ] {
        let payment = read(event).unwrap().payment.unwrap();
        assert_eq!(payment.names, names.map(str::to_owned).into());
        assert_eq!(payment.invoices, [invoice.to_owned()].into());
    }
    assert_eq!(read(SUBSCRIPTION[6]).unwrap().payment, None);
}

#[test]
fn d3_what_is_unknown_missing_or_expanded_is_taken_as_it_comes() {
    let read_object = |kind: &str, object| read(&event(kind, 7, object));
    let odd = json!({"object": "subscription", "id": "sub_1", "status": "hibernating", "customer": {"id": "cus_1", "x": 1}});
    let part = read_object("customer.subscription.updated", odd).unwrap().billing.unwrap();
    assert_eq!(BillingDerived::of(&part).status, BillingStatus::Incomplete);
    assert_eq!(part.claims(), ["stripe/-/test/customer/cus_1"]);

    let nothing = [
        ("invoice.upcoming", json!({"object": "invoice", "id": "upcoming_1", "subscription": "sub_1"})),
        ("invoice.upcoming", json!({"object": "invoice", "amount_due": 5})),
        ("invoice_payment.paid", json!({"object": "invoice_payment", "id": "inpay_1"})),
        ("customer.created", json!({"object": "customer", "id": "cus_1", "metadata": {}})),
        (
            "checkout.session.expired",
            json!({"object": "checkout.session", "id": "cs_1", "mode": "subscription"}),
        ),
    ];
    for (kind, object) in nothing {
        assert_eq!(read_object(kind, object).unwrap().billing, None, "{kind}");
    }
    let customer = json!({"object": "customer", "id": "cus_1", "metadata": {"tenant": "office"}});
    let part = read_object("customer.created", customer).unwrap().billing.unwrap();
    assert_eq!(part.claims(), ["test/billing/office", "stripe/-/test/customer/cus_1"]);

    let absurd = json!({"object": "invoice", "id": "in_1", "amount_due": -1});
    assert_eq!(read_object("invoice.paid", absurd), Err(UnreadableEvent::Amount("-1".into())));
    let nameless = json!({"object": "subscription", "status": "active"});
    assert!(matches!(read_object("customer.subscription.updated", nameless), Err(UnreadableEvent::Body(_))));
}

#[test]
fn d3_paid_elsewhere_is_paid() {
    let object = json!({
        "object": "invoice", "id": "in_1", "status": "paid", "amount_due": 500, "amount_paid": 0,
        "paid_out_of_band": true, "currency": "jpy", "subscription": "sub_1", "metadata": {"tenant": "office"},
    });
    let derived = Books::after([&*event("invoice.paid", 7, object)]).derived();
    assert_eq!((derived.paid_invoices, derived.amount_paid_total, derived.attention), (1, 500, None));
}

#[test]
fn d3_a_single_invoice_is_a_payment_and_no_subscription() {
    let object = json!({
        "object": "invoice", "id": "in_1", "status": "paid", "amount_due": 500, "amount_paid": 500, "currency": "jpy",
        "customer": "cus_1", "payment_intent": "pi_1", "metadata": {"tenant": "office"},
    });
    let reading = read(&event("invoice.paid", 7, object)).unwrap();
    assert_eq!(reading.billing, None);
    let payment = reading.payment.unwrap();
    assert_eq!(payment.tenants, ["office".to_owned()].into(), "it is the tenant's whose invoice it is");
    assert!(!payment.says_something());
}

#[test]
fn d3_the_view_tells_all_of_it() {
    let books = Books::after(LEGACY);
    let facts = books.facts();
    let seen = view("bill_1", &facts, &books.derived(), Time::from_seconds(1_782_000_000), GRACE);
    let expected = [
        ("/object", json!("billing")),
        ("/status", json!("active")),
        ("/access", json!(true)),
        ("/entitled_until", json!("2026-07-01T02:16:22.000Z")),
        ("/current_period/end", json!("2026-07-01T02:16:22.000Z")),
        ("/tenant", Value::Null),
        ("/attention", json!("unlinked")),
        ("/livemode", json!(false)),
        ("/subscriptions/0/status", json!("active")),
        ("/invoices/0/status", json!("paid")),
        ("/invoices/0/payment_intents", json!(["pi_testD0063FAKE"])),
        ("/references/customers", json!(["cus_testD0001FAKE"])),
    ];
    for (pointer, value) in expected {
        assert_eq!(seen.pointer(pointer), Some(&value), "{pointer}");
    }
    assert_eq!(anchor(&facts), "stripe/-/test/sub_testD0059FAKE");
    let merged =
        BillingFacts { merged_into: Some("bill_2".into()), emitted: BTreeSet::new(), ..facts.clone() };
    assert_eq!(due(&merged, &BillingDerived::of(&merged)), []);
}

#[test]
fn d3_statuses_have_names() {
    for status in BillingStatus::ALL {
        assert_eq!(BillingStatus::parse(status.name()), Some(status));
    }
    assert_eq!(BillingStatus::parse("canceled"), None);
}
