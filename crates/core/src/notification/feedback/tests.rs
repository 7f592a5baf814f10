use proptest::prelude::*;
use serde_json::json;

use super::*;

const SES_ID: &str = "0106018f-1111-000000";

fn sns(message: &Value) -> Vec<u8> {
    json!({
        "Type": "Notification",
        "MessageId": "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
        "TopicArn": "arn:aws:sns:ap-northeast-1:123456789012:ses-events",
        "Message": message.to_string(),
        "Timestamp": "2026-02-02T02:40:05.000Z",
        "SignatureVersion": "1",
    })
    .to_string()
    .into_bytes()
}

fn mail() -> Value {
    json!({
        "timestamp": "2026-02-02T02:40:00.000Z",
        "source": "noreply@example.com",
        "sendingAccountId": "123456789012",
        "messageId": SES_ID,
        "destination": ["taro@example.jp"],
        "headersTruncated": false,
        "headers": [
            { "name": "From", "value": "noreply@example.com" },
            { "name": "Message-ID", "value": "<ntc_1@sekisho.example.com>" },
        ],
        "commonHeaders": { "from": ["noreply@example.com"], "messageId": SES_ID },
    })
}

fn bounced(kind: &str, subtype: &str) -> Value {
    json!({
        "notificationType": "Bounce",
        "bounce": {
            "bounceType": kind,
            "bounceSubType": subtype,
            "bouncedRecipients": [{
                "emailAddress": "\"山田 太郎\" <Taro@Example.jp>",
                "action": "failed",
                "status": "5.1.1",
                "diagnosticCode": "smtp; 550 5.1.1 <TARO@example.jp>... no taro@example.jp here",
            }],
            "timestamp": "2026-02-02T02:40:03.123Z",
            "feedbackId": "f-1",
            "a field of the year 2030": { "x": [1] },
        },
        "mail": mail(),
    })
}

fn understood(message: &Value) -> Feedback {
    read(&sns(message)).expect("from SES").expect("readable")
}

fn taro() -> MailAddress {
    "taro@example.jp".parse().unwrap()
}

#[test]
fn g2_a_bounce_is_read_whole() {
    let expected = Feedback {
        kind: What::Bounced { permanent: true, subtype: "General".to_owned() },
        addresses: vec![(
            taro(),
            Some("smtp; 550 5.1.1 <T***@example.jp>... no t***@example.jp here".to_owned()),
        )],
        ses_id: SES_ID.to_owned(),
        message_id: Some("ntc_1@sekisho.example.com".to_owned()),
        at: Time::parse_rfc3339("2026-02-02T02:40:03.123Z"),
        is_own: true,
    };
    let identity = bounced("Permanent", "General");
    assert_eq!(understood(&identity), expected);
    let mut published = identity;
    let kind = published.as_object_mut().unwrap().remove("notificationType").unwrap();
    published["eventType"] = kind;
    assert_eq!(understood(&published), expected, "the same from a configuration set");
}

#[test]
fn g2_who_sent_the_mail_must_own_the_topic() {
    for (sender, expected) in [
        (json!("123456789012"), true),
        (json!("210987654321"), false),
        (json!(""), false),
        (json!(123_456_789_012_i64), false),
        (Value::Null, false),
    ] {
        let mut said = bounced("Permanent", "General");
        said["mail"]["sendingAccountId"] = sender.clone();
        assert_eq!(understood(&said).is_own, expected, "{sender}");
    }
}

#[test]
fn g2_only_what_stays_wrong_suppresses() {
    let cases = [
        ("Permanent", "General", true),
        ("Permanent", "NoEmail", true),
        ("Permanent", "Suppressed", true),
        ("Permanent", "OnAccountSuppressionList", true),
        ("Transient", "OnAccountSuppressionList", true),
        ("Transient", "General", false),
        ("Transient", "MailboxFull", false),
        ("Transient", "ContentRejected", false),
        ("Undetermined", "Undetermined", false),
        ("A word of the year 2030", "", false),
    ];
    for (kind, subtype, expected) in cases {
        let feedback = understood(&bounced(kind, subtype));
        assert_eq!(feedback.suppresses(), expected, "{kind} {subtype}");
        assert_eq!(feedback.kind, What::Bounced { permanent: expected, subtype: subtype.to_owned() });
    }
}

#[test]
fn g2_a_complaint_suppresses_unless_it_says_not_spam() {
    let complaint = |kind: Value, subtype: Value| {
        understood(&json!({
            "notificationType": "Complaint",
            "complaint": {
                "complainedRecipients": [{ "emailAddress": "taro@example.jp" }],
                "complaintFeedbackType": kind,
                "complaintSubType": subtype,
                "timestamp": "2026-02-02T03:00:00.000Z",
                "arrivalDate": "2026-02-02T02:59:00.000Z",
            },
            "mail": mail(),
        }))
    };
    let cases = [
        (json!("abuse"), json!(null), Some("abuse"), true),
        (json!(null), json!("OnAccountSuppressionList"), Some("OnAccountSuppressionList"), true),
        (json!(null), json!(null), None, true),
        (json!("not-spam"), json!(null), Some("not-spam"), false),
    ];
    for (kind, subtype, expected, suppresses) in cases {
        let feedback = complaint(kind, subtype);
        assert_eq!(feedback.kind, What::Complained { kind: expected.map(str::to_owned) });
        assert_eq!((feedback.suppresses(), &feedback.addresses[..]), (suppresses, &[(taro(), None)][..]));
        assert_eq!(feedback.at, Time::parse_rfc3339("2026-02-02T02:59:00.000Z"));
    }
}

#[test]
fn g2_a_delivery_and_a_rejection_are_told_and_suppress_nobody() {
    let delivery = understood(&json!({
        "eventType": "Delivery",
        "delivery": {
            "recipients": ["taro@example.jp"],
            "smtpResponse": "250 2.6.0 Message received",
            "timestamp": "2026-02-02T02:40:02.000Z",
        },
        "mail": mail(),
    }));
    assert_eq!((&delivery.kind, delivery.suppresses()), (&What::Delivered, false));
    assert_eq!(delivery.addresses, [(taro(), Some("250 2.6.0 Message received".to_owned()))]);
    let reject = json!({ "eventType": "Reject", "reject": { "reason": "Bad content" }, "mail": mail() });
    let reject = understood(&reject);
    assert_eq!((&reject.kind, reject.suppresses()), (&What::Rejected, false));
    assert_eq!(reject.addresses, [(taro(), Some("Bad content".to_owned()))]);
    assert_eq!(reject.at, Time::parse_rfc3339("2026-02-02T02:40:00.000Z"));
}

#[test]
fn g2_our_message_id_is_told_from_ses_own() {
    let cases = [
        (json!([]), json!(SES_ID), None),
        (json!([]), json!("<ntc_1@sekisho.example.com>"), Some("ntc_1@sekisho.example.com")),
        (json!(null), json!(format!("<{SES_ID}@ap-northeast-1.amazonses.com>")), None),
        (json!([{ "name": "message-id", "value": " <a@b.jp> " }]), json!("<c@d.jp>"), Some("a@b.jp")),
        (json!([{ "name": "Message-ID", "value": "<>" }]), json!(null), None),
        (json!([{ "name": 7 }, "x"]), json!(7), None),
    ];
    for (headers, common, expected) in cases {
        let mut message = bounced("Permanent", "General");
        message["mail"]["headers"] = headers.clone();
        message["mail"]["commonHeaders"] = json!({ "messageId": common });
        assert_eq!(understood(&message).message_id.as_deref(), expected, "{headers} {common}");
    }
    let mut bare = bounced("Permanent", "General");
    for part in ["headers", "commonHeaders"] {
        bare["mail"].as_object_mut().unwrap().remove(part);
    }
    assert_eq!(understood(&bare).message_id, None, "headers come along only if SES is told so");
}

#[test]
fn g2_addresses_are_understood_however_they_are_written() {
    let cases = [
        ("taro@example.jp", true),
        (" TARO@EXAMPLE.JP ", true),
        ("<taro@example.jp>", true),
        ("\"Taro <x>\" <taro@example.jp>", true),
        ("=?utf-8?B?5aSq6YOO?= <taro@example.jp>", true),
        ("taro", false),
        ("taro@example.jp>", false),
        ("<>", false),
        ("", false),
    ];
    for (text, is_one) in cases {
        assert_eq!(address(text), is_one.then(taro), "{text}");
    }
    let mut message = bounced("Permanent", "General");
    message["bounce"]["bouncedRecipients"] =
        json!([{ "emailAddress": "?" }, 7, null, "hanako@example.jp", { "emailAddress": "taro@example.jp" }]);
    let found = understood(&message).addresses;
    let expected = ["hanako@example.jp", "taro@example.jp"].map(|text| (text.parse().unwrap(), None));
    assert_eq!(found, expected, "one that can't be read hides no other");
}

#[test]
fn g2_what_is_long_is_kept_in_part() {
    let mut message = bounced("Permanent", "General");
    let one =
        |n: usize| json!({ "emailAddress": format!("{n}@example.jp"), "diagnosticCode": "長".repeat(9000) });
    message["bounce"]["bouncedRecipients"] = (0..=ADDRESSES_MAX).map(one).collect();
    let feedback = understood(&message);
    assert_eq!(feedback.addresses.len(), ADDRESSES_MAX);
    assert_eq!(feedback.addresses[0].1.as_ref().unwrap().chars().count(), DIAGNOSTIC_MAX);
}

#[test]
fn g2_news_that_change_nothing_and_strangers_are_passed_over() {
    for kind in ["Send", "Open", "Click", "DeliveryDelay", "Subscription", "Received", ""] {
        assert_eq!(read(&sns(&json!({ "eventType": kind, "mail": mail() }))), None, "{kind}");
    }
    let greeting = json!({ "notificationType": "AmazonSnsSubscriptionSucceeded", "message": "Welcome" });
    for message in [greeting, json!({ "eventType": "Bounce" }), json!([1]), json!("Bounce"), json!(null)] {
        assert_eq!(read(&sns(&message)), None, "{message}");
    }
    for body in ["", "{", "null", "{}", r#"{"Message": 7}"#, r#"{"Message": "Successfully validated"}"#] {
        assert_eq!(read(body.as_bytes()), None, "{body}");
    }
}

#[test]
fn g2_what_is_from_ses_and_lacks_its_core_says_what_is_missing() {
    let cases = [
        ("Bounce", json!({}), json!({ "messageId": SES_ID }), "bounce"),
        ("Bounce", json!({ "bounce": 7 }), json!({ "messageId": SES_ID }), "bounce"),
        ("Bounce", json!({ "bounce": {} }), json!({ "messageId": SES_ID }), "bounce.bounceType"),
        ("Complaint", json!({ "complaint": {} }), json!({}), "mail.messageId"),
        ("Delivery", json!({ "delivery": {} }), json!({ "messageId": "" }), "mail.messageId"),
        ("Reject", json!({}), json!({ "messageId": SES_ID }), "reject"),
    ];
    for (kind, mut message, mail, missing) in cases {
        message["notificationType"] = json!(kind);
        message["mail"] = mail;
        let unreadable = read(&sns(&message)).unwrap().unwrap_err();
        assert_eq!(unreadable, UnreadableFeedback { kind, missing });
        assert!(unreadable.to_string().contains(kind) && unreadable.to_string().contains(missing));
    }
}

/// Any JSON, with the words that SES uses in it.
fn strange() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "bounce",
        "complaint",
        "delivery",
        "reject",
        "mail",
        "messageId",
        "headers",
        "name",
        "value",
        "commonHeaders",
        "bouncedRecipients",
        "complainedRecipients",
        "recipients",
        "destination",
        "emailAddress",
        "diagnosticCode",
        "bounceType",
        "bounceSubType",
        "timestamp",
        "Message-ID",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,20}".prop_map(Value::from),
        "[a-zİé<>@. \"]{0,20}".prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::btree_map(word.clone(), inner, 0..8)
                .prop_map(|map| map.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    #[test]
    fn g2_no_bytes_however_strange_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = read(&bytes);
        let _ = read(json!({ "Message": String::from_utf8_lossy(&bytes) }).to_string().as_bytes());
    }

    #[test]
    fn g2_no_json_however_strange_does_harm(
        kind in prop::sample::select(vec!["Bounce", "Complaint", "Delivery", "Reject"]),
        parts in prop::collection::vec(strange(), 5),
        whole in strange(),
    ) {
        let _ = read(whole.to_string().as_bytes());
        let _ = read(&sns(&whole));
        let mut message = json!({ "eventType": kind });
        let names = ["bounce", "complaint", "delivery", "reject", "mail"];
        for (name, part) in names.into_iter().zip(parts) {
            message[name] = part;
        }
        let _ = read(&sns(&message));
    }
}

#[test]
fn g2_what_a_mail_server_says_is_kept_without_letters_that_nobody_sees() {
    let mut message = bounced("Permanent", "General");
    message["bounce"]["bouncedRecipients"][0]["diagnosticCode"] =
        "smtp; 550\u{1b}]0;x\u{7} no\r\n\u{9b}2J \u{202e}taro@example.jp\u{7f}".into();
    let said = understood(&message).addresses[0].1.clone().unwrap();
    assert!(!said.contains(crate::text::is_hidden), "{said:?}");
    assert!(said.starts_with("smtp; 550 ]0;x  no   2J  t***@example.jp"), "{said:?}");
}
