//! Three nodes, of which one is killed again and again: each incident is told once.

use sekisho_lab::app::{Behaviour, DemoApp};
use sekisho_lab::chat::Chat;

use super::{heard, watched};
use crate::delivery::event;
use crate::support::{Gateway, Place, route_to, stripe_source, wait_until};

#[test]
fn h4_of_three_nodes_one_is_killed_and_each_incident_is_told_once() {
    let place = Place::postgres();
    let (chat, app) = (Chat::start().unwrap(), DemoApp::start(Behaviour::status(500)).unwrap());
    let config = watched(&chat, 300, "off = [\"late*\", \"slow*\", \"worker_errors*\", \"stalled*\"]")
        + &stripe_source("")
        + &route_to("app", &app.url(), "retries = 0\nbreaker_failures = 0");
    let mut nodes: Vec<_> = (0..3).map(|_| Gateway::with(&place, &config)).collect();
    let title = "Dead letters wait: app";
    for round in 0..3 {
        nodes[(round + 1) % 3].send(&event(&format!("evt_{round}"), "charge.failed", ""));
        nodes[round].server.restart().unwrap();
        wait_until("it is told", || heard(&chat, title) > round);
        nodes[(round + 2) % 3].server.restart().unwrap();
        nodes[(round + 1) % 3].type_in(&["dead", "discard", "--all", "--yes", "--reason", "a story"]).done();
        wait_until("it is over", || heard(&chat, &format!("Resolved: {title}")) > round);
    }
    assert_eq!((heard(&chat, title), heard(&chat, &format!("Resolved: {title}"))), (3, 3));
    let told = place.sql("SELECT count(*) FROM event WHERE type LIKE 'alert.%'");
    assert_eq!(told, "6", "{}", place.sql("SELECT event_id FROM event WHERE type LIKE 'alert.%'"));
}
