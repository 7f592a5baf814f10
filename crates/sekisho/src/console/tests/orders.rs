//! Slots, reservations, fulfilments, cases, compensations and inquiries, over a store in memory.

use std::sync::Arc;

use sekisho_core::actor::Actor;
use sekisho_core::inquiry::InquiryFacts;
use sekisho_core::language::Language;
use sekisho_core::settlement::follow::OrderPolicy;
use sekisho_core::user::Rank;
use sekisho_store::Store;
use sekisho_store::memory::MemoryStore;
use serde_json::{Value, json};

use super::Room;
use crate::acts::{self, HoldDraft, Holds, NewInquiry};
use crate::config::Config;
use crate::env::Env;
use crate::now;
use crate::queries::OrderContext;
use crate::types::FulfilmentResult;

const HOSTILE: &str = "<script>alert(1)</script>";

/// A console with an order or two behind it.
struct Shop {
    room: Room,
    store: Arc<dyn Store>,
    known: OrderContext,
    env: Env,
    holds: Holds,
}

fn actor() -> Actor<'static> {
    Actor { name: "test", role: Rank::Admin.role(), tenant: None, at: now() }
}

impl Shop {
    async fn open() -> Self {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let config = Config::default();
        let known = OrderContext::of(&config);
        let room = Room::with(config, Arc::clone(&store)).await;
        Self { room, store, known, env: Env::system(), holds: Holds::new(Env::system(), None) }
    }

    fn policy(&self) -> &Arc<OrderPolicy> {
        &self.known.orders
    }

    async fn hold(&self, body: Value) -> Value {
        let body = serde_json::from_value(body).unwrap();
        let actor = actor();
        let draft = HoldDraft::read(body, self.known.reservations, self.policy(), &actor).unwrap();
        self.holds.hold(&self.store, self.policy(), draft, None, actor.at).await.unwrap().answer
    }

    /// An order whose video failed for good: reservation, fulfilment, case.
    async fn failed(&self) -> (String, String, String) {
        let held = self
            .hold(json!({ "slot": "dome", "reference": "R-1", "customer": HOSTILE,
                "fulfilment": { "kind": "video", "name": "星空", "tier": "free" } }))
            .await;
        let text = |name: &str| held[name].as_str().unwrap().to_owned();
        let (id, made) = (text("id"), text("fulfilment"));
        for run in 1..=3 {
            let body = FulfilmentResult {
                run,
                status: "failed".into(),
                error: Some("out of memory".into()),
                url: None,
            };
            acts::take_result(&*self.store, &self.env, self.policy(), &made, body, &actor()).await.unwrap();
        }
        let case = sekisho_core::case::id_of("RENDER_FAILURE", &made);
        (id, made, case)
    }
}

#[tokio::test]
async fn h1_a_reservation_is_previewed_then_changed_and_a_viewer_is_refused() {
    let shop = Shop::open().await;
    let room = &shop.room;
    let payment = json!({ "amount": 4800, "currency": "jpy" });
    let held = shop
        .hold(json!({ "slot": "dome:1", "reference": "R-1", "payment": payment, "email": "taro@example.jp" }))
        .await;
    let id = held["id"].as_str().unwrap();
    let page = format!("/console/reservations/{id}");
    let words = ["R-1", "held", "dome:1", "¥4,800", "t***@example.jp", "are free again 2 min after"];
    let seen = room.look(Rank::Viewer, &page).await.says(&words);
    assert!(!seen.text.contains("/cancel") && !seen.text.contains("revoke"), "viewers have no acts");
    for act in ["confirm", "extend", "cancel"] {
        assert_eq!(room.look(Rank::Viewer, &format!("{page}/{act}")).await.status(), 403);
        assert_eq!(room.act(Rank::Viewer, &format!("{page}/{act}"), "reason=x").await.status(), 403);
    }
    assert_eq!(room.act(Rank::Viewer, &format!("{page}/revoke_links"), "").await.status(), 403);
    room.look_ja(Rank::Operator, &page).await.says(&["仮押さえ中", "taro@example.jp", "2分後に自動的に解放"]);

    // Nothing happens by looking.
    let ask = format!("{page}/confirm?preview=1&reason=cash");
    let words = ["Status: held → confirmed", "reservation.confirmed", "1 places of dome:1 are sold"];
    room.look(Rank::Operator, &ask).await.says(&words);
    room.look_ja(Rank::Operator, &ask).await.says(&["仮押さえ中 → 確定", "販売済み"]);
    room.look(Rank::Operator, &format!("{page}/confirm?preview=1"))
        .await
        .says(&["reason: expected 1 to 200"]);
    room.look(Rank::Viewer, &page).await.says(&["held"]);
    let late = format!("{page}/extend?preview=1&until=2099-01-01T00:00");
    room.look(Rank::Operator, &late).await.says(&["until: expected a time after"]);
    room.look(Rank::Operator, &format!("{page}/extend")).await.says(&["datetime-local", "At the latest"]);

    let done = room.act(Rank::Operator, &format!("{page}/confirm"), "reason=cash").await;
    assert_eq!((done.status(), done.location()), (303, &*page));
    assert_eq!(done.told(), "The reservation is confirmed.");
    room.look(Rank::Viewer, &page).await.says(&["confirmed", "cash"]);
    let ask = format!("{page}/cancel?preview=1&reason=rain&refund=yes");
    room.look(Rank::Operator, &ask).await.says(&[
        "Status: confirmed → cancelled",
        "Nothing is refunded",
        "free for others at once",
    ]);
    let refused = room.act(Rank::Operator, &format!("{page}/extend"), "until=2026-11-19T10:00").await;
    assert!(refused.told().contains("only a hold can be extended"), "{}", refused.told());
    room.act(Rank::Operator, &format!("{page}/cancel"), "reason=rain&refund=yes").await;
    room.look(Rank::Viewer, &page).await.says(&["Cancelled by operator: rain"]);
    room.look_ja(Rank::Viewer, &page).await.says(&["キャンセル済みです（operator：rain）"]);
    for missing in ["/console/reservations/rsv_none", "/console/reservations/rsv_none/cancel"] {
        assert_eq!(room.look(Rank::Operator, missing).await.status(), 404);
    }
    // Every act is in the audit log under the name of its user, and leads back here.
    room.look(Rank::Viewer, &format!("/console/audit?target={id}")).await.says(&["operator", &page]);
}

#[tokio::test]
async fn h1_reservations_are_filtered_and_paged_by_what_they_are_now() {
    let shop = Shop::open().await;
    for n in 0..60 {
        let slot = if n % 20 == 0 { "rare" } else { "dome" };
        let hold = if n == 7 { "1s" } else { "30m" };
        let body = json!({ "slot": format!("{slot}-{n}"), "reference": format!("R-{n}"), "hold": hold,
            "payment": { "amount": 100, "currency": "jpy" }, "customer": format!("c{}", n % 2), "livemode": n % 2 == 0 });
        shop.hold(body).await;
    }
    let rows = |text: &str| text.matches("<tr>").count().saturating_sub(1);
    let look = async |query: &str| {
        shop.room.look(Rank::Viewer, &format!("/console/reservations?{query}")).await.says(&[]).text
    };
    let first = look("").await;
    assert_eq!((rows(&first), first.contains("Older")), (50, true));
    let next = first.split("before=").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(rows(&look(&format!("before={next}")).await), 10);
    for (query, expected) in [
        ("slot=rare-20", 1),
        ("slot=live/-/rare-20", 1),
        ("slot=none", 0),
        ("customer=c1", 30),
        ("mode=test", 30),
        ("status=confirmed", 0),
        ("status=expired", 0),
        ("tenant=nobody", 0),
    ] {
        assert_eq!(rows(&look(query).await), expected, "{query}");
    }
    assert_eq!(shop.room.look(Rank::Viewer, "/console/reservations?status=rich").await.status(), 400);
}

#[tokio::test]
async fn h1_a_slot_says_who_has_its_places_and_is_made_larger_but_not_too_small() {
    let shop = Shop::open().await;
    let room = &shop.room;
    let slot =
        json!({ "id": "dome:1", "capacity": 3, "title": "Winter stars", "livemode": false, "tenant": null });
    let body = serde_json::from_value(slot).unwrap();
    acts::set_slot(&*shop.store, shop.policy(), body, None, &actor()).await.unwrap();
    let held = json!({ "slot": "dome:1", "quantity": 2, "reference": "R-1", "livemode": false, "customer": HOSTILE,
        "payment": { "amount": 100, "currency": "jpy" } });
    shop.hold(held).await;
    room.look(Rank::Viewer, "/console/slots")
        .await
        .says(&["Winter stars", "/console/slots/dome%3A1?mode=test"]);
    let page = "/console/slots/dome%3A1?mode=test";
    let seen = room.look(Rank::Viewer, page).await.says(&["R-1", "<b>2</b><span>held", "<b>1</b><span>free"]);
    assert!(!seen.text.contains(HOSTILE) && !seen.text.contains("/capacity"));
    assert_eq!(room.look(Rank::Viewer, "/console/slots/dome%3A1").await.status(), 404, "no live one");
    let path = "/console/slots/dome%3A1/capacity";
    assert_eq!(room.act(Rank::Viewer, path, "capacity=9&mode=test").await.status(), 403);
    let low = room.act(Rank::Operator, path, "capacity=1&mode=test").await;
    assert!(low.told().contains("can't be below 2"), "{}", low.told());
    let done = room.act(Rank::Operator, path, "capacity=9&mode=test").await;
    assert_eq!(done.location(), page);
    room.look_ja(Rank::Viewer, page).await.says(&["<b>9</b><span>定員", "<b>7</b><span>空き"]);
    assert_eq!(room.act(Rank::Operator, path, "capacity=9").await.status(), 404);
    // Slots that are too large to count say so.
    let body = serde_json::from_value(json!({ "id": "stadium", "capacity": 80_000 })).unwrap();
    acts::set_slot(&*shop.store, shop.policy(), body, None, &actor()).await.unwrap();
    room.look(Rank::Viewer, "/console/slots/stadium").await.says(&["80,000", "up to: 51,200"]);
}

#[tokio::test]
async fn f5_a_case_says_what_comes_by_itself_and_is_acknowledged_and_resolved() {
    let shop = Shop::open().await;
    let room = &shop.room;
    let (id, made, case) = shop.failed().await;
    let page = format!("/console/cases/{case}");
    let words = ["could not be made", "answer by", "told again", "RENDER_FAILURE_THIRD", &made];
    let seen = room.look(Rank::Viewer, &page).await.says(&words);
    assert!(!seen.text.contains("/acknowledge"), "viewers have no acts");
    room.look_ja(Rank::Viewer, &page).await.says(&["制作の失敗", "回答期限", "再通知（1/5回目）"]);
    // The menu and the list say that it waits.
    room.look(Rank::Viewer, "/console/cases").await.says(&["<span class=\"badge wait\">1</span>", &case]);
    room.look(Rank::Viewer, &format!("/console/reservations/{id}")).await.says(&[&page, &made]);
    for act in ["acknowledge", "resolve"] {
        assert_eq!(room.act(Rank::Viewer, &format!("{page}/{act}"), "how=fixed").await.status(), 403);
    }
    room.act(Rank::Operator, &format!("{page}/acknowledge"), "note=on+it").await;
    let seen = room.look(Rank::Operator, &page).await.says(&["acknowledged", "on it", "/resolve"]);
    assert!(!seen.text.contains("told again") && !seen.text.contains("/acknowledge\""), "{}", seen.text);
    let odd = room.act(Rank::Operator, &format!("{page}/resolve"), "how=magic").await;
    assert!(odd.told().contains("how: expected fixed"), "{}", odd.told());
    room.act(Rank::Operator, &format!("{page}/resolve"), "how=by_hand&note=sent+a+DVD").await;
    room.look(Rank::Operator, &page).await.says(&[
        "resolved",
        "settled by hand",
        "sent a DVD",
        "Nothing: the case",
    ]);
    let open = room.look(Rank::Viewer, "/console/cases").await.says(&["No cases match"]);
    assert!(!open.text.contains("badge wait\">1"), "nothing waits any more");
    room.look(Rank::Viewer, "/console/cases?status=resolved").await.says(&[&case]);
    // What a person did is in the log, and on the pages of its order.
    let words = ["resolved by a person", "sent a DVD", "operator", &id];
    room.look(Rank::Viewer, "/console/compensations").await.says(&words);
    room.look_ja(Rank::Viewer, "/console/compensations?type=MANUAL_RESOLUTION")
        .await
        .says(&["担当者による解決"]);
    room.look(Rank::Viewer, "/console/compensations?type=REFUND").await.says(&["Nothing was compensated"]);
    room.look(Rank::Viewer, &format!("/console/fulfilments/{made}")).await.says(&["resolved by a person"]);
    for wrong in ["/console/cases?status=rich", "/console/compensations?type=GIFT"] {
        assert_eq!(room.look(Rank::Viewer, wrong).await.status(), 400, "{wrong}");
    }
}

#[tokio::test]
async fn f5_overdue_cases_come_first_and_rules_are_checked_for_an_order() {
    let shop = Shop::open().await;
    let room = &shop.room;
    let (id, made, case) = shop.failed().await;
    // As if it had begun long ago.
    let key = sekisho_core::state::Key::new(sekisho_core::state::Kind::Case, &*case);
    let state = crate::queries::load(&*shop.store, &key).await.unwrap().unwrap();
    let mut facts: sekisho_core::case::CaseFacts = serde_json::from_str(&state.facts).unwrap();
    let episode = facts.episodes.get_mut(&1).unwrap();
    episode.levels.values_mut().for_each(|at| *at = at.plus_ms(-5 * 3_600_000));
    let other = "case_0000000000000001";
    let write = |id: &str, version: i64, facts: &sekisho_core::case::CaseFacts| {
        let key = sekisho_core::state::Key::new(sekisho_core::state::Kind::Case, id);
        let write = sekisho_core::state::Write::of(&key, version, facts);
        sekisho_core::state::Write { index: state.index.clone(), ..write }
    };
    let fresh: sekisho_core::case::CaseFacts = serde_json::from_str(&state.facts).unwrap();
    let writes = vec![write(&case, state.version, &facts), write(other, 0, &fresh)];
    let set = sekisho_core::change::ChangeSet { writes, ..sekisho_core::change::ChangeSet::nothing(now()) };
    shop.store.commit(vec![set]).await.unwrap();
    let list = room.look(Rank::Viewer, "/console/cases").await.says(&["overdue", "badge bad\">2</span>"]);
    let place = |id: &str| list.text.find(&format!("/console/cases/{id}")).unwrap();
    assert!(place(&case) < place(other), "the overdue one first");
    room.look_ja(Rank::Viewer, "/console/cases").await.says(&["期限超過"]);
    room.look(Rank::Viewer, &format!("/console/cases/{case}")).await.says(&["an answer was due"]);

    let rules = "/console/compensation_rules";
    room.look(Rank::Viewer, rules).await.says(&[
        "RENDER_FAILURE_TIMEOUT",
        "24 h",
        "DUPLICATE_PAYMENT",
        "off",
    ]);
    for order in [&id, &made] {
        let words = ["RENDER_FAILURE_THIRD", "has acted", "does not hold", &format!("/console/cases/{case}")];
        room.look(Rank::Viewer, &format!("{rules}?order={order}")).await.says(&words);
    }
    room.look_ja(Rank::Viewer, &format!("{rules}?order={id}")).await.says(&["実行済み", "該当なし"]);
    room.look(Rank::Viewer, &format!("{rules}?order=rsv_none")).await.says(&["No payment, reservation"]);
}

#[tokio::test]
async fn f2_a_fulfilment_shows_its_runs_and_is_retried_or_reported_by_hand() {
    let shop = Shop::open().await;
    let room = &shop.room;
    let (_, made, _) = shop.failed().await;
    room.look(Rank::Viewer, "/console/fulfilments?status=failed").await.says(&["星空", "out of memory"]);
    room.look(Rank::Viewer, "/console/fulfilments?status=done").await.says(&["No fulfilments match"]);
    let page = format!("/console/fulfilments/{made}");
    let seen = room.look(Rank::Viewer, &page).await.says(&["out of memory", "failed as often as is allowed"]);
    assert!(!seen.text.contains("/retry") && !seen.text.contains("/result"), "viewers have no acts");
    for act in ["retry", "result"] {
        assert_eq!(room.act(Rank::Viewer, &format!("{page}/{act}"), "reason=x").await.status(), 403);
    }
    let empty = room.act(Rank::Operator, &format!("{page}/retry"), "").await;
    assert!(empty.told().contains("reason"), "{}", empty.told());
    room.act(Rank::Operator, &format!("{page}/retry"), "reason=more+memory").await;
    room.look(Rank::Operator, &page).await.says(&["counts as failed at", "<option value=\"4\">"]);
    room.look_ja(Rank::Operator, &page).await.says(&["制作中です"]);
    let old = room.act(Rank::Operator, &format!("{page}/result"), "run=1&status=done").await;
    assert!(old.told().contains("another run was asked for since"), "{}", old.told());
    let form = "run=4&status=done&url=https%3A%2F%2Fcdn.example.jp%2Fv.mp4";
    let done = room.act(Rank::Operator, &format!("{page}/result"), form).await;
    assert_eq!(done.told(), "The result was recorded.");
    room.look(Rank::Viewer, &page).await.says(&["It was made.", "https://cdn.example.jp/v.mp4"]);
    assert_eq!(room.look(Rank::Viewer, "/console/fulfilments/ful_none").await.status(), 404);
}

#[tokio::test]
async fn f8_an_inquiry_shows_its_order_and_is_closed() {
    let shop = Shop::open().await;
    let room = &shop.room;
    let (id, _, case) = shop.failed().await;
    let ask = async |text: &str| {
        let facts = InquiryFacts {
            at: now(),
            order: id.clone(),
            payment: None,
            tenant: None,
            livemode: true,
            name: "山田".into(),
            email: "taro@example.jp".parse().unwrap(),
            text: text.into(),
            language: Language::Ja,
            closed: None,
        };
        acts::receive_inquiry(&*shop.store, &shop.env, NewInquiry { facts }, &actor()).await.unwrap()
    };
    let first = ask(&format!("動画はいつ届きますか {HOSTILE}")).await;
    let second = ask("書き忘れました hanako@example.jp").await;
    let page = format!("/console/inquiries/{first}");
    let words = ["t***@example.jp", &id, &case, "動画はいつ届きますか"];
    let seen = room.look(Rank::Viewer, &page).await.says(&words);
    assert!(!seen.text.contains(HOSTILE) && !seen.text.contains("/close"));
    let other = room.look(Rank::Viewer, &format!("/console/inquiries/{second}")).await.says(&[]);
    assert!(!other.text.contains("hanako@"), "masked for those who only look");
    room.look(Rank::Operator, &page).await.says(&["taro@example.jp", "mailto:"]);
    room.look_ja(Rank::Operator, "/console/inquiries").await.says(&[
        "お問い合わせ",
        "未対応",
        "badge wait\">2",
    ]);
    assert_eq!(room.act(Rank::Viewer, &format!("{page}/close"), "").await.status(), 403);
    room.act(Rank::Operator, &format!("{page}/close"), "").await;
    let list = room.look(Rank::Viewer, "/console/inquiries").await.says(&["closed"]).text;
    let place = |id: &str| list.find(&format!("/console/inquiries/{id}\"")).unwrap();
    assert!(place(&second) < place(&first), "the open one first");
    let open = room.look(Rank::Viewer, "/console/inquiries?status=open").await.says(&[&second]).text;
    assert!(!open.contains(&first));
    room.look_ja(Rank::Viewer, &page).await.says(&["対応済み", "operator"]);
}
