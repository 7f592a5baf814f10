//! H3: every line of the log parses and can be followed; errors reach Sentry; planted secrets are in none of it.

use std::fs;
use std::path::Path;

use sekisho_lab::app::{Behaviour, DemoApp};
use sekisho_lab::chat::{Chat, Mood, SENTRY_PATH, SENTRY_PUBLIC_KEY, Service};
use serde_json::Value;

use super::delivery::{came_to, event, route};
use super::notices::paid;
use crate::support::{Gateway, Place, Provider, each_store, stripe_source, wait_until};

/// What must be in no log line, span, envelope or figure.
const CANARIES: [&str; 9] = [
    "taro.canary@example.jp",
    "canary-in-the-body",
    "canary-in-a-header",
    "canary-in-a-query",
    "canary-authorization",
    "canary-otlp-key",
    "canary-answer",
    SENTRY_PUBLIC_KEY,
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
];

fn config(chat: &Chat, app: &DemoApp, more: &str) -> String {
    let dsn = format!("http://{SENTRY_PUBLIC_KEY}@{}/42", chat.address());
    format!(
        "[telemetry]\notlp = \"{}\"\notlp_headers = [\"authorization=Bearer canary-otlp-key\"]\nsample = 1\nsentry_dsn = \"{dsn}\"\n",
        chat.url()
    ) + &stripe_source("")
        + &route("app", app, &format!("retries = 1\nretry_first = \"50ms\"\nbreaker_failures = 0\n{more}"))
}

fn lines(gateway: &Gateway) -> Vec<Value> {
    let log = gateway.server.stderr();
    log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"))).collect()
}

#[test]
fn h3_every_line_can_be_followed_and_no_planted_secret_is_sent_out() {
    each_store(|place| {
        let chat = Chat::start().unwrap();
        let reply = sekisho_lab::app::Reply::status(500).with_body("canary-answer taro.canary@example.jp");
        let app = DemoApp::start(Behaviour::Answer(reply)).unwrap();
        let gateway = Gateway::with(place, &config(&chat, &app, ""));
        let odd = |letter: crate::support::Letter| {
            letter
                .with_header("x-odd", "canary-in-a-header")
                .with_header("authorization", "Bearer canary-authorization")
        };
        assert_eq!(gateway.send(&odd(paid("1", "taro.canary@example.jp"))).status, 204);
        assert_eq!(
            gateway.send(&odd(event("evt_2", "charge.updated", ",\"note\":\"canary-in-the-body\""))).status,
            204
        );
        gateway.send(&Provider::stripe().event("evt_3").forged());
        gateway.get("/v1/events?canary-in-a-query=1");
        wait_until("both are dead", || place.sql("SELECT count(*) FROM dead").trim() == "2");
        wait_until("spans and envelopes came", || !chat.spans().is_empty() && chat.seen(Service::Sentry) > 0);

        let lines = lines(&gateway);
        for line in &lines {
            let text = |name: &str| line[name].as_str().unwrap_or_default();
            assert!(text("correlation_id").len() > 4, "{line}");
            assert!(!text("time").is_empty() && !text("message").is_empty(), "{line}");
            if ["WARN", "ERROR"].contains(&text("level")) {
                assert!(!text("error_type").is_empty(), "{line}");
            }
        }
        let find = |message: &str| {
            lines
                .iter()
                .filter(|line| line["message"].as_str().unwrap().starts_with(message))
                .collect::<Vec<_>>()
        };
        let processed = find("event processed");
        let charge = processed.iter().find(|line| line["event_id"] == "evt_1").unwrap();
        assert!(charge["payment_id"].as_str().unwrap().starts_with("pay_"), "{charge}");
        assert_eq!(
            (&charge["level"], &charge["source"], &charge["trace_id"].as_str().unwrap().len()),
            (&"INFO".into(), &"stripe".into(), &32)
        );
        assert!(charge["correlation_id"].as_str().unwrap().starts_with("msg_"));
        let retried = find("job failed; it will be retried");
        assert!(
            retried.iter().all(|line| line["next"].is_string()
                && line["attempt"] == 1
                && line["error_type"] == "server_error"),
            "{retried:?}"
        );
        assert_eq!((retried.len(), find("job failed permanently").len()), (2, 2));
        let refused = find("request rejected")[0];
        assert_eq!(
            (&refused["correlation_id"], &refused["error_type"]),
            (&refused["request_id"], &"bad_signature".into())
        );

        let told: Vec<_> =
            chat.received().iter().map(|got| String::from_utf8_lossy(&got.body).into_owned()).collect();
        for canary in CANARIES {
            assert!(!gateway.server.log().contains(canary), "{canary} in the log:\n{}", gateway.server.log());
            assert!(!told.iter().any(|body| body.contains(canary)), "{canary} in {told:?}");
            assert!(!gateway.get("/metrics").text().contains(canary), "{canary} in the figures");
        }
        assert!(
            came_to(&app, "app")
                .iter()
                .all(|one| !one.headers.iter().any(|(_, value)| value.contains("canary-otlp")))
        );
    });
}

#[test]
fn h3_a_dead_letter_is_an_issue_at_sentry_and_its_limits_are_kept() {
    let (place, chat) = (Place::sqlite(), Chat::start().unwrap());
    let app = DemoApp::start(Behaviour::status(500)).unwrap();
    let gateway = Gateway::with(&place, &config(&chat, &app, "events = [\"charge.*\"]"));
    gateway.send(&event("evt_1", "charge.updated", ""));
    wait_until("it is told", || chat.seen(Service::Sentry) == 1);
    let issue = &chat.envelopes()[0];
    assert_eq!(issue["message"]["formatted"], "job failed permanently; it is a dead letter now");
    assert_eq!(
        (&issue["tags"]["error_type"], &issue["tags"]["lane"]),
        (&"server_error".into(), &"to:app".into())
    );
    let trace = issue["contexts"]["trace"]["trace_id"].as_str().unwrap();
    wait_until("its trace came", || chat.spans().iter().any(|span| span.trace == trace));

    // It asks for quiet: one more is heard, and then none for a minute.
    let busy = sekisho_lab::app::Reply::status(429).with_header("x-sentry-rate-limits", "60:error:key");
    chat.set(SENTRY_PATH, Mood::Answer(busy));
    let asked = || chat.received().iter().filter(|got| got.service == Service::Sentry).count();
    for n in 2..5 {
        gateway.send(&event(&format!("evt_{n}"), "charge.updated", ""));
    }
    wait_until("all are dead", || place.sql("SELECT count(*) FROM dead").trim() == "4");
    wait_until("it was asked once more", || asked() == 2);
    wait_until("the others were dropped", || {
        gateway.get("/metrics").text().contains("sekisho_reports_total{result=\"dropped\"} 3")
    });
    assert_eq!(asked(), 2);
}

#[test]
fn g1_operators_hear_of_trouble_by_sentry() {
    each_store(|place| {
        let chat = Chat::start().unwrap();
        let dsn = format!("http://{SENTRY_PUBLIC_KEY}@{}/42", chat.address());
        let config = format!(
            "[[channel]]\nname = \"issues\"\nkind = \"sentry\"\ndsn = \"{dsn}\"\nallow_private = true\n\
             [[notify]]\nname = \"told\"\nevents = [\"payment.paid\"]\nto = \"channel\"\nchannel = \"issues\"\ntemplate = \"operator-alert\"\n"
        );
        // The first answer is lost: told again, it is the same issue.
        chat.set(SENTRY_PATH, Mood::Drop);
        let gateway = Gateway::with(place, &(stripe_source("") + &config));
        gateway.send(&paid("1", "taro@example.jp"));
        wait_until("it was tried", || chat.seen(Service::Sentry) == 1);
        chat.set(SENTRY_PATH, Mood::Good);
        wait_until("it is sent", || {
            let notices = gateway.type_in(&["notices", "list", "--json"]).done().lines();
            notices.iter().any(|notice| notice["status"] == "sent")
        });
        assert_eq!(chat.seen(Service::Sentry), 1, "folded");
    });
}

/// Every WARN and ERROR of the program has a stable word to filter by.
#[test]
fn h3_every_warning_and_error_in_the_code_has_an_error_type() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a crate lies beside others");
    let (mut open, mut without) = (vec![crates.join("sekisho/src"), crates.join("store/src")], Vec::new());
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap_or_default();
            let shipped = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            for start in ["tracing::warn!(", "tracing::error!("] {
                let calls =
                    shipped.match_indices(start).map(|(at, _)| shipped[at..].split(';').next().unwrap());
                let bare = calls.filter(|call| !call.contains("error_type"));
                without.extend(bare.map(|call| format!("{}: {call}", path.display())));
            }
        }
    }
    assert_eq!(without, [""; 0]);
}
