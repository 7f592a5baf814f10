use sekisho_core::job::Class;

use super::*;

const PARTIES: MailParties<'_> =
    MailParties { host: "mail.example", from: "shop@example.com", to: "taro@example.jp" };

fn reply(text: &str) -> SmtpReply {
    let (code, text) = text.split_once(' ').unwrap();
    SmtpReply { code: code.parse().unwrap(), lines: vec![text.to_owned()] }
}

fn judged(stage: Option<SmtpStage>, text: &str) -> Sent {
    match stage {
        Some(stage) => of_a_refusal(stage, &PARTIES, &reply(text)),
        None => of_the_end(&PARTIES, &reply(text)),
    }
}

#[test]
fn g2_what_may_pass_is_tried_again() {
    let cases = [
        (Some(SmtpStage::Greeting), "421 4.3.2 closing", "unavailable", true),
        (Some(SmtpStage::Greeting), "450 too busy", "unavailable", true),
        (Some(SmtpStage::Hello), "451 no", "unavailable", true),
        (Some(SmtpStage::Tls), "454 TLS not available due to temporary reason", "tls", true),
        (Some(SmtpStage::Login), "454 4.7.0 Temporary authentication failure", "unavailable", true),
        (Some(SmtpStage::Login), "535 5.7.0 temporarily locked", "unavailable", true),
        (Some(SmtpStage::Sender), "451 4.3.0 local error", "unavailable", true),
        (Some(SmtpStage::Recipient), "450 4.2.0 Greylisted", "deferred", false),
        (Some(SmtpStage::Recipient), "452 4.2.2 mailbox over quota", "deferred", false),
        (Some(SmtpStage::Recipient), "421 4.7.0 closing", "unavailable", true),
        (Some(SmtpStage::Recipient), "550 5.7.1 Greylisted", "deferred", false),
        (Some(SmtpStage::Data), "451 4.3.0 disk", "deferred", false),
        (Some(SmtpStage::Body), "421 4.4.2 timeout", "unavailable", true),
        (None, "454 Throttling failure: Maximum sending rate exceeded.", "throttled", true),
        (None, "454 Temporary service failure", "deferred", false),
        (None, "554 5.7.1 Rejected temporarily", "deferred", false),
        (None, "550 Please try again in an hour", "deferred", false),
        (None, "550 throttled", "throttled", true),
        (Some(SmtpStage::Recipient), "354 go on", "broken", true),
        (Some(SmtpStage::Data), "250 go on", "broken", true),
    ];
    for (stage, text, reason, blames) in cases {
        let Sent::Failed(failure) = judged(stage, text) else { panic!("{stage:?} {text}") };
        assert_eq!((failure.class, failure.reason), (Class::Transient, reason), "{stage:?} {text}");
        assert_eq!(failure.blames_destination, blames, "{stage:?} {text}");
    }
}

#[test]
fn g2_what_no_retry_helps_says_its_cure() {
    let cases = [
        (
            Some(SmtpStage::Recipient),
            "550 5.1.1 no such user",
            "bad_recipient",
            "correct the recipient's address",
        ),
        (
            Some(SmtpStage::Recipient),
            "552 5.2.2 mailbox full",
            "bad_recipient",
            "correct the recipient's address",
        ),
        (
            Some(SmtpStage::Recipient),
            "550 Unknown. Check the address and try again",
            "bad_recipient",
            "correct the recipient's address",
        ),
        (Some(SmtpStage::Recipient), "554 5.7.1 Relay access denied", "refused", "give it a login"),
        (Some(SmtpStage::Sender), "552 5.3.4 too large", "too_big", "make its template"),
        (None, "552 5.3.4 Message size exceeds fixed limit", "too_big", "make its template"),
        (None, "554 5.7.1 looks like spam", "refused", "change what it objects to"),
        (Some(SmtpStage::Data), "554 no valid recipients", "refused", "change what it objects to"),
        (
            None,
            "554 Message rejected: Email address is not verified. The following identities failed the check in region \
             AP-NORTHEAST-1: taro@example.jp",
            "bad_recipient",
            "sandbox",
        ),
    ];
    for (stage, text, reason, cure) in cases {
        let Sent::Failed(failure) = judged(stage, text) else { panic!("{stage:?} {text}") };
        assert_eq!((failure.class, failure.reason), (Class::Terminal, reason), "{stage:?} {text}");
        assert!(failure.error.contains(cure) && failure.error.contains("mail.example"), "{}", failure.error);
        assert!(!failure.error.contains("taro@"), "{}", failure.error);
    }
}

#[test]
fn g2_what_concerns_every_mail_closes_the_channel() {
    let hour = Some(QUOTA_AGAIN_MS);
    let cases = [
        (
            Some(SmtpStage::Login),
            "535 Authentication Credentials Invalid",
            "bad_credentials",
            None,
            "password",
        ),
        (
            Some(SmtpStage::Login),
            "535 5.7.8 Check your password and try again",
            "bad_credentials",
            None,
            "password",
        ),
        (Some(SmtpStage::Login), "504 5.5.4 mechanism", "bad_credentials", None, "password"),
        (Some(SmtpStage::Sender), "530 Authentication required", "bad_credentials", None, "password"),
        (
            Some(SmtpStage::Sender),
            "530 5.7.0 Must issue a STARTTLS command first",
            "no_tls",
            None,
            "starttls",
        ),
        (Some(SmtpStage::Tls), "502 what?", "no_tls", None, "587"),
        (Some(SmtpStage::Sender), "553 5.7.1 not your address", "sender_refused", None, "`from`"),
        (
            None,
            "554 Message rejected: Email address is not verified. The following identities failed the check in region \
             AP-NORTHEAST-1: Shop <shop@example.com>",
            "sender_refused",
            None,
            "verify the sender",
        ),
        (None, "554 Message rejected: Email address is not verified.", "sender_refused", None, "verify"),
        (
            None,
            "554 Access denied: User `arn:aws:iam::1:user/a' is not authorized to perform `ses:SendRawEmail'",
            "bad_credentials",
            None,
            "right to send",
        ),
        (None, "454 Throttling failure: Daily message quota exceeded.", "quota_used_up", hour, "quota"),
        (
            Some(SmtpStage::Recipient),
            "550 5.4.5 Daily user sending limit exceeded",
            "quota_used_up",
            hour,
            "quota",
        ),
        (Some(SmtpStage::Greeting), "554 no", "server_refused", Some(REFUSAL_AGAIN_MS), "blocked"),
    ];
    for (stage, text, reason, expected, cure) in cases {
        let Sent::Closed { failure, for_ms } = judged(stage, text) else { panic!("{stage:?} {text}") };
        assert_eq!((failure.reason, for_ms), (reason, expected), "{stage:?} {text}");
        assert!(failure.error.contains(cure), "{}", failure.error);
    }
}

#[test]
fn g2_only_a_clear_answer_to_the_whole_mail_is_certain() {
    assert!(matches!(judged(None, "250 ok"), Sent::Accepted(_)));
    let Sent::Uncertain(failure) = judged(None, "354 go on") else { panic!("354 is no answer") };
    assert_eq!(failure.reason, "reply_lost");
}

#[test]
fn g2_the_servers_own_id_is_found() {
    for (text, expected) in [
        ("Ok 0106018f2c-1b2c-000000", Some("0106018f2c-1b2c-000000")),
        ("2.0.0 Ok: queued as 4Xyz12", Some("4Xyz12")),
        ("OK id=1u8aBc-000001-2X", Some("1u8aBc-000001-2X")),
        ("2.0.0 Ok 0106", Some("0106")),
        ("2.0.0 OK  1712 ab-2 - gsmtp", None),
        ("Message accepted for delivery", None),
        ("queued as ", None),
        ("", None),
    ] {
        let Sent::Accepted(receipt) = judged(None, &format!("250 {text}")) else { panic!("{text}") };
        assert_eq!(receipt.reference.as_deref(), expected, "{text}");
    }
    let Sent::Accepted(receipt) = judged(None, &format!("250 for <taro@example.jp>: {}", "い".repeat(600)))
    else {
        panic!("250 is a yes")
    };
    assert_eq!(receipt.answer.chars().count(), SAID_LETTERS);
    assert!(receipt.answer.starts_with("for <t***@example.jp>: い"), "{}", receipt.answer);
}

#[test]
fn h3_what_a_server_repeats_of_a_login_is_not_told() {
    let Sent::Closed { failure, .. } = judged(Some(SmtpStage::Login), "535 5.7.8 bad: AGEAY2FuYXJ5 canary")
    else {
        panic!("535 is a no")
    };
    assert!(failure.error.contains("535 5.7.8;") && !failure.error.contains("canary"), "{}", failure.error);
    assert!(!failure.error.contains("AGEAY2FuYXJ5"), "{}", failure.error);
}
