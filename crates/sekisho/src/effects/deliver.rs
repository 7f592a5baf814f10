//! One HTTP delivery: a request goes out, and what came back is returned as it was.
//!
//! Promises: the call ends within its time-out, whatever the other side does; once a status was received it
//! stands, even if the rest never comes; redirects are answers; no address is connected to that was not checked
//! ([`connect`]); nothing is sent twice, except when a kept connection turned out closed before anything was
//! written to it. No fault names the URL's path or query. Signing and retrying are decided elsewhere.

mod connect;

use std::error::Error as _;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use sekisho_core::delivery::{Answer, BODY_KEPT_BYTES, Fault};
use tokio::time::{Instant, timeout_at};

use connect::{Connector, Unreached};

/// How long a connection is kept for the next delivery.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// Most bytes of names and values kept of an answer's headers. More than 100 headers are a broken answer: so
/// many the HTTP parser takes.
const HEADERS_KEPT_BYTES: usize = 16 << 10;
/// Most bytes read ahead of what was asked for; the largest head of an answer, too.
const READ_AHEAD_BYTES: usize = 64 << 10;

/// These say how the bytes travel and belong to the connection; from outside they could cut a request in two.
const OWN_HEADERS: [HeaderName; 7] = [
    header::HOST,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::TE,
    header::UPGRADE,
    header::EXPECT,
];

/// Delivers to one URL and keeps its connections.
#[derive(Clone, Debug)]
pub struct Client {
    http: legacy::Client<Connector, Full<Bytes>>,
    uri: Uri,
    timeout: Duration,
}

impl Client {
    pub fn new(url: &str, timeout: Duration, allow_private: bool) -> anyhow::Result<Self> {
        // The URL standard's parser, because it turns every spelling of an IP address into one.
        let url = reqwest::Url::parse(url).context("this is no URL")?;
        if !matches!(url.scheme(), "http" | "https") {
            bail!("deliveries go to http:// or https://, not to {}://", url.scheme());
        }
        if !url.username().is_empty() || url.password().is_some() {
            bail!("the URL holds a user name or password; send an `authorization` header instead");
        }
        let uri: Uri = url.as_str().parse().context("this URL can't be called")?;
        let connector = Connector::new(&uri, allow_private)?;
        let http = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_MAX)
            .http1_max_buf_size(READ_AHEAD_BYTES)
            .build(connector);
        Ok(Self { http, uri, timeout })
    }

    /// Posts once. Also says how long it took, resolving and connecting included.
    pub async fn post(&self, headers: &[(String, String)], body: Bytes) -> (Result<Answer, Fault>, Duration) {
        let started = Instant::now();
        let result = self.exchange(headers, body, started + self.timeout).await;
        (result, started.elapsed())
    }

    async fn exchange(
        &self,
        headers: &[(String, String)],
        body: Bytes,
        deadline: Instant,
    ) -> Result<Answer, Fault> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = sent_headers(headers)?;
        let response = match timeout_at(deadline, self.http.request(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(fault(&error)),
            Err(_) => return Err(Fault::Timeout),
        };
        let (head, mut incoming) = response.into_parts();
        let mut body = BytesMut::new();
        let whole = timeout_at(deadline, read(&mut incoming, &mut body)).await.unwrap_or(false);
        Ok(Answer {
            status: head.status.as_u16(),
            headers: kept_headers(&head.headers),
            body: body.freeze(),
            truncated: !whole,
        })
    }
}

/// Reads as much as is kept. Returns whether that was all of it.
async fn read(incoming: &mut Incoming, body: &mut BytesMut) -> bool {
    while let Some(frame) = incoming.frame().await {
        let Ok(frame) = frame else { return false };
        let Ok(data) = frame.into_data() else { continue };
        let room = BODY_KEPT_BYTES - body.len();
        body.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            return false;
        }
    }
    true
}

fn sent_headers(headers: &[(String, String)]) -> Result<HeaderMap, Fault> {
    // One more for the host, which hyper adds.
    let mut map = HeaderMap::with_capacity(headers.len() + 1);
    for (name, value) in headers {
        let unsendable = || Fault::Broken(format!("the header {name:?} can't be sent"));
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unsendable())?;
        if !OWN_HEADERS.contains(&key) {
            map.append(key, HeaderValue::from_str(value).map_err(|_| unsendable())?);
        }
    }
    Ok(map)
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
    Fault::Broken(innermost.to_string())
}

#[cfg(test)]
mod tests;
