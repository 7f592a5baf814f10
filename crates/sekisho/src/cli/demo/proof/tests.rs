mod of_places;

use sekisho_lab::shop::{Course, Sale, ShopDispute};
use serde_json::json;

use super::super::accounts::{Audit, DemoSender, HeldMoney, Received};
use super::*;
use crate::types::{BooksReport, Difference};

/// Two sales: one refunded in part, and one in dollars that a dispute took.
fn accounts() -> Accounts {
    let sale = |intent: &str, course, currency, charged, refunded| Sale {
        intent: intent.to_owned(),
        course,
        currency,
        charged,
        refunded,
        dispute: None,
    };
    let taken = ShopDispute { id: "du_2".into(), is_won: false, taken: 1_000, fee: 1_500 };
    let sales = vec![
        sale("pi_1", Course::RefundedInPart, "jpy", 1_200, 400),
        Sale { dispute: Some(taken), ..sale("pi_2", Course::DisputeLost, "usd", 1_000, 0) },
    ];
    let payment = |intent: &str, status: &str, received, refunded| DemoPayment {
        intents: vec![intent.to_owned()],
        status: status.to_owned(),
        received,
        refunded,
    };
    let announced = [
        "stripe/-/test/pi_1/payment.paid",
        "stripe/-/test/pi_1/payment.partially_refunded/400",
        "stripe/-/test/pi_2/payment.paid",
        "stripe/-/test/du_2/payment.dispute_lost/du_2",
    ];
    let ids = ["evt_1", "evt_2", "evt_3"];
    let at = |path: &'static str| move |id: &str| (id.to_owned(), path.to_owned());
    Accounts {
        sender: DemoSender {
            events: ids.map(str::to_owned).into(),
            requests_planned: 4,
            requests: 5,
            acknowledged: ["evt_1", "evt_2", "evt_2", "evt_3"].map(str::to_owned).into(),
            sales,
            orders: 4,
            money: [
                ("jpy".to_owned(), Money { charged: 1_200, refunded: 400, disputed: 0 }),
                ("usd".to_owned(), Money { charged: 1_000, refunded: 0, disputed: 2_500 }),
            ]
            .into(),
            forged: 9,
            forged_refused: 8,
            forged_accepted: 0,
            kills: 2,
        },
        store: HeldMoney {
            events: vec![
                ("evt_1".into(), Status::Success),
                ("evt_2".into(), Status::Success),
                ("evt_3".into(), Status::Skipped),
            ],
            announced: announced.map(str::to_owned).into(),
            payments: vec![
                payment("pi_1", "partially_refunded", 1_200, 400),
                payment("pi_2", "paid", 1_000, 0),
                payment("pi_3", "paid", 2_000, 0),
                payment("pi_4", "refunded", 1_000, 1_000),
                payment("pi_5", "paid", 1_000, 0),
                DemoPayment { intents: Vec::new(), ..payment("", "expired", 0, 0) },
            ],
            delivered: 7,
            money: [("jpy".to_owned(), 800), ("usd".to_owned(), -1_500)].into(),
            audit: Audit { entries: 5, links: 3, faults: Vec::new() },
            ..HeldMoney::default()
        },
        app: Received {
            effects: ids.into_iter().map(at(ARCHIVE)).chain(announced.into_iter().map(at(SHOP))).collect(),
            doubled: Vec::new(),
            messages: 7,
            repeats: 2,
        },
        places: of_places::places(),
    }
}

/// With this changed, exactly these lines no longer hold, and one of them says so.
fn check(change: impl FnOnce(&mut Accounts), broken: &[&str], says: &str) {
    let mut accounts = accounts();
    change(&mut accounts);
    let proof = Proof::of(&accounts);
    let wrong: Vec<_> = proof.lines.iter().filter(|line| line.holds == Some(false)).collect();
    assert_eq!(wrong.iter().map(|line| line.what.as_str()).collect::<Vec<_>>(), broken);
    assert_eq!(proof.holds(), broken.is_empty());
    let text = wrong.iter().flat_map(|line| line.wrong.clone()).collect::<Vec<_>>().join("\n");
    assert!(text.contains(says), "no {says:?} in\n{text}");
}

fn got(id: &str, path: &str) -> (String, String) {
    (id.to_owned(), path.to_owned())
}

#[test]
fn h6_when_all_three_agree_every_line_holds() {
    check(|_| {}, &[], "");
    let lines = Proof::of(&accounts()).lines;
    let says = |what: &str| lines.iter().find(|line| line.what == what).unwrap().says.clone();
    assert!(says("sent").contains("3 events in 5 requests, 1 of them repeats"), "{}", says("sent"));
    assert!(says("money, jpy").starts_with("800 at Stripe = 800 in the books"), "{}", says("money, jpy"));
    assert!(says("money, usd").starts_with("−15.00 at Stripe = −15.00 in"), "{}", says("money, usd"));
    assert!(says("payments").ends_with("1 paid, 1 partially refunded"), "{}", says("payments"));
    assert!(says("forgeries").contains("1 found the server dead"), "{}", says("forgeries"));
    let shown = json!(lines[0]);
    assert_eq!(
        (&shown["from"], &shown["what"], &shown["holds"]),
        (&json!("sender"), &json!("sent"), &json!(true))
    );
}

#[test]
fn h6_a_lost_event_is_found() {
    check(
        |accounts| drop(accounts.store.events.remove(0)),
        &["stored", "lost"],
        "evt_1 was acknowledged, not stored",
    );
    check(
        |accounts| _ = accounts.app.effects.remove(&got("evt_1", ARCHIVE)),
        &["lost"],
        "evt_1 was stored, not delivered",
    );
}

#[test]
fn h6_a_lost_announcement_is_found() {
    let paid = "stripe/-/test/pi_2/payment.paid";
    check(
        |accounts| _ = accounts.app.effects.remove(&got(paid, SHOP)),
        &["lost"],
        "was announced, not delivered",
    );
    check(
        |accounts| {
            accounts.store.announced.retain(|id| id != paid);
            accounts.app.effects.remove(&got(paid, SHOP));
        },
        &["lost"],
        "pi_2/payment.paid was never announced",
    );
}

#[test]
fn h6_a_doubled_effect_is_found() {
    check(
        |accounts| accounts.store.events.push(("evt_2".into(), Status::Success)),
        &["doubled"],
        "evt_2 is stored 2 times",
    );
    check(|accounts| accounts.app.doubled.push("evt_1 at /shop by a, b".into()), &["doubled"], "by a, b");
    let again = "stripe/-/test/pi_2/payment.dispute_lost/du_2";
    check(
        |accounts| {
            accounts.store.announced.push(again.into());
            accounts.app.effects.insert(got(again, SHOP));
        },
        &["doubled"],
        "payment.dispute_lost/du_2 was announced 2 times",
    );
}

#[test]
fn h6_an_accepted_forgery_is_found() {
    check(|accounts| accounts.sender.forged_accepted = 1, &["forgeries"], "1 were answered 2xx");
    check(
        |accounts| {
            accounts.store.events.push(("evt_forged".into(), Status::Success));
            accounts.app.effects.insert(got("evt_forged", ARCHIVE));
        },
        &["forgeries"],
        "evt_forged is stored, and Stripe never sent it",
    );
}

#[test]
fn h6_money_that_differs_is_found() {
    check(|accounts| *accounts.store.money.get_mut("jpy").unwrap() -= 1, &["money, jpy"], "−1 differ");
    check(|accounts| _ = accounts.store.money.insert("eur".into(), 5), &["money, eur"], "0.05 differ");
    check(
        |accounts| accounts.store.payments[0].refunded = 500,
        &["payments"],
        "pi_1 is (\"partially_refunded\", 1200, 500)",
    );
}

#[test]
fn h6_whatever_is_unfinished_buried_or_touched_is_found() {
    check(|accounts| accounts.store.waiting.push("msg_1".into()), &["waiting"], "msg_1");
    check(|accounts| accounts.store.dead.push("evt_1: timeout".into()), &["dead letters"], "timeout");
    check(|accounts| accounts.store.events[0].1 = Status::Failed, &["processed"], "evt_1 is failed");
    check(|accounts| accounts.store.audit.faults.push("a link".into()), &["audit log"], "a link");
    check(|accounts| accounts.store.audit.entries = 0, &["audit log"], "no entry");
    check(|accounts| accounts.store.delivered = 6, &["delivered"], "counts 6 as delivered");
    check(|accounts| accounts.sender.requests = 3, &["sent"], "1 requests were never sent");
    check(
        |accounts| accounts.sender.acknowledged.retain(|id| id != "evt_3"),
        &["acknowledged"],
        "evt_3 never got a 2xx",
    );
    check(
        |accounts| {
            let payment = "pay_1".to_owned();
            accounts.store.books =
                BooksReport { differences: vec![Difference::Orphaned { payment }], ..BooksReport::default() };
        },
        &["books"],
        "pay_1",
    );
}

#[test]
fn h6_what_must_be_announced_follows_from_the_sale_alone() {
    let sales = accounts().sender.sales;
    let all: Vec<_> = sales.iter().flat_map(due).collect();
    let expected = [
        "pi_1/payment.paid",
        "pi_1/payment.partially_refunded/400",
        "pi_2/payment.paid",
        "payment.dispute_lost/du_2",
    ];
    assert_eq!(all, expected);
    let failed = Sale { course: Course::Failed, charged: 0, refunded: 0, ..sales[0].clone() };
    assert_eq!(due(&failed), ["pi_1/payment.failed/1"]);
    assert_eq!(fact_of("stripe/-/test/pi_1/payment.refunded/5"), "pi_1/payment.refunded/5");
}
