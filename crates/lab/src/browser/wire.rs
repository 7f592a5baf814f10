//! One session with chromedriver: WebDriver commands as JSON over HTTP, and DevTools commands through it.
//!
//! Knows nothing of pages. A command is answered with its value or with a [`WireRefusal`].

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use super::Chromedriver;
use crate::http;

/// Under this name an element stands in JSON, by the WebDriver standard.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Why a command was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WireRefusal {
    /// One of the standard's error codes, or `no answer`.
    pub code: String,
    pub message: String,
}

impl fmt::Display for WireRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

#[derive(Debug)]
pub(super) struct BrowserSession {
    driver: Arc<Chromedriver>,
    id: String,
}

impl BrowserSession {
    pub fn open(driver: Arc<Chromedriver>, capabilities: &Value) -> Result<Self, WireRefusal> {
        let opened = call(&driver, "POST", "/session", capabilities)?;
        let id = opened["sessionId"].as_str().unwrap_or_default().to_owned();
        Ok(Self { driver, id })
    }

    pub fn get(&self, path: &str) -> Result<Value, WireRefusal> {
        call(&self.driver, "GET", &format!("/session/{}{path}", self.id), &Value::Null)
    }

    pub fn post(&self, path: &str, body: &Value) -> Result<Value, WireRefusal> {
        call(&self.driver, "POST", &format!("/session/{}{path}", self.id), body)
    }

    /// The body of a function over `arguments`; a promise is waited for.
    pub fn script(&self, body: &str, arguments: &[Value]) -> Result<Value, WireRefusal> {
        self.post("/execute/sync", &json!({ "script": body, "args": arguments }))
    }

    pub fn devtools(&self, command: &str, parameters: &Value) -> Result<Value, WireRefusal> {
        self.post("/goog/cdp/execute", &json!({ "cmd": command, "params": parameters }))
    }
}

impl Drop for BrowserSession {
    /// Closes the browser and removes its profile. If that fails, both end with the driver.
    fn drop(&mut self) {
        let _ = call(&self.driver, "DELETE", &format!("/session/{}", self.id), &Value::Null);
    }
}

/// The id of an element that a script or a search returned.
pub(super) fn element_id(value: &Value) -> Option<&str> {
    value[ELEMENT].as_str()
}

/// An element as an argument of a script.
pub(super) fn element(id: &str) -> Value {
    json!({ ELEMENT: id })
}

fn call(driver: &Chromedriver, method: &str, path: &str, body: &Value) -> Result<Value, WireRefusal> {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let json = [("content-type", "application/json; charset=utf-8")];
    let silent = |message: String| WireRefusal { code: "no answer".into(), message };
    let response = http::request(driver.address, method, path, &json, &body)
        .map_err(|error| silent(format!("{method} {path}: {error}")))?;
    let mut answer: Value = serde_json::from_slice(&response.body)
        .map_err(|error| silent(format!("{method} {path} was answered {}: {error}", response.status)))?;
    let value = answer["value"].take();
    if response.status == 200 {
        return Ok(value);
    }
    let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
    // Further lines repeat the versions.
    let message = text("message").lines().next().unwrap_or_default().to_owned();
    Err(WireRefusal { code: text("error"), message })
}
