//! The pages on which customers see their orders: made on the server, without cookie, log-in or script. The link is the key.
//!
//! A link is checked before the store is asked, and a wrong, expired, revoked or unknown one gets one and the same answer. GET
//! never acts: mail scanners follow links. What is written goes through [`crate::acts`].

mod contact;
mod frame;
mod limit;
mod order;
mod pay;
mod policy;
mod text;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::routing::{any, get, post};
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use sekisho_core::Time;
use sekisho_core::calendar::Zone;
use sekisho_core::language::Language;
use sekisho_core::notification::House;
use sekisho_core::settlement::follow::OrderPolicy;
use sekisho_store::Store;

use crate::config::{Config, Pages};
use crate::http::RemotePeer;
use crate::node::Node;
use crate::queries::{self, CustomerOrder};
use crate::telemetry::OrderFigures;
use frame::{CustomerFrame, Reply};
use limit::{LimitedUse, VisitLimits};

const FORM_BYTES_MAX: usize = 32 << 10;
const FORM_WITHIN: Duration = Duration::from_secs(10);

/// The form that asks for another session ends at the provider's page.
const CONTENT_POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self' https://checkout.stripe.com; base-uri 'none'; \
     frame-ancestors 'none'";

/// What pages work with.
struct Customers {
    store: Arc<dyn Store>,
    node: Arc<Node>,
    policy: OrderPolicy,
    house: House,
    pages: Pages,
    zone: Zone,
    limits: VisitLimits,
    figures: OrderFigures,
}

/// A customer at the page of their order.
struct Visit {
    shop: Arc<Customers>,
    order: CustomerOrder,
    /// The last part of the link.
    token: String,
    lang: Language,
    /// Whether the language was chosen by hand, and must stay on the way to other pages.
    is_chosen: bool,
    params: Vec<(String, String)>,
    form: Vec<(String, String)>,
    at: Time,
}

/// Why there is no page.
#[derive(Debug)]
enum Trouble {
    /// Wrong, expired, revoked and unknown links: which of them, nobody is told.
    Unknown,
    TooMany,
    /// A form of another site, or one that can't be read.
    Refused,
    /// The store, or the clock.
    Later,
}

type Answer = Result<Reply, Trouble>;

pub fn router(config: &Config, store: Arc<dyn Store>, node: Arc<Node>, figures: OrderFigures) -> Router {
    let zone = Zone::try_from(config.notifications.house.time_zone.clone());
    let shop = Arc::new(Customers {
        store,
        node,
        policy: config.orders(),
        house: config.notifications.house.clone(),
        pages: config.pages.clone(),
        zone: zone.expect("the configuration was checked"),
        limits: VisitLimits::default(),
        figures,
    });
    Router::new()
        .route("/policy", get(show_policy))
        .route("/o/assets/customer.css", get(style))
        .route("/o/{token}", get(at("order", |visit| Box::pin(order::show(visit)))))
        .route("/o/{token}/failed", get(at("failed", |visit| Box::pin(order::failed(visit)))))
        .route("/o/{token}/thanks", get(at("thanks", |visit| Box::pin(order::thanks(visit)))))
        .route("/o/{token}/retry", post(at("retry", |visit| Box::pin(pay::retry(visit)))))
        .route("/o/{token}/paying", get(at("paying", |visit| Box::pin(pay::paying(visit)))))
        .route(
            "/o/{token}/cancel",
            get(at("cancel", |visit| Box::pin(order::ask_to_cancel(visit))))
                .post(at("cancel", |visit| Box::pin(order::cancel(visit)))),
        )
        .route(
            "/o/{token}/contact",
            get(at("contact", |visit| Box::pin(contact::ask(visit))))
                .post(at("contact", |visit| Box::pin(contact::send(visit)))),
        )
        .route("/o/{token}/{*rest}", any(nothing_here))
        .with_state(shop)
}

type Running<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Token = Result<Path<String>, PathRejection>;

/// A page of an order, behind the guard.
fn at(
    page: &'static str,
    run: fn(Visit) -> Running<Answer>,
) -> impl Fn(State<Arc<Customers>>, Token, Request) -> Running<Response<Body>> + Clone {
    move |State(shop), token, request| {
        let token = token.map(|Path(token)| token).unwrap_or_default();
        Box::pin(at_order(shop, token, request, page, run))
    }
}

/// The guard of every page of an order.
async fn at_order(
    shop: Arc<Customers>,
    token: String,
    request: Request,
    page: &'static str,
    run: fn(Visit) -> Running<Answer>,
) -> Response<Body> {
    let wanted = frame::language(None, request.headers(), request.uri(), shop.house.language);
    let (lang, answer) = match admit(Arc::clone(&shop), token, request).await {
        Ok(visit) => (visit.lang, run(visit).await),
        Err(trouble) => (wanted.0, Err(trouble)),
    };
    finish(&shop, lang, page, answer)
}

/// The link, then how often it was used, then its order.
async fn admit(shop: Arc<Customers>, token: String, request: Request) -> Result<Visit, Trouble> {
    let at = shop.node.now();
    let (parts, body) = request.into_parts();
    let peer = parts.extensions.get::<RemotePeer>().map(|peer| peer.named.to_string()).unwrap_or_default();
    let is_act = parts.method == http::Method::POST;
    if !shop.limits.allow(LimitedUse::Address, &peer) {
        return Err(Trouble::TooMany);
    }
    let Some(link) = shop.policy.links.keys.read_link(&token, at) else {
        let is_few = shop.limits.allow(LimitedUse::WrongLink, &peer);
        return Err(if is_few { Trouble::Unknown } else { Trouble::TooMany });
    };
    if !shop.limits.allow(if is_act { LimitedUse::Post } else { LimitedUse::Get }, &token) {
        return Err(Trouble::TooMany);
    }
    if is_act && parts.headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site") {
        return Err(Trouble::Refused);
    }
    let form = if is_act { read_form(body).await? } else { Vec::new() };
    let order = queries::customer_order(&*shop.store, &shop.policy, link.order).await;
    let order = order.map_err(|error| later(&error))?.ok_or(Trouble::Unknown)?;
    let of_reservation = order.reservation.as_ref().map(|one| one.links);
    let generation = of_reservation.or(order.fulfilment.as_ref().map(|one| one.links)).unwrap_or(0);
    if u32::from(link.generation) < generation {
        return Err(Trouble::Unknown);
    }
    let own = order.reservation.as_ref().and_then(|one| one.ours.language);
    let (lang, is_chosen) = frame::language(own, &parts.headers, &parts.uri, shop.house.language);
    let params = frame::pairs(parts.uri.query().unwrap_or_default().as_bytes());
    Ok(Visit { shop, order, token, lang, is_chosen, params, form, at })
}

fn later(error: &sekisho_store::Error) -> Trouble {
    tracing::warn!(
        error_type = "store_unavailable",
        reason = error.chain(),
        "a customer's page could not be shown"
    );
    Trouble::Later
}

async fn read_form(body: Body) -> Result<Vec<(String, String)>, Trouble> {
    let read = tokio::time::timeout(FORM_WITHIN, axum::body::to_bytes(body, FORM_BYTES_MAX)).await;
    let bytes = read.ok().and_then(Result::ok).ok_or(Trouble::Refused)?;
    Ok(frame::pairs(&bytes))
}

async fn show_policy(State(shop): State<Arc<Customers>>, request: Request) -> Response<Body> {
    let (lang, _) = frame::language(None, request.headers(), request.uri(), shop.house.language);
    let answer = policy::show(&shop, lang);
    finish(&shop, lang, "policy", answer)
}

async fn nothing_here(State(shop): State<Arc<Customers>>, request: Request) -> Response<Body> {
    let (lang, _) = frame::language(None, request.headers(), request.uri(), shop.house.language);
    finish(&shop, lang, "none", Err(Trouble::Unknown))
}

/// One file for every page, in the shop's own colour.
async fn style(State(shop): State<Arc<Customers>>) -> Response<Body> {
    let text = include_str!("../assets/customer.css").replace("#20427f", &shop.pages.accent);
    let mut answer = Response::new(Body::from(text));
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/css; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
    guard(headers);
    answer
}

/// What every answer says.
fn finish(shop: &Customers, lang: Language, page: &'static str, answer: Answer) -> Response<Body> {
    let mut answer = match answer {
        Ok(reply) => reply.into_response(),
        Err(trouble) => frame::trouble(&CustomerFrame::lone(shop, lang, ""), &trouble),
    };
    shop.figures.page(page, answer.status().as_u16());
    guard(answer.headers_mut());
    answer
}

fn guard(headers: &mut HeaderMap) {
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, CONTENT_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (http::HeaderName::from_static("x-robots-tag"), "noindex"),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}

impl Trouble {
    const fn status(&self) -> StatusCode {
        match self {
            Self::Unknown => StatusCode::NOT_FOUND,
            Self::TooMany => StatusCode::TOO_MANY_REQUESTS,
            Self::Refused => StatusCode::BAD_REQUEST,
            Self::Later => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}
