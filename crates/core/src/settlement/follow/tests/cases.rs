//! F4–F6: what goes wrong is raised, answered, put right in time, and recorded.

use super::*;
use crate::case::{CaseStatus, Word};
use crate::compensation;

fn levels(shop: &Shop) -> Vec<String> {
    let raised = shop.world.told.iter().filter(|told| told.event_type.starts_with("case."));
    raised.map(|told| format!("{} {}", told.event_type, told.about["level"])).collect()
}

fn fails_thrice(shop: &mut Shop) {
    (1..=3).for_each(|run| made(shop, run, ful::RunResult::Failed));
}

fn word(shop: &Shop, how: &str) -> Word {
    Word { at: shop.world.now(), by: "ADMIN:tomo".into(), how: how.into(), note: "seen".into() }
}

#[test]
fn f5_a_render_that_fails_is_raised_level_by_level_and_refunded_at_24_hours() {
    let mut shop = Shop::open();
    let id = shop.renders("o1");
    made(&mut shop, 1, ful::RunResult::Failed);
    assert_eq!(levels(&shop), ["case.raised 1"]);
    made(&mut shop, 2, ful::RunResult::Failed);
    made(&mut shop, 3, ful::RunResult::Failed);
    assert_eq!(levels(&shop), ["case.raised 1", "case.raised 2"]);
    let failed = shop.world.told.iter().find(|told| told.event_type == "fulfilment.failed").unwrap();
    assert_eq!(failed.about["refund_by"], json!(shop.world.now().plus_ms(DAY_MS)));
    shop.wait(DAY_MS - 1);
    assert!(shop.refunds(&id).is_empty());
    shop.wait(1);
    let key = "rule/RENDER_FAILURE_TIMEOUT/ful_1/1";
    assert_eq!(shop.refunds(&id), [(key.to_owned(), "RENDER_FAILURE".to_owned())]);
    assert!(levels(&shop).contains(&"case.raised 3".to_owned()));
    // Until the money is certain, nothing is recorded; then all of it in one go.
    assert!(shop.compensations().is_empty());
    let before = shop.world.told.len();
    shop.refund_arrives("o1", "re_1", 1_000, "succeeded", Some(key));
    let told: BTreeSet<&str> = shop.world.told[before..].iter().map(|told| &*told.event_type).collect();
    let all = [
        "case.resolved",
        "compensation.recorded",
        "fulfilment.downgraded",
        "payment.refunded",
        "reservation.cancelled",
    ];
    assert_eq!(told, all.into());
    let [record] = &shop.compensations()[..] else { panic!("one is recorded") };
    assert_eq!((record.kind, &*record.trigger), (compensation::CompensationKind::Refund, "RENDER_FAILURE"));
    assert_eq!((record.amount, &*record.resolved_by), (Some(1_000), "SYSTEM"));
    assert_eq!(record.refunds, ["re_1"]);
    shop.wait(30 * DAY_MS);
    assert_eq!((shop.refunds(&id).len(), shop.compensations().len()), (1, 1));
}

#[test]
fn f5_a_render_that_is_mended_clears_its_case_and_nothing_goes_back() {
    let mut shop = Shop::open();
    let id = shop.renders("o1");
    fails_thrice(&mut shop);
    shop.wait(3_600_000);
    made(&mut shop, 3, ful::RunResult::Done);
    assert_eq!(shop.cases()[0].status(), CaseStatus::Resolved);
    assert_eq!(shop.cases()[0].newest().unwrap().1.resolved.as_ref().unwrap().by, "SYSTEM");
    shop.wait(30 * DAY_MS);
    assert!(shop.refunds(&id).is_empty() && shop.compensations().is_empty());
}

#[test]
fn f5_who_resolves_stops_the_refund_and_who_acknowledges_does_not() {
    for resolves in [true, false] {
        let mut shop = Shop::open();
        let id = shop.renders("o1");
        fails_thrice(&mut shop);
        let case = crate::case::id_of("RENDER_FAILURE", "ful_1");
        let said = word(&shop, "by_hand");
        let said = if resolves { CaseWord::Resolve(said) } else { CaseWord::Acknowledge(said) };
        shop.tell(OrderPart::Case { id: case.clone(), word: said.clone() });
        shop.tell(OrderPart::Case { id: case, word: said });
        shop.wait(30 * DAY_MS);
        assert_eq!(shop.refunds(&id).len(), usize::from(!resolves));
        let kinds: Vec<_> = shop.compensations().iter().map(|record| record.kind).collect();
        let expected =
            if resolves { vec![compensation::CompensationKind::ManualResolution] } else { Vec::new() };
        assert_eq!(kinds, expected);
        let overdue = levels(&shop).iter().filter(|told| told.starts_with("case.overdue")).count();
        assert_eq!(overdue, 0, "it was answered");
    }
}

#[test]
fn f5_who_does_not_answer_is_told_again_every_four_hours_at_most_five_times() {
    let mut shop = Shop::open();
    shop.world.policy.rules.retain(|rule| rule.name != "RENDER_FAILURE_TIMEOUT");
    shop.renders("o1");
    fails_thrice(&mut shop);
    for hours in 1..=40 {
        shop.wait(3_600_000);
        let overdue = levels(&shop).iter().filter(|told| told.starts_with("case.overdue")).count();
        assert_eq!(overdue, (hours / 4).min(5), "after {hours} h");
    }
}

#[test]
fn f4_a_rule_that_is_switched_off_does_nothing_and_a_persons_own_acts() {
    let mut shop = Shop::open();
    shop.world.policy.rules.iter_mut().for_each(|rule| rule.is_enabled = false);
    let id = shop.hold("o1", 1, 1);
    shop.wait(40 * MINUTE);
    shop.pays("o1", 1_000, shop.world.now());
    assert!(shop.refunds(&id).is_empty() && shop.cases().is_empty());
    let own =
        CompensationRule::new("MINE", "MINE", "payment.amount_kept >= 1000 && payment.reference == \"o1\"");
    let own = CompensationRule { action: crate::compensation::RuleAction::Refund, ..own.unwrap() };
    shop.world.policy.rules.push(own);
    shop.pays("o1", 1_000, shop.world.now());
    let payment = shop.reservation(&id).ours.payment.unwrap();
    assert_eq!(shop.refunds(&id), [(format!("rule/MINE/{payment}/1"), "MINE".to_owned())]);
}

#[test]
fn f4_a_refund_that_fails_is_a_case_until_it_is_made_again() {
    let mut shop = Shop::open();
    let id = shop.hold("o1", 1, 1);
    shop.pays("o1", 1_000, shop.world.now());
    shop.cancels(&id, "CUSTOMER", true);
    let key = format!("cancel/{id}");
    shop.refund_arrives("o1", "re_1", 1_000, "failed", Some(&key));
    let open = |shop: &Shop| shop.cases().iter().filter(|case| case.status() == CaseStatus::Open).count();
    assert_eq!((shop.cases().len(), open(&shop)), (1, 1));
    assert_eq!(shop.cases()[0].trigger, "REFUND_FAILED");
    shop.refund_arrives("o1", "re_2", 1_000, "succeeded", None);
    assert_eq!(shop.status(&id), "cancelled");
}

#[test]
fn f4_surplus_goes_back_only_if_asked_for_and_leaves_the_place() {
    let mut shop = Shop::open();
    let rule = shop.world.policy.rules.iter_mut().find(|rule| rule.name == "DUPLICATE_PAYMENT").unwrap();
    rule.is_enabled = true;
    let id = shop.hold("o1", 1, 1);
    shop.pays("o1", 1_700, shop.world.now());
    let orders = shop.payment(&id).refund_orders;
    let [order] = &orders.values().collect::<Vec<_>>()[..] else { panic!("{orders:?}") };
    assert_eq!((order.wish.amount, &*order.wish.trigger), (Some(700), "DUPLICATE_PAYMENT"));
    let key = orders.keys().next().unwrap().clone();
    shop.refund_arrives("o1", "re_1", 700, "succeeded", Some(&key));
    assert_eq!(shop.status(&id), "confirmed");
}

#[test]
fn f6_places_that_were_given_anew_are_recorded() {
    let mut shop = Shop::open();
    let begun = shop.world.now();
    let id = shop.hold("o1", 1, 1);
    shop.wait(40 * MINUTE);
    shop.pays("o1", 1_000, begun.plus_ms(10 * MINUTE));
    let [record] = &shop.compensations()[..] else { panic!("one is recorded") };
    assert_eq!(
        (record.kind, &*record.trigger),
        (compensation::CompensationKind::SlotReassign, "WEBHOOK_DELAY")
    );
    assert_eq!(record.reservation.as_deref(), Some(&*id));
}

/// What is booked of a payment, in all.
fn booked(shop: &Shop) -> i64 {
    let own = shop.world.postings.iter().filter(|line| line.cause == "captured");
    own.filter(|line| line.account.starts_with("provider/")).map(|line| line.amount).sum()
}

#[test]
fn d7_what_changes_of_an_order_books_no_money_anew() {
    let mut shop = Shop::open();
    shop.renders("o1");
    assert_eq!(booked(&shop), 1_000);
    // Each of these writes the payment, because it locks the order, and changes nothing of it.
    fails_thrice(&mut shop);
    shop.wait(5 * 3_600_000);
    let case = crate::case::id_of("RENDER_FAILURE", "ful_1");
    shop.tell(OrderPart::Case { id: case, word: CaseWord::Acknowledge(word(&shop, "")) });
    made(&mut shop, 3, ful::RunResult::Done);
    assert_eq!(booked(&shop), 1_000);
}

#[test]
fn f6_a_refund_that_was_made_in_place_of_one_that_failed_is_recorded_once() {
    let mut shop = Shop::open();
    let id = shop.hold("o1", 1, 1);
    shop.wait(40 * MINUTE);
    shop.pays("o1", 1_000, shop.world.now());
    let first = format!("rule/EXPIRED_AFTER_PAYMENT/{id}/1");
    shop.refund_arrives("o1", "re_1", 1_000, "failed", Some(&first));
    assert_eq!(shop.refunds(&id).len(), 1, "a person decides about money that came back");
    shop.refund_arrives("o1", "re_2", 1_000, "succeeded", None);
    let orders: Vec<_> = shop.compensations().into_iter().map(|record| record.order).collect();
    assert_eq!(orders, [Some(first)]);
}
