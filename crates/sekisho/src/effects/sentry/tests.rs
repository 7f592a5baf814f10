use sekisho_lab::app::Reply;
use sekisho_lab::chat::{Chat, Mood, SENTRY_PATH, SENTRY_PUBLIC_KEY, Service};

use super::*;
use crate::effects::post::tests::{LONG, failure, message, verdict};

fn sentry(chat: &Chat, key: &str) -> Sentry {
    let dsn = Dsn::parse(&format!("http://{key}@{}/42", chat.address())).unwrap();
    Sentry::new(&Settings { dsn, allow_private: true }, &Env::system()).unwrap()
}

fn report() -> ErrorReport {
    ErrorReport {
        id: "0".repeat(32),
        at: Time::from_ms(1_770_000_000_000),
        message: "job failed permanently; it is a dead letter now".into(),
        error: Some("410 Gone".into()),
        tags: vec![("error_type", "gone".into()), ("lane", "to:app".into())],
        trace: Some("4bf92f3577b34da6a3ce929d0e0e4736".into()),
        fingerprint: vec!["job failed".into(), "gone".into()],
    }
}

#[test]
fn h3_a_dsn_is_read_and_its_key_is_never_printed() {
    let dsn = Dsn::parse("https://canary@sentry.example.jp/below/42").unwrap();
    assert_eq!(dsn.url("envelope/").unwrap().as_str(), "https://sentry.example.jp/below/api/42/envelope/");
    assert!(!format!("{dsn:?}").contains("canary"));
    for bad in ["", "sentry.io/1", "https://sentry.io/42", "https://key@sentry.io", "ftp://key@sentry.io/1"] {
        assert!(Dsn::parse(bad).is_err(), "{bad}");
    }
}

#[tokio::test]
async fn g1_a_message_is_an_issue_and_told_again_it_is_the_same_one() {
    let chat = Chat::start().unwrap();
    let sentry = sentry(&chat, SENTRY_PUBLIC_KEY);
    for id in ["ntc_1", "ntc_1.1"] {
        let message = Message { id: id.to_owned(), ..message() };
        assert_eq!(verdict(&sentry.send(&message, LONG).await).0, "accepted");
    }
    assert_eq!(chat.seen(Service::Sentry), 1);
    let event = &chat.envelopes()[0];
    assert_eq!(event["message"]["formatted"], "返金に失敗しました");
    assert_eq!(event["fingerprint"], json!(["refund/re_1"]));
    assert_eq!(event["event_id"].as_str().unwrap().len(), 32);
    assert!(event.get("data").is_none() && !event.to_string().contains("\"order\""), "{event}");
}

#[tokio::test]
async fn g1_the_answer_decides_what_became_of_it() {
    let chat = Chat::start().unwrap();
    let own = sentry(&chat, SENTRY_PUBLIC_KEY);
    let cases = [
        (200, "accepted", ""),
        (400, "terminal", "refused"),
        (403, "closed", "bad_credentials"),
        (404, "closed", "channel_gone"),
        (429, "transient", "rate_limited"),
        (500, "transient", "server_error"),
    ];
    for (status, expected, reason) in cases {
        chat.set(SENTRY_PATH, Mood::Status(status));
        assert_eq!(verdict(&own.send(&message(), LONG).await), (expected, reason), "{status}");
    }
    chat.set(SENTRY_PATH, Mood::Good);
    let sent = sentry(&chat, "wrong").send(&message(), LONG).await;
    assert_eq!(verdict(&sent), ("closed", "bad_credentials"));
    assert!(!failure(&sent).error.contains("wrong"), "{}", failure(&sent).error);
    chat.set(SENTRY_PATH, Mood::Drop);
    assert_eq!(verdict(&own.send(&message(), LONG).await).0, "transient", "copies are folded");
}

#[tokio::test]
async fn h3_an_error_is_reported_and_sentrys_limits_are_kept() {
    let chat = Chat::start().unwrap();
    let sentry = sentry(&chat, SENTRY_PUBLIC_KEY);
    assert_eq!(sentry.report(&report(), LONG).await, Reported::Taken);
    let event = &chat.envelopes()[0];
    assert_eq!(event["tags"]["error_type"], "gone");
    assert_eq!(event["contexts"]["trace"]["trace_id"], "4bf92f3577b34da6a3ce929d0e0e4736");
    let limits = [
        ("60:error;transaction:key", 200, Reported::Closed(Duration::from_mins(1))),
        ("90::organization", 429, Reported::Closed(Duration::from_secs(90))),
        ("60:transaction:key", 200, Reported::Taken),
        ("60:transaction:key, 30:default;error:key", 429, Reported::Closed(Duration::from_secs(30))),
        ("", 429, Reported::Closed(Duration::from_secs(7))),
        ("", 400, Reported::Refused),
    ];
    for (limit, status, expected) in limits {
        let mut reply = Reply::status(status).with_header("retry-after", "7");
        if !limit.is_empty() {
            reply = reply.with_header("x-sentry-rate-limits", limit);
        }
        chat.set(SENTRY_PATH, Mood::Answer(reply));
        assert_eq!(sentry.report(&report(), LONG).await, expected, "{limit} {status}");
    }
    chat.set(SENTRY_PATH, Mood::Drop);
    assert_eq!(sentry.report(&report(), LONG).await, Reported::Unanswered);
}
