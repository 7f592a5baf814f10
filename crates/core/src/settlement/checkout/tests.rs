use super::next::SETTLED_AFTER_MS;
use super::*;
use crate::settlement::payment::SessionStatus;

const NOW: Time = Time::from_ms(1_780_000_000_000);

fn source(name: &str, can_check_out: bool, has_key: bool, livemode: Option<bool>) -> CheckoutSource {
    CheckoutSource { name: name.into(), can_check_out, has_key, livemode }
}

#[test]
fn e1_a_source_that_cannot_make_sessions_is_refused_in_words() {
    let policy = CheckoutPolicy {
        source: None,
        sources: vec![
            source("stripe", true, true, Some(false)),
            source("keyless", true, false, None),
            source("paypal", false, true, None),
        ],
        ..CheckoutPolicy::default()
    };
    assert_eq!(policy.source(Some("stripe"), false), Ok("stripe"));
    for (named, livemode, words) in [
        (None, false, "[checkout] source"),
        (Some("nobody"), false, "known: stripe, keyless"),
        (Some("keyless"), false, "write api_key"),
        (Some("paypal"), false, "has no Checkout Sessions"),
        (Some("stripe"), true, "is for test payments, and this one is live"),
    ] {
        let refused = policy.source(named, livemode).unwrap_err().to_string();
        assert!(refused.contains(words), "{named:?}: {refused}");
    }
    let chosen = CheckoutPolicy { source: Some("stripe".into()), ..policy };
    assert_eq!(chosen.source(None, false), Ok("stripe"));
}

fn asked(change: impl FnOnce(&mut SessionTry)) -> Facts {
    let generations = [(1, generation(NOW, NOW))].into();
    let mut one = SessionTry { asked_at: Some(NOW), generations, ..SessionTry::default() };
    change(&mut one);
    Facts { session_tries: [(1, one)].into(), ..Facts::default() }
}

fn call(step: CheckoutStep) -> CheckoutCall {
    let (provider, livemode) = (ApiProvider::Stripe, Some(false));
    CheckoutCall { provider, livemode, payment: "pay_1".into(), number: 1, step }
}

#[test]
fn e1_a_run_asks_waits_goes_on_under_another_key_or_ends() {
    let create = call(CheckoutStep::Create { generation: 1 });
    let step = |facts: &Facts, was_asked, later_ms| next(facts, &create, 1, was_asked, NOW.plus_ms(later_ms));
    let post = CreateStep::Post { expires_at: NOW.plus_ms(OPEN_MIN_MS) };
    assert_eq!(step(&asked(|_| {}), false, 0), post);
    let failed = asked(|one| one.generations.get_mut(&1).unwrap().failed_at = Some(NOW));
    assert_eq!(step(&failed, true, 1), CreateStep::Wait { until: NOW.plus_ms(SETTLED_AFTER_MS) });
    let CreateStep::Next(other) = step(&failed, true, SETTLED_AFTER_MS) else { panic!() };
    assert_eq!(other.expires_at, NOW.plus_ms(SETTLED_AFTER_MS + OPEN_MIN_MS));
    let closed = asked(|one| one.closing = Some(NOW));
    assert_eq!(step(&closed, false, 0), CreateStep::Drop);
    assert_eq!(step(&closed, true, 0), post, "one may be open: it must be known to be expired");
    let made = asked(|one| drop(one.sessions.insert("cs_1".into(), SessionPlace::default())));
    assert!(matches!(step(&made, true, 0), CreateStep::Over(_)));
    let third = asked(|one| {
        one.generations
            .extend([2, 3].map(|n| (n, SessionGeneration { failed_at: Some(NOW), ..generation(NOW, NOW) })));
    });
    assert!(matches!(step(&third, true, 0), CreateStep::Over(_)), "another call took its place");
    let late = next(&third, &create, 3, true, NOW.plus_ms(DAY_MS));
    assert!(matches!(late, CreateStep::GiveUp { reason: "no_session_made", .. }));
}

#[test]
fn e1_every_call_has_its_own_key_for_ever() {
    let calls = [
        call(CheckoutStep::Create { generation: 1 }),
        call(CheckoutStep::Create { generation: 2 }),
        call(CheckoutStep::Expire { session: "cs_1".into() }),
        CheckoutCall { number: 2, ..call(CheckoutStep::Create { generation: 1 }) },
        CheckoutCall { livemode: Some(true), ..call(CheckoutStep::Create { generation: 1 }) },
    ];
    let keys: std::collections::BTreeSet<String> = calls.iter().map(CheckoutCall::idempotency_key).collect();
    assert_eq!(keys.len(), calls.len());
    assert!(keys.iter().all(|key| key.len() == 41 && key.starts_with('s')));
    let job = |n: usize| calls[n].job(Seq::from_i64(1), NOW).key.unwrap();
    assert_eq!(job(0), "session/pay_1/1/1");
    assert_eq!(job(2), "expire/stripe/-/test/cs_1");
}

#[test]
fn e1_what_is_known_of_a_try_joins_in_any_order() {
    let parts = [
        told(
            "pay_1",
            Some(false),
            1,
            SessionTry { wish: wish(5), asked_at: Some(NOW), ..SessionTry::default() },
        ),
        told("pay_1", Some(false), 1, SessionTry { wish: wish(4), ..SessionTry::default() }),
        asked(|one| one.closing = Some(NOW.plus_ms(9))),
        asked(|one| one.closing = Some(NOW.plus_ms(3))),
        told_session("pay_1", false, 1, wish(6), "cs_test_1"),
        asked(|one| one.gave_up = Some("why".into())),
    ];
    let all = |order: &[usize]| {
        let mut facts = Facts::default();
        order.iter().for_each(|n| facts.join(&parts[*n]));
        facts
    };
    let one = all(&[0, 1, 2, 3, 4, 5]);
    for order in [[5, 4, 3, 2, 1, 0], [2, 5, 0, 3, 1, 4], [1, 3, 5, 0, 2, 4]] {
        assert_eq!(all(&order), one);
        assert_eq!(all(&[order, order].concat()), one);
    }
    let known = &one.session_tries[&1];
    assert_eq!((known.wish.at, known.closing), (NOW.plus_ms(4), Some(NOW.plus_ms(3))));
    assert_eq!(
        serde_json::to_string(&Facts::default()).unwrap(),
        "{}",
        "who has no tries pays nothing for them"
    );
}

fn wish(at: i64) -> SessionWish {
    SessionWish { at: NOW.plus_ms(at), ..SessionWish::default() }
}

#[test]
fn e1_a_session_is_read_as_the_provider_writes_it() {
    let text = r#"{"id":"cs_test_1","object":"checkout.session","url":"https://till/1","expires_at":1780000000,
        "status":"open","payment_intent":null,"metadata":{"sekisho_checkout":"pay_1/2"}}"#;
    let made = MadeSession::read(text).unwrap();
    assert_eq!((&*made.id, made.is_open, made.label.as_deref()), ("cs_test_1", true, Some("pay_1/2")));
    assert_eq!(made.place.expires_at, Some(Time::from_seconds(1_780_000_000)));
    assert_eq!(MadeSession::read("{}"), None);
    assert!(is_session_id("cs_test_a1B2", false) && !is_session_id("cs_test_a1B2", true));
    assert!(!is_session_id("cs_test_", false) && !is_session_id("cs_test_a/b", false));
    assert_eq!(SessionStatus::default(), SessionStatus::Open, "what is not known may be paid");
}
