use sekisho_lab::app::Reply;
use sekisho_lab::chat::{Chat, Mood, SLACK_PATH};

use super::*;
use crate::effects::post::tests::{LONG, failure, message, verdict};

fn slack(chat: &Chat) -> Slack {
    let url = Secret::new(format!("{}{SLACK_PATH}", chat.url()));
    Slack::new(Settings { url, allow_private: true }, &Env::system()).unwrap()
}

#[tokio::test]
async fn g1_the_answer_decides_what_became_of_it() {
    let chat = Chat::start().unwrap();
    let slack = slack(&chat);
    let cases = [
        (200, "ok", "accepted", ""),
        (302, "", "closed", "redirect"),
        (400, "invalid_payload", "terminal", "refused"),
        (400, "invalid_blocks", "terminal", "refused"),
        (400, "user_not_found", "closed", "channel_gone"),
        (403, "action_prohibited", "closed", "bad_credentials"),
        (404, "channel_not_found", "closed", "channel_gone"),
        (404, "no_service", "closed", "channel_gone"),
        (410, "channel_is_archived", "closed", "channel_gone"),
        (500, "rollup_error", "transient", "server_error"),
    ];
    for (status, words, expected, reason) in cases {
        chat.set(SLACK_PATH, Mood::Answer(Reply::status(status).with_body(words)));
        let sent = slack.send(&message(), LONG).await;
        assert_eq!(verdict(&sent), (expected, reason), "{status} {words}");
        if expected != "accepted" {
            let error = &failure(&sent).error;
            assert!(error.contains(&status.to_string()) && error.contains(words), "{error}");
        }
    }
}

#[test]
fn g1_the_payload_is_a_headline_and_a_text() {
    let payload = payload(&message());
    assert_eq!(payload["text"], "返金に失敗しました");
    assert_eq!(payload["blocks"][0]["type"], "header");
    assert_eq!(payload["blocks"][0]["text"]["text"], "返金に失敗しました");
    assert_eq!(payload["blocks"][1]["text"]["type"], "mrkdwn");
    assert_eq!(payload["blocks"][1]["text"]["text"], "注文 42 を見てください。");
    let empty = Message { text: " \n".to_owned(), subject: String::new(), ..message() };
    let payload = super::payload(&empty);
    assert_eq!(payload["text"], "refund_failed", "a message that says nothing is refused");
    assert_eq!(payload["blocks"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn g1_nobody_is_called_by_what_a_customer_wrote() {
    let chat = Chat::start().unwrap();
    let name = "<!channel> <@U1> @here <!subteam^S1|x> <https://evil.example|your bank> &lt;!here&gt;";
    let message = Message { subject: name.to_owned(), text: name.to_owned(), ..message() };
    assert_eq!(verdict(&slack(&chat).send(&message, LONG).await).0, "accepted");
    let got = chat.received()[0].json();
    let section = got["blocks"][1]["text"]["text"].as_str().unwrap();
    assert_eq!(
        section,
        "&lt;!channel&gt; &lt;@U1&gt; @here &lt;!subteam^S1|x&gt; &lt;<https://evil.example>|your bank&gt; \
         &amp;lt;!here&amp;gt;"
    );
    assert_eq!(got["blocks"][1]["text"]["verbatim"], true, "so that Slack looks for no @here of its own");
    assert_eq!(got["link_names"], false);
    for plain in [&got["text"], &got["blocks"][0]["text"]["text"]] {
        assert!(!plain.as_str().unwrap().contains(['<', '>']), "{plain}");
    }
}

#[test]
fn g1_web_addresses_are_links_and_nothing_more() {
    let cases = [
        ("see https://a.jp/x?y=1&z=2.", "see <https://a.jp/x?y=1&amp;z=2>."),
        ("(http://a.jp/)", "(<http://a.jp/>)"),
        ("https://a.jp/注文", "<https://a.jp/>注文"),
        ("https://a.jp|click", "<https://a.jp>|click"),
        ("https://", "https://"),
        ("ftp://a.jp", "ftp://a.jp"),
    ];
    for (text, expected) in cases {
        assert_eq!(linked(text, SECTION_MAX), expected);
    }
    assert_eq!(linked("ab https://a.jp/long", 10), "ab …", "no half of a link");
}

#[tokio::test]
async fn g1_long_texts_are_cut_to_what_slack_takes() {
    let chat = Chat::start().unwrap();
    for letter in ["長", "&", "🎌"] {
        let message = Message { subject: letter.repeat(400), text: letter.repeat(9000), ..message() };
        assert_eq!(verdict(&slack(&chat).send(&message, LONG).await).0, "accepted", "{letter}");
    }
    let blocks = chat.received()[0].json()["blocks"].clone();
    let letters = |n: usize| blocks[n]["text"]["text"].as_str().unwrap().chars().count();
    assert_eq!((letters(0), letters(1)), (HEADER_MAX, SECTION_MAX));
    assert!(blocks[1]["text"]["text"].as_str().unwrap().ends_with("長…"));
}
