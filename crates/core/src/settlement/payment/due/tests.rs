//! What is asked for, step by step.

use super::super::samples::*;
use super::super::{MerchantOrder, balance_of, customer_account};
use super::{Derived, DuePart, Facts, PaymentStatus, anchor, due, json, lines};

#[test]
fn d2_the_fee_is_known_by_the_balance_transaction_only() {
    let named = ("charge.updated", charge(json!({ "balance_transaction": "txn_1" })));
    let mut known = facts(&[named]);
    assert_eq!(Derived::of(&known).fee, None);
    let [_, _, due] = &due(&known, &Derived::of(&known), |realm| realm == "stripe/-/live")[..] else {
        panic!()
    };
    assert_eq!(due.key, "fetch/txn_1");
    let DuePart::Fetch(fetch) = &due.what else { panic!("{due:?}") };
    assert_eq!(
        (fetch.provider.name(), &fetch.account, fetch.livemode, &*fetch.id),
        ("stripe", &None, Some(true), "txn_1")
    );
    assert_eq!(ask(&mut known), ["payment.paid", "fetch/txn_1"]);
    let (event_type, entry) = transaction(json!({}));
    known.join(&read(event_type, entry));
    assert_eq!((Derived::of(&known).fee, Derived::of(&known).net), (Some(43), Some(1157)));
    assert_eq!(ask(&mut known), ["payment.fee_known/1200"]);
    assert_eq!(derived(&[paid(), transaction(json!({}))]).fee, Some(43), "the entry names its charge, too");
    let foreign = derived(&[paid(), transaction(json!({ "currency": "usd" }))]);
    assert_eq!(foreign.fee, None, "a fee in another currency is not taken for one in ours");
    let two =
        [paid(), transaction(json!({})), ("charge.succeeded", charge(json!({ "id": "ch_2", "amount": 5 })))];
    assert_eq!(derived(&two).fee, None, "one charge's fee is not the payment's");
    let parts = [transaction(json!({ "amount": 600 })), transaction(json!({ "id": "txn_2", "amount": 700 }))];
    assert_eq!(derived(&[[paid()].as_slice(), &parts].concat()).fee, None, "they don't add up");
    let more = ("payment_intent.succeeded", intent("succeeded", 1500));
    assert_eq!(derived(&[paid(), transaction(json!({})), more]).fee, None, "a charge was not seen yet");
}

#[test]
fn d2_what_cannot_be_fetched_is_not_asked_for() {
    let known = facts(&[("charge.updated", charge(json!({ "balance_transaction": "txn_1" })))]);
    let keys: Vec<_> = due(&known, &Derived::of(&known), |_| false).into_iter().map(|due| due.key).collect();
    assert_eq!(keys, ["payment.paid", "paid_as/unlinked/-"]);
}

#[test]
fn d2_partial_refunds_add_up_and_each_is_announced_once() {
    let mut known = facts(&[paid()]);
    assert_eq!(ask(&mut known), ["payment.paid"]);
    let first = [
        refund("re_1", "pending", 400),
        ("charge.refunded", charge(json!({ "amount_refunded": 400 }))),
        refund("re_1", "succeeded", 400),
    ];
    let mut asked = Vec::new();
    for (event_type, object) in first {
        known.join(&read(event_type, object));
        asked.extend(ask(&mut known));
    }
    asked.retain(|key| !key.starts_with("follow_up/"));
    assert_eq!(asked, ["payment.refund_pending/400", "payment.partially_refunded/400"]);
    let (event_type, rest) = refund("re_2", "pending", 800);
    known.join(&read(event_type, rest));
    assert_eq!(ask(&mut known)[0], "payment.refund_pending/1200");
    let now = Derived::of(&known);
    assert_eq!((now.status, now.refunded, now.refund_pending), (PaymentStatus::PartiallyRefunded, 400, 800));
}

#[test]
fn d5_only_the_present_is_announced_and_each_once() {
    let mut known = facts(&[voucher()]);
    assert_eq!(ask(&mut known), ["payment.processing"]);
    assert!(ask(&mut known).is_empty());
    let mut late = facts(&[voucher(), paid(), refund("re_1", "succeeded", 1200)]);
    assert_eq!(ask(&mut late), ["payment.paid", "payment.refunded/1200"]);
    late.emitted.clear();
    late.merged_into = Some("pay_2".into());
    assert!(ask(&mut late).is_empty());
    assert!(lines(&late, &Derived::of(&late)).is_empty());
}

#[test]
fn d5_an_announcement_is_called_after_what_is_paid() {
    assert_eq!(anchor(&facts(&[paid()])), "stripe/-/live/pi_1");
    let alone = charge(json!({ "payment_intent": null }));
    assert_eq!(anchor(&facts(&[("charge.succeeded", alone)])), "stripe/-/live/ch_1");
    let mut ordered = Facts { livemode: Some(true), ..Facts::default() };
    ordered.ours.insert("pay_1".into(), MerchantOrder::default());
    assert_eq!(anchor(&ordered), "pay_1");
    ordered.orders.insert("o_1".into());
    assert_eq!(anchor(&ordered), "live/-/order/-/o_1");
}

#[test]
fn d7_a_top_up_is_credited_once_and_refunds_take_it_back() {
    let label = json!({ "metadata": { "purpose": "top_up", "customer_id": "c_1" } });
    let mut known = facts(&[("charge.succeeded", charge(label))]);
    let balance = |facts: &Facts| {
        let account = customer_account(None, "c_1");
        let entries = lines(facts, &Derived::of(facts));
        let own = entries.iter().filter(|(line, _)| line.account == account).map(|(_, amount)| *amount);
        balance_of(&account, own.sum())
    };
    assert_eq!(
        (balance(&known), ask(&mut known)),
        (1200, vec!["payment.paid".into(), "balance.credited/1200".into()])
    );
    let steps = [
        (refund("re_1", "succeeded", 400), 800, ("balance.debited/400", 400)),
        (refund("re_1", "failed", 400), 1200, ("balance.credited/0-400", 400)),
        (refund("re_2", "succeeded", 1200), 0, ("balance.debited/1200-400", 1200)),
    ];
    for ((event_type, object), expected, (key, amount)) in steps {
        known.join(&read(event_type, object));
        assert_eq!(balance(&known), expected, "{key}");
        let told = due(&known, &Derived::of(&known), |_| true);
        let [told] = &told.iter().filter(|due| due.key.starts_with("balance.")).collect::<Vec<_>>()[..]
        else {
            panic!("{told:?}")
        };
        let DuePart::Announce { about, .. } = &told.what else { panic!("{told:?}") };
        assert_eq!((&*told.key, &about["amount"], &about["customer"]), (key, &json!(amount), &json!("c_1")));
        ask(&mut known);
    }
    assert!(ask(&mut known).is_empty());
}
