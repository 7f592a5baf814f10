//! Notices, suppressions, channels and reminders, over a store in memory.

use std::path::Path;
use std::sync::Arc;

use axum::Router;
use sekisho_core::calendar::local_date;
use sekisho_core::change::{ChangeSet, Committed};
use sekisho_core::directory::{Member, Register};
use sekisho_core::job::Lane;
use sekisho_core::language::Language;
use sekisho_core::notification::{Audience, Notice, NoticeStatus, Step, post};
use sekisho_core::queue::Breaker;
use sekisho_core::state::{Index, Key, Kind, Write};
use sekisho_core::{Seq, Time};
use sekisho_store::Store;
use sekisho_store::memory::MemoryStore;
use serde_json::{Value, json};

use super::schema::check;
use super::{OWN, READER, router_of, send};
use crate::{config, now, types};

const CONFIG: &str = r#"
[notifications]
reminders = "mail"
[[channel]]
name = "mail"
kind = "smtp"
host = "localhost"
tls = "none"
auth = "none"
from = "no-reply@example.jp"
daily = 7
[[channel]]
name = "ops"
kind = "slack"
url = "https://hooks.example.com/x"
"#;

struct House {
    router: Router,
    store: Arc<dyn Store>,
}

impl House {
    async fn open() -> Self {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let loaded = config::load(Path::new("s.toml"), CONFIG, std::iter::empty());
        let config = loaded.unwrap_or_else(|problems| panic!("{problems:?}")).config;
        Self { router: router_of(config, Arc::clone(&store)).await, store }
    }

    async fn get(&self, key: &str, path: &str) -> (u16, Value) {
        let (head, value) = send(&self.router, "GET", path, &[("authorization", key)], "").await;
        (head.status.as_u16(), value)
    }

    async fn post(&self, path: &str, order: &Value) -> (u16, Value) {
        self.post_as(OWN, path, order).await
    }

    async fn post_as(&self, key: &str, path: &str, order: &Value) -> (u16, Value) {
        let (head, value) =
            send(&self.router, "POST", path, &[("authorization", key)], &order.to_string()).await;
        (head.status.as_u16(), value)
    }

    async fn items(&self, path: &str) -> Vec<Value> {
        let (status, mut page) = self.get(OWN, path).await;
        assert_eq!(status, 200, "{path}: {page}");
        serde_json::from_value(page["items"].take()).unwrap()
    }

    async fn key_of(&self, tenant: &str) -> String {
        let (_, made) = self.post("/v1/keys", &json!({ "scopes": ["operate"], "tenant": tenant })).await;
        made["key"].as_str().unwrap().to_owned()
    }

    async fn commit(&self, writes: Vec<Write>) {
        let set = ChangeSet { writes, ..ChangeSet::nothing(now()) };
        assert!(matches!(&*self.store.commit(vec![set]).await.unwrap(), [Committed::Applied { .. }]));
    }

    /// What is kept of a channel.
    async fn keep_of_channel(&self, kind: Kind, id: &str, facts: &Value) {
        let (key, index) = (Key::new(kind, id), Index::default());
        self.commit(vec![Write { key, version: 0, facts: facts.to_string(), index }]).await;
    }

    /// Somebody of the directory.
    async fn keep(&self, register: Register, id: &str, facts: &Value) {
        let member = Member::read(register, &facts.to_string()).unwrap();
        let key = register.key(member.tenant(), id);
        let index = member.index(&key);
        self.commit(vec![Write { key, version: 0, facts: facts.to_string(), index }]).await;
    }

    /// Writes down a notice that was made at a moment; says its id.
    async fn told(&self, at: Time, notice: Notice) -> String {
        let id = Seq::floor_of(at).tagged("ntc_");
        self.commit(vec![post::write(&id, 0, &notice)]).await;
        id
    }

    /// An office with two who are reminded, one who does not want it, and something due.
    async fn office(&self, id: &str) {
        self.keep(Register::Tenants, id, &json!({ "name": "青空事業所" })).await;
        for (n, notifications) in [(1, true), (2, true), (3, false)] {
            let staff = json!({
                "tenant": id, "family_name": "山田", "given_name": format!("{n}"), "email": format!("s{n}@example.jp"),
                "language": null, "notifications": notifications, "threshold_days": 30,
            });
            self.keep(Register::Staff, &format!("{id}-s{n}"), &staff).await;
        }
        let subject = json!({
            "tenant": id, "name": "佐藤", "renewal_due_on": "2026-11-20", "assessment_due_on": null,
        });
        self.keep(Register::Subjects, &format!("{id}-x"), &subject).await;
    }
}

fn notice(to: &str, tenant: &str, status: NoticeStatus) -> Notice {
    let at = now();
    Notice {
        key: format!("test/{to}"),
        channel: "mail".into(),
        audience: Audience::Customer,
        to: Some(to.parse().unwrap()),
        name: None,
        language: Language::En,
        template: "payment-received".into(),
        data: Value::Null,
        details: Value::Null,
        tenant: Some(tenant.into()),
        payment: Some("pay_1".into()),
        event: None,
        batch: None,
        message: None,
        again: 0,
        trace: None,
        steps: vec![
            Step::new(at, NoticeStatus::Queued),
            Step::new(at, NoticeStatus::Sending).noting("try 1"),
            Step::new(at, status).because("bad_recipient", format!("550 5.1.1 <{to}> unknown")),
        ],
    }
}

fn ids(found: &[Value]) -> Vec<&str> {
    found.iter().map(|one| one["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn g5_a_notice_is_found_by_whom_when_and_what() {
    let house = House::open().await;
    let day = |n: i64| Time::parse_rfc3339("2026-11-10T00:00:00Z").unwrap().plus_ms(n * 86_400_000);
    let one = house.told(day(0), notice("taro@example.jp", "a", NoticeStatus::Failed)).await;
    let two = house.told(day(1), notice("hana@example.jp", "a", NoticeStatus::Sent)).await;
    let mut other = notice("taro@example.jp", "b", NoticeStatus::Sent);
    other.template = "deadline-reminder".into();
    other.batch = Some("reminders/2026-11-12".into());
    other.payment = None;
    other.channel = "second".into();
    let three = house.told(day(2), other).await;
    let cases: [(&str, &[&str]); 14] = [
        ("", &[&three, &two, &one]),
        ("?to=Taro@Example.jp", &[&three, &one]),
        ("?to=nobody@example.jp", &[]),
        ("?status=failed", &[&one]),
        ("?tenant=b", &[&three]),
        ("?template=payment-received", &[&two, &one]),
        ("?channel=second", &[&three]),
        ("?payment=pay_1&status=sent", &[&two]),
        ("?batch=reminders/2026-11-12", &[&three]),
        ("?since=2026-11-11T00:00:00Z", &[&three, &two]),
        ("?until=2026-11-11T00:00:00Z", &[&one]),
        ("?since=2026-11-11T00:00:00Z&until=2026-11-12T00:00:00Z", &[&two]),
        ("?limit=2", &[&three, &two]),
        (&format!("?limit=2&before={two}"), &[&one]),
    ];
    for (query, expected) in cases {
        assert_eq!(ids(&house.items(&format!("/v1/notices{query}")).await), expected, "{query}");
    }
    let (_, page) = house.get(OWN, "/v1/notices?limit=2").await;
    assert_eq!(page["next"], *two);
    check::<types::Page<types::Notice>>(&page);
    let (_, shown) = house.get(OWN, &format!("/v1/notices/{one}")).await;
    check::<types::NoticeDetail>(&shown);
    assert_eq!((&shown["attempts"], &shown["reason"]), (&json!(1), &json!("bad_recipient")));
    assert!(shown["advice"].as_str().unwrap().contains("--to"), "the next step: {shown}");
}

#[tokio::test]
async fn g5_addresses_are_masked_unless_somebody_may_see_them() {
    let house = House::open().await;
    let id = house.told(now(), notice("taro@example.jp", "a", NoticeStatus::Failed)).await;
    let order = json!({ "address": "hana@example.jp", "reason": "asked to" });
    assert_eq!(house.post("/v1/suppressions", &order).await.0, 201);
    for path in ["/v1/notices".to_owned(), format!("/v1/notices/{id}"), "/v1/suppressions".into()] {
        let (status, masked) = house.get(READER, &path).await;
        let text = masked.to_string();
        assert_eq!(status, 200, "{text}");
        assert!(text.contains("***@example.jp"), "{text}");
        assert!(!text.contains("taro@") && !text.contains("hana@"), "{text}");
        let (status, refused) = house.get(READER, &format!("{path}?addresses=full")).await;
        assert_eq!(status, 403, "{refused}");
        let (status, whole) = house.get(OWN, &format!("{path}?addresses=full")).await;
        let text = whole.to_string();
        assert!(status == 200 && (text.contains("taro@") || text.contains("hana@")), "{text}");
    }
    let (_, audit) = house.get(OWN, "/v1/audit").await;
    assert!(!audit.to_string().contains("hana@"), "{audit}");
}

#[tokio::test]
async fn g5_a_search_ends_a_page_and_leads_on() {
    let house = House::open().await;
    let made = |n: i64| Seq::from_i64(Seq::floor_of(now()).as_i64() + n).tagged("ntc_");
    let common = notice("taro@example.jp", "a", NoticeStatus::Sent);
    let rare = Notice { template: "rare".into(), ..common.clone() };
    let writes = (0..20_100).map(|n| post::write(&made(n), 0, if n == 0 { &rare } else { &common }));
    house.commit(writes.collect()).await;
    let (_, first) = house.get(OWN, "/v1/notices?template=rare").await;
    assert_eq!(first["items"], json!([]), "it is not among the newest");
    let next = first["next"].as_str().unwrap();
    let (_, second) = house.get(OWN, &format!("/v1/notices?template=rare&before={next}")).await;
    assert_eq!((second["items"].as_array().unwrap().len(), &second["next"]), (1, &Value::Null));
}

#[tokio::test]
async fn h2_a_tenants_key_sees_and_resends_only_what_is_its_own() {
    let house = House::open().await;
    let own = house
        .told(Time::from_ms(now().ms() - 5_000), notice("a@example.jp", "a", NoticeStatus::Failed))
        .await;
    let other = house.told(now(), notice("b@example.jp", "b", NoticeStatus::Failed)).await;
    let key = house.key_of("a").await;
    assert_eq!(house.get(&key, "/v1/notices").await.1["items"].as_array().unwrap().len(), 1);
    assert_eq!(house.get(&key, "/v1/notices?tenant=b").await.0, 403);
    assert_eq!(house.get(&key, "/v1/notices?to=b@example.jp").await.1["items"], json!([]));
    for (id, expected) in [(&own, 200), (&other, 404)] {
        assert_eq!(house.get(&key, &format!("/v1/notices/{id}")).await.0, expected);
        let (status, answer) = house.post_as(&key, &format!("/v1/notices/{id}/resend"), &json!({})).await;
        assert_eq!(status, expected, "{answer}");
    }
    for path in ["/v1/suppressions", "/v1/channels"] {
        assert_eq!(house.get(&key, path).await.0, 403, "{path}");
    }
    house.office("a").await;
    house.office("b").await;
    // A tenant's key runs days near today.
    let today = local_date("Asia/Tokyo", crate::now()).unwrap();
    let run = json!({ "date": today });
    assert_eq!(house.post_as(&key, "/v1/reminders", &json!({ "date": "2031-01-10" })).await.0, 400);
    let (status, report) = house.post_as(&key, "/v1/reminders", &run).await;
    assert_eq!((status, &report["offices"], &report["new"]), (200, &json!(1), &json!(3)), "{report}");
    let other = json!({ "date": today, "tenant": "b" });
    assert_eq!(house.post_as(&key, "/v1/reminders", &other).await.0, 403);
    house.post("/v1/reminders", &run).await;
    assert_eq!(house.get(&key, &format!("/v1/reminders/{today}")).await.1["total"], 3);
    assert_eq!(house.get(OWN, &format!("/v1/reminders/{today}")).await.1["total"], 6);
}

#[tokio::test]
async fn g5_a_notice_is_resent_once_it_is_over() {
    let house = House::open().await;
    let id = house.told(now(), notice("taro@example.jp", "a", NoticeStatus::Failed)).await;
    let path = format!("/v1/notices/{id}/resend");
    let (status, refused) = house.post(&path, &json!({ "to": "nobody" })).await;
    assert_eq!((status, &refused["errors"][0]["field"]), (422, &json!("to")), "{refused}");
    let suppress = json!({ "address": "hana@example.jp", "reason": "asked to" });
    house.post("/v1/suppressions", &suppress).await;
    let to = json!({ "to": "hana@example.jp" });
    let (status, refused) = house.post(&path, &to).await;
    assert_eq!(status, 409, "{refused}");
    assert!(refused["detail"].as_str().unwrap().contains("release it first"), "{refused}");
    assert_eq!(house.post("/v1/suppressions/release", &suppress).await.0, 200);
    let (status, resent) = house.post(&path, &to).await;
    assert_eq!(
        (status, &resent["status"], &resent["to"]),
        (200, &json!("queued"), &json!("h***@example.jp"))
    );
    check::<types::Notice>(&resent);
    let (status, refused) = house.post(&path, &json!({})).await;
    assert_eq!(status, 409, "{refused}");
    assert!(refused["detail"].as_str().unwrap().contains("on its way"), "{refused}");
    let (_, shown) = house.get(OWN, &format!("/v1/notices/{id}")).await;
    assert_eq!(
        (&shown["audit"][0]["action"], &shown["audit"][0]["actor"]),
        (&json!("notice.resent"), &json!("cli"))
    );
    check::<types::NoticeDetail>(&shown);
}

#[tokio::test]
async fn g2_addresses_are_suppressed_and_released_by_operators() {
    let house = House::open().await;
    let order = |n: usize| json!({ "address": format!("P{n}@example.jp"), "reason": "bounced by phone" });
    for n in 0..5 {
        let (status, made) = house.post("/v1/suppressions", &order(n)).await;
        assert_eq!((status, &made["suppressed"]), (201, &json!(true)), "{made}");
        check::<types::Suppression>(&made);
    }
    assert_eq!(house.post("/v1/suppressions", &order(0)).await.0, 409);
    let (mut seen, mut next) = (Vec::new(), String::new());
    loop {
        let (_, page) = house.get(OWN, &format!("/v1/suppressions?limit=2&addresses=full{next}")).await;
        check::<types::Page<types::Suppression>>(&page);
        seen.extend(page["items"].as_array().unwrap().iter().map(|one| one["address"].clone()));
        // Whoever is released while somebody turns pages is still a place to go on from.
        if seen.len() == 2 {
            assert_eq!(house.post("/v1/suppressions/release", &order(3)).await.0, 200);
        }
        let Some(cursor) = page["next"].as_str() else { break };
        assert!(!cursor.contains('@'), "{cursor}");
        next = format!("&before={cursor}");
    }
    assert_eq!(seen, ["p4@example.jp", "p3@example.jp", "p2@example.jp", "p1@example.jp", "p0@example.jp"]);
    assert_eq!(house.items("/v1/suppressions").await.len(), 4);
    assert_eq!(house.items("/v1/suppressions?all=true").await.len(), 5);
    let found = house.items("/v1/suppressions?address=P3@example.jp").await;
    assert_eq!((&found[0]["suppressed"], &found[0]["cause"]), (&json!(false), &json!("released")));
    assert_eq!(found[0]["history"].as_array().unwrap().len(), 2);
    let (status, refused) = house.post("/v1/suppressions/release", &order(3)).await;
    assert_eq!(status, 404, "{refused}");
    let cases = [
        (json!({}), vec!["address", "reason"]),
        (json!({ "address": "nobody", "reason": "x" }), vec!["address"]),
        (json!({ "address": "a@example.jp", "reason": " " }), vec!["reason"]),
        (json!({ "address": "a@example.jp", "reason": "x", "colour": "red" }), vec!["colour"]),
    ];
    for (order, fields) in cases {
        for path in ["/v1/suppressions", "/v1/suppressions/release"] {
            let (status, refused) = house.post(path, &order).await;
            let named: Vec<_> =
                refused["errors"].as_array().unwrap().iter().map(|one| &one["field"]).collect();
            assert_eq!(
                (status, named),
                (422, fields.iter().map(|field| json!(field)).collect::<Vec<_>>().iter().collect()),
                "{order}"
            );
        }
    }
    let actions: Vec<_> = house.items("/v1/audit?action=address.*").await;
    assert_eq!(actions.len(), 6);
}

#[tokio::test]
async fn g2_a_channel_that_is_shut_says_why_and_is_resumed() {
    let house = House::open().await;
    let lane = Lane::by_channel("mail");
    let mut breaker = Breaker::default();
    let until = now().plus_ms(900_000);
    breaker.shut("bad_credentials: 535 denied", until, now());
    house.keep_of_channel(Kind::Breaker, &lane.0, &json!(breaker)).await;
    let today = now().ms().div_euclid(86_400_000);
    house.keep_of_channel(Kind::Quota, "mail", &json!({ "next_ms": 0, "day": today, "used": 5 })).await;
    let channels = house.items("/v1/channels").await;
    channels.iter().for_each(|channel| drop(check::<types::Channel>(channel)));
    let mail = &channels[0];
    assert_eq!(
        (&mail["name"], &mail["kind"], &mail["breaker"]),
        (&json!("mail"), &json!("smtp"), &json!("open"))
    );
    assert_eq!((&mail["why"], &mail["open_until"]), (&json!("bad_credentials: 535 denied"), &json!(until)));
    assert_eq!((&mail["used_today"], &mail["daily"]), (&json!(5), &json!(7)));
    let ops = &channels[1];
    assert_eq!(
        (&ops["breaker"], &ops["used_today"], &ops["daily"]),
        (&json!("closed"), &Value::Null, &Value::Null)
    );
    let (status, resumed) = house.post("/v1/channels/mail/resume", &json!({})).await;
    assert_eq!((status, resumed), (200, json!({ "channel": "mail", "was": "open" })));
    assert_eq!(house.items("/v1/channels").await[0]["breaker"], "closed");
    let entries = house.items("/v1/audit?action=channel.resumed").await;
    assert_eq!((&entries[0]["target"], &entries[0]["details"]["was"]), (&json!("mail"), &json!("open")));
    let (status, refused) = house.post("/v1/channels/fax/resume", &json!({})).await;
    assert_eq!(status, 404);
    assert!(refused["detail"].as_str().unwrap().contains("configured are: mail, ops"), "{refused}");
}

#[tokio::test]
async fn g4_a_days_reminders_are_run_once_and_added_up() {
    let house = House::open().await;
    house.office("o1").await;
    let order = |dry_run| json!({ "date": "2026-11-16", "dry_run": dry_run });
    let (status, report) = house.post("/v1/reminders", &order(true)).await;
    assert_eq!(status, 200, "{report}");
    check::<types::RemindReport>(&report);
    let counts = ["due", "new", "queued", "off"].map(|name| report[name].as_u64().unwrap());
    assert_eq!(counts, [3, 3, 2, 1]);
    assert!(!report.to_string().contains("s1@"), "masked: {report}");
    assert_eq!(house.items("/v1/notices").await.len(), 0, "a dry run writes nothing");
    for expected in [3, 0] {
        let (_, report) = house.post("/v1/reminders", &order(false)).await;
        assert_eq!((&report["new"], &report["due"]), (&json!(expected), &json!(3)), "{report}");
    }
    let (_, summary) = house.get(OWN, "/v1/reminders/2026-11-16").await;
    check::<types::ReminderSummary>(&summary);
    assert_eq!((&summary["total"], &summary["waiting"]), (&json!(3), &json!(2)));
    assert_eq!(summary["by_status"], json!({ "off": 1, "queued": 2 }));
    assert_eq!(house.get(OWN, "/v1/reminders/2026-11-17").await.1["total"], 0);
    let batch = house.items("/v1/notices?batch=reminders/2026-11-16").await;
    let details = &batch[0]["details"];
    assert_eq!((&details["renewal_alert_count"], &details["email_threshold_days"]), (&json!(1), &json!(30)));
}

#[tokio::test]
async fn h2_what_is_wrong_about_notifications_is_said_with_what_to_write_instead() {
    let house = House::open().await;
    let cases = [
        ("GET", "/v1/notices?to=taro", "", 400, "to: is no mail address; expected one such as"),
        ("GET", "/v1/notices?status=lost", "", 400, "status: expected one of queued, sending"),
        ("GET", "/v1/notices?since=2d", "", 400, "since: expected a time such as"),
        ("GET", "/v1/notices?before=evt_1", "", 400, "before: expected `next` of the page before: ntc_"),
        ("GET", "/v1/notices?addresses=all", "", 400, "addresses: expected full"),
        ("GET", "/v1/notices?colour=red", "", 400, "known are: to, since"),
        ("GET", "/v1/notices/ntc_none", "", 404, "no notice has the id ntc_none; GET /v1/notices?to="),
        ("POST", "/v1/notices/ntc_none/resend", "", 404, "there is no notice ntc_none"),
        ("GET", "/v1/suppressions?before=x", "", 400, "before: expected"),
        ("GET", "/v1/suppressions?all=yes", "", 400, "all: expected true or false"),
        ("GET", "/v1/suppressions?address=x", "", 400, "address: is no mail address"),
        ("GET", "/v1/reminders/today", "", 400, "\"today\" is no day; expected one such as 2026-11-16"),
        ("POST", "/v1/reminders", r#"{"date":"2026-02-30"}"#, 400, "date: expected a day such as"),
        ("POST", "/v1/reminders", r#"{"tenant":"nobody"}"#, 404, "there is no tenant nobody"),
        ("POST", "/v1/reminders", r#"{"when":"now"}"#, 400, "unknown field `when`"),
    ];
    for (method, path, body, status, words) in cases {
        let (head, answer) = send(&house.router, method, path, &[("authorization", OWN)], body).await;
        assert_eq!(head.status.as_u16(), status, "{method} {path} {body}: {answer}");
        assert!(answer["detail"].as_str().unwrap().contains(words), "{method} {path} {body}: {answer}");
    }
    let bare = super::router().await;
    let (head, answer) = send(&bare, "POST", "/v1/reminders", &[("authorization", OWN)], "{}").await;
    assert_eq!(head.status.as_u16(), 400);
    assert!(answer["detail"].as_str().unwrap().contains("reminders = \"mail\""), "{answer}");
}
