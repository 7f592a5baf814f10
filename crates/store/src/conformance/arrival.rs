//! What a store promises about events on their way in.

use std::sync::Arc;

use bytes::Bytes;
use sekisho_core::change::{Admission, Arrival};
use sekisho_core::event::{DedupeKey, Event, Identity, Trust};
use sekisho_core::job::{DeadReason, End, Lane, Lease, Settle, Task};
use sekisho_core::{Seq, Time};

use super::{
    APPLIED, Arrivals, NOW, SUSPECT_AFTER, UP, act, admit, claim, claim_from, count, done, finish, join,
    status,
};
use crate::{Status, Store};

pub async fn one_admitted_per_key(store: Arc<dyn Store>) {
    let copies = (1..=8).map(|node| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { admit(&store, vec![Arrivals::new(node).event("same")]).await.remove(0) })
    });
    let mut answers = Vec::new();
    for copy in copies.collect::<Vec<_>>() {
        answers.push(copy.await.expect("no panic"));
    }
    assert_eq!(answers.iter().filter(|answer| **answer == Admission::Admitted).count(), 1);
    let stored = store.known(&[DedupeKey::new("shop", "same", None)]).await.expect(UP)[0];
    let stored = stored.expect("one was stored");
    assert_eq!(answers.iter().filter(|answer| **answer == Admission::Duplicate(stored)).count(), 7);
    assert_eq!(count(&store).await, 1);
}

pub async fn copies_in_one_batch(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let batch = vec![new.event("a"), new.event("b"), new.event("a"), new.event("a")];
    let first = batch[0].seq;
    let answers = admit(&store, batch).await;
    let duplicate = Admission::Duplicate(first);
    assert_eq!(answers, [Admission::Admitted, Admission::Admitted, duplicate.clone(), duplicate]);
    assert_eq!(count(&store).await, 2);
}

pub async fn opposite_orders(store: Arc<dyn Store>) {
    let mut runs = Vec::new();
    for node in 1..=4 {
        let store = Arc::clone(&store);
        runs.push(tokio::spawn(async move {
            let mut admitted = 0;
            let mut new = Arrivals::new(node);
            for round in 0..10 {
                let mut batch: Vec<_> = (0..50).map(|n| new.event(&format!("{round}-{n}"))).collect();
                if node % 2 == 0 {
                    batch.reverse();
                }
                let answers = admit(&store, batch).await;
                admitted += answers.iter().filter(|answer| **answer == Admission::Admitted).count();
            }
            admitted
        }));
    }
    let mut admitted = 0;
    for run in runs {
        admitted += run.await.expect("no panic");
    }
    assert_eq!((admitted, count(&store).await), (500, 500));
}

pub async fn same_rows_again(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let rows: Arc<[Arrival]> = vec![new.event("a"), new.event("b")].into();
    let epoch = join(&store).await;
    for keep in [None, None, Some(epoch)] {
        let answers = store.admit(Arc::clone(&rows), keep).await.expect(UP);
        assert_eq!(answers, [Admission::Admitted, Admission::Admitted]);
    }
    assert_eq!(count(&store).await, 2);
    assert_eq!(claim(&store, epoch, 10, NOW).await.len(), 2, "one job per event");
}

pub async fn comes_back_as_given(store: Arc<dyn Store>) {
    let given = odd_but_good();
    admit(&store, given.to_vec()).await;
    for given in given {
        let seq = store.find_seq("shop", &given.event_id).await.expect(UP);
        assert_eq!(seq, Some(given.seq));
        let found = store.find_event(given.seq).await.expect(UP).expect("it was stored");
        assert_eq!(found.body, given.body);
        assert_eq!(found.headers, &*given.headers);
        let summary = found.summary;
        assert_eq!(summary.event_id, given.event_id);
        assert_eq!(summary.source, &*given.source);
        assert_eq!(summary.event_type, given.event_type);
        assert_eq!(summary.received_at, given.received_at);
        assert_eq!(summary.created_at, given.created_at);
        assert_eq!(summary.object, given.object);
        assert_eq!(summary.account, given.account);
        assert_eq!(summary.livemode, given.livemode);
        assert_eq!(summary.trust, given.trust.name());
        assert_eq!((summary.status, summary.note, summary.processed_at), (Status::Received, None, None));
    }
    assert_eq!(store.find_event(Seq::from_i64(7)).await.expect(UP), None);
    assert_eq!(store.find_seq("other", "full").await.expect(UP), None);
}

/// With everything, with as little as possible, and with no body.
fn odd_but_good() -> [Arrival; 3] {
    let mut new = Arrivals::new(1);
    let full = Arrival {
        account: Some("acct_1".into()),
        livemode: Some(true),
        trust: Trust::Token,
        body: Bytes::from("{\"名前\":\"関所\"}"),
        ..new.event("full")
    };
    let bare = Arrival {
        created_at: None,
        object: None,
        livemode: None,
        trust: Trust::Hint,
        body: Bytes::from_static(&[0, 159, 146, 150, 255]),
        ..new.event("bare")
    };
    [full, bare, Arrival { body: Bytes::new(), ..new.event("empty") }]
}

pub async fn odd_rows(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let good = [new.event("good 1"), new.event("good 2")];
    let odd = [
        Arrival { event_type: "nul\0inside".into(), ..new.event("nul in type") },
        Arrival { created_at: Some(Time::from_ms(i64::MAX)), ..new.event("far future") },
        Arrival { created_at: Some(Time::from_ms(i64::MIN)), ..new.event("far past") },
        Arrival { object: Some(("\0".into(), "\u{1F600}".into())), ..new.event("odd object") },
        Arrival { event_id: "\u{0}".into(), key: DedupeKey::new("shop", "\0", None), ..new.event("nul id") },
        Arrival { headers: "[[\"x\",\"\0\"]]".into(), ..new.event("nul header") },
    ];
    let mut batch = vec![good[0].clone()];
    batch.extend(odd);
    batch.push(good[1].clone());
    let answers = admit(&store, batch.clone()).await;
    assert_eq!(answers.len(), batch.len());
    assert_eq!((&answers[0], &answers[7]), (&Admission::Admitted, &Admission::Admitted));
    for (row, answer) in batch.iter().zip(&answers) {
        let stored = store.find_event(row.seq).await.expect(UP).is_some();
        match answer {
            Admission::Admitted => assert!(stored, "{row:?}"),
            Admission::Refused(_) => assert!(!stored, "{row:?}"),
            Admission::Duplicate(_) | Admission::IdReused | Admission::OtherBody => {
                panic!("nothing was sent twice: {row:?}")
            }
        }
    }
}

pub async fn evidence(store: Arc<dyn Store>) {
    let death = DeadReason::terminal("unusable_body", "the body has no usable field `id`");
    let row = Arrival { held: Some(death.clone()), ..Arrivals::new(1).event("odd") };
    let epoch = join(&store).await;
    assert_eq!(store.admit(vec![row.clone()].into(), None).await.expect(UP), [Admission::Admitted]);
    let jobs = claim_from(&store, epoch, Lane::settle(), 10, NOW).await;
    assert_eq!(jobs, [row.first_job(epoch)], "its settling is told why");
    assert_eq!(jobs[0].task, Task::Settle(row.settle()));
    assert_eq!(finish(&store, jobs[0].lease, End::Dead(death.clone())).await, APPLIED);
    let found = store.find_event(row.seq).await.expect(UP).expect("it was stored").summary;
    assert_eq!(
        (found.status, found.note, found.processed_at),
        (Status::Failed, Some(death.error), Some(NOW))
    );
    assert_eq!(store.retry(vec![row.seq], act("look again")).await.expect(UP), [true]);
    let jobs = claim_from(&store, epoch, Lane::settle(), 10, act("").at).await;
    assert_eq!(jobs[0].task, Task::Settle(Settle::Once), "a person judged that it may be acted upon");
}

/// An event whose id the proof does not cover, or one that came by a transmission.
pub fn with_body(row: Arrival, body: &'static str, transmission: Option<&str>) -> Arrival {
    let (id, kind) = (row.event_id.clone(), row.event_type.clone());
    let event = match transmission {
        None => Event::with_open_id(id, kind, body.as_bytes()),
        Some(_) => Event::new(id, kind, body.as_bytes()),
    };
    let Identity { key, first_body } = Identity::of(&row.source, &event, transmission);
    Arrival { key, first_body, body: Bytes::from_static(body.as_bytes()), ..row }
}

pub async fn ids_reused(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let mut open = |id: &str, body| with_body(new.event(id), body, None);
    let first = open("7", "old");
    assert_eq!(admit(&store, vec![first.clone()]).await, [Admission::Admitted]);
    assert_eq!(admit(&store, vec![open("7", "old")]).await, [Admission::Duplicate(first.seq)]);
    let second = open("7", "new");
    let other = open("8", "old");
    let batch = vec![second.clone(), other.clone(), open("7", "new")];
    let answers = [Admission::IdReused, Admission::Admitted, Admission::Duplicate(second.seq)];
    assert_eq!(admit(&store, batch).await, answers);
    assert_eq!(
        admit(&store, vec![second.clone()]).await,
        [Admission::IdReused],
        "asked again, the same answer"
    );
    assert_eq!(admit(&store, vec![first.clone()]).await, [Admission::Admitted]);
    let (one, two) = (open("9", "one"), open("9", "two"));
    assert_eq!(
        admit(&store, vec![one, two]).await,
        [Admission::Admitted, Admission::IdReused],
        "in one batch"
    );
    for (row, is_reused) in [(&first, false), (&second, true), (&other, false)] {
        let found = store.find_event(row.seq).await.expect(UP).expect("it was stored");
        assert_eq!((found.summary.id_reused, &found.body), (is_reused, &row.body));
        assert_eq!(store.known(&[row.key]).await.expect(UP), [Some(row.seq)]);
    }
    assert_eq!(store.find_seq("shop", "7").await.expect(UP), Some(first.seq), "the first of them");
    assert_eq!(count(&store).await, 5);
}

pub async fn transmissions(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let mut sent = |transmission, id: &str, body| with_body(new.event(id), body, Some(transmission));
    let first = sent("T1", "a", "paid 10");
    assert_eq!(admit(&store, vec![first.clone()]).await, [Admission::Admitted]);
    let duplicate = [Admission::Duplicate(first.seq)];
    assert_eq!(admit(&store, vec![sent("T1", "a", "paid 10")]).await, duplicate);
    for id in ["a", "b"] {
        assert_eq!(admit(&store, vec![sent("T1", id, "paid 99999")]).await, [Admission::OtherBody], "{id}");
    }
    // Sent again by another transmission, which stands for its body from then on.
    assert_eq!(admit(&store, vec![sent("T2", "a", "paid 10 ")]).await, duplicate);
    assert_eq!(admit(&store, vec![sent("T2", "c", "paid 77777")]).await, [Admission::OtherBody]);
    assert_eq!(admit(&store, vec![sent("T2", "a", "paid 10")]).await, [Admission::OtherBody]);
    assert_eq!(admit(&store, vec![first]).await, [Admission::Admitted], "asked again, the same answer");

    let batch = vec![
        sent("T3", "x", "one"),
        sent("T3", "y", "two"),
        sent("T3", "x", "two"),
        sent("T4", "x", "one"),
        sent("T3", "x", "one"),
    ];
    let seq = batch[0].seq;
    let answers = [
        Admission::Admitted,
        Admission::OtherBody,
        Admission::OtherBody,
        Admission::Duplicate(seq),
        Admission::Duplicate(seq),
    ];
    assert_eq!(admit(&store, batch).await, answers);
    assert_eq!(count(&store).await, 2);
}

pub async fn first_bodies_at_once(store: Arc<dyn Store>) {
    const BODIES: [&str; 4] = ["one", "two", "three", "four"];
    let runs = BODIES.into_iter().enumerate().map(|(n, body)| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let mut new = Arrivals::new(n as i64 + 1);
            let mut answers = Vec::new();
            for round in 0..10 {
                let id = |n: usize| format!("{round}-{n}");
                let sent = |row: Arrival| {
                    let transmission = row.event_id.clone();
                    with_body(
                        Arrival { event_id: format!("{transmission}-{n}"), ..row },
                        body,
                        Some(&transmission),
                    )
                };
                let mut batch: Vec<_> = (0..10).map(|m| with_body(new.event(&id(m)), body, None)).collect();
                batch.extend((0..10).map(|m| sent(new.event(&id(m)))));
                if n % 2 == 0 {
                    batch.reverse();
                }
                answers.extend(admit(&store, batch).await);
            }
            answers
        })
    });
    let mut answers = Vec::new();
    for run in runs.collect::<Vec<_>>() {
        answers.extend(run.await.expect("no panic"));
    }
    let count = |of: Admission| answers.iter().filter(|answer| **answer == of).count();
    assert_eq!(count(Admission::Admitted), 200, "one of each");
    assert_eq!((count(Admission::IdReused), count(Admission::OtherBody)), (300, 300));
}

pub async fn known_is_exact(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let rows = [new.event("a"), new.event("b")];
    admit(&store, rows.to_vec()).await;
    let keys = [rows[1].key, DedupeKey::new("shop", "never", None), rows[0].key];
    let found = store.known(&keys).await.expect(UP);
    assert_eq!(found, [Some(rows[1].seq), None, Some(rows[0].seq)]);
    assert_eq!(store.known(&[]).await.expect(UP), []);
}

pub async fn first_jobs_born_leased(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let (own, other) = (join(&store).await, join(&store).await);
    let rows = [new.event("a"), new.event("b")];
    store.admit(rows.to_vec().into(), Some(own)).await.expect(UP);
    let born = rows.each_ref().map(|row| Lease { job: row.seq, epoch: own, attempt: 1 });
    assert_eq!(store.owned(own, Seq::ZERO).await.expect(UP), born);
    assert!(claim(&store, other, 10, NOW).await.is_empty(), "they are held");
    assert_eq!(finish(&store, born[0], done()).await, APPLIED);
    assert_eq!(status(&store, rows[0].seq).await, Status::Success);

    assert!(store.end(own, 0).await.expect(UP));
    assert_eq!(store.sweep(10, SUSPECT_AFTER).await.expect(UP), 1, "the done one is gone");
    let freed = claim_from(&store, other, Lane::settle(), 10, NOW).await;
    assert_eq!((freed.len(), freed[0].lease.job, freed[0].event), (1, rows[1].seq, Some(rows[1].seq)));
    assert_eq!((freed[0].lease.attempt, freed[0].crashes, freed[0].tries()), (2, 1, 1));
}

pub async fn loads(store: Arc<dyn Store>) {
    let given = odd_but_good();
    admit(&store, given.to_vec()).await;
    let asked = vec![given[2].seq, Seq::from_i64(7), given[0].seq, given[1].seq, given[2].seq];
    let found = store.load_events(asked).await.expect(UP);
    assert_eq!(found, given.each_ref().map(Arrival::stored));
    assert_eq!(store.load_events(Vec::new()).await.expect(UP), []);
}
