use sekisho_core::notification::message::Recipient;
use sekisho_core::provider;
use sekisho_lab::app::Reply;
use sekisho_lab::chat::{Chat, Got, HOOK_PATH, Mood};

use super::*;
use crate::effects::post::tests::{LONG, WHSEC, message, verdict};

fn webhook(chat: &Chat) -> Webhook {
    let url = format!("{}{HOOK_PATH}", chat.url());
    Webhook::new(Settings { url, secrets: vec![Secret::new(WHSEC)], allow_private: true }, &Env::system())
        .unwrap()
}

/// Does a receiver with this secret believe it?
fn is_believed(got: &Got, secret: &str) -> bool {
    let provider = provider::find("standard_webhooks").unwrap();
    let setup = provider::Setup { secrets: vec![Secret::new(secret)], ..provider::Setup::default() };
    let request = provider::Request {
        method: &http::Method::POST,
        headers: &headers(got.headers.clone().into_iter()),
        query: "",
        body: &Bytes::from(got.body.clone()),
        certificate: None,
    };
    provider.open(&setup).unwrap().check(&request, crate::now()).is_ok()
}

#[tokio::test]
async fn g1_the_receiver_can_check_and_dedupe_it() {
    let chat = Chat::start().unwrap();
    let to = Recipient { address: "taro@example.jp".parse().unwrap(), name: None };
    let message = Message { to: Some(to), ..message() };
    for _ in 0..2 {
        assert_eq!(verdict(&webhook(&chat).send(&message, LONG).await).0, "accepted");
    }
    for got in chat.received() {
        assert_eq!(got.header("webhook-id"), Some("ntc_1"), "the same on every try");
        assert!(is_believed(&got, WHSEC) && !is_believed(&got, "whsec_b2xkIHNlY3JldA=="));
        let expected = json!({
            "id": "ntc_1",
            "closes": false,
            "key": "refund/re_1",
            "template": "refund_failed",
            "language": "ja",
            "subject": "返金に失敗しました",
            "text": "注文 42 を見てください。",
            "data": { "order": 42 },
            "to": { "address": "taro@example.jp", "name": null },
        });
        assert_eq!(got.json(), expected);
    }
    assert!(payload(&super::tests::message())["to"].is_null(), "nobody is named when it is for nobody");
}

#[tokio::test]
async fn g1_answers_mean_what_they_mean_of_deliveries() {
    let chat = Chat::start().unwrap();
    let never = Reply::status(489).with_header("upstash-nonretryable-error", "true");
    let cases = [
        (Reply::status(200), "accepted", ""),
        (Reply::status(302), "transient", "redirect"),
        (Reply::status(404), "transient", "client_error"),
        (Reply::status(489), "transient", "client_error"),
        (never, "terminal", "non_retryable"),
        (Reply::status(503), "transient", "server_error"),
    ];
    for (reply, expected, reason) in cases {
        chat.set(HOOK_PATH, Mood::Answer(reply.clone()));
        assert_eq!(verdict(&webhook(&chat).send(&message(), LONG).await), (expected, reason), "{reply:?}");
    }
}

#[test]
fn g1_without_a_secret_nothing_opens() {
    for secrets in [vec![], vec![Secret::new("whsec_not base 64")]] {
        let settings =
            Settings { url: "https://app.example.com/in".to_owned(), secrets, allow_private: false };
        let error = format!("{:#}", Webhook::new(settings, &Env::system()).unwrap_err());
        assert!(error.contains("whsec_…"), "{error}");
    }
}
