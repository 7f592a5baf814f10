//! H6, C3: an application under development gets events as it would in production, and its developer sees what it says.

use std::time::Duration;

use sekisho_core::delivery::{Signer, Signing};
use sekisho_core::{Secret, Time};
use sekisho_lab::app::{Behaviour, DemoApp};

use crate::support::{
    Gateway, Place, Provider, STRIPE_SECRET, Watching, each_store, stripe_source, wait_until,
};

const MOMENT: Duration = Duration::from_millis(500);

#[test]
fn h6_listen_prints_and_forwards_as_a_delivery_would() {
    each_store(|place| {
        let gateway = Gateway::open(place);
        gateway.send(&Provider::stripe().event("evt_old"));
        let app = DemoApp::start(Behaviour::Ok).unwrap();
        let url = format!("{}/hook", app.url());
        // The scheme need not be typed.
        let typed = url.strip_prefix("http://").unwrap();
        let listen = Watching::start(&gateway, &["listen", "--forward-to", typed], &place.url);
        let mut lines = Vec::new();
        wait_until("it says that it is ready", || {
            lines.extend(listen.seen(MOMENT));
            lines.len() == 2
        });
        assert!(lines[0].starts_with("Ready") && lines[0].contains(&url), "{lines:?}");
        let secret = lines[1].rsplit(' ').next().unwrap().to_owned();
        assert!(lines[1].contains("stripe") && secret.starts_with("whsec_"), "{lines:?}");

        gateway.send(&Provider::stripe().event("evt_1"));
        let mut told = None;
        wait_until("a line", || {
            told = listen.seen(MOMENT);
            told.is_some()
        });
        let told = told.unwrap();
        for words in ["payment_intent.succeeded", "evt_1", "→ 204", " ms"] {
            assert!(told.contains(words), "{told}");
        }
        let got = app.received();
        assert_eq!(got.len(), 1, "nothing of before");
        // Stripe's own library would believe it.
        let header = |name: &str| got[0].headers.iter().find(|(own, _)| own == name).unwrap().1.clone();
        let signature = header("stripe-signature");
        let stamp: i64 = signature.split([',', '=']).nth(1).unwrap().parse().unwrap();
        let signer = Signer::open(Signing::Stripe, vec![Secret::new(secret)], &url).unwrap();
        let body = got[0].body.clone().into();
        let expected = signer.sign(&header("sekisho-message-id"), &body, Time::from_seconds(stamp));
        assert!(expected.contains(&("stripe-signature".into(), signature)), "{expected:?}");

        app.set(Behaviour::status(418));
        gateway.send(&Provider::stripe().event("evt_2"));
        drop(wait_for(&listen, "→ 418"));
        drop(app);
        gateway.send(&Provider::stripe().event("evt_3"));
        assert!(wait_for(&listen, "evt_3").contains("no connection"));
        assert!(gateway.type_in(&["dead", "list", "--json"]).done().stdout.is_empty(), "it changes nothing");
    });
}

fn wait_for(listen: &Watching, words: &str) -> String {
    let mut found = None;
    wait_until(words, || {
        found = listen.seen(MOMENT).filter(|line| line.contains(words));
        found.is_some()
    });
    found.unwrap()
}

#[test]
fn c3_listen_signs_nobody_elses_event_as_stripes() {
    let place = Place::sqlite();
    let hook = "[[source]]\nname = \"hook\"\nprovider = \"github\"\nsecrets = [\"env:STRIPE_SECRET\"]\n";
    let gateway = Gateway::with(&place, &(stripe_source("") + hook));
    let app = DemoApp::start(Behaviour::Ok).unwrap();
    let url = format!("{}/hook", app.url());
    let listen = Watching::start(&gateway, &["listen", "--forward-to", &url], &place.url);
    drop(wait_for(&listen, "Ready"));
    let github = Provider::new("github", STRIPE_SECRET).to("/webhooks/hook");
    assert_eq!(gateway.send(&github.event("g1")).status, 204);
    assert!(wait_for(&listen, "g1").contains("not sent: the route signs as another provider would"));
    gateway.send(&Provider::stripe().event("evt_1"));
    drop(wait_for(&listen, "→ 204"));
    assert_eq!(app.received().len(), 1);
}

#[test]
fn h6_listen_says_what_it_can_not_do() {
    each_store(|place| {
        let gateway = Gateway::open(place);
        let say = |words: &[&str]| gateway.type_in(&[&["listen"], words].concat());
        say(&[]).failed(2).mentions(&["--forward-to"]);
        say(&["--forward-to", "ftp://localhost"]).failed(1).mentions(&["can't forward to ftp://localhost"]);
        say(&["--forward-to", "http://localhost:1/", "--signing", "wax"])
            .failed(2)
            .mentions(&["standard-webhooks"]);
    });
}
