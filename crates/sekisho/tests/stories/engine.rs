//! B: every job runs once in effect, survives any crash, and ends done or before a person.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sekisho_core::Time;
use sekisho_core::change::{Admission, Arrival, ChangeSet};
use sekisho_core::event::{Created, DedupeKey};
use sekisho_core::job::{DeadReason, End, Lease, Outcome};
use sekisho_core::time::{DAY_MS, hour_of};
use sekisho_lab::app::{Behaviour, DemoApp, Reply};
use sekisho_lab::process::ServerOptions;
use sekisho_store::Access;
use sekisho_store::conformance::Arrivals;

use crate::delivery::{came_to, event, route};
use crate::support::{Gateway, Place, Provider, Storm, each_store, stripe_source, together, wait_until};

fn config(routes: &[String]) -> String {
    stripe_source("") + &routes.concat()
}

fn unfinished(place: &Place) -> String {
    place.sql("SELECT count(*) FROM job WHERE kind <> 'timer'")
}

#[test]
fn b2_work_of_a_killed_process_is_done_by_the_next() {
    each_store(|place| {
        let app = DemoApp::start(Behaviour::Silent).unwrap();
        let mut gateway = Gateway::with(place, &config(&[route("app", &app, "")]));
        for n in 0..10 {
            assert_eq!(gateway.send(&event(&format!("evt_{n}"), "charge.failed", "")).status, 204);
        }
        wait_until("calls are under way", || app.counts().seen == 10);
        gateway.server.kill9();
        app.set(Behaviour::Ok);
        gateway.server.start_again().unwrap();
        // On PostgreSQL the dead node must first be seen to be dead.
        wait_until("all came", || app.counts().processed == 10);
        wait_until("and ended", || unfinished(place) == "0");
        assert!(app.ledger().doubled().is_empty(), "one message id per event");
        assert_eq!(place.sql("SELECT count(*) FROM dead"), "0");
        // The run that was cut off is no try of the four.
        assert_eq!(place.sql("SELECT DISTINCT attempts FROM outcome WHERE lane IS NOT NULL"), "2");
    });
}

#[test]
fn b2_an_event_that_kills_the_process_is_buried_and_its_neighbours_live() {
    // Every life of it is a crash: on PostgreSQL each would take the time that it takes to notice one. How crashes are
    // counted there is a promise of the store.
    let place = &Place::sqlite();
    let app = DemoApp::start(Behaviour::Ok).unwrap();
    let config = config(&[route("app", &app, "")]);
    let env = [("SEKISHO_FAULT_CRASH_ON", "poison")];
    let quiet = Gateway::started(&place.url, &config, &[], |options| ServerOptions {
        role: Some("gateway".into()),
        ..options
    });
    let mut quiet = quiet.unwrap();
    assert_eq!(quiet.send(&event("evt_bad", "poison", "")).status, 204);
    for n in 0..5 {
        assert_eq!(quiet.send(&event(&format!("evt_{n}"), "charge.failed", "")).status, 204);
    }
    quiet.server.terminate().unwrap();
    let started = Instant::now();
    let mut lives = 0;
    let mut server: Option<Gateway> = None;
    while place.sql("SELECT count(*) FROM dead") != "1" {
        assert!(started.elapsed() < Duration::from_mins(4) && lives < 40, "it was never buried");
        if server.as_mut().is_some_and(|living| living.server.exited().is_none()) {
            std::thread::sleep(Duration::from_millis(50));
        } else {
            lives += 1;
            server = Gateway::try_with(place, &config, &env).ok();
        }
    }
    assert_eq!(place.sql("SELECT reason, class FROM dead"), "crashed|terminal");
    wait_until("the others came", || app.counts().processed == 5);
    wait_until("and ended", || unfinished(place) == "0");
    assert!(lives >= 6, "{lives} lives");
    assert!(app.ledger().doubled().is_empty());
    if let Some(server) = server {
        let status = |id: &str| {
            let events = server.events();
            events.iter().find(|event| event["event_id"] == id).unwrap()["status"].clone()
        };
        assert_eq!((status("evt_bad"), status("evt_0")), ("failed".into(), "skipped".into()));
    }
}

#[test]
fn h5_a_stop_finishes_what_runs_and_hands_back_the_rest() {
    each_store(|place| {
        let app =
            DemoApp::start(Behaviour::Delay(Duration::from_millis(800), Box::new(Behaviour::Ok))).unwrap();
        let mut gateway = Gateway::with(place, &config(&[route("app", &app, "concurrency = 2")]));
        for n in 0..6 {
            assert_eq!(gateway.send(&event(&format!("evt_{n}"), "charge.failed", "")).status, 204);
        }
        wait_until("two are under way", || app.counts().seen == 2);
        assert!(gateway.server.terminate().unwrap().success());
        let owned = place.sql("SELECT count(*) FROM job WHERE owner IS NOT NULL");
        assert_eq!(owned, "0", "nothing is left leased");
        let done: u64 = place.sql("SELECT count(*) FROM outcome WHERE lane IS NOT NULL").parse().unwrap();
        assert_eq!(done, app.counts().processed, "what ran was finished and written down");
        assert!(done >= 2);
        gateway.server.start_again().unwrap();
        wait_until("all came", || app.counts().messages == 6);
        wait_until("and ended", || unfinished(place) == "0");
        assert_eq!(app.counts().processed, 6, "each once");
    });
}

#[test]
fn b2_two_nodes_share_the_work_and_a_gateway_hands_over_through_the_store() {
    let place = Place::postgres();
    let app = DemoApp::start(Behaviour::Ok).unwrap();
    let config = config(&[route("app", &app, "")]);
    let role = |role: &'static str| {
        Gateway::started(&place.url, &config, &[], move |options| ServerOptions {
            role: Some(role.into()),
            ..options
        })
        .unwrap()
    };
    let door = role("gateway");
    for n in 0..50 {
        assert_eq!(door.send(&event(&format!("evt_{n}"), "charge.failed", "")).status, 204);
    }
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(app.counts().seen, 0, "a gateway only receives");
    let workers = [role("worker"), role("worker")];
    wait_until("all came", || app.counts().processed == 50);
    for n in 50..150 {
        assert_eq!(door.send(&event(&format!("evt_{n}"), "charge.failed", "")).status, 204);
    }
    wait_until("all came", || app.counts().processed == 150);
    wait_until("and ended", || unfinished(&place) == "0");
    assert!(app.ledger().doubled().is_empty());
    assert_eq!(app.counts().seen, 150, "each once");
    drop(workers);
}

#[test]
fn b2_a_paused_node_wakes_and_writes_nothing_stale() {
    let place = Place::postgres();
    let app = DemoApp::start(Behaviour::Delay(Duration::from_secs(1), Box::new(Behaviour::Ok))).unwrap();
    let config = config(&[route("app", &app, "")]);
    let paused = Gateway::with(&place, &config);
    for n in 0..10 {
        assert_eq!(paused.send(&event(&format!("evt_{n}"), "charge.failed", "")).status, 204);
    }
    wait_until("calls are under way", || app.counts().seen == 10);
    paused.server.pause().unwrap();
    let other = Gateway::with(&place, &config);
    wait_until("the other does it", || unfinished(&place) == "0");
    paused.server.resume().unwrap();
    wait_until("it notices", || paused.server.log().contains("this node rejoined"));
    assert!(app.ledger().doubled().is_empty(), "the same message ids");
    assert_eq!(place.sql("SELECT count(*) FROM outcome WHERE lane IS NOT NULL"), "10");
    assert_eq!(paused.send(&event("evt_after", "charge.failed", "")).status, 204);
    wait_until("it works again", || app.ledger().received().iter().any(|one| one.event == "evt_after"));
    drop(other);
}

#[test]
fn b2_jobs_of_a_route_that_is_gone_come_before_a_person() {
    let place = Place::sqlite();
    let app = DemoApp::start(Behaviour::Answer(Reply::status(500))).unwrap();
    let slow = "retries = 9\nretry_first = \"1h\"\nretry_cap = \"2h\"";
    let mut gateway = Gateway::with(&place, &config(&[route("app", &app, slow)]));
    assert_eq!(gateway.send(&event("evt_1", "charge.failed", "")).status, 204);
    wait_until("it waits", || {
        place.sql("SELECT count(*) FROM job WHERE lane = 'to:app' AND owner IS NULL") == "1"
    });
    gateway.server.terminate().unwrap();
    // An hour passes, and a day.
    place.sql("UPDATE job SET due_at = due_at - 2 * 3600000 - 86400000 WHERE lane = 'to:app'");
    let _without = Gateway::open(&place);
    wait_until("it is buried", || place.sql("SELECT reason FROM dead") == "route_removed");
}

#[test]
fn b1_a_schedule_fires_once_for_each_moment_and_catches_up_once() {
    each_store(|place| {
        let app = DemoApp::start(Behaviour::Ok).unwrap();
        let tick = "[[schedule]]\nname = \"tick\"\ncron = \"* * * * * *\"\ntimezone = \"Asia/Tokyo\"\ndata = '{\"a\":1}'\n";
        let config = config(&[route("app", &app, "events = [\"schedule.*\"]")]) + tick;
        let mut gateway = Gateway::with(place, &config);
        wait_until("it fires", || app.counts().processed >= 3);
        let mut second = Gateway::try_with(place, &config, &[]);
        assert_eq!(second.is_err(), place.is_sqlite(), "SQLite serves one process");
        wait_until("it goes on", || app.counts().processed >= 6);
        if let Ok(second) = &mut second {
            second.server.terminate().unwrap();
        }
        // Just after a moment: the next one is planned, and not due yet.
        let before = app.counts().processed;
        wait_until("a moment", || app.counts().processed > before);
        gateway.server.terminate().unwrap();
        let moments = || {
            let ids = place.sql("SELECT event_id FROM event ORDER BY event_id");
            ids.lines().map(|id| id.strip_prefix("tick@").unwrap().to_owned()).collect::<Vec<_>>()
        };
        let last = moments().pop().unwrap();
        std::thread::sleep(Duration::from_secs(4));
        let back = sekisho::now().to_string();
        gateway.server.start_again().unwrap();
        let after = || moments().into_iter().filter(|moment| *moment > back).count();
        wait_until("it goes on", || after() >= 3);
        let missed: Vec<_> = moments().into_iter().filter(|one| *one > last && *one <= back).collect();
        assert_eq!(missed.len(), 1, "one for all between {last} and {back}: {missed:?}");
        wait_until("all came", || app.counts().processed as usize >= moments().len());
        let came = came_to(&app, "app");
        let mut due: Vec<String> = Vec::new();
        for one in &came {
            let body: serde_json::Value = serde_json::from_slice(&one.body).unwrap();
            let (due_at, fired_at) = (body["due_at"].as_str().unwrap(), body["fired_at"].as_str().unwrap());
            assert!(fired_at >= due_at, "never early: {body}");
            assert_eq!(body["data"]["a"], 1);
            due.push(due_at.to_owned());
        }
        due.sort();
        let fired = due.len();
        due.dedup();
        assert_eq!(due.len(), fired, "each moment once");
        assert!(app.ledger().doubled().is_empty());
    });
}

/// Events that came a hundred days ago, and one of today: with nothing new at all the clock would not be trusted.
async fn keep_old_events(place: &Place, created: Time) {
    let store = place.open(Access::Serve { allow_unsafe_durability: false }).await;
    let (now, old) = (sekisho::now(), sekisho::now().plus_ms(-100 * DAY_MS));
    let epoch = store.join(now).await.unwrap().epoch;
    let mut new = Arrivals::new(epoch.0);
    let is_signed = Some(Created { at: created, immutable: true });
    let ended = End::Done(Outcome::SUCCESS);
    for (id, at, end) in [
        ("evt_good", old, ended.clone()),
        ("evt_bad", old, End::Dead(DeadReason::terminal("no", "it can't be"))),
        ("evt_new", now, ended),
    ] {
        let key = DedupeKey::new("stripe", id, is_signed);
        let event =
            Arrival { key, source: "stripe".into(), created_at: Some(created), ..new.event_at(id, at) };
        let lease = Lease::born(event.seq, epoch);
        assert_eq!(store.admit(Arc::new([event]), Some(epoch)).await.unwrap(), [Admission::Admitted]);
        store.commit(vec![ChangeSet::end(lease, end, at)]).await.unwrap();
    }
    store.count_hour(hour_of(old)).await.unwrap();
    store.leave(epoch).await.unwrap();
}

#[test]
fn b6_what_was_kept_long_enough_goes_by_the_clock_and_what_needs_a_person_stays() {
    each_store(|place| {
        let created = sekisho::now();
        crate::support::runtime().block_on(keep_old_events(place, created));
        let gateway = Gateway::with(place, &config(&[]));
        let outcome = |id: &str| {
            let body = format!(r#"{{"id":"{id}","type":"charge.failed","created":{}}}"#, created.seconds());
            let answer = gateway.send(&Provider::stripe().body(&body));
            answer.header("sekisho-outcome").map(str::to_owned)
        };
        assert_eq!(outcome("evt_good").as_deref(), Some("duplicate"), "it is still there");
        // The timer is planned for the next hour; that hour comes.
        let forget = "kind = 'timer' AND payload LIKE '%forget%'";
        wait_until("it is planned", || place.sql(&format!("SELECT count(*) FROM job WHERE {forget}")) == "1");
        place.sql(&format!("UPDATE job SET due_at = due_at - 2 * 3600000 WHERE {forget}"));
        wait_until("it goes", || {
            place.sql("SELECT event_id FROM event ORDER BY event_id") == "evt_bad\nevt_new"
        });
        wait_until("it is noted", || {
            place.sql("SELECT count(*) FROM outcome WHERE note = '1 events deleted'") == "1"
        });
        assert_eq!(place.sql("SELECT count(*) FROM dedupe"), "2");
        assert_eq!(place.sql("SELECT count(*) FROM dead"), "1");
        assert_eq!(place.sql("SELECT sum(events) FROM hourly WHERE status IN ('success', 'failed')"), "2");
        // What is gone may come again; what stays is a duplicate.
        assert_eq!(outcome("evt_good").as_deref(), Some("accepted"));
        assert_eq!(outcome("evt_good").as_deref(), Some("duplicate"));
        assert_eq!(outcome("evt_bad").as_deref(), Some("duplicate"));
        assert_eq!(outcome("evt_new").as_deref(), Some("duplicate"));
    });
}

/// Every start takes a number, and an id has room for 1,024 of them: the next start would have had this node's.
#[test]
fn b2_two_nodes_whose_epochs_would_be_1024_apart_share_no_id() {
    let place = Place::postgres();
    let app = DemoApp::start(Behaviour::Ok).unwrap();
    let config = config(&[route("app", &app, "")]);
    let first = Gateway::with(&place, &config);
    let epoch: i64 = place.sql("SELECT epoch FROM node").parse().unwrap();
    place.sql(&format!("ALTER TABLE node ALTER COLUMN epoch RESTART WITH {}", epoch + 1_024));
    let second = Gateway::with(&place, &config);
    let numbers = place.sql("SELECT count(DISTINCT epoch % 1024), max(epoch) - min(epoch) >= 1024 FROM node");
    assert_eq!(numbers, "2|t");

    let nodes = [&first, &second];
    let storms: Vec<_> = nodes.iter().map(|node| Storm::start(node.address(), 16)).collect();
    for node in nodes {
        wait_until("a thousand events", || node.metric("sekisho_requests_total", &["accepted"]) >= 1_000);
    }
    let reports: Vec<_> = storms.into_iter().map(Storm::stop).collect();
    for report in &reports {
        assert!(report.statuses.keys().all(|status| *status == 204), "{report}");
    }
    let report = together(reports);
    first.check_ledger(&report);
    wait_until("all came", || unfinished(&place) == "0");
    assert_eq!(place.sql("SELECT count(*) FROM dead"), "0");
    assert_eq!(app.counts().messages, report.ledger.acknowledged.len() as u64);
}
