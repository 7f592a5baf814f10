//! A5–A7: however many copies arrive at once, through however many nodes, one is stored and all are acknowledged.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use sekisho_lab::http;
use sekisho_lab::load::{Load, Recording};
use sekisho_lab::process::ServerOptions;
use sekisho_lab::traffic::StripeTraffic;

use crate::support::{
    BINARY, Gateway, Place, Provider, Response, STRIPE_SECRET, Storm, stripe_source, together, wait_until,
};

const COPIES: usize = 200;

/// Everybody connects, waits for everybody else, and sends.
fn send_at_once(gateways: &[&Gateway], id: &str) -> Vec<Response> {
    let letter = Arc::new(Provider::stripe().event(id));
    let start = Arc::new(Barrier::new(COPIES));
    let senders: Vec<_> = (0..COPIES)
        .map(|n| {
            let (letter, start) = (Arc::clone(&letter), Arc::clone(&start));
            let address = gateways[n % gateways.len()].address();
            std::thread::spawn(move || {
                let headers: Vec<_> =
                    letter.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
                start.wait();
                http::post(address, &letter.path, &headers, &letter.body).unwrap()
            })
        })
        .collect();
    senders.into_iter().map(|sender| sender.join().unwrap()).collect()
}

fn check_once(gateways: &[&Gateway], id: &str) {
    let answers = send_at_once(gateways, id);
    assert!(answers.iter().all(|answer| answer.status == 204), "{answers:?}");
    let outcome = |wanted| {
        answers.iter().filter(move |answer| answer.header("sekisho-outcome") == Some(wanted)).count()
    };
    assert_eq!((outcome("accepted"), outcome("duplicate")), (1, COPIES - 1));
    let message = answers[0].header("sekisho-message-id");
    assert!(answers.iter().all(|answer| answer.header("sekisho-message-id") == message));
}

#[test]
fn a7_two_hundred_copies_at_once_through_two_nodes_are_one_event() {
    let place = Place::postgres();
    let nodes = [Gateway::open(&place), Gateway::open(&place)];
    check_once(&[&nodes[0], &nodes[1]], "evt_same");
    check_once(&[&nodes[1], &nodes[0]], "evt_same_again");
    assert_eq!(nodes[0].event_ids(), ["evt_same", "evt_same_again"]);
    assert_eq!(place.sql("SELECT count(*) FROM webhook_events"), "2");
    let counted = |outcome: &str| -> u64 {
        nodes.iter().map(|node| node.metric("sekisho_requests_total", &[outcome])).sum()
    };
    assert_eq!((counted("accepted"), counted("duplicate")), (2, 2 * (COPIES as u64 - 1)));
}

#[test]
fn a7_two_hundred_copies_at_once_on_sqlite_are_one_event() {
    let place = Place::sqlite();
    let gateway = Gateway::open(&place);
    check_once(&[&gateway], "evt_same");
    assert_eq!(gateway.event_ids(), ["evt_same"]);
}

const TOGETHER: u64 = 1_500;

fn load_of_many_at_once(gateway: &Gateway) {
    let load = Load {
        connections: 48,
        duration: Duration::from_mins(2),
        requests_max: TOGETHER,
        ledger: Recording::Memory,
        ..Load::new(gateway.address())
    };
    let report = load.run_blocking(Arc::new(StripeTraffic::new("/webhooks/stripe", STRIPE_SECRET, 3_000)));
    assert_eq!(report.statuses.get(&204), Some(&TOGETHER), "{report}");
    let mut acknowledged = report.ledger.acknowledged;
    acknowledged.sort();
    assert_eq!(gateway.event_ids(), acknowledged);
    assert_eq!(gateway.metric("sekisho_batch_events_sum", &[]), TOGETHER);
}

#[test]
fn a6_on_postgresql_events_that_come_together_are_committed_together() {
    let gateway = Gateway::open(&Place::postgres());
    load_of_many_at_once(&gateway);
    let commits = gateway.metric("sekisho_batch_events_count", &[]);
    assert!(commits <= TOGETHER / 2, "{commits} commits for {TOGETHER} events");
    assert_eq!(gateway.metric("sekisho_commit_seconds_count", &[]), commits);
}

/// There the store's one writer gathers them, behind the batches of the checkpoint: what counts is how often it waits for
/// the disk. strace makes the disk slow, and counts.
#[test]
fn a6_on_sqlite_events_that_come_while_the_disk_syncs_wait_for_it_together() {
    let place = Place::sqlite();
    let syncs = place.folder.path().join("syncs");
    let traced = |options: ServerOptions| {
        let mut command: Vec<String> =
            ["-f", "-qqq", "-y", "--seccomp-bpf", "-e", "trace=fsync,fdatasync"].map(str::to_owned).to_vec();
        command.extend(["-e", "inject=fsync,fdatasync:delay_exit=3000", "-o"].map(str::to_owned));
        command.extend([syncs.display().to_string(), BINARY.to_owned(), "serve".to_owned()]);
        // Without a worker: every commit is of arrivals.
        ServerOptions { binary: "strace".into(), command, role: Some("gateway".into()), ..options }
    };
    let gateway = Gateway::started(&place.url, &stripe_source(""), &[], traced).unwrap();
    // Of the log: once for each commit, and once each time its pages are moved.
    let waits = || {
        let lines = std::fs::read_to_string(&syncs).unwrap();
        lines.lines().filter(|line| line.contains("sekisho.db-wal>")).count() as u64
    };
    let before = waits();
    load_of_many_at_once(&gateway);
    let waits = waits() - before;
    assert!(waits > 0 && waits <= TOGETHER / 3, "{waits} waits for {TOGETHER} events");
}

#[test]
fn a7_on_sqlite_an_event_that_is_stored_twice_ends_the_process_and_nothing_more_is_acknowledged() {
    let place = Place::sqlite();
    let mut gateway = Gateway::open(&place);
    for n in 0..10 {
        assert_eq!(gateway.send(&Provider::stripe().event(&format!("evt_{n}"))).status, 204);
    }
    // As if its first copy had been forgotten by memory and sieve, and a second one let in.
    place.sql(
        "INSERT INTO dedupe_merged SELECT key, seq - 1 FROM
         (SELECT * FROM dedupe_fresh_0 UNION ALL SELECT * FROM dedupe_fresh_1) LIMIT 1",
    );
    let ends = |gateway: &mut Gateway| {
        let storm = Storm::start(gateway.address(), 4);
        let mut ended = None;
        wait_until("the process to leave", || {
            ended = gateway.server.exited();
            ended.is_some()
        });
        assert_eq!(ended.unwrap().code(), Some(65), "{}", gateway.server.log());
        storm.stop()
    };
    let report = ends(&mut gateway);
    assert!(gateway.server.log().contains("an event is stored twice"), "{}", gateway.server.log());
    let stored = gateway.event_ids();
    let is_stored = |id: &String| stored.contains(id);
    assert!(report.ledger.acknowledged.iter().all(is_stored), "{report}");
    // A start alone heals nothing.
    gateway.server.start_again().unwrap();
    let again = ends(&mut gateway);

    // The operator does what docs/operating/sqlite.md says.
    let twice = "SELECT max(seq) FROM dedupe GROUP BY key HAVING count(DISTINCT seq) > 1";
    let later = place.sql(twice);
    assert_eq!(later.lines().count(), 1, "{later}");
    for table in ["dedupe_merged", "dedupe_fresh_0", "dedupe_fresh_1"] {
        place.sql(&format!("DELETE FROM {table} WHERE seq = {later}"));
    }
    assert_eq!(place.sql(twice), "");
    gateway.server.start_again().unwrap();
    let storm = Storm::start(gateway.address(), 4);
    wait_until("it goes on", || gateway.metric("sekisho_requests_total", &["accepted"]) >= 300);
    let report = together([report, again, storm.stop()]);
    let mut known = report;
    known.ledger.acknowledged.extend((0..10).map(|n| format!("evt_{n}")));
    gateway.check_ledger(&known);
}
