use sekisho_lab::chat::{Chat, Mood, PAGERDUTY_PATH, ROUTING_KEY, Service};

use super::*;
use crate::effects::post::tests::{LONG, failure, message, verdict};

fn pager(chat: &Chat, key: &str) -> PagerDuty {
    let settings = Settings { url: chat.url(), routing_key: Secret::new(key), allow_private: true };
    PagerDuty::new(settings, &Env::system()).unwrap()
}

#[tokio::test]
async fn g1_an_incident_is_opened_and_told_again_it_is_the_same_one() {
    let chat = Chat::start().unwrap();
    let pager = pager(&chat, ROUTING_KEY);
    for id in ["ntc_1", "ntc_1.1"] {
        let message = Message { id: id.to_owned(), ..message() };
        assert_eq!(verdict(&pager.send(&message, LONG).await).0, "accepted");
    }
    let expected = json!({
        "routing_key": ROUTING_KEY,
        "event_action": "trigger",
        "dedup_key": "refund/re_1",
        "payload": {
            "summary": "返金に失敗しました",
            "source": "sekisho",
            "severity": "critical",
            "custom_details": {
                "id": "ntc_1",
                "template": "refund_failed",
                "text": "注文 42 を見てください。",
                "data": { "order": 42 },
            },
        },
    });
    assert_eq!(chat.received()[0].json(), expected);
    assert_eq!(chat.seen(Service::PagerDuty), 1);
}

#[tokio::test]
async fn g1_the_answer_decides_what_became_of_it() {
    let chat = Chat::start().unwrap();
    let pager = pager(&chat, ROUTING_KEY);
    let cases = [
        (202, "accepted", ""),
        (400, "terminal", "refused"),
        (403, "closed", "bad_credentials"),
        (404, "closed", "channel_gone"),
        (413, "terminal", "refused"),
        (500, "transient", "server_error"),
    ];
    for (status, expected, reason) in cases {
        chat.set(PAGERDUTY_PATH, Mood::Status(status));
        assert_eq!(verdict(&pager.send(&message(), LONG).await), (expected, reason), "{status}");
    }
    chat.set(PAGERDUTY_PATH, Mood::Good);
    let sent = super::tests::pager(&chat, "wrong").send(&message(), LONG).await;
    assert_eq!(verdict(&sent), ("closed", "bad_credentials"));
    assert!(failure(&sent).error.contains("integration key"), "{}", failure(&sent).error);
}

#[tokio::test]
async fn g1_what_is_long_is_cut_hashed_or_left_out() {
    let chat = Chat::start().unwrap();
    let message = Message {
        key: "鍵".repeat(256),
        subject: "長".repeat(2000),
        text: "長".repeat(20_000),
        data: json!({ "much": "x".repeat(EVENT_BYTES_MAX) }),
        ..message()
    };
    let sent = pager(&chat, ROUTING_KEY).send(&message, LONG).await;
    assert_eq!(verdict(&sent).0, "accepted");
    let event = chat.received()[0].json();
    let payload = &event["payload"];
    assert_eq!(payload["summary"].as_str().unwrap().chars().count(), SUMMARY_MAX);
    assert_eq!(payload["custom_details"]["text"].as_str().unwrap().chars().count(), TEXT_MAX);
    assert_eq!(payload["custom_details"]["data"], "left out: too large for PagerDuty");
    let key = event["dedup_key"].as_str().unwrap();
    assert!(key.starts_with("sha256:") && key.len() == 7 + 64, "{key}");
    assert_eq!(key, dedup_key(&message.key), "the same for the same");
    assert_eq!(dedup_key(&"鍵".repeat(255)), "鍵".repeat(255));
}

#[test]
fn g1_settings_that_cannot_work_are_refused() {
    let good = Settings { url: BASE_URL.to_owned(), routing_key: Secret::new("k"), allow_private: false };
    for bad in [
        Settings { routing_key: Secret::new(""), ..good.clone() },
        Settings { url: "http://events.pagerduty.com".to_owned(), ..good.clone() },
        Settings { url: format!("{BASE_URL}/?x=1"), ..good.clone() },
    ] {
        assert!(PagerDuty::new(bad.clone(), &Env::system()).is_err(), "{bad:?}");
    }
    assert!(PagerDuty::new(good, &Env::system()).is_ok());
}

#[tokio::test]
async fn g1_what_is_over_resolves_the_incident_of_its_key() {
    let chat = Chat::start().unwrap();
    let pager = pager(&chat, ROUTING_KEY);
    assert_eq!(verdict(&pager.send(&message(), LONG).await).0, "accepted");
    assert_eq!(chat.open_incidents().into_iter().collect::<Vec<_>>(), ["refund/re_1"]);
    let over = Message { closes: true, id: "ntc_2".into(), ..message() };
    assert_eq!(verdict(&pager.send(&over, LONG).await).0, "accepted");
    assert_eq!(chat.open_incidents().len(), 0);
    let expected =
        json!({ "routing_key": ROUTING_KEY, "event_action": "resolve", "dedup_key": "refund/re_1" });
    assert_eq!(chat.received()[1].json(), expected);
}
