use serde_json::json;

use super::super::payment::{Derived, Release};
use super::super::world::{NOW, World};
use super::next::{GENERATIONS_MAX, SETTLED_AFTER_MS};
use super::*;

const KEY: &str = "request/1";

fn wish(key: &str, amount: Option<i64>) -> Wish {
    let wish = RefundWish {
        at: NOW,
        by: "ADMIN:tomo".into(),
        trigger: "OPERATOR".into(),
        amount,
        ..RefundWish::default()
    };
    Wish { key: key.into(), wish, held_back: false }
}

/// A payment of these intents, each with a charge of the same money.
fn paid(intents: &[(&str, i64)]) -> World {
    let mut world = World::of("stripe");
    for (id, amount) in intents {
        let charge = id.replace("pi", "ch");
        world.hears(&json!({
            "type": "charge.succeeded", "livemode": true,
            "data": { "object": {
                "object": "charge", "id": charge, "payment_intent": id, "amount": amount, "amount_captured": amount,
                "captured": true, "paid": true, "status": "succeeded", "currency": "jpy",
                "metadata": { "order_id": "1001" },
            } },
        }));
    }
    world
}

fn refund(id: &str, intent: &str, amount: i64, status: &str, order: Option<&str>) -> serde_json::Value {
    json!({
        "type": "refund.updated", "livemode": true,
        "data": { "object": {
            "object": "refund", "id": id, "payment_intent": intent, "charge": intent.replace("pi", "ch"),
            "amount": amount, "currency": "jpy", "status": status, "metadata": { "sekisho_refund": order },
        } },
    })
}

fn facts(world: &World) -> Facts {
    world.facts().next().unwrap()
}

fn allow(_: &str) -> Rights {
    Rights::ByCommand
}

/// Orders, as an act does.
fn ordered(world: &mut World, wish: Wish) -> Result<RefundOrder, RefundRefusal> {
    let facts = facts(world);
    let (key, made) = (wish.key.clone(), order(&facts, wish, allow)?);
    settle(world, &key, &made);
    Ok(made)
}

fn settle(world: &mut World, key: &str, made: &RefundOrder) {
    let mut seq = 1_000;
    let next = || {
        seq += 1;
        Seq::from_i64(seq)
    };
    world.settle(&inputs(&facts(world), key, made, next, &Cause::default()));
}

fn status(world: &World, key: &str) -> RefundOrderStatus {
    let facts = facts(world);
    facts.refund_order_status(key, &facts.refund_orders[key])
}

fn call(id: &str, generation: u32) -> RefundCall {
    RefundCall::of("stripe/-/live", ("payment_intent", id), KEY, generation).unwrap()
}

fn seen(id: &str, amount: i64, order: Option<&str>) -> Listed {
    Listed { id: id.into(), amount, holds: true, order: order.map(str::to_owned) }
}

#[test]
fn e1_an_order_asks_for_what_is_left_of_each_object_once() {
    let mut world = paid(&[("pi_1", 1_000), ("pi_2", 500)]);
    assert_eq!(ordered(&mut world, wish(KEY, None)).unwrap().amount(Currency::parse("jpy")), 1_500);
    let jobs: Vec<_> = world.refunds.iter().map(|call| (&*call.id, call.generation)).collect();
    assert_eq!(jobs, [("pi_1", 1), ("pi_2", 1)]);
    assert_eq!(world.told().iter().filter(|told| **told == "payment.refund_ordered").count(), 1);
    assert_eq!(status(&world, KEY), RefundOrderStatus::Ordered, "never pending before the provider said so");
    let again = ordered(&mut world, wish("request/2", None)).unwrap_err();
    assert!(again.to_string().contains(KEY), "{again}");
    world.hears(&refund("re_1", "pi_1", 1_000, "succeeded", Some(KEY)));
    assert_eq!(status(&world, KEY), RefundOrderStatus::Ordered, "the other is still to come");
    world.hears(&refund("re_2", "pi_2", 500, "pending", Some(KEY)));
    assert_eq!(status(&world, KEY), RefundOrderStatus::Pending);
    world.hears(&refund("re_2", "pi_2", 500, "succeeded", Some(KEY)));
    assert_eq!(status(&world, KEY), RefundOrderStatus::Done);
    assert_eq!(world.refunds.len(), 2, "nothing more is asked for");
}

#[test]
fn e1_an_amount_is_taken_from_the_oldest_and_never_more_than_is_left() {
    let mut world = paid(&[("pi_1", 1_000), ("pi_2", 500)]);
    assert_eq!(ordered(&mut world, wish("a", Some(1_501))), Err(RefundRefusal::MoreThanLeft { left: 1_500 }));
    let made = ordered(&mut world, wish("b", Some(1_200))).unwrap();
    let calls: Vec<_> = made.newest().map(|(id, _, call)| (id.as_str(), call.amount)).collect();
    assert_eq!(calls, [("pi_1", 1_000), ("pi_2", 200)]);
    assert_eq!(ordered(&mut world, wish("c", Some(301))), Err(RefundRefusal::MoreThanLeft { left: 300 }));
    assert!(ordered(&mut world, wish("c", Some(300))).is_ok());
    let nothing = ordered(&mut world, wish("d", Some(1))).unwrap_err();
    assert!(matches!(nothing, RefundRefusal::Ordered { .. }), "{nothing}");
}

#[test]
fn e1_what_can_not_be_refunded_is_refused_with_its_reason() {
    let unpaid = Facts::default();
    assert_eq!(order(&unpaid, wish(KEY, None), allow), Err(RefundRefusal::NothingReceived));
    let facts = facts(&paid(&[("pi_1", 1_000)]));
    let usd = Currency::parse("usd").unwrap();
    let mut dollars = wish(KEY, None);
    dollars.wish.currency = Some(usd);
    let other = order(&facts, dollars, allow).unwrap_err();
    assert_eq!(other.to_string(), "the payment is in jpy, not in usd");
    let refused = order(&facts, wish(KEY, None), |_| Rights::NotAllowed).unwrap_err();
    assert!(refused.to_string().contains("refunds = true"), "{refused}");
}

#[test]
fn e1_a_refund_at_the_provider_meets_the_rest_and_not_an_amount() {
    let mut world = paid(&[("pi_1", 1_000)]);
    ordered(&mut world, wish(KEY, None)).unwrap();
    world.hears(&refund("re_hand", "pi_1", 1_000, "succeeded", None));
    assert_eq!(status(&world, KEY), RefundOrderStatus::MetElsewhere);
    let mut world = paid(&[("pi_1", 1_000)]);
    ordered(&mut world, wish(KEY, Some(400))).unwrap();
    world.hears(&refund("re_hand", "pi_1", 400, "succeeded", None));
    assert_eq!(status(&world, KEY), RefundOrderStatus::Ordered, "their refund and ours are two wishes");
}

#[test]
fn e1_row_3_a_refund_that_fails_after_it_succeeded_is_no_refund() {
    let mut world = paid(&[("pi_1", 1_000)]);
    ordered(&mut world, wish(KEY, None)).unwrap();
    world.hears(&refund("re_1", "pi_1", 1_000, "succeeded", Some(KEY)));
    world.hears(&refund("re_1", "pi_1", 1_000, "failed", Some(KEY)));
    assert_eq!(status(&world, KEY), RefundOrderStatus::Failed);
    let derived = Derived::of(&facts(&world));
    assert_eq!((derived.status.name(), derived.attention.unwrap().name()), ("paid", "refund_failed"));
    assert!(ordered(&mut world, wish("again", None)).is_ok(), "a person may order it anew");
}

#[test]
fn e1_row_2_answer_webhook_and_list_are_one_refund_in_every_order() {
    let made = || refund("re_1", "pi_1", 1_000, "succeeded", Some(KEY));
    let listed = || {
        let mut event = made();
        event["type"] = "stripe.refund".into();
        event
    };
    for witnesses in [[made(), listed(), made()], [listed(), made(), listed()], [listed(), listed(), made()]]
    {
        let mut world = paid(&[("pi_1", 1_000)]);
        ordered(&mut world, wish(KEY, None)).unwrap();
        let before = world.postings.len();
        world.hears(&witnesses[0]);
        let booked = world.postings.len();
        assert!(booked > before);
        witnesses[1..].iter().for_each(|witness| world.hears(witness));
        assert_eq!(world.postings.len(), booked, "one line in the books");
        assert_eq!(world.told().iter().filter(|told| **told == "payment.refunded").count(), 1);
        assert_eq!(status(&world, KEY), RefundOrderStatus::Done);
    }
}

#[test]
fn e1_the_next_step_follows_from_what_the_provider_lists() {
    let mut world = paid(&[("pi_1", 1_000)]);
    ordered(&mut world, wish(KEY, None)).unwrap();
    let rest = facts(&world);
    let step = |listed: &[Listed]| next(&rest, &call("pi_1", 1), listed, NOW);
    assert_eq!(step(&[]), RefundStep::Post { amount: 1_000 });
    assert!(
        matches!(step(&[seen("re_1", 1_000, Some(KEY))]), RefundStep::Over(_)),
        "it was made, and the answer lost"
    );
    let failed = Listed { holds: false, ..seen("re_1", 1_000, Some(KEY)) };
    assert!(matches!(step(&[failed]), RefundStep::Over(_)), "what failed is a person's");
    assert_eq!(step(&[seen("re_x", 1_000, None)]), RefundStep::Met);
    assert_eq!(step(&[seen("re_x", 300, None)]), RefundStep::Next { amount: 700 });
    let gone = Listed { holds: false, ..seen("re_x", 300, None) };
    assert_eq!(step(&[gone]), RefundStep::Post { amount: 1_000 }, "what came back is there again");

    let mut world = paid(&[("pi_1", 1_000)]);
    ordered(&mut world, wish(KEY, Some(800))).unwrap();
    let part = facts(&world);
    let step = |listed: &[Listed]| next(&part, &call("pi_1", 1), listed, NOW);
    assert_eq!(step(&[seen("re_x", 200, None)]), RefundStep::Post { amount: 800 });
    assert!(matches!(step(&[seen("re_x", 201, None)]), RefundStep::GiveUp { reason: "more_than_left", .. }));
}

#[test]
fn e1_a_stored_failure_leads_to_another_key_after_a_while_and_not_for_ever() {
    let mut world = paid(&[("pi_1", 1_000)]);
    ordered(&mut world, wish(KEY, None)).unwrap();
    let mut keys = Vec::new();
    for n in 1..=GENERATIONS_MAX {
        let own = call("pi_1", n);
        keys.push(own.idempotency_key());
        let kept = Generation { amount: 1_000, currency: Currency::parse("jpy"), failed_at: Some(NOW) };
        let learn = |n, generation: Generation| {
            own.input(Seq::from_i64(2_000 + i64::from(n)), |order| {
                order.calls.insert("pi_1".into(), [(n, generation)].into());
            })
        };
        world.settle(&[learn(n, kept.clone())]);
        let facts = facts(&world);
        assert_eq!(next(&facts, &own, &[], NOW), RefundStep::Wait { until: NOW.plus_ms(SETTLED_AFTER_MS) });
        let later = NOW.plus_ms(SETTLED_AFTER_MS);
        if n == GENERATIONS_MAX {
            assert!(matches!(
                next(&facts, &own, &[], later),
                RefundStep::GiveUp { reason: "no_refund_made", .. }
            ));
            break;
        }
        assert_eq!(next(&facts, &own, &[], later), RefundStep::Next { amount: 1_000 });
        world.settle(&[learn(n + 1, Generation { failed_at: None, ..kept })]);
        assert!(
            matches!(next(&self::facts(&world), &own, &[], later), RefundStep::Over(_)),
            "the next took over"
        );
    }
    keys.dedup();
    assert_eq!(keys.len(), 3);
    assert!(keys.iter().all(|key| key.len() == 41 && key.is_ascii()));
    let asked: Vec<_> = world.refunds.iter().map(|call| call.generation).collect();
    assert_eq!(
        asked,
        [1, 2, 3],
        "each generation is a job of its own, made by the commit that made it known"
    );
}

#[test]
fn e1_what_was_given_up_needs_a_person_and_takes_nothing() {
    let mut world = paid(&[("pi_1", 1_000)]);
    ordered(&mut world, wish(KEY, None)).unwrap();
    let gave_up = call("pi_1", 1).input(Seq::from_i64(3_000), |order| {
        order.gave_up.insert("pi_1".into(), "charge_disputed: a dispute is under way".into());
    });
    world.settle(&[gave_up]);
    assert_eq!(status(&world, KEY), RefundOrderStatus::Failed);
    assert_eq!(Derived::of(&facts(&world)).attention.unwrap().name(), "refund_given_up");
    assert!(world.told().contains(&"payment.refund_given_up"));
    let mut again = wish("again", None);
    again.wish.at = NOW.plus_ms(1);
    assert!(ordered(&mut world, again).is_ok());
    assert_eq!(Derived::of(&facts(&world)).attention, None, "a person has acted");
}

#[test]
fn e1_too_many_automatic_refunds_wait_for_a_person() {
    let mut automatic = Automatic::default();
    assert!((0..30).all(|n| automatic.take(30, NOW.plus_ms(n))));
    assert!(!automatic.take(30, NOW.plus_ms(HOUR_MS - 1)));
    assert!(automatic.take(30, NOW.plus_ms(HOUR_MS)), "the first is an hour old");
    assert!(!Automatic::default().take(0, NOW));

    let mut world = paid(&[("pi_1", 1_000)]);
    let mut held = ordered(&mut world, Wish { held_back: true, ..wish(KEY, None) }).unwrap();
    assert_eq!(status(&world, KEY), RefundOrderStatus::HeldBack);
    assert!(world.refunds.is_empty() && world.told().contains(&"payment.refund_ordered"));
    assert_eq!(Derived::of(&facts(&world)).attention.unwrap().name(), "refund_held_back");
    held.released = Some(Release { at: NOW, by: "tomo".into() });
    settle(&mut world, KEY, &held);
    assert_eq!((status(&world, KEY), world.refunds.len()), (RefundOrderStatus::Ordered, 1));
}

#[test]
fn e1_where_no_command_exists_a_person_refunds_and_the_providers_event_closes_it() {
    let mut world = paid(&[("pi_1", 1_000)]);
    let made = order(&facts(&world), wish(KEY, Some(400)), |_| Rights::ByHand).unwrap();
    settle(&mut world, KEY, &made);
    assert!(world.refunds.is_empty());
    assert_eq!(status(&world, KEY), RefundOrderStatus::Ordered);
    assert_eq!(Derived::of(&facts(&world)).attention.unwrap().name(), "refund_by_hand");
    world.hears(&refund("re_hand", "pi_1", 400, "succeeded", None));
    assert_eq!(status(&world, KEY), RefundOrderStatus::MetElsewhere);
    assert_eq!(Derived::of(&facts(&world)).attention, None);
}

#[test]
fn e1_row_4_a_refund_that_lacks_balance_is_on_its_way_and_operators_hear_of_it() {
    let mut world = paid(&[("pi_1", 1_000)]);
    let mut waits = refund("re_1", "pi_1", 1_000, "pending", Some(KEY));
    waits["data"]["object"]["pending_reason"] = "insufficient_funds".into();
    ordered(&mut world, wish(KEY, None)).unwrap();
    world.hears(&waits);
    assert_eq!(status(&world, KEY), RefundOrderStatus::Pending);
    assert!(world.told().contains(&"payment.refund_waiting") && !world.told().contains(&"payment.refunded"));
    world.hears(&refund("re_1", "pi_1", 1_000, "succeeded", Some(KEY)));
    assert_eq!(status(&world, KEY), RefundOrderStatus::Done);
}

#[test]
fn e1_a_pending_refund_is_looked_at_again_after_days() {
    let mut world = paid(&[("pi_1", 1_000)]);
    world.can_fetch = true;
    world.hears(&refund("re_1", "pi_1", 1_000, "requires_action", None));
    let days: Vec<_> = world.fetches.iter().map(|fetch| (&*fetch.object, fetch.after_days)).collect();
    assert_eq!(days, [("refund", 1), ("refund", 3), ("refund", 7), ("refund", 14), ("refund", 30)]);
    let job = world.fetches[1].job(Seq::from_i64(1), NOW);
    assert_eq!(job.key.as_deref(), Some("fetch/stripe/-/live/re_1@3d"));
    assert_eq!(job.due_at, NOW.plus_ms(3 * crate::time::DAY_MS));
    world.hears(&refund("re_1", "pi_1", 1_000, "requires_action", None));
    assert_eq!(world.fetches.len(), 5, "planned once");
}

#[test]
fn e1_an_order_of_two_currencies_gives_each_back_in_its_own() {
    let mut world = paid(&[("pi_1", 1_000)]);
    let dollars = json!({
        "type": "charge.succeeded", "livemode": true,
        "data": { "object": {
            "object": "charge", "id": "ch_9", "payment_intent": "pi_9", "amount": 7, "amount_captured": 7, "captured": true,
            "paid": true, "status": "succeeded", "currency": "usd", "metadata": { "order_id": "1001" },
        } },
    });
    world.hears(&dollars);
    let made = ordered(&mut world, wish(KEY, None)).unwrap();
    let calls: Vec<_> =
        made.newest().map(|(id, _, call)| (&**id, call.amount, call.currency.unwrap().to_string())).collect();
    assert_eq!(calls, [("pi_1", 1_000, "jpy".into()), ("pi_9", 7, "usd".into())]);
}

#[test]
fn e1_only_those_may_be_told_to_refund_whom_the_operator_named() {
    let policy = RefundPolicy { accounts: vec![(ApiProvider::Stripe, Some(true))], automatic_per_hour: 30 };
    assert_eq!(policy.rights("stripe/-/live"), Rights::ByCommand);
    assert_eq!(policy.rights("stripe/-/test"), Rights::NotAllowed);
    assert_eq!(policy.rights("komoju/-/live"), Rights::ByHand);
    let with_key = RefundPolicy { accounts: vec![(ApiProvider::Square, None)], automatic_per_hour: 30 };
    assert_eq!(with_key.rights("square/-/live"), Rights::ByHand);
    assert_eq!(RefundPolicy::default().rights("stripe/acct_1/live"), Rights::NotAllowed);
}

#[test]
fn e1_what_was_only_reserved_and_let_go_is_no_refund_of_the_list_either() {
    let mut world = World::of("stripe");
    world.hears(&json!({
        "type": "charge.captured", "livemode": true, "api_version": "2024-06-20",
        "data": { "object": {
            "object": "charge", "id": "ch_1", "payment_intent": "pi_1", "amount": 1_000, "amount_captured": 600,
            "amount_refunded": 400, "captured": true, "paid": true, "status": "succeeded", "currency": "jpy",
        } },
    }));
    let made = ordered(&mut world, wish(KEY, None)).unwrap();
    assert_eq!(made.amount(Currency::parse("jpy")), 600);
    let listed = [seen("re_release", 400, None)];
    assert_eq!(next(&facts(&world), &call("pi_1", 1), &listed, NOW), RefundStep::Post { amount: 600 });
}

#[test]
fn e1_two_orders_by_hand_are_two_refunds_and_never_more_than_is_left() {
    let mut world = paid(&[("pi_1", 1_000)]);
    let by_hand = |world: &mut World, key: &str, amount| {
        let made = order(&facts(world), wish(key, amount), |_| Rights::ByHand)?;
        settle(world, key, &made);
        Ok::<_, RefundRefusal>(made)
    };
    by_hand(&mut world, "a", Some(300)).unwrap();
    by_hand(&mut world, "b", Some(300)).unwrap();
    assert_eq!(by_hand(&mut world, "c", Some(500)), Err(RefundRefusal::MoreThanLeft { left: 400 }));
    assert_eq!(by_hand(&mut world, "d", None).unwrap().wish.amount, Some(400));
    assert!(matches!(by_hand(&mut world, "e", None), Err(RefundRefusal::Ordered { .. })));
    world.hears(&refund("re_1", "pi_1", 300, "succeeded", None));
    assert_eq!(status(&world, "a"), RefundOrderStatus::MetElsewhere);
    assert_eq!(status(&world, "b"), RefundOrderStatus::Ordered, "one refund is one order's");
}

#[test]
fn e1_when_the_refund_that_others_made_fails_a_person_hears_of_it_and_may_order_anew() {
    let mut world = paid(&[("pi_1", 1_000)]);
    ordered(&mut world, wish(KEY, None)).unwrap();
    world.hears(&refund("re_hand", "pi_1", 1_000, "pending", None));
    let met = call("pi_1", 1).input(Seq::from_i64(3_000), |order| {
        order.met.insert("pi_1".into());
    });
    world.settle(&[met]);
    assert_eq!(status(&world, KEY), RefundOrderStatus::MetElsewhere);
    world.hears(&refund("re_hand", "pi_1", 1_000, "failed", None));
    assert_eq!(status(&world, KEY), RefundOrderStatus::Failed);
    assert!(Derived::of(&facts(&world)).attention.is_some());
    assert!(ordered(&mut world, wish("again", None)).is_ok());
}
