//! The pages for machines: health and metrics.

use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use http::{HeaderMap, StatusCode, header};
use serde_json::json;

use crate::api::Auth;
use crate::http::{Problem, RemotePeer};
use crate::node::Health;
use crate::telemetry::Metrics;
use crate::{config, console};

/// What the pages for machines are made from.
#[derive(Clone)]
pub struct HealthPages {
    pub health: Arc<Health>,
    pub metrics: Arc<Metrics>,
    /// Who may read the figures.
    pub readers: config::Readers,
    pub auth: Arc<Auth>,
}

/// Everything that is not a webhook.
pub fn router(pages: HealthPages) -> Router {
    Router::new()
        .route(
            "/",
            get(async |headers: HeaderMap| {
                let text = "Sekisho is running. Webhooks come in at /webhooks/{source}, people at /console; see /health/ready.\n";
                console::front_door(&headers).unwrap_or_else(|| text.into_response())
            }),
        )
        .route("/health/live", get(async || Json(json!({ "status": "live" }))))
        .route("/health/ready", get(ready))
        .route("/metrics", get(figures))
        .fallback(async || nothing_here().into_answer())
        .with_state(pages)
}

fn nothing_here() -> Problem {
    let kind = "urn:sekisho:problem:not-found";
    let detail = "Webhooks come in at /webhooks/{source}, where {source} is a configured name";
    let problem = Problem::new(StatusCode::NOT_FOUND, kind, "Not found");
    Problem { detail: Some(detail.into()), ..problem }
}

/// Strangers are told that, and a word why; what the database said is for the log, and for whoever shows a key.
async fn ready(
    State(pages): State<HealthPages>,
    peer: Option<Extension<RemotePeer>>,
    headers: HeaderMap,
) -> impl IntoResponse {
    let Some(unready) = pages.health.unready() else {
        return (StatusCode::OK, Json(json!({ "status": "ready" })));
    };
    let caller = pages.auth.caller(&headers, peer.map(|Extension(peer)| peer)).await;
    let is_known = caller.is_ok_and(|caller| caller.is_some_and(|caller| caller.tenant.is_none()));
    let answer = if is_known {
        json!({ "status": "unready", "reason": unready.reason, "detail": unready.detail })
    } else {
        json!({ "status": "unready", "reason": unready.reason })
    };
    (StatusCode::SERVICE_UNAVAILABLE, Json(answer))
}

async fn figures(
    State(pages): State<HealthPages>,
    peer: Option<Extension<RemotePeer>>,
    headers: HeaderMap,
) -> axum::response::Response {
    if let Err(problem) = may_read(&pages, peer.map(|Extension(peer)| peer), &headers).await {
        return problem.into_answer();
    }
    pages.metrics.ready.set(i64::from(pages.health.unready().is_none()));
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], pages.metrics.encode()).into_response()
}

async fn may_read(pages: &HealthPages, peer: Option<RemotePeer>, headers: &HeaderMap) -> Result<(), Problem> {
    match pages.readers {
        config::Readers::Nobody => return Err(nothing_here()),
        config::Readers::Everybody => return Ok(()),
        config::Readers::Private if peer.is_some_and(|peer| peer.is_near(headers)) => return Ok(()),
        config::Readers::Private => {}
    }
    let kind = "urn:sekisho:problem:unauthorized";
    let title = "Unauthorized";
    let detail = "from outside the private network send `Authorization: Bearer KEY`, with a key that may read everything; \
                  [telemetry] metrics of the configuration says who may read without";
    let refused = |status| Problem { detail: Some(detail.into()), ..Problem::new(status, kind, title) };
    match pages.auth.caller(headers, peer).await? {
        None => Err(refused(StatusCode::UNAUTHORIZED)),
        Some(caller) if caller.tenant.is_some() => Err(refused(StatusCode::FORBIDDEN)),
        Some(_) => Ok(()),
    }
}
