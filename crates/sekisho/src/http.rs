//! What everything over HTTP shares: where a request came from, Problem Details (RFC 9457), and the pages for machines:
//! health and metrics.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use http_body_util::Full;
use serde::Serialize;

use crate::console;
use crate::node::Health;
use crate::telemetry::Metrics;
use crate::transition::FieldError;

/// Under which an answer tells the request's id.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("sekisho-request-id");

/// An error as clients see it: a stable `type`, a title, the request's id, and nothing that helps a forger.
#[derive(Debug, Serialize)]
pub struct Problem {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub title: &'static str,
    pub status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Field by field, where it is fields that are wrong.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub errors: Box<[FieldError]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Seconds, sent as a header.
    #[serde(skip)]
    pub retry_after: Option<u64>,
}

impl Problem {
    pub fn new(status: StatusCode, kind: &'static str, title: &'static str) -> Self {
        Self {
            kind,
            title,
            status: status.as_u16(),
            detail: None,
            errors: Box::default(),
            request_id: None,
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
pub struct Peer {
    /// Who holds the connection: what a proxy says is believed by this.
    pub socket: IpAddr,
    /// Whom the proxies in front name, for people to read.
    pub named: IpAddr,
}

#[derive(Clone)]
struct Pages {
    health: Arc<Health>,
    metrics: Arc<Metrics>,
}

/// Everything that is not a webhook.
pub fn router(health: Arc<Health>, metrics: Arc<Metrics>) -> Router {
    Router::new()
        .route(
            "/",
            get(async |headers: HeaderMap| {
                let text = "Sekisho is running. Webhooks come in at /webhooks/{source}, people at /console; see /health/ready.\n";
                console::front_door(&headers).unwrap_or_else(|| text.into_response())
            }),
        )
        .route("/health/live", get(async || Json(serde_json::json!({ "status": "live" }))))
        .route("/health/ready", get(ready))
        .route("/metrics", get(figures))
        .fallback(async || {
            let mut problem = Problem::new(
                StatusCode::NOT_FOUND,
                "urn:sekisho:problem:not-found",
                "There is nothing at this path",
            );
            problem.detail =
                Some("Webhooks come in at /webhooks/{source}, where {source} is a configured name".into());
            problem.into_response().map(axum::body::Body::new)
        })
        .with_state(Pages { health, metrics })
}

async fn ready(State(pages): State<Pages>) -> impl IntoResponse {
    match pages.health.reason() {
        None => (StatusCode::OK, Json(serde_json::json!({ "status": "ready" }))),
        Some(reason) => (
            StatusCode::SERVICE_UNAVAILABLE,
            Json(serde_json::json!({ "status": "unready", "reason": reason })),
        ),
    }
}

async fn figures(State(pages): State<Pages>) -> impl IntoResponse {
    pages.metrics.ready.set(i64::from(pages.health.reason().is_none()));
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], pages.metrics.encode())
}
