//! A5, R1–R4: whatever dies while events come in, what was acknowledged is there, once.

use std::time::{Duration, Instant};

use sekisho_lab::postgres::Postgres;
use sekisho_lab::process::ServerOptions;
use sekisho_lab::proxy::{Choice, Cut, CutPoint, Faults, Lost, Proxy};
use sekisho_lab::rng::Rng;

use crate::support::{
    Gateway, Place, Provider, Storm, each_store, runtime, seed, stripe_source, together, wait_until,
};

/// How long the trouble lasts: short, or as many seconds as `SEKISHO_TROUBLE_SECONDS` says.
fn trouble() -> Duration {
    let given = std::env::var("SEKISHO_TROUBLE_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(given.unwrap_or(8))
}

#[test]
fn r1_killed_at_any_moment_it_keeps_what_it_acknowledged() {
    each_store(|place| {
        let mut rng = Rng::new(seed("kill -9"));
        let mut gateway = Gateway::open(place);
        let storm = Storm::start(gateway.address(), 8);
        let (started, mut kills) = (Instant::now(), 0);
        while started.elapsed() < trouble() {
            std::thread::sleep(Duration::from_millis(rng.between(50, 350)));
            gateway.server.kill9();
            kills += 1;
            // Not always let it get ready: it may die while it starts, too.
            gateway.server.start_without_waiting().unwrap();
            if rng.chance(0.8) {
                gateway.server.wait_until_ready().unwrap();
            }
        }
        let report = storm.stop();
        gateway.server.restart().unwrap();
        eprintln!("{kills} kills, {report}");
        assert!(kills >= 5 && report.unknown > 0, "the kills hit nothing: {kills} kills, {report}");
        gateway.check_ledger(&report);
        if place.is_sqlite() {
            assert_eq!(place.sql("PRAGMA integrity_check"), "ok");
            assert_eq!(place.sql("PRAGMA foreign_key_check"), "");
        }
        let unfinished = "SELECT count(*) FROM job WHERE kind <> 'timer'";
        wait_until("nothing is left to do", || place.sql(unfinished) == "0");
        assert_eq!(place.sql("SELECT count(*) - (SELECT count(*) FROM event) FROM dedupe"), "0");
    });
}

#[test]
fn r2_one_of_two_nodes_killed_again_and_again_loses_and_doubles_nothing() {
    let mut rng = Rng::new(seed("kill one of two"));
    let place = Place::postgres();
    let mut nodes = [Gateway::open(&place), Gateway::open(&place)];
    let storms: Vec<_> = nodes.iter().map(|node| Storm::start(node.address(), 4)).collect();
    let started = Instant::now();
    while started.elapsed() < trouble() / 2 {
        std::thread::sleep(Duration::from_millis(rng.between(100, 400)));
        nodes[rng.below(2) as usize].server.restart().unwrap();
    }
    let report = together(storms.into_iter().map(Storm::stop));
    nodes[0].check_ledger(&report);
}

#[test]
fn r3_postgresql_restarted_and_its_sessions_ended_under_load() {
    let mut rng = Rng::new(seed("PostgreSQL troubled"));
    let server = Postgres::start().unwrap_or_else(|error| panic!("{error}"));
    let place = Place::on(&server);
    let gateway = Gateway::open(&place);
    let storm = Storm::start(gateway.address(), 8);
    let started = Instant::now();
    let (mut ended, mut restarts) = (0, 0);
    // On a busy machine one restart may take all the time there is.
    while started.elapsed() < trouble() || ended == 0 {
        std::thread::sleep(Duration::from_millis(rng.between(50, 250)));
        if rng.chance(0.15) || restarts == 0 {
            server.restart().unwrap();
            restarts += 1;
        } else {
            ended += server.terminate_backends().unwrap();
        }
    }
    let stored = gateway.metric("sekisho_requests_total", &["accepted"]);
    wait_until("events to flow again by themselves", || {
        gateway.metric("sekisho_requests_total", &["accepted"]) > stored
    });
    let report = storm.stop();
    eprintln!("{restarts} restarts, {ended} sessions ended, {report}");
    assert!(ended > 0);
    assert!(report.statuses.keys().all(|status| matches!(status, 204 | 503)), "{report}");
    gateway.check_ledger(&report);
    wait_until("ready", || gateway.get("/health/ready").status == 200);
}

#[test]
fn r4_a_commit_whose_answer_is_lost_is_neither_lost_nor_doubled() {
    let seed = seed("cut around commits");
    let runtime = runtime();
    let place = Place::postgres();
    let port =
        sekisho_lab::postgres::shared().unwrap().port().expect("the stories need a private PostgreSQL");
    let proxy = runtime.block_on(Proxy::start(([127, 0, 0, 1], port).into(), seed)).unwrap();
    let url = place.url.replace(&port.to_string(), &proxy.address().port().to_string());
    let gateway = Gateway::at(&url, &stripe_source(""), &[]).unwrap();
    let storm = Storm::start(gateway.address(), 8);
    for lost in [Lost::Reply, Lost::Request, Lost::Either] {
        let before = proxy.counts().lost();
        let cut = Cut { at: CutPoint::Any, lost, choice: Choice::Probability(0.1) };
        proxy.set(Faults { cut: Some(cut), ..Faults::default() });
        wait_until("commits to be cut", || proxy.counts().lost() >= before + 25);
    }
    proxy.heal();
    let stored = gateway.metric("sekisho_requests_total", &["accepted"]);
    wait_until("events to flow again", || gateway.metric("sekisho_requests_total", &["accepted"]) > stored);
    let report = storm.stop();
    eprintln!("{:?} {report}", proxy.counts());
    assert!(proxy.counts().lost_replies > 0 && proxy.counts().lost_requests > 0);
    assert!(report.statuses.keys().all(|status| matches!(status, 204 | 503)), "{report}");
    gateway.check_ledger(&report);
}

#[test]
fn r4_a_lost_answer_to_one_single_commit_is_asked_again_and_answered_accepted_once() {
    let runtime = runtime();
    let place = Place::postgres();
    let port =
        sekisho_lab::postgres::shared().unwrap().port().expect("the stories need a private PostgreSQL");
    let proxy = runtime.block_on(Proxy::start(([127, 0, 0, 1], port).into(), 1)).unwrap();
    let url = place.url.replace(&port.to_string(), &proxy.address().port().to_string());
    // No worker: the only commits are arrivals and heartbeats.
    let gateway = Gateway::started(&url, &stripe_source(""), &[], |options| ServerOptions {
        role: Some("gateway".into()),
        ..options
    })
    .unwrap();
    for n in 0..10 {
        let cut = Cut { at: CutPoint::Any, lost: Lost::Reply, choice: Choice::Every(1) };
        let letter = Provider::stripe().event(&format!("evt_{n}"));
        let before = proxy.counts().lost_replies;
        proxy.set(Faults { cut: Some(cut), ..Faults::default() });
        let answer = std::thread::scope(|scope| {
            let sent = scope.spawn(|| gateway.send(&letter));
            wait_until("the answer to be lost", || proxy.counts().lost_replies > before);
            proxy.heal();
            sent.join().unwrap()
        });
        // Stored under its own number, so the second asking is the first delivery; or it took too long: come again.
        match answer.status {
            204 => assert_eq!(answer.header("sekisho-outcome"), Some("accepted")),
            503 => assert!(answer.header("retry-after").is_some()),
            other => panic!("{other}"),
        }
        gateway.send_until_acknowledged(&letter);
    }
    assert_eq!(gateway.event_ids().len(), 10);
}

#[test]
fn b2_work_claimed_before_an_outage_is_done_after_it() {
    let runtime = runtime();
    let place = Place::postgres();
    let port =
        sekisho_lab::postgres::shared().unwrap().port().expect("the stories need a private PostgreSQL");
    let proxy = runtime.block_on(Proxy::start(([127, 0, 0, 1], port).into(), 1)).unwrap();
    let url = place.url.replace(&port.to_string(), &proxy.address().port().to_string());
    let node = |url: &str, role: &str| {
        let role = Some(role.to_owned());
        Gateway::started(url, &stripe_source(""), &[], |options| ServerOptions { role, ..options }).unwrap()
    };
    let (receiver, worker) = (node(&place.url, "gateway"), node(&url, "worker"));
    let count = |what: &str| -> u32 { place.sql(&format!("SELECT count(*) FROM {what}")).parse().unwrap() };

    // The worker claims, and before it can hear so or commit anything, the network is gone.
    proxy.set(Faults { latency: Duration::from_millis(400), ..Faults::default() });
    receiver.type_in_with_url(&["trigger", "charge.succeeded", "--count", "40", "--json"]).done();
    wait_until("a claim", || count("job WHERE owner IS NOT NULL") > 0);
    proxy.set(Faults { refuse: true, ..Faults::default() });
    proxy.cut_all();
    wait_until("the worker to notice", || worker.get("/health/ready").status == 503);
    let refused = proxy.counts().refused;
    wait_until("some attempts in vain", || proxy.counts().refused >= refused + 5);
    assert!(count("job") > 0);

    proxy.heal();
    wait_until("the worker to do all of it", || count("webhook_events WHERE status = 'received'") == 0);
    assert_eq!(count("job"), 0);
    assert_eq!(receiver.events().len(), 40);
}
