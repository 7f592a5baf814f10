//! The evidence for a payment: as JSON to keep, and as a page that can be printed and handed on.

use axum::body::Body;
use http::{HeaderValue, Response, header};
use serde_json::json;

use crate::console::page::{Answer, Reply, Visit};
use crate::console::trouble::{Resource, Trouble};
use crate::types::PaymentProof;
use crate::view;

/// It has its own style and nothing else: no script, nothing from elsewhere.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(super) async fn html(visit: Visit) -> Answer {
    let report = report(&visit).await?;
    let page = view::proof_page(&report, visit.lang).map_err(|error| Trouble::Broken(error.to_string()))?;
    let mut answer = answered(page, "text/html; charset=utf-8");
    answer.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    Ok(Reply::Other(answer))
}

pub(super) async fn json(visit: Visit) -> Answer {
    let report = report(&visit).await?;
    let mut answer = answered(format!("{:#}\n", json!(report)), "application/json");
    let file = format!("attachment; filename=\"{}-proof.json\"", report.payment.thing.id);
    let file = HeaderValue::from_str(&file).unwrap_or(HeaderValue::from_static("attachment"));
    answer.headers_mut().insert(header::CONTENT_DISPOSITION, file);
    Ok(Reply::Other(answer))
}

async fn report(visit: &Visit) -> Result<PaymentProof, Trouble> {
    let id = &*visit.id;
    let found = view::proof(&*visit.console.store, id, visit.at).await?;
    found.ok_or_else(|| Trouble::unknown(Resource::Payment, id))
}

fn answered(body: String, kind: &'static str) -> Response<Body> {
    let mut answer = Response::new(Body::from(body));
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}
