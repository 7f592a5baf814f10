//! Test events: signed as their provider signs, sent to a running server by its front door, and what it made of them.

pub mod fixtures;

use std::time::Duration;

use ::http::{Request, Uri};
use anyhow::{Context as _, bail};
use bytes::Bytes;
use http_body_util::Full;
use sekisho_core::delivery::Fault;
use sekisho_core::provider::{AboutProvider, Draft, Signed};
use tokio::time::Instant;

use crate::effects::http;
use crate::types::Problem;
use crate::{now, token};

const TIMEOUT: Duration = Duration::from_secs(10);
/// How long a server is given to start listening.
const STARTING: Duration = Duration::from_secs(2);
/// Most bytes read of an answer.
const BODY_MAX: usize = 64 << 10;

/// Types that there is an event of: those that are built in, or the one of the provider's own example.
pub fn types(about: &AboutProvider) -> Vec<&'static str> {
    match about.name {
        "stripe" => fixtures::STRIPE.iter().map(|(name, _)| *name).collect(),
        _ => vec![about.sample_type],
    }
}

/// An event of a type, about things of its own, not signed yet.
pub fn sample(about: &AboutProvider, kind: &str, order: Option<&str>, n: u32) -> anyhow::Result<Draft> {
    let tag = tag(n);
    let (id, kind) = (test_id(&tag), kind.to_owned());
    if about.name != "stripe" {
        return Ok(about.draft(&id, &kind, now()));
    }
    let Some((_, text)) = fixtures::STRIPE.iter().find(|(name, _)| *name == kind) else {
        bail!(
            "there is no built-in event {kind}: `sekisho trigger --list` shows them, and --body FILE sends your own"
        );
    };
    let body = text.replace(fixtures::TAG, &format!("test{tag}"));
    let order = order.map_or_else(|| format!("ORD-{tag}"), str::to_owned);
    Ok(Draft { body: with_order(&renew(body.as_bytes(), &id)?, &order)?, id, kind })
}

/// An event of somebody's own, under a new id.
pub fn renewed(body: &[u8], kind: String, n: u32) -> anyhow::Result<Draft> {
    let id = test_id(&tag(n));
    Ok(Draft { body: renew(body, &id)?, id, kind })
}

fn tag(n: u32) -> String {
    format!("{:x}{}n{n}", now().ms(), token::generate::<4>())
}

fn test_id(tag: &str) -> String {
    format!("evt_test_{tag}")
}

/// A new id and the present time, so that it is not taken for an old event.
fn renew(body: &[u8], id: &str) -> anyhow::Result<Vec<u8>> {
    let mut value: serde_json::Value = serde_json::from_slice(body).context("the body is not JSON")?;
    let object = value.as_object_mut().context("the body is not a JSON object")?;
    if object.contains_key("id") {
        object.insert("id".into(), id.into());
    }
    if object.get("created").is_some_and(serde_json::Value::is_number) {
        object.insert("created".into(), now().seconds().into());
    }
    Ok(serde_json::to_vec(&value)?)
}

/// Under another order's reference, wherever the object carries one.
fn with_order(body: &[u8], order: &str) -> anyhow::Result<Vec<u8>> {
    let mut value: serde_json::Value = serde_json::from_slice(body)?;
    for place in ["/data/object/metadata/order_id", "/data/object/client_reference_id"] {
        if let Some(reference) = value.pointer_mut(place).filter(|reference| reference.is_string()) {
            *reference = order.into();
        }
    }
    Ok(serde_json::to_vec(&value)?)
}

pub struct TestClient {
    http: http::Client,
    url: String,
}

/// What the server said.
pub struct TestAnswer {
    pub status: u16,
    /// `accepted` or `duplicate`; empty for refusals.
    pub outcome: String,
    pub event_id: String,
    pub message_id: String,
    pub request_id: String,
    pub body: String,
}

/// A server that listens everywhere is reached at this machine.
pub fn reachable(mut address: std::net::SocketAddr) -> std::net::SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
    address
}

impl TestClient {
    pub fn to(url: String) -> anyhow::Result<Self> {
        // A test event goes straight to its server: signatures and tokens are no proxy's business.
        Ok(Self { http: http::Client::new(&uri(&url)?, true)?, url })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub async fn deliver(&self, signed: Signed) -> anyhow::Result<TestAnswer> {
        let url = match &signed.query {
            Some(query) => format!("{}?{query}", self.url),
            None => self.url.clone(),
        };
        let mut request = Request::builder().method(signed.method).uri(uri(&url)?);
        for (name, value) in &signed.headers {
            request = request.header(name.as_ref(), value);
        }
        let request = request.body(Full::new(Bytes::from(signed.body)))?;
        let started = Instant::now();
        let answer = loop {
            match self.http.exchange(request.clone(), BODY_MAX, Instant::now() + TIMEOUT).await {
                // It may have been started a moment ago.
                Err(Fault::Connect(_)) if started.elapsed() < STARTING => {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                other => break other,
            }
        };
        let answer = answer.with_context(|| {
            format!("no server answers at {}: is `sekisho serve` running? Another address can be named with --url", self.url)
        })?;
        let header = |name: &str| answer.header(name).unwrap_or_default().to_owned();
        Ok(TestAnswer {
            status: answer.status,
            outcome: header("sekisho-outcome"),
            event_id: header("sekisho-event-id"),
            message_id: header("sekisho-message-id"),
            request_id: header("sekisho-request-id"),
            body: String::from_utf8_lossy(&answer.body).into_owned(),
        })
    }
}

fn uri(url: &str) -> anyhow::Result<Uri> {
    http::callable(url)?.as_str().parse().context("this URL can't be called")
}

impl TestAnswer {
    /// One line for a person.
    pub fn sentence(&self) -> String {
        match self.status {
            200..=299 if self.outcome.is_empty() => format!("{} (a handshake, no event)", self.status),
            200..=299 => format!("{} {} {}", self.status, self.outcome, self.event_id),
            _ => {
                let problem = serde_json::from_str::<Problem>(&self.body);
                let title = problem.map_or_else(|_| "no explanation".into(), |problem| problem.title);
                format!("{} {title} ({})", self.status, self.request_id)
            }
        }
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "status": self.status,
            "outcome": self.outcome,
            "event_id": self.event_id,
            "message_id": self.message_id,
            "request_id": self.request_id,
        })
    }
}
