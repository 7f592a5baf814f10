//! H2, C4: the API, as a program with a key sees it.

use std::os::unix::fs::PermissionsExt;

use sekisho::api::{Method, endpoints};
use sekisho::config::Scope;
use sekisho_lab::app::{Behaviour, DemoApp};
use serde_json::{Value, json};

use crate::support::{
    Gateway, Letter, Place, Provider, Response, each_store, route_to, stripe_source, wait_until,
};

const READ: &str = "canary-read-key-0123456789";
const OPERATE: &str = "canary-operate-key-0123456789";
const ADMIN: &str = "canary-admin-key-0123456789";

fn gateway(place: &Place, more: &str) -> Gateway {
    let key = |name: &str, scope: &str| {
        format!("[[key]]\nname = \"{name}\"\nsecret = \"env:{name}\"\nscopes = [\"{scope}\"]\n")
    };
    let config =
        stripe_source("") + &key("LOOKER", "read") + &key("DOER", "operate") + &key("CHIEF", "admin") + more;
    Gateway::with_env(place, &config, &[("LOOKER", READ), ("DOER", OPERATE), ("CHIEF", ADMIN)])
}

fn ask(gateway: &Gateway, method: &str, path: &str, key: &str, body: &Value) -> Response {
    let bearer = format!("Bearer {key}");
    // Only the process' own key may act in another name.
    let headers: &[_] = &[("authorization", bearer.as_str()), ("sekisho-actor", "cli:root")];
    let headers = if key.is_empty() { &[] } else { headers };
    let body = if method == "POST" { body.to_string() } else { String::new() };
    sekisho_lab::http::request(gateway.address(), method, path, headers, body.as_bytes()).unwrap()
}

fn get(gateway: &Gateway, path: &str) -> Value {
    let answer = ask(gateway, "GET", path, READ, &Value::Null);
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    serde_json::from_slice(&answer.body).unwrap()
}

/// What is done to one of these says why, until when, or what came of it.
fn is_of_orders(path: &str) -> bool {
    ["/v1/reservations/", "/v1/fulfilments/", "/v1/cases/"].iter().any(|own| path.starts_with(own))
}

#[test]
fn h2_every_route_needs_a_key() {
    each_store(|place| {
        let gateway = gateway(place, &route_to("app", "http://127.0.0.1:9/", ""));
        let order = json!({ "all": true, "dry_run": true });
        for endpoint in endpoints() {
            let method = endpoint.method.name();
            let mut path = endpoint.path.replace("{name}", "app").replace("{date}", "2026-11-16");
            for id in ["{id}", "{tenant}", "{customer}"] {
                path = path.replace(id, "msg_0000000000007");
            }
            let status = |key: &str| ask(&gateway, method, &path, key, &order).status;
            let Some(scope) = endpoint.scope else {
                assert_eq!(status(""), 200, "{path}");
                continue;
            };
            assert_eq!(status(""), 401, "{method} {path}");
            assert!([401, 429].contains(&status("another-key-0123456789")), "{method} {path}");
            let found = match (path.contains("0007"), endpoint.success.status().as_u16()) {
                // No key decides about people.
                _ if path.starts_with("/v1/users") => 403,
                (true, _) if path.ends_with("/resend") || path.ends_with("/refunds") => 422,
                (true, _) if is_of_orders(&path) && method == "POST" => 422,
                (true, _) if path.ends_with("/silence") => 422,
                (true, _) if path.ends_with("/release") => 400,
                (true, _) => 404,
                (false, 201) => 422,
                (false, _) if path == "/v1/keys/revoke" => 422,
                (false, _) if path == "/v1/import" => 400,
                (false, _) if path == "/v1/reconciliations" && method == "POST" => 400,
                (false, _) if path == "/v1/suppressions/release" => 422,
                (false, _) if path == "/v1/reminders" => 400,
                (false, _) if path.ends_with("/resume") => 404,
                (false, done) => done,
            };
            let read = if scope == Scope::Read { found } else { 403 };
            assert_eq!(status(READ), read, "{method} {path}");
            let operate = if scope == Scope::Admin { 403 } else { found };
            assert_eq!(status(OPERATE), operate, "{method} {path}");
            assert_eq!(status(ADMIN), found, "{method} {path}");
        }
        let refused = ask(&gateway, "GET", "/v1/events", "", &Value::Null);
        assert_eq!(refused.header("content-type"), Some("application/problem+json"));
        assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
        assert_eq!(ask(&gateway, "PUT", "/v1/events", READ, &Value::Null).header("allow"), Some("GET"));
    });
}

#[test]
fn h2_openapi_lists_every_route() {
    let place = Place::sqlite();
    let gateway = Gateway::open(&place);
    let document: Value = serde_json::from_slice(&gateway.get("/v1/openapi.json").body).unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().unwrap();
    assert_eq!(paths.values().map(|one| one.as_object().unwrap().len()).sum::<usize>(), endpoints().count());
    for endpoint in endpoints() {
        let operation = &paths[endpoint.path][endpoint.method.name().to_lowercase()];
        assert_eq!(operation["summary"], endpoint.summary, "{}", endpoint.path);
        assert_eq!(operation["requestBody"].is_object(), endpoint.body.is_some(), "{}", endpoint.path);
    }
    assert!(endpoints().any(|one| one.method == Method::Post));
    // Without the role there is no API at all.
    let gateway = Gateway::started(&Place::sqlite().url, &stripe_source(""), &[], |options| {
        sekisho_lab::process::ServerOptions { role: Some("gateway,worker".into()), ..options }
    });
    assert_eq!(gateway.unwrap().get("/v1/openapi.json").status, 404);
}

#[test]
fn h2_the_api_shows_what_the_commands_show() {
    each_store(|place| {
        let app = DemoApp::start(Behaviour::status(500)).unwrap();
        let route = route_to("app", &format!("{}/hook?token=canary", app.url()), "retries = 0");
        let schedule = "[[schedule]]\nname = \"nightly\"\ncron = \"0 3 * * *\"\ntimezone = \"Asia/Tokyo\"\n";
        let gateway = gateway(place, &(route + schedule));
        for n in 0..3 {
            assert_eq!(gateway.send(&Provider::stripe().event(&format!("evt_{n}"))).status, 204);
        }
        wait_until("all are dead", || {
            get(&gateway, "/v1/dead-letters")["items"].as_array().unwrap().len() == 3
        });

        // Page after page.
        let mut ids = Vec::new();
        let mut path = "/v1/events?limit=2&type=payment_intent.*".to_owned();
        loop {
            let page = get(&gateway, &path);
            ids.extend(page["items"].as_array().unwrap().iter().map(|event| event["event_id"].clone()));
            let Some(next) = page["next"].as_str() else { break };
            path = format!("/v1/events?limit=2&type=payment_intent.*&before={next}");
        }
        assert_eq!(ids, ["evt_2", "evt_1", "evt_0"]);
        assert_eq!(get(&gateway, "/v1/events?limit=1000")["items"], Value::from(gateway.events()));
        for name in ["payment", "tenant"] {
            assert_eq!(get(&gateway, &format!("/v1/events?{name}=none"))["items"], json!([]));
            gateway
                .type_in(&["events", "list", &format!("--{name}"), "none"])
                .done()
                .mentions(&["no events"]);
        }

        let same = |path: &str, words: &[&str]| {
            let said = gateway.type_in(&[words, &["--json"]].concat()).done().lines();
            assert_eq!(get(&gateway, path), said[0], "{path}");
        };
        same("/v1/events/evt_1", &["events", "show", "evt_1"]);
        same("/v1/events/evt_1?source=stripe", &["events", "show", "evt_1"]);
        let letters = get(&gateway, "/v1/dead-letters?route=app&reason=server_error");
        let id = letters["items"][0]["id"].as_str().unwrap();
        same(&format!("/v1/dead-letters/{id}"), &["dead", "show", id]);
        same(&format!("/v1/messages/{id}"), &["messages", "show", id]);
        let groups = get(&gateway, "/v1/dead-letters/groups?route=app");
        let group = &groups["items"][0];
        assert_eq!(
            (&group["count"], &group["lane"], &group["class"]),
            (&json!(3), &json!("to:app"), &json!("transient"))
        );
        assert_eq!(
            groups["items"],
            Value::from(gateway.type_in(&["dead", "groups", "--json"]).done().lines())
        );
        gateway.type_in(&["dead", "groups"]).done().mentions(&["AT RISK", "server_error", "to:app"]);
        assert_eq!(get(&gateway, "/v1/dead-letters/groups?reason=timeout")["items"], json!([]));
        let routes = get(&gateway, "/v1/routes");
        assert_eq!(routes["items"], Value::from(gateway.type_in(&["routes", "--json"]).done().lines()));
        assert!(!routes.to_string().contains("canary"), "the query may hold a token: {routes}");
        let schedules = get(&gateway, "/v1/schedules");
        assert_eq!(schedules["items"], Value::from(gateway.type_in(&["schedules", "--json"]).done().lines()));
        assert!(schedules["items"][0]["next_at"].as_str().unwrap().ends_with("T18:00:00.000Z"));
        assert_eq!(get(&gateway, "/v1/counts")["items"].as_array().unwrap().len(), 0, "no hour has closed");

        assert_eq!(gateway.send(&Letter::unsigned("/webhooks/stripe", "{}")).status, 400);
        wait_until("it was written down", || gateway.rejections().len() == 1);
        let refused = get(&gateway, "/v1/rejections?source=stripe&limit=1");
        assert_eq!(refused["items"], Value::from(gateway.rejections()));
        let next = refused["next"].as_str().unwrap();
        assert_eq!(get(&gateway, &format!("/v1/rejections?before={next}"))["items"], json!([]));

        // And what is done through it is done in the key's name.
        let order = json!({ "ids": [id], "reason": "not ours" });
        let answer = ask(&gateway, "POST", "/v1/dead-letters/discard", OPERATE, &order);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let audit = get(&gateway, "/v1/audit");
        assert_eq!(
            (&audit["items"][0]["actor"], &audit["items"][0]["role"]),
            (&json!("DOER"), &json!("api_key"))
        );
        assert_eq!(audit["items"], Value::from(gateway.type_in(&["audit", "--json"]).done().lines()));
    });
}

#[test]
fn h2_commands_act_through_a_server_that_is_named() {
    each_store(|place| {
        let app = DemoApp::start(Behaviour::status(500)).unwrap();
        let gateway = gateway(place, &route_to("app", &app.url(), "retries = 0"));
        gateway.send(&Provider::stripe().event("evt_1"));
        wait_until("it is dead", || get(&gateway, "/v1/dead-letters")["items"][0].is_object());
        let url = format!("http://{}", gateway.address());
        // From another folder, where nothing is configured.
        let elsewhere = tempfile::tempdir().unwrap();
        let words = ["dead", "retry", "--all", "--server", &url];
        let say = |env: &[(&str, &str)]| crate::support::say(elsewhere.path(), &words, env);
        say(&[]).failed(1).mentions(&["wants a key", "SEKISHO_API_KEY"]);
        say(&[("SEKISHO_API_KEY", "another-key-0123456789")]).failed(1).mentions(&["does not know this key"]);
        say(&[("SEKISHO_API_KEY", READ)]).failed(1).mentions(&["403", "LOOKER", "operate"]);
        say(&[("SEKISHO_API_KEY", OPERATE)]).done().mentions(&["1 dead letter queued again"]);
        let folder =
            if place.is_sqlite() { place.folder.path().to_owned() } else { gateway.folder().join("sekisho") };
        let is_note = |file: &std::path::PathBuf| file.extension().is_some_and(|end| end == "json");
        let note = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).find(is_note).unwrap();
        assert!(!gateway.folder().join("sekisho-data").exists(), "nothing is left wherever it was started");
        assert_eq!(std::fs::metadata(&note).unwrap().permissions().mode() & 0o777, 0o600);
        let mut gateway = gateway;
        gateway.server.terminate().unwrap();
        assert!(!note.exists(), "a clean stop takes the note away");
    });
}

#[test]
fn c4_an_open_breaker_is_seen_and_reset() {
    each_store(|place| {
        let app = DemoApp::start(Behaviour::status(503)).unwrap();
        let more = "retries = 0\nbreaker_failures = 2\nconcurrency = 1";
        let gateway = gateway(place, &route_to("app", &app.url(), more));
        let route = || gateway.type_in(&["routes", "--json"]).done().lines().remove(0);
        assert_eq!(route()["breaker"], "closed");
        for n in 0..3 {
            assert_eq!(gateway.send(&Provider::stripe().event(&format!("evt_{n}"))).status, 204);
        }
        wait_until("the breaker opens", || route()["breaker"] == "open");
        assert!(route()["open_until"].is_string());
        gateway.type_in(&["routes"]).done().mentions(&["BREAKER", "open", "app"]);
        app.set(Behaviour::Ok);
        gateway.type_in(&["routes", "reset", "nowhere"]).failed(1).mentions(&["there is no route nowhere"]);
        gateway.type_in(&["routes", "reset", "app"]).done().mentions(&["Reset the breaker of app"]);
        wait_until("it is closed", || route()["breaker"] == "closed");
        wait_until("what waited arrives", || app.counts().processed >= 1);
    });
}
