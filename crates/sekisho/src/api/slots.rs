//! Slots: places that can be sold once.

use sekisho_core::slot::SlotName;
use sekisho_core::state::Kind;
use sekisho_store::StateFilter;

use super::endpoint::{Answer, Call, Endpoint, Method, Reply, Success, schema};
use super::params::{BEFORE, LIMIT, LIVEMODE, Parameter, TENANT};
use super::problem;
use crate::config::Scope;
use crate::types::{NewSlot, Page, Slot};
use crate::{acts, queries};

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::Get,
        path: "/v1/slots",
        scope: Some(Scope::Read),
        for_tenants: true,
        summary: "Slots, with what is held, sold and free of each",
        parameters: &[TENANT, LIVEMODE, BEFORE, LIMIT],
        query: None,
        body: None,
        answer: schema::<Page<Slot>>,
        success: Success::Done,
        run: |call| Box::pin(list(call)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/slots",
        scope: Some(Scope::Write),
        for_tenants: true,
        summary: "Make a slot, or change its capacity, time or title; what is taken must fit",
        parameters: &[],
        query: None,
        body: Some(schema::<NewSlot>),
        answer: schema::<Slot>,
        success: Success::CreatedOnce,
        run: |call| Box::pin(set(call)),
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/slots/{id}",
        scope: Some(Scope::Read),
        for_tenants: true,
        summary: "One slot, with what is held, sold and free of it",
        parameters: &[WHOSE, MODE],
        query: None,
        body: None,
        answer: schema::<Slot>,
        success: Success::Done,
        run: |call| Box::pin(show(call)),
    },
];

const WHOSE: Parameter = Parameter::text("tenant", "Whose slot; without it, one that belongs to no tenant");
const MODE: Parameter = Parameter::flag("livemode", "false: the slot of this id in test mode");

async fn list(call: Call) -> Answer {
    let limit = call.params.limit()?;
    let filter = StateFilter {
        tenant: call.of_tenant()?,
        livemode: call.params.flag(LIVEMODE.name)?,
        before: call.params.get(BEFORE.name).map(str::to_owned),
        ..StateFilter::all(Kind::Slot, limit)
    };
    let (store, policy) = (&*call.api.store, &call.api.known.orders);
    let states = store.find_states(filter).await?;
    let next = states.last().filter(|_| states.len() == limit).map(|last| last.key.id.clone());
    let items = queries::slots(store, policy, &states, call.api.env.wall()).await?;
    Ok(Page { items, next }.into())
}

async fn set(call: Call) -> Answer {
    let (store, policy, body) = (&*call.api.store, &call.api.known.orders, call.fields()?);
    Ok(Reply::once(acts::set_slot(store, policy, body, call.request.as_ref(), &call.actor()).await?))
}

async fn show(call: Call) -> Answer {
    let livemode = call.params.flag(MODE.name)?.unwrap_or(true);
    let name = SlotName { livemode, tenant: call.of_tenant()?, id: call.path.clone() };
    let found =
        queries::slot(&*call.api.store, &call.api.known.orders, &name.key(), call.api.env.wall()).await?;
    let missing = || problem::missing(format!("there is no slot {}", call.path));
    Ok(found.ok_or_else(missing)?.into())
}
