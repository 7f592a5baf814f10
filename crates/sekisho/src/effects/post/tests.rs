//! What holds for every channel over HTTP, and what their tests share.

use std::borrow::Cow;

use sekisho_core::job::Class;
use sekisho_core::language::Language;
use sekisho_core::notification::Message;
use sekisho_lab::app::Reply;
use sekisho_lab::chat::{
    Chat, DISCORD_PATH, HOOK_PATH, Mood, PAGERDUTY_PATH, ROUTING_KEY, SLACK_PATH, Service, TWILIO_PATH,
    TWILIO_SID, TWILIO_TOKEN,
};
use serde_json::json;

use super::*;
use crate::effects::{discord, pagerduty, slack, twilio, webhook};

/// Far away: no test waits for it.
pub const LONG: Duration = Duration::from_secs(20);
/// What a silent server costs a test.
const SHORT: Duration = Duration::from_millis(200);
pub const WHSEC: &str = "whsec_bmV3IHNlY3JldA==";

pub fn message() -> Message {
    Message {
        id: "ntc_1".to_owned(),
        key: "refund/re_1".to_owned(),
        closes: false,
        to: None,
        language: Language::Ja,
        subject: "返金に失敗しました".to_owned(),
        text: "注文 42 を見てください。".to_owned(),
        html: None,
        template: "refund_failed".to_owned(),
        data: json!({ "order": 42 }),
        trace: None,
    }
}

/// What it came to, in one word, with the failure's own.
pub fn verdict(sent: &Sent) -> (&'static str, &str) {
    match sent {
        Sent::Accepted(_) => ("accepted", ""),
        Sent::Failed(failure) => match failure.class {
            Class::Transient => ("transient", failure.reason),
            Class::Terminal => ("terminal", failure.reason),
        },
        Sent::Uncertain(failure) => ("uncertain", failure.reason),
        Sent::Closed { failure, .. } => ("closed", failure.reason),
    }
}

pub fn failure(sent: &Sent) -> &Failure {
    match sent {
        Sent::Accepted(receipt) => panic!("accepted: {receipt:?}"),
        Sent::Failed(failure) | Sent::Uncertain(failure) | Sent::Closed { failure, .. } => failure,
    }
}

enum Channel {
    Slack(slack::Slack),
    Discord(discord::Discord),
    Webhook(webhook::Webhook),
    PagerDuty(pagerduty::PagerDuty),
    Twilio(twilio::Twilio),
}
use Channel::{Discord, PagerDuty, Slack, Twilio, Webhook};

impl Channel {
    fn all(url: &str, allow_private: bool) -> anyhow::Result<[Self; 5]> {
        let secret = |path: &str| Secret::new(format!("{url}{path}"));
        let url = url.to_owned();
        Ok([
            Slack(slack::Slack::new(
                slack::Settings { url: secret(SLACK_PATH), allow_private },
                &Env::system(),
            )?),
            Discord(discord::Discord::new(
                discord::Settings { url: secret(DISCORD_PATH), allow_private },
                &Env::system(),
            )?),
            Webhook(webhook::Webhook::new(
                webhook::Settings {
                    url: format!("{url}{HOOK_PATH}"),
                    secrets: vec![Secret::new(WHSEC)],
                    allow_private,
                },
                &Env::system(),
            )?),
            PagerDuty(pagerduty::PagerDuty::new(
                pagerduty::Settings {
                    url: url.clone(),
                    routing_key: Secret::new(ROUTING_KEY),
                    allow_private,
                },
                &Env::system(),
            )?),
            Twilio(twilio::Twilio::new(
                twilio::Settings {
                    url,
                    account_sid: TWILIO_SID.to_owned(),
                    auth_token: Secret::new(TWILIO_TOKEN),
                    from: "+815012345678".to_owned(),
                    to: "+819012345678".to_owned(),
                    allow_private,
                },
                &Env::system(),
            )?),
        ])
    }

    async fn send(&self, message: &Message, within: Duration) -> Sent {
        match self {
            Slack(channel) => channel.send(message, within).await,
            Discord(channel) => channel.send(message, within).await,
            Webhook(channel) => channel.send(message, within).await,
            PagerDuty(channel) => channel.send(message, within).await,
            Twilio(channel) => channel.send(message, within).await,
        }
    }

    fn path(&self) -> &'static str {
        match self {
            Slack(_) => SLACK_PATH,
            Discord(_) => DISCORD_PATH,
            Webhook(_) => HOOK_PATH,
            PagerDuty(_) => PAGERDUTY_PATH,
            Twilio(_) => TWILIO_PATH,
        }
    }

    fn knows_copies(&self) -> bool {
        match self {
            Slack(_) | Discord(_) | Twilio(_) => false,
            Webhook(_) | PagerDuty(_) => true,
        }
    }

    fn print(&self) -> String {
        match self {
            Slack(channel) => format!("{channel:?}"),
            Discord(channel) => format!("{channel:?}"),
            Webhook(channel) => format!("{channel:?}"),
            PagerDuty(channel) => format!("{channel:?}"),
            Twilio(channel) => format!("{channel:?}"),
        }
    }
}

#[tokio::test]
async fn g1_every_channel_hands_its_message_over() {
    let chat = Chat::start().unwrap();
    let mut references = Vec::new();
    for channel in Channel::all(&chat.url(), true).unwrap() {
        match channel.send(&message(), LONG).await {
            Sent::Accepted(receipt) => references.push((receipt.answer, receipt.reference)),
            other => panic!("{}: {other:?}", channel.path()),
        }
    }
    let expected = [
        ("200 ok", None),
        ("200 90001", Some("90001")),
        ("204", None),
        ("202 refund/re_1", Some("refund/re_1")),
        ("201 CAlab0004", Some("CAlab0004")),
    ];
    assert_eq!(references, expected.map(|(answer, id)| (answer.to_owned(), id.map(str::to_owned))));
    for got in chat.received() {
        assert!(got.taken && got.header("user-agent").unwrap().starts_with("Sekisho/"), "{got:?}");
    }
}

#[tokio::test]
async fn g1_a_lost_answer_is_uncertain_unless_copies_are_known() {
    let chat = Chat::start().unwrap();
    for channel in Channel::all(&chat.url(), true).unwrap() {
        for (mood, within, reason) in [(Mood::Drop, LONG, "broken"), (Mood::Hang, SHORT, "timeout")] {
            chat.set(channel.path(), mood);
            let expected = if channel.knows_copies() { "transient" } else { "uncertain" };
            let sent = channel.send(&message(), within).await;
            assert_eq!(verdict(&sent), (expected, reason), "{}", channel.path());
            assert!(failure(&sent).blames_destination);
        }
    }
    let folded = [Service::Hook, Service::PagerDuty].map(|service| chat.seen(service));
    assert_eq!(folded, [1, 1], "the second try of the same is known for one");
}

#[tokio::test]
async fn g1_what_was_never_written_is_tried_again() {
    let nobody = format!("http://{}", sekisho_lab::free_address().unwrap());
    for channel in Channel::all(&nobody, true).unwrap() {
        assert_eq!(verdict(&channel.send(&message(), LONG).await), ("transient", "connect"));
    }
    for channel in Channel::all("http://nowhere.invalid", true).unwrap() {
        let sent = channel.send(&message(), LONG).await;
        assert_eq!(verdict(&sent), ("transient", "dns"), "{sent:?}");
    }
    // Speaks no TLS.
    let chat = Chat::start().unwrap();
    for channel in Channel::all(&chat.url().replace("http:", "https:"), true).unwrap() {
        assert_eq!(verdict(&channel.send(&message(), LONG).await), ("transient", "tls"));
    }
    assert!(chat.received().is_empty());
}

#[tokio::test]
async fn g1_a_private_address_closes_the_channel_unless_it_is_allowed() {
    for channel in Channel::all("https://127.0.0.1:1", false).unwrap() {
        let sent = channel.send(&message(), LONG).await;
        assert_eq!(verdict(&sent), ("closed", "forbidden_address"));
        assert!(failure(&sent).error.contains("allow_private = true"), "{}", failure(&sent).error);
    }
    assert!(Channel::all("http://hooks.example.com", false).is_err(), "keys travel over TLS");
}

#[tokio::test]
async fn g1_what_is_busy_or_in_trouble_is_tried_again_when_it_asks() {
    let chat = Chat::start().unwrap();
    for channel in Channel::all(&chat.url(), true).unwrap() {
        chat.set(channel.path(), Mood::Busy { retry_after_ms: 7000 });
        let sent = channel.send(&message(), LONG).await;
        assert_eq!(verdict(&sent), ("transient", "rate_limited"));
        assert_eq!(failure(&sent).retry_after_ms, Some(7000));
        for status in [500, 502, 503] {
            chat.set(channel.path(), Mood::Status(status));
            let sent = channel.send(&message(), LONG).await;
            assert_eq!(verdict(&sent), ("transient", "server_error"), "{status}");
            assert!(failure(&sent).blames_destination);
        }
        chat.set(channel.path(), Mood::Status(504));
        let (expected, _) = verdict(&channel.send(&message(), LONG).await);
        assert_eq!(expected, if channel.knows_copies() { "transient" } else { "uncertain" });
    }
}

#[tokio::test]
async fn g1_no_secret_comes_back_or_is_printed() {
    let chat = Chat::start().unwrap();
    let secrets = ["slack-secret", "discord-secret", ROUTING_KEY, TWILIO_TOKEN, WHSEC];
    let echo = format!("{SLACK_PATH} {DISCORD_PATH} {ROUTING_KEY} {TWILIO_TOKEN}");
    for (channel, secret) in Channel::all(&chat.url(), true).unwrap().iter().zip([
        "slack-secret",
        "discord-secret",
        WHSEC,
        ROUTING_KEY,
        TWILIO_TOKEN,
    ]) {
        for status in [200, 400, 403, 500] {
            chat.set(channel.path(), Mood::Answer(Reply::status(status).with_body(&echo)));
            let sent = format!("{:?}", channel.send(&message(), LONG).await);
            assert!(!sent.contains(secret), "{sent}");
        }
        let printed = channel.print();
        assert!(secrets.iter().all(|secret| !printed.contains(secret)), "{printed}");
    }
}

#[test]
fn g1_letters_are_counted_and_not_bytes() {
    let cases = [
        ("", 3, ""),
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("返金失敗", 4, "返金失敗"),
        ("返金失敗", 3, "返金…"),
        ("🎌🎌", 4, "🎌🎌"),
        ("🎌🎌", 3, "🎌…"),
        ("🎌", 1, "…"),
    ];
    for (text, letters_max, expected) in cases {
        assert_eq!(cut(text, letters_max), expected, "{text} in {letters_max}");
    }
    let pieces = ["ab", "&amp;", "c"].map(Cow::Borrowed);
    assert_eq!(fit(pieces.into_iter(), 7), "ab…", "no half of an escape");
}

#[test]
fn g1_a_services_own_words_are_found() {
    let cases = [
        ("no_service\n", "no_service"),
        ("<html>\n  <b>Busy</b>", "<html> <b>Busy</b>"),
        (r#"{"message": "Unknown Webhook", "code": 10015}"#, "Unknown Webhook (code 10015)"),
        (r#"{"message": "invalid", "errors": ["summary", {}]}"#, "invalid, summary"),
        (r#"{"ok": true}"#, r#"{"ok": true}"#),
        ("", ""),
    ];
    for (body, expected) in cases {
        assert_eq!(words(body.as_bytes()), expected);
    }
}
