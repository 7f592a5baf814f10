//! Orders and what they lead to, over a store in memory.

use axum::Router;
use http::response::Parts;
use serde_json::{Value, json};

use super::schema::check;
use super::{OWN, router, send};
use crate::config::Scope;
use crate::types;

pub async fn get(router: &Router, key: &str, path: &str) -> (u16, Value) {
    let (head, value) = send(router, "GET", path, &[("authorization", key)], "").await;
    (head.status.as_u16(), value)
}

pub async fn post(router: &Router, key: &str, path: &str, order: &Value) -> (u16, Value) {
    let (head, value) = send(router, "POST", path, &[("authorization", key)], &order.to_string()).await;
    (head.status.as_u16(), value)
}

pub async fn post_once(router: &Router, once: &str, path: &str, order: &Value) -> (Parts, Value) {
    let headers = [("authorization", OWN), ("idempotency-key", once)];
    send(router, "POST", path, &headers, &order.to_string()).await
}

/// A key that may write, for one tenant.
pub async fn key_of(router: &Router, tenant: &str) -> String {
    let order = json!({ "scopes": ["write"], "tenant": tenant });
    let (status, made) = post(router, OWN, "/v1/keys", &order).await;
    assert_eq!(status, 201, "{made}");
    check::<types::NewKeyAnswer>(&made);
    let name = format!("key-{}", made["hint"].as_str().unwrap());
    assert_eq!(made["name"], *name, "without a name it is called by its first letters");
    made["key"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn h2_what_is_wrong_with_an_order_is_said_field_by_field() {
    let router = router().await;
    let good = json!({ "amount": 1200, "currency": "jpy" });
    let with = |field: &str, value: Value| {
        let mut order = good.clone();
        order[field] = value;
        order
    };
    let many: Value =
        (0..51).map(|n| (format!("k{n}"), json!("v"))).collect::<serde_json::Map<_, _>>().into();
    let cases = [
        (json!({}), vec!["amount", "currency"]),
        (with("amount", json!(-1)), vec!["amount"]),
        (with("amount", json!(12.5)), vec!["amount"]),
        (with("amount", json!("1200")), vec!["amount"]),
        (with("amount", json!(0)), vec!["amount"]),
        (with("currency", json!("yen")), vec!["currency"]),
        (with("currency", json!("xxz")), vec!["currency"]),
        (with("colour", json!("red")), vec!["colour"]),
        (with("metadata", json!({ "note": "x".repeat(501) })), vec!["metadata.note"]),
        (with("metadata", many), vec!["metadata"]),
        (with("metadata", json!({ "n": 1 })), vec!["metadata.n"]),
        (with("tenant", json!("a/b")), vec!["tenant"]),
        (with("livemode", json!("yes")), vec!["livemode"]),
    ];
    for (order, fields) in cases {
        let (status, answer) = post(&router, OWN, "/v1/payments", &order).await;
        assert_eq!(status, 422, "{order}: {answer}");
        let named: Vec<_> = answer["errors"].as_array().unwrap().iter().map(|one| &one["field"]).collect();
        assert_eq!(named, fields, "{order}");
        check::<types::Problem>(&answer);
    }
    assert_eq!(get(&router, OWN, "/v1/payments").await.1["items"], json!([]), "nothing was kept");
    assert_eq!(post(&router, OWN, "/v1/tenants", &json!({})).await.1["errors"][0]["field"], "id");
    assert_eq!(post(&router, OWN, "/v1/customers", &json!({})).await.1["errors"][0]["field"], "id");
}

#[tokio::test]
async fn h2_an_order_is_carried_out_once_under_one_key() {
    let router = router().await;
    let orders = [
        ("/v1/payments", json!({ "amount": 1200, "currency": "jpy" }), "amount", json!(1300)),
        ("/v1/tenants", json!({ "id": "a", "name": "A" }), "name", json!("B")),
        ("/v1/customers", json!({ "id": "c", "name": "C" }), "name", json!("D")),
    ];
    for (path, order, field, other) in orders {
        let once = format!("once {path}");
        let (head, first) = post_once(&router, &once, path, &order).await;
        assert_eq!((head.status.as_u16(), head.headers.get("idempotent-replayed")), (201, None), "{first}");
        let (head, again) = post_once(&router, &once, path, &order).await;
        assert_eq!((head.status.as_u16(), &again), (201, &first));
        assert_eq!(head.headers["idempotent-replayed"], "true");
        let mut changed = order.clone();
        changed[field] = other;
        let (head, refused) = post_once(&router, &once, path, &changed).await;
        assert_eq!(head.status.as_u16(), 409, "{refused}");
        let listed = get(&router, OWN, path).await.1;
        assert_eq!(listed["items"].as_array().unwrap().len(), 1, "{listed}");
        let id = first["id"].as_str().unwrap();
        let (status, shown) = get(&router, OWN, &format!("{path}/{id}")).await;
        assert_eq!((status, &shown), (200, &listed["items"][0]));
    }
    let long = "x".repeat(256);
    for (once, words) in [("", "1 to 255"), (long.as_str(), "1 to 255"), ("鍵", "Idempotency-Key")] {
        let order = json!({ "amount": 1, "currency": "jpy" });
        let (head, refused) = post_once(&router, once, "/v1/payments", &order).await;
        assert_eq!(head.status.as_u16(), 400, "{once}");
        assert!(refused["detail"].as_str().unwrap().contains(words), "{once}: {refused}");
    }
}

#[tokio::test]
async fn h2_a_payment_is_found_by_our_id_and_by_its_reference() {
    let router = router().await;
    let order =
        json!({ "amount": 1200, "currency": "JPY", "reference": "ORD-1", "customer": "c", "tenant": "a" });
    let (status, made) = post(&router, OWN, "/v1/payments", &order).await;
    assert_eq!(status, 201, "{made}");
    check::<types::Payment>(&made);
    assert_eq!((&made["status"], &made["currency"]), (&json!("unpaid"), &json!("jpy")));
    let id = made["id"].as_str().unwrap();
    let count = async |query: &str| {
        let (status, page) = get(&router, OWN, &format!("/v1/payments?{query}")).await;
        assert_eq!(status, 200, "{query}: {page}");
        page["items"].as_array().unwrap().len()
    };
    for (query, found) in [
        (format!("reference={id}"), 1),
        ("reference=ORD-1".into(), 1),
        ("reference=ORD-1&status=unpaid".into(), 1),
        ("reference=ORD-1&status=paid".into(), 0),
        ("reference=ORD-1&tenant=b".into(), 0),
        ("reference=ORD-2".into(), 0),
        ("customer=c&tenant=a".into(), 1),
        ("customer=d".into(), 0),
        ("livemode=true".into(), 0),
        ("attention=".into(), 0),
    ] {
        assert_eq!(count(&query).await, found, "{query}");
    }
    let (status, refused) = post(&router, OWN, "/v1/payments", &order).await;
    assert_eq!(status, 409, "{refused}");
    assert!(refused["detail"].as_str().unwrap().contains(id));
}

#[tokio::test]
async fn h2_a_key_of_one_tenant_sees_nothing_of_another() {
    let router = router().await;
    let (a, b) = (key_of(&router, "a").await, key_of(&router, "b").await);
    let (status, customer) = post(&router, &a, "/v1/customers", &json!({ "id": "ann" })).await;
    assert_eq!((status, &customer["tenant"]), (201, &json!("a")), "what it makes is its tenant's");
    let order = json!({ "amount": 5, "currency": "jpy", "customer": "ann", "reference": "ORD-1" });
    let (status, payment) = post(&router, &a, "/v1/payments", &order).await;
    assert_eq!((status, &payment["tenant"]), (201, &json!("a")), "{payment}");
    let payment = format!("/v1/payments/{}", payment["id"].as_str().unwrap());

    for (path, own) in [(&*payment, 200), ("/v1/customers/ann", 200), ("/v1/balances/ann", 200)] {
        assert_eq!(get(&router, &a, path).await.0, own, "{path}");
        assert_eq!(get(&router, &b, path).await.0, 404, "{path}");
    }
    assert_eq!(get(&router, &b, "/v1/billing/a").await.0, 404);
    for path in ["/v1/payments", "/v1/payments?reference=ORD-1", "/v1/customers", "/v1/audit", "/v1/billing"]
    {
        let (status, page) = get(&router, &b, path).await;
        let of_others = page["items"].as_array().unwrap().iter().filter(|item| item["tenant"] != "b");
        assert_eq!((status, of_others.count()), (200, 0), "{path}");
        let asked = format!("{path}{}tenant=a", if path.contains('?') { '&' } else { '?' });
        let (status, refused) = get(&router, &b, &asked).await;
        assert_eq!((status, &refused["errors"][0]["field"]), (403, &json!("tenant")), "{asked}");
    }
    assert_eq!(get(&router, &a, "/v1/payments").await.1["items"].as_array().unwrap().len(), 1);
    assert_ne!(get(&router, &a, "/v1/audit").await.1["items"], json!([]));
    for (path, order, field) in [
        ("/v1/payments", json!({ "amount": 5, "currency": "jpy", "tenant": "a" }), "tenant"),
        ("/v1/customers", json!({ "id": "bob", "tenant": "a" }), "tenant"),
    ] {
        let (status, refused) = post(&router, &b, path, &order).await;
        assert_eq!((status, &refused["errors"][0]["field"]), (403, &json!(field)), "{path} {order}");
    }
}

#[tokio::test]
async fn d1_a_reference_is_its_tenants_and_one_order_holds_it_for_the_whole_installation() {
    let router = router().await;
    let (a, b) = (key_of(&router, "a").await, key_of(&router, "b").await);
    let order = |reference: &str, tenant: Option<&str>| {
        let mut order = json!({ "amount": 5, "currency": "jpy", "reference": reference });
        if let Some(tenant) = tenant {
            order["tenant"] = tenant.into();
        }
        order
    };
    let (status, taken) = post(&router, OWN, "/v1/payments", &order("T", Some("a"))).await;
    assert_eq!(status, 201, "{taken}");
    for tenant in [Some("a"), Some("b"), None] {
        let (status, refused) = post(&router, OWN, "/v1/payments", &order("T", tenant)).await;
        assert_eq!(status, 409, "for {tenant:?}: {refused}");
    }
    let (status, refused) = post(&router, &a, "/v1/payments", &order("T", None)).await;
    assert_eq!(status, 409, "the tenant has this order already: {refused}");

    // A foreign reference and a free one are answered alike.
    let plain = |mut made: Value| {
        for own in ["id", "created_at", "changed_at", "reference", "references"] {
            made.as_object_mut().unwrap().remove(own);
        }
        made
    };
    let (status, free) = post(&router, &b, "/v1/payments", &order("free", None)).await;
    assert_eq!(status, 201, "{free}");
    let (status, foreign) = post(&router, &b, "/v1/payments", &order("T", None)).await;
    assert_eq!((status, plain(foreign)), (201, plain(free)));
}

#[tokio::test]
async fn h2_a_key_of_one_tenant_opens_nothing_that_shows_all() {
    let router = router().await;
    let own = key_of(&router, "a").await;
    let operator = json!({ "scopes": ["operate"], "tenant": "a", "name": "operator" });
    let operator = post(&router, OWN, "/v1/keys", &operator).await.1["key"].as_str().unwrap().to_owned();
    for endpoint in crate::api::endpoints().filter(|one| one.scope.is_some()) {
        let (method, path) = (endpoint.method.name(), super::filled(endpoint.path));
        let (head, answer) = send(&router, method, &path, &[("authorization", &operator)], "{}").await;
        let is_refused = head.status.as_u16() == 403;
        assert_eq!(is_refused, !endpoint.for_tenants, "{method} {path}: {answer}");
        let words =
            if endpoint.scope == Some(Scope::Admin) { "lacks the scope admin" } else { "the tenant a;" };
        assert!(!is_refused || answer["detail"].as_str().unwrap().contains(words), "{answer}");
    }
    // The same id is another's customer, and has another balance.
    let order = json!({ "amount": 5, "currency": "jpy", "customer": "carl", "tenant": "b" });
    assert_eq!(post(&router, OWN, "/v1/payments", &order).await.0, 201);
    assert_eq!(get(&router, &own, "/v1/balances/carl").await.0, 404);
    assert_eq!(post(&router, &own, "/v1/customers", &json!({ "id": "carl" })).await.0, 201);
    assert_eq!(get(&router, &own, "/v1/balances/carl").await.1["tenant"], "a");
    assert_eq!(get(&router, OWN, "/v1/balances/carl").await.1["tenant"], "a", "the only one that is known");
    assert_eq!(get(&router, OWN, "/v1/balances/carl?tenant=b").await.0, 404);
    assert_eq!(get(&router, &own, "/v1/balances/carl?tenant=b").await.0, 403);
}

#[tokio::test]
async fn h2_a_key_is_shown_once_and_gone_the_moment_it_is_revoked() {
    let router = router().await;
    let order = json!({ "name": "shop", "scopes": ["read", "write"] });
    let (status, made) = post(&router, OWN, "/v1/keys", &order).await;
    assert_eq!(status, 201, "{made}");
    let secret = made["key"].as_str().unwrap().to_owned();
    assert_eq!(post(&router, OWN, "/v1/keys", &order).await.0, 409, "a name is somebody's");
    assert_eq!(get(&router, &secret, "/v1/payments").await.0, 200);
    assert_eq!(get(&router, &secret, "/v1/keys").await.0, 403);
    let listed = get(&router, OWN, "/v1/keys").await.1;
    check::<types::List<types::ApiKey>>(&listed);
    assert!(!listed.to_string().contains(&secret));
    let (status, revoked) = post(&router, OWN, "/v1/keys/revoke", &json!({ "key": "shop" })).await;
    assert_eq!(status, 200);
    check::<types::ApiKey>(&revoked);
    assert!(revoked["revoked_at"].is_string());
    assert_eq!(get(&router, &secret, "/v1/payments").await.0, 401);
    assert_eq!(post(&router, OWN, "/v1/keys/revoke", &json!({ "key": "shop" })).await.0, 404);
    let audit = get(&router, OWN, "/v1/audit?action=api_key.*").await.1;
    assert_eq!(audit["items"].as_array().unwrap().len(), 2, "{audit}");
    assert!(!audit.to_string().contains(&secret));
}

async fn delete(router: &Router, key: &str, path: &str) -> (u16, Value) {
    let (head, value) = send(router, "DELETE", path, &[("authorization", key)], "").await;
    (head.status.as_u16(), value)
}

#[tokio::test]
async fn d8_what_is_deleted_is_gone_and_what_led_there_leads_nowhere() {
    let router = router().await;
    let order = json!({ "amount": 500, "currency": "jpy", "tenant": "office", "customer": "c1" });
    let payment = post(&router, OWN, "/v1/payments", &order).await.1;
    let path = format!("/v1/payments/{}", payment["id"].as_str().unwrap());
    assert_eq!(post(&router, OWN, "/v1/tenants", &json!({ "id": "office" })).await.0, 201);
    let customer = json!({ "id": "c1", "tenant": "office", "name": "Mika" });
    assert_eq!(post(&router, OWN, "/v1/customers", &customer).await.0, 201);

    let stranger = key_of(&router, "shop").await;
    assert_eq!(delete(&router, &stranger, "/v1/customers/c1").await.0, 404, "another's");
    assert_eq!(delete(&router, &stranger, "/v1/tenants/office").await.0, 403);
    for (thing, link) in [("/v1/customers/c1", "customer"), ("/v1/tenants/office", "tenant")] {
        assert!(get(&router, OWN, &path).await.1[link].is_string());
        let (status, deleted) = delete(&router, OWN, thing).await;
        assert_eq!((status, &deleted["deleted"]), (200, &json!(true)), "{deleted}");
        check::<types::Deleted>(&deleted);
        assert_eq!(delete(&router, OWN, thing).await.0, 404, "once");
        assert_eq!(get(&router, OWN, thing).await.0, 404);
        let list = thing.rsplit_once('/').unwrap().0;
        assert_eq!(get(&router, OWN, list).await.1["items"], json!([]));
        let shown = get(&router, OWN, &path).await.1;
        assert_eq!((&shown[link], &shown["amount"]), (&Value::Null, &json!(500)));
        assert_eq!(get(&router, OWN, "/v1/payments").await.1["items"][0], shown);
    }
    let of_tenant = get(&router, OWN, "/v1/audit?tenant=office").await.1;
    let actions: Vec<_> = of_tenant["items"].as_array().unwrap().iter().map(|one| &one["action"]).collect();
    assert_eq!(actions[..2], ["tenant.deleted", "customer.deleted"]);
    assert_eq!(of_tenant["items"][0]["tenant"], "office", "the log is never touched");

    assert_eq!(post(&router, OWN, "/v1/tenants", &json!({ "id": "office" })).await.0, 201);
    assert_eq!(get(&router, OWN, &path).await.1["tenant"], "office", "made anew, it is there again");
}
