use sekisho_core::Time;
use sekisho_core::audit::Role;
use sekisho_core::state::Kind;
use sekisho_store::memory::MemoryStore;
use sekisho_store::{AuditFilter, FIND_MAX, StateFilter};
use serde_json::json;

use super::*;

const ACTOR: Actor<'static> =
    Actor { name: "tomo", role: Role::Operator, tenant: None, at: Time::from_ms(1_780_000_000_000) };

fn rows(rows: Value) -> Vec<Map<String, Value>> {
    serde_json::from_value(rows).unwrap()
}

async fn bring(store: &MemoryStore, kind: &str, given: Value, actor: &Actor<'_>) -> Result<Imported> {
    import(store, Import { kind: kind.into(), rows: rows(given), dry_run: false }, actor).await
}

fn report(new: usize, changed: usize, unchanged: usize) -> Imported {
    Imported { new, changed, unchanged }
}

fn staff(n: usize, email: &str) -> Value {
    json!({ "id": format!("s{n}"), "tenant": "a", "email": email })
}

fn fields<T>(result: Result<T>) -> Vec<String> {
    match result {
        Err(Refusal::Fields(errors)) => errors.into_iter().map(|error| error.field).collect(),
        Err(Refusal::Forbidden(error)) => vec![error.field],
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was not refused"),
    }
}

async fn kept(store: &MemoryStore, kind: Kind) -> usize {
    store.find_states(StateFilter::all(kind, FIND_MAX)).await.unwrap().len()
}

async fn audited(store: &MemoryStore) -> usize {
    store.find_audit(AuditFilter { limit: FIND_MAX, ..AuditFilter::default() }).await.unwrap().entries.len()
}

#[tokio::test]
async fn h2_all_rows_are_written_or_none() {
    let store = MemoryStore::default();
    bring(&store, "tenant", json!([{ "id": "a" }]), &ACTOR).await.unwrap();
    let wrong = json!([
        staff(0, "t@example.jp"),
        { "id": "s1", "tenant": "b", "email": "t@example.jp" },
        { "id": "s2", "tenant": "c", "email": "t@example.jp" },
    ]);
    assert_eq!(fields(bring(&store, "staff", wrong, &ACTOR).await), ["rows[1].tenant", "rows[2].tenant"]);
    let wrong = json!([staff(0, "t@example.jp"), staff(0, "u@example.jp"), { "id": "x", "language": "fr" }]);
    let expected = ["rows[1].id", "rows[2].tenant", "rows[2].email", "rows[2].language"];
    let mut found = fields(bring(&store, "staff", wrong, &ACTOR).await);
    found.sort();
    let mut expected = expected.map(str::to_owned);
    expected.sort();
    assert_eq!(found, expected);
    assert_eq!((kept(&store, Kind::Staff).await, audited(&store).await), (0, 1), "only the tenant");
}

#[tokio::test]
async fn h2_the_same_rows_again_change_nothing() {
    let store = MemoryStore::default();
    bring(&store, "tenant", json!([{ "id": "a" }]), &ACTOR).await.unwrap();
    let first = json!([staff(0, "t@example.jp"), staff(1, "u@example.jp")]);
    let dry = Import { kind: "staff".into(), rows: rows(first.clone()), dry_run: true };
    assert_eq!(import(&store, dry, &ACTOR).await.unwrap(), report(2, 0, 0));
    assert_eq!(kept(&store, Kind::Staff).await, 0, "a dry run writes nothing");
    assert_eq!(bring(&store, "staff", first.clone(), &ACTOR).await.unwrap(), report(2, 0, 0));
    assert_eq!(bring(&store, "staff", first, &ACTOR).await.unwrap(), report(0, 0, 2));
    assert_eq!(audited(&store).await, 3);
    let then = json!([staff(0, "t@example.jp"), staff(1, "v@example.jp"), staff(2, "w@example.jp")]);
    assert_eq!(bring(&store, "staff", then, &ACTOR).await.unwrap(), report(1, 1, 1));
    assert_eq!(audited(&store).await, 5);
}

#[tokio::test]
async fn h2_an_import_has_a_kind_some_rows_and_an_end() {
    let store = MemoryStore::default();
    for kind in ["", "tenants", "payment"] {
        assert_eq!(fields(bring(&store, kind, json!([{ "id": "a" }]), &ACTOR).await), ["kind"], "{kind}");
    }
    let many = |count: usize| (0..count).map(|n| json!({ "id": format!("t{n}") })).collect::<Value>();
    for count in [0, IMPORT_ROWS_MAX + 1] {
        assert_eq!(fields(bring(&store, "tenant", many(count), &ACTOR).await), ["rows"], "{count}");
    }
    let all = bring(&store, "tenant", many(IMPORT_ROWS_MAX), &ACTOR).await.unwrap();
    assert_eq!(all, report(IMPORT_ROWS_MAX, 0, 0));
    let odd: Value = (0..IMPORT_ROWS_MAX).map(|_| json!({ "id": "/" })).collect();
    assert_eq!(fields(bring(&store, "tenant", odd, &ACTOR).await).len(), IMPORT_PROBLEMS_MAX);
}

#[tokio::test]
async fn h2_a_key_of_one_tenant_imports_nothing_for_another() {
    let store = MemoryStore::default();
    bring(&store, "tenant", json!([{ "id": "a" }, { "id": "b" }]), &ACTOR).await.unwrap();
    let of_b = Actor { tenant: Some("b"), ..ACTOR };
    assert_eq!(fields(bring(&store, "tenant", json!([{ "id": "b" }]), &of_b).await), ["kind"]);
    let mixed = json!([{ "id": "s1", "email": "t@example.jp" }, staff(2, "u@example.jp")]);
    assert_eq!(fields(bring(&store, "staff", mixed, &of_b).await), ["rows[1].tenant"]);
    bring(&store, "customer", json!([{ "id": "c", "tenant": "a" }]), &ACTOR).await.unwrap();
    let same = bring(&store, "customer", json!([{ "id": "c" }]), &of_b).await;
    assert_eq!(same.unwrap(), report(1, 0, 0), "the same id is another's here");
    let both = json!([{ "id": "d", "tenant": "a" }, { "id": "d", "tenant": "b" }, { "id": "d" }]);
    assert_eq!(bring(&store, "customer", both, &ACTOR).await.unwrap(), report(3, 0, 0));
    let own = json!([{ "id": "s1", "email": "t@example.jp" }]);
    assert_eq!(bring(&store, "staff", own, &of_b).await.unwrap(), report(1, 0, 0));
}
