//! What holds for every billing, whatever arrives, in any order and as often as it likes.

use proptest::collection::{btree_map, btree_set, vec};
use proptest::option::of;
use proptest::prelude::*;

use super::tests::{Books, LEGACY, SUBSCRIPTION, check, invoice, subscription};
use super::{
    Announced, BillingDerived, BillingFacts, BillingSnapshot, BillingStatus, DeletedBilling, Invoice,
    InvoiceStatus, Subscription, SubscriptionStatus, due,
};
use crate::money::Currency;
use crate::time::Time;

/// Few, so that they meet.
fn moment() -> impl Strategy<Value = i64> {
    0..5_i64
}

fn id(kind: &'static str) -> impl Strategy<Value = String> {
    (1..3_u8).prop_map(move |n| format!("{kind}_{n}"))
}

fn currency() -> impl Strategy<Value = Option<Currency>> {
    prop_oneof![Just(None), Just(Currency::parse("jpy")), Just(Currency::parse("usd"))]
}

fn snapshot() -> impl Strategy<Value = BillingSnapshot> {
    let status = prop_oneof![
        Just(SubscriptionStatus::Incomplete),
        Just(SubscriptionStatus::Trialing),
        Just(SubscriptionStatus::PastDue),
        Just(SubscriptionStatus::Active),
        Just(SubscriptionStatus::Paused),
        Just(SubscriptionStatus::Unpaid),
        Just(SubscriptionStatus::IncompleteExpired),
        Just(SubscriptionStatus::Canceled),
    ];
    let times = (of(moment()), of(moment()), of(moment()), of(moment()), of(moment()));
    (moment(), 0..3_u8, status, times).prop_map(|(at, by, status, times)| BillingSnapshot {
        ended: matches!(status, SubscriptionStatus::IncompleteExpired | SubscriptionStatus::Canceled),
        at,
        by,
        status,
        period_start: times.0,
        period_end: times.1,
        trial_end: times.2,
        cancel_at: times.3,
        ended_at: times.4,
    })
}

fn an_invoice() -> impl Strategy<Value = Invoice> {
    let status = prop_oneof![
        Just(InvoiceStatus::Draft),
        Just(InvoiceStatus::Open),
        Just(InvoiceStatus::Uncollectible),
        Just(InvoiceStatus::Void),
        Just(InvoiceStatus::Paid),
    ];
    let times = (of(moment()), of(moment()), of(moment()));
    let amounts = (0..3_i64, 0..3_i64, currency());
    let links = (of(id("sub")), btree_set(id("pi"), 0..2));
    (status, times, amounts, links).prop_map(|(status, times, amounts, links)| Invoice {
        status,
        subscription: links.0,
        failed_at: times.0,
        paid_at: times.1,
        amount_due: amounts.0,
        amount_paid: amounts.1,
        currency: amounts.2,
        paid_through: times.2,
        intents: links.1,
    })
}

/// What one event may add.
fn addition() -> impl Strategy<Value = BillingFacts> {
    let known = (of(snapshot()), currency()).prop_map(|(newest, currency)| Subscription { newest, currency });
    let things = (btree_map(id("sub"), known, 0..2), btree_map(id("in"), an_invoice(), 0..2));
    let owners = (btree_set(id("tenant"), 0..2), btree_set(id("cus"), 0..2), of(any::<bool>()));
    (things, owners).prop_map(|((subscriptions, invoices), (tenants, provider_customers, livemode))| {
        BillingFacts {
            livemode,
            tenants,
            provider_customers,
            subscriptions,
            invoices,
            ..BillingFacts::default()
        }
    })
}

fn announced() -> impl Strategy<Value = Announced> {
    let status = prop::sample::select(BillingStatus::ALL.to_vec());
    (moment(), 0..3_u32, status).prop_map(|(at, turn, status)| Announced {
        at,
        turn,
        status: status.name().into(),
    })
}

fn deleted() -> impl Strategy<Value = DeletedBilling> {
    let time = moment().prop_map(Time::from_seconds);
    (time, id("person"), btree_set(id("sub"), 0..2)).prop_map(|(at, by, subscriptions)| DeletedBilling {
        at,
        by,
        subscriptions,
    })
}

fn facts() -> impl Strategy<Value = BillingFacts> {
    let kept = (of(id("bill")), btree_set(id("name"), 0..2), btree_set(id("realm"), 0..2), of(deleted()));
    (addition(), of(announced()), btree_set(id("key"), 0..2), kept).prop_map(
        |(facts, announced, emitted, (merged_into, names, realms, deleted))| BillingFacts {
            merged_into,
            names,
            realms,
            announced,
            emitted,
            deleted,
            ..facts
        },
    )
}

fn joined(one: &BillingFacts, other: &BillingFacts) -> BillingFacts {
    let mut joined = one.clone();
    joined.join(other);
    joined
}

/// All of so many, in any order, some of them several times.
fn schedule(events: usize) -> impl Strategy<Value = Vec<usize>> {
    let repeated = vec(0..events, 0..events);
    repeated
        .prop_flat_map(move |repeated| Just((0..events).chain(repeated).collect::<Vec<_>>()).prop_shuffle())
}

/// No key twice, and the last status that was told is the one it ended in.
fn check_announcements(facts: &BillingFacts, keys: &[String]) {
    let mut once = keys.to_vec();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), keys.len(), "{keys:?}");
    let status = BillingDerived::of(facts).status;
    if let BillingStatus::Trialing
    | BillingStatus::Active
    | BillingStatus::PastDue
    | BillingStatus::Cancelled = status
    {
        assert_eq!(facts.announced.as_ref().unwrap().status, status.name());
        let last = keys.iter().rfind(|key| !key.starts_with("billing.payment_succeeded/")).unwrap();
        assert!(last.starts_with(&format!("billing.{}/", status.name())), "{keys:?}");
    }
}

/// Events of one second, and of the next: a subscription that begins, fails and recovers.
fn seconds() -> [String; 9] {
    [
        subscription("created", 20, "incomplete"),
        subscription("updated", 20, "active"),
        invoice("in_1", "paid", 20, "paid", 500, 30),
        invoice("in_2", "payment_failed", 21, "open", 0, 40),
        subscription("updated", 21, "past_due"),
        invoice("in_2", "paid", 21, "paid", 500, 40),
        subscription("updated", 21, "active"),
        invoice("in_3", "payment_failed", 21, "open", 0, 50),
        subscription("updated", 21, "past_due"),
    ]
}

proptest! {
    #[test]
    fn d1_joining_knows_no_order_and_no_repetition(a in facts(), b in facts(), c in facts()) {
        prop_assert_eq!(joined(&a, &b), joined(&b, &a));
        prop_assert_eq!(joined(&joined(&a, &b), &c), joined(&a, &joined(&b, &c)));
        prop_assert_eq!(joined(&a, &a), a.clone());
        let text = serde_json::to_string(&a).unwrap();
        prop_assert_eq!(serde_json::from_str::<BillingFacts>(&text).unwrap(), a);
    }

    #[test]
    fn d3_the_last_word_is_the_status_it_ended_in(additions in vec(addition(), 1..12)) {
        let mut facts = BillingFacts::default();
        let mut keys = Vec::new();
        for addition in &additions {
            facts.join(addition);
            let before = facts.announced.clone();
            for due in due(&facts, &BillingDerived::of(&facts)) {
                facts.announce(&due);
                keys.push(due.key);
            }
            prop_assert!(facts.announced >= before);
            prop_assert_eq!(due(&facts, &BillingDerived::of(&facts)), vec![]);
        }
        check_announcements(&facts, &keys);
    }

    #[test]
    fn d1_a_subscription_ends_the_same_in_any_order(order in schedule(SUBSCRIPTION.len())) {
        let books = Books::after(order.iter().map(|n| SUBSCRIPTION[*n]));
        check("subscription", None, &books.facts(), 1_785_464_182);
        check_announcements(&books.facts(), &books.announced);
    }

    #[test]
    fn d1_its_first_months_end_the_same_in_any_order(order in schedule(18)) {
        let books = Books::after(order.iter().map(|n| SUBSCRIPTION[*n]));
        check("subscription", Some("18"), &books.facts(), 1_783_134_982);
        check_announcements(&books.facts(), &books.announced);
    }

    #[test]
    fn d1_the_older_shape_ends_the_same_in_any_order(order in schedule(LEGACY.len())) {
        let books = Books::after(order.iter().map(|n| LEGACY[*n]));
        check("subscription_legacy_api", None, &books.facts(), 1_782_872_182);
        check_announcements(&books.facts(), &books.announced);
    }

    #[test]
    fn d3_events_of_one_second_end_the_same_in_any_order(order in schedule(9), known in 1..=9_usize) {
        let events = seconds();
        let expected = Books::after(events[..known].iter().map(String::as_str));
        let books = Books::after(order.iter().filter(|n| **n < known).map(|n| &*events[*n]));
        prop_assert_eq!(BillingDerived::of(&books.facts()), BillingDerived::of(&expected.facts()));
        check_announcements(&books.facts(), &books.announced);
    }
}
