//! A2, A3: what is not genuine is refused, learns nothing, and leaves a trace that can't grow without bound.

use sekisho_core::Time;
use serde_json::Value;

use crate::support::{Gateway, Letter, Provider, Response, each_store, stripe_source, wait_until};

/// One letter for each way of not being genuine, with the word the operator reads.
fn fakes() -> Vec<(&'static str, Letter)> {
    let stripe = Provider::stripe();
    let long_ago = Time::from_ms(sekisho::now().ms() - 3_600_000);
    let in_an_hour = Time::from_ms(sekisho::now().ms() + 3_600_000);
    let body = String::from_utf8(stripe.event("evt_fake").body).unwrap();
    vec![
        ("bad_signature", stripe.event("evt_fake").forged()),
        ("bad_signature", Provider::new("stripe", "whsec_guess").event("evt_fake")),
        ("missing_header", Letter::unsigned("/webhooks/stripe", &body)),
        ("stale_timestamp", stripe.body_at(&body, long_ago)),
        ("future_timestamp", stripe.body_at(&body, in_an_hour)),
        (
            "malformed_header",
            Letter::unsigned("/webhooks/stripe", &body).with_header("stripe-signature", "x"),
        ),
        ("malformed_header", stripe.event("evt_fake").with_header("stripe-signature", "t=1,v1=00")),
    ]
}

/// The answer without what differs for every request.
fn shape(answer: &Response) -> (u16, Vec<String>, Value) {
    let mut body: Value = serde_json::from_slice(&answer.body).unwrap();
    let id = body.as_object_mut().unwrap().remove("request_id").expect("a problem names its request");
    assert_eq!(answer.header("sekisho-request-id"), id.as_str());
    assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    assert_eq!(answer.header("sekisho-outcome"), None);
    let names = answer.headers.iter().map(|(name, _)| name.clone());
    (answer.status, names.collect(), body)
}

#[test]
fn a3_every_fake_gets_the_same_answer_that_helps_nobody() {
    each_store(|place| {
        let gateway = Gateway::open(place);
        let answers: Vec<_> = fakes().iter().map(|(_, letter)| gateway.send(letter)).collect();
        for answer in &answers {
            assert_eq!(shape(answer), shape(&answers[0]));
        }
        let (status, _, body) = shape(&answers[0]);
        assert_eq!(status, 400);
        assert_eq!(body["type"], "urn:sekisho:problem:refused");
        assert_eq!(body["status"], 400);
        assert_eq!(body.as_object().unwrap().len(), 3, "type, title, status and nothing more: {body}");
        assert!(gateway.events().is_empty());
    });
}

#[test]
fn a3_the_operator_reads_who_was_refused_and_why() {
    each_store(|place| {
        let gateway = Gateway::open(place);
        let answers: Vec<_> = fakes().iter().map(|(_, letter)| gateway.send(letter)).collect();
        let total = |gateway: &Gateway| -> i64 {
            gateway.rejections().iter().map(|one| one["count"].as_i64().unwrap()).sum()
        };
        wait_until("all refusals recorded", || total(&gateway) == answers.len() as i64);
        let recorded = gateway.rejections();
        for (reason, _) in fakes() {
            let one = recorded.iter().find(|one| one["reason"] == reason);
            let one = one.unwrap_or_else(|| panic!("no {reason} in {recorded:?}"));
            assert_eq!(one["source"], "stripe");
            assert_eq!(one["peer"], "127.0.0.1");
            let id = one["request_id"].as_str();
            assert!(answers.iter().any(|answer| answer.header("sekisho-request-id") == id), "{one}");
            assert!(gateway.metric("sekisho_rejections_total", &[reason]) >= 1);
        }
        assert_eq!(gateway.metric("sekisho_requests_total", &["rejected"]), answers.len() as u64);
        let table =
            gateway.type_in(&["rejections"]).done().mentions(&["127.0.0.1", "bad_signature", "stripe"]);
        assert!(table.stdout.lines().count() > recorded.len());
        gateway.type_in(&["rejections", "--source", "other"]).done().mentions(&["no requests were rejected"]);
        assert!(gateway.server.stderr().contains("request rejected"));
    });
}

#[test]
fn a3_a_source_may_refuse_with_401() {
    each_store(|place| {
        let gateway = Gateway::with(place, &stripe_source("reject_status = 401"));
        for (_, fake) in fakes() {
            let (status, _, body) = shape(&gateway.send(&fake));
            assert_eq!((status, &body["status"]), (401, &Value::from(401)));
        }
        assert_eq!(gateway.send(&Provider::stripe().event("evt_1")).status, 204);
    });
}

#[test]
fn a2_while_a_secret_is_rotated_both_are_good_and_afterwards_one() {
    each_store(|place| {
        let (old, new) = ("whsec_canary_old", "whsec_canary_new");
        let env = [("OLD", old), ("NEW", new)];
        let config = |secrets: &str| {
            format!("[[source]]\nname = \"stripe\"\nprovider = \"stripe\"\nsecrets = [{secrets}]\n")
        };
        let send = |gateway: &Gateway, secret: &str, id: &str| {
            gateway.send(&Provider::new("stripe", secret).event(id)).status
        };
        let rotating = Gateway::with_env(place, &config("\"env:NEW\", \"env:OLD\""), &env);
        assert_eq!(send(&rotating, old, "evt_1"), 204);
        assert_eq!(send(&rotating, new, "evt_2"), 204);
        drop(rotating);
        let rotated = Gateway::with_env(place, &config("\"env:NEW\""), &env);
        assert_eq!(send(&rotated, old, "evt_3"), 400);
        assert_eq!(send(&rotated, new, "evt_4"), 204);
        assert_eq!(rotated.event_ids(), ["evt_1", "evt_2", "evt_4"]);
    });
}

#[test]
fn a2_the_tolerance_is_the_sources_own() {
    each_store(|place| {
        let old = Time::from_ms(sekisho::now().ms() - 3_600_000);
        let stripe = Provider::stripe();
        let body = String::from_utf8(stripe.event("evt_1").body).unwrap();
        let gateway = Gateway::with(place, &stripe_source("tolerance = \"2h\""));
        assert_eq!(gateway.send(&stripe.body_at(&body, old)).status, 204);
        let too_old = Time::from_ms(sekisho::now().ms() - 3 * 3_600_000);
        assert_eq!(gateway.send(&stripe.body_at(&body, too_old)).status, 400);
    });
}

#[test]
fn a3_a_flood_of_forgeries_leaves_few_rows() {
    const FLOOD: usize = 3_000;
    each_store(|place| {
        let gateway = Gateway::open(place);
        let address = gateway.address();
        let senders: Vec<_> = (0..4)
            .map(|_| {
                std::thread::spawn(move || {
                    let fake = Provider::stripe().event("evt_flood").forged();
                    let headers: Vec<_> =
                        fake.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
                    for _ in 0..FLOOD / 4 {
                        let answer = sekisho_lab::http::post(address, &fake.path, &headers, &fake.body);
                        assert_eq!(answer.unwrap().status, 400);
                    }
                })
            })
            .collect();
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        let counted = |rows: &[Value]| rows.iter().map(|row| row["count"].as_u64().unwrap()).sum::<u64>();
        wait_until("the flood recorded", || counted(&gateway.rejections()) == FLOOD as u64);
        let rows = gateway.rejections().len();
        // Two if the clock struck meanwhile.
        assert!(rows <= 2, "{rows} rows for {FLOOD} forgeries");
        let lines = gateway.server.stderr().matches("request rejected").count();
        assert!(lines <= FLOOD / 20, "{lines} log lines for {FLOOD} forgeries");
    });
}

#[test]
fn a3_what_did_not_fit_or_found_no_door_leaves_a_trace_too() {
    each_store(|place| {
        let config = "[server]\nbody_bytes_max = \"128KiB\"\n".to_owned() + &stripe_source("");
        let gateway = Gateway::with(place, &config);
        let large = Provider::stripe().body(&format!("{{\"pad\":\"{}\"}}", "x".repeat(130 << 10)));
        assert_eq!(gateway.send(&large).status, 413);
        let astray = gateway.send(&Provider::stripe().to("/webhooks/strpie").event("evt_astray"));
        assert_eq!(astray.status, 404);
        assert!(astray.header("sekisho-request-id").is_some());
        assert_eq!(gateway.get("/webhooks/stripe").status, 405);
        wait_until("all are recorded", || gateway.rejections().len() == 3);
        let find =
            |reason: &str| gateway.rejections().into_iter().find(|one| one["reason"] == reason).unwrap();
        assert_eq!(find("too_large")["source"], "stripe");
        assert_eq!(find("too_large")["detail"], "more than 131072 bytes");
        assert_eq!(find("unknown_source")["detail"], "/webhooks/strpie");
        assert_eq!(find("unknown_source")["request_id"].as_str(), astray.header("sekisho-request-id"));
        assert_eq!(find("method_not_allowed")["source"], "stripe");
        assert_eq!(gateway.metric("sekisho_requests_total", &["malformed"]), 2);
    });
}

#[test]
fn a8_a_hint_that_anybody_can_send_is_kept_small() {
    each_store(|place| {
        let config = "[[source]]\nname = \"line_pay\"\nprovider = \"line_pay\"\n";
        let gateway = Gateway::with(place, config);
        let hint = |query: &str| Letter {
            method: "GET".into(),
            path: format!("/webhooks/line_pay?{query}"),
            headers: vec![("x-first".into(), "chosen".into()), ("x-junk".into(), "j".repeat(8 << 10))],
            body: Vec::new(),
        };
        assert_eq!(gateway.send(&hint("transactionId=2026111500000000001&orderId=ORD-1")).status, 204);
        let long = format!("transactionId=1&orderId={}", "9".repeat(5 << 10));
        assert_eq!(gateway.send(&hint(&long)).status, 413);
        let headers = place.sql("SELECT headers FROM event");
        assert_eq!(headers, "[]", "anybody may have written them");
        assert_eq!(gateway.events().len(), 1);
    });
}
