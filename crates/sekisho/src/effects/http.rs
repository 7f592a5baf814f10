//! One HTTP request: it goes out, and what came back is returned as it was.
//!
//! Promises: the exchange ends by its deadline, whatever the other side does; once a status was received it
//! stands, even if the rest never comes; redirects are answers; no address is connected to that was not checked
//! ([`connect`]); nothing is sent twice, except when a kept connection turned out closed before anything was
//! written to it. No fault names the URL's path or query. What is sent and what an answer means is the caller's
//! business.

#[allow(clippy::disallowed_methods, reason = "the way out itself")]
mod connect;
mod fetch;

use std::error::Error as _;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Request, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::Connect;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use sekisho_core::delivery::{Answer, Fault};
use tokio::time::{Instant, timeout_at};
use url::Url;

use crate::env::{Env, Exchange};
use connect::{Connector, Unreached};
pub use fetch::get;

/// How long a connection is kept for the next request.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// Most bytes of names and values kept of an answer's headers. More than 100 headers are a broken answer: so
/// many the HTTP parser takes.
const HEADERS_KEPT_BYTES: usize = 16 << 10;
/// Most bytes read ahead of what was asked for; the largest head of an answer, too.
const READ_AHEAD_BYTES: usize = 64 << 10;

/// Talks to one host and keeps its connections.
#[derive(Clone)]
pub struct Client {
    way: Arc<dyn Exchange>,
}

/// Over the network.
struct Network {
    http: legacy::Client<Connector, Full<Bytes>>,
}

impl Client {
    /// For the host that `uri` names.
    pub fn new(uri: &Uri, allow_private: bool) -> anyhow::Result<Self> {
        Ok(Self { way: Arc::new(Network { http: pooled(Connector::new(uri, allow_private)?) }) })
    }

    /// The same, where the network is what a node was handed for it.
    pub fn open(uri: &Uri, allow_private: bool, env: &Env) -> anyhow::Result<Self> {
        env.outside.exchange().map_or_else(|| Self::new(uri, allow_private), |way| Ok(Self::by(way)))
    }

    /// Not over the network.
    pub fn by(way: Arc<dyn Exchange>) -> Self {
        Self { way }
    }

    /// Sends once. Of the answer's body `body_max` bytes are kept; `truncated` says that there was more or that it broke off.
    pub async fn exchange(
        &self,
        request: Request<Full<Bytes>>,
        body_max: usize,
        deadline: Instant,
    ) -> Result<Answer, Fault> {
        self.way.exchange(request, body_max, deadline).await
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}

#[async_trait]
impl Exchange for Network {
    async fn exchange(
        &self,
        request: Request<Full<Bytes>>,
        body_max: usize,
        deadline: Instant,
    ) -> Result<Answer, Fault> {
        exchange(&self.http, request, body_max, deadline).await
    }
}

fn pooled<C: Connect + Clone>(connector: C) -> legacy::Client<C, Full<Bytes>> {
    legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_MAX)
        .http1_max_buf_size(READ_AHEAD_BYTES)
        .build(connector)
}

async fn exchange<C: Connect + Clone + Send + Sync + 'static>(
    http: &legacy::Client<C, Full<Bytes>>,
    request: Request<Full<Bytes>>,
    body_max: usize,
    deadline: Instant,
) -> Result<Answer, Fault> {
    let response = match timeout_at(deadline, http.request(request)).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => return Err(fault(&error)),
        Err(_) => return Err(Fault::Timeout),
    };
    let (head, mut incoming) = response.into_parts();
    let mut body = BytesMut::new();
    let whole = timeout_at(deadline, read(&mut incoming, &mut body, body_max)).await.unwrap_or(false);
    Ok(Answer {
        status: head.status.as_u16(),
        headers: kept_headers(&head.headers),
        body: body.freeze(),
        truncated: !whole,
    })
}

/// A URL that can be called: http or https, and no password in it.
pub fn callable(url: &str) -> anyhow::Result<Url> {
    // The URL standard's parser, because it turns every spelling of an IP address into one.
    let url = Url::parse(url).context("this is no URL")?;
    if !matches!(url.scheme(), "http" | "https") {
        bail!("requests go to http:// or https://, not to {}://", url.scheme());
    }
    if !url.username().is_empty() || url.password().is_some() {
        bail!("the URL holds a user name or password; send an `authorization` header instead");
    }
    Ok(url)
}

/// Reads as much as is kept. Returns whether that was all of it.
async fn read(incoming: &mut Incoming, body: &mut BytesMut, body_max: usize) -> bool {
    while let Some(frame) = incoming.frame().await {
        let Ok(frame) = frame else { return false };
        let Ok(data) = frame.into_data() else { continue };
        let room = body_max - body.len();
        body.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            return false;
        }
    }
    true
}

/// Leaves out what does not fit, so that one huge cookie can't hide the short header behind it.
fn kept_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let mut room = HEADERS_KEPT_BYTES;
    let mut kept = Vec::with_capacity(headers.len());
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        if let Some(left) = room.checked_sub(name.as_str().len() + value.len()) {
            room = left;
            kept.push((name.as_str().to_owned(), value.into_owned()));
        }
    }
    kept
}

fn fault(error: &legacy::Error) -> Fault {
    if let Some(Unreached(fault)) = error.source().and_then(|source| source.downcast_ref()) {
        return fault.clone();
    }
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let text = innermost.to_string();
    if error.is_connect() { Fault::Connect(text) } else { Fault::Broken(text) }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn c2_of_many_headers_so_much_is_kept() {
        let mut map = HeaderMap::new();
        map.append("set-cookie", "c".repeat(HEADERS_KEPT_BYTES).parse().unwrap());
        map.append("retry-after", "7".parse().unwrap());
        map.append("x-raw", HeaderValue::from_bytes(b"\xff").unwrap());
        assert_eq!(
            kept_headers(&map),
            [("retry-after".into(), "7".into()), ("x-raw".into(), "\u{fffd}".into())]
        );
    }
}
