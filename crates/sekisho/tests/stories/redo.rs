//! B4: what failed for good is found, understood, tried again or put aside, beside a running server and without one.

use sekisho_lab::app::{Behaviour, DemoApp, Reply};
use serde_json::Value;

use crate::support::{Gateway, Place, Provider, each_store, route_to, stripe_source, wait_until};

/// A gateway with one route, whose app refuses everything at first; nothing is retried by itself.
fn with_broken_app(place: &Place) -> (Gateway, DemoApp) {
    let refusal = Reply::status(500).with_header("x-trace", "t-1").with_body("the books are closed");
    let app = DemoApp::start(Behaviour::Answer(refusal)).unwrap();
    let route = route_to("app", &format!("{}/hook", app.url()), "retries = 0\nbreaker_failures = 0");
    (Gateway::with(place, &(stripe_source("") + &route)), app)
}

/// Sends events and waits until all of them are dead.
fn bury(gateway: &Gateway, ids: &[&str]) -> Vec<Value> {
    for id in ids {
        assert_eq!(gateway.send(&Provider::stripe().event(id)).status, 204);
    }
    wait_until("all are dead", || dead(gateway, &[]).len() == ids.len());
    dead(gateway, &[])
}

fn dead(gateway: &Gateway, words: &[&str]) -> Vec<Value> {
    gateway.type_in(&[&["dead", "list", "--json", "--limit", "0"], words].concat()).done().lines()
}

fn id(letter: &Value) -> &str {
    letter["id"].as_str().unwrap()
}

#[test]
fn b4_a_dead_letter_has_all_that_is_needed_to_understand_it() {
    each_store(|place| {
        let (gateway, _app) = with_broken_app(place);
        let letter = &bury(&gateway, &["evt_1"])[0];
        assert_eq!((&letter["reason"], &letter["route"]), (&"server_error".into(), &"app".into()));
        let shown = &gateway.type_in(&["dead", "show", id(letter), "--json"]).done().lines()[0];
        assert_eq!((&shown["event_id"], &shown["class"]), (&"evt_1".into(), &"transient".into()));
        assert!(shown["body"].as_str().unwrap().contains("\"evt_1\""));
        assert!(shown["headers"].as_array().unwrap().iter().any(|header| header[0] == "stripe-signature"));
        let calls = shown["calls"].as_array().unwrap();
        assert_eq!((calls.len(), &calls[0]["status"]), (1, &500.into()));
        assert_eq!(calls[0]["body"], "the books are closed");
        assert!(calls[0]["headers"].to_string().contains("t-1") && calls[0]["took_ms"].is_number());
        gateway.type_in(&["dead", "show", id(letter)]).done().mentions(&[
            "server_error",
            "attempt 1",
            "the books are closed",
            "stripe-signature: t=",
        ]);
        gateway.type_in(&["events", "show", "evt_1"]).done().mentions(&["STANDING", "dead", id(letter)]);
        gateway.type_in(&["messages", "show", id(letter)]).done().mentions(&[
            "dead",
            "attempt 1",
            "the books are closed",
        ]);
        gateway
            .type_in(&["dead", "show", "msg_0000000000007"])
            .failed(1)
            .mentions(&["no dead letter", "messages show"]);
    });
}

#[test]
fn b4_a_dead_letter_is_retried_beside_a_running_server() {
    each_store(|place| {
        let (gateway, app) = with_broken_app(place);
        let letter = &bury(&gateway, &["evt_1"])[0];
        app.set(Behaviour::Ok);
        gateway.type_in(&["dead", "retry", id(letter)]).done().mentions(&["1 dead letter queued again"]);
        wait_until("it arrived", || app.counts().processed == 1);
        wait_until("it is done", || {
            let shown = gateway.type_in(&["messages", "show", id(letter), "--json"]).done();
            shown.lines()[0]["standing"] == "success"
        });
        assert_eq!(app.ledger().processed(id(letter)), 1, "under the same id");
        let calls = &gateway.type_in(&["messages", "show", id(letter), "--json"]).done().lines()[0]["calls"];
        let statuses: Vec<_> = calls.as_array().unwrap().iter().map(|call| call["status"].clone()).collect();
        assert_eq!(statuses, [500, 204], "what was tried before stays known");
        assert!(dead(&gateway, &[]).is_empty());
        gateway.type_in(&["dead", "retry", id(letter)]).failed(1).mentions(&["no dead letter has the id"]);
        gateway.type_in(&["audit"]).done().mentions(&["dead_letter.retried", id(letter), "cli:"]);
    });
}

#[test]
fn b4_the_same_with_no_server_running() {
    each_store(|place| {
        let (mut gateway, app) = with_broken_app(place);
        let letters = bury(&gateway, &["evt_1", "evt_2"]);
        app.set(Behaviour::Ok);
        assert!(gateway.server.terminate().unwrap().success());
        let said = gateway.type_in(&["dead", "retry", id(&letters[0])]).done();
        said.mentions(&["1 dead letter queued again", "no server is running"]);
        gateway.server.start_again().unwrap();
        wait_until("it arrived", || app.counts().processed == 1);
        // What a server that was killed left behind misleads nobody.
        gateway.server.kill9();
        gateway.type_in(&["dead", "retry", "--all"]).done().mentions(&["1 dead letter queued again"]);
        gateway.server.start_again().unwrap();
        wait_until("the other, too", || app.counts().messages == 2);
        assert_eq!(dead(&gateway, &[]).len(), 0);
    });
}

#[test]
fn b4_a_server_that_does_not_answer_is_named() {
    let place = Place::sqlite();
    let (gateway, _app) = with_broken_app(&place);
    let letter = &bury(&gateway, &["evt_1"])[0];
    gateway.server.pause().unwrap();
    let said = gateway.type_in(&["dead", "retry", id(letter)]);
    gateway.server.resume().unwrap();
    said.failed(1).mentions(&["a server runs on", "can't be reached", "--server"]);
    assert_eq!(dead(&gateway, &[]).len(), 1);
}

#[test]
fn b4_a_preview_changes_nothing() {
    each_store(|place| {
        let (gateway, app) = with_broken_app(place);
        bury(&gateway, &["evt_1", "evt_2", "evt_3"]);
        let said = gateway.type_in(&["dead", "retry", "--all", "--dry-run"]).done();
        said.mentions(&["3 dead letters would be retried", "server_error", "to:app"]);
        let said = gateway.type_in(&["dead", "discard", "--route", "app", "--dry-run"]).done();
        said.mentions(&["3 dead letters would be discarded"]);
        let report = &gateway.type_in(&["dead", "retry", "--all", "--dry-run", "--json"]).done().lines()[0];
        assert_eq!((&report["found"], &report["done"]), (&3.into(), &0.into()));
        assert_eq!((dead(&gateway, &[]).len(), app.counts().seen), (3, 3));
        gateway
            .type_in(&["audit", "list", "--action", "dead_letter.retried"])
            .done()
            .mentions(&["no entries"]);
        gateway.type_in(&["dead", "retry"]).failed(2).mentions(&["specify ids"]);
    });
}

#[test]
fn b4_what_dies_while_the_operator_reads_is_left_alone() {
    each_store(|place| {
        let (gateway, app) = with_broken_app(place);
        let bury = |ids: &[&str], all: usize| {
            for id in ids {
                assert_eq!(gateway.send(&Provider::stripe().event(id)).status, 204);
            }
            wait_until("they are dead", || dead(&gateway, &[]).len() == all);
        };
        let left = || dead(&gateway, &[]).iter().map(|letter| letter["event_id"].clone()).collect::<Vec<_>>();
        bury(&["evt_1", "evt_2"], 2);
        let asked = gateway.be_asked(&["dead", "discard", "--all", "--reason", "tests"], "Continue?");
        bury(&["evt_3"], 3);
        asked.answer("y").done().mentions(&["2 dead letters would be", "2 dead letters discarded"]);
        assert_eq!(left(), ["evt_3"]);

        bury(&["evt_4"], 2);
        let asked = gateway.be_asked(&["dead", "retry", "--route", "app"], "Continue?");
        bury(&["evt_5"], 3);
        app.set(Behaviour::Ok);
        asked.answer("y").done().mentions(&["2 dead letters queued again"]);
        wait_until("both arrived", || app.counts().processed == 2);
        assert_eq!(left(), ["evt_5"]);
    });
}

#[test]
fn b4_dead_letters_are_found_by_what_they_are_and_retried_by_it() {
    each_store(|place| {
        let (gateway, app) = with_broken_app(place);
        let letters = bury(&gateway, &["evt_1", "evt_2"]);
        let unusable = Provider::stripe().body("{}");
        assert_eq!(gateway.send(&unusable).status, 204);
        wait_until("it is dead", || dead(&gateway, &[]).len() == 3);
        let event = letters[0]["event"].as_str().unwrap();
        let cases: [(&[&str], usize); 12] = [
            (&["--source", "stripe"], 3),
            (&["--source", "other"], 0),
            (&["--reason", "server_error"], 2),
            (&["--reason", "unusable_body"], 1),
            (&["--route", "app"], 2),
            (&["--route", "other"], 0),
            (&["--type", "payment_intent.*"], 2),
            (&["--event", event], 1),
            (&["--since", "1h"], 3),
            (&["--until", "1h"], 0),
            (&["--since", "2020-01-01", "--until", "2020-01-02T00:00:00Z"], 0),
            (&["--limit", "1"], 1),
        ];
        for (words, expected) in cases {
            let found = gateway.type_in(&[&["dead", "list", "--json"], words].concat()).done().lines();
            assert_eq!(found.len(), expected, "{words:?}");
        }
        gateway.type_in(&["dead", "list", "--since", "soon"]).failed(2).mentions(&["30m, 2h, 3d"]);
        app.set(Behaviour::Ok);
        let words = ["dead", "retry", "--reason", "server_error", "--since", "1h"];
        gateway.type_in(&words).done().mentions(&["2 dead letters queued again"]);
        wait_until("both arrived", || app.counts().messages == 2);
        assert_eq!(dead(&gateway, &[]).len(), 1);
    });
}

#[test]
fn b4_discard_needs_a_reason_and_is_audited() {
    each_store(|place| {
        let (gateway, app) = with_broken_app(place);
        let letters = bury(&gateway, &["evt_1", "evt_2"]);
        gateway.type_in(&["dead", "discard", id(&letters[0])]).failed(2).mentions(&["--reason"]);
        gateway
            .type_in(&["dead", "discard", id(&letters[0]), "--reason", " "])
            .failed(2)
            .mentions(&["reason"]);
        let words = ["dead", "discard", id(&letters[0]), "--reason", "a test of ours"];
        gateway.type_in(&words).done().mentions(&["1 dead letter discarded"]);
        assert_eq!(dead(&gateway, &[]).len(), 1);
        let shown = &gateway.type_in(&["messages", "show", id(&letters[0]), "--json"]).done().lines()[0];
        assert_eq!(shown["standing"], "discarded");
        assert!(shown["note"].as_str().unwrap().contains("a test of ours"), "{shown}");
        let audit =
            gateway.type_in(&["audit", "list", "--action", "dead_letter.discarded", "--json"]).done().lines();
        assert_eq!(audit.len(), 1);
        assert_eq!(
            (&audit[0]["action"], &audit[0]["target"], &audit[0]["reason"]),
            (&"dead_letter.discarded".into(), &id(&letters[0]).into(), &"a test of ours".into())
        );
        assert!(audit[0]["actor"].as_str().unwrap().starts_with("cli:"));
        assert_eq!(audit[0]["role"], "operator");
        assert_eq!(app.counts().seen, 2, "nothing was sent");
    });
}

/// Somebody paid ginza 10,000 yen.
fn charge(n: &str) -> String {
    format!(
        r#"{{"id":"evt_{n}","object":"event","type":"charge.succeeded","created":2100000000,"livemode":false,"data":{{"object":{{
        "object":"charge","id":"ch_{n}","payment_intent":"pi_{n}","amount":10000,"amount_captured":10000,"captured":true,
        "paid":true,"status":"succeeded","currency":"jpy","metadata":{{"tenant":"ginza"}}}}}}}}"#
    )
}

#[test]
fn b4_a_dead_announcement_says_payment_tenant_and_what_is_at_risk() {
    each_store(|place| {
        let app = DemoApp::start(Behaviour::Answer(Reply::status(500))).unwrap();
        let more = "send = \"settled\"\nretries = 0\nbreaker_failures = 0";
        let route = route_to("app", &format!("{}/hook", app.url()), more);
        let gateway = Gateway::with(place, &(stripe_source("") + &route));
        assert_eq!(gateway.send(&Provider::stripe().body(&charge("1"))).status, 204);
        wait_until("it is dead", || dead(&gateway, &["--type", "payment.paid"]).len() == 1);
        let payment = place.sql("SELECT id FROM payments");
        let letter = &dead(&gateway, &["--type", "payment.paid"])[0];
        let about = serde_json::json!({ "payment": payment, "billing": null, "tenant": "ginza" });
        assert_eq!((&letter["about"], &letter["amount"]), (&about, &10_000.into()), "{letter}");
        assert_eq!(letter["currency"], "jpy");
        gateway.type_in(&["dead", "list"]).done().mentions(&["PAYMENT", &payment, "10000 jpy"]);
        gateway.type_in(&["dead", "show", id(letter)]).done().mentions(&[&payment, "ginza", "10000 jpy"]);
        gateway.type_in(&["dead", "groups"]).done().mentions(&["10000 jpy"]);

        let failed = "SELECT payment_id FROM failed_webhook_events WHERE event_type = 'payment.paid'";
        assert_eq!(place.sql(failed), payment);
        let announced = "SELECT payment_id, tenant_id, status FROM webhook_events \
                         WHERE source = 'sekisho' AND event_type = 'payment.paid'";
        assert_eq!(place.sql(announced), format!("{payment}|ginza|failed"));

        let words = ["audit", "list", "--json", "--action", "dead_letter.created", "--target", id(letter)];
        let entries = gateway.type_in(&words).done().lines();
        assert_eq!((entries.len(), &entries[0]["role"]), (1, &"system".into()));
        assert_eq!((&entries[0]["actor"], &entries[0]["tenant"]), (&Value::Null, &"ginza".into()));
        let details = &entries[0]["details"];
        let said = ["event_type", "source", "payment", "lane"].map(|name| details[name].as_str().unwrap());
        assert_eq!(said, ["payment.paid", "sekisho", &payment, "to:app"]);
        assert_eq!((&details["event_id"], &entries[0]["event"]), (&letter["event_id"], &letter["event"]));
    });
}
