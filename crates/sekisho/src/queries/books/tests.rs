use sekisho_core::Time;
use sekisho_core::change::ChangeSet;
use sekisho_core::state::{Index, Write};
use sekisho_store::memory::MemoryStore;
use serde_json::{Value, json};

use super::*;

const NOW: Time = Time::from_ms(1_780_000_000_000);
const PROVIDER: &str = "provider/stripe/-/live";

/// A payment of so many yen that came in by one charge.
fn facts(amount: i64) -> Facts {
    let facts = json!({
        "livemode": true,
        "realms": ["stripe/-/live"],
        "charges": { "ch_1": { "status": "succeeded", "amount": amount, "captured": amount, "currency": "jpy" } },
    });
    serde_json::from_value(facts).unwrap()
}

fn line(payment: &str, account: &str, amount: i64) -> Posting {
    Posting {
        account: account.into(),
        currency: "jpy".into(),
        livemode: Some(true),
        amount,
        payment: payment.into(),
        cause: "captured".into(),
    }
}

fn booked(payment: &str, amount: i64) -> Vec<Posting> {
    vec![line(payment, PROVIDER, amount), line(payment, "sales", -amount)]
}

fn wrong(account: &str, expected: i64, booked: i64) -> Difference {
    Difference::Wrong {
        payment: "pay_1".into(),
        account: account.into(),
        currency: "jpy".into(),
        cause: "captured".into(),
        expected,
        booked,
    }
}

#[test]
fn d7_a_payment_is_booked_as_its_facts_say() {
    let lopsided = |sum| Difference::Lopsided {
        payment: "pay_1".into(),
        currency: "jpy".into(),
        livemode: Some(true),
        sum,
    };
    let corrected = [booked("pay_1", 1000), booked("pay_1", 200)].concat();
    let mut other_mode = booked("pay_1", 1200);
    other_mode[0].livemode = Some(false);
    let mut other_currency = booked("pay_1", 1200);
    other_currency.iter_mut().for_each(|line| line.currency = "usd".into());
    let cases: [(&str, Vec<Posting>, usize); 6] = [
        ("as it should be", booked("pay_1", 1200), 0),
        ("in two steps", corrected, 0),
        ("not at all", vec![], 2),
        ("too little, but in balance", booked("pay_1", 1100), 2),
        ("one line in another mode", other_mode, 2),
        ("in another currency", other_currency, 4),
    ];
    for (case, lines, expected) in cases {
        let found = compare("pay_1", &facts(1200), &lines);
        assert_eq!(found.len(), expected, "{case}: {found:?}");
    }
    let mut tampered = booked("pay_1", 1200);
    tampered[0].amount = 1300;
    assert_eq!(compare("pay_1", &facts(1200), &tampered), [lopsided(100), wrong(PROVIDER, 1200, 1300)]);
}

#[test]
fn d7_a_payment_in_two_currencies_is_booked_in_both() {
    let mut both = facts(1200);
    let dollars = json!({ "status": "succeeded", "amount": 50, "captured": 50, "currency": "usd" });
    both.charges.insert("ch_2".into(), serde_json::from_value(dollars).unwrap());
    let mut booked_in_dollars = booked("pay_1", 50);
    booked_in_dollars.iter_mut().for_each(|line| line.currency = "usd".into());
    let all = [booked("pay_1", 1200), booked_in_dollars].concat();
    assert_eq!(compare("pay_1", &both, &all), []);
    assert_eq!(compare("pay_1", &both, &all[..2]).len(), 2, "the dollars are missing");
    assert_eq!(compare("pay_1", &both, &all[..3]).len(), 2, "and lopsided with one line of them");
}

#[test]
fn d7_a_difference_says_whose_it_is_in_the_currency_of_people() {
    let mut difference = wrong("sales", -1200, 0);
    assert_eq!(difference.to_string(), "pay_1: sales should have -1200 jpy as captured, and has 0");
    if let Difference::Wrong { currency, .. } = &mut difference {
        *currency = "usd".into();
    }
    assert_eq!(difference.to_string(), "pay_1: sales should have -12.00 usd as captured, and has 0.00");
}

#[test]
fn d7_all_lines_sum_to_zero_by_currency_and_mode() {
    let sum = |account: &str, currency: &str, livemode, amount| sekisho_store::Sum {
        account: account.into(),
        currency: currency.into(),
        livemode,
        amount,
        lines: 1,
    };
    let sums = [
        sum("sales", "jpy", Some(true), -1200),
        sum(PROVIDER, "jpy", Some(true), 1200),
        sum("sales", "usd", Some(false), -5),
        sum(PROVIDER, "usd", Some(true), 5),
        sum("customer/office/c_1", "eur", None, 300),
        sum(PROVIDER, "eur", None, -300),
    ];
    let unbalanced: Vec<_> = unbalanced(&sums).iter().map(ToString::to_string).collect();
    assert_eq!(
        unbalanced,
        [
            "all lines in usd (test) sum to -0.05, not to zero",
            "all lines in usd (live) sum to 0.05, not to zero"
        ]
    );
    let negative: Vec<_> = negative(&sums).iter().map(ToString::to_string).collect();
    assert_eq!(negative, ["customer/office/c_1 (any) is below zero: -3.00 eur"]);
}

#[test]
fn d2_who_was_merged_is_found_where_it_ended() {
    let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(one, other)| ((*one).to_owned(), (*other).to_owned())).collect()
    };
    let found = followers(&map(&[("a", "b"), ("b", "c"), ("d", "c")]));
    assert_eq!(found, BTreeMap::from([("c".to_owned(), vec!["a".into(), "b".into(), "d".into()])]));
    let ring = followers(&map(&[("a", "b"), ("b", "a")]));
    assert_eq!(ring.values().flatten().count(), 2, "it ends");
}

async fn put(store: &MemoryStore, id: &str, facts: &Facts, status: &str, postings: Vec<Posting>) {
    let write = Write {
        key: Key::new(Kind::Payment, id),
        version: 0,
        facts: serde_json::to_string(facts).unwrap(),
        index: Index { status: Some(status.into()), ..Index::default() },
    };
    let set = ChangeSet { writes: vec![write], postings, ..ChangeSet::nothing(NOW) };
    store.commit(vec![set]).await.unwrap();
}

#[tokio::test]
async fn d7_the_lines_of_what_was_merged_count_where_it_went() {
    let store = MemoryStore::default();
    let stone = Facts { merged_into: Some("pay_2".into()), ..Facts::default() };
    put(&store, "pay_1", &stone, MERGED, booked("pay_1", 1200)).await;
    put(&store, "pay_2", &facts(1200), "paid", vec![]).await;
    put(&store, "pay_3", &facts(500), "paid", booked("pay_3", 500)).await;
    let report = check_books(&store).await.unwrap();
    assert_eq!((report.differences, report.payments, report.lines, report.accounts), (vec![], 2, 4, 2));
}

#[tokio::test]
async fn d7_every_difference_names_its_payment() {
    let store = MemoryStore::default();
    put(&store, "pay_1", &facts(1200), "paid", booked("pay_1", 1100)).await;
    put(&store, "pay_2", &facts(500), "paid", [booked("pay_2", 500), booked("pay_9", 7)].concat()).await;
    let lost = Facts { merged_into: Some("pay_8".into()), ..Facts::default() };
    put(&store, "pay_3", &lost, MERGED, booked("pay_3", 40)).await;
    let report = check_books(&store).await.unwrap();
    let orphaned = |id: &str| Difference::Orphaned { payment: id.into() };
    assert_eq!(
        report.differences,
        [wrong(PROVIDER, 1200, 1100), wrong("sales", -1200, -1100), orphaned("pay_9"), orphaned("pay_3")]
    );
    let shown: Value = json!(report);
    assert_eq!(shown["differences"][0]["kind"], "wrong");
}
