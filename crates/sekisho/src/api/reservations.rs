//! Reservations: places that are held while their customer pays, and theirs once they have.

use std::sync::Arc;

use sekisho_core::reservation::ReservationStatus;
use sekisho_core::state::Kind;
use sekisho_store::StateFilter;

use super::endpoint::{Answer, Call, Endpoint, Method, Reply, Success, schema};
use super::params::{BEFORE, LIMIT, LIVEMODE, Parameter, TENANT};
use super::problem;
use crate::acts::{HoldDraft, ReservationChange};
use crate::config::Scope;
use crate::types::{Cancel, Confirm, Extend, NewReservation, Page, Reservation};
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
];

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
    Ok(Reply::once(call.api.holds.hold(&store, &known.orders, draft, request, actor.at).await?))
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
    let customer_url = shown.customer_url.filter(|_| call.scope >= Scope::Write);
    Reservation { customer_url, ..shown }
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
