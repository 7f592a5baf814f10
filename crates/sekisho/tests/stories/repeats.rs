//! A4, A2: what is a repeat, and what only looks like one: a second body under an id or a transmission that was used
//! before, and events that a source may not speak for.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sekisho_core::Time;
use sekisho_lab::certificate::CertificateSigner;
use serde_json::{Value, json};

use crate::support::{
    Gateway, Letter, Place, Provider, STRIPE_SECRET, each_store, say, stripe_source, wait_until,
};

const SECRET: &str = "canary_of_the_hook_51c0";

fn outcome(gateway: &Gateway, letter: &Letter) -> String {
    let answer = gateway.send(letter);
    assert_eq!(answer.status, 204, "{}", answer.text());
    answer.header("sekisho-outcome").unwrap().to_owned()
}

/// Signed by the sender, under an id that is not.
fn pushed(id: &str, body: &str) -> Letter {
    let mut letter = Provider::new("github", SECRET).body(body);
    letter.headers.retain(|(name, _)| name != "x-github-delivery");
    letter.with_header("x-github-delivery", id)
}

#[test]
fn a4_an_id_that_is_not_signed_takes_no_genuine_event_away() {
    each_store(|place| {
        let config = "[[source]]\nname = \"github\"\nprovider = \"github\"\nsecrets = [\"env:SECRET\"]\n";
        let open = || Gateway::with_env(place, config, &[("SECRET", SECRET)]);
        let gateway = open();
        let (old, new) = (r#"{"order":"old"}"#, r#"{"order":"new"}"#);
        // Whoever saw 7001 sends its body under the id that comes next.
        for (id, body, expected) in [
            ("7001", old, "accepted"),
            ("7001", old, "duplicate"),
            ("7002", old, "accepted"),
            ("7002", new, "accepted"),
            ("7002", new, "duplicate"),
            ("7002", old, "duplicate"),
        ] {
            assert_eq!(outcome(&gateway, &pushed(id, body)), expected, "{id} {body}");
        }
        assert_eq!(gateway.metric("sekisho_ids_reused_total", &["github"]), 1);
        let reused = |gateway: &Gateway| {
            let all = gateway.events();
            let shown = |event: &Value| (event["event_id"].clone(), event["id_reused"] == true);
            all.iter().map(shown).collect::<Vec<_>>()
        };
        let expected = [(json!("7002"), true), (json!("7002"), false), (json!("7001"), false)];
        assert_eq!(reused(&gateway), expected, "newest first");
        gateway.type_in(&["events", "list"]).done().mentions(&["7002 (used before)"]);
        let first = gateway.type_in(&["events", "show", "7002", "--json"]).done().lines().remove(0);
        assert_eq!(
            (&first["body"], &first["id_reused"]),
            (&json!(old), &json!(false)),
            "by its id the first"
        );
        drop(gateway);

        let gateway = open();
        assert_eq!(outcome(&gateway, &pushed("7002", new)), "duplicate", "after a restart too");
        assert_eq!(outcome(&gateway, &pushed("7001", new)), "accepted");
        assert_eq!(reused(&gateway)[0], (json!("7001"), true));
    });
}

#[test]
fn a4_a_signed_id_is_a_repeat_though_its_bytes_differ() {
    each_store(|place| {
        let gateway = Gateway::open(place);
        let body = |pending: u32| {
            format!(r#"{{"id":"evt_1","type":"x","created":2100000000,"pending_webhooks":{pending}}}"#)
        };
        assert_eq!(outcome(&gateway, &Provider::stripe().body(&body(2))), "accepted");
        assert_eq!(outcome(&gateway, &Provider::stripe().body(&body(1))), "duplicate");
        assert_eq!(gateway.events().len(), 1);
    });
}

/// PayPal, and a gateway that believes its certificate.
struct PayPal {
    signer: CertificateSigner,
    config: String,
}

const WEBHOOK: &str = "1JE4291016473214C";

impl PayPal {
    fn new(place: &Place) -> Self {
        let signer = CertificateSigner::new().unwrap();
        let pem = place.folder.path().join("paypal.pem");
        std::fs::write(&pem, signer.certificate().unwrap()).unwrap();
        let config = format!(
            "[[source]]\nname = \"paypal\"\nprovider = \"paypal\"\nwebhook_id = \"{WEBHOOK}\"\ncertificate = \"file:{}\"\n",
            pem.display()
        );
        Self { signer, config }
    }

    fn sent(&self, transmission: &str, at: Time, body: &str) -> Letter {
        let at = at.to_string();
        let text = format!("{transmission}|{at}|{WEBHOOK}|{}", crc32(body.as_bytes()));
        let signature = STANDARD.encode(self.signer.sign(text.as_bytes()).unwrap());
        Letter::unsigned("/webhooks/paypal", body)
            .with_header("paypal-transmission-id", transmission)
            .with_header("paypal-transmission-time", &at)
            .with_header("paypal-transmission-sig", &signature)
            .with_header("paypal-cert-url", "https://api.paypal.com/v1/notifications/certs/CERT-1")
            .with_header("paypal-auth-algo", "SHA256withRSA")
    }
}

/// As PayPal sums up a body.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum: u32, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0xEDB8_8320 & 0_u32.wrapping_sub(sum & 1)))
    })
}

fn capture(id: &str, value: &str) -> String {
    json!({
        "id": id, "event_type": "PAYMENT.CAPTURE.COMPLETED", "resource_type": "capture",
        "create_time": "2026-02-02T02:40:00Z",
        "resource": { "id": format!("CAP-{id}"), "status": "COMPLETED", "custom_id": "order-1",
                      "amount": { "currency_code": "USD", "value": value } },
    })
    .to_string()
}

/// The words of the refusals with how often each was said, once there are so many. Alike ones are one line.
fn refusals(gateway: &Gateway, count: i64) -> Vec<(String, i64)> {
    let mut found = Vec::new();
    wait_until("the refusals are written down", || {
        let said = |one: &Value| (one["reason"].as_str().unwrap().to_owned(), one["count"].as_i64().unwrap());
        found = gateway.rejections().iter().map(said).collect();
        found.iter().map(|(_, count)| count).sum::<i64>() == count
    });
    found.sort();
    found
}

#[test]
fn a2_a_transmission_of_paypal_stands_for_one_body() {
    each_store(|place| {
        let paypal = PayPal::new(place);
        let gateway = Gateway::with(place, &paypal.config);
        let now = sekisho::now();
        let genuine = paypal.sent("T-1", now, &capture("WH-1", "10.00"));
        assert_eq!(outcome(&gateway, &genuine), "accepted");
        assert_eq!(outcome(&gateway, &genuine), "duplicate", "sent again, as it was");
        // Made so that it fits the same signature; here PayPal's own key stands in for the four bytes that do that.
        for id in ["WH-1", "WH-2"] {
            let steered = paypal.sent("T-1", now, &capture(id, "99999.00"));
            assert_eq!(gateway.send(&steered).status, 400, "{id}");
        }
        assert_eq!(gateway.send(&paypal.sent("T-1", now, "[]")).status, 400, "nor as evidence");
        let said = refusals(&gateway, 3);
        assert!(said.iter().all(|(reason, _)| reason == "second_body"), "{said:?}");
        assert_eq!(gateway.metric("sekisho_rejections_total", &["second_body"]), 3);
        // Resent by hand: a transmission of its own.
        assert_eq!(outcome(&gateway, &paypal.sent("T-2", now, &capture("WH-1", "10.00"))), "duplicate");
        drop(gateway);

        let gateway = Gateway::with(place, &paypal.config);
        for transmission in ["T-1", "T-2"] {
            let steered = paypal.sent(transmission, now, &capture("WH-3", "99999.00"));
            assert_eq!(gateway.send(&steered).status, 400, "{transmission}, after a restart");
        }
        assert_eq!(outcome(&gateway, &genuine), "duplicate");
        assert_eq!(gateway.event_ids(), ["WH-1"]);
        drop(gateway);

        let other = paypal.config.replace(WEBHOOK, "WH-ANOTHER");
        let gateway = Gateway::with(place, &other);
        assert_eq!(gateway.send(&genuine).status, 400, "signed for another webhook");
    });
}

#[test]
fn a2_a_transmission_of_paypal_is_believed_for_as_long_as_paypal_sends_again() {
    each_store(|place| {
        let paypal = PayPal::new(place);
        let gateway = Gateway::with(place, &paypal.config);
        let ago = |minutes: i64| sekisho::now().plus_ms(-minutes * 60_000);
        let days = |days: i64| days * 24 * 60;
        let sent = |transmission: &str, minutes| {
            gateway.send(&paypal.sent(transmission, ago(minutes), &capture(transmission, "10.00"))).status
        };
        assert_eq!(sent("T-1", days(3)), 204);
        assert_eq!(sent("T-2", -2), 204, "clocks differ");
        assert_eq!(sent("T-3", days(4) + 1), 400);
        assert_eq!(sent("T-4", -10), 400);
        assert_eq!(sent("T|5", 0), 400);
        let tampered = paypal.sent("T-6", ago(0), &capture("T-6", "10.00")).forged();
        assert_eq!(gateway.send(&tampered).status, 400);
        let expected = ["bad_signature", "future_timestamp", "malformed_header", "stale_timestamp"];
        assert_eq!(refusals(&gateway, 4), expected.map(|reason| (reason.to_owned(), 1)));
        assert_eq!(gateway.event_ids(), ["T-1", "T-2"]);
    });
}

fn charged(id: &str, account: Option<&str>, live: bool) -> Letter {
    let body = json!({
        "id": id, "object": "event", "type": "charge.succeeded", "created": 2_100_000_000, "livemode": live,
        "account": account,
    });
    Provider::stripe().body(&body.to_string())
}

#[test]
fn a1_a_source_that_is_bound_to_an_account_holds_others_back() {
    each_store(|place| {
        let gateway = Gateway::with(place, &stripe_source("account = \"acct_ours\""));
        for (id, account) in
            [("evt_own", None), ("evt_named", Some("acct_ours")), ("evt_other", Some("acct_theirs"))]
        {
            assert_eq!(outcome(&gateway, &charged(id, account, true)), "accepted");
        }
        wait_until("one is held back", || {
            gateway.type_in(&["dead", "list", "--json"]).done().lines().len() == 1
        });
        let letter = gateway.type_in(&["dead", "list", "--json"]).done().lines().remove(0);
        assert_eq!(
            (&letter["reason"], &letter["event_id"]),
            (&json!("account_mismatch"), &json!("evt_other"))
        );
        let id = letter["id"].as_str().unwrap();
        gateway.type_in(&["dead", "retry", id]).done();
        wait_until("it is held back again", || {
            let letters = gateway.type_in(&["dead", "list", "--json"]).done().lines();
            letters.len() == 1 && letters[0]["attempts"] != letter["attempts"]
        });
    });
}

#[test]
fn a1_a_source_takes_the_mode_of_its_api_key() {
    each_store(|place| {
        let gateway = Gateway::with(place, &stripe_source("api_key = \"rk_live_canary_9a1c\""));
        assert_eq!(outcome(&gateway, &charged("evt_live", None, true)), "accepted");
        assert_eq!(outcome(&gateway, &charged("evt_test", None, false)), "accepted");
        wait_until("one is held back", || {
            gateway.type_in(&["events", "list", "--json", "--status", "failed"]).done().lines().len() == 1
        });
        let letter = gateway.type_in(&["dead", "list", "--json"]).done().lines().remove(0);
        assert_eq!(
            (&letter["reason"], &letter["event_id"]),
            (&json!("livemode_mismatch"), &json!("evt_test"))
        );
    });
}

#[test]
fn h5_a_second_source_without_a_mode_is_told_at_start_and_by_the_doctor() {
    let folder = tempfile::tempdir().unwrap();
    let env = [("STRIPE_SECRET", STRIPE_SECRET)];
    let second = stripe_source("livemode = false").replace("name = \"stripe\"", "name = \"tests\"");
    let check = |config: &str| {
        std::fs::write(folder.path().join("sekisho.toml"), config).unwrap();
        ["config", "doctor"].map(|command| {
            let words: &[&str] = if command == "config" { &["config", "check"] } else { &["doctor"] };
            say(folder.path(), words, &env).all()
        })
    };
    for said in check(&(stripe_source("") + &second)) {
        assert!(said.contains("source stripe: tests receives from Stripe too"), "{said}");
        assert!(!said.contains("source tests: stripe receives"), "{said}");
    }
    for said in check(&(stripe_source("livemode = true") + &second)) {
        assert!(!said.contains("receives from Stripe too"), "{said}");
    }
    for said in check(&stripe_source("")) {
        assert!(!said.contains("receives from Stripe too"), "{said}");
    }
}
