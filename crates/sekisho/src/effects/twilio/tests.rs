use sekisho_lab::app::Reply;
use sekisho_lab::chat::{Chat, Mood, TWILIO_PATH, TWILIO_SID, TWILIO_TOKEN};
use serde_json::json;

use super::*;
use crate::effects::post::tests::{LONG, failure, message, verdict};

const FROM: &str = "+815012345678";
const TO: &str = "+819012345678";

fn settings(account_sid: &str, token: &str) -> Settings {
    Settings {
        url: BASE_URL.to_owned(),
        account_sid: account_sid.to_owned(),
        auth_token: Secret::new(token),
        from: FROM.to_owned(),
        to: TO.to_owned(),
        allow_private: false,
    }
}

fn twilio(chat: &Chat, token: &str) -> Twilio {
    let settings = settings(TWILIO_SID, token);
    Twilio::new(Settings { url: chat.url(), allow_private: true, ..settings }, &Env::system()).unwrap()
}

#[tokio::test]
async fn g1_a_call_says_the_subject_twice_in_the_readers_language() {
    let chat = Chat::start().unwrap();
    let twilio = twilio(&chat, TWILIO_TOKEN);
    let english = Message { language: Language::En, subject: "Refund failed".to_owned(), ..message() };
    for message in [&message(), &english] {
        assert_eq!(verdict(&twilio.send(message, LONG).await).0, "accepted");
    }
    let got = chat.received();
    assert_eq!(got[0].path, TWILIO_PATH);
    assert_eq!((got[0].field("To").unwrap(), got[0].field("From").unwrap()), (TO.into(), FROM.into()));
    let say = "<Say language=\"ja-JP\">返金に失敗しました</Say>";
    assert_eq!(
        got[0].field("Twiml").unwrap(),
        format!("<Response>{say}<Pause length=\"1\"/>{say}</Response>")
    );
    let english = got[1].field("Twiml").unwrap();
    assert_eq!(english.matches("<Say language=\"en-US\">Refund failed</Say>").count(), 2);
}

#[tokio::test]
async fn g1_the_answer_decides_what_became_of_it() {
    let chat = Chat::start().unwrap();
    let cases = [
        (400, 21211, "terminal", "refused", "such as +819012345678"),
        (400, 21212, "terminal", "refused", "`from`"),
        (400, 21215, "terminal", "refused", "geographic permissions"),
        (400, 21219, "terminal", "refused", "verify this one"),
        (400, 99999, "terminal", "refused", "documentation"),
        (401, 20003, "closed", "bad_credentials", "auth token"),
        (403, 20005, "closed", "bad_credentials", "auth token"),
        (403, 21215, "closed", "bad_credentials", "geographic permissions"),
        (404, 20404, "closed", "bad_credentials", "account SID"),
        (429, 20429, "transient", "rate_limited", "later"),
        (500, 20500, "transient", "server_error", "later"),
    ];
    for (status, code, expected, reason, cure) in cases {
        let body = json!({ "code": code, "message": "No." }).to_string();
        chat.set(TWILIO_PATH, Mood::Answer(Reply::status(status).with_body(&body)));
        let sent = twilio(&chat, TWILIO_TOKEN).send(&message(), LONG).await;
        assert_eq!(verdict(&sent), (expected, reason), "{status} {code}");
        let error = &failure(&sent).error;
        assert!(error.contains(cure) && error.contains(&format!("No. (code {code})")), "{error}");
    }
    chat.set(TWILIO_PATH, Mood::Good);
    let sent = twilio(&chat, "wrong").send(&message(), LONG).await;
    assert_eq!(verdict(&sent), ("closed", "bad_credentials"));
}

#[tokio::test]
async fn g1_what_a_customer_wrote_is_spoken_and_not_obeyed() {
    let chat = Chat::start().unwrap();
    let subject = "</Say><Dial>+1900</Dial>&\"']]><!--\u{0}\u{b}\u{ffff}";
    let message = Message { subject: subject.to_owned(), ..message() };
    assert_eq!(verdict(&twilio(&chat, TWILIO_TOKEN).send(&message, LONG).await).0, "accepted");
    let twiml = chat.received()[0].field("Twiml").unwrap();
    let said = "&lt;/Say&gt;&lt;Dial&gt;+1900&lt;/Dial&gt;&amp;&quot;&apos;]]&gt;&lt;!--   ";
    assert_eq!(twiml.matches(said).count(), 2, "{twiml}");
    assert_eq!(twiml.matches('<').count(), 7, "only our own tags: {twiml}");
}

#[tokio::test]
async fn g1_a_long_subject_is_cut_to_what_twilio_takes() {
    let chat = Chat::start().unwrap();
    for letter in ["長", "\"", "🎌"] {
        let message = Message { subject: letter.repeat(5000), ..message() };
        let sent = twilio(&chat, TWILIO_TOKEN).send(&message, LONG).await;
        assert_eq!(verdict(&sent).0, "accepted", "{letter}");
    }
}

#[test]
fn g1_settings_that_cannot_work_are_refused() {
    let good = settings("AC1", "t");
    for bad in [
        Settings { account_sid: "AC1/../AC2".to_owned(), ..good.clone() },
        Settings { account_sid: String::new(), ..good.clone() },
        Settings { auth_token: Secret::new(""), ..good.clone() },
        Settings { from: "090-1234-5678".to_owned(), ..good.clone() },
        Settings { to: "+81 90 1234 5678".to_owned(), ..good.clone() },
        Settings { to: "+".to_owned(), ..good.clone() },
        Settings { url: "http://api.twilio.com".to_owned(), ..good.clone() },
    ] {
        assert!(Twilio::new(bad.clone(), &Env::system()).is_err(), "{bad:?}");
    }
    assert!(Twilio::new(good, &Env::system()).is_ok());
}
