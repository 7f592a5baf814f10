//! Notices and suppressed addresses, as people see them.

use sekisho_core::directory::{Member, Register};
use sekisho_core::language::Language;
use sekisho_core::notification::template::Templates;
use sekisho_core::notification::{Audience, Notice, NoticeStatus, Step, post};
use sekisho_core::state::Write;
use sekisho_core::{Seq, Time};
use serde_json::{Value, json};

use super::house::{House, SCRIPT};
use crate::now;

const CONFIG: &str = r#"
[[channel]]
name = "mail"
kind = "smtp"
host = "localhost"
tls = "none"
auth = "none"
from = "no-reply@example.jp"
[[notify]]
name = "receipt"
events = ["payment.paid"]
to = "customer"
channel = "mail"
template = "payment-received"
"#;
const TO: &str = "taro@example.jp";

fn notice(status: NoticeStatus, reason: &str) -> Notice {
    let data = Templates::samples("payment-received", Language::En).remove(0).1;
    Notice {
        key: "test/1".into(),
        channel: "mail".into(),
        audience: Audience::Customer,
        to: Some(TO.parse().unwrap()),
        name: Some("山田太郎".into()),
        language: Language::En,
        template: "payment-received".into(),
        data,
        details: Value::Null,
        tenant: Some("a".into()),
        payment: Some("pay_1".into()),
        event: Some("evt_0000000000007".into()),
        batch: None,
        message: None,
        again: 0,
        trace: None,
        steps: vec![
            Step::new(now(), NoticeStatus::Queued),
            Step::new(now(), NoticeStatus::Sending).noting("try 1"),
            Step::new(now(), status).because(reason, format!("550 5.1.1 <{TO}> unknown")),
        ],
    }
}

async fn told(house: &House, notice: &Notice) -> String {
    let id = Seq::floor_of(now()).tagged("ntc_");
    house.write(vec![post::write(&id, 0, notice)], Vec::new()).await;
    id
}

/// Somebody of the directory.
async fn keep(house: &House, register: Register, id: &str, facts: &Value) {
    let member = Member::read(register, &facts.to_string()).unwrap();
    let key = register.key(member.tenant(), id);
    let write = Write { index: member.index(&key), key, version: 0, facts: facts.to_string() };
    house.write(vec![write], Vec::new()).await;
}

#[tokio::test]
async fn g5_one_box_answers_why_a_mail_did_not_come() {
    let house = House::open(CONFIG).await;
    let id = told(&house, &notice(NoticeStatus::Failed, "bad_recipient")).await;
    let customer = json!({ "email": TO, "tenant": "a" });
    keep(&house, Register::Customers, "cus-7", &customer).await;
    let (is_good, text) =
        house.act("operator", "/console/suppressions/add", &[("address", TO), ("reason", "asked to")]).await;
    assert!(is_good, "{text}");
    for q in [TO, "Taro@Example.jp", "cus-7"] {
        let page = house.page("operator", &format!("/console/notices?q={}", q.replace('@', "%40"))).await;
        for words in ["unknown recipient", "release it before you resend", "by hand", "cus-7", &*id] {
            assert!(page.contains(words), "{q}: no {words:?} in {page}");
        }
    }
    let (head, _) = house.get("viewer", &format!("/console/notices?q={id}")).await;
    assert_eq!(head.headers["location"], *format!("/console/notices/{id}"), "an id leads there");
    let page = house.page("viewer", "/console/notices?q=nobody%40example.jp").await;
    assert!(page.contains("Nothing was ever to be sent") && page.contains("payment.paid"), "{page}");
    assert!(page.contains("no customer and no staff member"), "{page}");
    let page = house.page("viewer", "/console/notices?q=what").await;
    assert!(page.contains("notification matches"), "{page}");
}

#[tokio::test]
async fn g5_where_two_tenants_have_the_same_id_the_page_asks_who_is_meant() {
    let house = House::open(CONFIG).await;
    for (tenant, email) in [(Some("a"), "of-a@example.jp"), (Some("b"), "of-b@example.jp"), (None, TO)] {
        let customer = json!({ "tenant": tenant, "email": email });
        keep(&house, Register::Customers, "cus-7", &customer).await;
    }
    let page = house.page("operator", "/console/notices?q=cus-7").await;
    for words in ["Several tenants use this id", "of-a@example.jp", "of-b@example.jp", "q=b%2Fcus-7"] {
        assert!(page.contains(words), "no {words:?} in {page}");
    }
    let one = house.page("operator", "/console/notices?q=b%2Fcus-7").await;
    assert!(one.contains("of-b@example.jp") && !one.contains("of-a@example.jp"), "{one}");
    let nobodys = house.page("operator", "/console/notices?q=%2Fcus-7").await;
    assert!(nobodys.contains(TO) && !nobodys.contains("of-a@"), "{nobodys}");
    let masked = house.page("viewer", "/console/notices?q=cus-7").await;
    assert!(masked.contains("o***@example.jp") && !masked.contains("of-a@"), "{masked}");
}

#[tokio::test]
async fn g5_whoever_has_no_address_or_wants_no_mail_is_told_so() {
    let house = House::open(CONFIG).await;
    keep(&house, Register::Customers, "cus-8", &json!({ "tenant": "a" })).await;
    let staff = json!({
        "tenant": "a", "family_name": "山田", "given_name": null, "email": "s1@example.jp", "language": "ja",
        "notifications": false, "threshold_days": 30,
    });
    keep(&house, Register::Staff, "staff-1", &staff).await;
    let page = house.page("viewer", "/console/notices?q=cus-8").await;
    assert!(page.contains("No mail address is known for them"), "{page}");
    let page = house.page("viewer", "/console/notices?q=s1%40example.jp").await;
    assert!(page.contains("notifications off") && page.contains("staff-1"), "{page}");
    assert!(!page.contains("山田"), "names are for operators");
}

#[tokio::test]
async fn g5_a_list_is_filtered_and_leads_on() {
    let house = House::open(CONFIG).await;
    let made = |n: i64| Seq::from_i64(Seq::floor_of(now()).as_i64() + n).tagged("ntc_");
    let sent = notice(NoticeStatus::Sent, "");
    let failed = notice(NoticeStatus::Failed, "too_big");
    let writes = (0..60).map(|n| post::write(&made(n), 0, if n == 3 { &failed } else { &sent }));
    house.write(writes.collect(), Vec::new()).await;
    let page = house.page("viewer", "/console/notices").await;
    assert_eq!(page.matches("data-label=\"Template\"").count(), 50);
    let next = page.split("before=").nth(1).unwrap().split('"').next().unwrap();
    let older = house.page("viewer", &format!("/console/notices?before={next}")).await;
    assert_eq!(older.matches("data-label=\"Template\"").count(), 10);
    let page = house.page("viewer", "/console/notices?status=failed").await;
    assert_eq!(page.matches("data-label=\"Template\"").count(), 1);
    assert!(page.contains("too large"), "{page}");
    for odd in ["/console/notices?status=odd", "/console/notices?before=7"] {
        assert_eq!(house.get("viewer", odd).await.0.status, 400, "{odd}");
    }
}

#[tokio::test]
async fn h1_addresses_are_masked_for_viewers() {
    let house = House::open(CONFIG).await;
    let id = told(&house, &notice(NoticeStatus::Failed, "bad_recipient")).await;
    house
        .act("operator", "/console/suppressions/add", &[("address", TO), ("reason", "by taro@example.jp")])
        .await;
    let detail = format!("/console/notices/{id}");
    for path in ["/console/notices", &*detail, "/console/suppressions"] {
        let masked = house.page("viewer", path).await;
        assert!(masked.contains("t***@example.jp") && !masked.contains(TO), "{path}: {masked}");
        assert!(house.page("operator", path).await.contains(TO), "{path}");
    }
    let found = house.page("viewer", "/console/notices?q=taro%40example.jp").await;
    assert_eq!(found.matches(TO).count(), 1, "only what was typed: {found}");
}

#[tokio::test]
async fn h1_what_a_message_says_is_shown_to_operators_in_a_frame_that_nothing_leaves() {
    let house = House::open(CONFIG).await;
    let id = told(&house, &notice(NoticeStatus::Sent, "")).await;
    let (head, _) = house.get("viewer", &format!("/console/notices/{id}/preview")).await;
    assert_eq!(head.status, 403);
    let viewed = house.page("viewer", &format!("/console/notices/{id}")).await;
    assert!(!viewed.contains("<iframe") && !viewed.contains("山田太郎"), "{viewed}");
    let (head, html) = house.get("operator", &format!("/console/notices/{id}/preview")).await;
    assert_eq!(head.status, 200);
    assert!(html.contains("<html"), "{html}");
    let policy = head.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("sandbox") && policy.contains("default-src 'none'"), "{policy}");
    assert!(policy.contains("frame-ancestors 'self'") && !policy.contains("script-src"), "{policy}");
    let seen = house.page("operator", &format!("/console/notices/{id}")).await;
    assert!(seen.contains("<iframe class=\"preview\" sandbox src="), "{seen}");
}

#[tokio::test]
async fn g5_a_notice_is_resent_from_its_page() {
    let house = House::open(CONFIG).await;
    let id = told(&house, &notice(NoticeStatus::Failed, "bad_recipient")).await;
    let path = format!("/console/notices/{id}/resend");
    let (is_good, text) = house.act("operator", &path, &[("to", "no address")]).await;
    assert!(!is_good && text.contains("address"), "{text}");
    let (is_good, text) = house.act("operator", &path, &[("to", "hana@example.jp")]).await;
    assert!(is_good, "{text}");
    let page = house.page("operator", &format!("/console/notices/{id}")).await;
    assert!(page.contains("hana@example.jp") && page.contains("resent by operator"), "{page}");
    let (is_good, text) = house.act("operator", &path, &[]).await;
    assert!(!is_good && text.contains("on its way"), "{text}");
    assert_eq!(house.post("operator", "/console/notices/ntc_nothing/resend", &[]).await.status(), 404);
}

#[tokio::test]
async fn g2_an_address_is_suppressed_and_released_with_a_reason() {
    let house = House::open(CONFIG).await;
    let add = "/console/suppressions/add";
    let (is_good, text) = house.act("operator", add, &[("address", TO)]).await;
    assert!(!is_good && text.contains("reason"), "{text}");
    assert!(house.act("operator", add, &[("address", TO), ("reason", "asked to")]).await.0);
    assert!(!house.act("operator", add, &[("address", TO), ("reason", "again")]).await.0, "it is there");
    let page = house.page("operator", "/console/suppressions?address=taro%40example.jp").await;
    assert!(page.contains("asked to") && page.contains(">operator<"), "{page}");
    let release = "/console/suppressions/release";
    assert!(house.act("operator", release, &[("address", TO), ("reason", "works again")]).await.0);
    let page = house.page("operator", "/console/suppressions").await;
    assert!(page.contains("No address is suppressed"), "{page}");
    let page = house.page("operator", "/console/suppressions?all=1").await;
    assert!(page.contains("works again") && page.contains("asked to"), "with its history: {page}");
}

#[tokio::test]
async fn h1_nothing_in_a_notice_becomes_markup() {
    let house = House::open(CONFIG).await;
    let mut odd = notice(NoticeStatus::Failed, SCRIPT);
    odd.name = Some(SCRIPT.into());
    odd.template = SCRIPT.into();
    odd.channel = SCRIPT.into();
    odd.tenant = Some(SCRIPT.into());
    odd.payment = Some(SCRIPT.into());
    odd.event = Some(SCRIPT.into());
    odd.batch = Some(SCRIPT.into());
    odd.message = Some(SCRIPT.into());
    odd.steps.push(Step::new(Time::from_ms(now().ms()), NoticeStatus::Bounced).because(SCRIPT, SCRIPT));
    let id = told(&house, &odd).await;
    keep(&house, Register::Customers, "cus-x", &json!({ "email": TO, "name": SCRIPT, "tenant": SCRIPT }))
        .await;
    house.act("operator", "/console/suppressions/add", &[("address", TO), ("reason", SCRIPT)]).await;
    let query: String = form_urlencoded::byte_serialize(SCRIPT.as_bytes()).collect();
    for path in [
        "/console/notices".to_owned(),
        format!("/console/notices/{id}"),
        "/console/notices?q=taro%40example.jp".into(),
        format!("/console/notices?q={query}&template={query}&channel={query}&batch={query}"),
        "/console/suppressions".into(),
    ] {
        for lang in ["operator", "viewer"] {
            let page = house.page(lang, &path).await;
            assert!(!page.contains("<script>alert") && !page.contains("\"'>"), "{path}: {page}");
        }
    }
}
