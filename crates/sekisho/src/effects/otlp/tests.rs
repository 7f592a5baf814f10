use sekisho_core::Seq;
use sekisho_core::trace::{Installation, SpanKind};
use sekisho_lab::app::Reply;
use sekisho_lab::chat::{Chat, Mood, OTLP_PATH, Service};

use super::*;

fn span() -> Span {
    let installation = Installation::from_bytes([7; 16]);
    Span {
        trace: installation.trace_of(Seq::from_i64(1)),
        id: installation.span_of(Seq::from_i64(1)),
        parent: Some(installation.span_of(Seq::from_i64(2))),
        name: "deliver app".into(),
        kind: SpanKind::Client,
        start_us: 1_770_000_000_000_000,
        end_us: 1_770_000_000_020_000,
        attributes: vec![("sekisho.source", "stripe".into()), ("sekisho.attempt", Attribute::Number(2))],
        error: Some("server_error".into()),
    }
}

fn collector(chat: &Chat) -> Otlp {
    let headers = vec![(HeaderName::from_static("authorization"), Secret::new("Bearer canary"))];
    let resource = vec![("service.name".to_owned(), "shop".to_owned())];
    let settings = Settings { url: format!("{}{OTLP_PATH}", chat.url()), headers, resource };
    Otlp::new(&settings, &Env::system()).unwrap()
}

#[tokio::test]
async fn h3_spans_are_encoded_as_collectors_read_them() {
    let chat = Chat::start().unwrap();
    collector(&chat).send(&[span()]).await.unwrap();
    let got = &chat.received()[0];
    assert_eq!((got.service, got.taken), (Service::Otlp, true));
    assert_eq!(got.header("content-type"), Some("application/json"));
    assert_eq!(got.header("authorization"), Some("Bearer canary"));
    let spans = chat.spans();
    let (one, own) = (&spans[0], span());
    assert_eq!(one.trace, own.trace.to_string());
    assert_eq!(
        (one.id.clone(), one.parent.clone()),
        (own.id.to_string(), Some(own.parent.unwrap().to_string()))
    );
    assert_eq!((one.name.as_str(), one.kind, one.is_error), ("deliver app", 3, true));
    assert_eq!((one.start_ns, one.end_ns), (1_770_000_000_000_000_000, 1_770_000_000_020_000_000));
    assert_eq!(one.attribute("sekisho.attempt"), Some("2"));
    assert_eq!(one.attribute("error.type"), Some("server_error"));
    assert_eq!(one.service, "shop");
}

#[tokio::test]
async fn h3_what_a_collector_answers_decides_whether_it_is_asked_again() {
    let chat = Chat::start().unwrap();
    let collector = collector(&chat);
    for (status, is_later) in [(429, true), (503, true), (500, true), (400, false), (401, false)] {
        chat.set(OTLP_PATH, Mood::Answer(Reply::status(status).with_header("retry-after", "7")));
        match collector.send(&[span()]).await.unwrap_err() {
            ExportFailure::Later { error, after } => {
                assert!(is_later && error.contains(&status.to_string()));
                assert_eq!(after, Some(Duration::from_secs(7)));
            }
            ExportFailure::Refused { error } => {
                assert!(!is_later && error.contains(&status.to_string()) && !error.contains("canary"));
            }
        }
    }
    chat.set(OTLP_PATH, Mood::Drop);
    assert!(matches!(collector.send(&[span()]).await, Err(ExportFailure::Later { .. })));
}
