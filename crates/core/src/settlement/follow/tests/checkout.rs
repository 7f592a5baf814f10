//! F1, F8: one session at a time, expired before its places are given away, and never taken for cancelled once it is complete.

use super::*;
use crate::job::{CheckoutCall, CheckoutStep};
use crate::settlement::checkout::{CheckoutRefusal, TryChosen, choose, told};
use crate::settlement::payment::{
    Attention, CheckoutSession, SessionPlace, SessionTry, SessionWish, TRIES_MAX, TryFate,
};

impl Shop {
    /// Somebody asks for a session, for whom those up to `after` are of no use.
    fn checks_out(&mut self, id: &str, after: u32) -> Result<TryChosen, CheckoutRefusal> {
        let (facts, at) = (self.payment(id), self.world.now());
        let chosen = choose(&facts, after)?;
        let wish = SessionWish { at, source: "stripe".into(), ..SessionWish::default() };
        let said = SessionTry { wish, asked_at: Some(at), ..SessionTry::default() };
        let payment = told(facts.ours.keys().next().unwrap(), Some(true), chosen.number(), said);
        let until = at.plus_ms(30 * MINUTE);
        let is_next = matches!(chosen, TryChosen::Next(_));
        let renewal = is_next.then(|| OrderPart::Renewal(Renewal { id: id.to_owned(), until }));
        let order = renewal.into_iter().collect();
        let reading = Reading { payment: Some(payment), order, ..Reading::default() };
        let seq = self.world.next_seq();
        self.world.settle(&[Input { seq, reading, cause: Cause::system() }]);
        Ok(chosen)
    }

    /// The provider answers the newest call.
    fn learns(&mut self, session: &str, status: SessionStatus, paid: bool) {
        let call = self.world.checkouts.last().unwrap().clone();
        let place = SessionPlace { url: Some(format!("https://till/{session}")), expires_at: None };
        let said = SessionTry { sessions: [(session.to_owned(), place)].into(), ..SessionTry::default() };
        let seq = self.world.next_seq();
        let mut input = call.input(seq, said);
        let facts = input.reading.payment.as_mut().unwrap();
        facts.names.insert(call.realm().name(session));
        facts.realms.insert(call.realm().to_string());
        let intent = (status == SessionStatus::Complete).then(|| format!("pi_{session}"));
        let known = CheckoutSession { status, paid, intent, ..CheckoutSession::default() };
        facts.sessions.insert(session.to_owned(), known);
        self.world.settle(&[input]);
    }

    /// A reservation whose customer is at the till.
    fn at_the_till(&mut self, reference: &str) -> String {
        let id = self.hold(reference, 1, 1);
        self.checks_out(&id, 0).unwrap();
        self.learns("cs_1", SessionStatus::Open, false);
        id
    }

    fn calls(&self) -> Vec<String> {
        let step = |call: &CheckoutCall| match &call.step {
            CheckoutStep::Create { generation } => format!("create {}/{generation}", call.number),
            CheckoutStep::Expire { session } => format!("expire {session}"),
        };
        self.world.checkouts.iter().map(step).collect()
    }

    fn fates(&self, id: &str) -> Vec<TryFate> {
        let facts = self.payment(id);
        facts.session_tries.values().map(|one| facts.fate(one)).collect()
    }

    fn money(&mut self, session: &str) {
        let now = self.world.now();
        let mut event = charged(session, 1_000, now);
        event["data"]["object"]["metadata"] = json!({});
        let completed = json!({
            "type": "checkout.session.completed", "livemode": true,
            "data": { "object": {
                "object": "checkout.session", "id": session, "status": "complete", "mode": "payment",
                "payment_status": "paid", "amount_total": 1_000, "currency": "jpy",
                "payment_intent": format!("pi_{session}"),
            } },
        });
        self.world.hears_all(&[completed, event]);
    }
}

#[test]
fn f1_a_hold_that_is_extended_keeps_its_place_as_long() {
    let mut shop = Shop::open();
    let id = shop.hold("o1", 1, 1);
    let until = shop.world.now().plus_ms(60 * MINUTE);
    shop.says(&id, |facts| facts.until = until);
    shop.wait(45 * MINUTE);
    shop.hold("o2", 1, 1);
    assert_eq!((shop.status(&id), shop.world.declined.len()), ("hold", 1), "nobody else gets it");
}

#[test]
fn e1_a_session_is_asked_for_once_and_open_as_long_as_its_places_are_held() {
    let mut shop = Shop::open();
    let id = shop.hold("o1", 1, 1);
    assert_eq!(shop.checks_out(&id, 0), Ok(TryChosen::Next(1)));
    for _ in 0..3 {
        assert_eq!(shop.checks_out(&id, 0), Ok(TryChosen::Same(1)), "the same try goes on");
        assert_eq!(shop.checks_out(&id, 1), Ok(TryChosen::Same(1)), "its fate is not known");
    }
    assert_eq!(shop.calls(), ["create 1/1"]);
    let facts = shop.payment(&id);
    assert_eq!(
        facts.session_tries[&1].generations[&1].expires_at,
        shop.world.now().plus_ms(31 * MINUTE),
        "the provider takes none that ends within half an hour"
    );
    assert_eq!(facts.open_session(), None);
    shop.learns("cs_1", SessionStatus::Open, false);
    let facts = shop.payment(&id);
    assert_eq!(facts.open_session().unwrap().1.url.as_deref(), Some("https://till/cs_1"));
    assert_eq!(shop.checks_out(&id, 0), Ok(TryChosen::Same(1)), "it can be paid");
    let told = shop.world.told();
    assert_eq!(told.iter().filter(|told| **told == "payment.checkout_ready").count(), 1);
    shop.money("cs_1");
    assert_eq!((shop.status(&id), shop.checks_out(&id, 1)), ("confirmed", Err(CheckoutRefusal::Paid)));
    assert_eq!(shop.calls(), ["create 1/1"]);
}

#[test]
fn f1_the_session_is_expired_before_the_place_is_given_away() {
    let mut shop = Shop::open();
    let id = shop.at_the_till("o1");
    shop.wait(30 * MINUTE - 1);
    assert_eq!(shop.calls(), ["create 1/1"]);
    shop.wait(1);
    assert_eq!((shop.calls(), shop.status(&id)), (vec!["create 1/1".into(), "expire cs_1".into()], "hold"));
    shop.hold("o2", 1, 1);
    assert_eq!(shop.world.declined.len(), 1, "the place stays until the answer");
    shop.learns("cs_1", SessionStatus::Expired, false);
    assert_eq!(shop.status(&id), "expired", "at once, before the grace is over");
    let second = shop.hold("o3", 1, 1);
    assert_eq!(shop.status(&second), "hold");

    // Without an answer the place is kept for the grace, and no longer.
    let mut shop = Shop::open();
    let id = shop.at_the_till("o1");
    shop.wait(30 * MINUTE);
    shop.wait(2 * MINUTE - 1);
    assert_eq!(shop.status(&id), "hold");
    shop.wait(1);
    assert_eq!((shop.status(&id), shop.calls().len()), ("expired", 2));
}

#[test]
fn f1_a_complete_session_is_never_taken_for_cancelled_and_its_money_is_waited_for() {
    let mut shop = Shop::open();
    let id = shop.at_the_till("o1");
    shop.wait(30 * MINUTE);
    shop.world.can_fetch = true;
    shop.learns("cs_1", SessionStatus::Complete, true);
    assert_eq!(shop.reservation(&id).until, shop.world.now().plus_ms(10 * MINUTE));
    let intents = shop.world.fetches.iter().filter(|fetch| fetch.object == "payment_intent").count();
    assert_eq!(intents, 1, "the intent is asked for: {:?}", shop.world.fetches);
    shop.wait(10 * MINUTE);
    assert_eq!((shop.status(&id), shop.reservation(&id).awaited), ("hold", 2));
    let mut paid = Shop::open();
    std::mem::swap(&mut paid, &mut shop);
    paid.money("cs_1");
    assert_eq!((paid.status(&id), paid.refunds(&id).len()), ("confirmed", 0));

    let mut shop = Shop::open();
    let id = shop.at_the_till("o1");
    shop.wait(30 * MINUTE);
    shop.learns("cs_1", SessionStatus::Complete, true);
    for _ in 0..6 {
        shop.wait(10 * MINUTE);
    }
    assert_eq!((shop.status(&id), shop.reservation(&id).awaited), ("expired", 3), "three times at most");
}

#[test]
fn f8_the_next_session_is_made_when_nobody_can_pay_the_one_before() {
    let mut shop = Shop::open();
    let id = shop.at_the_till("o1");
    shop.wait(20 * MINUTE);
    assert_eq!(shop.checks_out(&id, 1), Ok(TryChosen::Next(2)));
    assert_eq!(shop.calls(), ["create 1/1", "expire cs_1"]);
    assert_eq!(shop.fates(&id), [TryFate::Open, TryFate::Waiting]);
    assert_eq!(shop.checks_out(&id, 1), Ok(TryChosen::Same(2)), "two clicks, two tabs: one try");
    assert_eq!(shop.reservation(&id).until, shop.world.now().plus_ms(30 * MINUTE), "the hold is renewed");
    // A card was declined in it, so it had an intent, which ends with it.
    shop.world.hears(&json!({
        "type": "payment_intent.canceled", "livemode": true,
        "data": { "object": {
            "object": "payment_intent", "id": "pi_old", "status": "canceled", "amount": 1_000, "currency": "jpy",
            "metadata": { "order_id": "o1" },
        } },
    }));
    shop.learns("cs_1", SessionStatus::Expired, false);
    assert_eq!(shop.status(&id), "hold", "the old session's end is not the order's");
    assert!(!shop.world.told().iter().any(|told| ["payment.expired", "payment.cancelled"].contains(told)));
    assert_eq!(shop.calls(), ["create 1/1", "expire cs_1", "create 2/1"]);
    shop.learns("cs_2", SessionStatus::Open, false);
    assert_eq!(shop.checks_out(&id, 1), Ok(TryChosen::Same(2)), "a click of another tab, later");
    assert_eq!((shop.fates(&id), shop.calls().len()), (vec![TryFate::Expired, TryFate::Open], 3));
    shop.money("cs_2");
    assert_eq!(shop.status(&id), "confirmed");
}

#[test]
fn f8_whoever_completed_the_old_session_meanwhile_gets_no_second() {
    let mut shop = Shop::open();
    let id = shop.at_the_till("o1");
    shop.checks_out(&id, 1).unwrap();
    shop.learns("cs_1", SessionStatus::Complete, true);
    assert_eq!(shop.calls(), ["create 1/1", "expire cs_1"], "no second session");
    assert_eq!(shop.checks_out(&id, 2), Err(CheckoutRefusal::UnderWay));
    shop.money("cs_1");
    assert_eq!((shop.status(&id), shop.calls().len()), ("confirmed", 2));
    shop.wait(DAY_MS);
    assert_eq!((shop.status(&id), shop.calls().len()), ("confirmed", 2));
}

#[test]
fn f8_both_sessions_paid_all_the_same_need_a_person_and_cancel_nothing() {
    let mut shop = Shop::open();
    let id = shop.at_the_till("o1");
    shop.checks_out(&id, 1).unwrap();
    shop.learns("cs_1", SessionStatus::Expired, false);
    shop.learns("cs_2", SessionStatus::Open, false);
    shop.money("cs_2");
    shop.money("cs_1");
    let derived = Derived::of(&shop.payment(&id));
    assert_eq!((derived.received, derived.attention), (2_000, Some(Attention::Overpaid)));
    assert_eq!((shop.status(&id), shop.refunds(&id).len()), ("confirmed", 0));
}

#[test]
fn f8_a_lapsed_hold_is_renewed_while_a_place_is_free() {
    let mut shop = Shop::open();
    let id = shop.at_the_till("o1");
    shop.wait(30 * MINUTE);
    shop.learns("cs_1", SessionStatus::Expired, false);
    assert_eq!(shop.status(&id), "expired");
    shop.checks_out(&id, 1).unwrap();
    assert_eq!((shop.status(&id), shop.reservation(&id).claimed()), ("hold", 2));
    shop.hold("o2", 1, 1);
    assert_eq!(shop.world.declined.len(), 1, "the place is theirs again");
    shop.learns("cs_2", SessionStatus::Open, false);
    shop.wait(30 * MINUTE);
    shop.learns("cs_2", SessionStatus::Expired, false);
    let other = shop.hold("o3", 1, 1);
    assert_eq!(shop.status(&other), "hold");
    let (before, calls) = (shop.payment(&id), shop.calls().len());
    shop.checks_out(&id, 2).unwrap();
    assert_eq!(shop.world.declined.len(), 2, "none is free");
    assert_eq!((shop.status(&id), shop.payment(&id) == before, shop.calls().len()), ("expired", true, calls));
}

#[test]
fn f1_the_konbini_has_as_long_as_its_voucher_and_an_hour() {
    let voucher = |shop: &mut Shop, expires_at: Option<i64>| {
        let details = json!({ "type": "konbini_display_details", "konbini_display_details": { "expires_at": expires_at } });
        shop.world.hears(&json!({
            "type": "payment_intent.requires_action", "livemode": true,
            "data": { "object": {
                "object": "payment_intent", "id": "pi_o1", "status": "requires_action", "amount": 1_000,
                "currency": "jpy", "next_action": details, "metadata": { "order_id": "o1" },
            } },
        }));
    };
    let completed = |shop: &mut Shop| {
        let mut event = session("o1", "complete");
        event["created"] = json!(shop.world.now().seconds());
        shop.world.hears(&event);
    };
    let expires_at = NOW_S + 3 * 86_400;
    for is_voucher_first in [true, false] {
        let mut shop = Shop::open();
        shop.world.can_fetch = true;
        let id = shop.hold("o1", 1, 1);
        if is_voucher_first {
            voucher(&mut shop, Some(expires_at));
            completed(&mut shop);
        } else {
            completed(&mut shop);
            assert_eq!(shop.reservation(&id).until, shop.world.now().plus_ms(60 * MINUTE), "for a while");
            assert_eq!(shop.world.fetches.len(), 1, "and the provider is asked");
            voucher(&mut shop, Some(expires_at));
        }
        assert_eq!(shop.reservation(&id).until, Time::from_seconds(expires_at + 3_600));
    }
    // What has no end, or whose end nobody could say, has the longest.
    for is_asked in [true, false] {
        let mut shop = Shop::open();
        let begun = shop.world.now();
        let id = shop.hold("o1", 1, 1);
        completed(&mut shop);
        if is_asked {
            voucher(&mut shop, None);
        }
        shop.wait(60 * MINUTE);
        assert_eq!(shop.reservation(&id).until, begun.plus_ms(7 * DAY_MS));
    }
    let mut shop = Shop::open();
    let starts_at = shop.world.now().plus_ms(2 * DAY_MS);
    let id = shop.hold_with("o1", 1, 1, |hold| hold.reservation.ours.starts_at = Some(starts_at));
    voucher(&mut shop, Some(expires_at));
    completed(&mut shop);
    assert_eq!(shop.reservation(&id).until, starts_at, "not after it starts");
}

const NOW_S: i64 = 1_780_000_000;

#[test]
fn f1_what_is_cancelled_can_not_be_paid_any_more() {
    let mut shop = Shop::open();
    let id = shop.at_the_till("o1");
    shop.cancels(&id, "CUSTOMER", true);
    assert_eq!(shop.calls(), ["create 1/1", "expire cs_1"]);
    // One that was asked for and is not known yet is expired when it is.
    let mut shop = Shop::open();
    let id = shop.hold("o1", 1, 1);
    shop.checks_out(&id, 0).unwrap();
    shop.cancels(&id, "API:app", true);
    assert_eq!(shop.calls(), ["create 1/1"]);
    shop.learns("cs_1", SessionStatus::Open, false);
    assert_eq!(shop.calls(), ["create 1/1", "expire cs_1"]);
    assert_eq!(shop.payment(&id).open_session(), None, "nobody is sent there");
}

#[test]
fn f8_after_ten_sessions_a_person_should_help() {
    let mut shop = Shop::open();
    let id = shop.hold("o1", 1, 1);
    for n in 0..TRIES_MAX {
        assert_eq!(shop.checks_out(&id, n), Ok(TryChosen::Next(n + 1)));
        shop.learns(&format!("cs_{n}"), SessionStatus::Expired, false);
    }
    assert_eq!(shop.checks_out(&id, TRIES_MAX), Err(CheckoutRefusal::TooMany));
}
