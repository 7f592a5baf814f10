//! H3, H4: what goes wrong is told to a chat room once, with what to do, and told to be over; targets and figures survive
//! restarts and add up over nodes.

mod figures;
mod nodes;

use std::fmt::Write as _;
use std::time::Duration;

use sekisho_core::change::ChangeSet;
use sekisho_core::meter::{Meter, hour_key};
use sekisho_core::state::Write;
use sekisho_core::time::{HOUR_MS, hour_of};
use sekisho_lab::app::{Behaviour, DemoApp};
use sekisho_lab::chat::{Chat, SLACK_PATH};
use sekisho_lab::postgres::Postgres;
use sekisho_lab::smtp::{Point, Smtp, SmtpBehaviour};
use sekisho_lab::stripe::{self, Stripe, StripeFault};
use sekisho_store::Access;

use super::delivery::event;
use super::notices::{FAST, RECEIPT, mail, paid};
use crate::support::{Gateway, Place, Provider, each_store, route_to, runtime, stripe_source, wait_until};

/// A chat room that hears of alerts, which are looked at every second with shortened windows.
fn watched(chat: &Chat, divisor: u32, alerts: &str) -> String {
    let url = format!("{}{SLACK_PATH}", chat.url());
    format!(
        "[notifications]\nalerts = \"ops\"\nlanguage = \"en\"\noperators = [\"ops@example.jp\"]\n\
         [alerts]\nevery = \"1s\"\ndivisor = {divisor}\n{alerts}\n\
         [[channel]]\nname = \"ops\"\nkind = \"slack\"\nurl = \"{url}\"\nallow_private = true\nspacing = \"1ms\"\n"
    )
}

/// How often the room heard a message with this title.
fn heard(chat: &Chat, title: &str) -> usize {
    let texts = chat.received().into_iter().filter(|got| got.taken);
    let texts = texts.map(|got| got.json()["text"].as_str().unwrap_or_default().to_owned());
    texts.filter(|text| text.trim_start_matches("[Action needed] ") == title).count()
}

fn fires(chat: &Chat, title: &str) {
    wait_until(&format!("the room hears: {title}"), || heard(chat, title) == 1);
}

fn resolves(chat: &Chat, title: &str) {
    let over = format!("Resolved: {title}");
    wait_until(&format!("the room hears: {over}"), || heard(chat, &over) == 1);
    assert_eq!(heard(chat, title), 1, "{title} was told once");
}

/// Sends so many events of a name until something is so.
fn send_until(gateway: &Gateway, name: &str, is_so: impl Fn() -> bool) {
    let mut n = 0;
    wait_until(name, || {
        for _ in 0..25 {
            n += 1;
            gateway.send(&event(&format!("evt_{name}_{n}"), "charge.failed", ""));
        }
        is_so()
    });
}

#[test]
fn h4_dead_letters_are_told_with_what_to_do_silenced_tried_and_told_to_be_over() {
    each_store(|place| {
        let (chat, app) = (Chat::start().unwrap(), DemoApp::start(Behaviour::status(500)).unwrap());
        let config = watched(&chat, 300, "")
            + &stripe_source("")
            + &route_to("app", &app.url(), "retries = 0\nbreaker_failures = 0");
        let gateway = Gateway::with(place, &config);
        gateway.send(&event("evt_1", "charge.failed", ""));
        let title = "Dead letters wait: app";
        fires(&chat, title);
        let told = chat.received().into_iter().map(|got| got.json().to_string()).collect::<String>();
        for word in
            ["Read why they failed", "more than 0 dead letters wait", "/console/dead", "dead_letters/to:app"]
        {
            assert!(told.contains(word), "{word} in {told}");
        }
        gateway.type_in(&["alerts"]).done().mentions(&["dead_letters/to:app", "firing", "publish_failures"]);
        gateway.type_in(&["doctor"]).failed(1).mentions(&["Dead letters wait: app (1)"]);
        // Silenced, a second one is no news: not even that it doubled.
        let silence = ["alerts", "silence", "dead_letters/to:app", "--for", "1h", "--reason", "known"];
        gateway.type_in(&silence).done().mentions(&["Silenced dead_letters/to:app until"]);
        gateway.send(&event("evt_2", "charge.failed", ""));
        wait_until("two dead letters", || place.sql("SELECT count(*) FROM dead") == "2");
        std::thread::sleep(Duration::from_secs(3));
        assert_eq!(heard(&chat, &format!("Still: {title}")), 0);
        let silence = ["alerts", "silence", "dead_letters/to:app", "--for", "0m", "--reason", "over"];
        gateway.type_in(&silence).done().mentions(&["Ended the silence"]);
        wait_until("what still fires is told", || heard(&chat, &format!("Still: {title}")) == 1);
        // One of yesterday.
        place.sql("UPDATE dead SET at = at - 90000000");
        fires(&chat, "A dead letter has waited for too long");
        gateway.type_in(&["dead", "discard", "--all", "--yes", "--reason", "a story"]).done();
        resolves(&chat, title);
        resolves(&chat, "A dead letter has waited for too long");
        gateway.type_in(&["alerts", "test", "slow"]).done().mentions(&["Sent a trial by the channel ops"]);
        fires(&chat, "Trial, nothing is wrong: Events take too long: trial");
        gateway.type_in(&["alerts", "test", "nonsense"]).failed(1).mentions(&["there is no alert nonsense"]);
        gateway.type_in(&["audit", "list", "--json"]).done().mentions(&["alert.silenced", "alert.tried"]);
        gateway.type_in(&["audit", "verify"]).done();
    });
}

#[test]
fn h4_a_route_that_fails_is_told_and_told_to_be_over() {
    each_store(|place| {
        let (chat, app) = (Chat::start().unwrap(), DemoApp::start(Behaviour::status(500)).unwrap());
        let more = "breaker_failures = 0\nretry_first = \"200ms\"";
        let config = watched(&chat, 300, "") + &stripe_source("") + &route_to("app", &app.url(), more);
        let gateway = Gateway::with(place, &config);
        let title = "Too much work fails: app";
        send_until(&gateway, "bad", || heard(&chat, title) == 1);
        app.set(Behaviour::Ok);
        send_until(&gateway, "good", || heard(&chat, &format!("Resolved: {title}")) == 1);
        resolves(&chat, title);
    });
}

#[test]
fn h4_slow_and_late_work_is_told_and_told_to_be_over() {
    each_store(|place| {
        let chat = Chat::start().unwrap();
        let slow = || Behaviour::Delay(Duration::from_secs(4), Box::new(Behaviour::Ok));
        let app = DemoApp::start(slow()).unwrap();
        let config = watched(&chat, 100, "slow = \"3s\"\nlate = \"2s\"")
            + &stripe_source("")
            + &route_to("app", &app.url(), "concurrency = 4");
        let gateway = Gateway::with(place, &config);
        for n in 0..28 {
            gateway.send(&event(&format!("evt_{n}"), "charge.failed", ""));
        }
        fires(&chat, "Work waits for too long: app");
        app.set(Behaviour::Ok);
        resolves(&chat, "Work waits for too long: app");
        fires(&chat, "Events take too long: delivered");
        send_until(&gateway, "fast", || heard(&chat, "Resolved: Events take too long: delivered") == 1);
        resolves(&chat, "Events take too long: delivered");
    });
}

#[test]
fn h4_a_destination_that_is_down_or_never_answers_is_told_and_told_to_be_over() {
    each_store(|place| {
        let chat = Chat::start().unwrap();
        let mut down = DemoApp::start(Behaviour::Ok).unwrap();
        let mute = DemoApp::start(Behaviour::Silent).unwrap();
        let config = watched(&chat, 300, "stalled = \"3s\"\ndestination_down = \"1s\"")
            + &stripe_source("")
            + &route_to("down", &down.url(), "breaker_failures = 2\nretry_first = \"100ms\"")
            + &route_to("mute", &mute.url(), "concurrency = 1\ntimeout = \"12s\"");
        let gateway = Gateway::with(place, &config);
        down.crash();
        for n in 0..4 {
            gateway.send(&event(&format!("evt_{n}"), "charge.failed", ""));
        }
        fires(&chat, "A destination is down: down");
        fires(&chat, "Work runs and never ends: mute");
        gateway.type_in(&["doctor"]).failed(1).mentions(&["no answer at", "A destination is down: down"]);
        down.start_again().unwrap();
        mute.set(Behaviour::Ok);
        resolves(&chat, "A destination is down: down");
        resolves(&chat, "Work runs and never ends: mute");
    });
}

#[test]
fn h4_forged_requests_and_a_wrong_secret_are_told_and_told_to_be_over() {
    each_store(|place| {
        let chat = Chat::start().unwrap();
        let gateway = Gateway::with(place, &(watched(&chat, 100, "") + &stripe_source("")));
        let forged = Provider::new("stripe", "whsec_of_another_endpoint");
        let many = "Many requests are refused: stripe";
        let wrong = "Every request is refused: the secret is probably another endpoint's: stripe";
        let mut n = 0;
        wait_until("both are told", || {
            for _ in 0..25 {
                n += 1;
                assert_eq!(gateway.send(&forged.event(&format!("evt_{n}"))).status, 400);
            }
            heard(&chat, many) == 1 && heard(&chat, wrong) == 1
        });
        wait_until("one that is right is enough", || {
            n += 1;
            gateway.send(&event(&format!("evt_right_{n}"), "charge.failed", ""));
            heard(&chat, &format!("Resolved: {wrong}")) == 1
        });
        resolves(&chat, wrong);
        resolves(&chat, many);
    });
}

#[test]
fn h4_mails_that_fail_are_told_and_told_to_be_over() {
    each_store(|place| {
        let chat = Chat::start().unwrap();
        let refuse = SmtpBehaviour::say(Point::Recipient, "550 5.1.1 no such user");
        let smtp = Smtp::start(refuse).unwrap();
        let config = watched(&chat, 300, "off = [\"dead_letters*\"]")
            + &stripe_source("")
            + &mail(&smtp, FAST)
            + RECEIPT;
        let gateway = Gateway::with(place, &config);
        for n in 0..6 {
            gateway.send(&paid(&format!("bad{n}"), &format!("taro{n}@example.jp")));
        }
        fires(&chat, "Mails fail: mail");
        smtp.set(SmtpBehaviour::Accept);
        let mut n = 0;
        wait_until("it is over", || {
            n += 1;
            gateway.send(&paid(&format!("good{n}"), &format!("hanako{n}@example.jp")));
            std::thread::sleep(Duration::from_millis(300));
            heard(&chat, "Resolved: Mails fail: mail") == 1
        });
        resolves(&chat, "Mails fail: mail");
        assert_eq!(heard(&chat, "Dead letters wait: mail"), 0, "those are off");
    });
}

#[test]
fn h4_an_outage_of_the_database_is_told_when_it_is_back() {
    let server = Postgres::start().unwrap_or_else(|error| panic!("{error}"));
    let place = Place::on(&server);
    let chat = Chat::start().unwrap();
    // Each 503 comes soon, so that all of them lie within one shortened window.
    let soon = "[admission]\ndeadline = \"300ms\"\n";
    let config = watched(&chat, 100, "off = [\"slow*\"]") + soon + &stripe_source("");
    let gateway = Gateway::with(&place, &config);
    gateway.send(&event("evt_before", "charge.failed", ""));
    server.stop_immediate().unwrap();
    for n in 0..30 {
        assert_eq!(gateway.send(&event(&format!("evt_{n}"), "charge.failed", "")).status, 503);
    }
    server.start_again().unwrap();
    wait_until("ready again", || gateway.get("/health/ready").status == 200);
    let title = "Events could not be stored when they came";
    fires(&chat, title);
    send_until(&gateway, "good", || heard(&chat, &format!("Resolved: {title}")) == 1);
    resolves(&chat, title);
}

/// Five weeks of an hour like any other, up to the hour before the one that closed last; of it, so many.
fn put_hours_in(place: &Place, last: i64) {
    let end = hour_of(sekisho::now());
    let mut rows = String::new();
    for ago in 2..=5 * 168 + 24 {
        let hour = end.plus_ms(-ago * HOUR_MS).ms();
        let _ = write!(rows, "({hour}, 'stripe', 'charge.succeeded', 'success', 40),");
    }
    let hour = end.plus_ms(-HOUR_MS).ms();
    let _ = write!(rows, "({hour}, 'stripe', 'charge.succeeded', 'success', {last})");
    place.sql("DELETE FROM hourly");
    place.sql(&format!("INSERT INTO hourly (hour, source, type, status, events) VALUES {rows}"));
}

/// What the story puts in of the closed hour must stay: no hour ends, and none is counted (at five past), for a minute.
fn wait_for_a_quiet_time() {
    let second = || sekisho::now().seconds() % 3_600;
    while second() > 3_540 || (240..390).contains(&second()) {
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
}

#[test]
fn h4_an_hour_unlike_others_and_a_source_that_stops_are_told_and_told_to_be_over() {
    each_store(|place| {
        let chat = Chat::start().unwrap();
        let config = watched(&chat, 300, "silent = \"3s\"") + &stripe_source("");
        let mut gateway = Gateway::with(place, &config);
        gateway.send(&event("evt_1", "charge.failed", ""));
        fires(&chat, "No events arrive from a source: stripe");
        let mut n = 0;
        wait_until("it speaks again", || {
            n += 1;
            gateway.send(&event(&format!("evt_again_{n}"), "charge.failed", ""));
            heard(&chat, "Resolved: No events arrive from a source: stripe") >= 1
        });
        gateway.server.terminate().unwrap();
        wait_for_a_quiet_time();
        put_hours_in(place, 200);
        let closed = hour_of(sekisho::now()).plus_ms(-HOUR_MS);
        runtime().block_on(async {
            // What says that the hour was counted.
            let store = place.open(Access::Act).await;
            let key = hour_key(closed);
            let version = store.load(Vec::new(), vec![key.clone()]).await.unwrap().version(&key);
            let writes = vec![Write::of(&key, version, &Meter::default())];
            store.commit(vec![ChangeSet { writes, ..ChangeSet::nothing(closed) }]).await.unwrap();
        });
        gateway.server.start_again().unwrap();
        let title = "An unusual number of events: stripe/charge.succeeded";
        fires(&chat, title);
        gateway.server.terminate().unwrap();
        put_hours_in(place, 41);
        gateway.server.start_again().unwrap();
        resolves(&chat, title);
    });
}

#[test]
fn h4_a_source_that_cannot_be_compared_is_told_and_told_to_be_over() {
    each_store(|place| {
        let (chat, stripe) = (Chat::start().unwrap(), Stripe::start().unwrap());
        let api = format!("api_key = \"{}\"\napi_url = \"{}\"", stripe::KEY, stripe.url());
        let config =
            watched(&chat, 300, "") + "[reconcile]\nevery = \"2s\"\ngrace = \"0s\"\n" + &stripe_source(&api);
        let gateway = Gateway::with(place, &config);
        wait_until("a first run", || {
            !place.sql("SELECT 1 FROM state WHERE kind = 'reconciliation'").is_empty()
        });
        // The provider is out of order for a while.
        (0..15).for_each(|_| stripe.order_for("GET /v1/events", StripeFault::Error));
        let title = "A source could not be compared with its provider: stripe";
        fires(&chat, title);
        gateway.type_in(&["alerts", "--json"]).done().mentions(&["reconciliation/stripe"]);
        resolves(&chat, title);
    });
}
