//! The first page: what it says when there is nothing, and when there is something.

use std::sync::Arc;

use sekisho_core::change::{ChangeSet, Rejection};
use sekisho_core::job::{DeadReason, End, Lane, Outcome};
use sekisho_core::state::{Index, Key, Kind, Write};
use sekisho_core::user::Rank;
use sekisho_store::conformance::Arrivals;

use super::Room;
use crate::now;

#[tokio::test]
async fn h1_before_anything_came_in_the_first_steps_are_shown() {
    let room = Room::open().await;
    let seen = room.look(Rank::Viewer, "/console").await.says(&["Nothing has come in yet", "data-refresh"]);
    assert!(!seen.text.contains("<svg class=\"chart"));
    room.look_ja(Rank::Viewer, "/console").await.says(&["まだイベントは届いていません", "概要"]);
}

#[tokio::test]
async fn h1_the_overview_counts_the_open_hour_and_names_what_is_wrong() {
    let room = Room::open().await;
    let store = &room.store;
    let epoch = store.join(now()).await.unwrap().epoch;
    let mut arrivals = Arrivals::new(1);
    let events: Arc<[_]> = (0..5).map(|n| arrivals.event_at(&format!("e{n}"), now())).collect();
    store.admit(events, None).await.unwrap();
    let jobs = store.claim(epoch, vec![(Lane::settle(), 4)], now()).await.unwrap();
    for (n, job) in jobs.into_iter().enumerate() {
        let end = match n {
            0 => End::Dead(DeadReason::terminal("bad_recipient", "no")),
            _ => End::Done(Outcome::SUCCESS),
        };
        store.commit(vec![ChangeSet::end(job.lease, end, now())]).await.unwrap();
    }
    let rejection = |n: i64, at| Rejection {
        seq: sekisho_core::Seq::from_i64(n),
        at,
        last_at: at,
        source: "shop".into(),
        peer: "127.0.0.1".into(),
        network: format!("127.0.{n}.0/24"),
        reason: "bad_signature".into(),
        detail: String::new(),
        request_id: String::new(),
        count: 1_200,
    };
    let old = now().plus_ms(-25 * 3_600_000);
    store.reject(vec![rejection(1, old), rejection(2, now()), rejection(3, now())]).await.unwrap();
    let index = Index {
        amount: Some(980),
        currency: Some("jpy".into()),
        attention: Some("overpaid".into()),
        ..Index::default()
    };
    let write = Write { key: Key::new(Kind::Payment, "pay_9"), version: 0, facts: "{}".into(), index };
    store.commit(vec![ChangeSet { writes: vec![write], ..ChangeSet::nothing(now()) }]).await.unwrap();

    let seen = room.look(Rank::Viewer, "/console").await.says(&[
        "<b>5</b><span>received",
        "<b>3</b><span>done",
        "<b>1</b><span>dead letters",
        "<b>2,400</b><span>rejected requests",
        "as of",
        "href=\"/console/events?source=shop\"",
        "href=\"/console/events?type=payment.paid\"",
        "unknown recipient",
        "/console/payments/pay_9",
        "overpaid",
        "memory",
        "role=\"img\"",
        "p95",
    ]);
    assert_eq!(seen.text.matches("<rect class=\"slot\"").count(), 24);
    assert!(!seen.text.contains(" style=") && !seen.text.contains(" onclick"));
    let part = room.look(Rank::Viewer, "/console/overview/now").await.says(&["<b>5</b>"]);
    assert!(part.text.starts_with("<div id=\"now\"") && !part.text.contains("<html"));
    let part = room.look_ja(Rank::Viewer, "/console/overview/standing").await.says(&["過入金", "配送先"]);
    assert!(part.text.starts_with("<div id=\"standing\""));
}
