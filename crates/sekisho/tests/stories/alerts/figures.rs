//! Targets and figures: what nodes counted is in the store, and what there is now is at `/metrics`.

use sekisho_lab::app::{Behaviour, DemoApp};
use serde_json::Value;

use crate::delivery::event;
use crate::support::{Gateway, Place, each_store, route_to, stripe_source, wait_until};

const QUICK: &str = "[alerts]\nevery = \"1s\"\n";

/// One target over the last hour.
fn target(gateway: &Gateway, name: &str) -> Value {
    let all = gateway.type_in(&["targets", "--json"]).done().lines();
    let one = all.into_iter().find(|one| one["name"] == name).unwrap();
    one["windows"].as_array().unwrap().iter().find(|window| window["window"] == "1h").unwrap().clone()
}

#[test]
fn h3_targets_survive_a_restart_and_too_little_is_never_good() {
    each_store(|place| {
        let app = DemoApp::start(Behaviour::Ok).unwrap();
        let config = QUICK.to_owned() + &stripe_source("") + &route_to("app", &app.url(), "");
        let mut gateway = Gateway::with(place, &config);
        gateway.send(&event("evt_0", "charge.failed", ""));
        wait_until("it was counted", || target(&gateway, "publish")["all"] == 1);
        assert_eq!(target(&gateway, "publish")["verdict"], "too_little");
        gateway.type_in(&["targets"]).done().mentions(&["too little to say", "99.9 %"]);
        for n in 1..110 {
            gateway.send(&event(&format!("evt_{n}"), "charge.failed", ""));
        }
        wait_until("all were counted", || target(&gateway, "publish")["all"] == 110);
        gateway.server.restart().unwrap();
        wait_until("the rest", || app.counts().processed == 110);
        let publish = target(&gateway, "publish");
        assert_eq!((&publish["verdict"], &publish["value"]), (&"met".into(), &"100 %".into()), "{publish}");
        let twice = gateway.type_in(&["targets", "--json"]).done();
        twice.mentions(&["all nodes, live and test together"]);
    });
}

#[test]
fn h3_figures_of_three_nodes_add_up() {
    let place = Place::postgres();
    let config = QUICK.to_owned() + &stripe_source("");
    let nodes: Vec<_> = (0..3).map(|_| Gateway::with(&place, &config)).collect();
    for n in 0..120 {
        assert_eq!(nodes[n % 3].send(&event(&format!("evt_{n}"), "charge.failed", "")).status, 204);
    }
    for node in &nodes {
        wait_until("every node says the same", || target(node, "publish")["all"] == 120);
    }
    wait_until("settled", || target(&nodes[0], "worker")["all"].as_u64() >= Some(120));
}

#[test]
fn h3_what_there_is_now_is_at_metrics_with_the_age_of_its_sample() {
    each_store(|place| {
        let app = DemoApp::start(Behaviour::status(500)).unwrap();
        let config = QUICK.to_owned()
            + &stripe_source("")
            + &route_to("app", &app.url(), "retries = 0\nbreaker_failures = 0");
        let gateway = Gateway::with(place, &config);
        gateway.send(&event("evt_1", "charge.failed", ""));
        wait_until("the sample has it", || {
            let text = gateway.get("/metrics").text();
            text.contains("sekisho_dead_letters{lane=\"to:app\"} 1")
                && text.contains("sekisho_alert_firing{alert=\"dead_letters\",subject=\"to:app\"} 1")
        });
        let text = gateway.get("/metrics").text();
        for line in [
            "sekisho_work{lane=\"settle\",state=\"waiting\"} 0",
            "sekisho_breaker_open{lane=\"to:app\"} 0",
            "sekisho_nodes 1.0",
            "sekisho_sample_age_seconds ",
            "sekisho_published_total{outcome=\"stored\"} 1",
            "sekisho_runs_total{kind=\"deliver\",result=\"dead\",first=\"true\"} 1",
            "sekisho_build_info{version=",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    });
}
