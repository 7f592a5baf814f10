//! A GET of an address whose host is trusted by name: the certificates and confirmations of providers.
//!
//! Differs from deliveries: a proxy of the environment is used, because many networks have no other way out, and
//! private addresses are allowed, because SNS has one inside a private network. TLS proves which host answers, so
//! only https is fetched.

use bytes::Bytes;
use http::uri::Scheme;
use http::{HeaderValue, Request, Uri, header};
use http_body_util::Full;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use sekisho_core::delivery::{Answer, Fault};
use tokio::time::Instant;

use super::connect::{Connector, trusting_the_system};
use super::{exchange, pooled};
use crate::env::Env;

/// Fetches once, on a connection of its own.
pub async fn get(url: &str, body_max: usize, deadline: Instant, env: &Env) -> Result<Answer, Fault> {
    let uri: Uri = url.parse().map_err(|_| Fault::Broken("this URL can't be called".into()))?;
    if uri.scheme() != Some(&Scheme::HTTPS) {
        return Err(Fault::Tls("only https:// is fetched".into()));
    }
    let mut request = Request::new(Full::<Bytes>::default());
    request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static("*/*"));
    *request.uri_mut() = uri.clone();
    if let Some(way) = env.outside.exchange() {
        return way.exchange(request, body_max, deadline).await;
    }
    let untrusting = |error: anyhow::Error| Fault::Tls(format!("{error:#}"));
    if let Some(proxy) = Matcher::from_env().intercept(&uri) {
        let http = pooled(through(&proxy).map_err(untrusting)?);
        exchange(&http, request, body_max, deadline).await
    } else {
        let http = pooled(Connector::new(&uri, true).map_err(untrusting)?);
        exchange(&http, request, body_max, deadline).await
    }
}

/// A tunnel through a proxy, which may itself be reached over TLS.
fn through(proxy: &Intercept) -> anyhow::Result<HttpsConnector<Tunnel<HttpsConnector<HttpConnector>>>> {
    let tls = trusting_the_system()?;
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    let mut tunnel = Tunnel::new(proxy.uri().clone(), HttpsConnector::from((http, tls.clone())));
    if let Some(password) = proxy.basic_auth() {
        tunnel = tunnel.with_auth(password.clone());
    }
    Ok(HttpsConnector::from((tunnel, tls)))
}
