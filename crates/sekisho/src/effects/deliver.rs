//! One HTTP delivery: a request goes out, and what came back is returned as it was.
//!
//! Promises: what [`super::http`] promises of every request, and that the call ends within its time-out. Signing
//! and retrying are decided elsewhere.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use http_body_util::Full;
use sekisho_core::delivery::{Answer, BODY_KEPT_BYTES, Fault};
use tokio::time::Instant;

use super::http as exchange;
use crate::env::Exchange;

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
    http: exchange::Client,
    uri: Uri,
    timeout: Duration,
}

impl Client {
    pub fn new(url: &str, timeout: Duration, allow_private: bool) -> anyhow::Result<Self> {
        let uri: Uri = exchange::callable(url)?.as_str().parse().context("this URL can't be called")?;
        let http = exchange::Client::new(&uri, allow_private)?;
        Ok(Self { http, uri, timeout })
    }

    /// The same, where requests do not go over the network.
    #[must_use]
    pub fn by(self, way: Arc<dyn Exchange>) -> Self {
        Self { http: exchange::Client::by(way), ..self }
    }

    /// Posts once. Also says how long it took, resolving and connecting included.
    pub async fn post(&self, headers: &[(String, String)], body: Bytes) -> (Result<Answer, Fault>, Duration) {
        let started = Instant::now();
        let result = match self.request(headers, body) {
            Ok(request) => self.http.exchange(request, BODY_KEPT_BYTES, started + self.timeout).await,
            Err(fault) => Err(fault),
        };
        (result, started.elapsed())
    }

    fn request(&self, headers: &[(String, String)], body: Bytes) -> Result<Request<Full<Bytes>>, Fault> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = sent_headers(headers)?;
        Ok(request)
    }
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

#[cfg(test)]
mod tests;
