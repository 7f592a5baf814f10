mod cases;
mod checkout;
mod laws;

use serde_json::{Value, json};

use super::super::decide::{Cause, Input};
use super::super::order::MerchantRequest;
use super::super::payment::MerchantOrder;
use super::super::reading::Reading;
use std::collections::BTreeSet;

use super::super::world::World;
use super::*;
use crate::job::fetch::ApiProvider;
use crate::money::Currency;
use crate::slot::SlotName;
use crate::state::Posting;

const MINUTE: i64 = 60_000;
const SLOT: &str = "dome-1";

/// A shop with slots, and the provider that its customers pay by.
struct Shop {
    world: World,
}

impl Shop {
    fn open() -> Self {
        let mut world = World::of("stripe");
        let accounts = vec![(ApiProvider::Stripe, None)];
        world.policy.refunds = RefundPolicy { accounts, automatic_per_hour: 1_000 };
        Self { world }
    }

    fn slot_key(id: &str) -> String {
        SlotName { livemode: true, tenant: None, id: id.into() }.key().id
    }

    /// Somebody asks for places, to pay 1,000 yen within half an hour; says the reservation's id.
    fn hold(&mut self, reference: &str, quantity: u32, capacity: u32) -> String {
        self.hold_with(reference, quantity, capacity, |_| {})
    }

    fn hold_with(
        &mut self,
        reference: &str,
        quantity: u32,
        capacity: u32,
        change: impl FnOnce(&mut Hold),
    ) -> String {
        let seq = self.world.next_seq();
        let id = seq.tagged(rsv::TAG);
        let payment = seq.tagged("pay_");
        let at = self.world.now();
        let request = rsv::ReservationRequest {
            slot: Self::slot_key(SLOT),
            quantity,
            at,
            livemode: true,
            reference: Some(reference.to_owned()),
            payment: Some(payment.clone()),
            hold_ms: 30 * MINUTE,
            ..rsv::ReservationRequest::default()
        };
        let until = at.plus_ms(30 * MINUTE);
        let mut hold = Hold {
            id: id.clone(),
            reservation: rsv::ReservationFacts { ours: request, until, ..rsv::ReservationFacts::default() },
            slot: Slot { capacity, ..Slot::default() },
            fulfilment: None,
        };
        change(&mut hold);
        let ours = MerchantOrder {
            amount: 1_000,
            currency: Currency::parse("jpy"),
            reference: Some(reference.to_owned()),
            for_all: true,
            ..MerchantOrder::default()
        };
        let mut input = MerchantRequest { ours, livemode: Some(true) }.input(seq, Cause::system());
        if hold.reservation.ours.payment.is_none() {
            input.reading.payment = None;
        }
        if let Some(payment) = &mut input.reading.payment {
            payment.members.insert(id.clone());
            payment.members.extend(hold.fulfilment.as_ref().map(|(id, _)| id.clone()));
        }
        input.reading.order = vec![OrderPart::Hold(Box::new(hold))];
        self.world.settle(&[input]);
        id
    }

    /// The provider tells of money for a reference that was paid at a moment.
    fn pays(&mut self, reference: &str, amount: i64, paid_at: Time) {
        self.world.hears(&charged(reference, amount, paid_at));
    }

    fn refund_arrives(&mut self, reference: &str, id: &str, amount: i64, status: &str, order: Option<&str>) {
        self.world.hears(&json!({
            "type": "refund.updated", "livemode": true,
            "data": { "object": {
                "object": "refund", "id": id, "payment_intent": format!("pi_{reference}"),
                "charge": format!("ch_{reference}"), "amount": amount, "currency": "jpy", "status": status,
                "metadata": { "sekisho_refund": order },
            } },
        }));
    }

    fn says(&mut self, id: &str, change: impl FnOnce(&mut rsv::ReservationFacts)) {
        let mut facts = rsv::ReservationFacts::default();
        change(&mut facts);
        let part = OrderPart::Reservation { id: id.to_owned(), facts: Box::new(facts) };
        self.tell(part);
    }

    fn tell(&mut self, part: OrderPart) {
        let seq = self.world.next_seq();
        let reading = Reading { order: vec![part], ..Reading::default() };
        self.world.settle(&[Input { seq, reading, cause: Cause::system() }]);
    }

    fn cancels(&mut self, id: &str, by: &str, refund: bool) {
        let at = self.world.now();
        let cancelled = rsv::Cancelled { at, by: by.into(), why: "changed my mind".into(), refund };
        self.says(id, |facts| facts.cancelled = Some(cancelled));
    }

    /// Time passes; every timer that is due fires.
    fn wait(&mut self, ms: i64) {
        self.wait_unswept(ms);
        self.sweep();
    }

    /// The same while no timer fires.
    fn wait_unswept(&mut self, ms: i64) {
        self.world.later_ms += ms;
    }

    fn sweep(&mut self) {
        while let Some((at, key)) = self.world.deadlines.first().cloned() {
            if at > self.world.now() {
                break;
            }
            self.world.deadlines.remove(&(at, key.clone()));
            self.tell(OrderPart::Deadline(key));
        }
    }

    fn reservation(&self, id: &str) -> rsv::ReservationFacts {
        let key = Key::new(Kind::Reservation, id);
        serde_json::from_str(&self.world.loaded.states[&key].facts).unwrap()
    }

    fn fulfilment(&self, id: &str) -> ful::FulfilmentFacts {
        let key = Key::new(Kind::Fulfilment, id);
        serde_json::from_str(&self.world.loaded.states[&key].facts).unwrap()
    }

    fn status(&self, id: &str) -> &'static str {
        self.reservation(id).status(self.world.now(), self.world.policy.grace_ms).name()
    }

    fn payment(&self, id: &str) -> Facts {
        let key = Key::new(Kind::Payment, self.reservation(id).ours.payment.unwrap());
        Facts::parse(&self.world.loaded.states[&key].facts).unwrap()
    }

    /// Keys and triggers of the refunds that were ordered for a reservation's payment.
    fn refunds(&self, id: &str) -> Vec<(String, String)> {
        let orders = self.payment(id).refund_orders;
        orders.into_iter().map(|(key, order)| (key, order.wish.trigger)).collect()
    }

    fn cases(&self) -> Vec<crate::case::CaseFacts> {
        self.world.states(Kind::Case).map(|state| serde_json::from_str(&state.facts).unwrap()).collect()
    }

    fn compensations(&self) -> Vec<crate::compensation::Compensation> {
        let all = self.world.states(Kind::Compensation);
        all.map(|state| serde_json::from_str(&state.facts).unwrap()).collect()
    }

    /// A reservation for which something is made that fails; its run is asked for.
    fn renders(&mut self, reference: &str) -> String {
        let id = self.hold_with(reference, 1, 9, |hold| {
            let ours = ful::FulfilmentRequest {
                kind: "video".into(),
                tier: ful::Tier::Paid,
                payment: hold.reservation.ours.payment.clone(),
                reservation: Some(hold.id.clone()),
                ..ful::FulfilmentRequest::default()
            };
            hold.fulfilment =
                Some(("ful_1".into(), ful::FulfilmentFacts { ours, ..ful::FulfilmentFacts::default() }));
            hold.reservation.ours.fulfilment = Some("ful_1".into());
        });
        self.pays(reference, 1_000, self.world.now());
        id
    }

    /// What was told of orders.
    fn told(&self) -> Vec<&str> {
        let of_orders = |told: &&str| told.starts_with("reservation.") || told.starts_with("fulfilment.");
        self.world.told().into_iter().filter(of_orders).collect()
    }
}

fn charged(reference: &str, amount: i64, paid_at: Time) -> Value {
    json!({
        "type": "charge.succeeded", "livemode": true,
        "data": { "object": {
            "object": "charge", "id": format!("ch_{reference}"), "payment_intent": format!("pi_{reference}"),
            "created": paid_at.seconds(), "amount": amount, "amount_captured": amount, "captured": true,
            "paid": true, "status": "succeeded", "currency": "jpy", "metadata": { "order_id": reference },
        } },
    })
}

fn session(reference: &str, status: &str) -> Value {
    json!({
        "type": format!("checkout.session.{}", if status == "expired" { "expired" } else { "completed" }),
        "livemode": true,
        "data": { "object": {
            "object": "checkout.session", "id": format!("cs_{reference}"), "status": status, "mode": "payment",
            "payment_status": "unpaid", "amount_total": 1_000, "currency": "jpy",
            "payment_intent": format!("pi_{reference}"), "metadata": { "order_id": reference },
        } },
    })
}

#[test]
fn f1_who_pays_in_time_has_the_place_and_is_told_once() {
    let mut shop = Shop::open();
    let id = shop.hold("o1", 1, 1);
    assert_eq!(shop.status(&id), "hold");
    assert!(shop.told().is_empty(), "the caller knows");
    shop.pays("o1", 1_000, shop.world.now());
    shop.pays("o1", 1_000, shop.world.now());
    assert_eq!(shop.status(&id), "confirmed");
    shop.wait(365 * DAY_MS);
    assert_eq!((shop.status(&id), shop.told()), ("confirmed", vec!["reservation.confirmed"]));
    let later = shop.hold("o2", 1, 1);
    assert_eq!(shop.world.declined.len(), 1);
    assert!(!shop.world.loaded.states.contains_key(&Key::new(Kind::Reservation, later)));
    assert_eq!(shop.world.payments().len(), 1, "who gets no place owes nothing");
}

#[test]
fn f3_the_money_of_an_order_is_booked_once_whatever_becomes_of_the_order() {
    let mut shop = Shop::open();
    let id = shop.renders("o1");
    for run in 1..=3 {
        let failed = ful::FulfilmentRun { result: ful::RunResult::Failed, ..ful::FulfilmentRun::default() };
        let facts = ful::FulfilmentFacts { runs: [(run, failed)].into(), ..ful::FulfilmentFacts::default() };
        shop.tell(OrderPart::Fulfilment { id: "ful_1".into(), facts: Box::new(facts) });
        shop.wait(MINUTE);
    }
    let booked = |shop: &Shop, cause: &str| -> i64 {
        let at_provider = |line: &&Posting| line.cause == cause && line.account.starts_with("provider/");
        shop.world.postings.iter().filter(at_provider).map(|line| line.amount).sum()
    };
    assert_eq!((shop.fulfilment("ful_1").failed_runs(), booked(&shop, "captured")), (3, 1_000));
    shop.wait(DAY_MS);
    let [(order, _)] = &shop.refunds(&id)[..] else { panic!("no refund was ordered") };
    shop.refund_arrives("o1", "re_1", 1_000, "succeeded", Some(order));
    assert_eq!(shop.status(&id), "cancelled");
    assert_eq!((booked(&shop, "captured"), booked(&shop, "refunded")), (1_000, -1_000));
}

#[test]
fn f1_money_may_come_before_the_order_is_posted() {
    let mut shop = Shop::open();
    shop.pays("o1", 1_000, shop.world.now());
    let id = shop.hold("o1", 1, 1);
    assert_eq!(shop.status(&id), "confirmed");
}

#[test]
fn f1_a_hold_frees_its_place_at_its_time_with_and_without_a_sweep() {
    for is_swept in [true, false] {
        let mut shop = Shop::open();
        let first = shop.hold("o1", 1, 1);
        let wait = |shop: &mut Shop, ms| if is_swept { shop.wait(ms) } else { shop.wait_unswept(ms) };
        wait(&mut shop, 32 * MINUTE - 1);
        assert_eq!(shop.status(&first), "hold");
        shop.hold("o2", 1, 1);
        assert_eq!(shop.world.declined.len(), 1);
        wait(&mut shop, 1);
        assert_eq!(shop.status(&first), "expired");
        let second = shop.hold("o2", 1, 1);
        assert_eq!((shop.status(&second), shop.world.declined.len()), ("hold", 1));
        shop.sweep();
        assert_eq!(shop.told(), ["reservation.expired"]);
    }
}

#[test]
fn f1_less_money_than_asked_for_confirms_nothing_and_goes_back_when_the_hold_is_over() {
    let mut shop = Shop::open();
    let id = shop.hold("o1", 1, 1);
    shop.pays("o1", 400, shop.world.now());
    assert_eq!((shop.status(&id), shop.refunds(&id).len()), ("hold", 0));
    shop.wait(32 * MINUTE);
    assert_eq!(shop.status(&id), "expired");
    assert_eq!(shop.refunds(&id), [(format!("rule/EXPIRED_AFTER_PAYMENT/{id}/1"), "EXPIRED_PAYMENT".into())]);
}

/// Every cell of the table of late money.
#[test]
fn f1_late_money_is_confirmed_moved_or_refunded_as_the_table_says() {
    for is_swept in [true, false] {
        for was_in_time in [true, false] {
            for is_taken in [true, false] {
                for late in [LatePayment::Refund, LatePayment::Reassign] {
                    let mut shop = Shop::open();
                    shop.world.policy.late_payment = late;
                    let begun = shop.world.now();
                    let id = shop.hold("o1", 1, 1);
                    if is_swept {
                        shop.wait(40 * MINUTE);
                    } else {
                        shop.wait_unswept(40 * MINUTE);
                    }
                    if is_taken {
                        shop.hold("o2", 1, 1);
                    }
                    let paid_at = begun.plus_ms(if was_in_time { 32 * MINUTE } else { 33 * MINUTE });
                    shop.pays("o1", 1_000, paid_at);
                    let case = format!("swept {is_swept}, in time {was_in_time}, taken {is_taken}, {late:?}");
                    if !is_taken && (was_in_time || late == LatePayment::Reassign) {
                        assert_eq!(shop.status(&id), "confirmed", "{case}");
                        assert_eq!(shop.reservation(&id).confirmed, 2, "{case}");
                        assert!(shop.refunds(&id).is_empty(), "{case}");
                    } else {
                        let (rule, trigger) = if was_in_time {
                            ("WEBHOOK_DELAY", "WEBHOOK_DELAY")
                        } else {
                            ("EXPIRED_AFTER_PAYMENT", "EXPIRED_PAYMENT")
                        };
                        assert_eq!(shop.status(&id), "expired", "{case}");
                        assert_eq!(
                            shop.refunds(&id),
                            [(format!("rule/{rule}/{id}/1"), trigger.into())],
                            "{case}"
                        );
                    }
                    // Whatever is said again, nothing is done again.
                    shop.pays("o1", 1_000, paid_at);
                    shop.wait(DAY_MS);
                    assert!(shop.refunds(&id).len() <= 1, "{case}");
                }
            }
        }
    }
}

#[test]
fn f1_who_pays_at_the_konbini_has_days_but_not_beyond_the_showing() {
    for (starts_in, until) in [(30 * DAY_MS, 7 * DAY_MS), (2 * DAY_MS, 2 * DAY_MS)] {
        let mut shop = Shop::open();
        let begun = shop.world.now();
        let starts_at = begun.plus_ms(starts_in);
        let id = shop.hold_with("o1", 1, 1, |hold| hold.reservation.ours.starts_at = Some(starts_at));
        shop.world.hears(&session("o1", "complete"));
        assert_eq!(shop.reservation(&id).until, begun.plus_ms(until), "nobody can be asked");
        shop.wait(DAY_MS);
        assert_eq!((shop.status(&id), shop.told()), ("hold", vec!["reservation.extended"]));
        shop.wait(until);
        assert_eq!(shop.status(&id), "expired");
    }
}

#[test]
fn f1_a_voucher_that_is_asked_for_in_vain_lasts_as_long_as_any() {
    let mut shop = Shop::open();
    shop.world.can_fetch = true;
    let begun = shop.world.now();
    let id = shop.hold("o1", 1, 1);
    shop.world.hears(&session("o1", "complete"));
    assert_eq!(shop.reservation(&id).until, begun.plus_ms(60 * MINUTE), "while it is asked for");
    shop.wait(60 * MINUTE);
    assert_eq!(shop.reservation(&id).until, begun.plus_ms(7 * DAY_MS));
    shop.wait(DAY_MS);
    assert_eq!(shop.status(&id), "hold");
}

#[test]
fn f1_a_session_that_ran_out_frees_the_place_at_once() {
    let mut shop = Shop::open();
    let id = shop.hold("o1", 1, 1);
    shop.world.hears(&session("o1", "expired"));
    assert_eq!(shop.status(&id), "expired");
    let other = shop.hold("o2", 1, 1);
    assert_eq!(shop.status(&other), "hold");
}

#[test]
fn f1_without_a_price_it_is_confirmed_at_once() {
    let mut shop = Shop::open();
    let id = shop.hold_with("o1", 1, 1, |hold| hold.reservation.ours.payment = None);
    assert_eq!((shop.status(&id), shop.told()), ("confirmed", vec!["reservation.confirmed"]));
    shop.cancels(&id, "CUSTOMER", true);
    assert_eq!(shop.status(&id), "cancelled");
    let other = shop.hold("o2", 1, 1);
    assert_eq!(shop.status(&other), "hold");
}

#[test]
fn f3_a_cancelled_place_is_free_and_its_money_goes_back_once_however_often_it_is_cancelled() {
    let mut shop = Shop::open();
    let id = shop.hold("o1", 1, 1);
    shop.pays("o1", 1_000, shop.world.now());
    shop.cancels(&id, "CUSTOMER", true);
    shop.cancels(&id, "ADMIN:tomo", true);
    assert_eq!(shop.status(&id), "cancelled");
    assert_eq!(shop.refunds(&id), [(format!("cancel/{id}"), "CUSTOMER_CANCEL".into())]);
    assert_eq!(shop.told(), ["reservation.confirmed", "reservation.cancelled"]);
    let other = shop.hold("o2", 1, 1);
    assert_eq!(shop.status(&other), "hold");
}

#[test]
fn f3_money_for_what_was_cancelled_goes_back() {
    let mut shop = Shop::open();
    let id = shop.hold("o1", 1, 1);
    shop.cancels(&id, "ADMIN:tomo", false);
    shop.pays("o1", 1_000, shop.world.now());
    assert_eq!(shop.status(&id), "cancelled");
    assert_eq!(shop.refunds(&id), [(format!("rule/EXPIRED_AFTER_PAYMENT/{id}/1"), "EXPIRED_PAYMENT".into())]);
}

#[test]
fn f3_a_whole_refund_by_anybody_cancels_and_a_partial_one_does_not() {
    let mut shop = Shop::open();
    let id = shop.hold_with("o1", 1, 1, |hold| {
        let ours = ful::FulfilmentRequest {
            kind: "video".into(),
            tier: ful::Tier::Paid,
            at: hold.reservation.ours.at,
            payment: hold.reservation.ours.payment.clone(),
            reservation: Some(hold.id.clone()),
            ..ful::FulfilmentRequest::default()
        };
        hold.fulfilment =
            Some(("ful_1".into(), ful::FulfilmentFacts { ours, ..ful::FulfilmentFacts::default() }));
        hold.reservation.ours.fulfilment = Some("ful_1".into());
    });
    assert_eq!(shop.fulfilment("ful_1").status(3), ful::FulfilmentStatus::Waiting);
    shop.pays("o1", 1_000, shop.world.now());
    assert_eq!(shop.fulfilment("ful_1").status(3), ful::FulfilmentStatus::Processing);
    shop.refund_arrives("o1", "re_1", 300, "succeeded", None);
    assert_eq!(shop.status(&id), "confirmed");
    shop.refund_arrives("o1", "re_2", 700, "pending", None);
    assert_eq!(shop.status(&id), "confirmed", "it has not arrived");
    let before = shop.world.told.len();
    shop.refund_arrives("o1", "re_2", 700, "succeeded", None);
    assert_eq!(shop.status(&id), "cancelled");
    assert!(shop.fulfilment("ful_1").downgraded_at.is_some());
    let told: Vec<_> = shop.world.told[before..].iter().map(|told| &*told.event_type).collect();
    assert_eq!(
        told,
        ["payment.refunded", "reservation.cancelled", "fulfilment.downgraded", "compensation.recorded"]
    );
    assert!(shop.refunds(&id).is_empty(), "others refunded it");
}

#[test]
fn f3_too_many_automatic_refunds_wait_for_a_person() {
    let mut shop = Shop::open();
    shop.world.policy.refunds.automatic_per_hour = 2;
    let ids: Vec<String> = (0..4).map(|n| shop.hold(&format!("o{n}"), 1, 9)).collect();
    shop.wait(40 * MINUTE);
    for n in 0..4 {
        shop.pays(&format!("o{n}"), 1_000, shop.world.now());
    }
    let held_back = |id: &String| shop.payment(id).refund_orders.values().any(|order| order.held_back);
    assert_eq!(ids.iter().map(held_back).collect::<Vec<_>>(), [false, false, true, true]);
    assert_eq!(shop.world.refunds.len(), 2);
}

#[test]
fn f3_where_refunds_are_not_allowed_a_person_makes_them() {
    let mut shop = Shop::open();
    shop.world.policy.refunds.accounts.clear();
    let id = shop.hold("o1", 1, 1);
    shop.pays("o1", 1_000, shop.world.now());
    shop.cancels(&id, "CUSTOMER", true);
    let order = shop.payment(&id).refund_orders.into_values().next().unwrap();
    assert!(order.wish.by_hand.is_some() && shop.world.refunds.is_empty());
    let derived = Derived::of(&shop.payment(&id));
    assert_eq!(derived.attention.unwrap().name(), "refund_by_hand");
}

fn made(shop: &mut Shop, run: u32, result: ful::RunResult) {
    let at = Some(shop.world.now());
    let run_facts = ful::FulfilmentRun {
        result,
        ended_at: at,
        error: Some("no memory".into()),
        ..ful::FulfilmentRun::default()
    };
    let facts = ful::FulfilmentFacts { runs: [(run, run_facts)].into(), ..ful::FulfilmentFacts::default() };
    shop.tell(OrderPart::Fulfilment { id: "ful_1".into(), facts: Box::new(facts) });
}

#[test]
fn f2_a_run_that_fails_or_is_not_answered_is_asked_for_again_and_the_third_is_final() {
    let mut shop = Shop::open();
    shop.hold_with("o1", 1, 1, |hold| {
        let ours = ful::FulfilmentRequest {
            kind: "video".into(),
            tier: ful::Tier::Paid,
            payment: hold.reservation.ours.payment.clone(),
            reservation: Some(hold.id.clone()),
            ..ful::FulfilmentRequest::default()
        };
        hold.fulfilment =
            Some(("ful_1".into(), ful::FulfilmentFacts { ours, ..ful::FulfilmentFacts::default() }));
        hold.reservation.ours.fulfilment = Some("ful_1".into());
    });
    shop.pays("o1", 1_000, shop.world.now());
    assert_eq!(shop.told(), ["reservation.confirmed", "fulfilment.requested"]);
    made(&mut shop, 1, ful::RunResult::Failed);
    assert_eq!(shop.told()[2..], ["fulfilment.retrying", "fulfilment.requested"]);
    shop.wait(30 * MINUTE - 1);
    assert_eq!(shop.fulfilment("ful_1").runs.len(), 2);
    shop.wait(1);
    assert_eq!(shop.fulfilment("ful_1").runs.len(), 3);
    assert_eq!(shop.fulfilment("ful_1").last_error(), Some("timeout"));
    made(&mut shop, 3, ful::RunResult::Failed);
    assert_eq!(shop.fulfilment("ful_1").status(3), ful::FulfilmentStatus::Failed);
    assert_eq!(*shop.told().last().unwrap(), "fulfilment.failed");
    // It came to its end all the same, a little later.
    made(&mut shop, 3, ful::RunResult::Done);
    assert_eq!(shop.fulfilment("ful_1").status(3), ful::FulfilmentStatus::Done);
    shop.wait(DAY_MS);
    assert_eq!(*shop.told().last().unwrap(), "fulfilment.done");
    assert_eq!(shop.told().len(), 8);
}
