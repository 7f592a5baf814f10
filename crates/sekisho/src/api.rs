//! What people do and see, over HTTP: everything under `/v1`, as JSON, with errors as Problem Details.
//!
//! One table of endpoints makes both the router and the OpenAPI document, so they can't drift apart. Each endpoint file
//! holds its part of the table and its answers. What is written goes through [`crate::transition`], what is shown
//! through [`crate::view`].

mod audit;
mod auth;
mod dead_letters;
mod endpoint;
mod events;
mod messages;
mod openapi;
mod problem;
mod routes;
mod schedules;
mod schema;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Query, RawPathParams, Request, State};
use axum::routing::{MethodRouter, any, on};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, Uri, header};
use sekisho_core::Secret;
use sekisho_store::Store;

use crate::config::{Config, Schedule};
use crate::http::Problem;
use crate::transition::Known;
use crate::view::Place;
use crate::worker::Worker;
use auth::{Caller, Keys};
use endpoint::Call;

pub use auth::ACTOR;
pub use endpoint::{Endpoint, Verb};

/// Most bytes of an order.
const BODY_BYTES_MAX: usize = 1 << 20;
const BODY_WITHIN: Duration = Duration::from_secs(10);

/// Every endpoint, in the order of the document.
pub fn endpoints() -> impl Iterator<Item = &'static Endpoint> {
    [
        events::ENDPOINTS,
        dead_letters::ENDPOINTS,
        messages::ENDPOINTS,
        routes::ENDPOINTS,
        schedules::ENDPOINTS,
        audit::ENDPOINTS,
        openapi::ENDPOINTS,
    ]
    .into_iter()
    .flatten()
}

/// What endpoints work with.
pub struct Api {
    store: Arc<dyn Store>,
    worker: Arc<Worker>,
    known: Known,
    places: Vec<Place>,
    schedules: Vec<Schedule>,
    keys: Keys,
}

/// `own` is the key of commands on this machine.
pub fn router(config: &Config, own: Option<Secret>, store: Arc<dyn Store>, worker: Arc<Worker>) -> Router {
    let api = Api {
        store,
        worker,
        known: Known::of(config),
        places: Place::all(config),
        schedules: config.schedules.clone(),
        keys: Keys::new(&config.keys, own.as_ref()),
    };
    let mut router = Router::new().route("/v1/{*rest}", any(async || problem::no_such_path().into_answer()));
    for endpoint in endpoints() {
        router = router.route(endpoint.path, method(endpoint));
    }
    router.with_state(Arc::new(api))
}

/// A path has one method; every other is told so.
fn method(endpoint: &'static Endpoint) -> MethodRouter<Arc<Api>> {
    let run = async move |State(api): State<Arc<Api>>, path: RawPathParams, request: Request| {
        let path = path.iter().next().map(|(_, value)| value.to_owned()).unwrap_or_default();
        answer(endpoint, api, path, request).await
    };
    on(endpoint.method.filter(), run).fallback(async || {
        let mut answer = problem::wrong_method(endpoint.method.name()).into_answer();
        answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static(endpoint.method.name()));
        answer
    })
}

async fn answer(
    endpoint: &'static Endpoint,
    api: Arc<Api>,
    path: String,
    request: Request,
) -> Response<Body> {
    match carry_out(endpoint, api, path, request).await {
        Ok(value) => {
            let mut answer = Response::new(Body::from(value.to_string()));
            let kind = HeaderValue::from_static("application/json");
            answer.headers_mut().insert(header::CONTENT_TYPE, kind);
            answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
            answer
        }
        Err(problem) => problem.into_answer(),
    }
}

/// Who asks, what they ask for, then the endpoint itself.
async fn carry_out(
    endpoint: &'static Endpoint,
    api: Arc<Api>,
    path: String,
    request: Request,
) -> Result<serde_json::Value, Problem> {
    let caller = admit(endpoint, &api, request.headers()).await?;
    let params = params(endpoint, request.uri())?;
    let body = read(endpoint, request.into_body()).await?;
    (endpoint.run)(Call { api, actor: caller.name, tenant: caller.tenant, path, params, body }).await
}

async fn admit(endpoint: &Endpoint, api: &Api, headers: &HeaderMap) -> Result<Caller, Problem> {
    let Some(scope) = endpoint.scope else { return Ok(Caller::nobody()) };
    let caller = api.keys.find(headers, &*api.store).await?.ok_or_else(problem::no_key)?;
    if caller.scope < scope {
        return Err(problem::no_scope(&caller.name, scope));
    }
    Ok(caller)
}

fn params(endpoint: &Endpoint, uri: &Uri) -> Result<Vec<(String, String)>, Problem> {
    let unreadable = |_| problem::wrong("the part of the address after ? can't be read".into());
    let Query(given) = Query::<Vec<(String, String)>>::try_from_uri(uri).map_err(unreadable)?;
    for (n, (name, _)) in given.iter().enumerate() {
        if !endpoint.parameters.iter().any(|known| known.name == *name) {
            let known: Vec<_> = endpoint.parameters.iter().map(|known| known.name).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(problem::wrong(format!("there is no parameter {name:?} here; known are: {known}")));
        }
        if given[..n].iter().any(|(earlier, _)| earlier == name) {
            return Err(problem::wrong(format!("the parameter {name} stands there twice")));
        }
    }
    Ok(given)
}

async fn read(endpoint: &Endpoint, body: Body) -> Result<Bytes, Problem> {
    if endpoint.body.is_none() {
        return Ok(Bytes::new());
    }
    let read = tokio::time::timeout(BODY_WITHIN, axum::body::to_bytes(body, BODY_BYTES_MAX)).await;
    let read = read.map_err(|_| problem::body(StatusCode::REQUEST_TIMEOUT, "The body came too slowly"))?;
    read.map_err(|_| {
        problem::body(StatusCode::PAYLOAD_TOO_LARGE, "The body is larger than 1 MiB, or broke off")
    })
}

#[cfg(test)]
mod tests;
