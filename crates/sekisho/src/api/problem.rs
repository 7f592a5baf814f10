//! Every "no" of the API. The one `match` from refusals to statuses stands here.

use axum::body::Body;
use http::{HeaderValue, Response, StatusCode, header};

use crate::acts::Refusal;
use crate::config::Scope;
use crate::http::Problem;
use crate::types::{FieldError, FullSlot};

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Invalid(detail) => wrong(detail),
            Refusal::Fields(errors) => fields(StatusCode::UNPROCESSABLE_ENTITY, errors),
            Refusal::Forbidden(error) => fields(StatusCode::FORBIDDEN, vec![error]),
            Refusal::Conflict(detail) => {
                let (kind, title) = ("urn:sekisho:problem:conflict", "Conflict");
                problem(StatusCode::CONFLICT, kind, title, detail)
            }
            Refusal::Missing(detail) => missing(detail),
            Refusal::RetryLater { detail, seconds } => later(detail, seconds),
            Refusal::Full { free, retry_after_seconds } => {
                let (kind, title) = ("urn:sekisho:problem:slot_full", "Slot full");
                let detail = Refusal::Full { free, retry_after_seconds }.to_string();
                let problem = problem(StatusCode::CONFLICT, kind, title, detail);
                Problem { full: Some(Box::new(FullSlot { free, retry_after_seconds })), ..problem }
            }
            Refusal::Store(error) => error.into(),
        }
    }
}

impl From<sekisho_store::Error> for Problem {
    fn from(error: sekisho_store::Error) -> Self {
        // What the database said is for the operator's log, not for whoever calls.
        tracing::error!(
            error_type = "store_unavailable",
            error = error.chain(),
            "API: the database does not respond"
        );
        let mut problem = Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "urn:sekisho:problem:store-unavailable",
            "The database does not respond",
        );
        problem.retry_after = Some(1);
        problem
    }
}

impl Problem {
    pub fn into_answer(self) -> Response<Body> {
        let needs_key = self.status == StatusCode::UNAUTHORIZED.as_u16();
        let mut answer = self.into_response().map(Body::new);
        if needs_key {
            answer.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        answer
    }
}

fn problem(status: StatusCode, kind: &'static str, title: &'static str, detail: String) -> Problem {
    Problem { detail: Some(detail), ..Problem::new(status, kind, title) }
}

pub fn wrong(detail: String) -> Problem {
    let title = "Bad request";
    problem(StatusCode::BAD_REQUEST, "urn:sekisho:problem:bad-request", title, detail)
}

/// A parameter after the `?`, or a header, that can't be taken as it is.
pub fn parameter(name: &str, detail: String) -> Problem {
    let error = FieldError::new(name, detail);
    let problem = wrong(error.to_string());
    Problem { errors: [error].into(), ..problem }
}

fn fields(status: StatusCode, errors: Vec<FieldError>) -> Problem {
    let detail = errors.iter().map(FieldError::to_string).collect::<Vec<_>>().join("; ");
    let problem = problem(status, "urn:sekisho:problem:fields", "Invalid fields", detail);
    Problem { errors: errors.into(), ..problem }
}

pub fn missing(detail: String) -> Problem {
    problem(StatusCode::NOT_FOUND, "urn:sekisho:problem:not-found", "Not found", detail)
}

fn later(detail: String, seconds: u64) -> Problem {
    let (kind, title) = ("urn:sekisho:problem:too-many-requests", "Too many requests");
    let problem = problem(StatusCode::TOO_MANY_REQUESTS, kind, title, detail);
    Problem { retry_after: Some(seconds), ..problem }
}

pub fn no_such_path() -> Problem {
    missing("there is no endpoint at this path; GET /v1/openapi.json lists them".into())
}

pub fn wrong_method(allowed: &str) -> Problem {
    let (kind, title) = ("urn:sekisho:problem:method-not-allowed", "Method not allowed");
    problem(StatusCode::METHOD_NOT_ALLOWED, kind, title, format!("this path takes {allowed}"))
}

pub fn no_key() -> Problem {
    let detail = "send the header `Authorization: Bearer KEY`; `sekisho keys` and [[key]] blocks of the configuration make keys";
    let (kind, title) = ("urn:sekisho:problem:unauthorized", "Unauthorized");
    problem(StatusCode::UNAUTHORIZED, kind, title, detail.into())
}

pub fn too_many_keys(seconds: u64) -> Problem {
    later("too many requests with wrong keys came from this network".into(), seconds)
}

pub fn no_scope(name: &str, wanted: Scope) -> Problem {
    let detail = format!("the key {name} lacks the scope {}", wanted.name());
    problem(StatusCode::FORBIDDEN, "urn:sekisho:problem:forbidden", "Forbidden", detail)
}

pub fn not_for_tenants(name: &str, tenant: &str) -> Problem {
    let detail =
        format!("the key {name} belongs to the tenant {tenant}; this can't be limited to one tenant");
    problem(StatusCode::FORBIDDEN, "urn:sekisho:problem:forbidden", "Forbidden", detail)
}

pub fn not_for_keys(name: &str) -> Problem {
    let detail = format!(
        "the key {name} can't manage users of the console: use the console as an admin, or `sekisho users` on the server"
    );
    problem(StatusCode::FORBIDDEN, "urn:sekisho:problem:forbidden", "Forbidden", detail)
}

pub fn body(status: StatusCode, title: &'static str) -> Problem {
    Problem::new(status, "urn:sekisho:problem:body", title)
}
