//! Tenants, customers, staff and subjects, over a store in memory.

use axum::Router;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::books::{get, key_of, post, post_once};
use super::schema::check;
use super::{OWN, READER, router, send};
use crate::types::{Customer, Dated, Deleted, Page, Staff, Subject, Tenant};

async fn delete(router: &Router, key: &str, path: &str) -> (u16, Value) {
    let (head, value) = send(router, "DELETE", path, &[("authorization", key)], "").await;
    (head.status.as_u16(), value)
}

/// One of each, of the tenant `a`; and a tenant `b`.
async fn filled() -> Router {
    let router = router().await;
    let taro = "taro@example.jp";
    for (path, order) in [
        ("/v1/tenants", json!({ "id": "a", "name": "A", "language": "ja", "time_zone": "Asia/Tokyo" })),
        ("/v1/tenants", json!({ "id": "b" })),
        ("/v1/customers", json!({ "id": "c", "tenant": "a", "email": taro, "language": "en" })),
        ("/v1/staff", json!({ "id": "s", "tenant": "a", "family_name": "山田", "email": taro })),
        ("/v1/subjects", json!({ "id": "x", "tenant": "a", "name": "X", "renewal_due_on": "2026-04-01" })),
    ] {
        let (status, answer) = post(&router, OWN, path, &order).await;
        assert_eq!(status, 201, "{path}: {answer}");
        assert!(!answer.to_string().contains(taro), "{answer}");
    }
    router
}

fn reader<T: Serialize + DeserializeOwned>() -> fn(&Value) {
    |value| {
        check::<T>(value);
    }
}

#[tokio::test]
async fn h2_what_is_shown_of_the_directory_has_the_fields_that_the_document_names() {
    let router = filled().await;
    for (path, id, read, read_page) in [
        ("/v1/tenants", "a", reader::<Dated<Tenant>>(), reader::<Page<Dated<Tenant>>>()),
        ("/v1/customers", "c", reader::<Dated<Customer>>(), reader::<Page<Dated<Customer>>>()),
        ("/v1/staff", "s", reader::<Dated<Staff>>(), reader::<Page<Dated<Staff>>>()),
        ("/v1/subjects", "x", reader::<Dated<Subject>>(), reader::<Page<Dated<Subject>>>()),
    ] {
        let (status, shown) = get(&router, OWN, &format!("{path}/{id}")).await;
        assert_eq!(status, 200, "{shown}");
        read(&shown);
        let (_, list) = get(&router, OWN, path).await;
        read_page(&list);
        assert!(list["items"].as_array().unwrap().contains(&shown));
        let again = post(&router, OWN, path, &json!({ "id": id, "tenant": "a", "colour": 1 })).await;
        assert_eq!(again.0, 422, "{path}");
    }
    let (_, tenant) = get(&router, OWN, "/v1/tenants/a").await;
    assert_eq!((&tenant["language"], &tenant["time_zone"]), (&json!("ja"), &json!("Asia/Tokyo")));
}

#[tokio::test]
async fn g5_an_address_is_masked_unless_a_key_that_may_write_asks_for_all_of_it() {
    let router = filled().await;
    for path in ["/v1/customers", "/v1/staff", "/v1/customers/c", "/v1/staff/s"] {
        for key in [OWN, READER] {
            let shown = get(&router, key, path).await.1.to_string();
            assert!(shown.contains("t***@example.jp") && !shown.contains("taro"), "{path}: {shown}");
        }
        let full = format!("{path}?addresses=full");
        let (status, shown) = get(&router, OWN, &full).await;
        assert!(status == 200 && shown.to_string().contains("taro@example.jp"), "{path}: {shown}");
        let (status, refused) = get(&router, READER, &full).await;
        assert_eq!(status, 403, "{path}");
        assert!(refused["detail"].as_str().unwrap().contains("lacks the scope write"), "{refused}");
    }
    let audit = get(&router, OWN, "/v1/audit").await.1.to_string();
    assert!(audit.contains("t***@example.jp") && !audit.contains("taro"), "{audit}");
}

#[tokio::test]
async fn h2_a_key_of_one_tenant_has_only_its_own_staff_and_subjects() {
    let router = filled().await;
    let (a, b) = (key_of(&router, "a").await, key_of(&router, "b").await);
    for (list, id) in [("/v1/staff", "s"), ("/v1/subjects", "x")] {
        let path = format!("{list}/{id}");
        assert_eq!(get(&router, &a, &path).await.0, 200);
        assert_eq!(get(&router, &b, &path).await.0, 404);
        assert_eq!(get(&router, &b, list).await.1["items"], json!([]));
        assert_eq!(get(&router, &b, &format!("{list}?tenant=a")).await.0, 403);
        assert_eq!(delete(&router, &b, &path).await.0, 404);
        let order = json!({ "id": id, "name": "Y", "email": "y@example.jp" });
        let mut order = order.as_object().unwrap().clone();
        order.remove(if list == "/v1/staff" { "name" } else { "email" });
        let (status, made) = post(&router, &b, list, &order.clone().into()).await;
        assert_eq!((status, &made["id"], &made["tenant"]), (201, &json!(id), &json!("b")), "{made}");
        order.insert("tenant".into(), json!("a"));
        let (status, refused) = post(&router, &b, list, &order.into()).await;
        assert_eq!((status, &refused["errors"][0]["field"]), (403, &json!("tenant")), "{refused}");
        let (status, several) = get(&router, OWN, &path).await;
        assert_eq!(status, 409, "{several}");
        assert!(several["detail"].as_str().unwrap().contains(": a, b; specify `tenant`"), "{several}");
        assert_eq!(get(&router, OWN, &format!("{path}?tenant=b")).await.1["tenant"], "b");
        assert_eq!(delete(&router, OWN, &path).await.0, 409);
        let (status, gone) = delete(&router, &a, &path).await;
        assert_eq!(status, 200, "{gone}");
        check::<Deleted>(&gone);
        assert_eq!(get(&router, &a, &path).await.0, 404);
        assert_eq!(get(&router, &b, &path).await.0, 200);
        assert_eq!(delete(&router, OWN, &format!("{path}?tenant=b")).await.0, 200);
        assert_eq!(get(&router, OWN, list).await.1["items"], json!([]));
    }
    let order = json!({ "id": "s", "tenant": "nobody", "email": "s@example.jp" });
    let (status, refused) = post(&router, OWN, "/v1/staff", &order).await;
    assert_eq!((status, &refused["errors"][0]["field"]), (422, &json!("tenant")));
    assert_eq!(refused["errors"][0]["detail"], "there is no tenant nobody; create it first");
}

#[tokio::test]
async fn h2_staff_is_entered_once_under_one_key_and_listed_page_by_page() {
    let router = filled().await;
    let order = |id: &str| json!({ "id": id, "tenant": "b", "email": "t@example.jp" });
    let (_, first) = post_once(&router, "one", "/v1/staff", &order("t1")).await;
    let (head, again) = post_once(&router, "one", "/v1/staff", &order("t1")).await;
    assert_eq!((&again, head.headers["idempotent-replayed"].to_str().unwrap()), (&first, "true"));
    assert_eq!(post_once(&router, "one", "/v1/staff", &order("t2")).await.0.status.as_u16(), 409);
    for id in ["t2", "t3", "t4"] {
        assert_eq!(post(&router, OWN, "/v1/staff", &order(id)).await.0, 201);
    }
    delete(&router, OWN, "/v1/staff/t3").await;
    let (mut path, mut found) = ("/v1/staff?limit=2".to_owned(), Vec::new());
    for _ in 0..3 {
        let (_, page) = get(&router, OWN, &path).await;
        found.extend(page["items"].as_array().unwrap().iter().map(|item| item["id"].clone()));
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/v1/staff?limit=2&before={next}");
    }
    assert_eq!(found, ["t4", "t2", "t1", "s"], "what was deleted is left out");
    let (_, of_a) = get(&router, OWN, "/v1/staff?tenant=a").await;
    assert_eq!(of_a["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn h2_an_import_says_what_is_wrong_with_each_row() {
    let router = filled().await;
    let mut order = json!({ "kind": "subject", "rows": [
        { "id": "x", "tenant": "a", "name": "X", "renewal_due_on": "2026-04-01" },
        { "id": "y", "tenant": "a", "name": "Y", "assessment_due_on": "2026-02-30" },
    ] });
    let (status, refused) = post(&router, OWN, "/v1/import", &order).await;
    assert_eq!((status, &refused["errors"][0]["field"]), (422, &json!("rows[1].assessment_due_on")));
    order["rows"][1]["assessment_due_on"] = json!("2026-02-28");
    let (status, done) = post(&router, OWN, "/v1/import", &order).await;
    assert_eq!((status, &done), (200, &json!({ "new": 1, "changed": 0, "unchanged": 1 })));
    assert_eq!(post(&router, READER, "/v1/import", &order).await.0, 403);
}
