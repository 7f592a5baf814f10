use http::{HeaderMap, HeaderName, HeaderValue, Method};
use proptest::prelude::*;

use super::*;
use crate::provider::{Draft, Signed, find};

const NOW: Time = Time::from_ms(1_770_000_000_000);
const SECRET: &str = "whsec_canaryCanaryCanaryCanary0000";

fn setup(secret: &str) -> Setup {
    Setup {
        secrets: vec![Secret::new(secret)],
        public_url: Some("https://shop.example.test/hooks".into()),
        ..Setup::default()
    }
}

fn signed(name: &str, secret: &str) -> Signed {
    sign(name, &setup(secret))
}

fn sign(name: &str, setup: &Setup) -> Signed {
    let provider = find(name).unwrap();
    let draft = provider.about().draft("evt_1", provider.about().sample_type, NOW);
    provider.open(setup).unwrap().sign(draft, NOW).unwrap()
}

fn run(name: &str, setup: &Setup, sent: &Signed, now: Time) -> Diagnosis {
    let headers: HeaderMap = sent
        .headers
        .iter()
        .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse::<HeaderValue>().unwrap()))
        .collect();
    let query = sent.query.as_deref().unwrap_or_default();
    let request =
        Request { method: &sent.method, headers: &headers, query, body: &sent.body, certificate: None };
    let diagnosis = diagnose(find(name).unwrap(), setup, &request, now);
    let printed = format!("{diagnosis:?}");
    for secret in &setup.secrets {
        assert!(!printed.contains(secret.expose()), "{printed}");
    }
    assert!(!printed.contains("canary"), "{printed}");
    assert!(diagnosis.checks.iter().rev().skip(1).all(|check| check.ok), "{printed}");
    diagnosis
}

fn with_body(sent: &Signed, change: impl Fn(&str) -> String) -> Signed {
    let text = String::from_utf8(sent.body.clone()).unwrap();
    Signed { body: change(&text).into_bytes(), ..sent.clone() }
}

#[test]
fn h_a_genuine_request_is_told_apart_and_read() {
    let diagnosis = run("stripe", &setup(SECRET), &signed("stripe", SECRET), NOW);
    assert!(diagnosis.genuine && diagnosis.refusal.is_none() && diagnosis.cause.is_none());
    let names: Vec<_> = diagnosis.checks.iter().map(|check| check.name).collect();
    assert_eq!(names, ["configuration", "request", "signature", "time", "content"]);
    assert_eq!(diagnosis.checks[4].detail, "payment_intent.succeeded evt_1");
}

#[test]
fn h_the_likely_cause_is_found() {
    let pretty = |text: &str| {
        let (_, body) =
            body::variations(text.as_bytes()).find(|(what, _)| what.ends_with("2 spaces")).unwrap();
        String::from_utf8(body).unwrap()
    };
    let stripe = signed("stripe", SECRET);
    let spaced = format!(" {SECRET}\n");
    let quoted = format!("\"{SECRET}\"");
    let bare = SECRET.trim_start_matches("whsec_");
    let late = NOW.plus_ms(3_600_000);
    let early = NOW.plus_ms(-3_600_000);
    let lf = with_body(&stripe, |text| format!("{text}\n"));
    let indented = with_body(&stripe, pretty);
    let tampered = with_body(&stripe, |text| text.replace("evt_1", "evt_2"));
    let cases: Vec<(&str, &str, Setup, &Signed, Time, &str)> = vec![
        ("late", "stripe", setup(SECRET), &stripe, late, "3600 s ago"),
        ("early", "stripe", setup(SECRET), &stripe, early, "3600 s in the future"),
        ("spaces", "stripe", setup(&spaced), &stripe, NOW, "spaces or a line break"),
        ("quotes", "stripe", setup(&quoted), &stripe, NOW, "quotation marks"),
        ("no whsec_", "stripe", setup(bare), &stripe, NOW, "lacks its `whsec_`"),
        ("line break", "stripe", setup(SECRET), &lf, NOW, "without the line break"),
        ("indented", "stripe", setup(SECRET), &indented, NOW, "the same JSON written without spaces"),
        ("other body", "stripe", setup(SECRET), &tampered, NOW, "says it is a test"),
        ("other secret", "stripe", setup("whsec_other"), &stripe, NOW, "another endpoint's"),
    ];
    for (what, name, setup, sent, now, words) in cases {
        let diagnosis = run(name, &setup, sent, now);
        assert!(!diagnosis.genuine && diagnosis.refusal.is_some(), "{what}");
        let cause = diagnosis.cause.unwrap();
        assert!(cause.contains(words), "{what}: {cause}");
    }
}

#[test]
fn h_the_two_readings_of_whsec_are_told_apart() {
    // A sender who takes Stripe's secret for Standard Webhooks', and one who does the reverse.
    let provider = find("stripe").unwrap();
    let draft = || Draft { id: "evt_1".into(), kind: "x".into(), body: b"{}".to_vec() };
    let decoded = provider::open_stripe_decoded(&setup(SECRET)).unwrap().sign(draft(), NOW).unwrap();
    let cause = run(provider.about().name, &setup(SECRET), &decoded, NOW).cause.unwrap();
    assert!(cause.contains("decodes the secret"), "{cause}");

    let as_text = signed("svix", &to_base64(SECRET));
    let cause = run("svix", &setup(SECRET), &as_text, NOW).cause.unwrap();
    assert!(cause.contains("text as the key"), "{cause}");
}

#[test]
fn h_a_misdirected_request_is_named() {
    for (sender, receiver, title) in [
        ("github", "stripe", "GitHub"),
        ("stripe", "github", "Stripe"),
        ("svix", "standard_webhooks", "Svix"),
        ("gitlab_signing", "github", "GitLab (signing token)"),
        ("standard_webhooks", "github", "Standard Webhooks"),
        ("payjp", "komoju", "PAY.JP"),
        ("line", "slack", "LINE"),
        ("paddle", "stripe", "Paddle"),
    ] {
        for secret in [SECRET, "whsec_abcd0000"] {
            let cause = run(receiver, &setup(secret), &signed(sender, SECRET), NOW).cause.unwrap();
            assert!(cause.contains(&format!("request of {title}")), "{sender} → {receiver}: {cause}");
        }
    }
}

#[test]
fn h_the_address_that_was_signed_is_found() {
    for signed_url in [
        "https://shop.example.test/hooks/",
        "http://shop.example.test/hooks",
        "https://shop.example.test:443/hooks",
    ] {
        for name in ["square", "twilio"] {
            let theirs = Setup { public_url: Some(signed_url.into()), ..setup(SECRET) };
            let cause = run(name, &setup(SECRET), &sign(name, &theirs), NOW).cause.unwrap();
            assert!(cause.contains(&format!("public_url = \"{signed_url}\"")), "{name}: {cause}");
        }
    }
    let theirs = Setup { public_url: Some("https://other.example.test/".into()), ..setup(SECRET) };
    let cause = run("qstash", &setup(SECRET), &sign("qstash", &theirs), NOW).cause.unwrap();
    assert!(cause.contains("public_url = \"https://other.example.test/\""), "{cause}");
}

#[test]
fn h_a_configuration_that_does_not_open_says_what_to_write() {
    let diagnosis = run("square", &Setup::default(), &signed("square", SECRET), NOW);
    assert!(!diagnosis.genuine && diagnosis.refusal.is_none());
    assert!(diagnosis.cause.unwrap().contains("secrets"));
    assert_eq!(diagnosis.checks.len(), 1);
}

#[test]
fn h_a_genuine_request_without_an_event_says_so() {
    let draft = Draft { id: "1".into(), kind: "x".into(), body: b"[]".to_vec() };
    let sent = find("stripe").unwrap().open(&setup(SECRET)).unwrap().sign(draft, NOW).unwrap();
    let diagnosis = run("stripe", &setup(SECRET), &sent, NOW);
    assert!(diagnosis.genuine);
    assert!(diagnosis.cause.unwrap().contains("genuine, but"));
}

proptest! {
    #[test]
    fn h_no_request_makes_the_diagnosis_panic(
        index in 0..ALL.len(), body in prop::collection::vec(any::<u8>(), 0..60), url in "[ -~]{0,20}", now in any::<i64>(),
    ) {
        let provider = ALL[index];
        let mut setup = completed(provider, &setup("abcd0000"));
        setup.public_url = Some(url);
        let request = Request {
            method: &Method::POST, headers: &HeaderMap::new(), query: "a=b", body: &body, certificate: None,
        };
        let diagnosis = diagnose(provider, &setup, &request, Time::from_ms(now));
        prop_assert!(diagnosis.genuine || diagnosis.cause.is_some());
    }
}

#[test]
fn h_a_foreign_topic_or_certificate_is_named_and_cannot_write_into_a_log() {
    let body = |topic: &str, url: &str| {
        let fields = [("MessageId", "x"), ("Message", "x"), ("Timestamp", "2026-02-02T02:40:00Z")]
            .map(|(name, value)| format!("\"{name}\":\"{value}\""));
        let json = format!(
            r#"{{"Type":"Notification","SignatureVersion":"2","TopicArn":"{topic}","SigningCertURL":"{url}","Signature":"{}",{}}}"#,
            to_base64([7; 256]),
            fields.join(",")
        );
        Signed { method: Method::POST, headers: Vec::new(), body: json.into_bytes(), query: None }
    };
    let mut setup = setup(SECRET);
    setup.settings.insert("topic_arn".into(), "arn:ours".into());
    let good = "https://sns.us-east-1.amazonaws.com/a.pem";
    for (sent, step) in [
        (body("arn:theirs", good), "topic"),
        (body("arn:ours", "https://evil.example/\\n\\u001b[2J"), "certificate"),
    ] {
        let diagnosis = run("sns", &setup, &sent, NOW);
        assert_eq!(diagnosis.checks.last().unwrap().name, step);
        let text = format!("{}{}", diagnosis.refusal.unwrap(), diagnosis.cause.unwrap());
        assert!(!text.chars().any(char::is_control), "{text:?}");
    }
    let untold = run("sns", &setup, &body("arn:ours", good), NOW);
    assert_eq!(
        (untold.genuine, untold.refusal, untold.needed_certificate.as_deref()),
        (false, None, Some(good))
    );
    assert!(untold.checks.iter().all(|check| check.ok), "nothing failed: {:?}", untold.checks);
    assert!(untold.cause.unwrap().contains(good));
}
