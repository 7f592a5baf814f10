use sekisho_core::Time;
use sekisho_core::audit::{Entry, Role};
use sekisho_store::memory::MemoryStore;
use sekisho_store::{AuditFilter, FIND_MAX};
use serde_json::json;

use super::{Actor, Map, Refusal, Register, Result, Store, Value, create_member};
use crate::acts::delete_member;
use crate::view;

const ACTOR: Actor<'static> =
    Actor { name: "tomo", role: Role::Operator, tenant: None, at: Time::from_ms(1_780_000_000_000) };
const OF_A: Actor<'static> = Actor { tenant: Some("a"), ..ACTOR };

fn order(value: Value) -> Map<String, Value> {
    serde_json::from_value(value).unwrap()
}

/// Two tenants, and nobody else.
async fn store() -> MemoryStore {
    let store = MemoryStore::default();
    for id in ["a", "b"] {
        create_member(&store, Register::Tenants, order(json!({ "id": id })), None, &ACTOR).await.unwrap();
    }
    store
}

async fn enter(store: &MemoryStore, staff: Value, actor: &Actor<'_>) -> Result<Value> {
    Ok(create_member(store, Register::Staff, order(staff), None, actor).await?.answer)
}

/// The fields that a refusal names, and all it says.
fn named<T>(result: Result<T>) -> (Vec<String>, String) {
    match result {
        Err(Refusal::Fields(errors)) => {
            let said = Refusal::Fields(errors.clone()).to_string();
            (errors.into_iter().map(|error| error.field).collect(), said)
        }
        Err(Refusal::Forbidden(error)) => (vec![error.field.clone()], error.to_string()),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was not refused"),
    }
}

async fn audited(store: &MemoryStore) -> Vec<Entry> {
    let filter = AuditFilter { limit: FIND_MAX, ..AuditFilter::default() };
    store.find_audit(filter).await.unwrap().entries.into_iter().map(|one| one.entry).collect()
}

#[tokio::test]
async fn g4_what_is_wrong_with_one_of_the_directory_is_said_field_by_field() {
    let store = store().await;
    let good = json!({ "id": "s", "tenant": "a", "email": "t@example.jp" });
    let with = |field: &str, value: Value| {
        let mut staff = good.clone();
        staff[field] = value;
        staff
    };
    for (staff, fields, words) in [
        (json!({}), vec!["id", "tenant", "email"], "is needed"),
        (with("email", json!("taro at example")), vec!["email"], "expected one such as taro@example.jp"),
        (with("language", json!("fr")), vec!["language"], "expected ja or en"),
        (with("notifications", json!("on")), vec!["notifications"], "expected true or false"),
        (with("threshold_days", json!(366)), vec!["threshold_days"], "from 0 to 365"),
        (with("threshold_days", json!(-1)), vec!["threshold_days"], "from 0 to 365"),
        (with("threshold_days", json!(1.5)), vec!["threshold_days"], "from 0 to 365"),
        (with("family_name", json!("x".repeat(101))), vec!["family_name"], "at most 100"),
        (with("tenant", json!("c")), vec!["tenant"], "there is no tenant c; create it first"),
        (with("colour", json!(1)), vec!["colour"], "known are id, tenant, family_name"),
    ] {
        let (found, said) = named(enter(&store, staff.clone(), &ACTOR).await);
        assert_eq!(found, fields, "{staff}");
        assert!(said.contains(words), "{staff}: {said}");
        assert!(!said.contains("taro at"), "{said}");
    }
    let subject = |on: &str| order(json!({ "id": "x", "tenant": "a", "name": "X", "renewal_due_on": on }));
    for bad in ["2026-02-30", "2026/02/28", "tomorrow"] {
        let (fields, said) =
            named(create_member(&store, Register::Subjects, subject(bad), None, &ACTOR).await);
        assert_eq!(fields, ["renewal_due_on"]);
        assert!(said.contains(bad) && said.contains("expected YYYY-MM-DD"), "{said}");
    }
    let nowhere = order(json!({ "id": "c", "time_zone": "Asia/Edo" }));
    let (fields, said) = named(create_member(&store, Register::Tenants, nowhere, None, &ACTOR).await);
    assert_eq!(fields, ["time_zone"]);
    assert!(said.contains("Asia/Tokyo"), "{said}");
    assert_eq!(audited(&store).await.len(), 2, "only the tenants");
}

#[tokio::test]
async fn h2_who_is_said_anew_is_replaced_as_a_whole() {
    let store = store().await;
    let first = json!({
        "id": "s", "tenant": "a", "family_name": "山田", "given_name": "太郎", "email": "T@Example.JP",
        "language": "en", "notifications": false, "threshold_days": 7,
    });
    let answer = enter(&store, first, &ACTOR).await.unwrap();
    assert_eq!(answer["name"], "山田 太郎");
    assert_eq!(answer["email"], "t***@example.jp");
    let then = enter(&store, json!({ "id": "s", "tenant": "a", "email": "t@example.jp" }), &ACTOR).await;
    let expected = json!({
        "id": "s", "object": "staff", "tenant": "a", "name": null, "family_name": null, "given_name": null,
        "email": "t***@example.jp", "language": null, "notifications": true, "threshold_days": 30,
    });
    assert_eq!(then.unwrap(), expected);
    let shown = view::find_member(&store, Register::Staff, None, "s", view::member).await.unwrap().unwrap();
    assert_eq!(json!(shown)["threshold_days"], 30);
}

#[tokio::test]
async fn h2_what_changes_nothing_is_not_written_and_not_audited() {
    let store = store().await;
    let staff = json!({ "id": "s", "tenant": "a", "email": "t@example.jp" });
    enter(&store, staff.clone(), &ACTOR).await.unwrap();
    enter(&store, staff.clone(), &ACTOR).await.unwrap();
    let capitals = json!({ "id": "s", "tenant": "a", "email": "T@EXAMPLE.JP", "threshold_days": 30 });
    enter(&store, capitals, &ACTOR).await.unwrap();
    let other = json!({ "id": "s", "tenant": "a", "email": "u@example.jp" });
    enter(&store, other, &ACTOR).await.unwrap();
    let audit = audited(&store).await;
    let actions: Vec<_> = audit.iter().map(|entry| &*entry.action).collect();
    assert_eq!(actions, ["staff.changed", "staff.created", "tenant.created", "tenant.created"]);
    assert_eq!(audit[0].tenant.as_deref(), Some("a"));
    assert!(audit[0].details.contains("u***@example.jp"), "{}", audit[0].details);
}

#[tokio::test]
async fn h2_an_id_is_its_tenants_and_two_tenants_may_use_the_same() {
    let of_b = Actor { tenant: Some("b"), ..ACTOR };
    let of = |tenant: &str, email: &str| json!({ "id": "s", "tenant": tenant, "email": email });
    // Whoever is first.
    for (one, two) in [((&OF_A, "a"), (&of_b, "b")), ((&of_b, "b"), (&OF_A, "a"))] {
        let store = store().await;
        let (fields, _) = named(enter(&store, of(two.1, "x@example.jp"), one.0).await);
        assert_eq!(fields, ["tenant"], "a key of one tenant enters nobody for another");
        for (actor, tenant) in [one, two] {
            let own = json!({ "id": "s", "email": format!("{tenant}@example.jp") });
            assert_eq!(
                enter(&store, own, actor).await.unwrap()["tenant"],
                tenant,
                "it need not name its own"
            );
        }
        let shown = async |tenant| {
            let found = view::find_member(&store, Register::Staff, tenant, "s", view::member_for(true)).await;
            found.map(|found| found.map(|found| json!(found)["email"].clone()))
        };
        assert_eq!(shown(Some("a")).await.unwrap(), Some(json!("a@example.jp")));
        assert_eq!(shown(Some("b")).await.unwrap(), Some(json!("b@example.jp")));
        assert_eq!(shown(Some("c")).await.unwrap(), None);
        let Err(Refusal::Conflict(asked)) = shown(None).await else { panic!("whose is not asked") };
        assert!(asked.contains("several tenants have a staff member s: a, b; specify `tenant`"), "{asked}");
        let asked = delete_member(&store, Register::Staff, None, "s", &ACTOR).await;
        assert!(matches!(asked, Err(Refusal::Conflict(_))), "{asked:?}");
        let foreign = delete_member(&store, Register::Staff, Some(two.1), "s", one.0).await;
        assert!(matches!(foreign, Err(Refusal::Forbidden(_))), "{foreign:?}");
        delete_member(&store, Register::Staff, None, "s", one.0).await.unwrap();
        let again = delete_member(&store, Register::Staff, None, "s", one.0).await;
        assert!(matches!(again, Err(Refusal::Missing(_))), "{again:?}");
        assert_eq!(shown(None).await.unwrap(), Some(json!(format!("{}@example.jp", two.1))), "the only one");
        delete_member(&store, Register::Staff, Some(two.1), "s", &ACTOR).await.unwrap();
        assert_eq!(shown(None).await.unwrap(), None);
    }
}

#[tokio::test]
async fn h2_a_customer_of_no_tenant_is_nobody_elses() {
    let store = store().await;
    let enter = async |customer: Value, actor: &Actor<'_>| {
        create_member(&store, Register::Customers, order(customer), None, actor).await.unwrap().answer
    };
    enter(json!({ "id": "c", "name": "of A" }), &OF_A).await;
    let name = async |tenant| {
        let found = view::find_member(&store, Register::Customers, tenant, "c", view::member).await.unwrap();
        found.map(|found| json!(found)["name"].clone())
    };
    assert_eq!(name(None).await, Some(json!("of A")), "the only one");
    assert_eq!(name(Some("")).await, None);
    enter(json!({ "id": "c", "name": "nobody's" }), &ACTOR).await;
    enter(json!({ "id": "c", "name": "of B", "tenant": "b" }), &ACTOR).await;
    assert_eq!(name(None).await, Some(json!("nobody's")));
    assert_eq!(name(Some("a")).await, Some(json!("of A")));
    for _ in 0..2 {
        let deleted = delete_member(&store, Register::Customers, None, "c", &ACTOR).await;
        assert_eq!(name(None).await, None, "{deleted:?}");
    }
    assert_eq!(name(Some("a")).await, Some(json!("of A")), "who deletes twice deletes no other");
    assert_eq!(name(Some("b")).await, Some(json!("of B")));
}

#[tokio::test]
async fn g5_nothing_is_left_of_who_was_deleted_but_the_audit_log() {
    let store = store().await;
    let staff = json!({ "id": "s", "tenant": "a", "family_name": "Yamada", "email": "taro@example.jp" });
    enter(&store, staff.clone(), &ACTOR).await.unwrap();
    let subject = json!({ "id": "x", "tenant": "a", "name": "Suzuki", "renewal_due_on": "2026-04-01" });
    create_member(&store, Register::Subjects, order(subject), None, &ACTOR).await.unwrap();
    let answer = delete_member(&store, Register::Staff, None, "s", &ACTOR).await.unwrap();
    assert_eq!(answer, json!({ "id": "s", "object": "staff", "deleted": true, "was": null }));
    delete_member(&store, Register::Subjects, None, "x", &ACTOR).await.unwrap();
    for (register, id) in [(Register::Staff, "s"), (Register::Subjects, "x")] {
        let key = register.key(Some("a"), id);
        let stone = store.load(Vec::new(), vec![key.clone()]).await.unwrap().states.remove(&key).unwrap();
        assert!(stone.is_deleted());
        assert!(!["Yamada", "taro", "Suzuki", "2026-04-01"].iter().any(|said| stone.facts.contains(said)));
        assert_eq!((stone.index.tenant, stone.index.customer), (None, None));
        assert!(view::find_member(&store, register, None, id, view::member).await.unwrap().is_none());
    }
    for gone in [
        delete_member(&store, Register::Staff, None, "s", &ACTOR).await,
        delete_member(&store, Register::Subjects, None, "none", &ACTOR).await,
    ] {
        assert!(matches!(gone, Err(Refusal::Missing(_))));
    }
    enter(&store, staff, &ACTOR).await.unwrap();
    let audit = audited(&store).await;
    let actions: Vec<_> = audit[..4].iter().map(|entry| (&*entry.action, entry.tenant.as_deref())).collect();
    let expected = ["staff.created", "subject.deleted", "staff.deleted", "subject.created"];
    assert_eq!(actions, expected.map(|action| (action, Some("a"))));
    assert!(!audit.iter().any(|entry| entry.details.contains("taro")), "{audit:?}");
}
