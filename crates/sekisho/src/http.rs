//! What everything over HTTP shares: where a request came from, and Problem Details (RFC 9457).

use std::net::IpAddr;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use http_body_util::Full;

pub use crate::types::Problem;

/// Under which an answer tells the request's id.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("sekisho-request-id");

impl Problem {
    pub fn new(status: StatusCode, kind: &'static str, title: &'static str) -> Self {
        Self {
            kind: kind.into(),
            title: title.into(),
            status: status.as_u16(),
            detail: None,
            errors: Box::default(),
            request_id: None,
            full: None,
            retry_after: None,
        }
    }

    pub fn into_response(self) -> Response<Full<Bytes>> {
        let body = serde_json::to_vec(&self).expect("plain texts and numbers always serialise");
        let mut response = Response::new(Full::new(Bytes::from(body)));
        *response.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if let Some(id) = self.request_id.as_deref().and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert(REQUEST_ID, id);
        }
        response
    }
}

/// Where a request came from.
#[derive(Clone, Copy, Debug)]
pub struct RemotePeer {
    /// Who holds the connection: what a proxy says is believed by this.
    pub socket: IpAddr,
    /// Whom the proxies in front name, for people to read.
    pub named: IpAddr,
}

impl RemotePeer {
    /// Whether a request comes from this machine or its private network. What a proxy hands on that we were not told of
    /// comes from nobody knows where.
    pub fn is_near(self, headers: &HeaderMap) -> bool {
        if headers.keys().any(is_of_proxy) && self.named == self.socket.to_canonical() {
            return false;
        }
        match self.named.to_canonical() {
            IpAddr::V4(ip) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
            IpAddr::V6(ip) => ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local(),
        }
    }
}

/// Whether a header is one that proxies add to what they hand on.
fn is_of_proxy(name: &HeaderName) -> bool {
    let name = name.as_str();
    ["forwarded", "via", "x-real-ip"].contains(&name) || name.starts_with("x-forwarded-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h3_who_is_near_can_be_told_from_who_was_let_through() {
        let near = |socket: &str, named: &str, forwarded: Option<&str>| {
            let peer = RemotePeer { socket: socket.parse().unwrap(), named: named.parse().unwrap() };
            let name = HeaderName::from_static("x-forwarded-for");
            let lines = forwarded.map(|value| (name, value.parse().unwrap()));
            peer.is_near(&lines.into_iter().collect())
        };
        for address in
            ["127.0.0.1", "::1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.0.1", "fd00::1", "fe80::1"]
        {
            assert!(near(address, address, None), "{address}");
        }
        for address in ["203.0.113.9", "8.8.8.8", "172.32.0.1", "100.64.0.1", "2001:db8::1", "0.0.0.0"] {
            assert!(!near(address, address, None), "{address}");
        }
        assert!(near("::ffff:10.1.2.3", "10.1.2.3", None), "IPv4 on a socket that speaks IPv6");
        assert!(near("127.0.0.1", "10.0.0.9", Some("10.0.0.9")), "whom a trusted proxy names");
        assert!(!near("127.0.0.1", "203.0.113.9", Some("203.0.113.9")));
        assert!(!near("127.0.0.1", "127.0.0.1", Some("203.0.113.9")), "a proxy nobody told us of");
        let here = RemotePeer { socket: "127.0.0.1".parse().unwrap(), named: "127.0.0.1".parse().unwrap() };
        for name in ["forwarded", "via", "x-real-ip", "x-forwarded-host", "x-forwarded-proto"] {
            let line = (HeaderName::from_static(name), HeaderValue::from_static("203.0.113.9"));
            assert!(!here.is_near(&[line].into_iter().collect()), "{name} is a proxy's word, too");
        }
    }
}
