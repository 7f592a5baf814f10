//! H3: one trace from the provider's request to the last effect, over processes and retries; complete for what died; and a
//! collector that hangs costs nothing.

use std::collections::BTreeSet;

use sekisho_lab::app::{Behaviour, DemoApp, Reply};
use sekisho_lab::chat::{Chat, CollectedSpan, HOOK_PATH, Mood, OTLP_PATH, Service};
use sekisho_lab::process::ServerOptions;
use serde_json::Value;

use super::delivery::{came_to, event, route};
use super::notices::paid;
use crate::support::{Gateway, Letter, Place, Provider, each_store, stripe_source, wait_until};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

fn traced(letter: Letter, flags: &str) -> Letter {
    letter.with_header("traceparent", &format!("00-{TRACE}-{CALLER}-{flags}"))
}

fn telemetry(chat: &Chat, sample: &str) -> String {
    format!("[telemetry]\notlp = \"{}\"\nsample = {sample}\n", chat.url())
}

/// A program of the operator's that is told of every payment.
fn hook(chat: &Chat) -> String {
    format!(
        "[[channel]]\nname = \"hook\"\nkind = \"webhook\"\nurl = \"{}{HOOK_PATH}\"\nsecrets = [\"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\"]\n\
         allow_private = true\n[[notify]]\nname = \"told\"\nevents = [\"payment.paid\"]\nto = \"channel\"\nchannel = \"hook\"\n\
         template = \"operator-alert\"\n",
        chat.url()
    )
}

fn named<'s>(spans: &'s [CollectedSpan], name: &str) -> Vec<&'s CollectedSpan> {
    spans.iter().filter(|span| span.name == name).collect()
}

fn header<'h>(headers: &'h [(String, String)], name: &str) -> Option<&'h str> {
    headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// Each span hangs below another of them, or below this one.
fn check_tree(spans: &[CollectedSpan], above: Option<&str>) {
    let ids: BTreeSet<_> = spans.iter().map(|span| span.id.as_str()).collect();
    let loose: Vec<_> = spans
        .iter()
        .filter(|span| !span.parent.as_deref().is_some_and(|parent| ids.contains(parent)))
        .map(|span| (span.name.as_str(), span.parent.as_deref()))
        .collect();
    assert_eq!(loose, [("POST /webhooks/stripe", above)], "{spans:#?}");
    assert!(spans.iter().all(|span| span.start_ns <= span.end_ns), "{spans:#?}");
}

#[test]
fn h3_one_trace_leads_from_the_provider_over_two_nodes_and_a_retry_to_app_and_notice() {
    let (place, chat) = (Place::postgres(), Chat::start().unwrap());
    let app = DemoApp::start(Behaviour::FailFirst { requests: 1, reply: Reply::status(503) }).unwrap();
    let config = telemetry(&chat, "0")
        + &stripe_source("")
        + &route("app", &app, "events = [\"payment.paid\"]\nretry_first = \"100ms\"\nbreaker_failures = 0")
        + &hook(&chat);
    let node = |role: &str| {
        let (role, env) = (Some(role.to_owned()), [("OTEL_RESOURCE_ATTRIBUTES", "host.name=lab")]);
        Gateway::started(&place.url, &config, &env, |options| ServerOptions { role, ..options }).unwrap()
    };
    let (receiver, worker) = (node("gateway"), node("worker,scheduler"));
    // The caller decided: its flag counts, whatever the share here is.
    assert_eq!(receiver.send(&traced(paid("1", "taro@example.jp"), "01")).status, 204);
    wait_until("the app was called twice, and the notice sent", || {
        came_to(&app, "app").len() == 2 && chat.seen(Service::Hook) == 1
    });
    let all = ["POST /webhooks/stripe", "announce payment.paid", "notify", "send hook"];
    wait_until("all of it came to the collector", || {
        let spans = chat.spans();
        all.iter().all(|name| !named(&spans, name).is_empty()) && named(&spans, "deliver app").len() == 2
    });
    let spans: Vec<_> = chat.spans().into_iter().filter(|span| span.trace == TRACE).collect();
    assert_eq!(spans.len(), chat.spans().len(), "there is no other trace");
    check_tree(&spans, Some(CALLER));
    let calls = named(&spans, "deliver app");
    let outcome = |span: &CollectedSpan| {
        (span.is_error, span.attribute("http.response.status_code").map(str::to_owned))
    };
    assert_eq!(
        [outcome(calls[0]), outcome(calls[1])],
        [(true, Some("503".into())), (false, Some("204".into()))]
    );
    assert_eq!(calls[0].attribute("error.type"), Some("server_error"));
    // Whoever is called goes on from the very attempt that called.
    for (call, came) in calls.iter().zip(came_to(&app, "app")) {
        assert_eq!(header(&came.headers, "traceparent"), Some(&*format!("00-{TRACE}-{}-01", call.id)));
    }
    let told = chat.received().into_iter().find(|got| got.service == Service::Hook).unwrap();
    let sent = named(&spans, "send hook")[0];
    assert_eq!(told.header("traceparent"), Some(&*format!("00-{TRACE}-{}-01", sent.id)));

    // The same is drawn without the collector, with the same ids.
    let id = receiver.events().iter().find(|one| one["event_id"] == "evt_1").unwrap()["id"].clone();
    let drawn = worker.type_in(&["trace", id.as_str().unwrap(), "--json"]).done().lines().remove(0);
    let ids = |spans: &Value| -> BTreeSet<String> {
        spans.as_array().unwrap().iter().map(|span| span["id"].as_str().unwrap().to_owned()).collect()
    };
    let exported: BTreeSet<_> = spans.iter().map(|span| span.id.clone()).collect();
    assert_eq!((&drawn["trace_id"], ids(&drawn["spans"])), (&TRACE.into(), exported), "{drawn:#}");
}

#[test]
fn h3_the_trace_of_a_dead_letter_is_complete_though_nothing_is_sampled() {
    each_store(|place| {
        let (chat, app) = (Chat::start().unwrap(), DemoApp::start(Behaviour::status(500)).unwrap());
        let config = telemetry(&chat, "0")
            + &stripe_source("")
            + &route(
                "app",
                &app,
                "events = [\"payment.paid\"]\nretries = 1\nretry_first = \"50ms\"\nbreaker_failures = 0",
            );
        let gateway = Gateway::with(place, &config);
        assert_eq!(gateway.send(&paid("1", "taro@example.jp")).status, 204);
        assert_eq!(gateway.send(&event("evt_other", "charge.updated", "")).status, 204);
        wait_until("the trace came", || !named(&chat.spans(), "deliver app").is_empty());
        let spans = chat.spans();
        check_tree(&spans, None);
        assert_eq!(
            spans.iter().map(|span| &span.trace).collect::<BTreeSet<_>>().len(),
            1,
            "of the dead alone"
        );
        assert_eq!(named(&spans, "deliver app").len(), 2, "{spans:#?}");
        assert!(named(&spans, "deliver app").iter().all(|span| span.is_error));
        for name in ["POST /webhooks/stripe", "settle", "announce payment.paid"] {
            assert!(!named(&spans, name).is_empty(), "{name} in {spans:#?}");
        }
        assert!(spans.iter().all(|span| span.attribute("sekisho.rebuilt") == Some("true")));
        // Not sampled, and still in the app's hands with the same id, to be found in its log.
        let trace = format!("00-{}-", spans[0].trace);
        let came = came_to(&app, "app");
        let handed = header(&came[0].headers, "traceparent").unwrap();
        assert!(handed.starts_with(&trace) && handed.ends_with("-00"), "{handed}");
    });
}

#[test]
fn h3_a_collector_that_hangs_costs_nothing_but_spans() {
    each_store(|place| {
        let (chat, app) = (Chat::start().unwrap(), DemoApp::start(Behaviour::Ok).unwrap());
        chat.set(OTLP_PATH, Mood::Hang);
        let config = telemetry(&chat, "1.0") + &stripe_source("") + &route("app", &app, "");
        let mut gateway = Gateway::with(place, &config);
        for n in 0..200 {
            assert_eq!(gateway.send(&Provider::stripe().event(&format!("evt_{n}"))).status, 204);
        }
        wait_until("all were delivered", || app.counts().processed == 200);
        assert!(!chat.received().is_empty(), "it was asked");
        let began = std::time::Instant::now();
        gateway.server.terminate().unwrap();
        assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
    });
}

#[test]
fn h3_a_trace_is_drawn_without_any_collector() {
    each_store(|place| {
        let app = DemoApp::start(Behaviour::FailFirst { requests: 1, reply: Reply::status(500) }).unwrap();
        let config = "[telemetry]\ntrace_url = \"https://traces.example.jp/{trace_id}\"\n".to_owned()
            + &stripe_source("")
            + &route(
                "app",
                &app,
                "events = [\"payment.paid\"]\nretry_first = \"50ms\"\nbreaker_failures = 0",
            );
        let gateway = Gateway::with(place, &config);
        gateway.send(&paid("1", "taro@example.jp"));
        wait_until("it came", || app.counts().processed == 1);
        wait_until("it is written", || {
            let drawn = gateway.type_in(&["trace", "evt_1", "--json"]).done().lines().remove(0);
            drawn["spans"].as_array().unwrap().iter().filter(|span| span["name"] == "deliver app").count()
                == 2
        });
        let shown = gateway.type_in(&["trace", "evt_1"]).done();
        let shown = shown.mentions(&[
            "POST /webhooks/stripe",
            "settle",
            "announce payment.paid",
            "deliver app",
            "server_error",
        ]);
        assert!(
            shown.stdout.contains("https://traces.example.jp/") && shown.stdout.contains('█'),
            "{}",
            shown.stdout
        );
        // From anywhere in it the whole is shown.
        let own =
            gateway.type_in(&["events", "list", "--own", "--type", "payment.paid", "--json"]).done().lines();
        let of_announcement = gateway.type_in(&["trace", own[0]["id"].as_str().unwrap()]).done();
        assert_eq!(of_announcement.stdout, shown.stdout);
        gateway.type_in(&["trace", "evt_unknown"]).failed(1).mentions(&["no event has the id"]);
        assert!(came_to(&app, "app").iter().all(|came| header(&came.headers, "traceparent").is_none()));
    });
}
