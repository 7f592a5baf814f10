//! B4, D6: past events are settled again, and nothing that was done is done twice.

use sekisho_lab::app::{Behaviour, DemoApp};
use sekisho_lab::smtp::{Smtp, SmtpBehaviour as Mood};
use serde_json::{Value, json};

use super::notices::{FAST, RECEIPT, mail, paid, statuses};
use crate::support::{Gateway, Provider, each_store, route_to, stripe_source, wait_until};

fn replay(gateway: &Gateway, words: &[&str]) -> Value {
    gateway.type_in(&[&["events", "replay", "--json"], words].concat()).done().lines().remove(0)
}

/// Waits until no event has work of its own left.
fn settled(gateway: &Gateway) {
    wait_until("all settled", || gateway.events().iter().all(|event| event["status"] != "received"));
}

#[test]
fn b4_what_comes_while_the_operator_reads_is_not_replayed() {
    each_store(|place| {
        let gateway = Gateway::with(place, &stripe_source(""));
        let send = |id: &str| assert_eq!(gateway.send(&Provider::stripe().event(id)).status, 204);
        ["evt_1", "evt_2"].iter().for_each(|id| send(id));
        settled(&gateway);
        let asked = gateway.be_asked(&["events", "replay", "--all"], "Continue?");
        send("evt_3");
        settled(&gateway);
        asked.answer("y").done().mentions(&["2 events would be", "2 events queued to be processed again"]);
    });
}

#[test]
fn b4_replay_never_repeats_a_delivery_that_was_made() {
    each_store(|place| {
        let app = DemoApp::start(Behaviour::Ok).unwrap();
        let config = stripe_source("") + &route_to("app", &format!("{}/hook", app.url()), "");
        let gateway = Gateway::with(place, &config);
        for id in ["evt_1", "evt_2"] {
            assert_eq!(gateway.send(&Provider::stripe().event(id)).status, 204);
        }
        wait_until("both arrived", || app.counts().processed == 2);
        settled(&gateway);

        let foretold = replay(&gateway, &["--all", "--dry-run"]);
        assert_eq!((&foretold["found"], &foretold["queued"]), (&2.into(), &0.into()));
        wait_until("the ends are written", || {
            let route = replay(&gateway, &["--all", "--dry-run"])["routes"][0].clone();
            route["delivered"] == 2 && route["new"] == 0
        });
        let said = gateway.type_in(&["events", "replay", "--all", "--dry-run"]).done();
        said.mentions(&["2 events would be processed again", "DELIVERED", "--again"]);
        assert_eq!(
            gateway.type_in(&["audit", "list", "--action", "event.*", "--json"]).done().lines().len(),
            0
        );

        assert_eq!(replay(&gateway, &["--type", "payment_intent.*", "--since", "1h"])["queued"], 2);
        settled(&gateway);
        gateway.type_in(&["events", "replay", "evt_1", "--again"]).done().mentions(&["1 event queued"]);
        wait_until("one came again", || app.counts().processed == 3);
        settled(&gateway);
        let messages = gateway.type_in(&["events", "show", "evt_1", "--json"]).done().lines().remove(0);
        assert_eq!(
            messages["messages"].as_array().unwrap().len(),
            2,
            "asked for, so with a message of its own"
        );
        assert_eq!(app.counts().processed, 3);
        gateway.type_in(&["audit"]).done().mentions(&["event.replayed", "cli:"]);
        gateway.type_in(&["events", "replay"]).failed(2).mentions(&["specify ids"]);
        gateway
            .type_in(&["events", "replay", "evt_none"])
            .failed(1)
            .mentions(&["no event has the id evt_none"]);
    });
}

#[test]
fn d6_replay_reaches_a_route_added_later() {
    each_store(|place| {
        let app = DemoApp::start(Behaviour::Ok).unwrap();
        let first = route_to("first", &format!("{}/first", app.url()), "");
        {
            let mut gateway = Gateway::with(place, &(stripe_source("") + &first));
            for id in ["evt_1", "evt_2"] {
                assert_eq!(gateway.send(&Provider::stripe().event(id)).status, 204);
            }
            wait_until("both arrived", || app.counts().processed == 2);
            settled(&gateway);
            gateway.server.terminate().unwrap();
        }
        let filter = "filter = 'body.id == \"evt_2\"'";
        let second = route_to("second", &format!("{}/second", app.url()), filter);
        let mut gateway = Gateway::with(place, &(stripe_source("") + &first + &second));
        let foretold = replay(&gateway, &["--all", "--dry-run"]);
        let of = |name: &str| {
            let routes = foretold["routes"].as_array().unwrap();
            routes.iter().find(|route| route["route"] == name).unwrap().clone()
        };
        assert_eq!((&of("first")["delivered"], &of("first")["new"]), (&2.into(), &0.into()));
        assert_eq!((&of("second")["delivered"], &of("second")["new"]), (&0.into(), &1.into()));
        // The same forecast and the same act with no server running.
        gateway.server.terminate().unwrap();
        assert_eq!(replay(&gateway, &["--all", "--dry-run"]), foretold);
        assert_eq!(replay(&gateway, &["--all"])["queued"], 2);
        gateway.server.start_again().unwrap();
        wait_until("the new route got it", || app.counts().processed == 3);
        settled(&gateway);
        let ledger = app.ledger();
        let effects: Vec<_> = ledger.effects().collect();
        assert_eq!(effects, [("evt_1", "/first"), ("evt_2", "/first"), ("evt_2", "/second")]);
        assert!(ledger.doubled().is_empty());
    });
}

#[test]
fn b4_a_forecast_counts_the_notices_that_are_then_sent() {
    each_store(|place| {
        {
            let mut gateway = Gateway::open(place);
            for n in ["1", "2", "3"] {
                assert_eq!(gateway.send(&paid(n, &format!("taro{n}@example.jp"))).status, 204);
            }
            settled(&gateway);
            gateway.server.terminate().unwrap();
        }
        let smtp = Smtp::start(Mood::Accept).unwrap();
        let mut gateway = Gateway::with(place, &(stripe_source("") + &mail(&smtp, FAST) + RECEIPT));
        assert_eq!(gateway.send(&paid("4", "taro4@example.jp")).status, 204);
        wait_until("the fourth was told", || smtp.accepted().len() == 1);
        wait_until("and all is done", || statuses(place).get("sent") == Some(&1));
        settled(&gateway);

        let own = ["--source", "sekisho", "--type", "payment.paid"];
        let foretold = replay(&gateway, &[&own[..], &["--dry-run"]].concat());
        let expected = json!([{ "rule": "receipt", "channel": "mail", "new": 3, "told": 1, "unsent": 0 }]);
        assert_eq!((&foretold["found"], &foretold["notices"]), (&4.into(), &expected));
        assert_eq!(foretold["announcements"], 0);
        let said = gateway.type_in(&[&["events", "replay", "--dry-run"], &own[..]].concat()).done();
        said.mentions(&["4 events would be processed again", "receipt", "3 notices would be sent"]);
        assert_eq!(smtp.accepted().len(), 1, "a forecast sends nothing");
        // The same with no server running.
        gateway.server.terminate().unwrap();
        assert_eq!(replay(&gateway, &[&own[..], &["--dry-run"]].concat()), foretold);
        gateway.server.start_again().unwrap();

        assert_eq!(replay(&gateway, &own)["queued"], 4);
        wait_until("as many as foretold", || statuses(place).get("sent") == Some(&4));
        settled(&gateway);
        let after = replay(&gateway, &[&own[..], &["--dry-run", "--again"]].concat());
        assert_eq!((&after["notices"][0]["new"], &after["notices"][0]["told"]), (&0.into(), &4.into()));
        assert_eq!(smtp.accepted().len(), 4, "each once");
    });
}
