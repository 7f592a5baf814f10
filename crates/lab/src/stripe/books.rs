//! The objects of one account, by id and by age.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};

/// What events of the lab's own making say they were rendered in.
const API_VERSION: &str = "2026-10-28.endive";

#[derive(Debug, Default)]
pub struct Books {
    objects: HashMap<String, Held>,
    /// Ids of each kind, oldest first; what is equally old in the order it came.
    by_age: HashMap<String, BTreeMap<Age, String>>,
    /// Refunds by payment intent and by charge, because a long run asks for them again and again.
    refunds: HashMap<String, Vec<String>>,
    put: u64,
}

/// Created at, then how many were put before.
pub type Age = (i64, u64);

#[derive(Debug)]
struct Held {
    value: Value,
    age: Age,
}

impl Books {
    /// Adds an object or replaces the one with its id. Panics without `id` and `object`: that is no object.
    pub fn put(&mut self, value: Value) {
        let (id, kind) = (text(&value, "id"), text(&value, "object"));
        assert!(!id.is_empty() && !kind.is_empty(), "an object has an id and a kind: {value}");
        let put = self.objects.get(&id).map_or(self.put, |held| held.age.1);
        let age = (value["created"].as_i64().unwrap_or_default(), put);
        self.forget(&id);
        self.put += 1;
        if kind == "refund" {
            for of in [text(&value, "payment_intent"), text(&value, "charge")] {
                self.refunds.entry(of).or_default().push(id.clone());
            }
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
        for of in [text(&held.value, "payment_intent"), text(&held.value, "charge")] {
            if let Some(refunds) = self.refunds.get_mut(&of) {
                refunds.retain(|refund| refund != id);
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

    pub fn age(&self, id: &str) -> Option<Age> {
        self.objects.get(id).map(|held| held.age)
    }

    /// All of a kind, oldest first.
    pub fn all(&self, kind: &str) -> impl DoubleEndedIterator<Item = &Value> {
        self.by_age.get(kind).into_iter().flat_map(BTreeMap::values).filter_map(|id| self.get(id))
    }

    /// Oldest first.
    pub fn refunds_of(&self, payment: &str) -> impl DoubleEndedIterator<Item = &Value> {
        self.refunds.get(payment).into_iter().flatten().filter_map(|id| self.get(id))
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
        self.put(json!({
            "id": self.fresh_id("evt"),
            "object": "event",
            "api_version": API_VERSION,
            "created": now,
            "data": { "object": object },
            "livemode": false,
            "pending_webhooks": 1,
            "request": { "id": null, "idempotency_key": null },
            "type": kind,
        }));
    }
}

/// A field's text, empty without one.
pub fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}
