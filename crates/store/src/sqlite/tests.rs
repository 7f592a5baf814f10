//! What can only be shown on SQLite, or through SQL.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;
use sekisho_core::Time;
use sekisho_core::audit::Entry;
use sekisho_core::change::{Admission, Arrival, ChangeSet, Committed, Ended};
use sekisho_core::directory::scoped;
use sekisho_core::event::About;
use sekisho_core::job::{End, Lease, Outcome};
use sekisho_core::state::{Index, Key, Kind, Write};
use sekisho_core::time::DAY_MS;

use crate::conformance::Arrivals;
use crate::conformance::chain::{TAMPERINGS, fault, write_three_links};
use crate::{Access, Store};

const NOW: Time = Time::from_ms(1_780_000_000_000);
const APPLIED: Committed = Committed::Applied { repeated: Vec::new() };

fn file(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("s.db")
}

async fn open(path: &Path) -> Arc<dyn Store> {
    Arc::new(super::open(path, Access::Serve { allow_unsafe_durability: false }).await.unwrap())
}

fn noted(set: ChangeSet, target: &str) -> ChangeSet {
    let entry = Entry {
        at: NOW,
        actor: None,
        role: None,
        action: "a".into(),
        target: ("payment".into(), target.into()),
        tenant: None,
        event: None,
        details: "{}".into(),
    };
    ChangeSet { audit: vec![entry], ..set }
}

#[tokio::test]
async fn h4_whoever_tampers_with_the_log_is_seen() {
    for (what, sql) in TAMPERINGS {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&file(&folder)).await;
        write_three_links(&store).await;
        assert_eq!(fault(&store).await, None);
        Connection::open(file(&folder)).unwrap().execute_batch(sql).unwrap();
        assert!(fault(&store).await.is_some(), "{what}");
    }
}

#[tokio::test]
async fn h4_every_start_begins_a_chain_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..3 {
        write_three_links(&open(&file(&folder)).await).await;
    }
    let store = open(&file(&folder)).await;
    let heads = store.chain_heads().await.unwrap();
    assert_eq!(heads.iter().map(|head| (head.chain, head.n)).collect::<Vec<_>>(), [(1, 3), (2, 3), (3, 3)]);
    assert_eq!(fault(&store).await, None);
}

#[tokio::test]
async fn h4_what_was_rolled_back_leaves_no_gap_in_the_chain() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&file(&folder)).await;
    let job = Arrivals::new(1).job("app");
    let queue = || ChangeSet::queue(vec![job.clone()], NOW);
    assert_eq!(store.commit(vec![noted(queue(), "first")]).await.unwrap(), [APPLIED]);
    let twice = store.commit(vec![noted(queue(), "refused")]).await;
    assert!(twice.is_err(), "a job's number is given once");
    assert_eq!(store.commit(vec![noted(ChangeSet::nothing(NOW), "next")]).await.unwrap(), [APPLIED]);
    assert_eq!(fault(&store).await, None);
    let heads = store.chain_heads().await.unwrap();
    assert_eq!(heads.iter().map(|head| (head.chain, head.n)).collect::<Vec<_>>(), [(1, 2)]);
}

#[tokio::test]
async fn b5_people_find_payments_and_what_events_are_about_with_sql() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&file(&folder)).await;
    let event = Arrivals::new(1).event("a");
    let epoch = store.join(NOW).await.unwrap().epoch;
    store.admit(vec![event.clone()].into(), Some(epoch)).await.unwrap();
    let lease = Lease::born(event.seq, epoch);
    let about = About { payment: Some("p1".into()), billing: Some("b1".into()), tenant: Some("t%/1".into()) };
    let index = Index {
        status: Some("paid".into()),
        tenant: Some("t%/1".into()),
        customer: Some("c1".into()),
        amount: Some(500),
        livemode: Some(true),
        ..Index::default()
    };
    let write = |kind, id: &str| Write {
        key: Key::new(kind, id),
        version: 0,
        facts: "{}".into(),
        index: index.clone(),
    };
    let set = ChangeSet {
        ends: vec![Ended { about, ..Ended::new(lease, End::Done(Outcome::SUCCESS)) }],
        writes: vec![write(Kind::Payment, "p1"), write(Kind::Billing, "b1"), write(Kind::Tenant, "t%/1")],
        ..ChangeSet::nothing(NOW)
    };
    assert_eq!(store.commit(vec![set]).await.unwrap(), [APPLIED]);
    let sql = Connection::open(file(&folder)).unwrap();
    let read = |query: &str| sql.query_row(query, [], |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(
        read("SELECT payment_id || billing_id || tenant_id || status FROM webhook_events"),
        "p1b1t%/1success"
    );
    for (view, id) in [("payments", "p1"), ("billings", "b1")] {
        let row = "id || status || amount || livemode || created_at";
        assert_eq!(
            read(&format!("SELECT {row} FROM {view}")),
            format!("{id}paid50012026-05-28T20:26:40.000Z")
        );
    }

    // What was deleted is linked to by nothing, until it is there again.
    let gone = |kind, id: &str, version, status: &str| Write {
        version,
        index: Index { status: Some(status.into()), ..index.clone() },
        ..write(kind, id)
    };
    for (version, status, links, own, billings) in
        [(1, "deleted", "--", "--", "0"), (2, "kept", "b1t%/1", "t%/1c1", "1")]
    {
        let writes = vec![
            gone(Kind::Tenant, "t%/1", version, status),
            gone(Kind::Billing, "b1", version, status),
            // As the program calls it: the views must find it by the same text.
            gone(Kind::Customer, &scoped(Some("t%/1"), "c1"), version - 1, status),
        ];
        let set = ChangeSet { writes, ..ChangeSet::nothing(NOW) };
        assert_eq!(store.commit(vec![set]).await.unwrap(), [APPLIED]);
        let shown = "coalesce(billing_id, '-') || coalesce(tenant_id, '-')";
        assert_eq!(read(&format!("SELECT {shown} FROM webhook_events")), links);
        let shown = "coalesce(tenant_id, '-') || coalesce(customer_id, '-')";
        assert_eq!(read(&format!("SELECT {shown} FROM payments")), own);
        assert_eq!(read("SELECT CAST(count(*) AS text) FROM billings"), billings);
    }

    // What became part of another counts there, and only there.
    let merged = vec![gone(Kind::Payment, "p1", 1, "merged")];
    let set = ChangeSet { writes: merged, ..ChangeSet::nothing(NOW) };
    assert_eq!(store.commit(vec![set]).await.unwrap(), [APPLIED]);
    assert_eq!(read("SELECT CAST(count(*) AS text) FROM payments"), "0");
}

/// Every key must be known wherever it stands: merged or not, in either table, in memory or only in the file.
async fn check_known(store: &Arc<dyn Store>, events: &[Arrival], missing: &[Arrival]) {
    let keys: Vec<_> = events.iter().chain(missing).map(|event| event.key).collect();
    let stored = events.iter().map(|event| Some(event.seq)).chain(missing.iter().map(|_| None));
    let stored: Vec<_> = stored.collect();
    assert_eq!(store.known(&keys).await.unwrap(), stored);
    for (event, seq) in events.iter().chain(missing).zip(stored).step_by(7) {
        assert_eq!(store.find_seq("shop", &event.event_id).await.unwrap(), seq);
    }
}

#[tokio::test]
async fn a4_a_key_is_known_wherever_it_stands() {
    let folder = tempfile::tempdir().unwrap();
    let mut new = Arrivals::new(1);
    let mut events = Vec::new();
    for start in 0..6 {
        let store = open(&file(&folder)).await;
        for batch in 0..20 {
            let batch: Vec<_> = (0..7).map(|n| new.event(&format!("{start}/{batch}/{n}"))).collect();
            let again = [batch[3].clone(), Arrival { seq: new.id(), ..batch[5].clone() }];
            let answers = store.admit(batch.iter().chain(&again).cloned().collect(), None).await.unwrap();
            let twice = Admission::Duplicate(batch[5].seq);
            assert_eq!(
                answers[..8],
                [const { Admission::Admitted }; 8],
                "the same row again is no duplicate"
            );
            assert_eq!(answers[8], twice);
            events.extend(batch);
        }
        check_known(&store, &events, &[new.event("never")]).await;
        let reader: Arc<dyn Store> = Arc::new(super::open(&file(&folder), Access::Read).await.unwrap());
        check_known(&reader, &events, &[new.event("never")]).await;
        let again = events.iter().map(|event| Arrival { seq: new.id(), ..event.clone() }).collect();
        let duplicates: Vec<_> = events.iter().map(|event| Admission::Duplicate(event.seq)).collect();
        assert_eq!(store.admit(again, None).await.unwrap(), duplicates);
    }
    let merged = "SELECT count(*) > 0, (SELECT count(*) FROM dedupe) FROM dedupe_merged";
    let row =
        Connection::open(file(&folder)).unwrap().query_row(merged, [], |row| Ok((row.get(0)?, row.get(1)?)));
    assert_eq!(row.unwrap(), (true, 840));
}

/// After a start, a new key is soon denied by memory alone, and what was stored never is.
#[tokio::test]
async fn a4_the_sieve_is_filled_from_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut new = Arrivals::new(1);
    let events: Vec<_> = (0..300).map(|n| new.event(&n.to_string())).collect();
    let store = open(&file(&folder)).await;
    for batch in events.chunks(10) {
        store.admit(batch.into(), None).await.unwrap();
    }
    drop(store);
    let store = super::open(&file(&folder), Access::Serve { allow_unsafe_durability: false }).await.unwrap();
    let keys = store.keys.as_ref().unwrap();
    let unknown = new.event("unknown").key;
    for _ in 0..1_000 {
        if !keys.sieve().may_hold(&unknown) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert!(!keys.sieve().may_hold(&unknown));
    let merged = "SELECT count(*) FROM dedupe_merged";
    let merged: i64 =
        Connection::open(file(&folder)).unwrap().query_row(merged, [], |row| row.get(0)).unwrap();
    assert!(merged > 0 && merged < 300, "{merged}: some wait, some are merged");
    assert!(events.iter().all(|event| keys.sieve().may_hold(&event.key)));
}

#[tokio::test]
async fn a4_a_key_goes_with_its_event_wherever_it_stands() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&file(&folder)).await;
    let epoch = store.join(NOW).await.unwrap().epoch;
    let mut new = Arrivals::new(1);
    let events: Vec<_> =
        (0..150).map(|n| new.event_at(&n.to_string(), NOW.plus_ms((n % 3 - 9) * DAY_MS))).collect();
    for batch in events.chunks(10) {
        store.admit(batch.into(), Some(epoch)).await.unwrap();
        let end = |event: &Arrival| {
            let lease = Lease { job: event.seq, epoch, attempt: 1 };
            ChangeSet::end(lease, End::Done(Outcome::SUCCESS), NOW)
        };
        store.commit(batch.iter().map(end).collect()).await.unwrap();
    }
    let before = NOW.plus_ms(-8 * DAY_MS);
    let forgotten = store.forget(before, sekisho_core::Seq::ZERO, 1_000).await.unwrap();
    assert_eq!(forgotten.events, 50);
    let (gone, kept): (Vec<_>, Vec<_>) = events.into_iter().partition(|event| event.received_at < before);
    check_known(&store, &kept, &gone).await;
    drop(store);
    let store = open(&file(&folder)).await;
    check_known(&store, &kept, &gone).await;
    let again: Vec<_> = gone.iter().map(|event| Arrival { seq: new.id(), ..event.clone() }).collect();
    let answers = store.admit(again.clone().into(), None).await.unwrap();
    assert!(answers.iter().all(|answer| *answer == Admission::Admitted));
    check_known(&store, &again, &[]).await;
    check_known(&store, &kept, &[]).await;
}

/// What a kill leaves behind: the file and its log, as far as they were written.
fn as_after_a_kill(path: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    // Order matters: pages may be moved from the log to the file meanwhile, and stay in the log.
    for name in ["s.db", "s.db-wal"] {
        std::fs::copy(path.with_file_name(name), folder.path().join(name)).unwrap();
    }
    folder
}

#[tokio::test]
async fn a7_a_merge_that_was_cut_off_anywhere_begins_anew_and_finds_nothing_doubled() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&file(&folder)).await;
    let mut new = Arrivals::new(1);
    let mut events = Vec::new();
    let count = |path: &Path, what: &str| {
        let sql = format!("SELECT count(*) FROM {what}");
        Connection::open(path).unwrap().query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    let mut half_merged = 0;
    for n in 0..112 {
        let event = new.event(&n.to_string());
        store.admit(Arc::new([event.clone()]), None).await.unwrap();
        events.push(event);
        if n < 60 || n % 2 == 0 {
            continue;
        }
        let killed = as_after_a_kill(&file(&folder));
        let path = file(&killed);
        let both = "dedupe_merged WHERE key IN (SELECT key FROM dedupe_fresh_0 UNION SELECT key FROM dedupe_fresh_1)";
        half_merged += i64::from(count(&path, both) > 0);
        let store = open(&path).await;
        let more: Vec<_> = (0..100).map(|m| new.event(&format!("{n}/{m}"))).collect();
        for batch in more.chunks(10) {
            store.admit(batch.into(), None).await.unwrap();
        }
        check_known(&store, &events, &[]).await;
        check_known(&store, &more, &[new.event("never")]).await;
        assert_eq!(count(&path, "dedupe"), count(&path, "event"));
    }
    assert!(half_merged > 5, "the kills met {half_merged} merges under way");
}

/// Whatever may happen to a key while it waits and is merged: errors after which memory is read anew, starts, and events
/// that are let go and come again.
#[tokio::test]
async fn a7_no_error_start_or_retention_makes_a_merge_find_a_double() {
    let folder = tempfile::tempdir().unwrap();
    let mut new = Arrivals::new(1);
    let serve =
        async || super::open(&file(&folder), Access::Serve { allow_unsafe_durability: false }).await.unwrap();
    let mut store = serve().await;
    let at = |round: i64| NOW.plus_ms(round * 1_000);
    for round in 0..80 {
        if round % 7 == 6 {
            drop(store);
            store = serve().await;
        }
        if round % 3 == 0 {
            // No constraint failed, so memory is in doubt, and read again.
            let failed = store.write(|_| Err::<(), _>(rusqlite::Error::InvalidQuery)).await;
            assert!(failed.is_err());
        }
        let epoch = store.join(NOW).await.unwrap().epoch;
        // The names of eight rounds ago, which were let go four rounds ago.
        let batch: Vec<_> = (0..10).map(|n| new.event_at(&format!("{}/{n}", round % 8), at(round))).collect();
        let answers = store.admit(batch.clone().into(), Some(epoch)).await.unwrap();
        assert_eq!(answers, [const { Admission::Admitted }; 10], "round {round}");
        let end = |event: &Arrival| {
            let lease = Lease { job: event.seq, epoch, attempt: 1 };
            ChangeSet::end(lease, End::Done(Outcome::SUCCESS), NOW)
        };
        store.commit(batch.iter().map(end).collect()).await.unwrap();
        store.forget(at(round - 3), sekisho_core::Seq::ZERO, 1_000).await.unwrap();
        store.leave(epoch).await.unwrap();
    }
    let left = "SELECT count(*), (SELECT count(*) FROM dedupe) FROM event";
    let row =
        Connection::open(file(&folder)).unwrap().query_row(left, [], |row| Ok((row.get(0)?, row.get(1)?)));
    assert_eq!(row.unwrap(), (40, 40));
}

#[tokio::test]
async fn a5_what_was_rolled_back_is_not_known() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&file(&folder)).await;
    let mut new = Arrivals::new(1);
    let kept = new.event("kept");
    store.admit(Arc::new([kept.clone()]), None).await.unwrap();
    // Its number is taken already: this row is refused, its neighbour is not.
    let refused = Arrival { seq: kept.seq, ..new.event("refused") };
    let neighbour = new.event("neighbour");
    let answers = store.admit(Arc::new([neighbour.clone(), refused.clone()]), None).await.unwrap();
    assert_eq!(answers[0], Admission::Admitted);
    assert!(matches!(answers[1], Admission::Refused(_)), "{answers:?}");
    check_known(&store, &[kept, neighbour], &[refused]).await;
}

#[tokio::test]
async fn a6_whatever_waits_for_the_writer_is_committed_together() {
    let folder = tempfile::tempdir().unwrap();
    let store = super::open(&file(&folder), Access::Serve { allow_unsafe_durability: false }).await.unwrap();
    let store = Arc::new(store);
    let (busy, writer_is_busy) = std::sync::mpsc::channel();
    let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
    let holding = Arc::clone(&store);
    let held = tokio::spawn(async move {
        let hold = move |_: &super::transaction::Tx<'_>| {
            busy.send(()).unwrap();
            may_go_on.recv().unwrap();
            Ok(())
        };
        holding.write(hold).await
    });
    tokio::task::spawn_blocking(move || writer_is_busy.recv().unwrap()).await.unwrap();
    let mut new = Arrivals::new(1);
    let mut admits = Vec::new();
    for n in 0..20 {
        let (store, event) = (Arc::clone(&store), new.event(&n.to_string()));
        admits.push(tokio::spawn(async move { store.admit(Arc::new([event]), None).await }));
    }
    // Each gives its event to the writer before it waits.
    tokio::task::yield_now().await;
    let sql = Connection::open(file(&folder)).unwrap();
    let stored = || sql.query_row("SELECT count(*) FROM event", [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(stored(), 0);
    go_on.send(()).unwrap();
    let first_seen = std::iter::repeat_with(stored).take(1_000_000).find(|stored| *stored > 0);
    assert_eq!(first_seen, Some(20), "one commit made them all visible");
    held.await.unwrap().unwrap();
    for admit in admits {
        assert_eq!(admit.await.unwrap().unwrap(), [Admission::Admitted]);
    }
}

/// How often the log began anew: its header holds the count.
fn log_turns(file: &Path) -> u32 {
    let log = std::fs::read(file.with_extension("db-wal")).unwrap();
    u32::from_be_bytes(log[12..16].try_into().unwrap())
}

#[tokio::test]
async fn a6_the_log_begins_anew_though_commits_never_pause_and_somebody_reads() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder);
    let store = open(&path).await;
    let mut new = Arrivals::new(1);
    let mut events = Vec::new();
    let mut turns = Vec::new();
    for part in 0..3 {
        let sql = Connection::open(&path).unwrap();
        if part == 1 {
            // Whoever reads on keeps the log from beginning anew, and may take the time.
            sql.execute_batch("BEGIN; SELECT count(*) FROM event").unwrap();
        }
        let before = log_turns(&path);
        for n in 0..400 {
            let event = new.event(&format!("{part}/{n}"));
            store.admit(Arc::new([event.clone()]), None).await.unwrap();
            events.push(event);
        }
        turns.push(log_turns(&path) - before);
    }
    assert!(turns[0] > 1 && turns[1] <= 1 && turns[2] > 1, "{turns:?}");
    check_known(&store, &events, &[]).await;
    let whole: String =
        Connection::open(&path).unwrap().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(whole, "ok");
}
