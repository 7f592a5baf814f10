//! Bugs that other queues really had, and that must not be ours. Each names where it happened.

use std::time::Duration;

use sekisho_lab::app::{Behaviour, DemoApp};
use sekisho_lab::postgres::Postgres;

use crate::delivery::{event, route};
use crate::support::{Gateway, Place, stripe_source, wait_until};

fn config(app: &DemoApp, more: &str) -> String {
    stripe_source("") + &route("app", app, more)
}

/// svix-webhooks #2181: a request that takes longer than the lease is sent a second time by somebody else. Here a lease
/// lasts as long as its node beats, and a node that was silent for ten seconds is given up.
#[test]
fn b2_a_call_longer_than_a_lease_is_not_taken_over_while_its_node_lives() {
    let place = Place::postgres();
    let app = DemoApp::start(Behaviour::Delay(Duration::from_secs(15), Box::new(Behaviour::Ok))).unwrap();
    let config = config(&app, "timeout = \"1m\"");
    let nodes = [Gateway::with(&place, &config), Gateway::with(&place, &config)];
    assert_eq!(nodes[0].send(&event("evt_long", "charge.failed", "")).status, 204);
    wait_until("it ends", || place.sql("SELECT count(*) FROM outcome WHERE lane IS NOT NULL") == "1");
    assert_eq!(app.counts().seen, 1, "called once");
    assert_eq!(place.sql("SELECT attempts FROM outcome WHERE lane IS NOT NULL"), "1");
    assert_eq!(place.sql("SELECT count(*) FROM node WHERE ended IS NULL"), "2", "and both lived through it");
}

/// river #1258: jobs that count as running for months, because nobody has them. Whatever is owned is owned by a node
/// that lives, also when all that happens is that another one died.
#[test]
fn b2_no_job_is_owned_longer_than_its_node_lives() {
    let place = Place::postgres();
    let app = DemoApp::start(Behaviour::Silent).unwrap();
    let config = config(&app, "timeout = \"5m\"");
    let mut dying = Gateway::with(&place, &config);
    for n in 0..10 {
        assert_eq!(dying.send(&event(&format!("evt_{n}"), "charge.failed", "")).status, 204);
    }
    wait_until("calls are under way", || app.counts().seen == 10);
    let dead = place.sql("SELECT DISTINCT owner FROM job WHERE lane = 'to:app'");
    dying.server.kill9();
    // It has nothing else to do, and nobody calls it.
    let living = Gateway::with(&place, &config);
    wait_until("nothing is the dead one's", || {
        place.sql(&format!("SELECT count(*) FROM job WHERE owner = {dead}")) == "0"
    });
    wait_until("all are called again", || app.counts().seen == 20);
    let owners = "SELECT owner, (SELECT beat FROM node WHERE epoch = owner), count(*) FROM job \
                  WHERE lane = 'to:app' GROUP BY owner";
    let beat = || {
        let row = place.sql(owners);
        let words: Vec<i64> =
            row.split('|').map(|word| word.parse().unwrap_or_else(|_| panic!("{row}"))).collect();
        assert_eq!(words[2], 10, "all of them, and one owner: {row}");
        words[1]
    };
    let first = beat();
    wait_until("their owner goes on beating", || beat() > first);
    drop(living);
}

/// good_job #90: the database restarts, advisory locks are gone with their sessions, and what runs is begun a second
/// time. Here a lease is a row.
#[test]
fn b2_a_database_that_restarts_sets_nothing_free_that_runs() {
    let server = Postgres::start().unwrap_or_else(|error| panic!("{error}"));
    let place = Place::on(&server);
    let sql = |query: &str| server.psql_in(place.database(), query).unwrap();
    let app = DemoApp::start(Behaviour::Delay(Duration::from_secs(8), Box::new(Behaviour::Ok))).unwrap();
    let config = config(&app, "");
    let nodes = [Gateway::with(&place, &config), Gateway::with(&place, &config)];
    for n in 0..5 {
        assert_eq!(nodes[0].send(&event(&format!("evt_{n}"), "charge.failed", "")).status, 204);
    }
    wait_until("calls are under way", || app.counts().seen == 5);
    server.stop_immediate().unwrap();
    wait_until("both miss it", || nodes.iter().all(|node| node.get("/health/ready").status == 503));
    server.start_again().unwrap();
    wait_until("all ended", || sql("SELECT count(*) FROM outcome WHERE lane IS NOT NULL") == "5");
    assert_eq!(app.counts().seen, 5, "each called once");
    assert_eq!(sql("SELECT DISTINCT attempts FROM outcome WHERE lane IS NOT NULL"), "1");
}

/// recall.ai, July 2025: NOTIFY takes a lock of the whole server at every commit. And good_job #90 again: locks that
/// sessions hold carry nothing. The server itself writes down what it was asked.
#[test]
fn a6_no_statement_notifies_or_holds_a_lock_of_its_session() {
    let server = Postgres::start().unwrap_or_else(|error| panic!("{error}"));
    let place = Place::on(&server);
    server.psql(&format!("ALTER DATABASE \"{}\" SET log_statement = 'all'", place.database())).unwrap();
    let app = DemoApp::start(Behaviour::Ok).unwrap();
    let tick = "[[schedule]]\nname = \"tick\"\ncron = \"* * * * * *\"\n";
    let config = config(&app, "fifo = \"event.type\"") + tick;
    let mut nodes = [Gateway::with(&place, &config), Gateway::with(&place, &config)];
    for n in 0..20 {
        assert_eq!(nodes[n % 2].send(&event(&format!("evt_{n}"), "charge.failed", "")).status, 204);
    }
    wait_until("all came, and the clock struck", || app.counts().processed >= 22);
    for node in &mut nodes {
        node.server.terminate().unwrap();
    }

    let asked = statements(&server.log());
    for verb in ["INSERT INTO event", "UPDATE job SET owner", "UPDATE node SET beat", "pg_advisory_xact_lock"]
    {
        assert!(asked.iter().any(|one| one.contains(verb)), "{verb} was not written down: {asked:#?}");
    }
    for one in &asked {
        let words = one.to_lowercase();
        let first = words.split_whitespace().next().unwrap_or_default();
        assert!(!["listen", "notify", "unlisten"].contains(&first) && !words.contains("pg_notify"), "{one}");
        assert!(!words.contains("advisory_lock"), "held beyond its transaction: {one}");
        // Where one saves nodes from racing, nothing is admitted, claimed or ended.
        let works = ["into event", "update job", "into outcome", "into dedupe"];
        let safe = !words.contains("advisory") || works.iter().all(|work| !words.contains(work));
        assert!(safe, "an advisory lock around work: {one}");
    }
    let hidden = "SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal";
    assert_eq!(server.psql_in(place.database(), hidden).unwrap(), "0", "nor does a trigger do it");
}

/// The statements in a server's log, without their parameters. Further lines of one begin with a tab.
fn statements(log: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut inside = false;
    for line in log.lines() {
        if inside && line.starts_with('\t') {
            let last = found.last_mut().expect("it began");
            last.push(' ');
            last.push_str(line.trim());
            continue;
        }
        let begins = line.split_once("LOG:  ").and_then(|(_, said)| {
            let (how, statement) = said.split_once(": ")?;
            (how == "statement" || how.starts_with("execute ")).then(|| statement.trim().to_owned())
        });
        inside = begins.is_some();
        found.extend(begins);
    }
    found
}
