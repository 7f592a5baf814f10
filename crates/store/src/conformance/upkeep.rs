//! What a store promises about counts, and letting go.

use std::sync::Arc;

use sekisho_core::change::{Admission, Arrival, ChangeSet, Replayed};
use sekisho_core::event::{Created, DedupeKey};
use sekisho_core::job::{DeadReason, End, Lane, NewJob, Settle, Task, Timer};
use sekisho_core::state::{self as things, Key, Posting};
use sekisho_core::time::{DAY_MS, HOUR_MS, hour_of};
use sekisho_core::{Epoch, Seq, Time};

use super::arrival::with_body;
use super::{
    ALL, APPLIED, Arrivals, NOW, UP, act, admit, admit_one, attempt, claim, claim_from, claim_name, commit,
    count, dead, dead_letter, death, done, finish, join, leads_to, leased, message, payment, posting, queue,
    version, write, writes,
};
use crate::{Count, Forgotten, HourMoney, Status, Store};

pub async fn counts(store: Arc<dyn Store>) {
    let hour = hour_of(NOW);
    let next = hour.plus_ms(HOUR_MS);
    let mut new = Arrivals::new(1);
    let mut at = |id: &str, received_at| new.event_at(id, received_at);
    let rows = vec![
        at("before", hour.plus_ms(-1)),
        at("first", hour),
        at("second", hour.plus_ms(1)),
        Arrival { event_type: "other".into(), ..at("typed", NOW) },
        Arrival { source: "other".into(), ..at("dead", NOW) },
        at("last", next.plus_ms(-1)),
        at("after", next),
    ];
    let epoch = join(&store).await;
    dead_letter(&store, epoch, rows[4].clone(), death(), NOW).await;
    admit(&store, rows.clone()).await;
    let find = async |from, to| store.find_counts(from, to).await.expect(UP);
    assert_eq!(find(Time::from_ms(0), next).await, []);
    let line = |source: &str, kind: &str, status, events| Count {
        hour,
        source: source.into(),
        event_type: kind.into(),
        status,
        events,
    };
    let failed = line("other", "payment.paid", Status::Failed, 1);
    let typed = line("shop", "other", Status::Received, 1);
    for _ in 0..2 {
        store.count_hour(hour).await.expect(UP);
        let plain = line("shop", "payment.paid", Status::Received, 3);
        assert_eq!(find(hour, next).await, [failed.clone(), typed.clone(), plain], "twice is fine");
    }
    for lease in claim(&store, epoch, ALL, next).await {
        if lease.job == rows[1].seq {
            assert_eq!(finish(&store, lease, done()).await, APPLIED);
        } else if lease.job == rows[2].seq {
            assert_eq!(finish(&store, lease, dead()).await, APPLIED);
        }
    }
    store.discard(vec![rows[2].seq], act("no")).await.expect(UP);
    store.count_hour(hour).await.expect(UP);
    let paid = |status| line("shop", "payment.paid", status, 1);
    let expected = [failed, typed, paid(Status::Received), paid(Status::Skipped), paid(Status::Success)];
    assert_eq!(find(hour, next).await, expected, "the new count stands in place of the old");
    store.count_hour(next).await.expect(UP);
    assert_eq!(find(hour, next).await.len(), 5, "without the hour it ends with");
    assert_eq!(find(next, next.plus_ms(1)).await.len(), 1);
    assert_eq!(find(hour, next.plus_ms(1)).await.len(), 6, "in order of time");
    store.count_hour(next.plus_ms(HOUR_MS)).await.expect(UP);
    assert_eq!(find(hour, next.plus_ms(9 * HOUR_MS)).await.len(), 6, "an empty hour counts nothing");
}

pub async fn money(store: Arc<dyn Store>) {
    let hour = hour_of(NOW);
    let book = async |at: Time, account: &str, amount: i64, change: fn(&mut Posting)| {
        let mut lines = [posting(account, amount, "p1"), posting("sales", -amount, "p1")];
        lines.iter_mut().for_each(change);
        let set = ChangeSet { postings: lines.into(), ..ChangeSet::nothing(at) };
        assert_eq!(commit(&store, set).await, APPLIED);
    };
    book(hour, "provider/a", 500, |_| ()).await;
    book(hour.plus_ms(HOUR_MS - 1), "provider/b", 300, |_| ()).await;
    book(hour.plus_ms(HOUR_MS), "provider/a", 7, |_| ()).await;
    book(hour.plus_ms(-1), "provider/a", 9, |_| ()).await;
    book(NOW, "fees", 11, |_| ()).await;
    book(NOW, "provider/a", -200, |line| line.cause = "refunded".into()).await;
    book(NOW, "provider/a", 5, |line| line.livemode = Some(false)).await;
    book(NOW, "provider/a", 6, |line| line.livemode = None).await;
    book(NOW, "provider/a", 3, |line| line.currency = "USD".into()).await;
    let find = async |from, to| store.find_money(from, to).await.expect(UP);
    assert_eq!(find(hour, hour.plus_ms(HOUR_MS)).await, [], "nothing was counted yet");
    let cause = posting("cash", 1, "p1").cause;
    let line = |livemode, currency: &str, cause: &str, amount, lines| HourMoney {
        hour,
        livemode,
        currency: currency.into(),
        cause: cause.into(),
        amount,
        lines,
    };
    let mut expected = vec![
        line(None, "JPY", &cause, 6, 1),
        line(Some(false), "JPY", &cause, 5, 1),
        line(Some(true), "JPY", &cause, 800, 2),
        line(Some(true), "JPY", "refunded", -200, 1),
        line(Some(true), "USD", &cause, 3, 1),
    ];
    for _ in 0..2 {
        store.count_hour(hour).await.expect(UP);
        assert_eq!(find(hour, hour.plus_ms(HOUR_MS)).await, expected, "twice is fine");
    }
    book(NOW, "provider/a", 1, |_| ()).await;
    store.count_hour(hour).await.expect(UP);
    expected[2] = line(Some(true), "JPY", &cause, 801, 3);
    assert_eq!(find(hour, hour.plus_ms(1)).await, expected, "the new count stands in place of the old");
    store.count_hour(hour.plus_ms(HOUR_MS)).await.expect(UP);
    assert_eq!(find(hour, hour.plus_ms(2 * HOUR_MS)).await.len(), 6, "in order of time");
}

async fn forget(store: &Arc<dyn Store>, before: Time, after: Seq, limit: usize) -> Forgotten {
    store.forget(before, after, limit).await.expect(UP)
}

/// An event that came days ago, settled and delivered twice; gives back the jobs.
async fn long_done(
    store: &Arc<dyn Store>,
    new: &mut Arrivals,
    epoch: Epoch,
    id: &str,
    days: i64,
) -> [Seq; 3] {
    let received_at = NOW.plus_ms(-days * DAY_MS);
    let event = admit_one(store, new.event_at(id, received_at)).await;
    let jobs = claim(store, epoch, ALL, NOW).await;
    let settle = jobs.into_iter().find(|lease| lease.job == event).expect("it is due");
    let deliveries = ["a", "b"].map(|route| new.delivery(event, &format!("{route}-{id}")));
    let set = ChangeSet { jobs: deliveries.to_vec(), ..ChangeSet::end(settle, done(), NOW) };
    let set = set.with_attempt(attempt(200));
    assert_eq!(commit(store, set).await, APPLIED);
    for delivery in &deliveries {
        let lease = claim_from(store, epoch, delivery.lane.clone(), 1, NOW).await[0].lease;
        let set = ChangeSet::end(lease, done(), NOW).with_attempt(attempt(200));
        assert_eq!(commit(store, set).await, APPLIED);
    }
    [event, deliveries[0].id, deliveries[1].id]
}

pub async fn forgets(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let epoch = join(&store).await;
    let mut old = Vec::new();
    for (id, days) in [("a", 9), ("b", 8), ("c", 7), ("d", 6), ("e", 5)] {
        old.push(long_done(&store, &mut new, epoch, id, days).await);
    }
    let before = NOW.plus_ms(-5 * DAY_MS);
    assert_eq!(forget(&store, before, Seq::ZERO, 0).await.events, 0);
    let first = forget(&store, before, Seq::ZERO, 1).await;
    assert_eq!(first, Forgotten { events: 1, next: Some(old[0][0]) }, "at most the limit");
    let second = forget(&store, before, old[0][0], 2).await;
    assert_eq!(second, Forgotten { events: 2, next: Some(old[2][0]) });
    let third = forget(&store, before, old[2][0], 2).await;
    assert_eq!(third, Forgotten { events: 1, next: None }, "nothing old is left");
    assert_eq!(forget(&store, before, Seq::ZERO, 9).await, Forgotten { events: 0, next: None });
    assert_eq!(forget(&store, before, Seq::MAX, 9).await, Forgotten { events: 0, next: None });
    assert_eq!(count(&store).await, 1, "what came at that moment stays");

    for jobs in &old[..4] {
        assert_eq!(store.find_event(jobs[0]).await.expect(UP), None);
        assert_eq!(store.load_events(jobs.to_vec()).await.expect(UP), []);
        assert_eq!(store.find_messages(jobs[0]).await.expect(UP), []);
        for job in jobs {
            assert_eq!(message(&store, *job).await, None);
            assert_eq!(store.find_attempts(*job).await.expect(UP), []);
        }
    }
    for job in old[4] {
        assert!(message(&store, job).await.is_some());
        assert_eq!(store.find_attempts(job).await.expect(UP).len(), 1);
    }
    assert_eq!(store.find_messages(old[4][0]).await.expect(UP).len(), 2);
    assert_eq!(store.find_seq("shop", "a").await.expect(UP), None);
    let replayed = store.replay(vec![old[0][0]], Settle::Once, act("late")).await.expect(UP);
    assert_eq!(replayed, [Replayed::Unknown], "no longer kept");

    // The dedupe entry went too, also where the provider's clock stands in it.
    let created = Some(Created { at: NOW, immutable: true });
    let mut dated = new.event_at("dated", NOW.plus_ms(-9 * DAY_MS));
    dated.key = DedupeKey::new("shop", "dated", created);
    dead_letter(&store, epoch, dated.clone(), death(), NOW).await;
    assert_eq!(store.discard(vec![dated.seq], act("no")).await.expect(UP), [true]);
    assert_eq!(forget(&store, before, Seq::ZERO, 9).await, Forgotten { events: 1, next: None });
    assert_eq!(store.known(&[dated.key, new.event("a").key]).await.expect(UP), [None, None]);
    let again = vec![Arrival { seq: new.id(), ..dated }, new.event("a"), new.event("e")];
    let answers = admit(&store, again).await;
    assert_eq!(answers, [Admission::Admitted, Admission::Admitted, Admission::Duplicate(old[4][0])]);
}

pub async fn forgets_first_bodies(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let epoch = join(&store).await;
    let (long_ago, before) = (NOW.plus_ms(-9 * DAY_MS), NOW.plus_ms(-8 * DAY_MS));
    let [gone, kept] = ["gone", "kept"].map(|id| with_body(new.event_at(id, long_ago), "old", None));
    dead_letter(&store, epoch, gone.clone(), death(), NOW).await;
    dead_letter(&store, epoch, kept.clone(), death(), NOW).await;
    assert_eq!(store.discard(vec![gone.seq], act("no")).await.expect(UP), [true]);
    let sent = |new: &mut Arrivals, body| with_body(new.event_at("sent", long_ago), body, Some("T"));
    let first = sent(&mut new, "one");
    dead_letter(&store, epoch, first.clone(), death(), NOW).await;
    assert_eq!(store.discard(vec![first.seq], act("no")).await.expect(UP), [true]);

    assert_eq!(forget(&store, before, Seq::ZERO, 9).await, Forgotten { events: 2, next: None });
    assert_eq!(store.known(&[gone.key, kept.key]).await.expect(UP), [None, Some(kept.seq)]);
    assert_eq!(store.find_seq("shop", "gone").await.expect(UP), None);
    assert_eq!(store.find_seq("shop", "kept").await.expect(UP), Some(kept.seq));
    let again = ["gone", "kept"].map(|id| with_body(new.event(id), "new", None));
    let batch = [&again[..], &[sent(&mut new, "two")]].concat();
    assert_eq!(admit(&store, batch).await, [Admission::Admitted, Admission::IdReused, Admission::Admitted]);
}

pub async fn keeps(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let epoch = join(&store).await;
    let long_ago = NOW.plus_ms(-9 * DAY_MS);
    // Waiting, running, dead, evidence, with a delivery that waits, runs, or is dead; and done among them.
    let waits =
        admit_one(&store, Arrival { received_at: NOW.plus_ms(1), ..new.event_at("waits", long_ago) }).await;
    let runs = admit_one(&store, new.event_at("runs", long_ago)).await;
    assert_eq!(claim(&store, epoch, 1, NOW).await[0].job, runs);
    let dies = admit_one(&store, new.event_at("dies", long_ago)).await;
    let lease = claim(&store, epoch, 1, NOW).await[0];
    assert_eq!(finish(&store, lease, dead()).await, APPLIED);
    let death = DeadReason::terminal("odd", "odd");
    let evidence = dead_letter(&store, epoch, new.event_at("evidence", long_ago), death, NOW).await;
    let mut kept = vec![waits, runs, dies, evidence];
    let mut deliveries = Vec::new();
    for id in ["delivery-waits", "delivery-runs", "delivery-dies"] {
        let [event, ..] = long_done(&store, &mut new, epoch, id, 9).await;
        kept.push(event);
        deliveries.push(NewJob { due_at: NOW.plus_ms(1), ..new.delivery(event, id) });
    }
    queue(&store, vec![deliveries[0].clone()]).await;
    let running = NewJob { due_at: NOW, ..deliveries[1].clone() };
    let running = leased(&store, epoch, running).await;
    let lease = leased(&store, epoch, NewJob { due_at: NOW, ..deliveries[2].clone() }).await;
    assert_eq!(finish(&store, lease, dead()).await, APPLIED);
    let [gone, ..] = long_done(&store, &mut new, epoch, "done", 8).await;

    let (mut after, mut forgotten, mut steps) = (Seq::ZERO, 0, 0);
    loop {
        let step = forget(&store, NOW, after, 2).await;
        (forgotten, steps) = (forgotten + step.events, steps + 1);
        let Some(next) = step.next else { break };
        assert!(next > after, "it goes on past what is kept");
        after = next;
    }
    assert_eq!((forgotten, steps), (1, 5));
    assert_eq!(store.find_event(gone).await.expect(UP), None);
    for event in &kept {
        assert!(store.find_event(*event).await.expect(UP).is_some());
        assert!(message(&store, *event).await.is_some());
    }
    for delivery in &deliveries {
        let event = delivery.event.expect("a delivery is about an event");
        assert_eq!(store.find_messages(event).await.expect(UP).len(), 3, "with all it caused");
        assert_eq!(queue(&store, vec![NewJob { id: new.id(), ..delivery.clone() }]).await.len(), 1);
    }
    assert_eq!(store.known(&[new.event("waits").key]).await.expect(UP), [Some(waits)]);

    // When the work is finished, or a person has seen it, they go.
    assert_eq!(finish(&store, running, done()).await, APPLIED);
    assert_eq!(store.discard(vec![evidence], act("seen")).await.expect(UP), [true]);
    assert_eq!(forget(&store, NOW, Seq::ZERO, ALL).await, Forgotten { events: 2, next: None });
    assert_eq!(count(&store).await, kept.len() - 2);
}

pub async fn forgets_requests(store: Arc<dyn Store>) {
    let at = |days: i64| NOW.plus_ms(-days * DAY_MS);
    let request = |id: &str| Key::new(things::Kind::Request, id);
    let ask = async |key: Key, asked_at| {
        let names = vec![claim_name(&format!("{key:?}"), &key), claim_name(&format!("again {key:?}"), &key)];
        let set = ChangeSet { writes: vec![write(&key, 0, "{}")], names, ..ChangeSet::nothing(asked_at) };
        assert_eq!(commit(&store, set).await, APPLIED);
    };
    for (id, days) in [("a", 9), ("b", 8), ("c", 7), ("young", 4)] {
        ask(request(id), at(days)).await;
    }
    ask(payment("a"), at(9)).await;
    // What was touched lately is not old.
    let touched = ChangeSet { at: at(1), ..writes(vec![write(&request("c"), 1, "{}")]) };
    assert_eq!(commit(&store, touched).await, APPLIED);
    let step = forget(&store, at(5), Seq::ZERO, 1).await;
    assert_eq!(step, Forgotten { events: 0, next: Some(Seq::ZERO) }, "more may be left, though no event is");
    assert_eq!(
        (version(&store, &request("a")).await, version(&store, &request("b")).await),
        (0, 1),
        "a step at a time"
    );
    let mut new = Arrivals::new(1);
    let event = admit_one(&store, new.event_at("e", at(9))).await;
    let epoch = join(&store).await;
    let lease = claim(&store, epoch, 1, NOW).await[0];
    assert_eq!(finish(&store, lease, done()).await, APPLIED);
    let step = forget(&store, at(5), Seq::ZERO, 1).await;
    assert_eq!(step, Forgotten { events: 1, next: Some(event) }, "on after the last event");
    assert_eq!(forget(&store, at(5), event, 1).await, Forgotten { events: 0, next: None });
    for (key, stays) in [
        (request("a"), false),
        (request("b"), false),
        (request("c"), true),
        (request("young"), true),
        (payment("a"), true),
    ] {
        assert_eq!(version(&store, &key).await > 0, stays, "{key:?}");
        assert_eq!(leads_to(&store, &format!("{key:?}")).await.is_some(), stays, "{key:?}");
    }
}

pub async fn forgets_meters(store: Arc<dyn Store>) {
    let meter = |id: &str| Key::new(things::Kind::Meter, id);
    let ids = ["001/1", "002/1", "002/2", "003/1", "h/001"];
    for key in ids.map(meter).into_iter().chain([payment("002/1")]) {
        assert_eq!(commit(&store, writes(vec![write(&key, 0, "{}")])).await, APPLIED);
    }
    let forget = async |from: &str, to: &str, limit| {
        store.forget_meters(from.to_owned(), to.to_owned(), limit).await.expect(UP)
    };
    assert_eq!(forget("", "003", 0).await, 0);
    assert_eq!(forget("", "003", 2).await, 2);
    assert_eq!(version(&store, &meter("002/2")).await, 1, "a step at a time, the oldest first");
    assert_eq!((forget("", "003", 9).await, forget("", "003", 9).await), (1, 0));
    for (key, stays) in [(meter("001/1"), 0), (meter("003/1"), 1), (meter("h/001"), 1), (payment("002/1"), 1)]
    {
        assert_eq!(version(&store, &key).await, stays, "{key:?}");
    }
}

pub async fn forgets_timers(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let epoch = join(&store).await;
    let at = |days: i64| NOW.plus_ms(-days * DAY_MS);
    let timer = |new: &mut Arrivals, name: &str, days| Timer::Schedule(name.into()).job(new.id(), at(days));
    let names = ["waits", "runs", "dies", "done"];
    let old: Vec<_> = names.iter().map(|name| timer(&mut new, name, 9)).collect();
    let young = timer(&mut new, "done", 5);
    // Those that stay come first, so that a small step must look past them.
    let mut jobs = old.clone();
    jobs.push(young.clone());
    queue(&store, jobs).await;
    for job in claim_from(&store, epoch, Lane::timer(), ALL, NOW).await {
        let end = match job.lease.job {
            id if id == old[0].id => End::Retry { due_at: NOW },
            id if id == old[1].id => continue,
            id if id == old[2].id => dead(),
            _ => done(),
        };
        let set = ChangeSet::end(job.lease, end, NOW).with_attempt(attempt(200));
        assert_eq!(commit(&store, set).await, APPLIED);
    }
    let step = forget(&store, at(5), Seq::ZERO, 1).await;
    assert_eq!(step, Forgotten { events: 0, next: Some(Seq::ZERO) }, "more may be left");
    for _ in 1..old.len() {
        assert_eq!(forget(&store, at(5), Seq::ZERO, 1).await, Forgotten { events: 0, next: None });
    }
    assert_eq!(message(&store, old[3].id).await, None);
    assert_eq!(store.find_attempts(old[3].id).await.expect(UP), []);
    for stays in [&old[0], &old[1], &old[2], &young] {
        assert!(message(&store, stays.id).await.is_some(), "{stays:?}");
        let again = NewJob { id: new.id(), ..stays.clone() };
        assert_eq!(queue(&store, vec![again.clone()]).await, [again.id], "still the same moment");
    }
}

pub async fn forgets_notices(store: Arc<dyn Store>) {
    let epoch = join(&store).await;
    let at = |days: i64| NOW.plus_ms(-days * DAY_MS);
    let job = |days: i64, n: i64, key: String| NewJob {
        id: Seq::from_i64(Seq::floor_of(at(days)).as_i64() + n),
        key: Some(key),
        task: Task::Send { notice: "ntc_1".into() },
        ..Timer::Count.job(Seq::ZERO, at(days))
    };
    let notice = |days, n| {
        let id = Seq::floor_of(at(days)).tagged("ntc_");
        job(days, n, format!("notice/{id}"))
    };
    let remind = |days, n| job(days, n, format!("remind/{}/office", &at(days).to_string()[..10]));
    let (old, young) = ([notice(9, 1), remind(9, 2)], [notice(4, 1), remind(4, 2)]);
    queue(&store, old.iter().chain(&young).cloned().collect()).await;
    for job in claim_from(&store, epoch, Lane::timer(), ALL, NOW).await {
        assert_eq!(finish(&store, job.lease, done()).await, APPLIED);
    }
    while forget(&store, at(5), Seq::ZERO, 1).await.next.is_some() {}
    for (jobs, stays) in [(&old, false), (&young, true)] {
        for job in jobs {
            assert_eq!(message(&store, job.id).await.is_some(), stays, "{job:?}");
        }
    }
}

pub async fn upkeep(store: Arc<dyn Store>) {
    for days in [0, 0, 1, 40] {
        store.upkeep(NOW.plus_ms(days * DAY_MS)).await.expect(UP);
    }
    let mut new = Arrivals::new(1);
    assert_eq!(admit(&store, vec![new.event("a")]).await, [Admission::Admitted]);
}
