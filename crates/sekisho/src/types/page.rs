//! What holds other things: a page of a list, a whole list, and a thing with the times of its record.

use schemars::JsonSchema;
use sekisho_core::Time;
use serde::{Deserialize, Serialize};

/// A page of a list, the newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "{T}Page")]
pub struct Page<T, N = String> {
    pub items: Vec<T>,
    /// `before` of the next page; null on the last.
    pub next: Option<N>,
}

impl<T> Page<T> {
    /// A page that was asked for with this limit; a full one may have another after it, which `id` of its last leads to.
    pub fn full(items: Vec<T>, limit: usize, id: fn(&T) -> &str) -> Self {
        let next = items.last().filter(|_| items.len() == limit).map(|last| id(last).to_owned());
        Self { items, next }
    }
}

/// All of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "{T}List")]
pub struct List<T> {
    pub items: Vec<T>,
}

impl<T> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self { items: items.into_iter().collect() }
    }
}

/// A thing with when it was written first, and last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "{T}Detail")]
pub struct Dated<T> {
    #[serde(flatten)]
    pub thing: T,
    pub created_at: Time,
    pub changed_at: Time,
}
