//! The web pages for operators: everything under `/console`, made on the server, readable without script.
//!
//! One table of pages makes the router, so that nothing is served past the guard: who is it, may they, and does the
//! form come from our own page. Each page file holds its part of the table, its templates' data and its answers. What
//! is written goes through [`crate::acts`].

mod account;
mod alerts;
mod assets;
mod audit;
mod balances;
mod billing;
mod cases;
mod compensations;
#[allow(clippy::disallowed_methods, reason = "samples that people send by hand")]
mod config_summary;
mod dead;
mod deliveries;
mod event;
mod events;
mod frame;
mod fulfilments;
mod inquiries;
mod japanese;
mod language;
mod live;
mod login;
mod notices;
mod order_parts;
mod overview;
mod page;
mod payload;
mod payments;
mod reconciliation;
mod rejections;
mod reservations;
mod route;
mod runs;
mod schedules;
mod search;
mod session;
mod sheet;
mod slots;
mod sources;
mod suppressions;
mod tally;
mod targets;
mod trouble;
mod users;
mod value_format;
mod waiting;
mod zone;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{RawPathParams, Request, State};
use axum::routing::{MethodRouter, any};
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use sekisho_core::alert::AlertPolicy;
use sekisho_core::calendar::Zone;
use sekisho_core::language::Language;
use sekisho_core::notification::template::Templates;
use sekisho_core::target::TargetPolicy;
use sekisho_store::Store;

use crate::attempts::Attempts;
use crate::config::{self, Config, Notifications, Schedule};
use crate::engine::Engine;
use crate::env::Env;
use crate::http::RemotePeer;
use crate::jobs::reconcile::Reconciler;
use crate::node::Health;
use crate::queries::OrderContext;
use crate::telemetry::Metrics;
use crate::view::{ConfiguredChannel, ConfiguredRoute, ROOT};
use config_summary::ConfigSummary;
use page::{Answer, Page, PageNeeds, Reply, Visit, Who};
use session::Cookies;
use trouble::{Resource, Trouble};

/// Most bytes of a form.
const FORM_BYTES_MAX: usize = 256 << 10;
const FORM_WITHIN: Duration = Duration::from_secs(10);

/// Nothing but our own files, and no script in a page: what a provider writes into an event stays text.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; \
     frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Every page and every act, in the order of the menu.
pub fn pages() -> impl Iterator<Item = &'static Page> {
    [
        overview::PAGES,
        events::PAGES,
        event::PAGES,
        live::PAGES,
        deliveries::PAGES,
        dead::PAGES,
        runs::PAGES,
        payments::PAGES,
        billing::PAGES,
        balances::PAGES,
        reservations::PAGES,
        slots::PAGES,
        fulfilments::PAGES,
        cases::PAGES,
        compensations::PAGES,
        inquiries::PAGES,
        notices::PAGES,
        suppressions::PAGES,
        sources::PAGES,
        route::PAGES,
        reconciliation::PAGES,
        schedules::PAGES,
        alerts::PAGES,
        targets::PAGES,
        rejections::PAGES,
        audit::PAGES,
        users::PAGES,
        account::PAGES,
        login::PAGES,
        search::PAGES,
        language::PAGES,
        zone::PAGES,
        assets::PAGES,
    ]
    .into_iter()
    .flatten()
}

/// What pages work with.
pub struct Console {
    pub store: Arc<dyn Store>,
    pub engine: Arc<Engine>,
    pub health: Arc<Health>,
    pub metrics: Arc<Metrics>,
    pub known: OrderContext,
    pub places: Vec<ConfiguredRoute>,
    pub schedules: Vec<Schedule>,
    pub channels: Vec<ConfiguredChannel>,
    pub notifications: Notifications,
    pub templates: Templates,
    /// How long access lasts beyond what was paid.
    pub grace: Duration,
    /// Where people see a trace.
    pub trace_url: Option<String>,
    pub settings: config::Console,
    pub alerts: AlertPolicy,
    pub targets: TargetPolicy,
    pub attempts: Arc<Attempts>,
    pub reconciler: Arc<Reconciler>,
    pub runs: runs::Runs,
    /// What reads everything is done for one at a time.
    pub alone: tokio::sync::Mutex<()>,
    pub summary: ConfigSummary,
    /// Whose clock times are shown by.
    pub zone: Zone,
    pub tally: tally::HourTally,
    pub waiting: waiting::WaitingTally,
    /// Places at the live tail.
    pub tails: live::Tails,
}

impl Console {
    /// The world of this node.
    pub fn env(&self) -> &Env {
        &self.engine.node.env
    }
}

pub fn router(
    config: &Config,
    store: Arc<dyn Store>,
    engine: Arc<Engine>,
    health: Arc<Health>,
    metrics: Arc<Metrics>,
    attempts: Arc<Attempts>,
    reconciler: Arc<Reconciler>,
) -> Router {
    let zone = Zone::try_from(config.notifications.house.time_zone.clone());
    let env = engine.node.env.clone();
    let console = Console {
        store,
        engine,
        health,
        metrics,
        known: OrderContext::of(config),
        places: ConfiguredRoute::all(config),
        schedules: config.schedules.clone(),
        channels: ConfiguredChannel::all(config),
        notifications: config.notifications.clone(),
        templates: config.templates.clone(),
        grace: config.grace,
        trace_url: config.telemetry.trace_url.clone(),
        settings: config.console.clone(),
        alerts: config.alerts.clone(),
        targets: config.targets,
        attempts,
        reconciler,
        runs: runs::Runs::default(),
        alone: tokio::sync::Mutex::default(),
        summary: ConfigSummary::of(config),
        zone: zone.expect("the configuration was checked"),
        tally: tally::HourTally::new(env),
        waiting: waiting::WaitingTally::default(),
        tails: live::Tails::default(),
    };
    let mut paths: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for page in pages() {
        paths.entry(page.path).or_default().push(page);
    }
    let mut router = Router::new();
    for (path, own) in paths {
        router = router.route(path, methods(own));
    }
    for path in ["/console/", "/console/{*rest}"] {
        let run = async |State(console): State<Arc<Console>>, request: Request| {
            answer(&ELSEWHERE, console, String::new(), request).await
        };
        router = router.route(path, any(run));
    }
    router.with_state(Arc::new(console))
}

/// Whatever else somebody asks the console for.
static ELSEWHERE: Page = Page {
    method: page::PageMethod::Get,
    path: "/console/{*rest}",
    needs: PageNeeds::Nothing,
    run: |visit| {
        let path = visit.here.split('?').next().unwrap_or_default().to_owned();
        Box::pin(async { Err(Trouble::Unknown(Resource::Page, path)) })
    },
};

fn methods(own: Vec<&'static Page>) -> MethodRouter<Arc<Console>> {
    let mut methods = MethodRouter::new();
    for page in own {
        let run = async move |State(console): State<Arc<Console>>, path: RawPathParams, request: Request| {
            let id = path.iter().next().map(|(_, value)| value.to_owned()).unwrap_or_default();
            answer(page, console, id, request).await
        };
        methods = methods.on(page.method.filter(), run);
    }
    methods
}

/// The guard of every page.
async fn answer(page: &'static Page, console: Arc<Console>, id: String, request: Request) -> Response<Body> {
    let is_secure = console.settings.is_secure();
    let cookies = Cookies::of(request.headers(), is_secure);
    let lang = cookies.language(request.headers());
    let (seed, is_told) = (cookies.seed(), cookies.flash().is_some());
    let mut answer = match admit(page, console, id, lang, &cookies, request).await {
        Ok(reply) => reply.into_response(lang, is_secure),
        Err(trouble) => trouble.into_response(lang),
    };
    guard(answer.headers_mut());
    // Only pages: what a cache may keep carries no cookie.
    let is_page = answer.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == page::HTML);
    // What was to be said once is on the page now.
    if is_told && is_page && answer.status() == StatusCode::OK {
        session::clear_flash(answer.headers_mut(), is_secure);
    }
    if let Some(seed) = seed.filter(|_| is_page) {
        session::set_seed(answer.headers_mut(), &seed, is_secure);
    }
    answer
}

/// Who it is, whether they may, whether it is our own form; then the page itself.
async fn admit(
    page: &'static Page,
    console: Arc<Console>,
    id: String,
    lang: Language,
    cookies: &Cookies,
    request: Request,
) -> Answer {
    let at = console.engine.node.now();
    let (parts, body) = request.into_parts();
    let peer = parts.extensions.get::<RemotePeer>().copied();
    let who = match page.needs {
        PageNeeds::Nothing => None,
        PageNeeds::Nobody | PageNeeds::Rank(_) => {
            session::find(&console, &parts.headers, cookies, peer, at).await?
        }
    };
    let here = parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
    match (page.needs, &who) {
        (PageNeeds::Rank(_), None) if page.method == page::PageMethod::Get => return Ok(Reply::enter(&here)),
        (PageNeeds::Rank(_), None) => return Err(Trouble::Nobody),
        (PageNeeds::Rank(rank), Some(who)) if who.rank < rank => return Err(Trouble::Rank(rank)),
        (PageNeeds::Nothing | PageNeeds::Nobody, _) | (PageNeeds::Rank(_), Some(_)) => {}
    }
    let csrf = cookies.csrf();
    let form = match page.method {
        page::PageMethod::Get => Vec::new(),
        page::PageMethod::Post => {
            let form = read(body).await?;
            session::check_form(&parts.headers, &form, &csrf, console.settings.url.as_deref())?;
            form
        }
    };
    let params = page::pairs(parts.uri.query().unwrap_or_default().as_bytes());
    check_texts(&id, &params, &form)?;
    let waiting = match (page.needs, page.method) {
        (PageNeeds::Rank(_), page::PageMethod::Get) => {
            console.waiting.look(&*console.store, &console.known.orders, at).await
        }
        (PageNeeds::Rank(_), page::PageMethod::Post) => {
            console.waiting.forget();
            waiting::Waiting::default()
        }
        (PageNeeds::Nothing | PageNeeds::Nobody, _) => waiting::Waiting::default(),
    };
    let text =
        |name| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let zone = cookies.zone();
    let visit = Visit {
        is_zone_chosen: zone.is_some(),
        zone: zone.unwrap_or_else(|| console.zone.clone()),
        console,
        who: who.unwrap_or_else(Who::nobody),
        lang,
        id,
        here,
        params,
        form,
        csrf,
        flash: cookies.flash(),
        device: cookies.device().map(str::to_owned),
        agent: text(header::USER_AGENT),
        last_event_id: parts.headers.get("last-event-id").and_then(|id| id.to_str().ok()).map(str::to_owned),
        peer: peer.map(|peer| peer.named.to_string()).unwrap_or_default(),
        waiting,
        at,
    };
    (page.run)(visit).await
}

/// What no database can look for is not looked for. A form's texts may have several lines.
fn check_texts(id: &str, params: &[(String, String)], form: &[(String, String)]) -> Result<(), Trouble> {
    let is_odd = |text: &str| text.contains(char::is_control);
    if is_odd(id) {
        return Err(Trouble::missing("nothing has a name with control characters".into()));
    }
    let odd = params.iter().find(|(_, value)| is_odd(value));
    match odd.or_else(|| form.iter().find(|(_, value)| value.contains('\0'))) {
        Some((name, _)) => Err(Trouble::wrong(format!("{name}: it has control characters"))),
        None => Ok(()),
    }
}

async fn read(body: Body) -> Result<Vec<(String, String)>, Trouble> {
    let read = tokio::time::timeout(FORM_WITHIN, axum::body::to_bytes(body, FORM_BYTES_MAX)).await;
    let bytes = read.ok().and_then(Result::ok);
    Ok(page::pairs(&bytes.ok_or_else(|| Trouble::wrong("the form is too large, or came too slowly".into()))?))
}

/// What every answer says, whatever it is, unless it says otherwise itself.
fn guard(headers: &mut HeaderMap) {
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}

/// Where a browser is sent that asks for the root.
pub fn front_door(headers: &HeaderMap) -> Option<Response<Body>> {
    let accepts = headers.get(header::ACCEPT)?.to_str().ok()?;
    accepts.contains("text/html").then(|| {
        let mut answer = Response::new(Body::empty());
        *answer.status_mut() = StatusCode::SEE_OTHER;
        answer.headers_mut().insert(header::LOCATION, HeaderValue::from_static(ROOT));
        answer
    })
}

#[cfg(test)]
mod tests;
