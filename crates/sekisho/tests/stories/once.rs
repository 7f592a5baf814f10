//! A5–A7: however many copies arrive at once, through however many nodes, one is stored and all are acknowledged.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use sekisho_lab::http;
use sekisho_lab::load::{Load, Recording};
use sekisho_lab::traffic::StripeTraffic;

use crate::support::{Gateway, Place, Provider, Response, STRIPE_SECRET, each_store};

const COPIES: usize = 200;

/// Everybody connects, waits for everybody else, and sends.
fn send_at_once(gateways: &[&Gateway], id: &str) -> Vec<Response> {
    let letter = Arc::new(Provider::stripe().event(id));
    let start = Arc::new(Barrier::new(COPIES));
    let senders: Vec<_> = (0..COPIES)
        .map(|n| {
            let (letter, start) = (Arc::clone(&letter), Arc::clone(&start));
            let address = gateways[n % gateways.len()].address();
            std::thread::spawn(move || {
                let headers: Vec<_> =
                    letter.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
                start.wait();
                http::post(address, &letter.path, &headers, &letter.body).unwrap()
            })
        })
        .collect();
    senders.into_iter().map(|sender| sender.join().unwrap()).collect()
}

fn check_once(gateways: &[&Gateway], id: &str) {
    let answers = send_at_once(gateways, id);
    assert!(answers.iter().all(|answer| answer.status == 204), "{answers:?}");
    let outcome = |wanted| {
        answers.iter().filter(move |answer| answer.header("sekisho-outcome") == Some(wanted)).count()
    };
    assert_eq!((outcome("accepted"), outcome("duplicate")), (1, COPIES - 1));
    let message = answers[0].header("sekisho-message-id");
    assert!(answers.iter().all(|answer| answer.header("sekisho-message-id") == message));
}

#[test]
fn a7_two_hundred_copies_at_once_through_two_nodes_are_one_event() {
    let place = Place::postgres();
    let nodes = [Gateway::open(&place), Gateway::open(&place)];
    check_once(&[&nodes[0], &nodes[1]], "evt_same");
    check_once(&[&nodes[1], &nodes[0]], "evt_same_again");
    assert_eq!(nodes[0].event_ids(), ["evt_same", "evt_same_again"]);
    assert_eq!(place.sql("SELECT count(*) FROM webhook_events"), "2");
    let counted = |outcome: &str| -> u64 {
        nodes.iter().map(|node| node.metric("sekisho_requests_total", &[outcome])).sum()
    };
    assert_eq!((counted("accepted"), counted("duplicate")), (2, 2 * (COPIES as u64 - 1)));
}

#[test]
fn a7_two_hundred_copies_at_once_on_sqlite_are_one_event() {
    let place = Place::sqlite();
    let gateway = Gateway::open(&place);
    check_once(&[&gateway], "evt_same");
    assert_eq!(gateway.event_ids(), ["evt_same"]);
}

#[test]
fn a6_events_that_come_together_are_committed_together() {
    const EVENTS: u64 = 1_500;
    each_store(|place| {
        let gateway = Gateway::open(place);
        let load = Load {
            connections: 48,
            duration: Duration::from_mins(2),
            requests_max: EVENTS,
            ledger: Recording::Memory,
            ..Load::new(gateway.address())
        };
        let report =
            load.run_blocking(Arc::new(StripeTraffic::new("/webhooks/stripe", STRIPE_SECRET, 3_000)));
        assert_eq!(report.statuses.get(&204), Some(&EVENTS), "{report}");
        assert_eq!(gateway.metric("sekisho_batch_events_sum", &[]), EVENTS);
        let commits = gateway.metric("sekisho_batch_events_count", &[]);
        // On SQLite the store's writer gathers them, as its own tests show.
        assert!(place.is_sqlite() || commits <= EVENTS / 2, "{commits} commits for {EVENTS} events");
        assert_eq!(gateway.metric("sekisho_commit_seconds_count", &[]), commits);
        let mut acknowledged = report.ledger.acknowledged;
        acknowledged.sort();
        assert_eq!(gateway.event_ids(), acknowledged);
    });
}
