//! Problem Details (RFC 9457): an error as clients see it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is free of a slot that has too few places.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct FullSlot {
    pub free: u32,
    /// When its next hold ends, if nobody pays it.
    pub retry_after_seconds: Option<u64>,
}

/// A stable `type`, a title, the request's id, and nothing that helps a forger.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    #[serde(rename = "type")]
    pub kind: Box<str>,
    pub title: Box<str>,
    pub status: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Field by field, where it is fields that are wrong.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub errors: Box<[FieldError]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Box<str>>,
    /// Where too few places of a slot are free.
    #[serde(flatten)]
    pub full: Option<Box<FullSlot>>,
    /// Seconds, sent as a header.
    #[serde(skip)]
    pub retry_after: Option<u64>,
}

/// What is wrong with one field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FieldError {
    pub field: String,
    pub detail: String,
}

impl FieldError {
    pub fn new(field: &str, detail: impl Into<String>) -> Self {
        Self { field: field.to_owned(), detail: detail.into() }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.detail)
    }
}
