//! A7: the gate only saves work. Redis away, empty or wrong changes no answer and no row.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sekisho_lab::load::{Load, Recording};
use sekisho_lab::redis::Redis;
use sekisho_lab::traffic::Traffic;

use crate::support::{Gateway, Place, Provider, each_store, seed, stripe_source, wait_until};

fn redis() -> Redis {
    Redis::start().unwrap_or_else(|error| panic!("{error}"))
}

/// Nothing is remembered in the process itself, so that whatever the gate knows comes from Redis.
fn behind(redis: &Redis, place: &Place) -> Gateway {
    let gate = format!("[gate]\nentries = 0\nredis = \"{}\"\n", redis.url());
    Gateway::with(place, &(gate + &stripe_source("")))
}

fn send(gateway: &Gateway, id: &str) -> String {
    let answer = gateway.send(&Provider::stripe().event(id));
    assert_eq!(answer.status, 204, "{}", answer.text());
    answer.header("sekisho-outcome").unwrap().to_owned()
}

fn remembered(redis: &Redis) -> i64 {
    let answer = redis.call("DBSIZE").unwrap();
    answer.trim_start_matches(':').trim().parse().unwrap()
}

#[test]
fn a7_redis_killed_flushed_and_back_changes_no_answer() {
    each_store(|place| {
        let mut redis = redis();
        let gateway = behind(&redis, place);
        assert_eq!(send(&gateway, "evt_1"), "accepted");
        wait_until("Redis to remember", || remembered(&redis) == 1);
        assert_eq!(send(&gateway, "evt_1"), "duplicate");
        assert_eq!(gateway.metric("sekisho_gate_hints_total", &[]), 1);
        assert_eq!(gateway.metric("sekisho_gate_confirmed_total", &[]), 1);

        redis.flush().unwrap();
        assert_eq!(send(&gateway, "evt_1"), "duplicate");
        assert_eq!(gateway.metric("sekisho_gate_hints_total", &[]), 1, "the database found it, not the gate");
        assert_eq!(send(&gateway, "evt_2"), "accepted");

        redis.stop();
        for (id, outcome) in [("evt_1", "duplicate"), ("evt_2", "duplicate"), ("evt_3", "accepted")] {
            assert_eq!(send(&gateway, id), outcome);
        }
        assert_eq!(gateway.get("/health/ready").status, 200, "without Redis it is slower, not ill");

        redis.start_again().unwrap();
        let mut n = 3;
        wait_until("Redis to be used again", || {
            n += 1;
            assert_eq!(send(&gateway, &format!("evt_{n}")), "accepted");
            remembered(&redis) > 0
        });
        assert_eq!(gateway.event_ids().len(), n);
    });
}

#[test]
fn a7_nodes_share_what_redis_remembers() {
    let (redis, place) = (redis(), Place::postgres());
    let (one, two) = (behind(&redis, &place), behind(&redis, &place));
    assert_eq!(send(&one, "evt_1"), "accepted");
    wait_until("Redis to remember", || remembered(&redis) == 1);
    assert_eq!(send(&two, "evt_1"), "duplicate");
    assert_eq!(two.metric("sekisho_gate_confirmed_total", &[]), 1);
}

#[test]
fn a7_an_older_database_under_a_newer_redis_loses_nothing() {
    each_store(|place| {
        let redis = redis();
        let mut gateway = behind(&redis, place);
        assert_eq!(send(&gateway, "evt_before"), "accepted");
        assert!(gateway.server.terminate().unwrap().success());
        let backup = Backup::of(place);
        gateway.server.start_again().unwrap();
        assert_eq!(send(&gateway, "evt_after"), "accepted");
        wait_until("Redis to remember", || remembered(&redis) == 2);
        drop(gateway);

        // The disk failed; the operator restores yesterday's copy. Redis still knows of an event that is gone.
        let restored = backup.restore();
        let gateway = behind(&redis, &restored);
        assert_eq!(send(&gateway, "evt_after"), "accepted", "Redis is wrong, and the database is asked");
        assert_eq!(gateway.metric("sekisho_gate_hints_total", &[]), 1);
        assert_eq!(gateway.metric("sekisho_gate_confirmed_total", &[]), 0);
        assert_eq!(send(&gateway, "evt_after"), "duplicate");
        assert_eq!(send(&gateway, "evt_before"), "duplicate");
        assert_eq!(gateway.event_ids(), ["evt_after", "evt_before"]);
    });
}

/// A copy of a store that nobody serves at the moment.
enum Backup {
    File(Place),
    Database(Place),
}

impl Backup {
    fn of(place: &Place) -> Self {
        if place.is_sqlite() {
            let copy = Place::sqlite();
            std::fs::copy(place.file(), copy.file()).unwrap();
            return Self::File(copy);
        }
        let copy = Place::postgres();
        let server = sekisho_lab::postgres::shared().unwrap();
        server.drop_database(copy.database()).unwrap();
        server
            .psql(&format!("CREATE DATABASE \"{}\" TEMPLATE \"{}\"", copy.database(), place.database()))
            .unwrap();
        Self::Database(copy)
    }

    fn restore(self) -> Place {
        match self {
            Self::File(place) | Self::Database(place) => place,
        }
    }
}

/// Every event three times in a row.
struct Thrice(Provider);

impl Traffic for Thrice {
    fn write(&self, n: u64, request: &mut Vec<u8>) {
        self.0.event(&self.event_id(n)).write(request);
    }

    fn event_id(&self, n: u64) -> String {
        format!("evt_{:08}", n / 3)
    }
}

#[test]
fn a7_redis_troubled_under_load_doubles_and_loses_nothing() {
    each_store(|place| {
        let mut rng = sekisho_lab::rng::Rng::new(seed("redis troubled"));
        let mut redis = redis();
        let gateway = behind(&redis, place);
        let load = Load {
            connections: 12,
            duration: Duration::from_mins(2),
            ledger: Recording::Memory,
            ..Load::new(gateway.address())
        };
        let stop = Arc::clone(&load.stop);
        let running = std::thread::spawn(move || load.run_blocking(Arc::new(Thrice(Provider::stripe()))));
        for _ in 0..6 {
            let before = gateway.metric("sekisho_requests_total", &["accepted"]);
            match rng.below(3) {
                0 => redis.stop(),
                1 => drop(redis.flush()),
                _ => redis.restart().unwrap(),
            }
            let enough = before + 20 + rng.below(60);
            wait_until("events to flow on", || {
                gateway.metric("sekisho_requests_total", &["accepted"]) >= enough
            });
        }
        stop.store(true, Ordering::Relaxed);
        let report = running.join().unwrap();
        assert_eq!(report.refusals() + report.unknown, 0, "{report}");
        let mut ids = report.ledger.acknowledged;
        ids.sort();
        ids.dedup();
        assert_eq!(gateway.event_ids(), ids);
        assert_eq!(gateway.metric("sekisho_requests_total", &["accepted"]), ids.len() as u64);
    });
}
