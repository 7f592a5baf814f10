//! What people do and see, over HTTP: everything under `/v1`, as JSON, with errors as Problem Details.
//!
//! One table of endpoints makes both the router and the OpenAPI document, so they can't drift apart. Each endpoint file
//! holds its part of the table and its answers. What is written goes through [`crate::acts`], what is shown
//! through [`crate::view`]; [`crate::types`] says what all of it looks like.

mod alerts;
mod audit;
mod auth;
mod balances;
mod billing;
mod books;
mod cases;
mod channels;
mod compensation_rules;
mod customers;
mod dead_letters;
mod deliveries;
mod endpoint;
mod events;
mod fulfilments;
mod import;
mod inquiries;
mod keys;
mod members;
mod messages;
mod notices;
mod openapi;
mod order_links;
mod params;
mod payments;
mod problem;
mod reconciliations;
mod rejections;
mod reminders;
mod reservations;
mod routes;
mod schedules;
mod slots;
mod sources;
mod staff;
mod subjects;
mod suppressions;
mod tenants;
mod users;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Query, RawPathParams, Request, State};
use axum::routing::{MethodRouter, any};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, Uri, header};
use sekisho_core::alert::AlertPolicy;
use sekisho_core::target::TargetPolicy;
use sekisho_store::Store;

use crate::acts;
use crate::acts::Holds;
use crate::config::{Config, Notifications, Schedule};
use crate::engine::Engine;
use crate::env::Env;
use crate::http::{Problem, RemotePeer};
use crate::jobs::reconcile::Reconciler;
use crate::queries::OrderContext;
use crate::view::{ConfiguredChannel, ConfiguredRoute};
use auth::Caller;
use endpoint::{Answer, Call};
use params::Params;

pub use auth::{ACTOR, Auth};
pub use endpoint::{Endpoint, Method};

/// Most bytes of an order.
const BODY_BYTES_MAX: usize = 1 << 20;
const BODY_WITHIN: Duration = Duration::from_secs(10);

/// Under which name an order is sent, so that it is carried out once; and what is said of an answer that is repeated.
const ONCE: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// Every endpoint, in the order of the document.
pub fn endpoints() -> impl Iterator<Item = &'static Endpoint> {
    [
        payments::ENDPOINTS,
        slots::ENDPOINTS,
        reservations::ENDPOINTS,
        fulfilments::ENDPOINTS,
        cases::ENDPOINTS,
        inquiries::ENDPOINTS,
        order_links::ENDPOINTS,
        compensation_rules::ENDPOINTS,
        billing::ENDPOINTS,
        balances::ENDPOINTS,
        books::ENDPOINTS,
        tenants::ENDPOINTS,
        customers::ENDPOINTS,
        staff::ENDPOINTS,
        subjects::ENDPOINTS,
        import::ENDPOINTS,
        events::ENDPOINTS,
        sources::ENDPOINTS,
        reconciliations::ENDPOINTS,
        deliveries::ENDPOINTS,
        dead_letters::ENDPOINTS,
        rejections::ENDPOINTS,
        messages::ENDPOINTS,
        notices::ENDPOINTS,
        suppressions::ENDPOINTS,
        reminders::ENDPOINTS,
        channels::ENDPOINTS,
        routes::ENDPOINTS,
        schedules::ENDPOINTS,
        alerts::ENDPOINTS,
        audit::ENDPOINTS,
        keys::ENDPOINTS,
        users::ENDPOINTS,
        openapi::ENDPOINTS,
    ]
    .into_iter()
    .flatten()
}

/// What endpoints work with.
pub struct ApiContext {
    store: Arc<dyn Store>,
    /// None where no node runs: a command calls the endpoints in its own process.
    engine: Option<Arc<Engine>>,
    /// Of the node, or of this machine where none runs.
    env: Env,
    known: OrderContext,
    /// Where requests for places wait.
    holds: Holds,
    places: Vec<ConfiguredRoute>,
    schedules: Vec<Schedule>,
    channels: Vec<ConfiguredChannel>,
    notifications: Notifications,
    reconciler: Arc<Reconciler>,
    /// How long access lasts beyond what was paid.
    grace: Duration,
    trace_url: Option<String>,
    alerts: AlertPolicy,
    targets: TargetPolicy,
    console_url: String,
    auth: Arc<Auth>,
}

/// What of the configuration endpoints work with.
pub struct ApiSettings {
    pub known: OrderContext,
    pub places: Vec<ConfiguredRoute>,
    pub schedules: Vec<Schedule>,
    pub channels: Vec<ConfiguredChannel>,
    pub notifications: Notifications,
    pub reconciler: Arc<Reconciler>,
    pub grace: Duration,
    /// Where requests for places wait, if others share it.
    pub holds: Option<Holds>,
    /// Where people see a trace.
    pub trace_url: Option<String>,
    pub alerts: AlertPolicy,
    pub targets: TargetPolicy,
    pub console_url: String,
}

impl ApiSettings {
    pub fn of(config: &Config, reconciler: Arc<Reconciler>) -> Self {
        Self {
            known: OrderContext::of(config),
            places: ConfiguredRoute::all(config),
            schedules: config.schedules.clone(),
            channels: ConfiguredChannel::all(config),
            notifications: config.notifications.clone(),
            reconciler,
            grace: config.grace,
            holds: None,
            trace_url: config.telemetry.trace_url.clone(),
            alerts: config.alerts.clone(),
            targets: config.targets,
            console_url: config.console_url(),
        }
    }
}

/// The endpoints of a server; without an engine, those of a command that acts while no server runs.
pub fn router(
    settings: ApiSettings,
    auth: Arc<Auth>,
    store: Arc<dyn Store>,
    engine: Option<Arc<Engine>>,
) -> Router {
    let ApiSettings {
        known,
        places,
        schedules,
        channels,
        notifications,
        reconciler,
        grace,
        holds,
        trace_url,
        alerts,
        targets,
        console_url,
    } = settings;
    let env = engine.as_ref().map_or_else(Env::system, |engine| engine.node.steady_env());
    let api = ApiContext {
        store,
        engine,
        holds: holds.unwrap_or_else(|| Holds::new(env.clone(), None)),
        env,
        known,
        places,
        schedules,
        channels,
        notifications,
        reconciler,
        grace,
        trace_url,
        alerts,
        targets,
        console_url,
        auth,
    };
    let mut router = Router::new().route("/v1/{*rest}", any(async || problem::no_such_path().into_answer()));
    let mut paths: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for endpoint in endpoints() {
        paths.entry(endpoint.path).or_default().push(endpoint);
    }
    for (path, own) in paths {
        router = router.route(path, methods(own));
    }
    router.with_state(Arc::new(api))
}

/// The methods of one path; every other is told so.
fn methods(own: Vec<&'static Endpoint>) -> MethodRouter<Arc<ApiContext>> {
    let allowed = own.iter().map(|endpoint| endpoint.method.name()).collect::<Vec<_>>().join(", ");
    let mut methods = MethodRouter::new();
    for endpoint in own {
        let known: Arc<[String]> = params::names(endpoint).into();
        let run = async move |State(api): State<Arc<ApiContext>>, path: RawPathParams, request: Request| {
            let path = path.iter().next().map(|(_, value)| value.to_owned()).unwrap_or_default();
            answer(endpoint, &known, api, path, request).await
        };
        methods = methods.on(endpoint.method.filter(), run);
    }
    methods.fallback(async move || {
        let mut answer = problem::wrong_method(&allowed).into_answer();
        let allowed = HeaderValue::from_str(&allowed).expect("names of methods are ASCII");
        answer.headers_mut().insert(header::ALLOW, allowed);
        answer
    })
}

async fn answer(
    endpoint: &'static Endpoint,
    known: &[String],
    api: Arc<ApiContext>,
    path: String,
    request: Request,
) -> Response<Body> {
    let answered = carry_out(endpoint, known, Arc::clone(&api), path, request).await;
    if endpoint.path.starts_with(reservations::PATH) {
        let status =
            answered.as_ref().map_or_else(|problem| problem.status, |_| endpoint.success.status().as_u16());
        api.holds.answers().note(status, api.env.wall());
    }
    match answered {
        Ok(reply) => {
            let mut answer = Response::new(Body::from(reply.value.to_string()));
            *answer.status_mut() = endpoint.success.status();
            let headers = answer.headers_mut();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
            if reply.repeated {
                headers.insert(REPLAYED, HeaderValue::from_static("true"));
            }
            answer
        }
        Err(problem) => problem.into_answer(),
    }
}

/// Who asks, what they ask for, then the endpoint itself.
async fn carry_out(
    endpoint: &'static Endpoint,
    known: &[String],
    api: Arc<ApiContext>,
    path: String,
    request: Request,
) -> Answer {
    let peer = request.extensions().get::<RemotePeer>().copied();
    let caller = admit(endpoint, &api, &path, request.headers(), peer).await?;
    if path.contains(char::is_control) {
        return Err(problem::missing("nothing has an id with control characters".into()));
    }
    let params = Params::check(given(request.uri())?, known)?;
    let key = request.headers().get(ONCE).filter(|_| endpoint.success.is_once()).cloned();
    let body = read(endpoint, request.into_body()).await?;
    let request = key.map(|key| order_once(endpoint, &path, &caller, &key, &body)).transpose()?;
    let Caller { name: actor, role, scope, tenant, run } = caller;
    (endpoint.run)(Call { api, actor, role, scope, tenant, run, path, params, body, request }).await
}

/// Which order it is, by its sender's `Idempotency-Key`.
fn order_once(
    endpoint: &Endpoint,
    path: &str,
    caller: &Caller,
    key: &HeaderValue,
    body: &[u8],
) -> Result<acts::OnceKey, Problem> {
    let unreadable = |_| problem::parameter("Idempotency-Key", "expected ASCII characters".into());
    let key = key.to_str().map_err(unreadable)?;
    let order = endpoint::order(body)?;
    let what = [endpoint.path, path].concat();
    Ok(acts::OnceKey::new(&caller.name, caller.tenant.as_deref(), key, &what, &order)?)
}

async fn admit(
    endpoint: &Endpoint,
    api: &ApiContext,
    path: &str,
    headers: &HeaderMap,
    peer: Option<RemotePeer>,
) -> Result<Caller, Problem> {
    let Some(scope) = endpoint.scope else { return Ok(Caller::nobody()) };
    if endpoint.path == fulfilments::RESULT
        && let Some(caller) = Caller::of_run(headers, &api.known.orders.links.keys, path)
    {
        return Ok(caller);
    }
    let caller = api.auth.caller(headers, peer).await?.ok_or_else(problem::no_key)?;
    if caller.scope < scope {
        return Err(problem::no_scope(&caller.name, scope));
    }
    match &caller.tenant {
        Some(tenant) if !endpoint.for_tenants => Err(problem::not_for_tenants(&caller.name, tenant)),
        _ => Ok(caller),
    }
}

fn given(uri: &Uri) -> Result<Vec<(String, String)>, Problem> {
    let unreadable = |_| problem::wrong("the part of the address after ? can't be read".into());
    let Query(given) = Query::try_from_uri(uri).map_err(unreadable)?;
    Ok(given)
}

async fn read(endpoint: &Endpoint, body: Body) -> Result<Bytes, Problem> {
    if endpoint.body.is_none() {
        return Ok(Bytes::new());
    }
    let read = tokio::time::timeout(BODY_WITHIN, axum::body::to_bytes(body, BODY_BYTES_MAX)).await;
    let read = read.map_err(|_| problem::body(StatusCode::REQUEST_TIMEOUT, "Request timeout"))?;
    read.map_err(|_| {
        problem::body(StatusCode::PAYLOAD_TOO_LARGE, "The body is larger than 1 MiB or incomplete")
    })
}

#[cfg(test)]
mod tests;
