//! The first page: what it says when there is nothing, and when there is something.

use std::sync::Arc;

use sekisho_core::change::{ChangeSet, Rejection};
use sekisho_core::job::{DeadReason, End, Lane, Outcome};
use sekisho_core::state::{Index, Key, Kind, Posting, Write};
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
        "1 failed for good",
        "1 payment needs attention",
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

#[tokio::test]
async fn h1_nothing_wrong_is_said_too_and_money_stands_beside_traffic() {
    let room = Room::open().await;
    let mut arrivals = Arrivals::new(1);
    room.store.admit([arrivals.event_at("e", now())].into(), None).await.unwrap();
    let line = |account: &str, amount, livemode| Posting {
        account: account.into(),
        currency: "jpy".into(),
        livemode: Some(livemode),
        amount,
        payment: "pay_1".into(),
        cause: "captured".into(),
    };
    for (amount, livemode) in [(12_000, true), (300, false)] {
        let postings = vec![line("provider/a", amount, livemode), line("sales", -amount, livemode)];
        room.store.commit(vec![ChangeSet { postings, ..ChangeSet::nothing(now()) }]).await.unwrap();
    }
    for (range, bars) in [("", 24), ("?range=7d", 28), ("?range=30d", 30), ("?range=odd", 24)] {
        let seen = room.look(Rank::Viewer, &format!("/console{range}")).await;
        let seen = seen.says(&["All good", "¥12,000", "¥300", "test"]);
        assert_eq!(seen.text.matches("<rect class=\"slot\"").count(), bars, "{range}");
    }
    room.look_ja(Rank::Viewer, "/console").await.says(&["すべて正常です", "入金"]);
}

#[tokio::test]
async fn h1_times_are_shown_by_the_clock_that_was_chosen() {
    let room = Room::open().await;
    let chosen = room.look(Rank::Viewer, "/console/zone?zone=Europe%2FBerlin&to=%2Fconsole%2Fevents").await;
    assert_eq!((chosen.status(), chosen.location()), (303, "/console/events"));
    let line = chosen.head.headers.get("set-cookie").unwrap().to_str().unwrap().to_owned();
    let cookie = line.split(';').next().unwrap().to_owned();
    let headers = [super::by_proxy(Rank::Viewer), vec![("cookie", cookie)]].concat();
    let seen = room.ask("GET", "/console/payments", &headers, "").await.says(&["Europe/Berlin", "UTC"]);
    assert!(!seen.text.contains("data-zone-unset"));
    room.look(Rank::Viewer, "/console/payments").await.says(&["data-zone-unset"]);
    assert_eq!(room.look(Rank::Viewer, "/console/zone?zone=Mars").await.status(), 400);
}

#[tokio::test]
async fn h1_the_search_of_every_page_leads_to_the_thing() {
    let room = Room::open().await;
    let index = Index { status: Some("paid".into()), ..Index::default() };
    let id = sekisho_core::Seq::floor_of(now()).tagged("pay_");
    let write = Write { key: Key::new(Kind::Payment, &*id), version: 0, facts: "{}".into(), index };
    room.store.commit(vec![ChangeSet { writes: vec![write], ..ChangeSet::nothing(now()) }]).await.unwrap();
    for (q, to) in [
        (&*id, &*format!("/console/payments/{id}")),
        ("rsv_06wza5yedhm39", "/console/reservations/rsv_06wza5yedhm39"),
        ("case_06wza5yedhm39", "/console/cases/case_06wza5yedhm39"),
        ("taro%40example.jp", "/console/notices?q=taro%40example.jp"),
        ("payment_intent.succeeded", "/console/events?q=payment_intent.succeeded"),
        ("rsv_%2F..%2Fusers", "/console/events?q=rsv_%2F..%2Fusers"),
        ("", "/console/events"),
    ] {
        let seen = room.look(Rank::Viewer, &format!("/console/search?q={q}")).await;
        assert_eq!((seen.status(), seen.location()), (303, to), "{q}");
    }
}

#[tokio::test]
async fn h1_lists_are_written_out_for_spreadsheets() {
    let room = Room::open().await;
    let mut arrivals = Arrivals::new(1);
    room.store.admit([arrivals.event_at("e", now())].into(), None).await.unwrap();
    for day in [0, 10] {
        let at = now().plus_ms(-day * 86_400_000);
        let index = Index {
            status: Some("paid".into()),
            amount: Some(1_200),
            currency: Some("jpy".into()),
            customer: Some("=1+1".into()),
            ..Index::default()
        };
        let id = sekisho_core::Seq::floor_of(at).tagged("pay_");
        let write = Write { key: Key::new(Kind::Payment, id), version: 0, facts: "{}".into(), index };
        room.store.commit(vec![ChangeSet { writes: vec![write], ..ChangeSet::nothing(at) }]).await.unwrap();
    }
    let all = room.look(Rank::Viewer, "/console/payments/export").await.says(&["jpy", "'=1+1", "1200"]);
    assert_eq!(all.text.lines().count(), 3, "{}", all.text);
    let some = room.look(Rank::Viewer, "/console/payments/export?status=paid&to=2026-01-01T00%3A00").await;
    assert_eq!(some.text.lines().count(), 1, "{}", some.text);
    let since = sekisho_core::calendar::local_date("UTC", now().plus_ms(-5 * 86_400_000)).unwrap();
    let some = room.look(Rank::Viewer, &format!("/console/payments/export?from={since}T00%3A00")).await;
    assert_eq!(some.text.lines().count(), 2, "{}", some.text);
    let page = room.look(Rank::Viewer, &format!("/console/payments?from={since}T00%3A00")).await;
    assert_eq!(page.text.matches("¥1,200").count(), 1);
    let events = room.look(Rank::Viewer, "/console/events/export?source=shop").await.says(&["payment.paid"]);
    assert_eq!(events.text.lines().count(), 2);
}
