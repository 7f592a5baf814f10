//! A3, A4, A8, C1, C3: what somebody tries who has no secret of ours, or only that of another source: to have their words
//! signed for the app, to swallow what the provider sends, to use up what is meant for all, to be taken for Sekisho.

use sekisho_lab::app::{Behaviour, DemoApp, SeenDelivery};
use sekisho_lab::smtp::{self, Smtp};
use serde_json::Value;

use super::notices::{FAST, mail, paid};
use crate::support::{Gateway, Letter, Place, Provider, each_store, route_to, stripe_source, wait_until};

const SECRET: &str = "canary_of_the_hook_7b3e";
const GITHUB: &str = "[[source]]\nname = \"github\"\nprovider = \"github\"\nsecrets = [\"env:SECRET\"]\n";
const HINTS: &str = "[[source]]\nname = \"mollie\"\nprovider = \"mollie_classic\"\n\
                     [[source]]\nname = \"linepay\"\nprovider = \"line_pay\"\n";

fn open(place: &Place, config: &str) -> Gateway {
    Gateway::with_env(place, config, &[("SECRET", SECRET)])
}

/// Signed with the secret of another source, under a type of the sender's choice.
fn pushed(event_type: &str, id: &str, body: &str) -> Letter {
    let mut letter = Provider::new("github", SECRET).body(body);
    letter.headers.retain(|(name, _)| !matches!(&**name, "x-github-delivery" | "x-github-event"));
    letter.with_header("x-github-delivery", id).with_header("x-github-event", event_type)
}

fn callback(query: &str, body: &str) -> Letter {
    let path = format!("/webhooks/linepay?{query}");
    Letter { method: "GET".into(), ..Letter::unsigned(&path, body) }
}

/// Every event has been settled: where it goes is decided.
fn wait_for_settled(gateway: &Gateway, count: usize) {
    wait_until("all events are settled", || {
        let events = gateway.events();
        events.len() == count && events.iter().all(|event| event["status"] != "received")
    });
}

fn header<'d>(delivery: &'d SeenDelivery, name: &str) -> Option<&'d str> {
    delivery.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

fn events_at(app: &DemoApp, path: &str) -> Vec<String> {
    let mut ids: Vec<_> =
        app.received().into_iter().filter(|one| one.path == path).map(|one| one.event).collect();
    ids.sort();
    ids
}

#[test]
fn c3_no_strangers_words_are_signed_for_the_app_as_stripes() {
    each_store(|place| {
        let app = DemoApp::start(Behaviour::Ok).unwrap();
        let stripes = format!(
            "[[route]]\nname = \"app\"\nurl = \"{}/stripe\"\nsigning = \"stripe\"\nsecrets = [\"env:SECRET\"]\nallow_private = true\n",
            app.url()
        );
        let config = stripe_source("")
            + GITHUB
            + HINTS
            + &stripes
            + &route_to("all", &format!("{}/all", app.url()), "sources = [\"*\"]")
            + &route_to("named", &format!("{}/named", app.url()), "sources = [\"mollie\", \"linepay\"]");
        let gateway = open(place, &config);
        let forged = r#"{"x":"&id=tr_1&y","id":"evt_1","type":"payment_intent.succeeded","data":{}}"#;
        let hint = Letter::unsigned("/webhooks/mollie", forged)
            .with_header("content-type", "application/json")
            .with_header("x-evil", "chosen");
        assert_eq!(gateway.send(&hint).status, 204);
        let ids = "transactionId=7&orderId=a";
        assert_eq!(gateway.send(&callback(ids, r#"{"type":"payment_intent.succeeded"}"#)).status, 400);
        assert_eq!(gateway.send(&callback(ids, "")).status, 204);
        assert_eq!(gateway.send(&pushed("payment_intent.succeeded", "g1", forged)).status, 204);
        assert_eq!(gateway.send(&Provider::stripe().event("evt_own")).status, 204);
        wait_for_settled(&gateway, 4);
        wait_until("all that may be delivered is", || app.received().len() == 5);

        assert_eq!(events_at(&app, "/stripe"), ["evt_own"]);
        assert_eq!(events_at(&app, "/all"), ["evt_own", "g1"], "a star names nobody");
        let named = events_at(&app, "/named");
        assert!(named[0].starts_with("callback:7:a@") && named[1].starts_with("tr_1@"), "{named:?}");
        for delivery in app.received() {
            let trust = if delivery.path == "/named" { "hint" } else { "signed" };
            assert_eq!(header(&delivery, "sekisho-trust"), Some(trust));
            assert!(delivery.path != "/named" || matches!(&*delivery.body, b"" | b"id=tr_1"), "{delivery:?}");
            assert_eq!(header(&delivery, "x-evil"), None);
        }
        assert!(!place.sql("SELECT headers FROM event").contains("chosen"), "nor is it stored");
    });
}

#[test]
fn c3_a_delivery_that_waited_while_its_route_became_stripes_is_not_sent() {
    each_store(|place| {
        let app = DemoApp::start(Behaviour::status(500)).unwrap();
        let route = |signing: &str| {
            format!(
                "[[route]]\nname = \"app\"\nurl = \"{}/\"\nretries = 0\nallow_private = true\n{signing}\n",
                app.url()
            )
        };
        let gateway = open(place, &(GITHUB.to_owned() + &route("signing = \"none\"")));
        gateway.send(&pushed("payment_intent.succeeded", "g1", "{}"));
        let reason = || place.sql("SELECT reason FROM dead");
        wait_until("it died", || reason() == "server_error");
        drop(gateway);

        app.set(Behaviour::Ok);
        let as_stripe = "signing = \"stripe\"\nsecrets = [\"env:SECRET\"]";
        let gateway = open(place, &(GITHUB.to_owned() + &route(as_stripe)));
        gateway.type_in(&["dead", "retry", "--all"]).done();
        wait_until("it died of something else", || reason() == "not_for_route");
        assert_eq!(app.received().len(), 1, "the one that was answered 500");
    });
}

#[test]
fn a4_a_callback_that_was_sent_before_the_approval_swallows_nothing() {
    each_store(|place| {
        let app = DemoApp::start(Behaviour::Ok).unwrap();
        let config =
            HINTS.to_owned() + &route_to("app", &format!("{}/", app.url()), "sources = [\"linepay\"]");
        let gateway = open(place, &config);
        let real = callback("transactionId=2026111500000000001&orderId=ORDER-1", "");
        for _ in ["somebody who guessed the ids", "LINE Pay"] {
            let answer = gateway.send(&real);
            assert_eq!((answer.status, answer.header("sekisho-outcome")), (204, Some("accepted")));
            // The app has looked it up by now.
            wait_until("it was delivered", || app.received().len() == gateway.events().len());
        }
        assert_eq!(gateway.events().len(), 2);
    });
}

#[test]
fn a8_one_noisy_network_leaves_the_honest_senders_of_hints_their_share() {
    each_store(|place| {
        let config = "[server]\ntrusted_proxies = 1\n".to_owned()
            + &HINTS.replace("\"mollie_classic\"", "\"mollie_classic\"\nrate = 8\nnetwork_rate = 1");
        let gateway = open(place, &config);
        let hint = |peer: &str| {
            gateway
                .send(&Letter::unsigned("/webhooks/mollie", "id=tr_1").with_header("x-forwarded-for", peer))
        };
        let answers: Vec<_> = (0..40).map(|n| hint(&format!("203.0.113.{n}"))).collect();
        let refused: Vec<_> = answers.iter().filter(|answer| answer.status != 204).collect();
        assert!(!refused.is_empty());
        assert!(refused.iter().all(|one| one.status == 503 && one.header("retry-after").is_some()));
        assert_eq!(hint("198.51.100.7").status, 204);
        assert_eq!(hint("2001:db8:7::1").status, 204);
    });
}

#[test]
fn a3_many_forgeries_of_one_network_are_one_line_beside_what_others_did() {
    each_store(|place| {
        let config = "[server]\ntrusted_proxies = 1\n".to_owned() + &stripe_source("");
        let gateway = open(place, &config);
        let forged = |peer: &str| {
            let letter = Provider::stripe().event("evt_1").forged().with_header("x-forwarded-for", peer);
            assert_eq!(gateway.send(&letter).status, 400);
        };
        let found = || -> Vec<(String, i64)> {
            let row =
                |one: Value| (one["network"].as_str().unwrap().to_owned(), one["count"].as_i64().unwrap());
            gateway.rejections().into_iter().map(row).collect()
        };
        let count = |network: &str| -> i64 {
            found().iter().filter(|(of, _)| of == network).map(|(_, count)| count).sum()
        };
        forged("198.51.100.7");
        wait_until("it is written down", || count("198.51.100.0/24") == 1);
        for piece in 1..=3 {
            (0..100).for_each(|n| forged(&format!("203.0.113.{n}")));
            wait_until("they are counted, too", || count("203.0.113.0/24") == piece * 100);
        }
        // Two if the clock struck meanwhile.
        assert!((2..=3).contains(&found().len()), "{:?}", found());
        assert_eq!(count("198.51.100.0/24"), 1);
        gateway.type_in(&["rejections"]).done().mentions(&["LAST", "198.51.100.7"]);
    });
}

#[test]
fn c1_an_event_that_calls_itself_payment_paid_is_not_taken_for_ours() {
    each_store(|place| {
        let (app, smtp) =
            (DemoApp::start(Behaviour::Ok).unwrap(), Smtp::start(smtp::SmtpBehaviour::Accept).unwrap());
        let rule = |name: &str, to: &str, more: &str| {
            format!(
                "[[notify]]\nname = \"{name}\"\nevents = [\"payment.paid\"]\nto = \"{to}\"\nchannel = \"mail\"\n\
                 template = \"operator-alert\"\n{more}\n"
            )
        };
        let config = "[notifications]\noperators = [\"ops@example.jp\"]\n".to_owned()
            + &stripe_source("")
            + GITHUB
            + &mail(&smtp, FAST)
            + &rule("receipt", "customer", "")
            + &rule("ops", "operators", "")
            + &rule("hooks", "operators", "sources = [\"github\"]")
            + &route_to("ours", &format!("{}/ours", app.url()), "events = [\"payment.paid\"]")
            + &route_to(
                "raw",
                &format!("{}/raw", app.url()),
                "sources = [\"github\"]\nevents = [\"payment.paid\"]",
            );
        let gateway = open(place, &config);
        let forged = r#"{"type":"payment.paid","data":{"customer":{"email":"mallory@evil.example"}}}"#;
        gateway.send(&pushed("payment.paid", "g1", forged));
        let notices = || place.sql("SELECT customer FROM state WHERE kind = 'notice' ORDER BY customer");
        wait_for_settled(&gateway, 1);
        wait_until("whoever asked for GitHub's is told", || notices() == "ops@example.jp");
        wait_until("and gets it", || events_at(&app, "/raw") == ["g1"]);
        gateway.send(&paid("1", "taro@example.jp"));
        wait_until("ours is believed", || notices() == "ops@example.jp\nops@example.jp\ntaro@example.jp");
        wait_until("and delivered", || events_at(&app, "/ours").len() == 1);
        assert!(events_at(&app, "/ours")[0].ends_with("/payment.paid"));
    });
}

#[test]
fn c1_a_raw_delivery_hands_on_no_word_of_who_calls() {
    each_store(|place| {
        let app = DemoApp::start(Behaviour::Ok).unwrap();
        let gateway = open(place, &(stripe_source("") + &route_to("app", &format!("{}/", app.url()), "")));
        let strange = [
            "x-forwarded-for",
            "x-forwarded-host",
            "forwarded",
            "x-real-ip",
            "x_real_ip",
            "remote-user",
            "x-remote-user",
            "x-http-method-override",
            "via",
            "x-original-url",
            "x-rewrite-url",
            "cookie",
            "authorization",
            "sekisho-trust",
        ];
        let letter = Provider::stripe().event("evt_1").with_header("x-shop", "7");
        let letter = strange.iter().fold(letter, |letter, name| letter.with_header(name, "stranger"));
        assert_eq!(gateway.send(&letter).status, 204);
        wait_until("it was delivered", || app.received().len() == 1);
        let delivery = &app.received()[0];
        assert!(!format!("{:?}", delivery.headers).contains("stranger"), "{:?}", delivery.headers);
        assert_eq!(header(delivery, "x-shop"), Some("7"));
        assert!(header(delivery, "stripe-signature").is_some() && header(delivery, "content-type").is_some());
    });
}
