//! What only a database server can do to the store: die, hang, refuse, forget, wait for its standby. On a server of
//! its own, because some of these change settings that every session feels.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use sekisho_core::change::{Admission, Arrival, ChangeSet, Committed};
use sekisho_core::id::Sequence;
use sekisho_core::job::{End, Lane, Outcome};
use sekisho_core::{Epoch, Seq, Time};
use sekisho_lab::postgres::Postgres;
use sekisho_store::conformance::Arrivals;
use sekisho_store::postgres::{self, PostgresStore};
use sekisho_store::{Access, Error, EventFilter, OpenError, Store};
use tokio::sync::{Mutex, MutexGuard};
use tokio_postgres::{Client, NoTls};

const SERVE: Access = Access::Serve { allow_unsafe_durability: false };
const NOW: Time = Time::from_ms(1_780_000_000_000);

/// A server of our own, one test at a time: some change settings that all would feel.
struct Server {
    url: String,
    _turn: MutexGuard<'static, ()>,
}

impl Server {
    async fn get() -> Self {
        static TURN: Mutex<()> = Mutex::const_new(());
        static SERVER: LazyLock<Postgres> = LazyLock::new(|| Postgres::start().unwrap());
        Self { url: SERVER.url("postgres"), _turn: TURN.lock().await }
    }

    async fn admin(&self) -> Client {
        connect(&self.url).await
    }

    /// The URL of a new, empty database.
    async fn fresh(&self) -> String {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("sekisho_test_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        self.admin().await.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        let (base, query) =
            self.url.split_once('?').map_or((self.url.as_str(), ""), |(base, query)| (base, query));
        let (server, _) = base.rsplit_once('/').unwrap();
        format!("{server}/{name}?{query}")
    }

    async fn forget(&self, url: &str) {
        let name = database(url);
        self.admin().await.batch_execute(&format!("DROP DATABASE {name} WITH (FORCE)")).await.unwrap();
    }

    /// The sessions of a store on this database.
    async fn sessions(&self, url: &str, condition: &str) -> i64 {
        let sql = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND application_name = 'sekisho' AND {condition}"
        );
        self.admin().await.query_one(&sql, &[&database(url)]).await.unwrap().get(0)
    }

    async fn terminate(&self, url: &str) {
        let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                   WHERE datname = $1 AND application_name = 'sekisho'";
        self.admin().await.query(sql, &[&database(url)]).await.unwrap();
    }

    /// Sets or, without a value, resets what every session of the server feels.
    async fn set(&self, name: &str, setting: Option<&str>) {
        let admin = self.admin().await;
        let sql = setting
            .map_or(format!("ALTER SYSTEM RESET {name}"), |to| format!("ALTER SYSTEM SET {name} = '{to}'"));
        admin.batch_execute(&sql).await.unwrap();
        admin.batch_execute("SELECT pg_reload_conf()").await.unwrap();
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

fn database(url: &str) -> String {
    let base = url.split('?').next().unwrap();
    base.rsplit('/').next().unwrap().to_owned()
}

async fn connect(url: &str) -> Client {
    // Without the URL's options: the tests' own connections need no TLS.
    let base = url.split('?').next().unwrap();
    let (client, connection) = tokio_postgres::connect(base, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn serve(url: &str) -> PostgresStore {
    postgres::open(url, SERVE).await.unwrap_or_else(|error| panic!("{error}"))
}

fn batch(new: &mut Arrivals, name: &str, count: usize) -> Arc<[Arrival]> {
    (0..count).map(|n| new.event(&format!("{name}-{n}"))).collect()
}

/// As the checkpoint does: the same rows again until there is an answer.
async fn admit_until_answered(store: &dyn Store, rows: &Arc<[Arrival]>) -> (Vec<Admission>, usize) {
    for failures in 0..200 {
        match store.admit(Arc::clone(rows), None).await {
            Ok(answers) => return (answers, failures),
            Err(Error::Unavailable(_)) => tokio::time::sleep(Duration::from_millis(10)).await,
            Err(error) => panic!("{}", error.chain()),
        }
    }
    panic!("the store never came back");
}

#[tokio::test]
async fn a_reader_needs_a_current_schema_and_an_edited_one_is_refused() {
    let server = Server::get().await;
    let url = server.fresh().await;
    let empty = postgres::open(&url, Access::Read).await;
    assert!(matches!(empty, Err(OpenError::Schema { found: 0, .. })));
    postgres::open(&url, Access::Migrate).await.unwrap_or_else(|error| panic!("{error}"));
    postgres::open(&url, Access::Read).await.unwrap_or_else(|error| panic!("{error}"));
    connect(&url).await.batch_execute("UPDATE migration SET checksum = 'x'").await.unwrap();
    assert!(matches!(postgres::open(&url, SERVE).await, Err(OpenError::Tampered { number: 1, .. })));
    server.forget(&url).await;
}

#[tokio::test]
async fn a5_a_server_that_would_forget_is_refused() {
    let server = Server::get().await;
    let url = server.fresh().await;
    let turn = |to: &str| format!("ALTER DATABASE {} SET synchronous_commit = {to}", database(&url));
    server.admin().await.batch_execute(&turn("off")).await.unwrap();
    match postgres::open(&url, SERVE).await {
        Err(OpenError::Unsafe { what, .. }) => assert!(what.contains("synchronous_commit"), "{what}"),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was opened"),
    }
    let tables =
        connect(&url).await.query("SELECT FROM pg_tables WHERE schemaname = 'public'", &[]).await.unwrap();
    assert!(tables.is_empty(), "a refused server is not touched");
    let forgiven = Access::Serve { allow_unsafe_durability: true };
    postgres::open(&url, forgiven).await.unwrap_or_else(|error| panic!("{error}"));
    server.admin().await.batch_execute(&turn("on")).await.unwrap();
    let store = serve(&url).await;
    let mut new = Arrivals::new(1);
    store.admit(batch(&mut new, "before", 1), None).await.unwrap();
    // Settings may change under a running server: the next connection notices.
    server.admin().await.batch_execute(&turn("off")).await.unwrap();
    server.terminate(&url).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(matches!(store.admit(batch(&mut new, "after", 1), None).await, Err(Error::Unavailable(_))));
    server.set("full_page_writes", Some("off")).await;
    let other = server.fresh().await;
    let refused = postgres::open(&other, SERVE).await;
    server.set("full_page_writes", None).await;
    assert!(matches!(refused, Err(OpenError::Unsafe { .. })));
    server.forget(&other).await;
    server.forget(&url).await;
}

#[tokio::test]
async fn an_unreachable_server_is_named_without_its_password() {
    let Err(error) = postgres::open("postgres://app:canary@127.0.0.1:1/x", SERVE).await else {
        panic!("nothing listens there")
    };
    let text = error.to_string();
    assert!(text.contains("127.0.0.1:1") && text.contains("refused") && !text.contains("canary"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a5_killed_sessions_lose_and_double_nothing() {
    let server = Server::get().await;
    let url = server.fresh().await;
    let store = Arc::new(serve(&url).await);
    let stop = Arc::new(AtomicBool::new(false));
    let runs: Vec<_> = (1..=3)
        .map(|node| {
            let (store, stop) = (Arc::clone(&store), Arc::clone(&stop));
            tokio::spawn(async move {
                let mut new = Arrivals::new(node);
                let (mut rows, mut failures) = (0, 0);
                for round in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let batch = batch(&mut new, &format!("{node}-{round}"), 20);
                    let (answers, failed) = admit_until_answered(&*store, &batch).await;
                    assert!(answers.iter().all(|answer| *answer == Admission::Admitted), "{answers:?}");
                    rows += answers.len();
                    failures += failed;
                }
                (rows, failures)
            })
        })
        .collect();
    for _ in 0..60 {
        server.terminate(&url).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    stop.store(true, Ordering::Relaxed);
    let (mut rows, mut failures) = (0, 0);
    for run in runs {
        let (admitted, failed) = run.await.unwrap();
        rows += admitted;
        failures += failed;
    }
    println!("{rows} rows, {failures} failed calls");
    assert!(failures > 0, "the kills were felt");
    let client = connect(&url).await;
    for table in ["event", "dedupe", "job"] {
        let found: i64 =
            client.query_one(&format!("SELECT count(*) FROM {table}"), &[]).await.unwrap().get(0);
        assert_eq!(usize::try_from(found).unwrap(), rows, "{table}");
    }
    server.forget(&url).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_futures_leave_no_transaction_open() {
    let server = Server::get().await;
    let url = server.fresh().await;
    let store = Arc::new(serve(&url).await);
    let epoch = store.join(NOW).await.unwrap().epoch;
    let runs: Vec<_> = (1..=6)
        .map(|node: i64| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let mut new = Arrivals::new(node);
                for round in 0..150_i64 {
                    let patience = Duration::from_micros((round * 7919 * node).unsigned_abs() % 15_000);
                    let rows = batch(&mut new, &format!("{node}-{round}"), 10);
                    let keys: Vec<_> = rows.iter().map(|row| row.key).collect();
                    let _ = tokio::time::timeout(patience, store.admit(rows, None)).await;
                    let _ = tokio::time::timeout(patience, store.known(&keys)).await;
                    let lane = Lane::settle();
                    let claiming = store.claim(epoch, vec![(lane, 5)], NOW);
                    if let Ok(Ok(jobs)) = tokio::time::timeout(patience, claiming).await {
                        let end = End::Done(Outcome::SUCCESS);
                        let sets = jobs.into_iter().map(|job| ChangeSet::end(job.lease, end.clone(), NOW));
                        let _ = tokio::time::timeout(patience, store.commit(sets.collect())).await;
                    }
                    let _ = tokio::time::timeout(
                        patience,
                        store.find_events(EventFilter { limit: 5, ..EventFilter::default() }),
                    )
                    .await;
                }
            })
        })
        .collect();
    let mut open = 0;
    while runs.iter().any(|run| !run.is_finished()) {
        open += server.sessions(&url, "state LIKE 'idle in transaction%'").await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for run in runs {
        run.await.unwrap();
    }
    assert_eq!(open, 0, "no transaction was ever seen waiting for its client");
    assert!(server.sessions(&url, "true").await <= 5, "no connection was left behind");
    let mut new = Arrivals::new(9);
    let answers = store.admit(batch(&mut new, "after", 10), None).await.unwrap();
    assert!(answers.iter().all(|answer| *answer == Admission::Admitted));
    let client = connect(&url).await;
    let sql = "SELECT (SELECT count(*) FROM event), (SELECT count(*) FROM dedupe),
               (SELECT count(*) FROM job) + (SELECT count(*) FROM outcome), (SELECT count(*) FROM outcome)";
    let row = client.query_one(sql, &[]).await.unwrap();
    let (events, keys, ends, ends_done): (i64, i64, i64, i64) =
        (row.get(0), row.get(1), row.get(2), row.get(3));
    println!("{events} events");
    assert!(events > 1_000, "the calls must have reached the server, or this test shows nothing: {events}");
    assert!(ends_done > 0, "{ends_done}");
    assert!(events == keys && keys == ends, "{events} {keys} {ends}");
    server.forget(&url).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_who_give_up_pile_up_no_work_behind_them() {
    let server = Server::get().await;
    let url = server.fresh().await;
    let store = serve(&url).await;
    let mut new = Arrivals::new(1);
    let warm = [batch(&mut new, "one", 1), batch(&mut new, "two", 1)];
    let (one, two) =
        tokio::join!(store.admit(Arc::clone(&warm[0]), None), store.admit(Arc::clone(&warm[1]), None));
    assert!(one.is_ok() && two.is_ok());
    let mut other = connect(&url).await;
    let stalling = other.transaction().await.unwrap();
    stalling.batch_execute("LOCK TABLE dedupe IN ACCESS EXCLUSIVE MODE").await.unwrap();
    for n in 0..40 {
        let rows = batch(&mut new, &format!("abandoned-{n}"), 1);
        assert!(tokio::time::timeout(Duration::from_millis(20), store.admit(rows, None)).await.is_err());
    }
    stalling.rollback().await.unwrap();
    store.admit(batch(&mut new, "after", 1), None).await.unwrap();
    let sql = "SELECT count(*) FROM event WHERE event_id LIKE 'abandoned%'";
    let ran: i64 = connect(&url).await.query_one(sql, &[]).await.unwrap().get(0);
    assert!((1..=2).contains(&ran), "one for each committer, not {ran} of 40");
    server.forget(&url).await;
}

/// The standby that never comes: a commit waits for it, and what the primary alone has must not be acknowledged.
#[tokio::test(flavor = "multi_thread")]
async fn a5_no_answer_before_the_synchronous_standby_has_it() {
    let server = Server::get().await;
    let url = server.fresh().await;
    let store = Arc::new(serve(&url).await);
    let mut new = Arrivals::new(1);
    store.admit(batch(&mut new, "before", 1), None).await.unwrap();
    let rows = batch(&mut new, "doubtful", 3);
    let call = |rows: &Arc<[Arrival]>| {
        let (store, rows) = (Arc::clone(&store), Arc::clone(rows));
        tokio::spawn(async move { store.admit(rows, None).await })
    };
    let waits = "wait_event = 'SyncRep'";
    server.set("synchronous_standby_names", Some("nobody")).await;
    let cut_off = call(&rows);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!cut_off.is_finished() && server.sessions(&url, waits).await == 1);
    server.terminate(&url).await;
    let cut_off = cut_off.await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let visible = store.known(&[rows[0].key]).await.unwrap_or_default();
    let again = call(&rows);
    tokio::time::sleep(Duration::from_millis(500)).await;
    let again_waited = !again.is_finished() && server.sessions(&url, waits).await == 1;
    let sql = format!("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE {waits}");
    server.admin().await.batch_execute(&sql).await.unwrap();
    let cancelled = again.await.unwrap();
    server.set("synchronous_standby_names", None).await;
    assert!(matches!(cut_off, Err(Error::Unavailable(_))), "{cut_off:?}");
    assert_eq!(visible.first(), Some(&Some(rows[0].seq)), "the primary has it");
    assert!(again_waited, "the rerun waits as the first call did");
    assert!(matches!(cancelled, Err(Error::Unavailable(_))), "a cancelled wait is no answer: {cancelled:?}");
    let answers = store.admit(rows, None).await.unwrap();
    assert!(answers.iter().all(|answer| *answer == Admission::Admitted));
    server.forget(&url).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_appear_for_any_sane_date_and_two_nodes_may_need_them_at_once() {
    let server = Server::get().await;
    let url = server.fresh().await;
    let (one, two) = (Arc::new(serve(&url).await), Arc::new(serve(&url).await));
    let day = 86_400_000;
    let dates = [1_735_689_600_000, NOW.ms(), NOW.ms() + day, 2_000_000_000_000, 3_900_000_000_000];
    let runs = [(1, one), (2, two)].map(|(node, store)| {
        tokio::spawn(async move {
            let mut new = Arrivals::new(node);
            let row = |(n, ms): (usize, i64)| {
                let seq = Sequence::new(Epoch(node), Seq::ZERO).next(Time::from_ms(ms));
                Arrival { seq, ..new.event(&format!("{node}-{n}")) }
            };
            let rows: Arc<[Arrival]> = dates.into_iter().enumerate().map(row).collect();
            store.admit(rows, None).await.unwrap()
        })
    });
    for run in runs {
        assert!(run.await.unwrap().iter().all(|answer| *answer == Admission::Admitted));
    }
    let store = serve(&url).await;
    let mut new = Arrivals::new(3);
    let wild = [Seq::from_i64(-5), Seq::MAX].map(|seq| Arrival { seq, ..new.event(&format!("{seq:?}")) });
    let rows = vec![wild[0].clone(), new.event("sane"), wild[1].clone()];
    let answers = store.admit(rows.into(), None).await.unwrap();
    assert!(
        matches!(&answers[..], [Admission::Refused(_), Admission::Admitted, Admission::Refused(_)]),
        "{answers:?}"
    );
    let sql = "SELECT FROM pg_inherits WHERE inhparent = 'event'::regclass";
    assert_eq!(connect(&url).await.query(sql, &[]).await.unwrap().len(), dates.len());
    server.forget(&url).await;
}

#[tokio::test]
async fn a_partition_is_made_while_events_arrive_and_a_long_reader_looks() {
    let server = Server::get().await;
    let url = server.fresh().await;
    let store = serve(&url).await;
    store.join(NOW).await.unwrap();
    let mut new = Arrivals::new(1);
    store.admit(batch(&mut new, "a", 5), None).await.unwrap();
    let mut other = connect(&url).await;
    let reading = other.transaction().await.unwrap();
    reading.query("SELECT count(*) FROM event", &[]).await.unwrap();
    reading
        .execute("INSERT INTO job (id, due_at, lane, kind, payload) VALUES (1, 1, 'held', 'timer', '')", &[])
        .await
        .unwrap();
    let before = Instant::now();
    store.upkeep(NOW.plus_ms(30 * 86_400_000)).await.unwrap();
    store.admit(batch(&mut new, "b", 5), None).await.unwrap();
    assert!(before.elapsed() < Duration::from_secs(1), "{:?}", before.elapsed());
    reading.rollback().await.unwrap();
    server.forget(&url).await;
}

#[tokio::test]
async fn a_text_of_an_outcome_or_rejection_may_hold_anything() {
    let server = Server::get().await;
    let url = server.fresh().await;
    let store = serve(&url).await;
    let mut new = Arrivals::new(1);
    store.admit(batch(&mut new, "a", 2), None).await.unwrap();
    let epoch = store.join(NOW).await.unwrap().epoch;
    let jobs = store.claim(epoch, vec![(Lane::settle(), 2)], NOW).await.unwrap();
    let end = End::Done(Outcome::Skipped { note: "a\0b".into() });
    let set = |job: usize| ChangeSet::end(jobs[job].lease, end.clone(), NOW);
    let answers = store.commit(vec![set(1), set(0), set(1)]).await.unwrap();
    let applied = || Committed::Applied { repeated: Vec::new() };
    assert_eq!(answers, [applied(), applied(), Committed::Lost]);
    let note = store.find_event(jobs[0].lease.job).await.unwrap().unwrap().summary.note;
    assert_eq!(note.as_deref(), Some("a\u{FFFD}b"));
    server.forget(&url).await;
}

#[tokio::test]
async fn a7_duplicates_cost_no_wal() {
    let server = Server::get().await;
    let url = server.fresh().await;
    let store = serve(&url).await;
    store.admit(batch(&mut Arrivals::new(1), "same", 500), None).await.unwrap();
    let client = connect(&url).await;
    let lsn = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint";
    let before: i64 = client.query_one(lsn, &[]).await.unwrap().get(0);
    for node in 2..12 {
        let answers = store.admit(batch(&mut Arrivals::new(node), "same", 500), None).await.unwrap();
        assert!(answers.iter().all(|answer| matches!(answer, Admission::Duplicate(_))));
    }
    let after: i64 = client.query_one(lsn, &[]).await.unwrap().get(0);
    println!("{} WAL bytes for 5,000 duplicates", after - before);
    // The server's own housekeeping may write a little; one row for each duplicate would be a hundred times more.
    assert!(after - before < 20_000, "{}", after - before);
    server.forget(&url).await;
}
