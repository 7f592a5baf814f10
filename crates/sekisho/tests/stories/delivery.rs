//! C: each event reaches the app as it was subscribed to, signed, retried as the answer says, and nowhere it must not.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use sekisho_core::delivery::address::is_public;
use sekisho_core::provider::{self, Request, Setup};
use sekisho_core::{Secret, Time};
use sekisho_lab::app::{Behaviour, DemoApp, Reply, SeenDelivery};
use sekisho_lab::process::ServerOptions;

use crate::support::{Gateway, Letter, Place, Provider, each_store, stripe_source, wait_until};

pub const APP_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A route to the lab's app, with whatever `more` says about it.
pub fn route(name: &str, app: &DemoApp, more: &str) -> String {
    let signing = if more.contains("signing") {
        String::new()
    } else {
        format!("signing = \"standard-webhooks\"\nsecrets = [\"{APP_SECRET}\"]\n")
    };
    format!(
        "[[route]]\nname = \"{name}\"\nurl = \"{}/{name}\"\nallow_private = true\n{signing}{more}\n",
        app.url()
    )
}

fn config(routes: &[String]) -> String {
    stripe_source("") + &routes.concat()
}

pub fn event(id: &str, kind: &str, more: &str) -> Letter {
    let created = sekisho::now().seconds();
    Provider::stripe().body(&format!(r#"{{"id":"{id}","type":"{kind}","created":{created}{more}}}"#))
}

/// What came to one path.
pub fn came_to(app: &DemoApp, path: &str) -> Vec<SeenDelivery> {
    app.received().into_iter().filter(|one| one.path == format!("/{path}")).collect()
}

#[test]
fn c1_an_event_reaches_every_route_that_wants_it_as_it_came() {
    each_store(|place| {
        let app = DemoApp::start(Behaviour::Ok).unwrap();
        let routes = [
            route("all", &app, ""),
            route("intents", &app, "events = [\"payment_intent.*\"]"),
            route("rich", &app, "filter = \"body.amount > 1000\""),
            route("others", &app, "sources = [\"github\"]"),
            route("wrapped", &app, "send = \"event\""),
        ];
        let gateway = Gateway::with(place, &config(&routes));
        let letter = event("evt_1", "payment_intent.succeeded", ",\"amount\":5000,\"note\":\"関所 \\u0000\"");
        assert_eq!(gateway.send(&letter).status, 204);
        assert_eq!(gateway.send(&letter).status, 204, "a duplicate");
        assert_eq!(gateway.send(&event("evt_2", "charge.failed", ",\"amount\":10")).status, 204);
        wait_until("all have what they want", || app.counts().processed == 6);
        std::thread::sleep(Duration::from_millis(300));
        let ids = |path| {
            let mut ids: Vec<_> = came_to(&app, path).into_iter().map(|one| one.event).collect();
            ids.sort();
            ids
        };
        assert_eq!(ids("all"), ["evt_1", "evt_2"]);
        assert_eq!(ids("intents"), ["evt_1"]);
        assert_eq!(ids("rich"), ["evt_1"]);
        assert_eq!(ids("others"), [""; 0]);
        let raw = &came_to(&app, "intents")[0];
        assert_eq!(raw.body, letter.body, "byte for byte");
        assert!(
            raw.headers.iter().any(|(name, value)| name == "content-type" && value == "application/json")
        );
        assert!(raw.headers.iter().any(|(name, _)| name == "stripe-signature"), "the provider's own headers");
        let wrapped = came_to(&app, "wrapped").into_iter().find(|one| one.event == "evt_1").unwrap();
        let envelope: serde_json::Value = serde_json::from_slice(&wrapped.body).unwrap();
        assert_eq!(
            (&envelope["type"], &envelope["source"], &envelope["data"]["amount"]),
            (&"payment_intent.succeeded".into(), &"stripe".into(), &5000.into())
        );
        assert!(app.ledger().doubled().is_empty());
        // The filter could not be answered for nobody's event: both have an amount.
        assert!(gateway.events().iter().all(|event| event["status"] == "skipped"), "{:?}", gateway.events());
    });
}

#[test]
fn c1_a_rule_that_cannot_be_answered_does_not_match_and_is_told() {
    let app = DemoApp::start(Behaviour::Ok).unwrap();
    let routes = [route("all", &app, ""), route("rich", &app, "filter = \"body.amount > 1000\"")];
    let place = Place::sqlite();
    let gateway = Gateway::with(&place, &config(&routes));
    gateway.send(&event("evt_1", "charge.failed", ""));
    wait_until("it came", || app.counts().processed == 1);
    let events = gateway.events();
    let note = events[0]["note"].as_str().unwrap();
    assert!(note.contains("route rich") && note.contains("amount"), "{note}");
    assert!(came_to(&app, "rich").is_empty());
}

#[test]
fn c2_the_answer_decides() {
    each_store(|place| {
        let never = Reply::status(489).with_header("Upstash-NonRetryable-Error", "true");
        let first = |requests, reply| Behaviour::FailFirst { requests, reply };
        let paths = vec![
            ("/twice".into(), first(2, Reply::status(500))),
            ("/always".into(), Behaviour::Answer(Reply::status(404).with_body("no such shop"))),
            ("/never".into(), Behaviour::Answer(never)),
            ("/plain489".into(), Behaviour::Answer(Reply::status(489))),
            ("/moved".into(), Behaviour::Answer(Reply::status(302).with_header("Location", "/all"))),
            ("/later".into(), first(1, Reply::status(503).with_header("Retry-After", "2"))),
        ];
        let app = DemoApp::start(Behaviour::Paths(paths, Box::new(Behaviour::Ok))).unwrap();
        let quick = "retries = 2\nretry_first = \"100ms\"";
        let names = ["twice", "always", "never", "plain489", "moved", "later"];
        let routes: Vec<_> = names.iter().map(|name| route(name, &app, quick)).collect();
        let gateway = Gateway::with(place, &config(&routes));
        gateway.send(&event("evt_1", "payment_intent.succeeded", ""));
        wait_until("four failed for good", || place.sql("SELECT count(*) FROM dead") == "4");
        wait_until("two went well", || {
            place.sql("SELECT count(*) FROM outcome WHERE lane IS NOT NULL") == "2"
        });
        let tries = |path| came_to(&app, path).len();
        assert_eq!(names.map(tries), [3, 3, 1, 3, 3, 2]);
        let dead = place.sql("SELECT lane, class, reason, attempts FROM dead ORDER BY lane");
        assert_eq!(
            dead,
            "to:always|transient|client_error|3\nto:moved|transient|redirect|3\nto:never|terminal|non_retryable|1\n\
             to:plain489|transient|client_error|3"
        );
        // Every attempt has its own number and one message id; the answer is kept.
        let twice = came_to(&app, "twice");
        assert_eq!(twice.iter().map(|one| one.attempt).collect::<Vec<_>>(), [1, 2, 3]);
        assert!(twice.iter().all(|one| one.message == twice[0].message));
        let body = if place.is_sqlite() { "CAST(body AS TEXT)" } else { "convert_from(body, 'UTF8')" };
        let kept = format!("SELECT DISTINCT status, {body} FROM attempt WHERE status = 404");
        assert_eq!(place.sql(&kept), "404|no such shop");
        // Retry-After is waited for.
        let later = came_to(&app, "later");
        assert!(later[1].at_ms - later[0].at_ms >= 2_000, "{later:?}");
        assert_eq!(gateway.events()[0]["status"], "failed");
        let failed = "SELECT count(*), min(event_id), min(class) FROM failed_webhook_events";
        assert_eq!(place.sql(failed), "4|evt_1|terminal");
    });
}

#[test]
fn c2_by_default_three_retries_after_one_two_and_four_seconds() {
    let app = DemoApp::start(Behaviour::Answer(Reply::status(500))).unwrap();
    let place = Place::sqlite();
    let gateway = Gateway::with(&place, &config(&[route("app", &app, "")]));
    gateway.send(&event("evt_1", "payment_intent.succeeded", ""));
    wait_until("it is dead", || place.sql("SELECT count(*) FROM dead") == "1");
    assert_eq!(came_to(&app, "app").len(), 4);
    // Each retry is planned for a time after its call ended, and said in the log no sooner than it was planned.
    let ended = place.sql("SELECT at + took_ms FROM attempt ORDER BY n");
    let ended: Vec<i64> = ended.lines().map(|ms| ms.parse().unwrap()).collect();
    let log = gateway.server.stderr();
    let said = log.lines().filter(|line| line.contains("it will be retried"));
    let said: Vec<serde_json::Value> = said.map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(said.len(), 3);
    for (n, wait) in [1_000, 2_000, 4_000].into_iter().enumerate() {
        let time = |name: &str| Time::parse_rfc3339(said[n][name].as_str().unwrap()).unwrap().ms();
        let next = time("next");
        assert!(next - ended[n] >= wait, "retry {} is planned {} ms later", n + 1, next - ended[n]);
        assert!(next - time("time") <= wait * 5 / 4, "{}", said[n]);
    }
}

#[test]
fn c3_every_signature_is_accepted_by_its_own_scheme() {
    let app = DemoApp::start(Behaviour::Ok).unwrap();
    let url = format!("{}/upstash", app.url());
    let routes = [
        route("standard", &app, &format!("signing = \"standard-webhooks\"\nsecrets = [\"{APP_SECRET}\"]")),
        route("stripe", &app, "signing = \"stripe\"\nsecrets = [\"whsec_app\"]"),
        route("upstash", &app, "signing = \"upstash\"\nsecrets = [\"sig_app\"]"),
        route("none", &app, "signing = \"none\""),
    ];
    let place = Place::sqlite();
    let gateway = Gateway::with(&place, &config(&routes));
    gateway.send(&event("evt_1", "payment_intent.succeeded", ""));
    wait_until("all came", || app.counts().processed == 4);
    let schemes = [
        ("standard", "standard_webhooks", APP_SECRET),
        ("stripe", "stripe", "whsec_app"),
        ("upstash", "qstash", "sig_app"),
    ];
    for (path, name, secret) in schemes {
        let setup =
            Setup { secrets: vec![Secret::new(secret)], public_url: Some(url.clone()), ..Setup::default() };
        let scheme = provider::find(name).unwrap().open(&setup).unwrap();
        let came = &came_to(&app, path)[0];
        let headers: http::HeaderMap = came
            .headers
            .iter()
            .map(|(name, value)| {
                (name.parse::<http::HeaderName>().unwrap(), http::HeaderValue::from_str(value).unwrap())
            })
            .collect();
        let check = |body: &[u8]| {
            let method = &http::Method::POST;
            let request = Request { method, headers: &headers, query: "", body, certificate: None };
            scheme.check(&request, sekisho::now())
        };
        assert_eq!(check(&came.body), Ok(()), "{path}");
        assert!(check(b"{}").is_err(), "{path}: another body");
        assert!(came.headers.iter().filter(|(name, _)| name == "stripe-signature").count() <= 1);
    }
}

#[test]
fn c4_a_slow_destination_holds_up_no_other_and_has_its_limit() {
    each_store(|place| {
        let slow = vec![("/slow".into(), Behaviour::Silent)];
        let app = DemoApp::start(Behaviour::Paths(slow, Box::new(Behaviour::Ok))).unwrap();
        let routes = [
            route("slow", &app, "concurrency = 2\ntimeout = \"20s\"\nretries = 0"),
            route("quick", &app, ""),
        ];
        let gateway = Gateway::with(place, &config(&routes));
        for n in 0..50 {
            assert_eq!(gateway.send(&event(&format!("evt_{n}"), "charge.failed", "")).status, 204);
        }
        wait_until("the quick one has all", || came_to(&app, "quick").len() == 50);
        assert_eq!(came_to(&app, "slow").len(), 2, "two at once, no more");
    });
}

#[test]
fn c4_deliveries_of_one_key_come_in_order_through_retries() {
    each_store(|place| {
        let parts = vec![(40, Behaviour::Answer(Reply::status(500)))];
        let app = DemoApp::start(Behaviour::Mix { seed: 7, parts }).unwrap();
        let more = "fifo = \"body.customer\"\nretries = 20\nretry_first = \"10ms\"\nretry_cap = \"20ms\"";
        let gateway = Gateway::with(place, &config(&[route("app", &app, more)]));
        for n in 0..40 {
            let customer = format!(",\"customer\":\"cus_{}\"", n % 3);
            assert_eq!(gateway.send(&event(&format!("evt_{n:02}"), "charge.failed", &customer)).status, 204);
        }
        wait_until("all were taken", || app.counts().processed == 40);
        for key in 0..3 {
            let taken: Vec<_> = came_to(&app, "app")
                .into_iter()
                .filter(SeenDelivery::is_processed)
                .map(|one| one.event)
                .filter(|id| id[4..].parse::<usize>().unwrap() % 3 == key)
                .collect();
            assert!(taken.is_sorted(), "{taken:?}");
        }
    });
}

/// Settled in one go, and about different things: some say something of a payment, some say nothing.
#[test]
fn c4_deliveries_of_one_key_come_in_order_after_a_backlog() {
    each_store(|place| {
        let app = DemoApp::start(Behaviour::Ok).unwrap();
        let config = config(&[route("app", &app, "fifo = \"body.customer\"")]);
        let gateway = |role: Option<&str>| {
            let role = role.map(str::to_owned);
            Gateway::started(&place.url, &config, &[], |options| ServerOptions { role, ..options }).unwrap()
        };
        let mut door = gateway(Some("gateway"));
        for n in 0..60 {
            let (kind, payment) = match n % 3 {
                0 => ("payment_intent.succeeded", n % 4),
                1 => ("payment_intent.processing", n % 4),
                _ => ("unheard.of", 0),
            };
            let object = format!(
                ",\"customer\":\"cus_1\",\"livemode\":false,\"data\":{{\"object\":{{\"object\":\"payment_intent\",\"id\":\"pi_{payment}\",\
                 \"amount\":100,\"amount_received\":100,\"currency\":\"jpy\",\"status\":\"succeeded\"}}}}"
            );
            assert_eq!(door.send(&event(&format!("evt_{n:02}"), kind, &object)).status, 204);
        }
        door.server.terminate().unwrap();
        let _all = gateway(None);
        wait_until("all were taken", || app.counts().processed == 60);
        let taken: Vec<_> = came_to(&app, "app").into_iter().map(|one| one.event).collect();
        assert!(taken.is_sorted(), "{taken:?}");
    });
}

#[test]
fn c4_a_breaker_opens_and_closes_by_itself_and_nothing_is_lost() {
    each_store(|place| {
        let app = DemoApp::start(Behaviour::Answer(Reply::status(503))).unwrap();
        let more = "breaker_failures = 5\nretries = 50\nretry_first = \"50ms\"\nretry_cap = \"100ms\"";
        let gateway = Gateway::with(place, &config(&[route("app", &app, more)]));
        for n in 0..20 {
            assert_eq!(gateway.send(&event(&format!("evt_{n}"), "charge.failed", "")).status, 204);
        }
        wait_until("it opens", || gateway.server.log().contains("the breaker of a route changed"));
        let state = "SELECT facts FROM state WHERE kind = 'breaker'";
        wait_until("it is written down", || place.sql(state).contains("open"));
        let before = app.counts().seen;
        std::thread::sleep(Duration::from_secs(1));
        assert!(app.counts().seen <= before + 20, "it is left alone");
        app.set(Behaviour::Ok);
        wait_until("all came", || app.counts().messages == 20 && app.counts().processed == 20);
        wait_until("it is closed", || place.sql(state).contains("closed"));
        assert_eq!(place.sql("SELECT count(*) FROM dead"), "0");
    });
}

#[test]
fn c5_nothing_is_sent_to_a_private_address_unless_it_is_allowed() {
    let app = DemoApp::start(Behaviour::Ok).unwrap();
    let place = Place::sqlite();
    // By address it is refused at start, and so is the one name that everybody knows; by any other name when it is called.
    let port = app.address().port();
    let open = |host: &str| {
        let url = format!("http://{host}:{port}/app");
        stripe_source("") + &format!("[[route]]\nname = \"app\"\nurl = \"{url}\"\nsigning = \"none\"\n")
    };
    for host in ["127.0.0.1", "localhost", "shop.localhost"] {
        let refused = Gateway::try_with(&place, &open(host), &[]).err().unwrap();
        assert!(refused.contains("allow_private"), "{refused}");
    }
    let gateway = Gateway::with(&place, &open(&private_name()));
    assert_eq!(gateway.send(&event("evt_1", "charge.failed", "")).status, 204);
    wait_until("it is refused", || place.sql("SELECT count(*) FROM dead") == "1");
    assert_eq!(place.sql("SELECT reason, class, attempts FROM dead"), "forbidden_address|terminal|1");
    assert_eq!(app.counts().seen, 0);
}

/// A name of this machine that is not `localhost`, by which it would find itself.
fn private_name() -> String {
    let hosts = std::fs::read_to_string("/etc/hosts").unwrap();
    let names = hosts.lines().flat_map(|line| {
        let mut words = line.split('#').next().unwrap().split_whitespace();
        let loops = words.next().and_then(|ip| ip.parse::<IpAddr>().ok()).is_some_and(|ip| !is_public(ip));
        words.filter(move |name| loops && !name.contains("localhost"))
    });
    let name = names.into_iter().next();
    name.expect("/etc/hosts has this machine's own name, with a private address").to_owned()
}

#[test]
fn c2_a_call_that_never_ends_is_cut_off() {
    let app = DemoApp::start(Behaviour::Silent).unwrap();
    let place = Place::sqlite();
    let gateway = Gateway::with(&place, &config(&[route("app", &app, "timeout = \"1s\"\nretries = 0")]));
    let started = Instant::now();
    gateway.send(&event("evt_1", "charge.failed", ""));
    wait_until("it is given up", || place.sql("SELECT reason FROM dead") == "timeout");
    assert!(started.elapsed() >= Duration::from_secs(1));
    let took: i64 = place.sql("SELECT took_ms FROM attempt").parse().unwrap();
    assert!(took >= 1_000, "{took}");
}
