//! The list of events, its search box and its live tail.

use std::sync::Arc;
use std::time::Duration;

use sekisho_core::change::{Arrival, ChangeSet, Committed};
use sekisho_core::event::About;
use sekisho_core::job::{End, Lane, Outcome};
use sekisho_core::state::{Index, Key, Kind, Naming, Write};
use sekisho_core::user::Rank;
use sekisho_core::{Epoch, Seq};
use sekisho_store::conformance::Arrivals;
use sekisho_store::memory::MemoryStore;
use sekisho_store::{SCAN_MAX, Store};

use super::super::events::LOOKS_MAX;
use super::super::live::{TAILS_EACH_MAX, TAILS_MAX};
use super::Room;
use crate::config::Config;
use crate::now;

const NASTY: &str = "<script>alert(1)</script>\"'>";

async fn admit(store: &dyn Store, arrivals: Vec<Arrival>) {
    for chunk in arrivals.chunks(1_000) {
        store.admit(chunk.into(), None).await.unwrap();
    }
}

/// Keeps a thing with a name.
async fn keep(store: &dyn Store, key: Key, name: Option<&str>, index: Index) {
    let names = name.map(|name| Naming { name: name.into(), key: key.clone(), was: None });
    let facts = if key.kind == Kind::Payment { r#"{"orders":["ORD-1"]}"# } else { "{}" };
    let write = Write { key, version: 0, facts: facts.into(), index };
    let set =
        ChangeSet { writes: vec![write], names: names.into_iter().collect(), ..ChangeSet::nothing(now()) };
    let done = store.commit(vec![set]).await.unwrap();
    assert!(matches!(&*done, [Committed::Applied { .. }]), "{done:?}");
}

/// Settles all that waits, as about a payment of a tenant.
async fn settle(store: &dyn Store, epoch: Epoch, note: &str) {
    let about = About { payment: Some("pay_1".into()), tenant: Some("office".into()), billing: None };
    for job in store.claim(epoch, vec![(Lane::settle(), 100)], now().plus_ms(60_000)).await.unwrap() {
        let end = End::Done(Outcome::Skipped { note: note.into() });
        let mut set = ChangeSet::end(job.lease, end, now());
        set.ends[0].about = about.clone();
        store.commit(vec![set]).await.unwrap();
    }
}

/// A room where one event is about a payment and a tenant.
async fn room() -> (Room, Arrivals) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let room = Room::with(Config::default(), Arc::clone(&store)).await;
    let mut arrivals = Arrivals::new(1);
    let epoch = store.join(now()).await.unwrap().epoch;
    admit(&*store, vec![arrivals.event_at("evt_of_shop", now())]).await;
    let index = Index { amount: Some(1_200), currency: Some("jpy".into()), ..Index::default() };
    keep(&*store, Key::new(Kind::Payment, "pay_1"), Some("p:any/-/order/-/ORD-1"), index).await;
    keep(&*store, Key::new(Kind::Tenant, "office"), None, Index::default()).await;
    settle(&*store, epoch, "no rule for events of type payment.paid").await;
    (room, arrivals)
}

fn id(seq: Seq) -> String {
    seq.as_event().to_string()
}

#[tokio::test]
async fn h1_a_search_leads_to_what_is_meant() {
    let (room, mut arrivals) = room().await;
    let ours = arrivals.event_at("other", now());
    let known = id(ours.seq);
    admit(&*room.store, vec![ours]).await;
    for (text, to) in [
        (known.as_str(), format!("/console/events/{known}")),
        ("msg_0000000000007", "/console/messages/msg_0000000000007".into()),
        ("pay_1", "/console/payments/pay_1".into()),
        ("ORD-1", "/console/events?q=ORD-1&payment=pay_1".into()),
        ("office", "/console/events?q=office&tenant=office".into()),
        ("cus_1234", "/console/events?q=cus_1234&object=cus_1234".into()),
        ("payment_intent", "/console/events?q=payment_intent&type=payment_intent*".into()),
        ("charge.*", "/console/events?q=charge.*&type=charge.*".into()),
        ("invoice.paid", "/console/events?q=invoice.paid&type=invoice.paid*".into()),
        ("evt_0000000000007", "/console/events?q=evt_0000000000007&object=evt_0000000000007".into()),
        ("a b&c=d", "/console/events?q=a+b%26c%3Dd&type=a+b%26c%3Dd*".into()),
    ] {
        let query: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
        let seen = room.look(Rank::Viewer, &format!("/console/events?q={query}")).await;
        assert_eq!((seen.status(), seen.location()), (303, &*to), "{text}");
        if to.contains("?q=") {
            room.look(Rank::Viewer, &to).await.says(&["class=\"note\""]);
        }
    }
}

#[tokio::test]
async fn h1_a_row_says_what_the_event_is_about() {
    let (room, _) = room().await;
    let about = [
        "/console/payments/pay_1",
        "¥1,200",
        "office",
        "pay_evt_of_shop",
        "no rule for this type",
        "skipped",
    ];
    for query in
        ["", "?payment=pay_1", "?tenant=office", "?type=payment.*", "?status=skipped", "?source=shop"]
    {
        room.look(Rank::Viewer, &format!("/console/events{query}")).await.says(&about);
    }
    for query in ["?payment=pay_2", "?type=charge", "?source=stripe", "?object=x", "?to=2025-01-01T00:00"] {
        let seen = room.look(Rank::Viewer, &format!("/console/events{query}")).await;
        seen.says(&["No events match these filters"]);
    }
    room.look_ja(Rank::Viewer, "/console/events").await.says(&["対象外", "送信元"]);
    for query in ["?status=odd", "?from=yesterday", "?type=%00", "?before=x"] {
        assert_eq!(
            room.look(Rank::Viewer, &format!("/console/events{query}")).await.status(),
            400,
            "{query}"
        );
    }
    let longest = format!("/console/events?type={}", "a".repeat(301));
    assert_eq!(room.look(Rank::Viewer, &longest).await.status(), 400);
}

#[tokio::test]
async fn h1_pages_follow_each_other_and_keep_the_filters() {
    let (room, mut arrivals) = room().await;
    admit(&*room.store, (0..60).map(|n| arrivals.event_at(&format!("e{n}"), now())).collect()).await;
    let first = room.look(Rank::Viewer, "/console/events?source=shop&type=payment.*").await;
    assert_eq!(first.text.matches("<tr id=").count(), 50);
    let older = first.text.split("rel=\"next\" href=\"").nth(1).unwrap().split('"').next().unwrap();
    let older = older.replace("&#38;", "&").replace("&amp;", "&");
    assert!(older.starts_with("/console/events?source=shop&type=payment.*&before=evt_"), "{older}");
    let second = room.look(Rank::Viewer, &older).await.says(&["Newest"]);
    assert_eq!(second.text.matches("<tr id=").count(), 11);
    assert!(!second.text.contains("data-live"), "only the newest page moves");
    assert!(first.text.contains("data-live=\"/console/events/live?source=shop"));
    let narrowed = room.look(Rank::Viewer, "/console/events?status=received").await;
    assert!(!narrowed.text.contains("data-live"));
}

#[tokio::test]
async fn h1_a_look_that_ended_early_says_how_far_it_saw() {
    let (room, mut arrivals) = room().await;
    let many = (0..SCAN_MAX * LOOKS_MAX + 10).map(|n| arrivals.event_at(&format!("e{n}"), now())).collect();
    admit(&*room.store, many).await;
    let seen = room.look(Rank::Viewer, "/console/events?object=nothing").await;
    seen.says(&["Looked back to", "Look further", "before=evt_"]);
}

#[tokio::test]
async fn h1_nothing_a_provider_writes_becomes_markup() {
    let (room, mut arrivals) = room().await;
    let epoch = room.store.join(now()).await.unwrap().epoch;
    let mut event = arrivals.event_at(NASTY, now());
    event.event_type = NASTY.into();
    event.source = NASTY.into();
    event.object = Some((NASTY.into(), NASTY.into()));
    admit(&*room.store, vec![event]).await;
    settle(&*room.store, epoch, NASTY).await;
    let nasty: String = form_urlencoded::byte_serialize(NASTY.as_bytes()).collect();
    let mut pages = vec!["/console".to_owned(), "/console/overview/now".into(), "/console/events".into()];
    for name in ["type", "source", "object", "payment", "tenant"] {
        pages.push(format!("/console/events?{name}={nasty}&q={nasty}"));
    }
    for path in pages {
        let seen = room.look(Rank::Admin, &path).await.says(&["alert(1)"]);
        assert!(!seen.text.contains("<script>alert"), "{path}");
        assert!(!seen.text.contains(NASTY), "{path}");
    }
    for query in ["from", "to"] {
        let seen = room.look(Rank::Admin, &format!("/console/events?{query}={nasty}")).await;
        assert!(seen.status() == 400 && !seen.text.contains("<script>alert"));
    }
}

/// The data of each event of a stream, with its id.
fn events(stream: &str) -> Vec<(String, String)> {
    let value = |line: &str, name: &str| line.strip_prefix(name).map(str::to_owned);
    let event = |block: &str| {
        let id = block.lines().find_map(|line| value(line, "id: "))?;
        let data: Vec<String> = block.lines().filter_map(|line| value(line, "data: ")).collect();
        Some((id, data.join("\n")))
    };
    stream.split("\n\n").filter_map(event).collect()
}

#[tokio::test(start_paused = true)]
async fn h1_the_tail_sends_new_rows_and_those_that_changed() {
    let (room, mut arrivals) = room().await;
    let epoch = room.store.join(now()).await.unwrap().epoch;
    // Its number is lower than those that were sent before: another node was slower to commit it.
    let late = arrivals.event_at("late", now().plus_ms(-3_000));
    let new = arrivals.event_at("new", now());
    let (late_id, new_id) = (id(late.seq), id(new.seq));
    let store = Arc::clone(&room.store);
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        admit(&*store, vec![new]).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        admit(&*store, vec![late]).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        settle(&*store, epoch, "").await;
    });
    let began = tokio::time::Instant::now();
    let seen =
        room.look(Rank::Viewer, "/console/events/live").await.says(&["retry: 1000\n\n", ": alive\n\n"]);
    assert_eq!(began.elapsed(), Duration::from_secs(30), "it ends by itself");
    assert_eq!(seen.head.headers["content-type"], "text/event-stream; charset=utf-8");
    assert_eq!(seen.head.headers["cache-control"], "no-store");
    let events = events(&seen.text);
    let ids: Vec<_> = events.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids[1..], [&new_id, &new_id, &new_id], "an id never falls back: {events:?}");
    assert!(events[1].1.contains(&new_id) && events[1].1.contains("received"));
    assert!(events[2].1.contains(&late_id) && !events[2].1.contains(&new_id));
    let last = &events[3].1;
    assert!(last.find(&late_id) < last.find(&new_id) && last.contains("skipped"), "{last}");
    assert_eq!(events.len(), 4, "what did not change is not sent again");
}

#[tokio::test(start_paused = true)]
async fn h1_a_browser_that_comes_back_hears_what_it_missed() {
    let (room, mut arrivals) = room().await;
    let at = |ms_ago: i64| now().plus_ms(-ms_ago);
    let old = [arrivals.event_at("old", at(900_000)), arrivals.event_at("seen", at(600_000))];
    let missed = [arrivals.event_at("missed", at(300_000)), arrivals.event_at("fresh", at(0))];
    let ids: Vec<String> = old.iter().chain(&missed).map(|one| id(one.seq)).collect();
    admit(&*room.store, [old, missed].concat()).await;
    let mut headers = super::by_proxy(Rank::Viewer);
    headers.push(("last-event-id", ids[1].clone()));
    let path = "/console/events/live?source=shop&type=payment.*";
    let first = events(&room.ask("GET", path, &headers, "").await.text).remove(0).1;
    let is_there = |n: usize| first.contains(&format!("id=\"{}\"", ids[n]));
    assert!(!is_there(0) && is_there(2) && is_there(3));
    let other = room.look(Rank::Viewer, "/console/events/live?source=stripe").await;
    assert!(events(&other.text).is_empty());
    let page = format!("/console/events/live?floor={}&after={}", ids[3], ids[3]);
    let page = events(&room.look(Rank::Viewer, &page).await.text).remove(0).1;
    assert!(!page.contains(&ids[2]), "what is not on the page stays off it");
}

#[tokio::test(start_paused = true)]
async fn h1_streams_have_a_limit_and_end_with_the_server() {
    let (room, _) = room().await;
    let ask = async |name: &str| {
        let request = http::Request::builder().uri("/console/events/live");
        let request = request.header("remote-user", name).header("remote-rank", "viewer");
        let mut request = request.body(axum::body::Body::empty()).unwrap();
        request.extensions_mut().insert(super::RemotePeer { socket: super::LOCAL, named: super::LOCAL });
        tower::ServiceExt::oneshot(room.router.clone(), request).await.unwrap()
    };
    let mut open = Vec::new();
    for n in 0..TAILS_MAX {
        open.push(ask(&format!("viewer{}", n / TAILS_EACH_MAX)).await);
        if n == TAILS_EACH_MAX {
            assert_eq!(ask("viewer0").await.status(), 503, "nobody takes the places of all");
        }
    }
    assert!(open.iter().all(|answer| answer.status() == 200));
    let refused = ask("mika").await;
    assert_eq!((refused.status().as_u16(), refused.headers()["retry-after"].to_str().unwrap()), (503, "15"));
    drop(open.pop());
    let last = ask("mika").await;
    assert_eq!(last.status(), 200);
    let began = tokio::time::Instant::now();
    let health = Arc::clone(&room.health);
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(100)).await;
        health.stop();
    });
    axum::body::to_bytes(last.into_body(), 1 << 20).await.unwrap();
    assert_eq!(began.elapsed(), Duration::from_millis(100));
}

#[tokio::test]
async fn h1_the_tail_is_for_those_who_may_look() {
    let (room, _) = room().await;
    let stranger = room.ask("GET", "/console/events/live", &[], "").await;
    assert_eq!(
        (stranger.status(), stranger.location()),
        (303, "/console/login?to=%2Fconsole%2Fevents%2Flive")
    );
    assert_eq!(room.look(Rank::Viewer, "/console/events/live?after=x").await.status(), 400);
}
