use std::collections::BTreeSet;

use sekisho_demo::planetarium::{
    DomeShow, MadeRefund, PlacesLedger, SoldPlace, VisitorCourse, VisitorRecord, WebhookCount,
};

use super::super::super::places::DemoPlaces;
use super::{Accounts, check};

const KEPT: usize = 0;
const NEVER_MADE: usize = 1;
const SENT_BACK: usize = 2;

/// A show with three places: two are kept, one was given back because its video could not be made, one was cancelled and its
/// refund sent back by the bank, one was never paid, and one visitor came in vain.
pub fn places() -> DemoPlaces {
    let show = DomeShow {
        id: "dome-1:01".into(),
        places: 3,
        title: "Aurora",
        price: 1_000,
        starts_at: "2099-01-01T10:00:00Z".into(),
    };
    let visitor = |course, quantity: u32, intent: Option<&str>| VisitorRecord {
        show: 0,
        course,
        quantity,
        amount: 1_000 * i64::from(quantity),
        refused: 0,
        place: None,
        intent: intent.map(str::to_owned),
        cancel_sent_ms: None,
        is_cancelled: false,
        heard: BTreeSet::new(),
        confirmed_ms: intent.map(|_| 20),
        failed_runs: BTreeSet::new(),
        is_made: false,
        is_over: true,
    };
    let place = |n: u32, answered_ms| SoldPlace {
        reservation: format!("rsv_{n}"),
        payment: format!("pay_{n}"),
        page: format!("/o/{n}"),
        answered_ms,
        held_until_ms: answered_ms + 30,
    };
    let kept = VisitorRecord { place: Some(place(3, 10)), ..visitor(VisitorCourse::Keeps, 2, Some("pi_3")) };
    let never = VisitorRecord {
        place: Some(place(4, 10)),
        failed_runs: [1, 2, 3].into(),
        ..visitor(VisitorCourse::NeverMade, 1, Some("pi_4"))
    };
    // The place of the second, once that was refunded.
    let cancelled = VisitorRecord {
        place: Some(place(5, 50)),
        confirmed_ms: Some(55),
        cancel_sent_ms: Some(60),
        is_cancelled: true,
        ..visitor(VisitorCourse::Cancels, 1, Some("pi_5"))
    };
    let unpaid = VisitorRecord { place: Some(place(6, 60)), ..visitor(VisitorCourse::Abandons, 1, None) };
    let in_vain = VisitorRecord { refused: 3, ..visitor(VisitorCourse::Keeps, 1, None) };
    let made = |id: &str, intent: &str, made_ms, is_sent_back| MadeRefund {
        id: id.to_owned(),
        intent: intent.to_owned(),
        amount: 1_000,
        made_ms,
        is_sent_back,
    };
    let statuses =
        [("rsv_3", "confirmed"), ("rsv_4", "cancelled"), ("rsv_5", "cancelled"), ("rsv_6", "expired")];
    DemoPlaces {
        ledger: PlacesLedger::with(
            vec![show],
            vec![kept, never, cancelled, unpaid, in_vain],
            vec![made("re_1", "pi_4", 40, false), made("re_2", "pi_5", 70, true)],
            WebhookCount::default(),
        ),
        statuses: statuses.map(|(id, status)| (id.to_owned(), status.to_owned())).into(),
        slots: [("dome-1:01".to_owned(), (3, 2))].into(),
        in_case: ["pay_5".to_owned()].into(),
        recorded: vec!["pay_4".to_owned()],
    }
}

fn visitor(accounts: &mut Accounts, n: usize) -> &mut VisitorRecord {
    &mut accounts.places.ledger.visitors[n]
}

#[test]
fn f1_a_place_that_was_sold_twice_is_found() {
    // Held again before it was given back.
    check(
        |accounts| visitor(accounts, SENT_BACK).place.as_mut().unwrap().answered_ms = 39,
        &["oversold"],
        "dome-1:01: 4 places were taken at once, of 3",
    );
    check(
        |accounts| _ = accounts.places.slots.insert("dome-1:01".into(), (3, 3)),
        &["oversold"],
        "2 of 3 are confirmed, the slot says Some((3, 3))",
    );
    check(|accounts| visitor(accounts, KEPT).quantity = 4, &["oversold"], "4 places are confirmed, of 3");
}

#[test]
fn f3_whoever_paid_and_has_neither_place_nor_money_is_found() {
    check(
        |accounts| _ = accounts.places.statuses.insert("rsv_3".into(), "expired".into()),
        &["oversold", "paid"],
        "rsv_3 is expired, 0 of 2000 refunded, no case",
    );
    check(|accounts| accounts.places.in_case.clear(), &["paid"], "rsv_5 is cancelled, 0 of 1000 refunded");
    check(|accounts| visitor(accounts, KEPT).is_over = false, &["paid"], "rsv_3 did not come to its end");
    check(
        |accounts| _ = accounts.places.statuses.insert("rsv_6".into(), "hold".into()),
        &["paid"],
        "rsv_6 was never paid, and is hold",
    );
    check(
        |accounts| accounts.store.payments[3].refunded = 0,
        &["paid"],
        "pi_4 is (1000, 0) here, and (1000, 1000) at Stripe",
    );
}

#[test]
fn f3_a_refund_too_many_and_one_too_few_are_found() {
    check(
        |accounts| {
            let again = accounts.places.ledger.refunds[0].clone();
            accounts.places.ledger.refunds.push(again);
            accounts.places.recorded.push("pay_4".into());
            accounts.store.payments[3].refunded = 2_000;
        },
        &["paid", "refunds"],
        "rsv_4: 1000 are owed, 2000 were refunded in 2 refunds",
    );
    check(
        |accounts| visitor(accounts, NEVER_MADE).failed_runs.clear(),
        &["paid", "refunds"],
        "rsv_4: 0 are owed, 1000 were refunded",
    );
    check(
        |accounts| accounts.places.recorded.clear(),
        &["refunds"],
        "1 refunds, and 0 in the compensation log",
    );
    check(
        |accounts| {
            let other = MadeRefund { intent: "pi_9".into(), ..accounts.places.ledger.refunds[0].clone() };
            accounts.places.ledger.refunds.push(other);
        },
        &["refunds"],
        "re_1 is of no order",
    );
}
