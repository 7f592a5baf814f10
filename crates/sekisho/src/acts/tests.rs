use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use sekisho_core::audit::{Entry, Role};
use sekisho_core::change::{Arrival, ChangeSet};
use sekisho_core::delivery::Route;
use sekisho_core::delivery::route::Send;
use sekisho_core::event::{DedupeKey, Trust};
use sekisho_core::id::Sequence;
use sekisho_core::job::{Class, DeadReason, End, Lane, NewJob, Outcome, Task, delivery_key};
use sekisho_core::mail_address::MailAddress;
use sekisho_core::notification::{self, To};
use sekisho_core::pattern::Pattern;
use sekisho_core::queue::Breaker;
use sekisho_core::rule::Rule;
use sekisho_core::settlement::follow::OrderPolicy;
use sekisho_core::source_name::Origin;
use sekisho_core::state::{self, Index, Key, Write};
use sekisho_core::{Epoch, Seq, Time};
use sekisho_store::memory::MemoryStore;
use sekisho_store::{AuditFilter, DeadFilter, FIND_MAX, Store};
use serde_json::{Value, json};

use super::*;
use crate::env::Env;
use crate::queries::OrderContext;
use crate::types::{DeadQuery, EventQuery, NoticeForecast, RouteForecast};

const NOW: Time = Time::from_ms(1_780_000_000_000);
const ACTOR: Actor<'static> = Actor { name: "tomo", role: Role::Operator, tenant: None, at: NOW };

/// A store where the first `dead` of `events` events died on their way to `app`, and the others arrived.
async fn store(events: usize, dead: usize) -> MemoryStore {
    let store = MemoryStore::default();
    let epoch = store.join(NOW).await.unwrap().epoch;
    let mut sequence = Sequence::new(epoch, Seq::ZERO);
    let arrivals: Vec<_> = (0..events).map(|n| arrival(n, sequence.next(NOW))).collect();
    for chunk in arrivals.chunks(CHUNK) {
        store.admit(Arc::from(chunk), None).await.unwrap();
    }
    let app = Lane::to_route("app");
    for job in claim_all(&store, epoch, &Lane::settle()).await {
        let event = job.lease.job;
        let delivery = NewJob {
            id: sequence.next(NOW),
            key: Some(delivery_key(event, &app, 0)),
            task: Task::Deliver { route: "app".into() },
            lane: app.clone(),
            fifo: None,
            due_at: NOW,
            event: Some(event),
            owner: None,
        };
        let set = ChangeSet { jobs: vec![delivery], ..ChangeSet::end(job.lease, DONE, NOW) };
        store.commit(vec![set]).await.unwrap();
    }
    for (n, job) in claim_all(&store, epoch, &app).await.into_iter().enumerate() {
        let reason = if n == 0 { "timeout" } else { "server_error" };
        let death = DeadReason { class: Class::Transient, reason: reason.into(), error: "down".into() };
        let end = if n < dead { End::Dead(death) } else { DONE };
        store.commit(vec![ChangeSet::end(job.lease, end, NOW)]).await.unwrap();
    }
    store
}

const CHUNK: usize = 500;
const DONE: End = End::Done(Outcome::SUCCESS);

async fn claim_all(store: &MemoryStore, epoch: Epoch, lane: &Lane) -> Vec<sekisho_core::job::Job> {
    let mut all = Vec::new();
    loop {
        let jobs = store.claim(epoch, vec![(lane.clone(), CHUNK)], NOW).await.unwrap();
        if jobs.is_empty() {
            return all;
        }
        all.extend(jobs);
    }
}

fn arrival(n: usize, seq: Seq) -> Arrival {
    let event_id = format!("evt_{n}");
    Arrival {
        key: DedupeKey::new("shop", &event_id, None),
        first_body: None,
        seq,
        received_at: NOW,
        source: "shop".into(),
        event_id,
        event_type: "payment.paid".into(),
        created_at: None,
        object: None,
        account: None,
        livemode: None,
        trust: Trust::Signed,
        headers: "[]".into(),
        body: Bytes::from(format!(r#"{{"n":{n}}}"#)),
        held: None,
    }
}

async fn dead(store: &MemoryStore) -> usize {
    store.find_dead(DeadFilter { limit: FIND_MAX, ..DeadFilter::default() }).await.unwrap().len()
}

fn all() -> DeadLetterSelection {
    DeadLetterSelection { all: true, ..DeadLetterSelection::default() }
}

fn wrong<T>(result: Result<T>) -> String {
    match result {
        Err(Refusal::Invalid(message)) => message,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was not refused"),
    }
}

async fn audited(store: &MemoryStore) -> Vec<Entry> {
    let filter = AuditFilter { limit: 10, ..AuditFilter::default() };
    store.find_audit(filter).await.unwrap().entries.into_iter().map(|one| one.entry).collect()
}

fn route(name: &str, filter: &str) -> Route {
    Route {
        name: name.into(),
        sources: vec![],
        events: vec![],
        filter: Some(Rule::compile(filter).unwrap()),
        fifo: None,
        speaks_for: None,
        send: Send::Raw,
        headers: vec![],
    }
}

#[tokio::test]
async fn b4_an_order_says_in_one_way_what_it_is_about() {
    let store = store(2, 2).await;
    let known = OrderContext::default();
    assert!(wrong(retry(&store, &DeadLetterSelection::default(), &ACTOR).await).contains("specify ids"));
    assert!(wrong(replay(&store, &known, &Replay::default(), &ACTOR).await).contains("specify ids"));
    let both = DeadLetterSelection { ids: vec!["msg_0000000000000".into()], ..all() };
    assert!(wrong(retry(&store, &both, &ACTOR).await).contains("exclude each other"));
    let odd = DeadLetterSelection { ids: vec!["7".into()], ..DeadLetterSelection::default() };
    assert!(wrong(retry(&store, &odd, &ACTOR).await).contains("not an id of ours"));
    let gone =
        DeadLetterSelection { ids: vec!["msg_0000000000007".into()], ..DeadLetterSelection::default() };
    assert!(matches!(retry(&store, &gone, &ACTOR).await, Err(Refusal::Missing(_))));
    assert_eq!(dead(&store).await, 2);
}

#[tokio::test]
async fn b4_a_preview_says_how_many_and_what_and_changes_nothing() {
    let store = store(4, 3).await;
    let dry = DeadLetterSelection { dry_run: true, ..all() };
    let report = retry(&store, &dry, &ACTOR).await.unwrap();
    assert_eq!((report.found, report.done, report.more), (3, 0, false));
    let groups: Vec<_> =
        report.groups.iter().map(|group| (&*group.reason, &*group.lane, group.count)).collect();
    assert_eq!(groups, [("server_error", "to:app", 2), ("timeout", "to:app", 1)]);
    assert_eq!(discard(&store, &dry, &ACTOR).await.unwrap(), report, "no reason is needed to look");
    assert_eq!(dead(&store).await, 3);
    assert!(audited(&store).await.is_empty());
}

/// A look first, then the same order up to where the look ended. Whose clock it was does not matter.
#[tokio::test]
async fn b4_what_was_not_there_at_the_preview_is_left_alone() {
    let store = store(4, 3).await;
    let known = OrderContext { sources: vec!["shop".into()], ..OrderContext::default() };
    let behind = Actor { at: NOW.plus_ms(-60_000), ..ACTOR };
    let timeouts = DeadQuery { reason: Some("timeout".into()), ..DeadQuery::default() };
    for (order, seen) in
        [(all(), 3), (DeadLetterSelection { filter: timeouts, ..DeadLetterSelection::default() }, 1)]
    {
        let preview =
            retry(&store, &DeadLetterSelection { dry_run: true, ..order.clone() }, &behind).await.unwrap();
        assert_eq!(preview.found, seen);
        let until = preview.until.unwrap();
        for (until, found) in [(until, seen), (until.plus_ms(-60_000), 0)] {
            let bounded = order.bounded(until).unwrap();
            assert_eq!(to_retry(&store, &bounded).await.unwrap().1.len(), found);
        }
    }
    let order = Replay { all: true, ..Replay::default() };
    let preview = replay(&store, &known, &Replay { dry_run: true, ..order.clone() }, &behind).await.unwrap();
    assert_eq!(preview.found, 4);
    let until = preview.until.unwrap();
    for (until, found) in [(until, 4), (until.plus_ms(-60_000), 0)] {
        let bounded = order.bounded(until).unwrap();
        assert_eq!(to_replay(&store, &known, &bounded).await.unwrap().1.len(), found);
    }
    // Nobody's own end is moved back, nor is anything found that was not asked for.
    let early = DeadQuery { until: Some(NOW.plus_ms(-5)), ..DeadQuery::default() };
    let order = DeadLetterSelection { filter: early, ..DeadLetterSelection::default() };
    assert_eq!(order.bounded(NOW).unwrap(), order);
    assert!(wrong(DeadLetterSelection::default().bounded(NOW)).contains("specify ids"));
    let named =
        DeadLetterSelection { ids: vec!["msg_0000000000007".into()], ..DeadLetterSelection::default() };
    assert_eq!(named.bounded(NOW).unwrap(), named);
}

#[tokio::test]
async fn b4_a_filter_finds_all_pages_and_only_what_it_says() {
    let store = store(2_300, 2_200).await;
    let timeouts = DeadQuery { reason: Some("timeout".into()), ..DeadQuery::default() };
    let report =
        retry(&store, &DeadLetterSelection { filter: timeouts, ..DeadLetterSelection::default() }, &ACTOR)
            .await
            .unwrap();
    assert_eq!((report.found, report.done), (1, 1));
    let report = retry(&store, &all(), &ACTOR).await.unwrap();
    assert_eq!((report.found, report.done), (2_199, 2_199));
    assert_eq!(dead(&store).await, 0);
}

#[tokio::test]
async fn b4_to_discard_needs_a_reason_and_both_are_audited() {
    let store = store(2, 2).await;
    for reason in ["", "  \n"] {
        let order = DeadLetterSelection { reason: reason.into(), ..all() };
        assert!(wrong(discard(&store, &order, &ACTOR).await).contains("a reason is required"));
    }
    let long = DeadLetterSelection { reason: "あ".repeat(REASON_MAX + 1), ..all() };
    assert!(wrong(discard(&store, &long, &ACTOR).await).contains("longer than"));
    let order = DeadLetterSelection { reason: " test data ".into(), ..all() };
    assert_eq!(discard(&store, &order, &ACTOR).await.unwrap().done, 2);
    let audit = audited(&store).await;
    let line = |one: &Entry| (one.actor.clone(), one.role.clone(), one.action.clone(), one.details.clone());
    let expected = ("tomo", "operator", "dead_letter.discarded", r#"{"reason":"test data"}"#);
    let expected = (
        Some(expected.0.to_owned()),
        Some(expected.1.to_owned()),
        expected.2.to_owned(),
        expected.3.to_owned(),
    );
    assert_eq!(audit.iter().map(line).collect::<Vec<_>>(), [expected.clone(), expected]);
}

#[tokio::test]
async fn b4_a_forecast_tells_new_deliveries_from_those_that_were_made() {
    let store = store(5, 2).await;
    let routes = vec![
        route("app", "true"),
        route("late", "body.n > 2"),
        route("odd", "body.nothing == 1"),
        route("never", "false"),
        Route { fifo: Rule::compile("body").ok(), ..route("ordered", "true") },
    ];
    let known = OrderContext { routes, sources: vec!["shop".into()], ..OrderContext::default() };
    let order = Replay { all: true, dry_run: true, ..Replay::default() };
    let report = replay(&store, &known, &order, &ACTOR).await.unwrap();
    assert_eq!((report.found, report.queued, report.unfinished), (5, 0, 0));
    let app = RouteForecast { route: "app".into(), delivered: 3, dead: 2, ..RouteForecast::default() };
    let late = RouteForecast { route: "late".into(), new: 2, ..RouteForecast::default() };
    let ordered = RouteForecast { route: "ordered".into(), new: 5, ..RouteForecast::default() };
    assert_eq!(report.routes, [app, late, ordered], "a key that can't be read holds nothing back");
    assert_eq!(report.without_route, 0);
    assert_eq!(
        report.unanswered.iter().map(|one| (&*one.rule, one.count)).collect::<Vec<_>>(),
        [("route odd", 5), ("route ordered", 5)]
    );

    let order = Replay { ids: vec!["evt_3".into(), "evt_none".into()], ..Replay::default() };
    let report = replay(&store, &known, &order, &ACTOR).await.unwrap();
    assert_eq!((report.found, report.queued, report.missing), (1, 1, vec!["evt_none".to_owned()]));
    let report = replay(&store, &known, &order, &ACTOR).await.unwrap();
    assert_eq!((report.queued, report.unfinished), (0, 1), "it is still at work on the first");
    let nobody = Replay { ids: vec!["evt_none".into()], ..Replay::default() };
    assert!(matches!(replay(&store, &known, &nobody, &ACTOR).await, Err(Refusal::Missing(_))));
}

/// Somebody at Stripe paid `pi_{n}`.
fn stripe_paid(n: usize, seq: Seq) -> Arrival {
    let body = format!(
        r#"{{"id":"evt_{n}","type":"payment_intent.succeeded","livemode":true,"data":{{"object":{{
            "object":"payment_intent","id":"pi_{n}","status":"succeeded","amount":5000,"amount_received":5000,
            "currency":"jpy","receipt_email":"taro{n}@example.jp"}}}}}}"#
    );
    let event_type = "payment_intent.succeeded".into();
    Arrival { event_type, livemode: Some(true), body: body.into(), ..arrival(n, seq) }
}

#[tokio::test]
async fn b4_a_forecast_follows_what_would_be_announced_for_the_first_time() {
    let store = MemoryStore::default();
    let epoch = store.join(NOW).await.unwrap().epoch;
    let mut sequence = Sequence::new(epoch, Seq::ZERO);
    let arrivals: Vec<_> = (0..3).map(|n| stripe_paid(n, sequence.next(NOW))).collect();
    store.admit(arrivals.into(), None).await.unwrap();
    // Nobody understood them when they came.
    for job in claim_all(&store, epoch, &Lane::settle()).await {
        store.commit(vec![ChangeSet::end(job.lease, DONE, NOW)]).await.unwrap();
    }
    let taro: MailAddress = "taro2@example.jp".parse().unwrap();
    suppress(&store, &taro, "he asked for it", &ACTOR).await.unwrap();
    let origin = Origin { provider: "stripe", livemode: None };
    let receipt = notification::NotifyRule {
        name: "receipt".into(),
        events: vec![Pattern::new("payment.paid")],
        sources: Vec::new(),
        filter: None,
        to: To::Customer,
        channel: "mail".into(),
        template: "payment-received".into(),
        every_ms: None,
    };
    let hourly = notification::NotifyRule {
        name: "hourly".into(),
        to: To::Place,
        every_ms: Some(3_600_000),
        ..receipt.clone()
    };
    let routes = vec![Route { send: Send::Settled, filter: None, ..route("app", "true") }];
    let rules = vec![receipt, hourly];
    let known = OrderContext {
        routes,
        rules,
        origins: [("shop".to_owned(), origin)].into(),
        ..OrderContext::default()
    };
    let order = Replay { all: true, dry_run: true, ..Replay::default() };
    let report = replay(&store, &known, &order, &ACTOR).await.unwrap();
    assert_eq!((report.found, report.announcements, report.without_route), (3, 3, 3));
    let told = |rule: &str, new, told, unsent| NoticeForecast {
        rule: rule.into(),
        channel: "mail".into(),
        new,
        told,
        unsent,
    };
    assert_eq!(report.notices, [told("receipt", 2, 0, 1), told("hourly", 1, 2, 0)]);
    assert_eq!(report.routes, [RouteForecast { route: "app".into(), new: 3, ..RouteForecast::default() }]);
}

#[tokio::test]
async fn b4_a_range_has_a_beginning_and_an_end() {
    let store = store(3, 0).await;
    let known = OrderContext::default();
    let found = async |since: Option<Time>, until: Option<Time>| {
        let filter = EventQuery { since, until, source: Some("shop".into()), ..EventQuery::default() };
        let order = Replay { filter, dry_run: true, ..Replay::default() };
        replay(&store, &known, &order, &ACTOR).await.unwrap().found
    };
    assert_eq!(found(Some(NOW), None).await, 3);
    assert_eq!(found(Some(NOW.plus_ms(1_000)), None).await, 0);
    assert_eq!(found(None, Some(NOW)).await, 0);
    assert_eq!(found(None, Some(NOW.plus_ms(1_000))).await, 3);
}

#[tokio::test]
async fn c4_a_breaker_is_closed_by_hand() {
    let store = MemoryStore::default();
    let was = async |route: &str| reset(&store, route, &ACTOR).await.unwrap().was;
    assert_eq!(was("app").await, "closed", "it never opened");
    let open = Breaker::Open { since: NOW, at: NOW, until: NOW.plus_ms(5_000), opened: 1, why: None };
    let facts = serde_json::to_string(&open).unwrap();
    let key = Key::new(state::Kind::Breaker, &*Lane::to_route("app").0);
    let write = Write { key, version: 0, facts, index: Index::default() };
    let set = ChangeSet { writes: vec![write], ..ChangeSet::nothing(NOW) };
    store.commit(vec![set]).await.unwrap();
    assert_eq!(was("app").await, "open");
    assert_eq!(audited(&store).await[0].actor.as_deref(), Some("tomo"));
    assert_eq!(was("app").await, "closed");
}

/// So many ids of one millisecond that some are drawn twice.
const AT_ONCE: usize = 6_000;

#[tokio::test]
async fn d2_payments_created_in_one_millisecond_have_an_id_each() {
    let store = MemoryStore::default();
    let mut ids = BTreeSet::new();
    for n in 0..AT_ONCE {
        let order = json!({ "amount": 100, "currency": "jpy", "reference": format!("order-{n}") });
        let Value::Object(order) = order else { panic!("it is an object") };
        let created = create_payment(&store, &Env::system(), &OrderPolicy::default(), order, None, &ACTOR)
            .await
            .unwrap();
        ids.insert(created.answer["id"].as_str().unwrap().to_owned());
    }
    assert_eq!(ids.len(), AT_ONCE);
}
