//! Every promise of [`Store`], as a test that any implementation must pass on a fresh, empty store.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use sekisho_core::change::{
    Admission, Arrival, ChangeSet, Committed, Death, End, Lane, Lease, Next, Outcome, Rejection,
};
use sekisho_core::event::{DedupeKey, Trust};
use sekisho_core::id::Sequence;
use sekisho_core::{Epoch, Seq, Time};

use crate::{EventFilter, Order, Pulse, REJECTIONS_MAX, Status, Store};

pub type Promise = (&'static str, fn(Arc<dyn Store>) -> Pin<Box<dyn Future<Output = ()> + Send>>);

/// The list itself. A new promise is a new line and a function below.
pub const PROMISES: &[Promise] = &[
    ("a7: one Admitted per key, however many copies", |s| Box::pin(one_admitted_per_key(s))),
    ("a7: copies of one event inside one batch are one row", |s| Box::pin(copies_in_one_batch(s))),
    ("a7: concurrent batches in opposite order neither deadlock nor double", |s| {
        Box::pin(opposite_orders(s))
    }),
    ("a5: the same rows again after an unknown outcome are Admitted again", |s| Box::pin(same_rows_again(s))),
    ("a5: everything of an event comes back as it was given", |s| Box::pin(comes_back_as_given(s))),
    ("a5: odd texts, bytes and dates are stored or refused alone", |s| Box::pin(odd_rows(s))),
    ("a3: evidence is stored with its dead letter", |s| Box::pin(evidence(s))),
    ("a7: known finds exactly what is stored", |s| Box::pin(known_is_exact(s))),
    ("b2: a job is leased to one node at a time, oldest first, never early", |s| Box::pin(claims(s))),
    ("b2: a commit without its lease writes nothing", |s| Box::pin(fences(s))),
    ("b2: work of a dead node is freed, work of a living one is not", |s| Box::pin(sweeps(s))),
    ("b2: a released job can be claimed at once and spent no attempt", |s| Box::pin(releases(s))),
    ("b2: an epoch is never given twice and a node that was given up hears it", |s| Box::pin(epochs(s))),
    ("b5: every event has the status its work left", |s| Box::pin(statuses(s))),
    ("h2: pages are bounded, ordered and filtered", |s| Box::pin(pages(s))),
    ("a3: rejections are kept newest first and bounded", |s| Box::pin(rejections(s))),
    ("h5: upkeep may run at any time, twice", |s| Box::pin(upkeep(s))),
];

const NOW: Time = Time::from_ms(1_780_000_000_000);

/// A source of arrivals for tests: same seed, same rows.
pub struct Arrivals {
    sequence: Sequence,
}

impl Arrivals {
    pub fn new(node: i64) -> Self {
        Self { sequence: Sequence::new(Epoch(node), Seq::ZERO) }
    }

    pub fn event(&mut self, id: &str) -> Arrival {
        Arrival {
            key: DedupeKey::new("shop", id, None),
            seq: self.sequence.next(NOW),
            received_at: NOW,
            source: "shop".into(),
            event_id: id.into(),
            event_type: "payment.paid".into(),
            created_at: Some(NOW),
            object: Some(("payment".into(), format!("pay_{id}"))),
            account: None,
            livemode: Some(false),
            trust: Trust::Signed,
            headers: r#"[["content-type","application/json"]]"#.into(),
            body: Bytes::from(format!(r#"{{"id":"{id}"}}"#)),
            next: Next::Settle,
        }
    }
}

async fn admit(store: &Arc<dyn Store>, arrivals: Vec<Arrival>) -> Vec<Admission> {
    store.admit(arrivals.into()).await.expect("the store is up")
}

async fn count(store: &Arc<dyn Store>) -> usize {
    store
        .find_events(EventFilter { limit: 1000, ..EventFilter::default() })
        .await
        .expect("the store is up")
        .len()
}

async fn join(store: &Arc<dyn Store>) -> Epoch {
    store.join(NOW).await.expect("the store is up").epoch
}

async fn claim(store: &Arc<dyn Store>, epoch: Epoch, limit: usize, now: Time) -> Vec<Lease> {
    let jobs = store.claim(epoch, &Lane::settle(), limit, now).await.expect("the store is up");
    jobs.into_iter().map(|job| job.lease).collect()
}

async fn finish(store: &Arc<dyn Store>, lease: Lease, end: End) -> Committed {
    store.commit(vec![ChangeSet { lease, end, at: NOW }]).await.expect("the store is up")[0]
}

async fn one_admitted_per_key(store: Arc<dyn Store>) {
    let copies = (1..=8).map(|node| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { admit(&store, vec![Arrivals::new(node).event("same")]).await.remove(0) })
    });
    let mut answers = Vec::new();
    for copy in copies.collect::<Vec<_>>() {
        answers.push(copy.await.expect("no panic"));
    }
    assert_eq!(answers.iter().filter(|answer| **answer == Admission::Admitted).count(), 1);
    let stored = store.known(&[DedupeKey::new("shop", "same", None)]).await.expect("the store is up")[0];
    let stored = stored.expect("one was stored");
    assert_eq!(answers.iter().filter(|answer| **answer == Admission::Duplicate(stored)).count(), 7);
    assert_eq!(count(&store).await, 1);
}

async fn copies_in_one_batch(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let batch = vec![new.event("a"), new.event("b"), new.event("a"), new.event("a")];
    let first = batch[0].seq;
    let answers = admit(&store, batch).await;
    let duplicate = Admission::Duplicate(first);
    assert_eq!(answers, [Admission::Admitted, Admission::Admitted, duplicate.clone(), duplicate]);
    assert_eq!(count(&store).await, 2);
}

async fn opposite_orders(store: Arc<dyn Store>) {
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

async fn same_rows_again(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let rows: Arc<[Arrival]> = vec![new.event("a"), new.event("b")].into();
    for _ in 0..3 {
        let answers = store.admit(Arc::clone(&rows)).await.expect("the store is up");
        assert_eq!(answers, [Admission::Admitted, Admission::Admitted]);
    }
    assert_eq!(count(&store).await, 2);
    let epoch = join(&store).await;
    assert_eq!(claim(&store, epoch, 10, NOW).await.len(), 2, "one job per event");
}

async fn comes_back_as_given(store: Arc<dyn Store>) {
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
    let empty = Arrival { body: Bytes::new(), ..new.event("empty") };
    admit(&store, vec![full.clone(), bare.clone(), empty.clone()]).await;
    for given in [full, bare, empty] {
        let seq = store.find_seq("shop", &given.event_id).await.expect("the store is up");
        assert_eq!(seq, Some(given.seq));
        let found = store.find_event(given.seq).await.expect("the store is up").expect("it was stored");
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
    assert_eq!(store.find_event(Seq::from_i64(7)).await.expect("the store is up"), None);
    assert_eq!(store.find_seq("other", "full").await.expect("the store is up"), None);
}

async fn odd_rows(store: Arc<dyn Store>) {
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
        let stored = store.find_event(row.seq).await.expect("the store is up").is_some();
        match answer {
            Admission::Admitted => assert!(stored, "{row:?}"),
            Admission::Refused(_) => assert!(!stored, "{row:?}"),
            Admission::Duplicate(_) => panic!("nothing was sent twice: {row:?}"),
        }
    }
}

async fn evidence(store: Arc<dyn Store>) {
    let death = Death { reason: "unusable_body".into(), error: "the body has no usable field `id`".into() };
    let row = Arrival { next: Next::Dead(death.clone()), ..Arrivals::new(1).event("odd") };
    assert_eq!(admit(&store, vec![row.clone(), row.clone()]).await[0], Admission::Admitted);
    let found = store.find_event(row.seq).await.expect("the store is up").expect("it was stored").summary;
    assert_eq!(
        (found.status, found.note, found.processed_at),
        (Status::Failed, Some(death.error), Some(NOW))
    );
    let epoch = join(&store).await;
    assert!(claim(&store, epoch, 10, NOW).await.is_empty(), "a dead letter is no work");
}

async fn known_is_exact(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let rows = [new.event("a"), new.event("b")];
    admit(&store, rows.to_vec()).await;
    let keys = [rows[1].key, DedupeKey::new("shop", "never", None), rows[0].key];
    let found = store.known(&keys).await.expect("the store is up");
    assert_eq!(found, [Some(rows[1].seq), None, Some(rows[0].seq)]);
    assert_eq!(store.known(&[]).await.expect("the store is up"), []);
}

async fn claims(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let late = Arrival { received_at: NOW.plus_ms(1), ..new.event("late") };
    let rows = [new.event("a"), new.event("b"), new.event("c")];
    admit(&store, vec![late.clone()]).await;
    admit(&store, rows.to_vec()).await;
    let (one, two) = (join(&store).await, join(&store).await);
    let first = claim(&store, one, 2, NOW).await;
    assert_eq!(first.iter().map(|lease| lease.job).collect::<Vec<_>>(), [rows[0].seq, rows[1].seq]);
    assert!(first.iter().all(|lease| lease.epoch == one && lease.attempt == 1));
    let second = claim(&store, two, 10, NOW).await;
    assert_eq!(second.iter().map(|lease| lease.job).collect::<Vec<_>>(), [rows[2].seq]);
    assert!(claim(&store, one, 10, NOW).await.is_empty());
    assert_eq!(claim(&store, one, 10, NOW.plus_ms(1)).await[0].job, late.seq);
    let jobs = store.claim(one, &Lane("other".into()), 10, NOW).await.expect("the store is up");
    assert!(jobs.is_empty(), "another lane's work");
}

async fn fences(store: Arc<dyn Store>) {
    let row = Arrivals::new(1).event("a");
    admit(&store, vec![row.clone()]).await;
    let epoch = join(&store).await;
    let lease = claim(&store, epoch, 1, NOW).await[0];
    let done = || End::Done(Outcome::Success);
    for wrong in [
        Lease { epoch: Epoch(epoch.0 + 100), ..lease },
        Lease { attempt: lease.attempt + 1, ..lease },
        Lease { job: Seq::from_i64(5), ..lease },
    ] {
        assert_eq!(finish(&store, wrong, done()).await, Committed::Lost);
    }
    assert_eq!(status(&store, row.seq).await, Status::Received);
    let retry = End::Retry { due_at: NOW.plus_ms(10) };
    assert_eq!(finish(&store, lease, retry).await, Committed::Applied);
    assert_eq!(finish(&store, lease, done()).await, Committed::Lost, "the first run's lease is spent");
    assert!(claim(&store, epoch, 1, NOW.plus_ms(9)).await.is_empty());
    let again = claim(&store, epoch, 1, NOW.plus_ms(10)).await[0];
    assert_eq!(again.attempt, 2);
    assert_eq!(finish(&store, lease, done()).await, Committed::Lost, "a second run fences the first");
    let both =
        vec![ChangeSet { lease, end: done(), at: NOW }, ChangeSet { lease: again, end: done(), at: NOW }];
    let answers = store.commit(both).await.expect("the store is up");
    assert_eq!(answers, [Committed::Lost, Committed::Applied], "one refusal harms no neighbour");
    assert_eq!(finish(&store, again, done()).await, Committed::Lost);
    assert_eq!(status(&store, row.seq).await, Status::Success);
}

async fn status(store: &Arc<dyn Store>, seq: Seq) -> Status {
    store.find_event(seq).await.expect("the store is up").expect("it was stored").summary.status
}

async fn sweeps(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    admit(&store, (0..5).map(|n| new.event(&n.to_string())).collect()).await;
    let (dying, living) = (join(&store).await, join(&store).await);
    let orphans = claim(&store, dying, 3, NOW).await;
    let held = claim(&store, living, 2, NOW).await;
    assert_eq!(store.sweep(10).await.expect("the store is up"), 0, "both nodes live");
    assert!(store.end(dying, 0).await.expect("the store is up"));
    assert_eq!(store.sweep(2).await.expect("the store is up"), 2, "at most the limit");
    assert_eq!(store.sweep(10).await.expect("the store is up"), 1);
    assert_eq!(store.sweep(10).await.expect("the store is up"), 0);
    let freed = claim(&store, living, 10, NOW).await;
    let jobs =
        |leases: &[Lease]| leases.iter().map(|lease| lease.job).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(jobs(&freed), jobs(&orphans));
    let woken = finish(&store, orphans[0], End::Done(Outcome::Success)).await;
    assert_eq!(woken, Committed::Lost, "a paused worker that wakes can't commit");
    assert_eq!(finish(&store, held[0], End::Done(Outcome::Success)).await, Committed::Applied);
}

async fn releases(store: Arc<dyn Store>) {
    admit(&store, vec![Arrivals::new(1).event("a")]).await;
    let epoch = join(&store).await;
    let lease = claim(&store, epoch, 1, NOW).await[0];
    store.release(vec![lease, Lease { attempt: 9, ..lease }]).await.expect("the store is up");
    assert_eq!(finish(&store, lease, End::Done(Outcome::Success)).await, Committed::Lost);
    let again = claim(&store, epoch, 1, NOW).await;
    assert_eq!(again, [lease], "the run that never was spent no attempt");
}

async fn epochs(store: Arc<dyn Store>) {
    let first = store.join(NOW).await.expect("the store is up");
    assert_eq!(first.floor, Seq::ZERO);
    let row = Arrivals::new(1).event("a");
    admit(&store, vec![row.clone()]).await;
    let second = store.join(NOW).await.expect("the store is up");
    assert_eq!(second.floor, row.seq);
    assert!(second.epoch > first.epoch);
    assert!(matches!(store.beat(second.epoch, 4).await, Ok(Pulse::Alive { .. })));
    assert!(!store.end(second.epoch, 3).await.expect("the store is up"), "it moved on");
    assert!(store.end(second.epoch, 4).await.expect("the store is up"));
    assert!(!store.end(second.epoch, 4).await.expect("the store is up"), "twice is fine");
    assert_eq!(store.beat(second.epoch, 5).await.expect("the store is up"), Pulse::Ended);
    assert!(join(&store).await > second.epoch, "never given again");
}

async fn statuses(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let rows: Vec<_> = ["waits", "done", "skipped", "dies"].into_iter().map(|id| new.event(id)).collect();
    admit(&store, rows.clone()).await;
    let epoch = join(&store).await;
    let leases = claim(&store, epoch, 10, NOW).await;
    let death = Death { reason: "no".into(), error: "it can't be".into() };
    let ends = [
        End::Done(Outcome::Success),
        End::Done(Outcome::Skipped { note: "no rule".into() }),
        End::Dead(death),
    ];
    for (lease, end) in leases[1..].iter().zip(ends) {
        assert_eq!(finish(&store, *lease, end).await, Committed::Applied);
    }
    let expected = [
        (Status::Received, None),
        (Status::Success, None),
        (Status::Skipped, Some("no rule")),
        (Status::Failed, Some("it can't be")),
    ];
    for (row, (status, note)) in rows.iter().zip(expected) {
        let found = store.find_event(row.seq).await.expect("the store is up").expect("it was stored").summary;
        assert_eq!((found.status, found.note.as_deref()), (status, note));
        assert_eq!(found.processed_at.is_some(), status != Status::Received);
        let filter = EventFilter { status: Some(status), limit: 10, ..EventFilter::default() };
        let listed = store.find_events(filter).await.expect("the store is up");
        assert_eq!(listed.iter().map(|event| event.seq).collect::<Vec<_>>(), [row.seq]);
    }
}

async fn pages(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let mut rows: Vec<_> = (0..30).map(|n| new.event(&n.to_string())).collect();
    rows[3].event_type = "payment.failed".into();
    rows[4].event_type = "payment_%".into();
    rows[5].source = "other".into();
    admit(&store, rows.clone()).await;
    let seqs = async |filter: EventFilter| -> Vec<Seq> {
        store.find_events(filter).await.expect("the store is up").iter().map(|event| event.seq).collect()
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

async fn rejections(store: Arc<dyn Store>) {
    let mut sequence = Sequence::new(Epoch(1), Seq::ZERO);
    let mut make = |source: &str| Rejection {
        seq: sequence.next(NOW),
        at: NOW,
        source: source.into(),
        peer: "203.0.113.9".into(),
        reason: "bad_signature".into(),
        detail: "no configured secret makes this signature".into(),
        request_id: "req_1".into(),
        count: 3,
    };
    let (a, b) = (make("a"), make("b"));
    store.reject(vec![a.clone(), b.clone()]).await.expect("the store is up");
    let found = store.find_rejections(None, 10).await.expect("the store is up");
    assert_eq!(found, [b, a.clone()]);
    assert_eq!(store.find_rejections(Some("a".into()), 10).await.expect("the store is up"), [a]);
    for _ in 0..=REJECTIONS_MAX / 1000 {
        store.reject((0..1000).map(|_| make("flood")).collect()).await.expect("the store is up");
    }
    assert!(store.find_rejections(Some("b".into()), 10).await.expect("the store is up").is_empty());
    assert_eq!(
        store.find_rejections(None, usize::MAX).await.expect("the store is up").len(),
        crate::FIND_MAX
    );
}

async fn upkeep(store: Arc<dyn Store>) {
    for days in [0, 0, 1, 40] {
        store.upkeep(NOW.plus_ms(days * 86_400_000)).await.expect("the store is up");
    }
    let mut new = Arrivals::new(1);
    assert_eq!(admit(&store, vec![new.event("a")]).await, [Admission::Admitted]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryStore;

    #[tokio::test]
    async fn memory_keeps_every_promise() {
        for (name, promise) in PROMISES {
            println!("{name}");
            promise(Arc::new(MemoryStore::default())).await;
        }
    }

    #[tokio::test]
    async fn sqlite_keeps_every_promise() {
        for (name, promise) in PROMISES {
            println!("{name}");
            let folder = tempfile::tempdir().unwrap();
            let access = crate::Access::Serve { allow_unsafe_durability: false };
            promise(Arc::new(crate::sqlite::open(&folder.path().join("s.db"), access).await.unwrap())).await;
        }
    }
}
