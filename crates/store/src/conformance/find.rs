//! What a store promises about reads for people.

use std::sync::Arc;

use sekisho_core::Seq;
use sekisho_core::change::{Arrival, ChangeSet, Rejection};
use sekisho_core::event::About;
use sekisho_core::job::{Class, DeadReason, End, Lane, NewJob, Outcome, delivery_key};
use sekisho_core::time::HOUR_MS;

use super::{
    APPLIED, Arrivals, NOW, UP, act, admit, admit_one, claim, claim_from, commit, dead, dead_letter, death,
    done, finish, join, leased, message, queue, status,
};
use crate::{
    DeadFilter, DeadLetter, EventFilter, FIND_MAX, Order, REJECTIONS_MAX, REJECTIONS_OF_NETWORK_MAX,
    RejectionFilter, Standing, Status, Store, StoredMessage,
};

pub async fn statuses(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let names = ["waits", "done", "noted", "skipped", "dies"];
    let rows: Vec<_> = names.into_iter().map(|id| new.event(id)).collect();
    admit(&store, rows.clone()).await;
    let epoch = join(&store).await;
    let leases = claim(&store, epoch, 10, NOW).await;
    let ends = [
        done(),
        End::Done(Outcome::Success { note: Some("two deliveries".into()) }),
        End::Done(Outcome::Skipped { note: "no rule".into() }),
        dead(),
    ];
    for (lease, end) in leases[1..].iter().zip(ends) {
        assert_eq!(finish(&store, *lease, end).await, APPLIED);
    }
    let expected = [
        (Status::Received, None),
        (Status::Success, None),
        (Status::Success, Some("two deliveries")),
        (Status::Skipped, Some("no rule")),
        (Status::Failed, Some("it can't be")),
    ];
    for (row, (status, note)) in rows.iter().zip(expected) {
        let found = store.find_event(row.seq).await.expect(UP).expect("it was stored").summary;
        assert_eq!((found.status, found.note.as_deref()), (status, note));
        assert_eq!(found.processed_at.is_some(), status != Status::Received);
        let listed = with_status(&store, status).await;
        assert!(listed.contains(&row.seq));
        assert_eq!(listed.len(), expected.iter().filter(|(other, _)| *other == status).count());
    }
}

async fn with_status(store: &Arc<dyn Store>, status: Status) -> Vec<Seq> {
    let filter = EventFilter { status: Some(status), limit: 10, ..EventFilter::default() };
    store.find_events(filter).await.expect(UP).events.iter().map(|event| event.seq).collect()
}

pub async fn failed_by_a_delivery(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let epoch = join(&store).await;
    let event = admit_one(&store, new.event("a")).await;
    let bystander = admit_one(&store, new.event("b")).await;
    let settle = claim(&store, epoch, 1, NOW).await[0];
    let first = leased(&store, epoch, new.delivery(event, "a")).await;
    let second = leased(&store, epoch, new.delivery(event, "b")).await;
    let third = leased(&store, epoch, new.delivery(event, "c")).await;

    assert_eq!(finish(&store, first, dead()).await, APPLIED);
    assert_eq!(status(&store, event).await, Status::Failed, "before its settling ended");
    assert_eq!(finish(&store, settle, done()).await, APPLIED);
    let other = End::Dead(DeadReason { error: "no answer".into(), ..death() });
    assert_eq!(finish(&store, second, other).await, APPLIED);
    assert_eq!(finish(&store, third, done()).await, APPLIED, "a delivery that went well proves nothing");
    let summary = store.find_event(event).await.expect(UP).expect("it was stored").summary;
    assert_eq!((summary.status, summary.note.as_deref()), (Status::Failed, Some("it can't be")));
    assert_eq!(with_status(&store, Status::Failed).await, [event], "once, however many letters");
    for status in [Status::Success, Status::Skipped] {
        assert_eq!(with_status(&store, status).await, []);
    }
    assert_eq!(with_status(&store, Status::Received).await, [bystander]);

    assert_eq!(store.discard(vec![first.job], act("no")).await.expect(UP), [true]);
    let summary = store.find_event(event).await.expect(UP).expect("it was stored").summary;
    assert_eq!((summary.status, summary.note.as_deref()), (Status::Failed, Some("no answer")));
    assert_eq!(store.retry(vec![second.job], act("yes")).await.expect(UP), [true]);
    assert_eq!(status(&store, event).await, Status::Success, "by its settling, when no letter is left");
    assert_eq!(with_status(&store, Status::Success).await, [event]);
}

pub async fn pages(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let mut rows: Vec<_> = (0..30).map(|n| new.event(&n.to_string())).collect();
    rows[3].event_type = "payment.failed".into();
    rows[4].event_type = "payment_%".into();
    rows[5].source = "other".into();
    admit(&store, rows.clone()).await;
    let seqs = async |filter: EventFilter| -> Vec<Seq> {
        store.find_events(filter).await.expect(UP).events.iter().map(|event| event.seq).collect()
    };
    let all = || EventFilter { limit: 1000, ..EventFilter::default() };
    let given: Vec<_> = rows.iter().map(|row| row.seq).collect();
    let mut reversed = given.clone();
    reversed.reverse();
    assert_eq!(seqs(all()).await, reversed);
    assert_eq!(seqs(EventFilter { order: Order::OldestFirst, ..all() }).await, given);
    assert_eq!(seqs(EventFilter { limit: 2, before: Some(given[10]), ..all() }).await, [given[9], given[8]]);
    let tail = EventFilter { limit: 2, after: Some(given[10]), order: Order::OldestFirst, ..all() };
    assert_eq!(seqs(tail).await, [given[11], given[12]]);
    let kind = |text: &str| EventFilter { event_type: Some(text.into()), ..all() };
    assert_eq!(seqs(kind("payment.failed")).await, [given[3]]);
    assert_eq!(seqs(kind("payment.*")).await.len(), 29);
    assert_eq!(seqs(kind("payment_%")).await, [given[4]], "no wildcard but the last star");
    assert_eq!(seqs(kind("payment_*")).await, [given[4]]);
    assert_eq!(seqs(EventFilter { source: Some("other".into()), ..all() }).await, [given[5]]);
    assert_eq!(seqs(EventFilter { object_id: Some("pay_7".into()), ..all() }).await, [given[7]]);
    assert!(seqs(EventFilter { limit: 0, ..all() }).await.is_empty());
}

pub async fn dead_letters(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let epoch = join(&store).await;
    let at = |ms| NOW.plus_ms(ms);
    let why = |reason: &str| DeadReason::terminal(reason, format!("because of {reason}"));

    let event = Arrival { event_type: "payment.failed".into(), ..new.event("a") };
    let evidence = Arrival { source: "other".into(), received_at: at(1), ..new.event("b") };
    admit(&store, vec![event.clone()]).await;
    let odd = DeadReason { class: Class::Transient, ..why("odd") };
    dead_letter(&store, epoch, evidence.clone(), odd, at(1)).await;
    let settle = claim(&store, epoch, 1, NOW).await[0];
    let delivery = NewJob { fifo: Some("客".into()), ..new.delivery(event.seq, "app") };
    let delivered = leased(&store, epoch, delivery.clone()).await;
    let lonely = leased(&store, epoch, new.job("app")).await;
    for (lease, end, ms) in [
        (settle, End::Dead(why("odd")), 5),
        (delivered, End::Dead(why("refused")), 3),
        (lonely, End::Dead(why("refused")), 4),
    ] {
        let set = ChangeSet::end(lease, end, at(ms));
        assert_eq!(commit(&store, set).await, APPLIED);
    }
    let find = async |filter: DeadFilter| store.find_dead(filter).await.expect(UP);
    let all = || DeadFilter { limit: 1_000, ..DeadFilter::default() };
    let jobs = async |filter| find(filter).await.iter().map(|letter| letter.job).collect::<Vec<_>>();
    let letters = find(all()).await;
    let newest = [lonely.job, delivery.id, evidence.seq, event.seq];
    assert_eq!(letters.iter().map(|letter| letter.job).collect::<Vec<_>>(), newest, "newest first");
    let expected = DeadLetter {
        job: delivery.id,
        task: delivery.task,
        lane: delivery.lane.clone(),
        fifo: delivery.fifo,
        attempts: 1,
        crashes: 0,
        death: why("refused"),
        at: at(3),
        event: Some(event.seq),
        event_id: Some(event.event_id),
        event_type: Some(event.event_type),
        source: Some("shop".into()),
        about: About::default(),
        stake: None,
    };
    assert_eq!(letters[1], expected);
    assert_eq!((letters[2].attempts, letters[2].death.class, letters[2].at), (1, Class::Transient, at(1)));
    assert_eq!((letters[0].event, &letters[0].event_id, &letters[0].source), (None, &None, &None));

    let [lonely, delivered, evidence, settled] = newest;
    let source = |name: &str| DeadFilter { source: Some(name.into()), ..all() };
    let kind = |text: &str| DeadFilter { event_type: Some(text.into()), ..all() };
    let lane = |lane| DeadFilter { lane: Some(lane), ..all() };
    let reason = |word: &str| DeadFilter { reason: Some(word.into()), ..all() };
    assert_eq!(jobs(source("shop")).await, [delivered, settled]);
    assert_eq!(jobs(source("Shop")).await, []);
    assert_eq!(jobs(kind("payment.failed")).await, [delivered, settled]);
    assert_eq!(jobs(kind("payment.*")).await, [delivered, evidence, settled]);
    assert_eq!(jobs(kind("payment_*")).await, [], "no wildcard but the last star");
    assert_eq!(jobs(kind("*")).await, [delivered, evidence, settled], "what is about no event has no type");
    assert_eq!(jobs(reason("refused")).await, [lonely, delivered]);
    assert_eq!(jobs(lane(Lane::to_route("app"))).await, [lonely, delivered]);
    assert_eq!(jobs(lane(Lane::settle())).await, [evidence, settled]);
    assert_eq!(jobs(DeadFilter { event: Some(settled), ..all() }).await, [delivered, settled]);
    assert_eq!(jobs(DeadFilter { since: Some(at(4)), ..all() }).await, [lonely, settled], "with its start");
    assert_eq!(
        jobs(DeadFilter { until: Some(at(4)), ..all() }).await,
        [delivered, evidence],
        "without its end"
    );
    assert_eq!(jobs(DeadFilter { limit: 2, ..all() }).await, newest[..2]);
    assert_eq!(jobs(DeadFilter { limit: 2, before: Some(delivered), ..all() }).await, newest[2..]);
    assert_eq!(jobs(DeadFilter { limit: 0, ..all() }).await, []);
    let both = DeadFilter { until: Some(at(5)), ..source("shop") };
    assert_eq!(jobs(both).await, [delivered], "all conditions hold");
}

pub async fn messages(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let epoch = join(&store).await;
    let event = admit_one(&store, new.event("a")).await;
    // Its neighbours' jobs are not its own.
    let next = Seq::from_i64(event.as_i64() + 1);
    let previous = Seq::from_i64(event.as_i64() - 1);
    for other in [next, previous] {
        queue(&store, vec![new.delivery(other, "other")]).await;
    }
    let expect = |job: &NewJob, attempts, standing| StoredMessage {
        job: job.id,
        lane: job.lane.clone(),
        event: job.event,
        attempts,
        standing,
        key: job.key.clone(),
    };
    let later = NOW.plus_ms(7);
    let fates: [(&str, Option<End>, i32, Standing); 6] = [
        ("a-retries", Some(End::Retry { due_at: later }), 1, Standing::Waiting(later)),
        ("b-runs", None, 1, Standing::Running),
        ("c-done", Some(done()), 1, Standing::Done(Outcome::SUCCESS, NOW)),
        ("d-noted", Some(End::Done(noted())), 1, Standing::Done(noted(), NOW)),
        ("e-skipped", Some(End::Done(skipped())), 1, Standing::Done(skipped(), NOW)),
        ("f-dead", Some(dead()), 1, Standing::Dead(death(), NOW)),
    ];
    let mut expected = Vec::new();
    for (route, end, attempts, standing) in fates {
        let job = new.delivery(event, route);
        let lease = leased(&store, epoch, job.clone()).await;
        if let Some(end) = end {
            assert_eq!(finish(&store, lease, end).await, APPLIED);
        }
        expected.push(expect(&job, attempts, standing));
    }
    let waits = new.delivery(event, "g-waits");
    let again = NewJob { key: Some(delivery_key(event, &waits.lane, 1)), ..new.delivery(event, "g-waits") };
    queue(&store, vec![again.clone(), waits.clone()]).await;
    expected.push(expect(&waits, 0, Standing::Waiting(NOW)));
    expected.push(expect(&again, 0, Standing::Waiting(NOW)));
    for one in &expected {
        assert_eq!(message(&store, one.job).await, Some(StoredMessage { key: None, ..one.clone() }));
    }
    assert_eq!(store.find_messages(event).await.expect(UP), expected, "in the order of their keys");
    assert_eq!(store.find_messages(Seq::from_i64(5)).await.expect(UP), []);
    assert_eq!(message(&store, Seq::from_i64(5)).await, None);

    // An event's own settling is a message too.
    let settling = |attempts, standing| {
        Some(StoredMessage {
            job: event,
            lane: Lane::settle(),
            event: Some(event),
            attempts,
            standing,
            key: None,
        })
    };
    assert_eq!(message(&store, event).await, settling(0, Standing::Waiting(NOW)));
    let lease = claim_from(&store, epoch, Lane::settle(), 1, NOW).await[0].lease;
    assert_eq!(message(&store, event).await, settling(1, Standing::Running));
    assert_eq!(finish(&store, lease, done()).await, APPLIED);
    assert_eq!(message(&store, event).await, settling(1, Standing::Done(Outcome::SUCCESS, NOW)));
}

fn noted() -> Outcome {
    Outcome::Success { note: Some("it had it".into()) }
}

fn skipped() -> Outcome {
    Outcome::Skipped { note: String::new() }
}

pub async fn rejections(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let mut make = |source: &str| Rejection {
        seq: new.id(),
        at: NOW,
        last_at: NOW,
        source: source.into(),
        peer: "203.0.113.9".into(),
        network: "203.0.113.0/24".into(),
        reason: "bad_signature".into(),
        detail: "no configured secret makes this signature".into(),
        request_id: "req_1".into(),
        count: 3,
    };
    let (a, b) = (make("a"), make("b"));
    let c = Rejection { reason: "too_old".into(), ..make("a") };
    let find = async |filter: RejectionFilter| store.find_rejections(filter).await.expect(UP);
    let all = || RejectionFilter { limit: 10, ..RejectionFilter::default() };
    let of = |source: &str| RejectionFilter { source: Some(source.into()), ..all() };
    store.reject(vec![a.clone(), b.clone(), c.clone()]).await.expect(UP);
    assert_eq!(find(all()).await, [c.clone(), b.clone(), a.clone()]);
    assert_eq!(find(of("a")).await, [c.clone(), a.clone()]);
    assert_eq!(
        find(RejectionFilter { reason: Some("bad_signature".into()), ..of("a") }).await,
        std::slice::from_ref(&a)
    );
    assert_eq!(find(RejectionFilter { before: Some(c.seq), limit: 1, ..all() }).await, [b]);
    assert_eq!(find(RejectionFilter { before: Some(a.seq), ..all() }).await, []);

    // Those alike within an hour are one line, whether they come together or one after the other.
    let hour = NOW.plus_ms(HOUR_MS);
    let at = |ms: i64, one: Rejection| Rejection { at: hour.plus_ms(ms), last_at: hour.plus_ms(ms), ..one };
    let (first, again, later) = (at(0, make("c")), at(5, make("c")), at(9, make("c")));
    store.reject(vec![first.clone(), again, make("c")]).await.expect(UP);
    store.reject(vec![later]).await.expect(UP);
    let joined = Rejection { count: 9, last_at: hour.plus_ms(9), ..first };
    let found = find(of("c")).await;
    assert_eq!(found.iter().map(|one| one.count).collect::<Vec<_>>(), [3, 9], "of two hours");
    assert_eq!(found[1], joined);

    // One network can't wash out what others did, and all together can't fill the disk.
    let flood = |network: usize, n: usize, one: Rejection| Rejection {
        network: format!("198.51.{network}.0/24"),
        reason: format!("reason_{n}"),
        ..one
    };
    for _ in 0..2 {
        for piece in 0..REJECTIONS_MAX / 1000 {
            let lines = (0..1000).map(|n| flood(0, piece * 1000 + n, make("flood"))).collect();
            store.reject(lines).await.expect(UP);
        }
    }
    assert_eq!(find(of("a")).await, [c, a], "they stay");
    let kept = find(RejectionFilter { limit: usize::MAX, ..of("flood") }).await;
    assert_eq!(kept.len(), REJECTIONS_OF_NETWORK_MAX);
    assert_eq!(kept[0].reason, format!("reason_{}", REJECTIONS_MAX - 1), "the newest");
    for network in 1..=REJECTIONS_MAX / REJECTIONS_OF_NETWORK_MAX {
        let lines = (0..REJECTIONS_OF_NETWORK_MAX).map(|n| flood(network, n, make("storm"))).collect();
        store.reject(lines).await.expect(UP);
    }
    assert_eq!(find(of("a")).await, []);
    assert_eq!(find(RejectionFilter { limit: usize::MAX, ..all() }).await.len(), FIND_MAX);
}
