//! The fields of an order, one by one: what is wrong with each is said by its name, and all of it at once.

mod field;

use serde_json::{Map, Value};

pub use field::Field;

use crate::refusal::{Refusal, Result};
use crate::types::FieldError;

/// An order's fields; each is taken out once, and what is left is unknown.
pub struct Fields {
    left: Map<String, Value>,
    known: Vec<&'static str>,
    errors: Vec<FieldError>,
}

impl Fields {
    pub const fn new(order: Map<String, Value>) -> Self {
        Self { left: order, known: Vec::new(), errors: Vec::new() }
    }

    pub fn take(&mut self, name: &'static str) -> Field<'_> {
        self.known.push(name);
        let value = self.left.remove(name).filter(|value| !value.is_null());
        Field { name, value, errors: &mut self.errors }
    }

    pub fn wrong(&mut self, field: &str, detail: impl Into<String>) {
        self.errors.push(FieldError::new(field, detail));
    }

    /// Says that a field must be there.
    pub fn need<T>(&mut self, field: &'static str, value: Option<T>) -> Option<T> {
        if value.is_none() && !self.errors.iter().any(|error| error.field == field) {
            self.wrong(field, "is needed");
        }
        value
    }

    /// Everything that was wrong, unknown fields too.
    pub fn finish(mut self) -> Result<()> {
        let known = self.known.join(", ");
        for field in self.left.keys() {
            let shown: String = field.chars().take(100).collect();
            self.errors.push(FieldError::new(&shown, format!("there is no such field; known are {known}")));
        }
        if self.errors.is_empty() { Ok(()) } else { Err(Refusal::Fields(self.errors)) }
    }
}
