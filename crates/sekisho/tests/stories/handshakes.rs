//! A3: what is genuine and yet no event gets the answer its provider wants, and nothing is stored.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sekisho_lab::app::Reply;
use sekisho_lab::certificate::CertificateSigner;
use sekisho_lab::internet::Internet;
use serde_json::{Value, json};

use crate::support::{Gateway, Letter, Place, Provider, each_store, vector, wait_until};

/// One configuration with every provider that shakes hands.
fn config(folder: &std::path::Path) -> String {
    let pem = folder.join("sns.pem");
    let (_, about) = vector("sns", "valid-v2-ses-bounce");
    let context = &about["context"];
    let certificate = context["cert_url_to_pem"].as_object().unwrap().values().next().unwrap();
    std::fs::write(&pem, certificate.as_str().unwrap()).unwrap();
    let mut text = String::new();
    for name in ["slack", "line", "github", "komoju"] {
        text +=
            &format!("[[source]]\nname = \"{name}\"\nprovider = \"{name}\"\nsecrets = [\"env:SECRET\"]\n");
    }
    let topic = &context["expected_topic_arn"];
    text + &format!(
        "[[source]]\nname = \"sns\"\nprovider = \"sns\"\ntopic_arn = {topic}\ncertificate = \"file:{}\"\n",
        pem.display()
    )
}

const SECRET: &str = "canary_handshake_secret";

#[test]
fn a3_pings_and_challenges_are_answered_and_are_no_events() {
    each_store(|place| {
        let gateway = Gateway::with_env(place, &config(place.folder.path()), &[("SECRET", SECRET)]);

        let slack = Provider::new("slack", SECRET);
        let challenge = r#"{"type":"url_verification","challenge":"3eZbrw1a关"}"#;
        let echo = gateway.send(&slack.body(challenge));
        assert_eq!((echo.status, echo.text().as_str()), (200, "3eZbrw1a关"));
        assert!(echo.header("content-type").unwrap().starts_with("text/plain"));
        assert_eq!(gateway.send(&slack.body(challenge).forged()).status, 400, "a forger gets no echo");

        let line = Provider::new("line", SECRET);
        assert_eq!(gateway.send(&line.body(r#"{"destination":"U1","events":[]}"#)).status, 200);

        let komoju = Provider::new("komoju", SECRET);
        assert_eq!(gateway.send(&komoju.body(r#"{"type":"ping","data":{}}"#)).status, 200);

        let github = Provider::new("github", SECRET);
        let mut ping = github.body(r#"{"zen":"Design for failure.","hook_id":1}"#);
        ping.headers.retain(|(name, _)| name != "x-github-event");
        let answer = gateway.send(&ping.with_header("x-github-event", "ping"));
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("sekisho-outcome"), None);
        assert!(answer.header("sekisho-request-id").is_some());

        assert!(gateway.events().is_empty());
        assert_eq!(gateway.metric("sekisho_requests_total", &["handshake"]), 4);
    });
}

#[test]
fn a2_a_message_of_sns_is_believed_by_certificate_and_topic() {
    each_store(|place| {
        let config = config(place.folder.path());
        let gateway = Gateway::with_env(place, &config, &[("SECRET", SECRET)]);
        let send = |name: &str| gateway.send(&vector("sns", name).0);

        let bounce = send("valid-v2-ses-bounce");
        assert_eq!((bounce.status, bounce.header("sekisho-outcome")), (204, Some("accepted")));
        // The same message signed by the older algorithm is the same message.
        let older = send("valid-v1-no-subject");
        assert_eq!((older.status, older.header("sekisho-outcome")), (204, Some("duplicate")));
        assert_eq!(send("tampered-message").status, 400);
        assert_eq!(send("cert-host-attack").status, 400);
        let raw = vector("sns", "valid-v2-ses-bounce").0.with_header("x-amz-sns-rawdelivery", "true");
        assert_eq!(gateway.send(&raw).status, 400, "raw delivery is not signed");

        let events = gateway.events();
        assert_eq!(events.len(), 1);
        let (_, about) = vector("sns", "valid-v2-ses-bounce");
        assert_eq!(events[0]["event_id"], about["dedupe_key"]);
        drop(gateway);

        let topic = about["context"]["expected_topic_arn"].as_str().unwrap();
        let other = config.replace(topic, &topic.replace("ses-events", "other"));
        let gateway = Gateway::with_env(place, &other, &[("SECRET", SECRET)]);
        let astray = gateway.send(&vector("sns", "valid-v2-ses-bounce").0);
        assert_eq!(astray.status, 400, "signed by AWS, yet not our topic");
    });
}

const HOST: &str = "https://sns.ap-northeast-1.amazonaws.com";
const TOPIC: &str = "arn:aws:sns:ap-northeast-1:123456789012:ses-events";

/// Amazon, as far as SNS is concerned, and a gateway that can reach it.
struct Amazon {
    internet: Internet,
    signer: CertificateSigner,
    gateway: Gateway,
}

impl Amazon {
    fn open(place: &Place) -> Self {
        let internet = Internet::start(&[HOST.strip_prefix("https://").unwrap()]).unwrap();
        let config = format!("[[source]]\nname = \"sns\"\nprovider = \"sns\"\ntopic_arn = \"{TOPIC}\"\n");
        let [proxy, trusted] = internet.env();
        let env = [(proxy.0, &*proxy.1), (trusted.0, &*trusted.1)];
        let gateway = Gateway::with_env(place, &config, &env);
        Self { gateway, internet, signer: CertificateSigner::new().unwrap() }
    }

    fn publish(&self, certificate: &str) {
        let page = Reply::status(200).with_body(&self.signer.certificate().unwrap());
        self.internet.put(&format!("{HOST}/{certificate}"), page);
    }

    /// A message signed as SNS signs, by a certificate that stands under this name.
    fn message(&self, kind: &str, id: &str, certificate: &str) -> Letter {
        let mut message = json!({
            "Type": kind, "MessageId": id, "TopicArn": TOPIC, "Message": "{}", "SignatureVersion": "2",
            "Timestamp": sekisho::now().to_string(), "SigningCertURL": format!("{HOST}/{certificate}"),
        });
        let fields: &[&str] = if kind == "Notification" {
            &["Message", "MessageId", "Timestamp", "TopicArn", "Type"]
        } else {
            message["SubscribeURL"] = json!(format!("{HOST}/?Action=ConfirmSubscription&Token=t0k3n"));
            message["Token"] = json!("t0k3n");
            &["Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"]
        };
        let field = |name: &&str| format!("{name}\n{}\n", message[name].as_str().unwrap());
        let text: String = fields.iter().map(field).collect();
        message["Signature"] = json!(STANDARD.encode(self.signer.sign(text.as_bytes()).unwrap()));
        Letter::unsigned("/webhooks/sns", &message.to_string())
    }

    fn asked(&self, path: &str) -> usize {
        self.internet.asked().iter().filter(|url| **url == format!("{HOST}/{path}")).count()
    }
}

#[test]
fn a3_a_subscription_of_sns_is_confirmed_once_it_is_proven() {
    each_store(|place| {
        let amazon = Amazon::open(place);
        amazon.publish("a.pem");
        let confirmation = "?Action=ConfirmSubscription&Token=t0k3n";
        let letter = amazon.message("SubscriptionConfirmation", "m-1", "a.pem");
        let mut forged: Value = serde_json::from_slice(&letter.body).unwrap();
        forged["Message"] = json!("another");
        let forged = Letter::unsigned("/webhooks/sns", &forged.to_string());

        assert_eq!(amazon.gateway.send(&forged).status, 400);
        assert_eq!(amazon.asked(confirmation), 0, "nothing is confirmed on a forger's word");
        assert_eq!(amazon.gateway.send(&letter).status, 503, "Amazon did not take it: send it again");
        assert_eq!(amazon.asked(confirmation), 1);
        amazon.internet.put(&format!("{HOST}/{confirmation}"), Reply::status(200));
        assert_eq!(amazon.gateway.send(&letter).status, 200);
        assert_eq!((amazon.asked(confirmation), amazon.asked("a.pem")), (2, 1));
        assert!(amazon.gateway.server.stderr().contains("the subscription was confirmed"));
        assert!(amazon.gateway.events().is_empty());
    });
}

#[test]
fn a2_a_signing_certificate_is_fetched_once_for_all_who_wait_for_it() {
    each_store(|place| {
        let amazon = Amazon::open(place);
        let page = Reply::status(200).with_body(&amazon.signer.certificate().unwrap());
        amazon.internet.put_slow(&format!("{HOST}/a.pem"), Duration::from_millis(500), page);
        let letters: Vec<_> =
            (0..20).map(|n| amazon.message("Notification", &format!("m-{n}"), "a.pem")).collect();
        let gateway = &amazon.gateway;
        std::thread::scope(|scope| {
            let answers: Vec<_> =
                letters.iter().map(|letter| scope.spawn(|| gateway.send(letter).status)).collect();
            assert!(answers.into_iter().all(|answer| answer.join().unwrap() == 204));
        });
        assert_eq!(amazon.asked("a.pem"), 1);
        assert_eq!(gateway.events().len(), 20);
    });
}

#[test]
fn a2_a_certificate_that_can_not_be_had_is_503_and_the_operator_reads_why() {
    each_store(|place| {
        let amazon = Amazon::open(place);
        amazon.publish("a.pem");
        let gateway = &amazon.gateway;
        let pages = [
            ("moved.pem", Reply::status(302).with_header("location", &format!("{HOST}/a.pem"))),
            ("large.pem", Reply::status(200).with_body(&"x".repeat(65 << 10))),
            ("nonsense.pem", Reply::status(200).with_body("nonsense")),
            ("broken.pem", Reply::status(500)),
        ];
        for (name, page) in pages {
            amazon.internet.put(&format!("{HOST}/{name}"), page);
            let answer = gateway.send(&amazon.message("Notification", name, name));
            assert_eq!(answer.status, 503, "{name}");
            assert!(answer.header("retry-after").is_some(), "{name}");
        }
        assert_eq!(gateway.send(&amazon.message("Notification", "made up", "none.pem")).status, 503);
        assert_eq!(amazon.asked("a.pem"), 0, "a redirect leads nowhere");
        let refused = || {
            let found = gateway.rejections();
            let found = found.iter().filter(|one| one["reason"] == "certificate_not_at_hand");
            found.map(|one| one["count"].as_i64().unwrap()).sum::<i64>()
        };
        wait_until("all are recorded", || refused() == 5);
        assert!(gateway.events().is_empty());
        assert_eq!(gateway.send(&amazon.message("Notification", "m-1", "a.pem")).status, 204);
    });
}
