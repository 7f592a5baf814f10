//! A3, C5, H1, H2: what somebody tries who has no key, a stolen one, or an account of their own; and what operators see of it.

use std::os::unix::fs::PermissionsExt;

use sekisho_lab::http;
use sekisho_lab::smtp::{Smtp, SmtpBehaviour};
use serde_json::{Value, json};

use super::notices::{FAST, RECEIPT, mail, paid, statuses};
use crate::support::{Gateway, Place, Provider, Response, each_store, stripe_source, wait_until};

const READ: &str = "canary-read-key-0123456789";
const WRITE: &str = "canary-write-key-0123456789";
const ADMIN: &str = "canary-admin-key-0123456789";
const WEAK: &str = "canary-canary-canary";

fn gateway(place: &Place, more: &str) -> Gateway {
    let key = |name: &str, scope: &str| {
        format!("[[key]]\nname = \"{name}\"\nsecret = \"env:{name}\"\nscopes = [\"{scope}\"]\n")
    };
    let keys = key("LOOKER", "read") + &key("CLERK", "write") + &key("CHIEF", "admin") + &key("WEAK", "read");
    let env = [("LOOKER", READ), ("CLERK", WRITE), ("CHIEF", ADMIN), ("WEAK", WEAK)];
    Gateway::with_env(place, &(stripe_source("") + &keys + more), &env)
}

fn ask(gateway: &Gateway, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Response {
    let body = if method == "POST" { body.to_string() } else { String::new() };
    http::request(gateway.address(), method, path, headers, body.as_bytes()).unwrap()
}

fn with_key(gateway: &Gateway, method: &str, path: &str, key: &str, body: &Value) -> Response {
    ask(gateway, method, path, &[("authorization", &format!("Bearer {key}"))], body)
}

#[test]
fn h2_of_many_who_make_a_key_of_one_name_one_does() {
    each_store(|place| {
        let gateway = gateway(place, "");
        for round in 0..5 {
            let order = json!({ "name": format!("shop-{round}"), "scopes": ["read"] });
            let statuses: Vec<u16> = std::thread::scope(|scope| {
                let one = || with_key(&gateway, "POST", "/v1/keys", ADMIN, &order).status;
                let all: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
                all.into_iter().map(|one| one.join().unwrap()).collect()
            });
            let made = statuses.iter().filter(|status| **status == 201).count();
            assert_eq!(made, 1, "{statuses:?}");
            assert!(statuses.iter().all(|status| [201, 409].contains(status)), "{statuses:?}");
        }
        let taken = json!({ "name": "LOOKER", "scopes": ["read"] });
        assert_eq!(with_key(&gateway, "POST", "/v1/keys", ADMIN, &taken).status, 409, "a configured key's");
        gateway.type_in(&["keys", "create", "--scopes", "admin", "--name", "by-hand"]).done();
        gateway.type_in(&["keys", "revoke", "by-hand"]).done();
        gateway.type_in(&["keys", "create", "--scopes", "read", "--name", "by-hand"]).done();
        gateway.type_in(&["keys", "create", "--scopes", "read", "--name", "CHIEF"]).failed(1);
    });
}

#[test]
fn a3_who_guesses_keys_and_passwords_is_seen_and_slowed() {
    let place = Place::sqlite();
    let gateway = gateway(&place, "[server]\ntrusted_proxies = 1\n");
    let from = |address: &str, key: &str| {
        let headers = [("x-forwarded-for", address), ("authorization", &*format!("Bearer {key}"))];
        ask(&gateway, "GET", "/v1/payments", &headers, &Value::Null)
    };
    let statuses: Vec<_> = (0..25).map(|n| from("203.0.113.9", &format!("sk_guess-{n}")).status).collect();
    assert_eq!(statuses, [[401; 20].as_slice(), [429; 5].as_slice()].concat());
    let slowed = from("203.0.113.9", WEAK);
    assert_eq!(slowed.status, 429, "a key that can be guessed");
    assert!(slowed.header("retry-after").unwrap().parse::<u64>().unwrap() <= 61);
    assert_eq!(from("203.0.113.9", READ).status, 200, "a key that nobody guesses");
    assert_eq!(from("198.51.100.10", WEAK).status, 200, "from elsewhere");
    assert_eq!(gateway.metric("sekisho_failed_attempts_total", &["api_key"]), 26);

    let page = gateway.get("/console/login");
    let cookie = page.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let text = page.text();
    let csrf = text.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let form = format!("name=nobody&password=what+could+it+be&csrf={csrf}");
    let headers = [("cookie", &*cookie), ("x-forwarded-for", "198.51.100.7")];
    let answer = http::post(gateway.address(), "/console/login", &headers, form.as_bytes()).unwrap();
    assert_eq!(answer.status, 200);
    assert_eq!(gateway.metric("sekisho_failed_attempts_total", &["kind=\"login\""]), 1);
    wait_until("both are among the refused requests", || {
        let refused = gateway.rejections();
        let has = |source: &str, reason: &str, peer: &str| {
            let is_it =
                |one: &&Value| one["source"] == source && one["reason"] == reason && one["peer"] == peer;
            refused.iter().any(|one| is_it(&one))
        };
        has("(api)", "bad_key", "203.0.113.9") && has("(console)", "bad_login", "198.51.100.7")
    });
    let log = gateway.server.log();
    assert!(log.contains("key WEAK: its secret could be guessed") && !log.contains("key LOOKER: its secret"));
    assert!(log.contains("console.url is no https:// address"), "cookies in the clear behind a proxy");
}

#[test]
fn h3_figures_are_for_the_private_network_and_for_keys() {
    let place = Place::sqlite();
    let gateway = gateway(&place, "[server]\ntrusted_proxies = 1\n");
    let key = format!("Bearer {READ}");
    let status = |headers: &[(&str, &str)]| ask(&gateway, "GET", "/metrics", headers, &Value::Null).status;
    assert_eq!(status(&[]), 200, "from this machine");
    assert_eq!(status(&[("x-forwarded-for", "10.0.0.7")]), 200);
    assert_eq!(status(&[("x-forwarded-for", "203.0.113.9")]), 401);
    assert_eq!(status(&[("x-forwarded-for", "10.0.0.7, 203.0.113.9")]), 401, "what the client wrote itself");
    assert_eq!(status(&[("x-forwarded-for", "203.0.113.9"), ("authorization", &key)]), 200);
    for (setting, stranger, near) in [("open", 200, 200), ("off", 404, 404)] {
        let config = format!("{}[telemetry]\nmetrics = \"{setting}\"\n", stripe_source(""));
        let gateway = Gateway::with(&Place::sqlite(), &config);
        let headers = [("x-forwarded-for", "203.0.113.9")];
        assert_eq!(ask(&gateway, "GET", "/metrics", &headers, &Value::Null).status, stranger, "{setting}");
        assert_eq!(gateway.get("/metrics").status, near, "{setting}");
    }
}

#[test]
fn g5_a_key_that_may_only_read_sees_no_whole_address_in_a_body() {
    each_store(|place| {
        let gateway = gateway(place, "");
        assert_eq!(gateway.send(&paid("1", "taro.yamada@example.jp")).status, 204);
        let show = |path: &str, key: &str| {
            let answer = with_key(&gateway, "GET", path, key, &Value::Null);
            (answer.status, answer.text())
        };
        let (status, text) = show("/v1/events/evt_1", READ);
        assert!(
            status == 200 && text.contains("t***@example.jp") && !text.contains("taro.yamada@"),
            "{text}"
        );
        assert_eq!(show("/v1/events/evt_1?addresses=full", READ).0, 403);
        let (status, text) = show("/v1/events/evt_1?addresses=full", WRITE);
        assert!(status == 200 && text.contains("taro.yamada@example.jp"), "{text}");
        // What can't be understood is a dead letter, with its body.
        let odd = r#"{"id":"evt_2","type":"charge.succeeded","data":{"object":{"object":"charge","id":7,"email":"taro.yamada@example.jp"}}}"#;
        assert_eq!(gateway.send(&Provider::stripe().body(odd)).status, 204);
        let letters = || -> Value { serde_json::from_str(&show("/v1/dead-letters", READ).1).unwrap() };
        wait_until("it is dead", || letters()["items"][0].is_object());
        let path = format!("/v1/dead-letters/{}", letters()["items"][0]["id"].as_str().unwrap());
        let text = show(&path, READ).1;
        assert!(text.contains("t***@example.jp") && !text.contains("taro.yamada@"), "{text}");
        assert!(show(&format!("{path}?addresses=full"), WRITE).1.contains("taro.yamada@example.jp"));
    });
}

#[test]
fn g2_one_customer_gets_so_many_mails_an_hour_and_the_rest_is_held_back() {
    each_store(|place| {
        let smtp = Smtp::start(SmtpBehaviour::Accept).unwrap();
        let limit = "[notifications]\nhourly_per_customer = 3\n";
        let gateway = Gateway::with(place, &(stripe_source("") + limit + &mail(&smtp, FAST) + RECEIPT));
        for n in 0..8 {
            assert_eq!(gateway.send(&paid(&n.to_string(), "taro@example.jp")).status, 204);
        }
        assert_eq!(gateway.send(&paid("other", "hanako@example.jp")).status, 204);
        wait_until("all are over", || {
            let all = statuses(place);
            all.get("sent") == Some(&4) && all.get("rate_limited") == Some(&5)
        });
        let to = |address: &str| smtp.accepted().iter().filter(|mail| mail.to == [address]).count();
        assert_eq!((to("taro@example.jp"), to("hanako@example.jp")), (3, 1));
        let held = gateway.type_in(&["notices", "list", "--status", "rate_limited", "--json"]).done().lines();
        assert_eq!(held.len(), 5);
        let id = held[0]["id"].as_str().unwrap();
        gateway.type_in(&["notices", "resend", id]).done();
        wait_until("what a person asks for is sent", || to("taro@example.jp") == 4);
    });
}

#[test]
fn h5_nobody_else_can_hold_the_lock_of_the_store() {
    let place = Place::sqlite();
    let lock = place.folder.path().join("sekisho.lock");
    std::fs::write(&lock, "").unwrap();
    std::fs::set_permissions(&lock, std::fs::Permissions::from_mode(0o666)).unwrap();
    let _gateway = Gateway::open(&place);
    assert_eq!(std::fs::metadata(&lock).unwrap().permissions().mode() & 0o777, 0o600);
}
