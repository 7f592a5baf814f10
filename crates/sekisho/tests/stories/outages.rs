//! H5: the database goes away and comes back; the provider is asked to come again, and nobody has to restart us.

use std::time::Duration;

use sekisho_lab::app::{Behaviour, DemoApp};
use sekisho_lab::postgres::Postgres;
use sekisho_lab::proxy::{Faults, Proxy};

use crate::delivery::{event, route};
use crate::support::{Gateway, Place, Provider, runtime, say, stripe_source, wait_until};

#[test]
fn h5_while_postgresql_is_down_webhooks_get_503_and_afterwards_all_is_well() {
    let server = Postgres::start().unwrap_or_else(|error| panic!("{error}"));
    let place = Place::on(&server);
    let key = "canary-read-key-0123456789";
    let config = stripe_source("") + "[[key]]\nname = \"looker\"\nsecret = \"env:LOOKER\"\n";
    let gateway = Gateway::with_env(&place, &config, &[("LOOKER", key)]);
    let letter = |id: &str| Provider::stripe().event(id);
    assert_eq!(gateway.send(&letter("evt_before")).status, 204);

    server.stop_immediate().unwrap();
    let answer = gateway.send(&letter("evt_meanwhile"));
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert!(answer.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
    assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    assert_eq!(answer.header("sekisho-outcome"), None);
    wait_until("readiness red", || gateway.get("/health/ready").status == 503);
    let ready = gateway.get("/health/ready").text();
    assert_eq!(ready, r#"{"reason":"store_unavailable","status":"unready"}"#, "strangers hear no more");
    let bearer = format!("Bearer {key}");
    let asked = sekisho_lab::http::request(
        gateway.address(),
        "GET",
        "/health/ready",
        &[("authorization", &*bearer)],
        b"",
    );
    let told = asked.unwrap().text();
    assert!(told.contains("detail") && told.len() > ready.len() + 20, "{told}");
    gateway.type_in(&["doctor"]).failed(1).mentions(&["not ready", "detail"]);
    assert_eq!(gateway.get("/health/live").status, 200, "alive all the same: a restart would not help");
    assert_eq!(gateway.metric("sekisho_ready", &[]), 0);
    assert!(gateway.server.stderr().contains("the database does not respond"));
    // Even a duplicate that the gate remembers is not acknowledged on its word alone.
    assert_eq!(gateway.send(&letter("evt_before")).status, 503);

    server.start_again().unwrap();
    wait_until("readiness green", || gateway.get("/health/ready").status == 200);
    let after = gateway.send_until_acknowledged(&letter("evt_meanwhile"));
    assert_eq!(after.status, 204);
    assert_eq!(gateway.send(&letter("evt_before")).header("sekisho-outcome"), Some("duplicate"));
    assert_eq!(gateway.event_ids(), ["evt_before", "evt_meanwhile"]);
    assert!(gateway.server.stderr().contains("the database responds again"));
}

const WAITS: &str = "the database is unavailable; waiting for it";

#[test]
fn h5_a_start_waits_for_a_database_that_is_down_and_a_signal_ends_the_wait() {
    let server = Postgres::start().unwrap_or_else(|error| panic!("{error}"));
    let place = Place::on(&server);
    let url = place.url.replace("postgres@", "postgres:canary_password@");
    let mut gateway = Gateway::at(&url, &stripe_source(""), &[("UNUSED", "canary_password")]).unwrap();
    assert!(gateway.server.terminate().unwrap().success());
    server.stop_immediate().unwrap();

    gateway.server.start_without_waiting().unwrap();
    wait_until("it says that it waits", || gateway.server.log().contains(WAITS));
    assert!(gateway.server.log().contains("refused"), "and why: {}", gateway.server.log());
    assert!(gateway.server.exited().is_none());
    assert!(gateway.try_send(&Provider::stripe().event("evt_early")).is_err(), "nobody is let in");
    assert!(gateway.server.terminate().unwrap().success(), "{}", gateway.server.log());

    gateway.server.start_without_waiting().unwrap();
    wait_until("it waits again", || gateway.server.log().matches(WAITS).count() == 2);
    server.start_again().unwrap();
    gateway.server.wait_until_ready().unwrap();
    assert_eq!(gateway.send(&Provider::stripe().event("evt_1")).status, 204);
}

/// The database restarts again and again while a node starts: at whatever step it is met, the node waits.
#[test]
fn h5_a_start_beside_a_database_that_restarts_never_ends_by_itself() {
    let server = Postgres::start().unwrap_or_else(|error| panic!("{error}"));
    let place = Place::on(&server);
    let mut gateway = Gateway::open(&place);
    for _ in 0..12 {
        gateway.server.kill9();
        gateway.server.start_without_waiting().unwrap();
        server.restart().unwrap();
        gateway.server.wait_until_ready().unwrap();
    }
    assert_eq!(gateway.send_until_acknowledged(&Provider::stripe().event("evt_1")).status, 204);
}

#[test]
fn h5_a_start_waits_for_a_place_among_the_connections_but_not_for_a_wrong_address() {
    let place = Place::postgres();
    let role = format!("app_{}", place.database());
    place.sql(&format!("CREATE ROLE \"{role}\" LOGIN CONNECTION LIMIT 0"));
    place.sql(&format!("ALTER DATABASE \"{}\" OWNER TO \"{role}\"", place.database()));
    let url = place.url.replace("postgres@", &format!("{role}@"));
    let gateway = std::thread::scope(|scope| {
        let starting = scope.spawn(|| Gateway::at(&url, &stripe_source(""), &[]));
        std::thread::sleep(Duration::from_secs(2));
        assert!(!starting.is_finished(), "it waits");
        place.sql(&format!("ALTER ROLE \"{role}\" CONNECTION LIMIT -1"));
        starting.join().unwrap().unwrap_or_else(|error| panic!("{error}"))
    });
    let log = gateway.server.log();
    assert!(log.contains(WAITS) && log.contains("too many connections"), "{log}");
    assert_eq!(gateway.send(&Provider::stripe().event("evt_1")).status, 204);

    let wrong = [
        (place.url.replace(place.database(), "nowhere"), "does not exist"),
        (place.url.replace("postgres@", "nobody:canary_password@"), "role \"nobody\" does not exist"),
        (format!("{}?sslmode=require", place.url), "TLS"),
        ("postgres://app:canary_password@127.0.0.1:port/x".to_owned(), "not a PostgreSQL address"),
    ];
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("sekisho.toml"), stripe_source("")).unwrap();
    for (url, why) in wrong {
        let words = ["serve", "--store", &url, "--listen", "127.0.0.1:0"];
        let said =
            say(folder.path(), &words, &[("STRIPE_SECRET", "whsec_canary")]).failed(1).mentions(&[why]);
        assert!(!said.all().contains("canary") && !said.all().contains(WAITS), "{}", said.all());
        assert!(said.stderr.lines().any(|line| line.starts_with("error: ")), "{}", said.stderr);
    }
}

#[test]
fn h5_a_database_without_our_tables_is_explained_to_those_who_only_look() {
    let place = Place::postgres();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("sekisho.toml"), stripe_source("")).unwrap();
    let env = [("STRIPE_SECRET", "whsec_canary")];
    say(folder.path(), &["events", "list", "--store", &place.url], &env)
        .failed(1)
        .mentions(&["sekisho migrate"]);
    say(folder.path(), &["migrate", "--store", &place.url], &env).done().mentions(&["up to date"]);
    say(folder.path(), &["migrate", "--store", &place.url], &env).done().mentions(&["up to date"]);
    let told = say(folder.path(), &["migrate", "--json", "--store", &place.url], &env).done().lines();
    assert_eq!((told.len(), &told[0]["up_to_date"]), (1, &true.into()));
    say(folder.path(), &["events", "list", "--store", &place.url], &env).done().mentions(&["no events"]);
}

/// A database that hangs is worse than one that is down: every question takes as long as it may.
#[test]
fn h5_a_stop_ends_in_time_though_the_database_hangs() {
    let runtime = runtime();
    let place = Place::postgres();
    let app = DemoApp::start(Behaviour::Delay(Duration::from_secs(1), Box::new(Behaviour::Ok))).unwrap();
    let port =
        sekisho_lab::postgres::shared().unwrap().port().expect("the stories need a private PostgreSQL");
    let proxy = runtime.block_on(Proxy::start(([127, 0, 0, 1], port).into(), 1)).unwrap();
    let url = place.url.replace(&port.to_string(), &proxy.address().port().to_string());
    let config =
        format!("[server]\nshutdown_timeout = \"1s\"\n{}{}", stripe_source(""), route("app", &app, ""));
    let mut gateway = Gateway::at(&url, &config, &[]).unwrap();
    for n in 0..20 {
        assert_eq!(gateway.send(&event(&format!("evt_{n}"), "charge.failed", "")).status, 204);
    }
    wait_until("calls are under way", || app.counts().seen > 0);
    proxy.set(Faults { latency: Duration::from_mins(10), ..Faults::default() });
    let status = gateway.server.terminate().unwrap();
    assert_eq!(status.code(), Some(1), "{}", gateway.server.stderr());
    assert!(gateway.server.stderr().contains("stopped without handing everything back"));
    proxy.heal();
    proxy.cut_all();
    gateway.server.start_again().unwrap();
    wait_until("all came", || app.counts().messages == 20);
}
