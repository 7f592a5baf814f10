//! What is answered, and what is taken, is what the document says: every answer in these tests is held against it.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use sekisho_core::audit::Entry;
use sekisho_core::change::{Arrival, ChangeSet};
use sekisho_core::event::{DedupeKey, Trust};
use sekisho_core::job::{DeadReason, End, Lease};
use sekisho_core::state::{Index, Key, Kind, State};
use sekisho_core::user::{Invite, Rank, User};
use sekisho_core::{Seq, Time};
use sekisho_store::memory::MemoryStore;
use sekisho_store::{AuditEntry, Store};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{OWN, ask, endpoints, filled};
use crate::api::{Endpoint, openapi};
use crate::types::{self, Dated};
use crate::view;

const NOW: Time = Time::from_ms(1_780_000_000_000);

static DOCUMENT: LazyLock<Value> = LazyLock::new(openapi::document);

/// Insists that an answer is what the document says of its endpoint.
pub fn check_answer(method: &str, path: &str, status: u16, answer: &Value) {
    let path = path.split('?').next().unwrap();
    let Some(endpoint) = endpoint(method, path) else { return };
    let operation = &DOCUMENT["paths"][endpoint.path][method.to_lowercase()];
    let responses = &operation["responses"];
    let content = match &responses[status.to_string()]["content"] {
        Value::Null => &responses["default"]["content"]["application/problem+json"],
        content => &content["application/json"],
    };
    fit(&content["schema"], answer, &format!("{method} {path}"));
}

/// The most exact one.
fn endpoint(method: &str, path: &str) -> Option<&'static Endpoint> {
    let parts = |path: &'static str| path.split('/');
    let fits = |one: &&Endpoint| {
        one.method.name() == method
            && one.path.split('/').count() == path.split('/').count()
            && parts(one.path).zip(path.split('/')).all(|(own, asked)| own.starts_with('{') || own == asked)
    };
    endpoints().filter(fits).min_by_key(|one| one.path.matches('{').count())
}

/// Fields that are missing, unknown or of another type are wrong.
fn fit(schema: &Value, value: &Value, place: &str) {
    assert_eq!(misfit(schema, value, place), None);
}

fn misfit(schema: &Value, value: &Value, place: &str) -> Option<String> {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.strip_prefix("#/components/schemas/").expect("all refer to components");
        let named = &DOCUMENT["components"]["schemas"][name];
        assert!(named.is_object(), "{name} is not in the document");
        return misfit(named, value, place);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let mut misfits: Vec<_> = any.iter().map(|one| misfit(one, value, place)).collect();
        return if misfits.iter().any(Option::is_none) { None } else { misfits.swap_remove(0) };
    }
    let types: Vec<_> = match &schema["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    };
    let (found, wrong) = match value {
        Value::Null => ("null", None),
        Value::Bool(_) => ("boolean", None),
        Value::Number(number) => (if number.is_f64() { "number" } else { "integer" }, None),
        Value::String(text) => ("string", wrong_text(schema, text)),
        Value::Array(items) => {
            let each = |(n, item)| misfit(&schema["items"], item, &format!("{place}[{n}]"));
            ("array", items.iter().enumerate().find_map(each))
        }
        Value::Object(fields) => ("object", wrong_fields(schema, fields, place)),
    };
    if !types.is_empty() && !types.contains(&found) {
        return Some(format!("{place} is {found}, not one of {types:?}"));
    }
    wrong.map(|wrong| if wrong.starts_with(place) { wrong } else { format!("{place}: {wrong}") })
}

fn wrong_text(schema: &Value, text: &str) -> Option<String> {
    let is_time = schema["format"] == "date-time";
    (is_time && Time::parse_rfc3339(text).is_none()).then(|| format!("{text} is no time"))
}

fn wrong_fields(schema: &Value, fields: &serde_json::Map<String, Value>, place: &str) -> Option<String> {
    let Some(known) = schema["properties"].as_object() else {
        let others = &schema["additionalProperties"];
        return fields.iter().find_map(|(name, value)| misfit(others, value, &format!("{place}.{name}")));
    };
    let needed = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut missing = needed.filter(|name| !fields.contains_key(*name));
    if let Some(missing) = missing.next() {
        return Some(format!("{place}.{missing} is missing"));
    }
    fields.iter().find_map(|(name, value)| match known.get(name) {
        Some(schema) => misfit(schema, value, &format!("{place}.{name}")),
        None => Some(format!("{place}.{name} is not in the document")),
    })
}

/// Insists that a client reads all that stands there.
pub fn check<T: Serialize + DeserializeOwned>(value: &Value) -> T {
    let read: T = serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error}: {value:#}"));
    assert_eq!(json!(read), *value);
    read
}

fn check_again<T: Serialize + DeserializeOwned>(shown: &T) {
    check::<T>(&json!(shown));
}

#[test]
fn h2_every_name_in_the_document_leads_somewhere_and_every_type_is_described_once() {
    let text = DOCUMENT.to_string();
    let schemas = DOCUMENT["components"]["schemas"].as_object().unwrap();
    let named: BTreeSet<_> =
        text.split("#/components/schemas/").skip(1).map(|name| name.split('"').next().unwrap()).collect();
    let known: BTreeSet<_> = schemas.keys().map(String::as_str).collect();
    assert_eq!(named, known);
    let twice: Vec<_> =
        known.iter().filter(|name| name.ends_with(|end: char| end.is_ascii_digit())).collect();
    assert!(twice.is_empty(), "two types of one name, or one that is both taken and answered: {twice:?}");
    for name in ["EventPage", "DeadLetterDetail", "PaymentDetailPage", "DeadLetterSelection", "Problem"] {
        assert!(known.contains(name), "{name}");
    }
    let letter = &schemas["DeadLetterDetail"]["properties"];
    assert_eq!(letter["died_at"], json!({ "type": "string", "format": "date-time" }));
    assert_eq!(letter["reason"]["description"], "Why it failed, such as `timeout`.");
    assert_eq!(schemas["DeadLetterSelection"]["additionalProperties"], false);
}

#[tokio::test]
async fn h2_an_order_may_have_exactly_the_fields_that_the_document_names() {
    let mut looked = 0;
    for endpoint in endpoints().filter(|one| one.body.is_some()) {
        let method = endpoint.method.name();
        let (_, refused) = ask(method, &filled(endpoint.path), OWN, r#"{"no_such_field":1}"#).await;
        let said = refused["detail"].as_str().unwrap();
        // By the fields that are taken one by one, or by serde.
        let known: BTreeSet<_> = match said.split_once("known are ") {
            Some((_, known)) => known.split("; ").next().unwrap().split(", ").collect(),
            None => said.rsplit_once("expected").unwrap().1.split('`').skip(1).step_by(2).collect(),
        };
        let path = &DOCUMENT["paths"][endpoint.path][method.to_lowercase()];
        let body = path["requestBody"]["content"]["application/json"]["schema"]["$ref"].as_str().unwrap();
        let schema = &DOCUMENT["components"]["schemas"][body.rsplit('/').next().unwrap()];
        let named: BTreeSet<_> =
            schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(known, named, "{method} {}: {said}", endpoint.path);
        looked += 1;
    }
    assert!(looked > 15, "{looked}");
}

#[tokio::test]
async fn h2_details_are_read_back_as_they_were_written() {
    let seq = Seq::from_i64(7);
    let arrival = Arrival {
        key: DedupeKey::new("shop", "evt_1", None),
        first_body: None,
        seq,
        received_at: NOW,
        source: "shop".into(),
        event_id: "evt_1".into(),
        event_type: String::new(),
        created_at: None,
        object: Some(("payment".into(), "pi_1".into())),
        account: None,
        livemode: None,
        trust: Trust::Signed,
        headers: r#"[["content-type","text/plain"]]"#.into(),
        body: bytes::Bytes::from_static(b"\xff"),
        held: None,
    };
    let store = MemoryStore::default();
    let epoch = store.join(NOW).await.unwrap().epoch;
    store.admit(Arc::new([arrival]), Some(epoch)).await.unwrap();
    let end = End::Dead(DeadReason::terminal("unusable_body", "odd"));
    store.commit(vec![ChangeSet::end(Lease::born(seq, epoch), end, NOW)]).await.unwrap();
    check_again(&view::event_with_all(&store, seq).await.unwrap().unwrap());
    check_again(&view::dead_letter_with_all(&store, &[], seq, NOW).await.unwrap().unwrap());
    check_again(&view::message_with_all(&store, seq).await.unwrap().unwrap());
    let target = (String::new(), String::new());
    let (actor, role, tenant, event) = (None, None, None, Some(seq));
    let (action, details) = (String::new(), r#"{"reason":"r"}"#.into());
    let entry = Entry { at: NOW, actor, role, action, target, tenant, event, details };
    check_again(&view::sealed(&AuditEntry { number: 1, entry }));
    check_again(&view::user("mika", &User::new(Rank::Viewer, String::new(), NOW), NOW));
    check_again(&view::invite("token", &Invite::new(Rank::Viewer, "hash".into(), None, NOW)));
}

fn state(kind: Kind, facts: &str) -> State {
    let (key, facts, index) = (Key::new(kind, "x"), facts.to_owned(), Index::default());
    State { key, version: 1, facts, index, created_at: NOW, changed_at: NOW }
}

#[tokio::test]
async fn h2_payments_and_billing_are_described_as_the_core_writes_them() {
    use sekisho_core::settlement::{billing, payment};
    let facts = r#"{"refunds":{"re_1":{}},"disputes":{"dp_1":{}}}"#;
    let read = payment::Facts::parse(facts).unwrap();
    check::<types::Payment>(&payment::view("x", &read, &payment::Derived::of(&read)));
    check_again::<Dated<_>>(&view::payment(&state(Kind::Payment, facts)).unwrap());
    assert!(
        view::payment(&state(Kind::Payment, "[1]")).is_err(),
        "what can't be read is not shown as unpaid"
    );
    let facts = r#"{"subscriptions":{"sub_1":{}},"invoices":{"in_1":{}}}"#;
    let read = billing::BillingFacts::parse(facts).unwrap();
    check::<types::Billing>(&billing::view("x", &read, &billing::BillingDerived::of(&read), NOW, 0));
    let store = MemoryStore::default();
    let id = view::samples::settle(&store, &view::samples::paid("o_1", 1200, &json!({}))).await;
    let proof = view::proof(&store, &id, NOW).await.unwrap().unwrap();
    check_again(&proof);
    fit(&json!({ "$ref": "#/components/schemas/PaymentProof" }), &json!(proof), "proof");
}
