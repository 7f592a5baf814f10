//! What can only be shown on SQLite, or through SQL.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;
use sekisho_core::Time;
use sekisho_core::audit::Entry;
use sekisho_core::change::{About, ChangeSet, Committed, End, Ended, Lease, Outcome};
use sekisho_core::state::{Index, Key, Kind, Write};

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
    let about = About { payment: Some("p1".into()), billing: Some("b1".into()), tenant: Some("t1".into()) };
    let index = Index {
        status: Some("paid".into()),
        tenant: Some("t1".into()),
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
        writes: vec![write(Kind::Payment, "p1"), write(Kind::Billing, "b1"), write(Kind::Tenant, "t1")],
        ..ChangeSet::nothing(NOW)
    };
    assert_eq!(store.commit(vec![set]).await.unwrap(), [APPLIED]);
    let sql = Connection::open(file(&folder)).unwrap();
    let read = |query: &str| sql.query_row(query, [], |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(
        read("SELECT payment_id || billing_id || tenant_id || status FROM webhook_events"),
        "p1b1t1success"
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
        [(1, "deleted", "--", "--", "0"), (2, "kept", "b1t1", "t1c1", "1")]
    {
        let writes = vec![
            gone(Kind::Tenant, "t1", version, status),
            gone(Kind::Billing, "b1", version, status),
            gone(Kind::Customer, "c1", version - 1, status),
        ];
        let set = ChangeSet { writes, ..ChangeSet::nothing(NOW) };
        assert_eq!(store.commit(vec![set]).await.unwrap(), [APPLIED]);
        let shown = "coalesce(billing_id, '-') || coalesce(tenant_id, '-')";
        assert_eq!(read(&format!("SELECT {shown} FROM webhook_events")), links);
        let shown = "coalesce(tenant_id, '-') || coalesce(customer_id, '-')";
        assert_eq!(read(&format!("SELECT {shown} FROM payments")), own);
        assert_eq!(read("SELECT CAST(count(*) AS text) FROM billings"), billings);
    }
}
