//! The objects of one account, by id and by age.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};

use super::refund::RefundTerms;

/// What events of the lab's own making say they were rendered in.
const API_VERSION: &str = "2026-10-28.endive";

#[derive(Debug, Default)]
pub struct StripeBooks {
    objects: HashMap<String, Held>,
    /// Ids of each kind, oldest first; what is equally old in the order it came.
    by_age: HashMap<String, BTreeMap<Age, String>>,
    /// What belongs to a payment intent or a charge, because a long run asks for it again and again.
    by_parent: HashMap<String, BTreeMap<Age, String>>,
    put: u64,
    /// Events of the fake's own making, in the order they came about.
    emitted: Vec<String>,
    /// How many of those were taken.
    taken: usize,
    /// The API request that causes what happens now.
    pub request: Option<RefundCause>,
    pub terms: RefundTerms,
    /// By session: what its payment intent will carry.
    pub intent_metadata: HashMap<String, Value>,
}

/// Created at, then how many were put before.
pub type Age = (i64, u64);

#[derive(Debug)]
struct Held {
    value: Value,
    age: Age,
}

#[derive(Clone, Debug)]
pub struct RefundCause {
    pub request_id: String,
    pub key: Option<String>,
}

impl StripeBooks {
    /// Adds an object or replaces the one with its id. Panics without `id` and `object`: that is no object.
    pub fn put(&mut self, value: Value) {
        let (id, kind) = (text(&value, "id"), text(&value, "object"));
        assert!(!id.is_empty() && !kind.is_empty(), "an object has an id and a kind: {value}");
        let put = self.objects.get(&id).map_or(self.put, |held| held.age.1);
        let age = (value["created"].as_i64().unwrap_or_default(), put);
        self.forget(&id);
        self.put += 1;
        for parent in parents(&value) {
            self.by_parent.entry(parent).or_default().insert(age, id.clone());
        }
        self.by_age.entry(kind).or_default().insert(age, id.clone());
        self.objects.insert(id, Held { value, age });
    }

    /// Stripe itself forgets events after 30 days.
    pub fn forget(&mut self, id: &str) -> Option<Value> {
        let held = self.objects.remove(id)?;
        if let Some(ages) = self.by_age.get_mut(&text(&held.value, "object")) {
            ages.remove(&held.age);
        }
        for parent in parents(&held.value) {
            if let Some(children) = self.by_parent.get_mut(&parent) {
                children.remove(&held.age);
            }
        }
        Some(held.value)
    }

    pub fn get(&self, id: &str) -> Option<&Value> {
        self.objects.get(id).map(|held| &held.value)
    }

    pub fn find(&self, kind: &str, id: &str) -> Option<&Value> {
        self.get(id).filter(|value| value["object"] == kind)
    }

    /// The object is there, or something there belongs to it.
    pub fn knows(&self, kind: &str, id: &str) -> bool {
        self.find(kind, id).is_some() || self.by_parent.get(id).is_some_and(|children| !children.is_empty())
    }

    pub fn age(&self, id: &str) -> Option<Age> {
        self.objects.get(id).map(|held| held.age)
    }

    /// All of a kind, oldest first.
    pub fn all(&self, kind: &str) -> impl DoubleEndedIterator<Item = &Value> {
        self.by_age.get(kind).into_iter().flat_map(BTreeMap::values).filter_map(|id| self.get(id))
    }

    /// What of a kind belongs to a payment intent or charge, oldest first.
    pub fn children_of(&self, kind: &str, parent: &str) -> impl DoubleEndedIterator<Item = &Value> {
        let ids = self.by_parent.get(parent).into_iter().flat_map(BTreeMap::values);
        ids.filter_map(move |id| self.find(kind, id))
    }

    /// An id nobody has: `re_lab00000012`.
    pub fn fresh_id(&self, prefix: &str) -> String {
        let mut n = self.put;
        loop {
            let id = format!("{prefix}_lab{n:08}");
            if !self.objects.contains_key(&id) {
                return id;
            }
            n += 1;
        }
    }

    /// Writes down that something happened to an object, which is copied as it is now.
    pub fn emit(&mut self, kind: &str, object: &Value, now: i64) {
        self.emit_change(kind, object, Value::Null, now);
    }

    /// [`StripeBooks::emit`] with the values that the object had before.
    pub fn emit_change(&mut self, kind: &str, object: &Value, previous: Value, now: i64) {
        let id = self.fresh_id("evt");
        let mut data = json!({ "object": object });
        if !previous.is_null() {
            data["previous_attributes"] = previous;
        }
        let (request_id, key) = self.request.clone().map(|cause| (cause.request_id, cause.key)).unzip();
        self.put(json!({
            "id": id,
            "object": "event",
            "api_version": API_VERSION,
            "created": now,
            "data": data,
            "livemode": false,
            "pending_webhooks": 1,
            "request": { "id": request_id, "idempotency_key": key.flatten() },
            "type": kind,
        }));
        self.emitted.push(id);
    }

    /// Emitted events from the n-th on, less those that were forgotten.
    pub fn emitted_since(&self, n: usize) -> Vec<Value> {
        self.emitted.iter().skip(n).filter_map(|id| self.get(id)).cloned().collect()
    }

    pub fn take_emitted(&mut self) -> Vec<Value> {
        let from = std::mem::replace(&mut self.taken, self.emitted.len());
        self.emitted_since(from)
    }

    pub fn emitted(&self) -> usize {
        self.emitted.len()
    }
}

/// What an object belongs to.
fn parents(value: &Value) -> impl Iterator<Item = String> {
    ["payment_intent", "charge"].map(|name| text(value, name)).into_iter().filter(|id| !id.is_empty())
}

/// A field's text, empty without one.
pub fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}
