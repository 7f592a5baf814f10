//! A1, A4: an event comes in, is stored once, and every delivery of it gets the same answer.

use crate::support::{Gateway, Letter, Provider, each_store, stripe_source};

#[test]
fn a1_a4_an_event_is_acknowledged_with_its_ids_and_a_duplicate_gets_the_same_answer() {
    each_store(|place| {
        let gateway = Gateway::open(place);
        let letter = Provider::stripe().event("evt_1PaidOnce");

        let first = gateway.send(&letter);
        assert_eq!(first.status, 204, "{}", first.text());
        assert_eq!(first.body, b"");
        assert_eq!(first.header("sekisho-outcome"), Some("accepted"));
        assert_eq!(first.header("sekisho-event-id"), Some("evt_1PaidOnce"));
        assert!(first.header("sekisho-message-id").unwrap().starts_with("msg_"));
        assert!(first.header("sekisho-request-id").unwrap().starts_with("req_"));

        for _ in 0..2 {
            let again = gateway.send(&letter);
            assert_eq!((again.status, again.body.len()), (204, 0));
            assert_eq!(again.header("sekisho-outcome"), Some("duplicate"));
            assert_eq!(again.header("sekisho-event-id"), first.header("sekisho-event-id"));
            assert_eq!(again.header("sekisho-message-id"), first.header("sekisho-message-id"));
            assert_ne!(again.header("sekisho-request-id"), first.header("sekisho-request-id"));
        }

        let events = gateway.events();
        assert_eq!(events.len(), 1);
        assert_eq!(events[0]["event_id"], "evt_1PaidOnce");
        assert_eq!(events[0]["id"].as_str().unwrap()[4..], first.header("sekisho-message-id").unwrap()[4..]);
    });
}

#[test]
fn a4_a_duplicate_is_known_after_a_restart_too() {
    each_store(|place| {
        let letter = Provider::stripe().event("evt_1");
        let mut gateway = Gateway::open(place);
        let first = gateway.send(&letter);
        gateway.server.restart().unwrap();
        let again = gateway.send(&letter);
        assert_eq!(again.header("sekisho-outcome"), Some("duplicate"));
        assert_eq!(again.header("sekisho-message-id"), first.header("sekisho-message-id"));
        assert_eq!(gateway.event_ids(), ["evt_1"]);
    });
}

#[test]
fn a1_a_source_may_have_its_own_path_and_its_own_status() {
    each_store(|place| {
        let config = stripe_source("path = \"/old/stripe/hook\"\nack_status = 200");
        let gateway = Gateway::with(place, &config);
        let stripe = Provider::stripe().to("/old/stripe/hook");
        let letter = stripe.event("evt_1");
        for outcome in ["accepted", "duplicate"] {
            let answer = gateway.send(&letter);
            assert_eq!((answer.status, answer.body.len()), (200, 0));
            assert_eq!(answer.header("sekisho-outcome"), Some(outcome));
        }
        let elsewhere = gateway.send(&Provider::stripe().event("evt_2"));
        assert_eq!(elsewhere.status, 404);
        assert_eq!(gateway.event_ids(), ["evt_1"]);
    });
}

#[test]
fn a1_a4_sources_of_one_provider_keep_their_events_and_secrets_apart() {
    each_store(|place| {
        let source = |name: &str| {
            format!("[[source]]\nname = \"{name}\"\nprovider = \"stripe\"\nsecrets = [\"env:{name}\"]\n")
        };
        let env = [("japan", "whsec_canary_japan"), ("europe", "whsec_canary_europe")];
        let gateway = Gateway::with_env(place, &(source("japan") + &source("europe")), &env);
        let japan = Provider::new("stripe", env[0].1).to("/webhooks/japan");
        let europe = Provider::new("stripe", env[1].1).to("/webhooks/europe");

        // The same id at two sources is two events.
        let answers = [gateway.send(&japan.event("evt_1")), gateway.send(&europe.event("evt_1"))];
        assert!(answers.iter().all(|answer| answer.header("sekisho-outcome") == Some("accepted")));
        let astray = Letter { path: "/webhooks/europe".into(), ..japan.event("evt_2") };
        assert_eq!(gateway.send(&astray).status, 400, "another source's secret opens nothing");

        let mut sources: Vec<_> = gateway.events().iter().map(|event| event["source"].to_string()).collect();
        sources.sort();
        assert_eq!(sources, ["\"europe\"", "\"japan\""]);
    });
}

#[test]
fn a1_only_post_to_a_known_source_is_heard() {
    each_store(|place| {
        let gateway = Gateway::open(place);
        let get = gateway.get("/webhooks/stripe");
        assert_eq!(get.status, 405);
        assert_eq!(get.header("allow"), Some("POST"));
        let put = Letter { method: "PUT".into(), ..Provider::stripe().event("evt_1") };
        assert_eq!(gateway.send(&put).status, 405);
        for path in ["/webhooks/nobody", "/webhooks/", "/webhooks/stripe/", "/webhooks/Stripe"] {
            let answer = gateway.send(&Provider::stripe().to(path).event("evt_1"));
            assert_eq!(answer.status, 404, "{path}");
            assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{path}");
        }
        assert!(gateway.events().is_empty());
    });
}

#[test]
fn a1_a_query_and_odd_but_legal_requests_are_no_obstacle() {
    each_store(|place| {
        let gateway = Gateway::open(place);
        let stripe = Provider::stripe().to("/webhooks/stripe?from=dashboard");
        assert_eq!(gateway.send(&stripe.event("evt_query")).status, 204);
        let odd = Provider::stripe().event("evt_関所 100%,\u{1F600}");
        let answer = gateway.send(&odd);
        assert_eq!(answer.status, 204);
        let id = answer.header("sekisho-event-id").unwrap();
        assert!(id.is_ascii() && !id.contains([',', ' ']), "{id}");
        assert_eq!(gateway.event_ids(), ["evt_query", "evt_関所 100%,\u{1F600}"]);
    });
}
