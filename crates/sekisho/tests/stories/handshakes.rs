//! A3: what is genuine and yet no event gets the answer its provider wants, and nothing is stored.

use crate::support::{Gateway, Provider, each_store, vector};

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
        assert_eq!(gateway.send(&line.body(r#"{"destination":"U1","events":[]}"#)).status, 204);

        let komoju = Provider::new("komoju", SECRET);
        assert_eq!(gateway.send(&komoju.body(r#"{"type":"ping","data":{}}"#)).status, 204);

        let github = Provider::new("github", SECRET);
        let mut ping = github.body(r#"{"zen":"Design for failure.","hook_id":1}"#);
        ping.headers.retain(|(name, _)| name != "x-github-event");
        let answer = gateway.send(&ping.with_header("x-github-event", "ping"));
        assert_eq!(answer.status, 204);
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

#[test]
fn a2_a_message_of_paypal_is_believed_by_certificate_and_webhook_id() {
    each_store(|place| {
        let (_, about) = vector("paypal", "valid");
        let context = &about["context"];
        let certificate = context["cert_url_to_pem"].as_object().unwrap().values().next().unwrap();
        let pem = place.folder.path().join("paypal.pem");
        std::fs::write(&pem, certificate.as_str().unwrap()).unwrap();
        let config = format!(
            "[[source]]\nname = \"paypal\"\nprovider = \"paypal\"\nwebhook_id = {}\ncertificate = \"file:{}\"\n",
            context["webhook_id"],
            pem.display()
        );
        let gateway = Gateway::with(place, &config);
        let send = |name: &str| gateway.send(&vector("paypal", name).0);
        let first = send("valid");
        assert_eq!(
            (first.status, first.header("sekisho-outcome")),
            (204, Some("accepted")),
            "{}",
            first.text()
        );
        assert_eq!(send("valid").header("sekisho-outcome"), Some("duplicate"));
        for name in ["tampered", "cert-host-not-paypal"] {
            assert_eq!(send(name).status, 400, "{name}");
        }
        assert_eq!(gateway.event_ids(), [about["dedupe_key"].as_str().unwrap()]);
        drop(gateway);
        let id = context["webhook_id"].as_str().unwrap();
        let gateway = Gateway::with(place, &config.replace(id, "WH-ANOTHER"));
        assert_eq!(gateway.send(&vector("paypal", "valid").0).status, 400, "signed for another webhook");
    });
}
