//! Many of the directory at once.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Import {
    /// Of what: `tenant`, `customer`, `staff` or `subject`.
    pub kind: String,
    /// Each with the fields that one of them is created with.
    pub rows: Vec<Map<String, Value>>,
    pub dry_run: bool,
}

/// How many rows did what, or would.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Imported {
    pub new: usize,
    pub changed: usize,
    pub unchanged: usize,
}
