//! What a log line says, field by field: those that every line may have in their fixed order, then the others.

use std::fmt;

use serde_json::Value;
use tracing::Event;
use tracing::field::{Field, Visit};

use super::context;

/// In this order, after time, level and message.
pub const KNOWN: [&str; 14] = [
    "correlation_id",
    "node",
    "trace_id",
    "event_id",
    "source",
    "message_id",
    "lane",
    "attempt",
    "payment_id",
    "customer_id",
    "tenant",
    "error_type",
    "error",
    "request_id",
];

#[derive(Default)]
pub struct LineFields {
    pub message: String,
    known: [Option<Value>; KNOWN.len()],
    others: Vec<(&'static str, Value)>,
}

impl LineFields {
    /// What the line says, and what is known from where it was written.
    pub fn of(event: &Event<'_>) -> Self {
        let mut fields = Self::default();
        event.record(&mut fields);
        context::fill(&mut fields);
        fields
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        let at = KNOWN.iter().position(|known| *known == name)?;
        self.known[at].as_ref()
    }

    /// As a text, where it is one.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str)
    }

    /// Says something, unless the line said it itself.
    pub fn add(&mut self, name: &'static str, value: impl FnOnce() -> Value) {
        if let Some(at) = KNOWN.iter().position(|known| *known == name)
            && self.known[at].is_none()
        {
            self.known[at] = Some(value());
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        let known = KNOWN.into_iter().zip(&self.known);
        let known = known.filter_map(|(name, value)| Some((name, value.as_ref()?)));
        known.chain(self.others.iter().map(|(name, value)| (*name, value)))
    }

    fn put(&mut self, field: &Field, value: Value) {
        let name = field.name();
        if name == "message" {
            self.message = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        } else if value.as_str() == Some("") {
            // Not known.
        } else if let Some(at) = KNOWN.iter().position(|known| *known == name) {
            self.known[at] = Some(value);
        } else {
            self.others.push((name, value));
        }
    }
}

impl Visit for LineFields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}").into());
    }
}
