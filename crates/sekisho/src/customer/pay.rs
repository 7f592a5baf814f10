//! Paying, and paying once more: a new Checkout Session when the one before can't be paid any more.

use askama::Template;
use http::StatusCode;
use sekisho_core::actor::Actor;
use sekisho_core::audit::Role;
use sekisho_core::reservation::ReservationStatus;
use sekisho_core::settlement::checkout::choose;
use sekisho_core::settlement::payment::{Facts, TryFate};

use super::frame::{CustomerFrame, Reply};
use super::limit::LimitedUse;
use super::order::is_paid;
use super::{Answer, Trouble, Visit};
use crate::acts::{self, CheckoutRequest, Refusal};
use crate::queries;
use crate::types::ReservedCheckout;

/// Where browsers may be sent from a form; see the content policy. Sessions with addresses of the shop's own are linked.
const TILL: &str = "https://checkout.stripe.com/";

/// How a customer pays.
pub enum PayWay {
    /// At a page of the app's.
    Link(String),
    /// In a session that is made for them. Those up to `after` are of no use to them.
    Form { action: String, after: u32 },
}

impl PayWay {
    /// How this order is paid, while it can be. Places that lapsed may still be free.
    pub fn of(visit: &Visit, after: u32) -> Option<Self> {
        let reservation = visit.order.reservation.as_ref()?;
        let (ours, policy) = (&reservation.ours, &visit.shop.policy);
        let status = reservation.status(visit.at, policy.grace_ms);
        let payment = visit.order.payment.as_ref();
        let before = payment.and_then(Facts::newest_try).map(|(_, one)| &*one.wish.source);
        let named = before.filter(|source| !source.is_empty());
        if policy.checkout.source(named, ours.livemode).is_ok() {
            let is_waited_for = matches!(status, ReservationStatus::Hold | ReservationStatus::Expired);
            let payment = payment.filter(|_| is_waited_for)?;
            return choose(payment, after).is_ok().then(|| Self::Form { action: visit.link("retry"), after });
        }
        let url = ours.retry_url.clone().filter(|_| status == ReservationStatus::Hold);
        url.map(Self::Link)
    }
}

/// Asks for a session, and goes there once it is known.
pub async fn retry(visit: Visit) -> Answer {
    let Some(payment) = visit.order.reservation.as_ref().and_then(|one| one.ours.payment.clone()) else {
        return Err(Trouble::Unknown);
    };
    if !visit.shop.limits.allow(LimitedUse::Retry, &visit.token) {
        return Err(Trouble::TooMany);
    }
    // By a clock that may be wrong no place is kept or given away.
    if !visit.shop.node.clock_is_sure() {
        return Err(Trouble::Later);
    }
    let (shop, id) = (&visit.shop, &visit.order.id);
    let actor = Actor { name: id, role: Role::Customer, tenant: None, at: visit.at };
    let after = visit.field("after").parse().unwrap_or_default();
    // As the session before, so that whoever comes back does so where the app wants it.
    let before = visit.order.payment.as_ref().and_then(Facts::newest_try).map(|(_, one)| one.wish.clone());
    let before = before.filter(|wish| !wish.source.is_empty());
    let asked = before.map_or_else(ReservedCheckout::default, |wish| ReservedCheckout {
        source: Some(wish.source),
        success_url: wish.success_url,
        methods: Some(wish.methods),
    });
    let order = CheckoutRequest::Make { asked, after };
    match acts::check_out(&*shop.store, &shop.node.env, &shop.policy, id, &order, None, &actor).await {
        Ok(_) => {}
        Err(Refusal::Full { .. }) => return Ok(Reply::with(StatusCode::CONFLICT, &gone(&visit))),
        Err(Refusal::Conflict(_)) => return Ok(Reply::Go(visit.link("paying"))),
        Err(Refusal::Store(error)) => return Err(super::later(&error)),
        Err(refusal) => {
            tracing::warn!(error_type = "retry_refused", reason = %refusal, "a customer could not pay once more");
            return Err(Trouble::Later);
        }
    }
    let facts =
        queries::awaited_payment(&*shop.store, &payment).await.map_err(|error| super::later(&error))?;
    let place = facts.as_ref().and_then(Facts::open_session).and_then(|(_, place)| place.url.clone());
    let is_till = |url: &String| url.starts_with(TILL) && url.bytes().all(|byte| byte.is_ascii_graphic());
    Ok(Reply::Go(place.filter(is_till).unwrap_or_else(|| visit.link("paying"))))
}

#[derive(Template)]
#[template(path = "customer/paying.html")]
struct PayingPage {
    f: CustomerFrame,
    title: String,
    /// Where the session is, once it is made.
    url: Option<String>,
    here: String,
    back: String,
}

/// While the session is being made. That somebody looks changes nothing.
pub async fn paying(visit: Visit) -> Answer {
    if is_paid(&visit) {
        return Ok(Reply::Go(visit.link("")));
    }
    let Some(payment) = visit.order.reservation.as_ref().and_then(|one| one.ours.payment.clone()) else {
        return Err(Trouble::Unknown);
    };
    let found = queries::awaited_payment(&*visit.shop.store, &payment).await;
    let facts = found.map_err(|error| super::later(&error))?.ok_or(Trouble::Unknown)?;
    let is_through = facts.sessions.values().any(|session| facts.may_bring_money(session));
    let fate = facts.newest_try().map(|(_, one)| facts.fate(one));
    let url = facts.open_session().and_then(|(_, place)| place.url.clone());
    let is_near = matches!(fate, Some(TryFate::Waiting | TryFate::Asked));
    if is_through {
        return Ok(Reply::Go(visit.link("thanks")));
    }
    if url.is_none() && !is_near {
        return Ok(Reply::Go(visit.link("failed")));
    }
    Ok(Reply::page(&PayingPage {
        f: CustomerFrame::of(&visit, "paying", visit.lang.t("Payment", "お支払い")),
        title: super::order::ShownOrder::of(&visit).title,
        url: url.filter(|url| url.starts_with("https://")),
        here: visit.link("paying"),
        back: visit.link(""),
    }))
}

#[derive(Template)]
#[template(path = "customer/gone.html")]
struct GonePage {
    f: CustomerFrame,
    title: String,
    contact: String,
    back: String,
}

/// The places lapsed, and others have them now.
fn gone(visit: &Visit) -> GonePage {
    GonePage {
        f: CustomerFrame::of(visit, "", visit.lang.t("No places are left", "満席")),
        title: super::order::ShownOrder::of(visit).title,
        contact: visit.link("contact"),
        back: visit.link(""),
    }
}
