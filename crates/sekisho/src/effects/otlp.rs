//! Spans to a collector, by OTLP over HTTP in its JSON encoding: one request, and what came back.
//!
//! Promises: it ends within its time; headers with keys are in no error; nothing is sent twice here. Whether it is tried again
//! is decided elsewhere.

use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use http_body_util::Full;
use sekisho_core::Secret;
use sekisho_core::trace::{Attribute, Span};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::http as exchange;
use crate::env::Env;

const WITHIN: Duration = Duration::from_secs(10);
const ANSWER_BYTES: usize = 2 << 10;
const USER_AGENT: &str = concat!("Sekisho/", env!("CARGO_PKG_VERSION"));

#[derive(Clone, Debug)]
pub struct Settings {
    /// With its path, `/v1/traces`.
    pub url: String,
    pub headers: Vec<(HeaderName, Secret)>,
    /// Of the resource, `service.name` among them.
    pub resource: Vec<(String, String)>,
}

#[derive(Debug)]
pub struct Otlp {
    http: exchange::Client,
    uri: Uri,
    headers: HeaderMap,
    resource: Value,
}

#[derive(Debug, PartialEq, Eq)]
pub enum ExportFailure {
    /// It was not reached, or is busy.
    Later { error: String, after: Option<Duration> },
    /// It will not take these.
    Refused { error: String },
}

impl Otlp {
    /// The collector is where the operator says, on a private network too.
    pub fn new(settings: &Settings, env: &Env) -> anyhow::Result<Self> {
        let uri: Uri =
            exchange::callable(&settings.url)?.as_str().parse().context("this URL can't be called")?;
        let http = exchange::Client::open(&uri, true, env)?;
        let mut headers = HeaderMap::new();
        headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in &settings.headers {
            let mut value = HeaderValue::from_str(value.expose())
                .map_err(|_| anyhow::anyhow!("the value of the header {name} can't be sent"))?;
            value.set_sensitive(true);
            headers.insert(name.clone(), value);
        }
        let resource =
            settings.resource.iter().map(|(name, value)| pair(name, &Attribute::Text(value.clone())));
        Ok(Self { http, uri, headers, resource: resource.collect() })
    }

    pub async fn send(&self, spans: &[Span]) -> Result<(), ExportFailure> {
        let mut request = Request::new(Full::new(Bytes::from(self.body(spans).to_string())));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        let answer = self.http.exchange(request, ANSWER_BYTES, Instant::now() + WITHIN).await;
        let answer =
            answer.map_err(|fault| ExportFailure::Later { error: fault.to_string(), after: None })?;
        let error = || format!("it answered {}", answer.status);
        match answer.status {
            200..=299 => Ok(()),
            408 | 429 | 500.. => {
                let seconds = answer.header("retry-after").and_then(|value| value.parse().ok());
                Err(ExportFailure::Later { error: error(), after: seconds.map(Duration::from_secs) })
            }
            _ => Err(ExportFailure::Refused { error: error() }),
        }
    }

    fn body(&self, spans: &[Span]) -> Value {
        let spans: Value = spans.iter().map(encoded).collect();
        let scope = json!({ "name": "sekisho", "version": env!("CARGO_PKG_VERSION") });
        json!({ "resourceSpans": [{
            "resource": { "attributes": self.resource },
            "scopeSpans": [{ "scope": scope, "spans": spans }],
        }] })
    }
}

fn encoded(span: &Span) -> Value {
    let mut attributes: Vec<_> = span.attributes.iter().map(|(name, value)| pair(name, value)).collect();
    attributes.extend(span.error.as_ref().map(|word| pair("error.type", &Attribute::Text(word.clone()))));
    let mut encoded = json!({
        "traceId": span.trace.to_string(),
        "spanId": span.id.to_string(),
        "name": span.name,
        "kind": span.kind as i32,
        "startTimeUnixNano": nanoseconds(span.start_us),
        "endTimeUnixNano": nanoseconds(span.end_us),
        "attributes": attributes,
        // Of what went well nothing is said: whether it is "ok" is for the application to say.
        "status": { "code": if span.error.is_some() { 2 } else { 0 } },
        "flags": 1,
    });
    if let Some(parent) = span.parent {
        encoded["parentSpanId"] = json!(parent.to_string());
    }
    encoded
}

/// 64-bit numbers are texts in this encoding.
fn nanoseconds(us: i64) -> String {
    us.saturating_mul(1_000).to_string()
}

fn pair(name: &str, value: &Attribute) -> Value {
    let value = match value {
        Attribute::Text(text) => json!({ "stringValue": text }),
        Attribute::Number(number) => json!({ "intValue": number.to_string() }),
    };
    json!({ "key": name, "value": value })
}

#[cfg(test)]
mod tests;
