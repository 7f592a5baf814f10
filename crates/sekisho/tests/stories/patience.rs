//! C2, C4: an app that is away for a while loses nothing, nobody has to do anything about it, and operators hear of it.

use std::time::Duration;

use sekisho_lab::app::{Behaviour, DemoApp, Reply};
use sekisho_lab::chat::{Chat, SLACK_PATH};
use serde_json::Value;

use super::delivery::{came_to, event, route};
use crate::support::{Gateway, Place, each_store, stripe_source, wait_until};

/// One retry, at once: what fails twice is dead.
const QUICK: &str = "retries = 1\nretry_first = \"20ms\"\n";

fn gateway(place: &Place, app: &DemoApp, more: &str) -> Gateway {
    Gateway::with(place, &(stripe_source("") + &route("app", app, more)))
}

fn send(gateway: &Gateway, n: usize) {
    assert_eq!(gateway.send(&event(&format!("evt_{n}"), "payment_intent.succeeded", "")).status, 204);
}

fn dead(place: &Place) -> usize {
    place.sql("SELECT count(*) FROM dead WHERE lane = 'to:app'").parse().unwrap()
}

fn delivered(place: &Place) -> usize {
    let sql = "SELECT count(*) FROM outcome WHERE lane = 'to:app' AND result = 'success'";
    place.sql(sql).parse().unwrap()
}

/// How often a letter was taken out of the dead letters, and by whom.
fn retried(place: &Place) -> String {
    place.sql(
        "SELECT actor, role, count(*) FROM audit WHERE action = 'dead_letter.retried' GROUP BY actor, role",
    )
}

fn shown(gateway: &Gateway, words: &[&str]) -> Vec<Value> {
    gateway.type_in(&[words, &["--json"]].concat()).done().lines()
}

#[test]
fn c2_an_app_that_is_away_for_minutes_loses_nothing() {
    each_store(|place| {
        let mut app = DemoApp::start(Behaviour::Ok).unwrap();
        let gateway = gateway(place, &app, &format!("{QUICK}retry_dead_every = \"1s\""));
        app.crash();
        for n in 0..10 {
            send(&gateway, n);
            std::thread::sleep(Duration::from_millis(100));
        }
        wait_until("nearly all have failed for good", || dead(place) >= 9);
        app.start_again().unwrap();
        // No event comes any more, and no person does anything.
        wait_until("all are delivered", || delivered(place) == 10);
        assert_eq!(dead(place), 0, "none needs a person");
        assert_eq!(came_to(&app, "app").len(), app.counts().processed as usize);
        assert!(app.ledger().doubled().is_empty());
        assert!(retried(place).starts_with("sekisho|system|"), "{}", retried(place));
    });
}

#[test]
fn c2_transient_dead_letters_come_back() {
    each_store(|place| {
        let app = DemoApp::start(Behaviour::Answer(Reply::status(503))).unwrap();
        let gateway = gateway(place, &app, QUICK);
        (0..15).for_each(|n| send(&gateway, n));
        wait_until("all have failed for good", || dead(place) == 15);
        let letters = shown(&gateway, &["dead", "list"]);
        let next = letters[0]["next_try_at"].as_str().expect("it is tried again within the hour");
        assert!(next > &*sekisho::now().to_string() && next.ends_with(":00:00.000Z"), "{next}");
        assert_eq!(shown(&gateway, &["events", "list", "--delivery", "failed"]).len(), 15);

        app.set(Behaviour::Ok);
        send(&gateway, 15);
        wait_until("the answer to another event brings them back", || delivered(place) == 16);
        assert_eq!(dead(place), 0);
        assert_eq!(retried(place), "sekisho|system|15", "each once");
        let notes =
            place.sql("SELECT note FROM outcome WHERE lane = 'timer' AND note LIKE '%retried' ORDER BY at");
        assert_eq!(notes, "1 dead letters retried\n10 dead letters retried\n4 dead letters retried");
        let events = shown(&gateway, &["events", "list", "--delivery", "delivered", "--limit", "0"]);
        assert_eq!(events.len(), 16);
        assert_eq!(events[0]["deliveries"]["status"], "delivered");
    });
}

#[test]
fn c2_a_probe_spends_no_try() {
    each_store(|place| {
        let app = DemoApp::start(Behaviour::Answer(Reply::status(500))).unwrap();
        let more = "breaker_failures = 1\nbreaker_open = \"100ms\"\nbreaker_open_max = \"100ms\"\n";
        let gateway = gateway(place, &app, &format!("{QUICK}{more}"));
        send(&gateway, 1);
        wait_until("it was probed more often than it has tries", || came_to(&app, "app").len() >= 6);
        assert_eq!(dead(place), 0, "it waits");
        app.set(Behaviour::Ok);
        wait_until("it is delivered", || delivered(place) == 1);
        assert_eq!(place.sql("SELECT count(*) FROM audit WHERE action LIKE 'dead_letter.%'"), "0");
    });
}

#[test]
fn c2_a_refusal_stays_dead() {
    each_store(|place| {
        let never = Reply::status(489).with_header("Upstash-NonRetryable-Error", "true");
        let app = DemoApp::start(Behaviour::Answer(never)).unwrap();
        let gateway = gateway(place, &app, &format!("{QUICK}retry_dead_every = \"1s\""));
        send(&gateway, 1);
        wait_until("the app refuses it", || dead(place) == 1);
        app.set(Behaviour::Ok);
        send(&gateway, 2);
        wait_until("another is delivered", || delivered(place) == 1);
        let waves =
            || place.sql("SELECT count(*) FROM outcome WHERE lane = 'timer'").parse::<usize>().unwrap();
        let before = waves();
        wait_until("several waves passed", || waves() >= before + 2);
        assert_eq!((dead(place), retried(place)), (1, String::new()));
        assert_eq!(shown(&gateway, &["dead", "list"])[0]["next_try_at"], Value::Null);
        assert_eq!(came_to(&app, "app").len(), 2);
    });
}

#[test]
fn c2_retry_dead_can_be_switched_off() {
    let place = Place::sqlite();
    let app = DemoApp::start(Behaviour::Answer(Reply::status(500))).unwrap();
    let gateway = gateway(&place, &app, &format!("{QUICK}retry_dead = \"0s\"\nretry_dead_every = \"1s\""));
    send(&gateway, 1);
    wait_until("it failed for good", || dead(&place) == 1);
    assert_eq!(shown(&gateway, &["dead", "list"])[0]["next_try_at"], Value::Null);
    app.set(Behaviour::Ok);
    send(&gateway, 2);
    wait_until("another is delivered", || delivered(&place) == 1);
    std::thread::sleep(Duration::from_millis(2_500));
    assert_eq!((dead(&place), retried(&place)), (1, String::new()));
}

#[test]
fn c2_a_wave_stops_at_the_first_that_fails() {
    each_store(|place| {
        let app = DemoApp::start(Behaviour::Answer(Reply::status(500))).unwrap();
        let gateway =
            gateway(place, &app, &format!("{QUICK}breaker_failures = 0\nretry_dead_every = \"2s\""));
        (0..20).for_each(|n| send(&gateway, n));
        let notes = "SELECT note FROM outcome WHERE lane = 'timer' AND note LIKE '%retried'";
        wait_until("three waves passed", || place.sql(notes).lines().count() >= 3);
        assert!(
            place.sql(notes).lines().all(|note| note == "1 dead letters retried"),
            "{}",
            place.sql(notes)
        );
        let most = "SELECT count(*) FROM audit WHERE action = 'dead_letter.retried' GROUP BY target_id ORDER BY 1 DESC LIMIT 1";
        assert_eq!(place.sql(most), "1", "they take turns");
    });
}

#[test]
fn c2_two_nodes_bring_a_letter_back_once() {
    let place = Place::postgres();
    let app = DemoApp::start(Behaviour::Answer(Reply::status(503))).unwrap();
    let nodes = [gateway(&place, &app, QUICK), gateway(&place, &app, QUICK)];
    (0..30).for_each(|n| send(&nodes[n % 2], n));
    wait_until("all have failed for good", || dead(&place) == 30);
    app.set(Behaviour::Ok);
    (30..40).for_each(|n| send(&nodes[n % 2], n));
    // A shop sells on, and each node hears from its destination.
    let mut n = 40;
    wait_until("all come back", || {
        send(&nodes[n % 2], n);
        n += 1;
        std::thread::sleep(std::time::Duration::from_millis(300));
        dead(&place) == 0
    });
    wait_until("all are delivered", || delivered(&place) == n);
    assert_eq!((dead(&place), retried(&place)), (0, "sekisho|system|30".to_owned()));
    assert!(app.ledger().doubled().is_empty());
}

#[test]
fn c4_open_since_is_the_first_failure_and_what_waits_says_for_what() {
    each_store(|place| {
        let mut app = DemoApp::start(Behaviour::Ok).unwrap();
        let more = "breaker_failures = 2\nbreaker_open = \"200ms\"\nbreaker_open_max = \"400ms\"\nretries = 5\nretry_first = \"50ms\"";
        let gateway = gateway(place, &app, more);
        app.crash();
        let began = sekisho::now();
        send(&gateway, 1);
        let breaker = || shown(&gateway, &["routes", "list"]).remove(0);
        wait_until("it is paused", || breaker()["breaker"] == "open");
        let since = breaker()["open_since"].clone();
        let probes = || place.sql("SELECT count(*) FROM attempt").parse::<usize>().unwrap();
        let before = probes();
        wait_until("it was probed three times", || probes() >= before + 3);
        assert_eq!(breaker()["open_since"], since, "a probe does not move it");
        assert!(since.as_str().unwrap() >= &*began.to_string(), "{since}");
        let waiting = shown(&gateway, &["deliveries", "list", "--route", "app", "--status", "waiting"]);
        assert_eq!(waiting[0]["outage"]["route"], "app", "{waiting:?}");
        assert_eq!(waiting[0]["outage"]["since"], since);
        let id = waiting[0]["id"].as_str().unwrap();
        gateway.type_in(&["messages", "show", id]).done().mentions(&["waits for app (down for"]);
        gateway.type_in(&["deliveries", "list"]).done().mentions(&["waits for app (down for", "waiting"]);
        app.start_again().unwrap();
        wait_until("it is delivered", || delivered(place) == 1);
        wait_until("it is healthy", || breaker()["breaker"] == "closed");
        assert_eq!(breaker()["open_since"], Value::Null);
    });
}

#[test]
fn c2_operators_hear_of_paused_routes_and_dead_deliveries_once() {
    each_store(|place| {
        let chat = Chat::start().unwrap();
        let app = DemoApp::start(Behaviour::Answer(Reply::status(500))).unwrap();
        // Another destination hears of the trouble itself, and fails as well: that must not go round in circles.
        let circle = route("circle", &app, "sources = [\"sekisho\"]\nretries = 0\nbreaker_failures = 0");
        let more = format!(
            "{QUICK}breaker_failures = 9\nbreaker_open = \"200ms\"\nbreaker_open_max = \"200ms\"\nconcurrency = 1"
        );
        let slack = format!(
            "[[channel]]\nname = \"ops\"\nkind = \"slack\"\nurl = \"{}{SLACK_PATH}\"\nallow_private = true\n\
             [notifications]\nalerts = \"ops\"\nlanguage = \"en\"\n",
            chat.url()
        );
        let config = slack + &stripe_source("") + &route("app", &app, &more) + &circle;
        let gateway = Gateway::with(place, &config);
        // Nine failures over six events of two tries each: at least three are dead before it is paused.
        (0..6).for_each(|n| send(&gateway, n));
        let told = |kind: &str| -> usize {
            place.sql(&format!("SELECT count(*) FROM event WHERE type = '{kind}'")).parse().unwrap()
        };
        wait_until("the route is paused", || told("route.paused") == 1);
        app.set(Behaviour::Ok);
        wait_until("it is resumed, and all that waited is delivered", || {
            told("route.resumed") == 1 && delivered(place) == 6
        });
        let said =
            |text: &str| chat.received().iter().filter(|one| one.json().to_string().contains(text)).count();
        for text in
            ["its deliveries are paused", "Deliveries to a destination go on", "could not be delivered"]
        {
            wait_until(text, || said(text) >= 1);
        }
        let died = place.sql(
            "SELECT count(DISTINCT target_id) FROM audit WHERE action = 'dead_letter.created' AND details LIKE '%\"to:app\"%'",
        );
        assert_eq!(told("delivery.dead").to_string(), died, "each once, and none of an alert's own");
        assert_eq!((told("route.paused"), told("route.resumed")), (1, 1));
        assert_eq!(said("its deliveries are paused"), 1);
        assert_eq!(said("could not be delivered"), 1, "many at once are one message");
    });
}
