//! Payments, billing, balances and the books, over a store in memory.

use std::sync::Arc;

use sekisho_core::user::Rank;
use sekisho_store::Store;
use sekisho_store::memory::MemoryStore;
use serde_json::{Value, json};

use super::Room;
use crate::config::Config;
use crate::view::samples::{NOW, paid, settle};

const HOSTILE: &str = "<script>alert(1)</script>\"'>";

async fn room() -> (Room, Arc<dyn Store>) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    (Room::with(Config::default(), Arc::clone(&store)).await, store)
}

fn event(id: &str, event_type: &str, object: Value) -> Value {
    json!({
        "id": id, "object": "event", "type": event_type, "created": NOW.ms() / 1000, "livemode": true,
        "data": { "object": object },
    })
}

fn labels(customer: &str) -> Value {
    json!({ "metadata": { "order_id": "o_9", "customer_id": customer, "purpose": "balance", "tenant_id": "acme" } })
}

fn subscription(tenant: &str) -> Value {
    let object = json!({
        "id": "sub_1", "object": "subscription", "status": "active", "customer": "cus_1", "created": NOW.ms() / 1000,
        "currency": "jpy", "metadata": { "tenant_id": tenant },
        "items": { "data": [{ "current_period_start": NOW.ms() / 1000, "current_period_end": 4_000_000_000_i64 }] },
    });
    event("evt_sub", "customer.subscription.created", object)
}

#[tokio::test]
async fn h1_a_payment_says_why_it_stands_where_it_stands() {
    let (room, store) = room().await;
    let id = settle(&*store, &paid("o_1", 1200, &json!({}))).await;
    let refund = json!({
        "id": "re_1", "object": "refund", "status": "succeeded", "amount": 300, "currency": "jpy",
        "payment_intent": "pi_o_1",
    });
    settle(&*store, &event("evt_re", "refund.created", refund)).await;
    let page = format!("/console/payments/{id}");
    room.look(Rank::Viewer, &page).await.says(&[
        "Paid; ¥300 refunded.",
        "¥1,200",
        "pi_o_1",
        "payment_intent.succeeded",
        "Status: unpaid → paid",
        "Status: paid → partly refunded",
        "Event emitted payment.paid",
        "provider/stripe/-/live",
        "sums to zero",
        "proof.json",
    ]);
    room.look_ja(Rank::Viewer, &page).await.says(&["うち ¥300 を返金しました。", "一部返金", "合計ゼロ"]);
    for called in [&*id, "o_1", "pi_o_1", "re_1"] {
        let found = room.look(Rank::Viewer, &format!("/console/payments?q={called}")).await;
        assert_eq!((found.status(), found.location()), (303, &*page), "{called}");
    }
    room.look(Rank::Viewer, "/console/payments?q=nothing").await.says(&["No payment is called"]);
    assert_eq!(room.look(Rank::Viewer, "/console/payments/pay_none").await.status(), 404);
}

#[tokio::test]
async fn h1_payments_are_filtered_and_paged() {
    let (room, store) = room().await;
    for n in 0..60 {
        settle(&*store, &paid(&format!("o_{n:02}"), 100, &json!({}))).await;
    }
    settle(&*store, &paid("free", 100, &json!({ "metadata": {} }))).await;
    let rows = |text: &str| text.matches("<tr>").count() - 1;
    let first = room.look(Rank::Viewer, "/console/payments").await.says(&["Older"]);
    assert_eq!(rows(&first.text), 50);
    let next = first.text.split("before=").nth(1).unwrap().split('"').next().unwrap();
    let second = room.look(Rank::Viewer, &format!("/console/payments?before={next}")).await;
    assert_eq!(rows(&second.text), 11);
    for (query, expected) in [
        ("attention=any", 1),
        ("attention=unlinked", 1),
        ("status=paid&mode=live", 50),
        ("customer=nobody", 0),
        ("tenant=nobody", 0),
        ("mode=test", 0),
        ("status=failed", 0),
    ] {
        let text = room.look(Rank::Viewer, &format!("/console/payments?{query}")).await.says(&[]).text;
        assert_eq!(text.matches("<tr>").count().saturating_sub(1), expected, "{query}");
    }
    for wrong in ["status=rich", "tenant=%00", "q=%07"] {
        let status = room.look(Rank::Viewer, &format!("/console/payments?{wrong}")).await.status();
        assert_eq!(status, 400, "{wrong}");
    }
    assert_eq!(room.look(Rank::Viewer, "/console/payments/%00").await.status(), 404);
}

#[tokio::test]
async fn h1_balances_and_books_are_shown_and_checked_by_operators() {
    let (room, store) = room().await;
    settle(&*store, &paid("o_9", 3000, &labels("c_1"))).await;
    room.look(Rank::Viewer, "/console/balances").await.says(&["c_1", "¥3,000"]);
    room.look(Rank::Viewer, "/console/balances/c_1").await.says(&["+¥3,000", "payment received", "pay_"]);
    let found = room.look(Rank::Viewer, "/console/balances?q=c%2F1").await;
    assert_eq!((found.status(), found.location()), (303, "/console/balances/c%2F1"));
    let nobody = room.look(Rank::Viewer, "/console/balances/nobody").await;
    assert!(nobody.told().contains("nobody"));
    let seen = room.look(Rank::Viewer, "/console/books").await.says(&["✓ balanced", "customer/acme/c_1"]);
    assert!(!seen.text.contains("/console/books/check"), "viewers have no acts");
    assert_eq!(room.act(Rank::Viewer, "/console/books/check", "").await.status(), 403);
    room.look(Rank::Operator, "/console/books").await.says(&["/console/books/check"]);
    let checked = room.act(Rank::Operator, "/console/books/check", "").await;
    checked.says(&["Every payment is booked as its facts say", "1 payments"]);
}

#[tokio::test]
async fn h1_billing_says_who_may_come_in_and_until_when() {
    let (room, store) = room().await;
    let id = settle(&*store, &subscription("acme")).await;
    room.look(Rank::Viewer, "/console/billing").await.says(&["acme", "active", "✓ yes"]);
    let words = ["The tenant has access.", "sub_1", "cus_1", "Created"];
    room.look(Rank::Viewer, "/console/billing/acme").await.says(&words);
    room.look_ja(Rank::Viewer, &format!("/console/billing/{id}"))
        .await
        .says(&["このテナントは利用できます。"]);
    room.look(Rank::Viewer, "/console/billing?status=cancelled").await.says(&["No subscriptions match"]);
    assert_eq!(room.look(Rank::Viewer, "/console/billing/nobody").await.status(), 404);
    assert_eq!(room.look(Rank::Viewer, "/console/billing?status=rich").await.status(), 400);
}

#[tokio::test]
async fn d7_a_proof_is_kept_as_json_or_printed_with_no_script() {
    let (room, store) = room().await;
    let id =
        settle(&*store, &paid("o_1", 1200, &json!({ "receipt_email": "taro.yamada@example.com" }))).await;
    let kept = room.look(Rank::Viewer, &format!("/console/payments/{id}/proof.json")).await;
    let report: Value = serde_json::from_str(&kept.text).unwrap();
    assert_eq!((&report["passed"], &report["payment"]["id"]), (&true.into(), &id.as_str().into()));
    let name = kept.head.headers["content-disposition"].to_str().unwrap();
    assert_eq!(name, format!("attachment; filename=\"{id}-proof.json\""));
    let page = format!("/console/payments/{id}/proof.html");
    let printed =
        room.look(Rank::Viewer, &page).await.says(&["The evidence is consistent", "¥1,200", "pi_o_1"]);
    assert!(!printed.text.contains("<script") && !printed.text.contains("http://"), "nothing from elsewhere");
    assert!(
        printed.head.headers["content-security-policy"].to_str().unwrap().starts_with("default-src 'none'")
    );
    room.look_ja(Rank::Viewer, &page).await.says(&["決済証明書", "記録の整合性を確認しました"]);
    assert_eq!(room.look(Rank::Viewer, "/console/payments/pay_none/proof.html").await.status(), 404);
    assert!(!(kept.text + &printed.text).contains("taro.yamada"));
}

#[tokio::test]
async fn h3_what_a_provider_wrote_never_becomes_markup() {
    let (room, store) = room().await;
    let hostile = json!({
        "id": format!("pi_{HOSTILE}"), "object": "payment_intent", "status": "succeeded", "amount": 1200,
        "amount_received": 1200, "currency": "jpy", "description": HOSTILE,
        "metadata": { "order_id": HOSTILE, "customer_id": HOSTILE, "tenant_id": HOSTILE, "purpose": "balance" },
    });
    let paid = settle(&*store, &event(&format!("evt_{HOSTILE}"), "payment_intent.succeeded", hostile)).await;
    let declined = json!({
        "id": "ch_2", "object": "charge", "status": "failed", "amount": 5, "currency": "jpy", "captured": false,
        "failure_code": HOSTILE, "failure_message": HOSTILE, "receipt_url": HOSTILE,
        "metadata": { "order_id": "o_2" },
    });
    let failed = settle(&*store, &event("evt_2", "charge.failed", declined)).await;
    let mut billed = subscription(HOSTILE);
    billed["data"]["object"]["customer"] = format!("cus_{HOSTILE}").into();
    let billing = settle(&*store, &billed).await;
    let encoded: String = form_urlencoded::byte_serialize(HOSTILE.as_bytes()).collect();
    let in_path = encoded.replace('+', "%20");
    let pages = [
        "/console/payments".to_owned(),
        format!(
            "/console/payments?q={encoded}%20&tenant={encoded}&customer={encoded}&attention={encoded}&mode={encoded}"
        ),
        format!("/console/payments?tenant={encoded}&customer={encoded}&attention={encoded}&before={encoded}"),
        format!("/console/payments/{paid}"),
        format!("/console/payments/{failed}"),
        format!("/console/payments/{paid}/proof.html"),
        format!("/console/payments/{failed}/proof.html"),
        "/console/billing".to_owned(),
        format!("/console/billing?tenant={encoded}&attention={encoded}"),
        format!("/console/billing/{billing}"),
        "/console/balances".to_owned(),
        format!("/console/balances/{in_path}"),
        "/console/books".to_owned(),
    ];
    for path in pages {
        let seen = room.look(Rank::Operator, &path).await;
        assert!(matches!(seen.status(), 200 | 303), "{path}: {}", seen.text);
        assert!(!seen.text.contains("<script>") && !seen.text.contains("\"'>"), "{path}:\n{}", seen.text);
    }
    room.look(Rank::Operator, &format!("/console/payments/{paid}")).await.says(&["&#60;script&#62;"]);
}
