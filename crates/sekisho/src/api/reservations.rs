//! Reservations: places that are held while their customer pays, and theirs once they have.

use std::sync::Arc;

use sekisho_core::reservation::ReservationStatus;
use sekisho_core::settlement::follow::view;
use sekisho_core::settlement::payment::Facts;
use sekisho_core::state::Kind;
use sekisho_store::StateFilter;
use serde::de::DeserializeOwned;

use super::endpoint::{Answer, Call, Endpoint, Method, Reply, Success, schema};
use super::params::{BEFORE, LIMIT, LIVEMODE, Parameter, TENANT};
use super::problem;
use crate::acts::{Answered, CheckoutRequest, HoldDraft, ReservationChange};
use crate::config::Scope;
use crate::http::Problem;
use crate::types::{Cancel, Checkout, Confirm, Extend, NewCheckout, NewReservation, Page, Reservation};
use crate::{acts, queries};

/// What every address of reservations begins with.
pub const PATH: &str = "/v1/reservations";

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::Get,
        path: "/v1/reservations",
        scope: Some(Scope::Read),
        for_tenants: true,
        summary: "Reservations, the newest first",
        parameters: &[STATUS, SLOT, CUSTOMER, TENANT, LIVEMODE, BEFORE, LIMIT],
        query: None,
        body: None,
        answer: schema::<Page<Reservation>>,
        success: Success::Done,
        run: |call| Box::pin(list(call)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/reservations",
        scope: Some(Scope::Write),
        for_tenants: true,
        summary: "Hold places of a slot while their customer pays; 409 when too few are free",
        parameters: &[],
        query: None,
        body: Some(schema::<NewReservation>),
        answer: schema::<Reservation>,
        success: Success::CreatedOnce,
        run: |call| Box::pin(hold(call)),
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/reservations/{id}",
        scope: Some(Scope::Read),
        for_tenants: true,
        summary: "One reservation",
        parameters: &[],
        query: None,
        body: None,
        answer: schema::<Reservation>,
        success: Success::Done,
        run: |call| Box::pin(show(call)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/reservations/{id}/confirm",
        scope: Some(Scope::Operate),
        for_tenants: true,
        summary: "Confirm a reservation by hand, whatever was paid; 409 when its places lapsed and too few are free",
        parameters: &[],
        query: None,
        body: Some(schema::<Confirm>),
        answer: schema::<Reservation>,
        success: Success::AcceptedOnce,
        run: |call| Box::pin(confirm(call)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/reservations/{id}/extend",
        scope: Some(Scope::Write),
        for_tenants: true,
        summary: "Hold the places longer",
        parameters: &[],
        query: None,
        body: Some(schema::<Extend>),
        answer: schema::<Reservation>,
        success: Success::AcceptedOnce,
        run: |call| Box::pin(extend(call)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/reservations/{id}/cancel",
        scope: Some(Scope::Write),
        for_tenants: true,
        summary: "Give the places back, and the money unless refund is false",
        parameters: &[],
        query: None,
        body: Some(schema::<Cancel>),
        answer: schema::<Reservation>,
        success: Success::AcceptedOnce,
        run: |call| Box::pin(cancel(call)),
    },
    CHECKOUT,
];

/// Where a customer pays.
const CHECKOUT: Endpoint = Endpoint {
    method: Method::Post,
    path: "/v1/reservations/{id}/checkout",
    scope: Some(Scope::Write),
    for_tenants: true,
    summary: "Have a Checkout Session made, or tell of one; the open one if there is one; 409 when it can't be paid",
    parameters: &[],
    query: None,
    body: Some(schema::<NewCheckout>),
    answer: schema::<Checkout>,
    success: Success::AcceptedOnce,
    run: |call| Box::pin(check_out(call)),
};

const STATUS: Parameter = Parameter::text("status", "hold, confirmed, expired or cancelled");
const SLOT: Parameter = Parameter::text("slot", "Only of this slot");
const CUSTOMER: Parameter = Parameter::text("customer", "Only this customer's");

async fn list(call: Call) -> Answer {
    let (limit, at, policy) = (call.params.limit()?, call.api.env.wall(), &call.api.known.orders);
    let status = match call.params.get(STATUS.name) {
        None => None,
        Some(text) => Some(
            ReservationStatus::parse(text)
                .ok_or_else(|| problem::parameter(STATUS.name, format!("expected {}", STATUS.about)))?,
        ),
    };
    let filter = StateFilter {
        // A hold that is over may be kept as one until it is looked at.
        status: status
            .filter(|status| *status != ReservationStatus::Expired)
            .map(|status| status.name().to_owned()),
        tenant: call.of_tenant()?,
        customer: call.params.get(CUSTOMER.name).map(str::to_owned),
        livemode: call.params.flag(LIVEMODE.name)?,
        before: call.params.get(BEFORE.name).map(str::to_owned),
        ..StateFilter::all(Kind::Reservation, limit)
    };
    let states = call.api.store.find_states(filter).await?;
    let next = states.last().filter(|_| states.len() == limit).map(|last| last.key.id.clone());
    let mut items = Vec::new();
    for state in &states {
        let shown = seen(&call, queries::reservation_view(state, policy, at)?);
        let is_status = status.is_none_or(|status| status.name() == shown.status);
        if is_status && call.params.get(SLOT.name).is_none_or(|slot| slot == shown.slot) {
            items.push(shown);
        }
    }
    Ok(Page { items, next }.into())
}

async fn hold(call: Call) -> Answer {
    let body: NewReservation = call.fields()?;
    let known = &call.api.known;
    let actor = call.actor();
    let draft = HoldDraft::read(body, known.reservations, &known.orders, &actor)?;
    let (store, request) = (Arc::clone(&call.api.store), call.request.clone());
    let checks_out = draft.checks_out();
    let held = call.api.holds.hold(&store, &known.orders, draft, request, actor.at).await?;
    if !checks_out {
        return Ok(Reply::once(held));
    }
    let mut shown: Reservation = typed(&held)?;
    if let Some(payment) = &shown.payment {
        let facts = awaited(&call, payment).await?;
        let place = facts.as_ref().and_then(Facts::open_session);
        shown.checkout_url = place.and_then(|(_, place)| place.url.clone());
    }
    Ok(Reply { repeated: held.repeated, ..shown.into() })
}

async fn check_out(call: Call) -> Answer {
    let order = CheckoutRequest::read(call.fields()?)?;
    let (store, policy, request) = (&*call.api.store, &call.api.known.orders, call.request.as_ref());
    let mut asked =
        acts::check_out(store, &call.api.env, policy, &call.path, &order, request, &call.actor()).await?;
    let Checkout { payment, number, .. } = typed(&asked)?;
    if let Some(facts) = awaited(&call, &payment).await? {
        asked.answer = view::checkout(&call.path, &payment, &facts, number);
    }
    Ok(Reply::once(asked))
}

/// The core writes what the type says.
fn typed<T: DeserializeOwned>(answered: &Answered) -> Result<T, Problem> {
    Ok(T::deserialize(&answered.answer).map_err(sekisho_store::Error::corrupt)?)
}

/// The payment of an order for which a session is being made. Without a node nobody makes one.
async fn awaited(call: &Call, payment: &str) -> Result<Option<Facts>, Problem> {
    let store = &*call.api.store;
    let found = match call.api.engine {
        Some(_) => queries::awaited_payment(store, payment).await,
        None => queries::checkout_payment(store, payment).await,
    };
    Ok(found?)
}

async fn show(call: Call) -> Answer {
    let found =
        queries::reservation(&*call.api.store, &call.api.known.orders, &call.path, call.api.env.wall())
            .await?;
    let found = found.filter(|one| call.may_see(one.tenant.as_deref())).map(|one| seen(&call, one));
    Ok(found.ok_or_else(|| problem::missing(format!("no reservation has the id {}", call.path)))?.into())
}

/// Whoever has the link may cancel: those who only look are not shown it.
fn seen(call: &Call, shown: Reservation) -> Reservation {
    let may_write = call.scope >= Scope::Write;
    let customer_url = shown.customer_url.filter(|_| may_write);
    let checkout_url = shown.checkout_url.filter(|_| may_write);
    Reservation { customer_url, checkout_url, ..shown }
}

async fn confirm(call: Call) -> Answer {
    let Confirm { reason } = call.fields()?;
    change(&call, ReservationChange::Confirm { reason }).await
}

async fn extend(call: Call) -> Answer {
    let Extend { until } = call.fields()?;
    change(&call, ReservationChange::Extend { until }).await
}

async fn cancel(call: Call) -> Answer {
    let Cancel { reason, refund } = call.fields()?;
    change(&call, ReservationChange::Cancel { reason, refund: refund.unwrap_or(true) }).await
}

async fn change(call: &Call, change: ReservationChange) -> Answer {
    let (store, policy) = (&*call.api.store, &call.api.known.orders);
    let request = call.request.as_ref();
    let changed =
        acts::change_reservation(store, &call.api.env, policy, &call.path, &change, request, &call.actor())
            .await?;
    Ok(Reply::once(changed))
}
