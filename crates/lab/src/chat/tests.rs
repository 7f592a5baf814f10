use serde_json::json;

use super::*;
use crate::http::{self, Response};

fn post(chat: &Chat, path: &str, headers: &[(&str, &str)], body: &str) -> Response {
    http::post(chat.address(), path, headers, body.as_bytes()).unwrap()
}

fn said(response: &Response) -> Value {
    serde_json::from_slice(&response.body).unwrap_or_default()
}

#[test]
fn g1_each_service_says_yes_in_its_own_way() {
    let chat = Chat::start().unwrap();
    let slack = json!({ "text": "t", "blocks": [{ "type": "header", "text": { "text": "t" } }] }).to_string();
    let yes = post(&chat, SLACK_PATH, &[], &slack);
    assert_eq!((yes.status, yes.text().as_str()), (200, "ok"));
    let discord = json!({ "content": "t" }).to_string();
    assert_eq!(post(&chat, DISCORD_PATH, &[], &discord).status, 204);
    let named = post(&chat, &format!("{DISCORD_PATH}?wait=true"), &[], &discord);
    assert_eq!((named.status, said(&named)["id"].is_string()), (200, true));
    let event = |key: &str| {
        let payload = json!({ "summary": "t", "source": "lab", "severity": "critical" });
        json!({ "routing_key": key, "event_action": "trigger", "dedup_key": "k", "payload": payload })
            .to_string()
    };
    for _ in 0..2 {
        assert_eq!(post(&chat, PAGERDUTY_PATH, &[], &event(ROUTING_KEY)).status, 202);
    }
    assert_eq!(post(&chat, PAGERDUTY_PATH, &[], &event("wrong")).status, 403);
    assert_eq!(post(&chat, TWILIO_PATH, &[], "To=%2B81").status, 401);
    for id in ["1", "1", "2"] {
        assert_eq!(post(&chat, HOOK_PATH, &[("webhook-id", id)], "{}").status, 204);
    }
    let seen = [Service::Slack, Service::Discord, Service::PagerDuty, Service::Twilio, Service::Hook];
    assert_eq!(seen.map(|service| chat.seen(service)), [1, 2, 1, 0, 2], "copies fold where they are known");
}

#[test]
fn g1_what_is_too_long_for_the_real_one_is_refused() {
    let chat = Chat::start().unwrap();
    for (path, message) in [
        (
            SLACK_PATH,
            json!({ "text": "t", "blocks": [{ "type": "header", "text": { "text": "長".repeat(151) } }] }),
        ),
        (DISCORD_PATH, json!({ "content": "長".repeat(2001) })),
        (DISCORD_PATH, json!({ "content": "" })),
        (PAGERDUTY_PATH, json!({ "routing_key": ROUTING_KEY, "dedup_key": "k".repeat(256) })),
    ] {
        assert_eq!(post(&chat, path, &[], &message.to_string()).status, 400, "{path}");
    }
    assert!(chat.received().iter().all(|got| !got.taken));
}

#[test]
fn g1_a_mood_is_a_paths_own() {
    let chat = Chat::start().unwrap();
    chat.set(DISCORD_PATH, Mood::Busy { retry_after_ms: 1500 });
    let busy = post(&chat, DISCORD_PATH, &[], "{}");
    assert_eq!((busy.status, busy.header("retry-after")), (429, Some("2")));
    assert_eq!(said(&busy)["retry_after"], 1.5);
    assert_eq!(post(&chat, HOOK_PATH, &[], "{}").status, 204);
    chat.set(HOOK_PATH, Mood::Status(410));
    assert_eq!(post(&chat, HOOK_PATH, &[], "{}").status, 410);
    chat.set(HOOK_PATH, Mood::Answer(Reply::status(489)));
    assert_eq!(post(&chat, HOOK_PATH, &[], "{}").status, 489);
    chat.set(HOOK_PATH, Mood::Drop);
    assert!(http::post(chat.address(), HOOK_PATH, &[], b"{}").is_err());
    let taken: Vec<bool> = chat.received().iter().map(|got| got.taken).collect();
    assert_eq!(taken, [false, true, false, false, true], "what was dropped was taken all the same");
}
