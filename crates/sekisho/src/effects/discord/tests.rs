use sekisho_lab::app::Reply;
use sekisho_lab::chat::{Chat, DISCORD_PATH, Mood};

use super::*;
use crate::effects::post::tests::{LONG, failure, message, verdict};

fn discord(chat: &Chat, query: &str) -> Discord {
    let url = Secret::new(format!("{}{DISCORD_PATH}{query}", chat.url()));
    Discord::new(Settings { url, allow_private: true }, &Env::system()).unwrap()
}

#[tokio::test]
async fn g1_the_answer_decides_what_became_of_it() {
    let chat = Chat::start().unwrap();
    let discord = discord(&chat, "");
    let cases = [
        (204, "accepted", ""),
        (301, "closed", "redirect"),
        (400, "terminal", "refused"),
        (401, "closed", "bad_credentials"),
        (404, "closed", "channel_gone"),
        (405, "closed", "channel_gone"),
        (500, "transient", "server_error"),
    ];
    for (status, expected, reason) in cases {
        chat.set(DISCORD_PATH, Mood::Status(status));
        assert_eq!(verdict(&discord.send(&message(), LONG).await), (expected, reason), "{status}");
    }
    chat.set(DISCORD_PATH, Mood::Status(404));
    let sent = discord.send(&message(), LONG).await;
    let error = &failure(&sent).error;
    assert!(error.contains("Unknown Webhook (code 10015)") && error.contains("new webhook"), "{error}");
}

#[tokio::test]
async fn g1_a_pause_is_read_from_body_and_header() {
    let chat = Chat::start().unwrap();
    let discord = discord(&chat, "");
    let cases = [
        (r#"{"retry_after": 0.2504}"#, None, Some(251)),
        (r#"{"retry_after": 64.57}"#, Some("65"), Some(65_000)),
        (r#"{"retry_after": 3}"#, Some("1"), Some(3000)),
        ("error code: 1015", Some("30"), Some(30_000)),
        (r#"{"retry_after": -1}"#, None, None),
        (r#"{"retry_after": 1e300}"#, None, Some(i64::MAX)),
        (r#"{"retry_after": "soon"}"#, None, None),
    ];
    for (body, header, expected) in cases {
        let reply = Reply::status(429).with_body(body);
        let reply = header.map_or(reply.clone(), |header| reply.with_header("retry-after", header));
        chat.set(DISCORD_PATH, Mood::Answer(reply));
        let sent = discord.send(&message(), LONG).await;
        assert_eq!(verdict(&sent), ("transient", "rate_limited"));
        assert_eq!(failure(&sent).retry_after_ms, expected, "{body}");
    }
}

#[tokio::test]
async fn g1_the_address_keeps_its_thread_and_waits_for_the_message() {
    let chat = Chat::start().unwrap();
    assert_eq!(verdict(&discord(&chat, "?thread_id=7").send(&message(), LONG).await).0, "accepted");
    assert_eq!(chat.received()[0].path, format!("{DISCORD_PATH}?thread_id=7&wait=true"));
}

#[tokio::test]
async fn g1_nobody_is_called_by_what_a_customer_wrote() {
    let chat = Chat::start().unwrap();
    let name = "@everyone @here <@&7> [your bank](https://evil.example) \\[x](y) ||hidden|| taro_y@here.jp";
    let message = Message { subject: name.to_owned(), text: name.to_owned(), ..message() };
    assert_eq!(verdict(&discord(&chat, "").send(&message, LONG).await).0, "accepted");
    let got = chat.received()[0].json();
    assert_eq!(got["allowed_mentions"], json!({ "parse": [] }));
    let content = got["content"].as_str().unwrap();
    assert_eq!(
        content,
        "@\u{200b}everyone @\u{200b}here \\<@&7> \\[your bank](https://evil.example) \\\\\\[x](y) \
         \\|\\|hidden\\|\\| taro_y@\u{200b}here.jp"
    );
    assert_eq!(got["embeds"][0]["description"], content);
}

#[tokio::test]
async fn g1_long_texts_are_cut_to_what_discord_takes() {
    let chat = Chat::start().unwrap();
    for letter in ["長", "[", "🎌", "@everyone"] {
        let message = Message { subject: letter.repeat(3000), text: letter.repeat(9000), ..message() };
        assert_eq!(verdict(&discord(&chat, "").send(&message, LONG).await).0, "accepted", "{letter}");
    }
    let got = chat.received()[0].json();
    let letters = |text: &Value| text.as_str().unwrap().chars().count();
    assert_eq!(letters(&got["content"]), CONTENT_MAX);
    assert_eq!(letters(&got["embeds"][0]["description"]), DESCRIPTION_MAX);
    let bare = Message { text: String::new(), ..message() };
    assert_eq!(payload(&bare)["embeds"], json!([]));
}
