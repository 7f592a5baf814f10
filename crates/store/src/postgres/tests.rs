//! What can only be shown on PostgreSQL: nodes that race each other, connections that break, and what SQL can do. The
//! promises themselves are in [`crate::conformance`]; there one store means one connection, here there are several.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sekisho_core::Time;
use sekisho_core::audit::Entry;
use sekisho_core::change::{ChangeSet, Committed, Ended};
use sekisho_core::directory::scoped;
use sekisho_core::event::About;
use sekisho_core::job::{End, Lease, NewJob, Outcome};
use sekisho_core::state::{Index, Key, Kind, Naming, Write};
use sekisho_lab::postgres::{Postgres, shared};
use tokio_postgres::{Client, NoTls};

use super::horizon::Horizon;
use crate::conformance::Arrivals;
use crate::conformance::chain::{TAMPERINGS, fault, write_three_links};
use crate::{Access, AuditFilter, Store};

const NOW: Time = Time::from_ms(1_780_000_000_000);
const APPLIED: Committed = Committed::Applied { repeated: Vec::new() };

/// A database that goes away with it.
struct Place {
    server: &'static Postgres,
    name: String,
}

impl Place {
    fn new() -> Self {
        let server = shared().unwrap();
        Self { server, name: server.fresh_database().unwrap() }
    }

    async fn open(&self) -> Arc<dyn Store> {
        let access = Access::Serve { allow_unsafe_durability: false };
        Arc::new(super::open(&self.server.url(&self.name), access).await.unwrap())
    }

    /// A connection of somebody else.
    async fn other(&self) -> Client {
        let (client, connection) =
            tokio_postgres::connect(&self.server.url(&self.name), NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    fn sql(&self, sql: &str) -> String {
        self.server.psql_in(&self.name, sql).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.server.drop_database(&self.name);
    }
}

fn payment(id: &str) -> Key {
    Key::new(Kind::Payment, id)
}

fn write(id: &str, version: i64, facts: &str) -> Write {
    Write { key: payment(id), version, facts: facts.into(), index: Index::default() }
}

fn writes(writes: Vec<Write>) -> ChangeSet {
    ChangeSet { writes, ..ChangeSet::nothing(NOW) }
}

/// With an entry, so that the chain feels what becomes of the set.
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

async fn targets(store: &Arc<dyn Store>) -> Vec<String> {
    let found = store.find_audit(AuditFilter { limit: 1000, ..AuditFilter::default() }).await.unwrap();
    let mut targets: Vec<_> = found.entries.into_iter().map(|found| found.entry.target.1).collect();
    targets.sort();
    targets
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h4_whoever_tampers_with_the_log_is_seen() {
    for (what, sql) in TAMPERINGS {
        let place = Place::new();
        let store = place.open().await;
        write_three_links(&store).await;
        assert_eq!(fault(&store).await, None);
        place.sql(sql);
        assert!(fault(&store).await.is_some(), "{what}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d1_what_somebody_else_adds_meanwhile_makes_only_that_set_stale() {
    let place = Place::new();
    let store = place.open().await;
    let other = place.other().await;
    let name = |name: &str, id: &str| Naming { name: name.into(), key: payment(id), was: None };
    for (adds, what) in [
        (
            "INSERT INTO state (version, created_at, changed_at, kind, id, facts) VALUES (1, 0, 0, 'payment', 'raced', '')",
            "a thing",
        ),
        ("INSERT INTO name VALUES ('raced', 'payment', 'x')", "a name"),
    ] {
        other.batch_execute(&format!("BEGIN; {adds}")).await.unwrap();
        let own = |n: usize| format!("{what} {n}");
        let mut sets: Vec<_> = (0..5).map(|n| noted(writes(vec![write(&own(n), 0, "")]), &own(n))).collect();
        match what {
            "a thing" => sets[2].writes.push(write("raced", 0, "")),
            _ => sets[2].names.push(name("raced", &own(2))),
        }
        let racing = tokio::spawn({
            let store = Arc::clone(&store);
            async move { store.commit(sets).await.unwrap() }
        });
        wait_for_a_lock(&place).await;
        other.batch_execute("COMMIT").await.unwrap();
        let answers = racing.await.unwrap();
        assert_eq!(answers, [APPLIED, APPLIED, Committed::Stale, APPLIED, APPLIED], "{what}");
        let keys = (0..5).map(|n| payment(&own(n))).collect();
        assert_eq!(store.load(Vec::new(), keys).await.unwrap().states.len(), 4);
    }
    assert_eq!(targets(&store).await.len(), 8);
    assert_eq!(fault(&store).await, None, "what was rolled back leaves no gap");
    assert_eq!(store.chain_heads().await.unwrap().len(), 1, "and begins no new chain");
}

/// Until somebody waits for what somebody else holds.
async fn wait_for_a_lock(place: &Place) {
    let waits = "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while place.sql(waits) != "t" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Each node moves one from a thing to another until it went through, names what it did, and notes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d1_nodes_that_race_lose_nothing_and_do_nothing_twice() {
    const ROUNDS: usize = 20;
    let place = Place::new();
    let mut nodes = Vec::new();
    for node in 0..4_usize {
        let store = place.open().await;
        nodes.push(tokio::spawn(async move {
            let mut refused = 0;
            for round in 0..ROUNDS {
                let (from, to) = ((node + round) % 3, (node + round + 1 + node % 2) % 3);
                while !moved_one(&store, &from.to_string(), &to.to_string(), round).await {
                    refused += 1;
                    assert!(refused < 10_000, "somebody always gets through");
                }
            }
        }));
    }
    for node in nodes {
        node.await.unwrap();
    }
    let store = place.open().await;
    let keys = (0..3).map(|n| payment(&n.to_string())).collect();
    let states = store.load(Vec::new(), keys).await.unwrap().states;
    let held: i64 = states.values().map(|state| state.facts.parse::<i64>().unwrap()).sum();
    let versions: i64 = states.values().map(|state| state.version).sum();
    assert_eq!((held, versions), (0, 2 * 4 * ROUNDS as i64), "every move, once");
    assert_eq!(targets(&store).await.len(), 4 * ROUNDS);
    assert_eq!(fault(&store).await, None, "each connection has its own chain");
    assert_eq!(store.chain_heads().await.unwrap().len(), 4);
}

async fn moved_one(store: &Arc<dyn Store>, from: &str, to: &str, round: usize) -> bool {
    let shared = format!("round {round}");
    let loaded = store.load(vec![shared.clone()], vec![payment(from), payment(to)]).await.unwrap();
    let add = |id: &str, amount: i64| {
        let state = loaded.states.get(&payment(id));
        let held: i64 = state.map_or(0, |state| state.facts.parse().unwrap());
        write(id, state.map_or(0, |state| state.version), &(held + amount).to_string())
    };
    let was = loaded.names.get(&shared).cloned();
    // A name that every node gives to another thing, if it is there already.
    let naming = Naming { name: shared, key: payment(to), was };
    let moves = naming
        .was
        .as_ref()
        .is_none_or(|was| [payment(from), payment(to)].contains(was) && *was != naming.key);
    let names = if moves { vec![naming] } else { Vec::new() };
    let set = ChangeSet { names, ..writes(vec![add(to, 1), add(from, -1)]) };
    match store.commit(vec![noted(set, from)]).await.unwrap().remove(0) {
        Committed::Applied { .. } => true,
        Committed::Stale => false,
        Committed::Lost => panic!("it shows no lease"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h4_another_connection_or_an_unknown_outcome_begins_another_chain() {
    let place = Place::new();
    let store = place.open().await;
    let other = place.other().await;
    assert_eq!(store.commit(vec![noted(writes(vec![write("p", 0, "")]), "1")]).await.unwrap(), [APPLIED]);
    assert_eq!(store.commit(vec![noted(ChangeSet::nothing(NOW), "2")]).await.unwrap(), [APPLIED]);

    // A caller that goes away leaves a statement that the server still carries out.
    other.batch_execute("BEGIN; SELECT FROM state FOR UPDATE").await.unwrap();
    let slow = store.commit(vec![noted(writes(vec![write("p", 1, "")]), "3")]);
    assert!(tokio::time::timeout(Duration::from_millis(300), slow).await.is_err());
    other.batch_execute("COMMIT").await.unwrap();
    assert_eq!(store.commit(vec![noted(ChangeSet::nothing(NOW), "4")]).await.unwrap(), [APPLIED]);

    let ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                 WHERE datname = current_database() AND application_name = 'sekisho'";
    place.sql(ended);
    while store.commit(vec![noted(ChangeSet::nothing(NOW), "5")]).await.is_err() {}
    assert_eq!(targets(&store).await, ["1", "2", "3", "4", "5"]);
    assert_eq!(fault(&store).await, None);
    let heads = store.chain_heads().await.unwrap();
    assert_eq!(heads.iter().map(|head| head.n).collect::<Vec<_>>(), [3, 1, 1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b5_people_find_payments_and_what_events_are_about_with_sql() {
    let place = Place::new();
    let store = place.open().await;
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
    assert_eq!(
        place.sql("SELECT payment_id, billing_id, tenant_id, status FROM webhook_events"),
        "p1|b1|t%/1|success"
    );
    for (view, id) in [("payments", "p1"), ("billings", "b1")] {
        let row = "id, status, amount, livemode, extract(epoch FROM created_at)::bigint";
        assert_eq!(place.sql(&format!("SELECT {row} FROM {view}")), format!("{id}|paid|500|t|1780000000"));
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
        assert_eq!(place.sql(&format!("SELECT {shown} FROM webhook_events")), links);
        let shown = "coalesce(tenant_id, '-') || coalesce(customer_id, '-')";
        assert_eq!(place.sql(&format!("SELECT {shown} FROM payments")), own);
        assert_eq!(place.sql("SELECT CAST(count(*) AS text) FROM billings"), billings);
    }

    // What became part of another counts there, and only there.
    let merged = vec![gone(Kind::Payment, "p1", 1, "merged")];
    let set = ChangeSet { writes: merged, ..ChangeSet::nothing(NOW) };
    assert_eq!(store.commit(vec![set]).await.unwrap(), [APPLIED]);
    assert_eq!(place.sql("SELECT count(*) FROM payments"), "0");
}

/// While looks are slow, what lies further back than a short one reaches is found by the next whole one.
#[tokio::test]
async fn r24_what_a_short_look_passes_by_is_found_by_the_next_whole_one() {
    let place = Place::new();
    let access = Access::Serve { allow_unsafe_durability: false };
    let store = super::open(&place.server.url(&place.name), access).await.unwrap();
    let epoch = store.join(NOW).await.unwrap().epoch;
    let mut new = Arrivals::new(1);
    let mut queue = |due_at| NewJob { due_at, ..new.job("app") };
    let (late, recent) = (queue(NOW.plus_ms(-60_000)), queue(NOW.plus_ms(-1)));
    let (lane, ids) = (late.lane.clone(), [late.id, recent.id]);
    let next_day = Instant::now() + Duration::from_hours(24);
    super::connection::lock(&store.horizon).failed(&lane, (next_day, NOW));
    assert_eq!(store.commit(vec![ChangeSet::queue(vec![late, recent], NOW)]).await.unwrap(), [APPLIED]);
    let claim = async || {
        let jobs = store.claim(epoch, vec![(lane.clone(), 10)], NOW).await.unwrap();
        jobs.into_iter().map(|job| job.lease.job).collect::<Vec<_>>()
    };
    assert_eq!(claim().await, ids[1..]);
    assert_eq!(claim().await, []);
    *super::connection::lock(&store.horizon) = Horizon::default();
    assert_eq!(claim().await, ids[..1]);
}

/// A lost turn whose row somebody holds is given at the next sweep, and this one does not wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b2_a_lost_turn_that_somebody_holds_stops_no_sweep() {
    let place = Place::new();
    let store = place.open().await;
    let mut new = Arrivals::new(1);
    let jobs: Vec<_> =
        ["a", "b"].map(|key| NewJob { fifo: Some(format!("app/{key}")), ..new.job("app") }).into();
    store.commit(vec![ChangeSet::queue(jobs.clone(), NOW)]).await.unwrap();
    let other = place.other().await;
    other.batch_execute("UPDATE job SET parked = true").await.unwrap();
    let held = jobs[0].id.as_i64();
    other.batch_execute(&format!("BEGIN; SELECT FROM job WHERE id = {held} FOR UPDATE")).await.unwrap();
    store.sweep(10, 9).await.unwrap();
    let parked = "SELECT count(*) FROM job WHERE parked";
    assert_eq!(place.sql(parked), "1");
    other.batch_execute("ROLLBACK").await.unwrap();
    store.sweep(10, 9).await.unwrap();
    assert_eq!(place.sql(parked), "0");
}

/// As river #1318: the sweep takes the oldest first, and those can't be freed because somebody holds their rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b2_orphans_that_somebody_holds_do_not_hide_the_others() {
    let place = Place::new();
    let store = place.open().await;
    let dying = store.join(NOW).await.unwrap().epoch;
    let mut new = Arrivals::new(1);
    let jobs: Vec<_> = (0..7).map(|_| NewJob { owner: Some(dying), ..new.job("app") }).collect();
    store.commit(vec![ChangeSet::queue(jobs.clone(), NOW)]).await.unwrap();
    assert!(store.end(dying, 0).await.unwrap());
    let other = place.other().await;
    let held = jobs[3].id.as_i64();
    other.batch_execute(&format!("BEGIN; SELECT FROM job WHERE id <= {held} FOR UPDATE")).await.unwrap();
    let owned = "SELECT count(*) FROM job WHERE owner IS NOT NULL";
    assert_eq!(store.sweep(2, 9).await.unwrap(), 2, "two of the three that nobody holds");
    assert_eq!(store.sweep(2, 9).await.unwrap(), 1);
    assert_eq!((store.sweep(2, 9).await.unwrap(), place.sql(owned).as_str()), (0, "4"));
    other.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(store.sweep(10, 9).await.unwrap(), 4);
    assert_eq!(place.sql(owned), "0");
}
