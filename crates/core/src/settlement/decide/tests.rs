//! What belongs together, and above all what does not: small stories over a store that is a map.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::settlement::billing;
use crate::settlement::payment::{Attention, Derived};
use crate::settlement::world::{STRIPE, World, orders};
use crate::source_name::Origin;
use crate::state::Kind;

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

fn charge(intent: &str, metadata: &Value) -> Value {
    json!({
        "type": "charge.succeeded", "livemode": true,
        "data": { "object": {
            "object": "charge", "id": format!("ch_{intent}"), "payment_intent": intent, "status": "succeeded",
            "paid": true, "captured": true, "amount": 1000, "amount_captured": 1000, "currency": "jpy",
            "metadata": metadata,
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
    world.hears(&charge("pi_1", &json!({ "order_id": "two" })));
    world.hears(&intent("pi_2", true, 1000, &json!({ "order_id": "two" })));
    let paid =
        [seen("one", "paid", 1000, true), seen("one", "unpaid", 0, true), seen("two", "paid", 1000, true)];
    assert_eq!(world.payments(), paid, "what could pay either pays none");
    let conflicts: Vec<_> = world
        .states(Kind::Payment)
        .filter(|state| state.index.attention.as_deref() == Some("conflict"))
        .collect();
    assert_eq!(conflicts.len(), 1);
    assert!(world.told().contains(&"payment.unlinked"), "{:?}", world.told());
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

/// Every order of a few things; of more than five, some of the orders.
fn some_orders(count: usize) -> impl Iterator<Item = Vec<usize>> {
    orders(count).into_iter().step_by(if count > 5 { 41 } else { 1 })
}

/// (tenant, received, reference) of each payment, for every order of the events, one by one and in all batches of two.
fn check_payments(events: &[Value], expected: &[(Option<&str>, i64, &str)]) {
    for order in some_orders(events.len()) {
        for size in [1, 2, events.len()] {
            let mut world = World::default();
            for batch in order.chunks(size) {
                let batch: Vec<Value> = batch.iter().map(|n| events[*n].clone()).collect();
                world.hears_all(&batch);
            }
            let mut found: Vec<_> = world
                .facts()
                .map(|facts| {
                    let derived = Derived::of(&facts);
                    (derived.tenant, derived.received, derived.reference.unwrap_or_default())
                })
                .collect();
            found.sort();
            let expected: Vec<_> = expected
                .iter()
                .map(|(tenant, received, reference)| {
                    (tenant.map(str::to_owned), *received, (*reference).to_owned())
                })
                .collect();
            assert_eq!(found, expected, "{order:?} in batches of {size}");
            let paid = world.told.iter().filter(|told| told.event_type == "payment.paid").count();
            let received = expected.iter().filter(|(_, received, _)| *received > 0).count();
            assert_eq!(paid, received, "{order:?} in batches of {size}: {:?}", world.told());
        }
    }
}

#[test]
fn d1_one_reference_of_two_tenants_is_two_payments_in_every_order() {
    let metadata = |tenant: &str| json!({ "order_id": "T", "tenant_id": tenant });
    let without = json!({ "order_id": "T" });
    let said_once = [
        intent("pi_a", true, 1000, &metadata("ta")),
        intent("pi_b", true, 1000, &metadata("tb")),
        charge("pi_a", &without),
        charge("pi_b", &without),
    ];
    check_payments(&said_once, &[(Some("ta"), 1000, "T"), (Some("tb"), 1000, "T")]);
    let said_later = [
        intent("pi_a", true, 1000, &without),
        intent("pi_b", true, 1000, &without),
        charge("pi_a", &metadata("ta")),
        charge("pi_b", &metadata("tb")),
    ];
    check_payments(&said_later, &[(Some("ta"), 1000, "T"), (Some("tb"), 1000, "T")]);
    let by_one = [said_later[0].clone(), said_later[1].clone(), said_later[2].clone()];
    check_payments(&by_one, &[(None, 1000, "T"), (Some("ta"), 1000, "T")]);
}

#[test]
fn d1_what_is_settled_in_one_batch_is_not_joined_for_that() {
    let invoice = |n: u8| {
        json!({
            "type": "invoice.paid", "livemode": true, "created": 1_780_000_000 + i64::from(n),
            "data": { "object": {
                "object": "invoice", "id": format!("in_{n}"), "status": "paid", "subscription": "sub_1",
                "customer": "cus_1", "amount_due": 1000, "amount_paid": 1000, "currency": "jpy",
                "payment_intent": format!("pi_{n}"),
            } },
        })
    };
    let link = |n: u8| {
        json!({
            "type": "invoice_payment.paid", "livemode": true, "created": 1_780_000_000,
            "data": { "object": {
                "object": "invoice_payment", "id": format!("inpay_{n}"), "invoice": format!("in_{n}"),
                "payment": { "type": "payment_intent", "payment_intent": format!("pi_{n}") },
            } },
        })
    };
    let subscribed = json!({
        "type": "customer.subscription.created", "livemode": true, "created": 1_780_000_000,
        "data": { "object": {
            "object": "subscription", "id": "sub_1", "customer": "cus_1", "status": "active",
            "metadata": { "tenant_id": "office" },
        } },
    });
    let paid = |n: u8| intent(&format!("pi_{n}"), true, 1000, &json!({}));
    let both = [(Some("office"), 1000, ""), (Some("office"), 1000, "")];
    check_payments(&[paid(1), paid(2), invoice(1), invoice(2), subscribed.clone()], &both);
    let mut newer = [invoice(1), invoice(2)];
    newer.iter_mut().for_each(|event| event["data"]["object"]["payment_intent"] = Value::Null);
    let [one, other] = newer;
    check_payments(&[paid(1), paid(2), link(1), link(2), one, other, subscribed], &both);
    check_payments(&[link(1)], &[]);
}

#[test]
fn d3_one_customer_of_two_tenants_has_a_billing_for_each_in_every_order() {
    let subscription = |tenant: &str, what: &str, at: i64, status: &str, says: bool| {
        json!({
            "type": format!("customer.subscription.{what}"), "livemode": true, "created": at,
            "data": { "object": {
                "object": "subscription", "id": format!("sub_{tenant}"), "customer": "cus_agency", "status": status,
                "metadata": if says { json!({ "tenant_id": tenant }) } else { json!({}) },
            } },
        })
    };
    let session = |tenant: &str| {
        json!({
            "type": "checkout.session.completed", "livemode": true, "created": 10,
            "data": { "object": {
                "object": "checkout.session", "id": format!("cs_{tenant}"), "mode": "subscription", "status": "complete",
                "subscription": format!("sub_{tenant}"), "customer": "cus_agency", "metadata": { "tenant_id": tenant },
            } },
        })
    };
    let invoice = json!({
        "type": "invoice.paid", "livemode": true, "created": 30,
        "data": { "object": {
            "object": "invoice", "id": "in_b", "status": "paid", "subscription": "sub_b", "customer": "cus_agency",
            "amount_due": 1000, "amount_paid": 1000, "currency": "jpy",
        } },
    });
    let on_the_subscription = [
        subscription("a", "created", 10, "active", true),
        subscription("b", "created", 10, "active", true),
        subscription("a", "deleted", 20, "canceled", false),
        invoice.clone(),
    ];
    let on_the_session = [
        session("a"),
        session("b"),
        subscription("a", "deleted", 20, "canceled", false),
        subscription("b", "updated", 20, "active", false),
        invoice,
    ];
    for events in [&on_the_subscription[..], &on_the_session[..]] {
        for order in orders(events.len()) {
            for size in [1, events.len()] {
                let mut world = World::default();
                for batch in order.chunks(size) {
                    world.hears_all(&batch.iter().map(|n| events[*n].clone()).collect::<Vec<_>>());
                }
                let found: Vec<_> = world
                    .billings()
                    .map(|facts| {
                        let derived = billing::BillingDerived::of(&facts);
                        (derived.tenant.unwrap_or_default(), derived.status.name(), derived.paid_invoices)
                    })
                    .collect();
                let found: BTreeSet<_> = found.into_iter().collect();
                let expected = [("a".to_owned(), "cancelled", 0), ("b".to_owned(), "active", 1)];
                assert_eq!(found, BTreeSet::from(expected), "{order:?}");
            }
        }
    }
}

/// What an order ends as, by (tenant, reference, received), after posts and events in every order.
fn check_posted(posts: &[(Option<&str>, bool)], events: &[Value], expected: &[(Option<&str>, i64)]) {
    for order in orders(posts.len() + events.len()) {
        let mut world = World::default();
        for n in &order {
            match posts.get(*n) {
                Some((tenant, for_all)) => world.posts("T", None, *tenant, *for_all),
                None => world.hears(&events[n - posts.len()]),
            }
        }
        let derived = world.facts().map(|facts| Derived::of(&facts));
        let mut found: Vec<_> = derived.map(|derived| (derived.tenant, derived.received)).collect();
        found.sort();
        let expected: Vec<_> =
            expected.iter().map(|(tenant, received)| (tenant.map(str::to_owned), *received)).collect();
        assert_eq!(found, expected, "{order:?}");
    }
}

#[test]
fn d1_an_order_for_the_whole_installation_is_paid_by_whoever_names_no_other_tenant() {
    let (named, without) = (json!({ "order_id": "T", "tenant_id": "a" }), json!({ "order_id": "T" }));
    let other = json!({ "order_id": "T", "tenant_id": "b" });
    let pays = |id: &str, metadata: &Value| intent(id, true, 1000, metadata);
    let for_a = [(Some("a"), true)];
    check_posted(&for_a, &[pays("pi_1", &without)], &[(Some("a"), 1000)]);
    check_posted(&for_a, &[pays("pi_1", &named), pays("pi_2", &without)], &[(Some("a"), 2000)]);
    check_posted(&for_a, &[pays("pi_1", &other)], &[(Some("a"), 0), (Some("b"), 1000)]);
    let later = [pays("pi_1", &without), charge("pi_1", &other)];
    check_posted(&for_a, &later, &[(Some("a"), 0), (Some("b"), 1000)]);
    let for_nobody = [(None, true)];
    check_posted(&for_nobody, &[pays("pi_1", &named)], &[(Some("a"), 1000)]);
    let two = [pays("pi_1", &named), pays("pi_2", &other)];
    check_posted(&for_nobody, &two, &[(None, 0), (Some("a"), 1000), (Some("b"), 1000)]);
}

#[test]
fn d1_an_order_of_a_tenants_key_is_paid_by_that_tenant_only() {
    let (named, without) = (json!({ "order_id": "T", "tenant_id": "a" }), json!({ "order_id": "T" }));
    let pays = |id: &str, metadata: &Value| intent(id, true, 1000, metadata);
    let of_a = [(Some("a"), false)];
    check_posted(&of_a, &[pays("pi_1", &named)], &[(Some("a"), 1000)]);
    check_posted(&of_a, &[pays("pi_1", &without)], &[(None, 1000), (Some("a"), 0)]);
    let both = [(Some("a"), false), (Some("b"), false)];
    check_posted(&both, &[pays("pi_1", &named)], &[(Some("a"), 1000), (Some("b"), 0)]);
    let and_all = [(Some("a"), false), (Some("b"), true)];
    check_posted(&and_all, &[pays("pi_1", &without)], &[(Some("a"), 0), (Some("b"), 1000)]);
}

#[test]
fn d1_a_clients_reference_joins_only_what_the_app_posted() {
    let pays = |id: &str| intent(id, true, 1000, &json!({}));
    let events = [pays("pi_1"), session("pi_1", "T", None), pays("pi_2"), session("pi_2", "T", None)];
    check_payments(&events, &[(None, 1000, "T"), (None, 1000, "T")]);
    check_posted(&[(None, true)], &events, &[(None, 2000)]);
    let tenants = [events[0].clone(), events[1].clone(), charge("pi_1", &json!({ "tenant_id": "a" }))];
    check_posted(&[(Some("a"), true)], &tenants, &[(Some("a"), 1000)]);
    check_posted(&[(Some("b"), false)], &tenants, &[(Some("a"), 1000), (Some("b"), 0)]);
}

#[test]
fn d1_what_could_pay_two_orders_pays_that_of_its_tenant_once_the_tenant_is_known() {
    let events = [
        intent("pi_1", true, 1000, &json!({ "order_id": "one" })),
        charge("pi_1", &json!({ "order_id": "two" })),
        intent("pi_1", true, 1000, &json!({ "tenant_id": "a" })),
    ];
    let posts = [("one", "a"), ("two", "b")];
    for order in orders(posts.len() + events.len()) {
        let mut world = World::default();
        for n in &order {
            match posts.get(*n) {
                Some((reference, tenant)) => world.announces(reference, None, Some(tenant)),
                None => world.hears(&events[n - posts.len()]),
            }
        }
        let derived = world.facts().map(|facts| Derived::of(&facts));
        let attention = |derived: &Derived| derived.attention.map(Attention::name);
        let found: BTreeSet<_> =
            derived.map(|one| (one.tenant.clone(), one.received, attention(&one))).collect();
        let expected = [(Some("a".to_owned()), 1000, None), (Some("b".to_owned()), 0, None)];
        assert_eq!(found, expected.into(), "{order:?}");
    }
}

#[test]
fn d1_our_own_id_binds_whatever_else_is_said() {
    for order in orders(2) {
        let mut world = World::default();
        world.posts("T", None, Some("a"), false);
        let id = world.facts().next().unwrap().ours.into_keys().next().unwrap();
        let events = [
            intent("pi_1", true, 1000, &json!({ "order_id": id })),
            charge("pi_1", &json!({ "order_id": "something else" })),
        ];
        order.into_iter().for_each(|n| world.hears(&events[n]));
        assert_eq!(world.payments(), [seen("T", "paid", 1000, true)]);
        world.hears(&intent("pi_2", false, 1000, &json!({ "order_id": id })));
        assert_eq!(world.payments().len(), 2, "test money pays no live order");
    }
}
