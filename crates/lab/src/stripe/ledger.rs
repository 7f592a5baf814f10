//! One request, as it came and as it went.

use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub method: String,
    /// Without its query.
    pub path: String,
    /// Query and form together, nested, every value a text.
    pub params: Value,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// `Idempotency-Key`.
    pub key: Option<String>,
    /// `Stripe-Account`.
    pub account: Option<String>,
    /// What the answer says, whether or not it reaches the caller.
    pub status: u16,
    /// Something was created by this very request.
    pub worked: bool,
    pub replayed: bool,
}

impl Call {
    /// `name` in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}
