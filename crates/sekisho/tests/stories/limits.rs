//! A8: too much, too slow, too many, from the wrong address: each gets its answer, and honest traffic goes on.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sekisho_lab::hostile::{self, HostileReport, HostileTarget};
use sekisho_lab::load::{self, Load, Recording};
use sekisho_lab::proxy::{Faults, Proxy};
use sekisho_lab::traffic::StripeTraffic;

use crate::support::{
    Gateway, PATIENCE, Place, Provider, STRIPE_SECRET, each_store, runtime, stripe_source, wait_until,
};

const STRICT: &str = "[server]\nheader_timeout = \"1s\"\nbody_timeout = \"1s\"\nbody_bytes_max = \"128KiB\"\nconnections_max = 4096\n";
/// Far above what it needs, far below what an attacker would have it take.
const MEMORY_MAX_KB: u64 = 256 << 10;

/// Honest traffic beside whatever else happens; every event of it must be acknowledged and stored.
struct Honest {
    stop: Arc<std::sync::atomic::AtomicBool>,
    running: std::thread::JoinHandle<load::Report>,
}

impl Honest {
    fn start(gateway: &Gateway) -> Self {
        let load = Load {
            connections: 2,
            pace: load::Pace::Open { per_second: 50.0 },
            duration: PATIENCE * 2,
            ledger: Recording::Memory,
            ..Load::new(gateway.address())
        };
        let stop = Arc::clone(&load.stop);
        let traffic = StripeTraffic::new("/webhooks/stripe", STRIPE_SECRET, 1_000);
        Self { stop, running: std::thread::spawn(move || load.run_blocking(Arc::new(traffic))) }
    }

    fn check(self, gateway: &Gateway) {
        self.stop.store(true, Ordering::Relaxed);
        let report = self.running.join().unwrap();
        assert!(report.acknowledged() > 0, "{report}");
        assert_eq!(report.refusals() + report.unknown, 0, "honest traffic suffered: {report}");
        let mut ids = report.ledger.acknowledged;
        ids.sort();
        assert_eq!(gateway.event_ids(), ids);
    }
}

fn target(gateway: &Gateway, connections: usize) -> HostileTarget {
    HostileTarget {
        address: gateway.address(),
        path: "/webhooks/stripe".into(),
        connections,
        limit: PATIENCE,
    }
}

fn check_refused(report: &HostileReport, status: u16) {
    assert_eq!(report.still_open, 0, "{report}");
    assert_eq!(report.statuses.get(&status), Some(&report.connections), "{report}");
}

#[test]
fn a8_oversized_and_endless_bodies_and_header_bombs_are_cut_off() {
    each_store(|place| {
        let gateway = Gateway::with(place, &(STRICT.to_owned() + &stripe_source("")));
        let honest = Honest::start(&gateway);
        let target = target(&gateway, 20);
        runtime().block_on(async {
            check_refused(&hostile::oversized_announced(&target, 10 << 20).await, 413);
            check_refused(&hostile::oversized_sent(&target, 1 << 20).await, 413);
            check_refused(&hostile::endless_body(&target, 8 << 20).await, 413);
            check_refused(&hostile::header_bomb(&target, 1, 200 << 10).await, 431);
            check_refused(&hostile::header_bomb(&target, 500, 10).await, 431);
            let garbage = hostile::garbage(&target, 7, 2_000).await;
            assert_eq!(garbage.still_open, 0, "{garbage}");
            assert!(garbage.statuses.keys().all(|status| *status == 400), "{garbage}");
        });
        let memory = gateway.server.pss_kb().unwrap();
        assert!(memory < MEMORY_MAX_KB, "{memory} KiB");
        honest.check(&gateway);
    });
}

#[test]
fn a8_a_body_just_inside_the_limit_is_taken_and_one_byte_more_is_not() {
    each_store(|place| {
        let gateway = Gateway::with(place, &(STRICT.to_owned() + &stripe_source("")));
        let body = |bytes: usize| {
            let frame = r#"{"id":"evt_large","type":"x","created":2100000000,"pad":""}"#.len();
            let pad = "x".repeat(bytes - frame);
            format!(r#"{{"id":"evt_large","type":"x","created":2100000000,"pad":"{pad}"}}"#)
        };
        let stripe = Provider::stripe();
        assert_eq!(gateway.send(&stripe.body(&body((128 << 10) + 1))).status, 413);
        assert_eq!(gateway.send(&stripe.body(&body(128 << 10))).status, 204);
        assert_eq!(gateway.event_ids(), ["evt_large"]);
    });
}

#[test]
fn a8_thousands_of_slow_clients_are_closed_and_honest_traffic_goes_on() {
    each_store(|place| {
        let gateway = Gateway::with(place, &(STRICT.to_owned() + &stripe_source("")));
        let honest = Honest::start(&gateway);
        let memory = runtime().block_on(async {
            let many = target(&gateway, 1_000);
            let (headers, bodies) = tokio::join!(hostile::slow_headers(&many), hostile::slow_body(&many));
            let memory = gateway.server.pss_kb().unwrap();
            assert_eq!((headers.still_open, headers.connects_refused), (0, 0), "{headers}");
            check_refused(&bodies, 408);
            // Fewer than the kernel's queue holds: one that was dropped there would never hear of its end.
            let silent = hostile::silence(&target(&gateway, 100)).await;
            assert_eq!((silent.still_open, silent.connects_refused), (0, 0), "{silent}");
            memory
        });
        assert!(memory < MEMORY_MAX_KB, "{memory} KiB");
        wait_until("the connections to be gone", || gateway.metric("sekisho_connections", &[]) < 10);
        honest.check(&gateway);
    });
}

#[test]
fn a8_connections_beyond_the_cap_wait_for_their_turn() {
    each_store(|place| {
        let config = "[server]\nconnections_max = 16\nheader_timeout = \"1s\"\n".to_owned();
        let gateway = Gateway::with(place, &(config + &stripe_source("")));
        let silent: Vec<_> =
            (0..48).map(|_| std::net::TcpStream::connect(gateway.address()).unwrap()).collect();
        // Three times the cap is in front; each turn lasts one header time-out.
        assert_eq!(gateway.send(&Provider::stripe().event("evt_patient")).status, 204);
        drop(silent);
        assert_eq!(gateway.event_ids(), ["evt_patient"]);
    });
}

#[test]
fn a5_a_client_that_hangs_up_at_once_does_no_harm() {
    use std::io::Write;
    each_store(|place| {
        let gateway = Gateway::open(place);
        let letters: Vec<_> = (0..200).map(|n| Provider::stripe().event(&format!("evt_{n:03}"))).collect();
        for letter in &letters {
            let mut request = Vec::new();
            letter.write(&mut request);
            let mut stream = std::net::TcpStream::connect(gateway.address()).unwrap();
            stream.write_all(&request).unwrap();
        }
        for letter in &letters {
            assert_eq!(gateway.send(letter).status, 204);
        }
        let ids: Vec<_> = (0..200).map(|n| format!("evt_{n:03}")).collect();
        assert_eq!(gateway.event_ids(), ids);
    });
}

#[test]
fn a8_bodies_that_wait_may_not_fill_the_memory() {
    let place = Place::sqlite();
    let config = "[server]\nbody_bytes_max = \"128KiB\"\n[admission]\nwaiting_bytes_max = \"256KiB\"\n"
        .to_owned()
        + &stripe_source("");
    let gateway = Gateway::with(&place, &config);
    let other = rusqlite::Connection::open(place.file()).unwrap();
    other.busy_timeout(PATIENCE).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let letter = |n: u32| {
        let pad = "x".repeat(100 << 10);
        Provider::stripe()
            .body(&format!(r#"{{"id":"evt_{n}","type":"x","created":2100000000,"pad":"{pad}"}}"#))
    };
    let wave = || -> usize {
        let answers: Vec<_> = std::thread::scope(|scope| {
            let gateway = &gateway;
            let senders: Vec<_> = (0..8).map(|n| scope.spawn(move || gateway.send(&letter(n)))).collect();
            senders.into_iter().map(|sender| sender.join().unwrap()).collect()
        });
        assert!(answers.iter().all(|answer| answer.status == 503 && answer.header("retry-after").is_some()));
        answers.iter().filter(|answer| answer.text().contains("overloaded")).count()
    };
    let early = wave();
    assert!(early >= 4, "{early} of 8 were told early; 2 fit");
    // Those who gave up left their bodies in the queue: there is room for nobody.
    let early = wave();
    assert!(early > 6, "{early} of 8 were told early, though the first ones still wait");
    other.execute_batch("ROLLBACK").unwrap();
    for n in 0..8 {
        gateway.send_until_acknowledged(&letter(n));
    }
    assert_eq!(gateway.event_ids().len(), 8);
}

#[test]
fn a8_only_allowed_addresses_may_send_and_nobody_can_pretend_to_be_one() {
    each_store(|place| {
        let config = "[server]\ntrusted_proxies = 1\n".to_owned()
            + &stripe_source("allow_ips = [\"203.0.113.0/24\", \"2001:db8::/32\"]");
        let gateway = Gateway::with(place, &config);
        let from = |id: &str, hops: &str| {
            gateway.send(&Provider::stripe().event(id).with_header("x-forwarded-for", hops)).status
        };
        assert_eq!(from("evt_1", "203.0.113.9"), 204);
        assert_eq!(from("evt_2", "2001:db8::1"), 204);
        assert_eq!(from("evt_3", "10.9.9.9, 203.0.113.9"), 204, "the last hop is what our proxy saw");
        assert_eq!(from("evt_4", "198.51.100.7"), 400);
        assert_eq!(from("evt_5", "203.0.113.9, 198.51.100.7"), 400, "what the caller claims counts nothing");
        assert_eq!(gateway.send(&Provider::stripe().event("evt_6")).status, 400);
        assert_eq!(gateway.event_ids(), ["evt_1", "evt_2", "evt_3"]);
        wait_until("refusals recorded", || gateway.rejections().len() == 2);
        for one in gateway.rejections() {
            assert_eq!(one["reason"], "address_not_allowed");
            assert!(one["peer"] == "198.51.100.7" || one["peer"] == "127.0.0.1", "{one}");
        }
    });
}

#[test]
fn a8_without_trusted_proxies_nobody_believes_a_forwarded_address() {
    each_store(|place| {
        let gateway = Gateway::with(place, &stripe_source("allow_ips = [\"203.0.113.0/24\"]"));
        let letter = Provider::stripe().event("evt_1").with_header("x-forwarded-for", "203.0.113.9");
        assert_eq!(gateway.send(&letter).status, 400);
    });
}

#[test]
fn a8_a_source_over_its_rate_is_told_to_come_again() {
    each_store(|place| {
        let gateway = Gateway::with(place, &stripe_source("rate = 3"));
        let answers: Vec<_> =
            (0..30).map(|n| gateway.send(&Provider::stripe().event(&format!("evt_{n}")))).collect();
        let held: Vec<_> = answers.iter().filter(|answer| answer.status != 204).collect();
        assert!(!held.is_empty() && held.len() < answers.len());
        for answer in held {
            assert_eq!(answer.status, 503, "never 4xx: some providers drop the message then");
            assert!(answer.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
            assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        }
        let stored = answers.iter().filter(|answer| answer.status == 204).count();
        assert_eq!(gateway.event_ids().len(), stored);
        gateway.send_until_acknowledged(&Provider::stripe().event("evt_29"));
        assert!(gateway.rejections().is_empty(), "nobody attacked");
    });
}

/// A flood against a slow store. Whatever is not stored is asked to come again, and what is acknowledged is there.
fn overload(gateway: &Gateway) -> load::Report {
    let load = Load {
        connections: 64,
        duration: Duration::from_secs(3),
        ledger: Recording::Memory,
        ..Load::new(gateway.address())
    };
    let report = load.run_blocking(Arc::new(StripeTraffic::new("/webhooks/stripe", STRIPE_SECRET, 1_000)));
    assert!(report.statuses.keys().all(|status| matches!(status, 204 | 503)), "{report}");
    assert!(report.statuses.contains_key(&503), "{report}");
    assert_eq!(report.unknown, 0, "{report}");
    report
}

fn check_stored(gateway: &Gateway, report: &load::Report) {
    let stored = gateway.event_ids();
    let mut unique = stored.clone();
    unique.dedup();
    assert_eq!(stored, unique, "stored twice");
    let mut acknowledged = report.ledger.acknowledged.clone();
    acknowledged.sort();
    let missing: Vec<_> = acknowledged.iter().filter(|id| stored.binary_search(id).is_err()).collect();
    assert!(missing.is_empty(), "acknowledged and not stored: {missing:?}");
}

const NARROW: &str = "[admission]\nwaiting_max = 4\n";

#[test]
fn a8_overload_of_a_slow_postgresql_is_told_early_to_come_again() {
    let place = Place::postgres();
    let runtime = runtime();
    let port =
        sekisho_lab::postgres::shared().unwrap().port().expect("the stories need a private PostgreSQL");
    let proxy = runtime.block_on(Proxy::start(([127, 0, 0, 1], port).into(), 1)).unwrap();
    let url = place.url.replace(&port.to_string(), &proxy.address().port().to_string());
    let gateway = Gateway::at(&url, &(NARROW.to_owned() + &stripe_source("")), &[]).unwrap();
    proxy.set(Faults { latency: Duration::from_millis(40), ..Faults::default() });
    let report = overload(&gateway);
    assert!(report.acknowledged() > 0, "{report}");
    let over = gateway.metric("sekisho_requests_total", &["overloaded"]);
    assert!(over > 0);
    proxy.heal();
    check_stored(&gateway, &report);
    let after = gateway.send_until_acknowledged(&Provider::stripe().event("evt_after_the_flood"));
    assert_eq!(after.header("sekisho-outcome"), Some("accepted"));
}

#[test]
fn a8_overload_of_a_blocked_sqlite_is_told_to_come_again_and_ends_by_itself() {
    let place = Place::sqlite();
    let gateway = Gateway::with(&place, &(NARROW.to_owned() + &stripe_source("")));
    let other = rusqlite::Connection::open(place.file()).unwrap();
    other.busy_timeout(PATIENCE).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let report = overload(&gateway);
    let answer = gateway.send(&Provider::stripe().event("evt_meanwhile"));
    assert_eq!(answer.status, 503);
    assert!(answer.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
    other.execute_batch("ROLLBACK").unwrap();
    gateway.send_until_acknowledged(&Provider::stripe().event("evt_meanwhile"));
    check_stored(&gateway, &report);
    wait_until("ready", || gateway.get("/health/ready").status == 200);
}
