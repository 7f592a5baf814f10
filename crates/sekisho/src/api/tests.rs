mod books;
mod directory;
mod notifications;
mod schema;

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use http::response::Parts;
use http::{Request, StatusCode, header};
use sekisho_core::Secret;
use sekisho_store::Store;
use sekisho_store::memory::MemoryStore;
use serde_json::Value;
use tower::ServiceExt;

use super::endpoint::Success;
use super::{Auth, Endpoint, Method, endpoints};
use crate::attempts::Attempts;
use crate::checkpoint::rejection::Recorder;
use crate::config::{Config, Key, Scope};
use crate::engine::{self, Base};
use crate::env::Env;
use crate::jobs;
use crate::node::{Health, Node};
use crate::telemetry::{Metrics, Tracer};

const OWN: &str = "own-own-own-own-own";
const READER: &str = "reader-reader-reader";

async fn router() -> Router {
    router_of(Config::default(), Arc::new(MemoryStore::default())).await
}

async fn router_of(config: Config, store: Arc<dyn Store>) -> Router {
    let health = Arc::new(Health::default());
    let node = Arc::new(Node::join(Arc::clone(&store), Arc::clone(&health), Env::system()).await.unwrap());
    let reader = Key { name: "reader".into(), secret: Secret::new(READER), scope: Scope::Read };
    let config = Config { keys: vec![reader], ..config };
    let parts = engine::Parts { works: false, schedules: false };
    let metrics = Arc::new(Metrics::default());
    let attempts = Arc::new(Attempts::new(Env::system(), Arc::clone(&metrics), Recorder::default()));
    let base = Base { store: Arc::clone(&store), node, health, metrics, tracer: Arc::new(Tracer::off()) };
    let (engine, jobs) = jobs::open(&config, parts, base).unwrap();
    let auth = Auth::new(&config.keys, Some(&Secret::new(OWN)), Arc::clone(&store), attempts);
    super::router(super::ApiSettings::of(&config, jobs.reconciler()), Arc::new(auth), store, Some(engine))
}

async fn ask(method: &str, path: &str, key: &str, body: &str) -> (StatusCode, Value) {
    let (head, value) = send(&router().await, method, path, &[("authorization", key)], body).await;
    (head.status, value)
}

/// What is sent as `authorization` is a key.
async fn send(
    router: &Router,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (Parts, Value) {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        let bearer = if *name == "authorization" { "Bearer " } else { "" };
        request = request.header(*name, format!("{bearer}{value}"));
    }
    let request = request.body(Body::from(body.to_owned())).unwrap();
    let answer = router.clone().oneshot(request).await.unwrap();
    let (head, body) = answer.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let value: Value = serde_json::from_slice(&body).unwrap_or_else(|_| panic!("{method} {path}: {body:?}"));
    let kind = head.headers[header::CONTENT_TYPE].to_str().unwrap();
    let expected = if head.status.is_success() { "application/json" } else { "application/problem+json" };
    assert_eq!(kind, expected, "{method} {path}");
    schema::check_answer(method, path, head.status.as_u16(), &value);
    if !head.status.is_success() {
        assert_eq!(value["status"], head.status.as_u16());
        assert!(value["type"].as_str().unwrap().starts_with("urn:sekisho:problem:"));
    }
    (head, value)
}

#[tokio::test]
async fn h2_the_document_lists_exactly_the_routes() {
    let (status, document) = ask("GET", "/v1/openapi.json", "", "").await;
    assert_eq!((status, document["openapi"].as_str()), (StatusCode::OK, Some("3.1.0")));
    let listed: BTreeSet<_> = document["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(|method| (path.clone(), method.to_uppercase()))
        })
        .collect();
    let known: BTreeSet<_> =
        endpoints().map(|one| (one.path.to_owned(), one.method.name().to_owned())).collect();
    assert_eq!(listed, known);
    assert_eq!(endpoints().count(), known.len(), "each is there once");
    for (path, method) in listed {
        let (status, answer) = ask(&method, &filled(&path), OWN, "{}").await;
        assert_ne!(status, StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
        let nothing_there = answer["detail"].as_str().is_some_and(|detail| detail.contains("at this path"));
        assert!(!nothing_there, "{method} {path}: {answer}");
    }
}

#[tokio::test]
async fn h2_what_is_wrong_is_said_with_what_to_write_instead() {
    let cases = [
        ("GET", "/v1/events?limit=0", "", 400, "from 1 to 1000"),
        ("GET", "/v1/events?before=x", "", 400, "evt_ or msg_"),
        ("GET", "/v1/events?status=odd", "", 400, "received, success, failed or skipped"),
        ("GET", "/v1/events?since=yesterday", "", 400, "expected a time such as"),
        ("GET", "/v1/events?colour=red", "", 400, "known are: delivery, object, own"),
        ("GET", "/v1/events?source=a&source=b", "", 400, "twice"),
        ("GET", "/v1/dead-letters?event=7", "", 400, "evt_ and 13 characters"),
        ("GET", "/v1/dead-letters/7", "", 400, "not an id of ours"),
        ("GET", "/v1/dead-letters/msg_0000000000007", "", 404, "no dead letter"),
        ("GET", "/v1/events/evt_none", "", 404, "no event has the id evt_none"),
        ("GET", "/v1/messages/msg_0000000000007", "", 404, "no message"),
        ("GET", "/v1/counts?from=2026-01-01T00:00:00Z&to=2025-01-01T00:00:00Z", "", 400, "from before to"),
        ("POST", "/v1/dead-letters/retry", "", 400, "specify ids"),
        ("POST", "/v1/dead-letters/retry", "{", 400, "the JSON that is expected"),
        ("POST", "/v1/dead-letters/retry", r#"{"idz":[]}"#, 400, "unknown field `idz`"),
        ("POST", "/v1/dead-letters/discard", r#"{"all":true}"#, 400, "a reason is required"),
        ("POST", "/v1/events/replay", "{}", 400, "specify ids"),
        ("POST", "/v1/routes/nowhere/reset", "", 404, "there is no route nowhere"),
        ("GET", "/v1/nothing/here", "", 404, "/v1/openapi.json"),
        ("DELETE", "/v1/events", "", 405, "takes GET"),
        ("GET", "/v1/events/replay", "", 405, "takes POST"),
        ("DELETE", "/v1/payments", "", 405, "takes GET, POST"),
        ("GET", "/v1/payments?status=odd", "", 400, "status: expected unpaid"),
        ("GET", "/v1/payments?livemode=yes", "", 400, "livemode: expected true or false"),
        ("GET", "/v1/payments?before=evt_1", "", 400, "before: expected `next`"),
        ("GET", "/v1/payments?account=acct_1", "", 400, "account: says something only"),
        ("GET", "/v1/payments?reference=%00", "", 400, "reference: expected a text without control"),
        ("GET", "/v1/payments?reference=ORD-1&colour=red", "", 400, "colour: there is no such parameter"),
        ("GET", "/v1/payments/%00", "", 404, "control characters"),
        ("GET", "/v1/payments/pay_none", "", 404, "no payment has the id pay_none"),
        ("GET", "/v1/billing?status=odd", "", 400, "status: expected one of none, cancelled"),
        ("GET", "/v1/billing/nobody", "", 404, "the tenant nobody"),
        ("GET", "/v1/billing/nobody?livemode=1", "", 400, "livemode: expected true or false"),
        ("GET", "/v1/balances/nobody", "", 404, "there is no customer nobody"),
        ("GET", "/v1/tenants/nobody", "", 404, "there is no tenant nobody"),
        ("GET", "/v1/customers/nobody", "", 404, "there is no customer nobody"),
        ("DELETE", "/v1/tenants/nobody", "", 404, "there is no tenant nobody"),
        ("DELETE", "/v1/customers/nobody", "", 404, "there is no customer nobody"),
        ("DELETE", "/v1/billing/nobody", "", 404, "there is no billing of nobody"),
        ("GET", "/v1/staff/nobody", "", 404, "there is no staff member nobody"),
        ("GET", "/v1/staff?addresses=all", "", 400, "addresses: expected full"),
        ("DELETE", "/v1/staff/nobody", "", 404, "there is no staff member nobody"),
        ("DELETE", "/v1/staff", "", 405, "takes GET, POST"),
        ("GET", "/v1/subjects/nothing", "", 404, "there is no subject nothing"),
        ("DELETE", "/v1/subjects/nothing", "", 404, "there is no subject nothing"),
        ("POST", "/v1/import", "{}", 422, "kind: expected one of tenant, customer, staff, subject"),
        ("POST", "/v1/import", r#"{"kind":"staff","rows":[]}"#, 422, "rows: expected 1 to 1000 rows"),
        ("POST", "/v1/import", r#"{"kind":"staff","rows":[7]}"#, 400, "the JSON that is expected"),
        ("GET", "/v1/audit?before=x", "", 400, "before: expected `next`"),
        ("GET", "/v1/audit?since=yesterday", "", 400, "since: expected a time"),
        ("POST", "/v1/payments", "[]", 400, "the JSON that is expected"),
        ("POST", "/v1/keys", "{}", 422, "scopes: is needed"),
        ("POST", "/v1/keys", r#"{"scopes":["root"]}"#, 422, "scopes: \"root\" is none of"),
        ("POST", "/v1/keys", r#"{"scopes":[]}"#, 422, "scopes: expected a list"),
        ("POST", "/v1/keys", r#"{"scopes":["read"],"colour":1}"#, 422, "known are name, scopes, tenant"),
        ("POST", "/v1/keys/revoke", r#"{"key":"none"}"#, 404, "no key is named none"),
    ];
    for (method, path, body, status, words) in cases {
        let (found, answer) = ask(method, path, OWN, body).await;
        assert_eq!(found.as_u16(), status, "{method} {path} {body}: {answer}");
        assert!(answer["detail"].as_str().unwrap().contains(words), "{method} {path} {body}: {answer}");
    }
    let large = " ".repeat(super::BODY_BYTES_MAX + 1);
    assert_eq!(ask("POST", "/v1/events/replay", OWN, &large).await.0, StatusCode::PAYLOAD_TOO_LARGE);
}

fn is_of_orders(path: &str) -> bool {
    ["/v1/slots", "/v1/reservations", "/v1/fulfilments", "/v1/cases"].iter().any(|own| path.starts_with(own))
}

#[tokio::test]
async fn h2_a_key_must_be_known_and_wide_enough() {
    for endpoint in endpoints() {
        let path = filled(endpoint.path);
        let method = endpoint.method.name();
        let status = async |key| ask(method, &path, key, r#"{"all":true,"dry_run":true}"#).await.0;
        let expected = |scope: Scope| match endpoint.scope {
            Some(wanted) if scope < wanted => StatusCode::FORBIDDEN,
            _ if path.ends_with("/refunds") => StatusCode::UNPROCESSABLE_ENTITY,
            _ if path.ends_with("7/release") => StatusCode::BAD_REQUEST,
            _ if is_of_orders(&path) && method == "POST" => StatusCode::UNPROCESSABLE_ENTITY,
            _ if is_of_orders(&path) && endpoint.path.ends_with("{id}") => StatusCode::NOT_FOUND,
            _ if path.ends_with("/resend") => StatusCode::UNPROCESSABLE_ENTITY,
            _ if path.ends_with("/silence") => StatusCode::UNPROCESSABLE_ENTITY,
            _ if path == "/v1/reminders" => StatusCode::BAD_REQUEST,
            _ if path.contains("0007") || path.ends_with("/reset") => StatusCode::NOT_FOUND,
            _ if path.ends_with("/resume") => StatusCode::NOT_FOUND,
            _ if path.ends_with("/rank") => StatusCode::UNPROCESSABLE_ENTITY,
            _ if path.starts_with("/v1/users/app/") => StatusCode::NOT_FOUND,
            _ if creates(endpoint) => StatusCode::UNPROCESSABLE_ENTITY,
            _ if path == "/v1/import" => StatusCode::BAD_REQUEST,
            _ if path == "/v1/reconciliations" && method == "POST" => StatusCode::BAD_REQUEST,
            _ => StatusCode::OK,
        };
        for stranger in ["", "nobody-nobody-nobody"] {
            let refused = endpoint.scope.map_or(StatusCode::OK, |_| StatusCode::UNAUTHORIZED);
            assert_eq!(status(stranger).await, refused, "{method} {path}");
        }
        assert_eq!(status(READER).await, expected(Scope::Read), "{method} {path}");
        assert_eq!(status(OWN).await, expected(Scope::Admin), "{method} {path}");
    }
    let deletes: Vec<_> = endpoints().filter(|one| one.method == Method::Delete).collect();
    assert!(deletes.len() == 5 && deletes.iter().all(|one| one.scope >= Some(Scope::Write)));
    let writes: Vec<_> = endpoints().filter(|one| one.method == Method::Post).collect();
    assert!(writes.len() >= 4 && writes.iter().all(|one| one.scope >= Some(Scope::Write)));
    let only_write = writes.iter().filter(|one| one.scope == Some(Scope::Write)).map(|one| one.path);
    assert_eq!(
        only_write.collect::<Vec<_>>(),
        [
            "/v1/payments",
            "/v1/slots",
            "/v1/reservations",
            "/v1/reservations/{id}/extend",
            "/v1/reservations/{id}/cancel",
            "/v1/reservations/{id}/checkout",
            "/v1/fulfilments",
            "/v1/fulfilments/{id}/result",
            "/v1/tenants",
            "/v1/customers",
            "/v1/staff",
            "/v1/subjects",
            "/v1/import"
        ]
    );
}

/// A path with something where its braces are; nothing has that id.
fn filled(path: &str) -> String {
    let ids = ["{id}", "{tenant}", "{customer}"];
    let path = path.replace("{name}", "app").replace("{date}", "2026-11-16");
    ids.iter().fold(path, |path, id| path.replace(id, "msg_0000000000007"))
}

/// It needs fields that others have not.
fn creates(endpoint: &Endpoint) -> bool {
    let others = ["/v1/keys/revoke", "/v1/suppressions/release"];
    endpoint.success != Success::Done || others.contains(&endpoint.path)
}

/// A key of these scopes, made by command.
async fn made(router: &Router, scope: &str, tenant: Option<&str>) -> String {
    let order = serde_json::json!({ "scopes": [scope], "tenant": tenant }).to_string();
    let (head, made) = send(router, "POST", "/v1/keys", &[("authorization", OWN)], &order).await;
    assert_eq!(head.status, StatusCode::CREATED, "{made}");
    made["key"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn h2_only_admin_makes_keys_and_none_is_wider_than_its_maker() {
    let router = router().await;
    let ask = async |key: &str, method: &str, path: &str, body: &str| {
        send(&router, method, path, &[("authorization", key)], body).await.0.status.as_u16()
    };
    let new = |scope: &str| format!(r#"{{"scopes":["{scope}"]}}"#);
    let (operator, admin) = (made(&router, "operate", None).await, made(&router, "admin", None).await);
    for (method, path, body) in [
        ("GET", "/v1/keys", String::new()),
        ("POST", "/v1/keys", new("read")),
        ("POST", "/v1/keys/revoke", r#"{"key":"none"}"#.to_owned()),
    ] {
        assert_eq!(ask(&operator, method, path, &body).await, 403, "{method} {path}");
        assert_ne!(ask(&admin, method, path, &body).await, 403, "{method} {path}");
    }
    assert_eq!(ask(&admin, "POST", "/v1/keys", &new("admin")).await, 201);
    assert_eq!(
        ask(&admin, "POST", "/v1/keys", r#"{"scopes":["read"],"name":"reader"}"#).await,
        409,
        "configured"
    );
}

#[tokio::test]
async fn h2_who_deletes_a_tenant_could_have_revoked_its_keys() {
    let router = router().await;
    let ask = async |key: &str, method: &str, path: &str, body: &str| {
        send(&router, method, path, &[("authorization", key)], body).await.0.status.as_u16()
    };
    let (writer, operator) = (made(&router, "write", None).await, made(&router, "operate", None).await);
    for id in ["a", "b"] {
        let tenant = format!(r#"{{"id":"{id}"}}"#);
        assert_eq!(ask(&writer, "POST", "/v1/tenants", &tenant).await, 201);
    }
    let strong = made(&router, "operate", Some("a")).await;
    made(&router, "read", Some("b")).await;
    assert_eq!(ask(&writer, "DELETE", "/v1/tenants/a", "").await, 403);
    assert_eq!(ask(&strong, "GET", "/v1/payments", "").await, 200, "nothing was revoked");
    assert_eq!(ask(&writer, "DELETE", "/v1/tenants/b", "").await, 200, "its keys could do less");
    assert_eq!(ask(&operator, "DELETE", "/v1/tenants/a", "").await, 200);
    assert_eq!(ask(&strong, "GET", "/v1/payments", "").await, 401);
}
