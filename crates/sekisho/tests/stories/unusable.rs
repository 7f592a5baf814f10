//! A3: genuine, yet not usable: kept as evidence in the dead letters, because it must not be lost.

use crate::support::{Gateway, Provider, each_store, stripe_source, wait_until};

const BODIES: [&str; 4] =
    ["not json at all", "{\"object\":\"event\"}", "{\"id\":\"\",\"type\":\"x\",\"created\":1}", "[]"];

#[test]
fn a3_a_signed_body_without_an_event_is_acknowledged_and_kept() {
    each_store(|place| {
        let gateway = Gateway::open(place);
        for body in BODIES {
            let answer = gateway.send(&Provider::stripe().body(body));
            assert_eq!((answer.status, answer.header("sekisho-outcome")), (204, Some("accepted")), "{body}");
            let again = gateway.send(&Provider::stripe().body(body));
            assert_eq!((again.status, again.header("sekisho-outcome")), (204, Some("duplicate")), "{body}");
            let id = answer.header("sekisho-message-id").unwrap();
            let kept = gateway.type_in(&["events", "show", id, "--body"]).done();
            assert_eq!(kept.stdout, body);
        }
        wait_for_the_dead(&gateway, BODIES.len());
        let events = gateway.events();
        assert_eq!(events.len(), BODIES.len());
        for event in events {
            assert_eq!(event["status"], "failed");
            assert!(!event["note"].as_str().unwrap().is_empty());
        }
        let audit = |words: &[&str]| {
            gateway.type_in(&[&["audit", "--json", "--action"], words].concat()).done().lines()
        };
        let noted = audit(&["dead_letter.created"]);
        assert_eq!(noted.len(), BODIES.len(), "each failure stands in the log, once");
        assert!(noted.iter().all(|entry| entry["reason"] == "unusable_body" && entry["actor"].is_null()));
        for entry in &noted {
            assert_eq!((&entry["role"], &entry["details"]["source"]), (&"system".into(), &"stripe".into()));
            assert_eq!(entry["details"]["event_type"], "unusable");
            assert!(entry["event"].is_string() && entry["details"]["event_id"].is_string(), "{entry}");
        }

        // Neither a retry nor a replay lets it in.
        let letter = gateway.type_in(&["dead", "list", "--json"]).done().lines().remove(0);
        gateway.type_in(&["dead", "retry", letter["id"].as_str().unwrap()]).done();
        wait_until("it is dead again", || audit(&["dead_letter.created"]).len() == BODIES.len() + 1);
        let died_at = || {
            let shown = gateway.type_in(&["dead", "show", letter["id"].as_str().unwrap(), "--json"]);
            shown.lines().first().map(|letter| letter["died_at"].clone())
        };
        wait_until("it is before a person again", || died_at().is_some());
        let before = died_at();
        gateway.type_in(&["events", "replay", letter["event"].as_str().unwrap()]).done();
        wait_until("and again", || died_at().is_some_and(|at| Some(at) != before));
        assert_eq!(
            audit(&["dead_letter.created"]).len(),
            BODIES.len() + 1,
            "a replay writes no second entry"
        );
        wait_for_the_dead(&gateway, BODIES.len());
        assert_eq!(gateway.metric("sekisho_requests_total", &["unusable"]), 2 * BODIES.len() as u64);
    });
}

fn wait_for_the_dead(gateway: &Gateway, count: usize) {
    let failed = || gateway.type_in(&["events", "list", "--json", "--status", "failed"]).done().lines();
    wait_until("they are before a person", || failed().len() == count);
}

#[test]
fn d8_what_is_too_old_waits_for_a_person_who_may_let_it_in() {
    each_store(|place| {
        let gateway = Gateway::open(place);
        let created = sekisho::now().plus_ms(-100 * 86_400_000).ms() / 1_000;
        let body =
            format!(r#"{{"id":"evt_old","object":"event","type":"charge.succeeded","created":{created}}}"#);
        assert_eq!(gateway.send(&Provider::stripe().body(&body)).status, 204);
        wait_for_the_dead(&gateway, 1);
        let letter = gateway.type_in(&["dead", "list", "--json"]).done().lines().remove(0);
        assert_eq!((&letter["reason"], &letter["attempts"]), (&"too_old".into(), &1.into()));
        let id = letter["id"].as_str().unwrap();
        let noted = gateway.type_in(&["audit", "--json", "--target", id]).done().lines();
        assert_eq!((noted.len(), &noted[0]["action"]), (1, &"dead_letter.created".into()));
        gateway.type_in(&["dead", "retry", id]).done();
        wait_until("it is settled", || gateway.events()[0]["status"] == "skipped");
    });
}

#[test]
fn a3_a_source_may_refuse_the_unusable_and_keeps_it_all_the_same() {
    each_store(|place| {
        let gateway = Gateway::with(place, &stripe_source("unusable = \"refuse\""));
        let answer = gateway.send(&Provider::stripe().body(BODIES[0]));
        assert_eq!(answer.status, 400);
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        assert!(answer.text().contains("urn:sekisho:problem:unusable"));
        wait_for_the_dead(&gateway, 1);
        let events = gateway.events();
        assert_eq!((events.len(), &events[0]["status"]), (1, &"failed".into()));
        assert!(gateway.rejections().is_empty(), "it was genuine, nobody attacked");
    });
}

#[test]
fn a1_test_and_live_must_not_mix() {
    each_store(|place| {
        let gateway = Gateway::with(place, &stripe_source("livemode = true"));
        let body = |id: &str, live: bool| {
            format!(
                r#"{{"id":"{id}","object":"event","type":"charge.succeeded","created":2100000000,"livemode":{live}}}"#
            )
        };
        let stripe = Provider::stripe();
        assert_eq!(gateway.send(&stripe.body(&body("evt_live", true))).status, 204);
        assert_eq!(gateway.send(&stripe.body(&body("evt_test", false))).status, 204);
        wait_for_the_dead(&gateway, 1);
        let failed = gateway.type_in(&["events", "list", "--json", "--status", "failed"]).done().lines();
        assert_eq!(failed[0]["event_id"], "evt_test");
        assert!(failed[0]["note"].as_str().unwrap().contains("livemode"));
        assert_eq!(gateway.event_ids(), ["evt_live", "evt_test"]);
    });
}

#[test]
fn a5_bodies_come_back_byte_for_byte() {
    each_store(|place| {
        let gateway = Gateway::open(place);
        let spaced = "{ \"id\" : \"evt_s\",\r\n\t\"type\":\"x\" , \"created\":2100000000, \"n\": 1.50, \"名前\":\"関所\", \"n\": 2 }\n";
        for body in [spaced, "{\"id\":\"evt_e\",\"type\":\"\\u0041\",\"created\":1,\"x\":\"\\u0000\"}"] {
            let answer = gateway.send(&Provider::stripe().body(body));
            assert_eq!(answer.status, 204, "{}", answer.text());
            let id = answer.header("sekisho-message-id").unwrap();
            assert_eq!(gateway.type_in(&["events", "show", id, "--body"]).done().stdout, body);
        }
        assert_eq!(gateway.event_ids(), ["evt_e", "evt_s"]);
    });
}
