//! An error as Stripe words it: a status and `{"error": {type, code, message, param}}`.

use serde_json::{Map, Value, json};

use crate::app::Reply;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StripeRefusal {
    pub status: u16,
    pub kind: &'static str,
    pub code: Option<&'static str>,
    pub message: String,
    pub param: Option<String>,
}

impl StripeRefusal {
    pub fn new(status: u16, code: Option<&'static str>, message: impl Into<String>) -> Self {
        Self { status, kind: "invalid_request_error", code, message: message.into(), param: None }
    }

    pub fn about(self, param: &str) -> Self {
        Self { param: Some(param.to_owned()), ..self }
    }

    pub fn unknown(param: &str) -> Self {
        Self::new(400, Some("parameter_unknown"), format!("Received unknown parameter: {param}")).about(param)
    }

    pub fn missing(param: &str) -> Self {
        Self::new(400, Some("parameter_missing"), format!("Missing required param: {param}.")).about(param)
    }

    pub fn empty(param: &str) -> Self {
        let message = format!(
            "You passed an empty string for '{param}'. We assume empty values are an attempt to unset a \
             parameter; however '{param}' cannot be unset."
        );
        Self::new(400, Some("parameter_invalid_empty"), message).about(param)
    }

    pub fn invalid(param: &str, message: &str) -> Self {
        Self::new(400, Some("parameter_invalid"), message).about(param)
    }

    /// 404 when the path names it, 400 when a parameter does.
    pub fn no_such(status: u16, kind: &str, id: &str, param: &str) -> Self {
        let kind = kind.replace('.', " ");
        Self::new(status, Some("resource_missing"), format!("No such {kind}: '{id}'")).about(param)
    }

    pub fn unauthorized(given: Option<&str>) -> Self {
        let message = match given.and_then(|header| header.strip_prefix("Bearer ")) {
            Some(key) => format!("Invalid API Key provided: {}", masked(key)),
            None => "You did not provide an API key.".to_owned(),
        };
        Self::new(401, None, message)
    }

    /// A restricted key that may only read.
    pub fn no_permission(given: Option<&str>) -> Self {
        let key = given.and_then(|header| header.strip_prefix("Bearer ")).unwrap_or_default();
        let message = format!(
            "The provided key '{}' does not have the required permissions for this endpoint.",
            masked(key)
        );
        Self::new(403, None, message)
    }

    pub fn account(id: &str) -> Self {
        let message = format!("The provided key does not have access to account '{id}'.");
        Self::new(403, Some("account_invalid"), message)
    }

    pub fn no_endpoint(method: &str, path: &str) -> Self {
        Self::new(404, None, format!("Unrecognized request URL ({method}: {path})."))
    }

    pub fn rate_limited() -> Self {
        Self::new(429, Some("rate_limit"), "Request rate limit exceeded.")
    }

    pub fn lock_timeout() -> Self {
        let message = "This object cannot be accessed right now because another API request or Stripe process \
                       is currently accessing it.";
        Self::new(429, Some("lock_timeout"), message)
    }

    /// The same as a conflict.
    pub fn lock_conflict() -> Self {
        Self { status: 409, ..Self::lock_timeout() }
    }

    pub fn server_error() -> Self {
        let message = "An unknown error occurred";
        Self { kind: "api_error", ..Self::new(500, None, message) }
    }

    pub fn key_in_use() -> Self {
        let message = "There is currently another in-progress request using this Idempotent Key (that probably \
                       means you submitted twice, and the other request is still going through).";
        Self::new(409, Some("idempotency_key_in_use"), message)
    }

    pub fn key_of_another(key: &str) -> Self {
        let message = format!(
            "Keys for idempotent requests can only be used with the same parameters they were first used with. \
             Try using a key other than '{key}' if you meant to execute a different request."
        );
        Self { kind: "idempotency_error", ..Self::new(400, None, message) }
    }

    pub fn already_refunded() -> Self {
        Self::new(400, Some("charge_already_refunded"), "Charge has already been refunded.")
    }

    /// A dispute took the charge's money.
    pub fn disputed(charge: &str) -> Self {
        let message = format!("Charge {charge} has been charged back; cannot issue a refund.");
        Self::new(400, Some("charge_disputed"), message)
    }

    pub fn reply(&self) -> Reply {
        let mut error = Map::new();
        error.insert("type".into(), self.kind.into());
        let optional =
            [("code", self.code), ("message", Some(&*self.message)), ("param", self.param.as_deref())];
        for (name, value) in optional {
            if let Some(value) = value {
                error.insert(name.into(), value.into());
            }
        }
        json_reply(self.status, &json!({ "error": error }))
    }
}

pub fn json_reply(status: u16, body: &Value) -> Reply {
    Reply::status(status).with_header("content-type", "application/json").with_body(&body.to_string())
}

/// `sk_test_***********1234`: enough to recognise a key, not enough to use it.
fn masked(key: &str) -> String {
    let letters: Vec<char> = key.chars().collect();
    let hidden = letters.len().saturating_sub(4);
    let shown = if hidden > 8 { &letters[hidden..] } else { &[] };
    format!("{}{}", "*".repeat(hidden), shown.iter().collect::<String>())
}
