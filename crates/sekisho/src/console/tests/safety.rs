//! The audit log, refusals, sources and schedules, as people see them; and who may act.

use sekisho_core::audit::Entry;
use sekisho_core::change::Rejection;
use sekisho_core::job::Lane;
use sekisho_core::queue::Breaker;
use sekisho_core::state::{Index, Key, Kind, Write};
use sekisho_core::{Seq, Time};

use super::house::{House, SCRIPT};
use crate::console::page::{OPERATOR, Page, PageMethod};
use crate::console::{audit, notices, rejections, schedules, sources, suppressions};
use crate::now;

const CONFIG: &str = r#"
[notifications]
reminders = "mail"
time_zone = "Asia/Tokyo"
[[source]]
name = "stripe"
provider = "stripe"
secrets = ["whsec_test"]
[[route]]
name = "app"
url = "http://127.0.0.1:9/hook?token=secret"
signing = "none"
allow_private = true
[[channel]]
name = "mail"
kind = "smtp"
host = "localhost"
tls = "none"
auth = "none"
from = "no-reply@example.jp"
daily = 7
[[schedule]]
name = "nightly"
cron = "0 3 * * *"
timezone = "Asia/Tokyo"
type = "nightly.run"
"#;

fn entry(at: Time, actor: &str, action: &str, target: (&str, &str), details: &str) -> Entry {
    Entry {
        at,
        actor: Some(actor.into()),
        role: Some("operator".into()),
        action: action.into(),
        target: (target.0.into(), target.1.into()),
        tenant: Some("a".into()),
        event: None,
        details: details.into(),
    }
}

fn rejection(n: i64, source: &str, peer: &str, reason: &str, count: i64) -> Rejection {
    Rejection {
        seq: Seq::from_i64(Seq::floor_of(now()).as_i64() + n),
        at: now(),
        last_at: now(),
        source: source.into(),
        peer: peer.into(),
        network: format!("{peer}/32"),
        reason: reason.into(),
        detail: "no configured secret makes this signature".into(),
        request_id: "req_1".into(),
        count,
    }
}

async fn shut(house: &House, lane: &Lane) {
    let mut breaker = Breaker::default();
    breaker.shut("bad_credentials: 535 denied for ops@example.jp", now().plus_ms(60_000), now());
    let facts = serde_json::to_string(&breaker).unwrap();
    let key = Key::new(Kind::Breaker, &*lane.0);
    house.write(vec![Write { key, version: 0, facts, index: Index::default() }], Vec::new()).await;
}

#[tokio::test]
async fn h1_viewers_look_and_do_not_act() {
    let house = House::open(CONFIG).await;
    let own = [
        notices::PAGES,
        suppressions::PAGES,
        sources::PAGES,
        schedules::PAGES,
        rejections::PAGES,
        audit::PAGES,
    ];
    let path = |page: &Page| page.path.replace("{id}", "ntc_1").replace("{name}", "app");
    let (mut acts, mut looks) = (0, 0);
    for page in own.into_iter().flatten() {
        let is_guarded = page.needs == OPERATOR;
        match page.method {
            PageMethod::Get if is_guarded => {
                assert_eq!(house.get("viewer", &path(page)).await.0.status, 403, "{}", page.path);
            }
            PageMethod::Get if !page.path.contains('{') => {
                looks += 1;
                let text = house.page("viewer", &path(page)).await;
                let forms = text.matches("method=\"post\"").count();
                assert_eq!(forms, usize::from(page.path == "/console/audit"), "{}: {text}", page.path);
            }
            PageMethod::Get => {}
            PageMethod::Post if is_guarded => {
                acts += 1;
                assert_eq!(house.post("viewer", &path(page), &[]).await.status(), 403, "{}", page.path);
            }
            PageMethod::Post => assert_eq!(page.path, "/console/audit/verify", "it changes nothing"),
        }
    }
    assert_eq!((acts, looks), (6, 6));
}

#[tokio::test]
async fn d8_the_log_is_searched_by_who_what_and_when() {
    let house = House::open(CONFIG).await;
    let at = Time::parse_rfc3339("2026-11-10T00:00:00Z").unwrap();
    let details = r#"{"before":{"status":"unpaid","n":1},"after":{"status":"paid","n":1}}"#;
    let audit = vec![
        entry(at, "mika", "payment.changed", ("payment", "pay_1"), details),
        entry(at.plus_ms(3_600_000), "tomo", "breaker.reset", ("route", "app"), r#"{"was":"open"}"#),
    ];
    house.write(Vec::new(), audit).await;
    let all = house.page("viewer", "/console/audit").await;
    for words in
        ["a payment changed", "/console/payments/pay_1", "<del>unpaid</del> → paid", "2026-11-10 09:00:00"]
    {
        assert!(all.contains(words), "no {words:?} in {all}");
    }
    // By the clock of Tokyo.
    for (query, has_first, has_second) in [
        ("actor=mika", true, false),
        ("action=breaker.*", false, true),
        ("target=pay_1", true, false),
        ("tenant=b", false, false),
        ("since=2026-11-10T09:30", false, true),
        ("until=2026-11-10T09:30", true, false),
        ("since=2026-11-10T09:00&until=2026-11-10T10:00", true, false),
    ] {
        let page = house.page("viewer", &format!("/console/audit?{query}")).await;
        assert_eq!(page.contains("a payment changed"), has_first, "{query}: {page}");
        assert_eq!(page.contains("breaker was reset"), has_second, "{query}: {page}");
    }
    for odd in ["since=yesterday", "before=x"] {
        assert_eq!(house.get("viewer", &format!("/console/audit?{odd}")).await.0.status, 400, "{odd}");
    }
}

#[tokio::test]
async fn d8_the_log_is_checked_and_written_out() {
    let house = House::open(CONFIG).await;
    let at = Time::parse_rfc3339("2026-11-10T00:00:00Z").unwrap();
    for n in 0..3 {
        let one = entry(at.plus_ms(n * 86_400_000), "mika", "payment.changed", ("payment", "pay_1"), "{}");
        house.write(Vec::new(), vec![one]).await;
    }
    let seen = house.post("viewer", "/console/audit/verify", &[]).await;
    seen.says(&["Nothing was changed, removed or inserted"]);
    let (head, lines) = house.get("operator", "/console/audit/export?since=2026-11-11T00:00").await;
    assert_eq!(head.headers["content-type"], "application/jsonl; charset=utf-8");
    let lines: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert!(lines.iter().all(|line| line["hash"].is_string() && line["actor"] == "mika"), "{lines:?}");
    assert_eq!(house.get("viewer", "/console/audit/export").await.0.status, 403);
}

#[tokio::test]
async fn a3_refusals_are_grouped_and_paged() {
    let house = House::open(CONFIG).await;
    let of_network = |n: i64| Rejection {
        network: format!("203.0.{n}.0/24"),
        ..rejection(n, "stripe", "203.0.113.9", "bad_signature", 2)
    };
    let mut lines: Vec<_> = (0..60).map(of_network).collect();
    lines.push(rejection(70, "github", "198.51.100.1", "stale_timestamp", 5));
    house.store.reject(lines).await.unwrap();
    let page = house.page("viewer", "/console/rejections").await;
    for words in ["wrong signature", "203.0.113.9", ">120<", ">5<", "A forgery", "signed too long ago"] {
        assert!(page.contains(words), "no {words:?} in {page}");
    }
    let next = page.split("before=").nth(1).unwrap().split('"').next().unwrap();
    let older = house.page("viewer", &format!("/console/rejections?before={next}")).await;
    assert_eq!(older.matches("Possible cause").count(), 11);
    let page = house.page("viewer", "/console/rejections?source=github").await;
    assert_eq!(page.matches("Possible cause").count(), 1);
}

#[tokio::test]
async fn h1_sources_routes_and_channels_tell_how_they_fare() {
    let house = House::open(CONFIG).await;
    house.store.reject(vec![rejection(1, "stripe", "203.0.113.9", "bad_signature", 3)]).await.unwrap();
    shut(&house, &Lane::to_route("app")).await;
    shut(&house, &Lane::by_channel("mail")).await;
    let page = house.page("operator", "/console/sources").await;
    for words in [
        "/webhooks/stripe",
        "http://127.0.0.1:9/hook",
        "/console/rejections?source=stripe",
        "paused (circuit open)",
        "0 / 7",
        "action=\"/console/routes/app/reset\" data-confirm=\"Resume deliveries",
        "action=\"/console/channels/mail/resume\" data-confirm=\"Send the waiting messages",
        "payment_intent.succeeded",
        "o***@example.jp",
    ] {
        assert!(page.contains(words), "no {words:?} in {page}");
    }
    assert!(!page.contains("token=secret") && !page.contains("whsec_test"), "{page}");
    assert!(house.act("operator", "/console/routes/app/reset", &[]).await.0);
    assert!(house.act("operator", "/console/channels/mail/resume", &[]).await.0);
    let page = house.page("operator", "/console/sources").await;
    assert!(!page.contains("paused (circuit open)") && !page.contains("/console/routes/app/reset"), "{page}");
    for odd in ["/console/routes/no/reset", "/console/channels/no/resume", "/console/sources/no/test"] {
        assert_eq!(house.post("operator", odd, &[]).await.status(), 404, "{odd}");
    }
}

#[tokio::test]
async fn e1_a_schedule_tells_its_next_three_times() {
    let house = House::open(CONFIG).await;
    let page = house.page("viewer", "/console/schedules").await;
    assert_eq!(page.matches(" 03:00:00</time>").count(), 3, "{page}");
    for words in ["nightly", "nightly.run", "0 3 * * *", "Asia/Tokyo", "09:00", "No notifications yet"] {
        assert!(page.contains(words), "no {words:?} in {page}");
    }
}

#[tokio::test]
async fn h1_nothing_that_others_wrote_becomes_markup() {
    let house = House::open(CONFIG).await;
    let mut odd = rejection(1, SCRIPT, SCRIPT, SCRIPT, 1);
    odd.detail = SCRIPT.into();
    odd.request_id = SCRIPT.into();
    house.store.reject(vec![odd]).await.unwrap();
    let details =
        serde_json::json!({ "before": { SCRIPT: SCRIPT }, "after": { SCRIPT: [SCRIPT] }, SCRIPT: SCRIPT });
    let mut audit = vec![entry(now(), SCRIPT, SCRIPT, (SCRIPT, SCRIPT), &details.to_string())];
    audit.push(entry(now(), SCRIPT, SCRIPT, ("payment", SCRIPT), SCRIPT));
    audit.iter_mut().for_each(|entry| entry.role = Some(SCRIPT.into()));
    house.write(Vec::new(), audit).await;
    let query: String = form_urlencoded::byte_serialize(SCRIPT.as_bytes()).collect();
    for path in [
        "/console/rejections".to_owned(),
        format!("/console/rejections?source={query}"),
        "/console/audit".into(),
        format!("/console/audit?actor={query}&action={query}&target={query}"),
        "/console/sources".into(),
    ] {
        let page = house.page("operator", &path).await;
        assert!(!page.contains("<script>alert") && !page.contains("\"'>"), "{path}: {page}");
    }
}
