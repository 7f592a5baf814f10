use sekisho_core::Time;
use sekisho_core::audit::{Entry, Role};
use sekisho_core::change::ChangeSet;
use sekisho_core::state::{Index, Key, Kind, Naming, Write};
use sekisho_store::AuditFilter;
use sekisho_store::memory::MemoryStore;
use serde_json::{Map, json};

use super::{Actor, Refusal, Register, Result, Store, Value, delete_billing, delete_member};
use crate::acts::{self, create_member};
use crate::types::{About, Owner};
use crate::view::find_member;
use crate::{queries, view};

const NOW: Time = Time::from_ms(1_780_000_000_000);
const ACTOR: Actor<'static> = Actor { name: "tomo", role: Role::Operator, tenant: None, at: NOW };

fn order(fields: Value) -> Map<String, Value> {
    serde_json::from_value(fields).unwrap()
}

fn missing(deleted: Result<Value>) -> String {
    match deleted {
        Err(Refusal::Missing(message)) => message,
        other => panic!("{other:?}"),
    }
}

async fn newest(store: &MemoryStore) -> Entry {
    let filter = AuditFilter { limit: 1, ..AuditFilter::default() };
    store.find_audit(filter).await.unwrap().entries.remove(0).entry
}

#[tokio::test]
async fn d8_a_deleted_member_is_gone_and_can_be_made_anew() {
    let store = MemoryStore::default();
    create_member(
        &store,
        Register::Tenants,
        order(json!({ "id": "office", "name": "Office" })),
        None,
        &ACTOR,
    )
    .await
    .unwrap();
    let customer = json!({ "id": "c1", "tenant": "office", "name": "Mika" });
    create_member(&store, Register::Customers, order(customer), None, &ACTOR).await.unwrap();

    let other = Actor { tenant: Some("shop"), ..ACTOR };
    assert!(
        missing(delete_member(&store, Register::Customers, None, "c1", &other).await)
            .contains("no customer c1")
    );
    let deleted = delete_member(&store, Register::Customers, None, "c1", &ACTOR).await.unwrap();
    assert_eq!(deleted, json!({ "id": "c1", "object": "customer", "deleted": true, "was": null }));
    let entry = newest(&store).await;
    assert_eq!((entry.actor.as_deref(), entry.role.as_deref()), (Some("tomo"), Some("operator")));
    assert_eq!((&*entry.action, entry.tenant.as_deref()), ("customer.deleted", Some("office")));
    assert!(!entry.details.contains("Mika"), "{}", entry.details);
    assert!(
        missing(delete_member(&store, Register::Customers, None, "c1", &ACTOR).await)
            .contains("no customer c1")
    );
    assert_eq!(find_member(&store, Register::Customers, None, "c1", view::member).await.unwrap(), None);
    let key = Register::Customers.key(Some("office"), "c1");
    let kept = store.load(Vec::new(), vec![key.clone()]).await.unwrap().states.remove(&key).unwrap();
    assert_eq!(kept.facts, r#"{"deleted":{"at":"2026-05-28T20:26:40.000Z","by":"tomo"}}"#);

    delete_member(&store, Register::Tenants, None, "office", &ACTOR).await.unwrap();
    let text = |text: &str| Some(text.to_owned());
    let mut owner = Owner { tenant: text("office"), customer: text("c1") };
    view::unlink(&store, [&mut owner]).await.unwrap();
    assert_eq!(owner, Owner { tenant: None, customer: None });
    let mut about = About { payment: text("pay_1"), tenant: text("office"), billing: text("b") };
    view::unlink(&store, [&mut about]).await.unwrap();
    assert_eq!(about, About { payment: text("pay_1"), tenant: None, billing: text("b") });

    // Another's: nothing of before is in the way.
    create_member(&store, Register::Customers, order(json!({ "id": "c1" })), None, &other).await.unwrap();
    assert_eq!(newest(&store).await.action, "customer.created");
    let made = find_member(&store, Register::Customers, None, "c1", view::member).await.unwrap().unwrap();
    let made = json!(made);
    assert_eq!((&made["tenant"], &made["name"]), (&json!("shop"), &Value::Null));
}

async fn keep_billing(store: &MemoryStore, id: &str, livemode: bool) {
    let mode = if livemode { "live" } else { "test" };
    let key = Key::new(Kind::Billing, id);
    let facts = json!({
        "livemode": livemode,
        "tenants": ["office"],
        "subscriptions": { "sub_1": { "newest": {
            "ended": false, "at": 1, "by": 0, "status": "active", "period_start": null, "period_end": null,
            "trial_end": null, "cancel_at": null, "ended_at": null,
        } } },
    });
    let index = Index {
        status: Some("active".into()),
        tenant: Some("office".into()),
        livemode: Some(livemode),
        ..Index::default()
    };
    let names = vec![Naming { name: format!("b:{mode}/billing/office"), key: key.clone(), was: None }];
    let writes = vec![Write { key, version: 0, facts: facts.to_string(), index }];
    store.commit(vec![ChangeSet { writes, names, ..ChangeSet::nothing(NOW) }]).await.unwrap();
}

#[tokio::test]
async fn d8_billing_is_deleted_by_its_tenant_or_its_id() {
    let store = MemoryStore::default();
    keep_billing(&store, "bil_1", true).await;
    keep_billing(&store, "bil_2", false).await;
    let both = delete_billing(&store, "office", None, &ACTOR).await;
    assert!(matches!(both, Err(Refusal::Conflict(message)) if message.contains("both modes")));
    let deleted = delete_billing(&store, "office", Some(true), &ACTOR).await.unwrap();
    assert_eq!((&deleted["id"], &deleted["was"]), (&json!("bil_1"), &json!("active")));
    let entry = newest(&store).await;
    assert_eq!((&*entry.action, &*entry.target.1), ("billing.deleted", "bil_1"));
    assert!(entry.details.contains(r#""status":"active""#), "{}", entry.details);
    assert_eq!(queries::billing_state(&store, "office", Some(true)).await.unwrap(), None);
    let other = queries::billing_state(&store, "office", None).await.unwrap().unwrap();
    assert_eq!(other.key.id, "bil_2");
    assert!(missing(delete_billing(&store, "bil_1", None, &ACTOR).await).contains("bil_1"));
    delete_billing(&store, "bil_2", None, &ACTOR).await.unwrap();
    assert_eq!(queries::billing_state(&store, "office", None).await.unwrap(), None);
}

#[tokio::test]
async fn d8_whoever_gets_a_tenants_id_next_finds_nobody_of_the_one_before() {
    let store = MemoryStore::default();
    let enter = async |register, fields: Value| {
        create_member(&store, register, order(fields), None, &ACTOR).await.unwrap();
    };
    enter(Register::Tenants, json!({ "id": "a" })).await;
    enter(Register::Customers, json!({ "id": "c1", "tenant": "a", "email": "ann@example.jp" })).await;
    enter(Register::Customers, json!({ "id": "c1", "email": "nobodys@example.jp" })).await;
    enter(Register::Staff, json!({ "id": "s1", "tenant": "a", "email": "taro@example.jp" })).await;
    enter(Register::Subjects, json!({ "id": "k1", "tenant": "a", "name": "Sato" })).await;
    let scopes = vec![crate::config::Scope::Write];
    let key = acts::create_key(
        &store,
        acts::NewKey { name: Some("app".into()), scopes, tenant: Some("a".into()) },
        &[],
        &ACTOR,
    )
    .await
    .unwrap();
    delete_member(&store, Register::Tenants, None, "a", &ACTOR).await.unwrap();
    enter(Register::Tenants, json!({ "id": "a", "name": "Somebody else" })).await;
    assert_eq!(find_member(&store, Register::Customers, Some("a"), "c1", view::member).await.unwrap(), None);
    assert!(find_member(&store, Register::Customers, None, "c1", view::member).await.unwrap().is_some());
    assert_eq!(find_member(&store, Register::Staff, None, "s1", view::member).await.unwrap(), None);
    assert_eq!(find_member(&store, Register::Subjects, None, "k1", view::member).await.unwrap(), None);
    assert!(queries::find_key(&store, key.secret.expose()).await.unwrap().is_none());
}
