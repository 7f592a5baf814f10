//! Cases, and the log of what was done because of them.

use sekisho_core::case::CaseStatus;
use sekisho_core::compensation::CompensationKind;
use sekisho_core::state::Kind;
use sekisho_store::StateFilter;

use super::endpoint::{Answer, Call, Endpoint, Method, Success, schema};
use super::params::{BEFORE, LIMIT, LIVEMODE, Parameter, TENANT};
use super::problem;
use crate::config::Scope;
use crate::types::{AcknowledgeCase, Case, Compensation, Page, ResolveCase};
use crate::{acts, queries};

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::Get,
        path: "/v1/cases",
        scope: Some(Scope::Read),
        for_tenants: true,
        summary: "What went wrong with orders, and who sees to it; the overdue ones first",
        parameters: &[STATUS, TRIGGER, TENANT, LIVEMODE, BEFORE, LIMIT],
        query: None,
        body: None,
        answer: schema::<Page<Case>>,
        success: Success::Done,
        run: |call| Box::pin(list(call)),
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/cases/{id}",
        scope: Some(Scope::Read),
        for_tenants: true,
        summary: "One case, with what its rules do next",
        parameters: &[],
        query: None,
        body: None,
        answer: schema::<Case>,
        success: Success::Done,
        run: |call| Box::pin(show(call)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/cases/{id}/acknowledge",
        scope: Some(Scope::Operate),
        for_tenants: true,
        summary: "Take a case in hand: nobody is reminded of it any more, and everything else goes on",
        parameters: &[],
        query: None,
        body: Some(schema::<AcknowledgeCase>),
        answer: schema::<Case>,
        success: Success::Done,
        run: |call| Box::pin(acknowledge(call)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/cases/{id}/resolve",
        scope: Some(Scope::Operate),
        for_tenants: true,
        summary: "Say that a case is over; its rules do nothing more. 409 when one has ordered a refund",
        parameters: &[],
        query: None,
        body: Some(schema::<ResolveCase>),
        answer: schema::<Case>,
        success: Success::Done,
        run: |call| Box::pin(resolve(call)),
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/compensations",
        scope: Some(Scope::Read),
        for_tenants: true,
        summary: "Refunds, reassigned places and cases that a person resolved; never changed",
        parameters: &[TYPE, TRIGGER, TENANT, LIVEMODE, BEFORE, LIMIT],
        query: None,
        body: None,
        answer: schema::<Page<Compensation>>,
        success: Success::Done,
        run: |call| Box::pin(compensations(call)),
    },
];

const STATUS: Parameter = Parameter::text("status", "open, acknowledged or resolved");
const TRIGGER: Parameter = Parameter::text("trigger", "Only of this trigger, such as RENDER_FAILURE");
const TYPE: Parameter = Parameter::text("type", "REFUND, SLOT_REASSIGN or MANUAL_RESOLUTION");

async fn list(call: Call) -> Answer {
    let limit = call.params.limit()?;
    let status = call.params.get(STATUS.name);
    if status.is_some_and(|status| CaseStatus::parse(status).is_none()) {
        return Err(problem::parameter(STATUS.name, format!("expected {}", STATUS.about)));
    }
    let filter = StateFilter {
        status: status.map(str::to_owned),
        attention: call.params.get(TRIGGER.name).map(str::to_owned),
        tenant: call.of_tenant()?,
        livemode: call.params.flag(LIVEMODE.name)?,
        before: call.params.get(BEFORE.name).map(str::to_owned),
        ..StateFilter::all(Kind::Case, limit)
    };
    let states = call.api.store.find_states(filter).await?;
    let next = states.last().filter(|_| states.len() == limit).map(|last| last.key.id.clone());
    let (policy, at) = (&call.api.known.orders, call.api.env.wall());
    let mut items: Vec<Case> =
        states.iter().map(|state| queries::case_view(state, policy, at)).collect::<Result<_, _>>()?;
    items.sort_by_key(|case| (!case.overdue, case.status == "resolved", case.respond_by));
    Ok(Page { items, next }.into())
}

async fn show(call: Call) -> Answer {
    let found =
        queries::case(&*call.api.store, &call.api.known.orders, &call.path, call.api.env.wall()).await?;
    let found = found.filter(|case| call.may_see(case.tenant.as_deref()));
    Ok(found.ok_or_else(|| problem::missing(format!("no case has the id {}", call.path)))?.into())
}

async fn acknowledge(call: Call) -> Answer {
    let (store, env, policy) = (&*call.api.store, &call.api.env, &call.api.known.orders);
    let body = call.fields()?;
    Ok(acts::acknowledge_case(store, env, policy, &call.path, body, &call.actor()).await?.into())
}

async fn resolve(call: Call) -> Answer {
    let (store, env, policy) = (&*call.api.store, &call.api.env, &call.api.known.orders);
    let body = call.fields()?;
    Ok(acts::resolve_case(store, env, policy, &call.path, body, &call.actor()).await?.into())
}

async fn compensations(call: Call) -> Answer {
    let limit = call.params.limit()?;
    let kind = call.params.get(TYPE.name);
    if kind.is_some_and(|kind| CompensationKind::parse(kind).is_none()) {
        return Err(problem::parameter(TYPE.name, format!("expected {}", TYPE.about)));
    }
    let filter = StateFilter {
        status: kind.map(str::to_owned),
        attention: call.params.get(TRIGGER.name).map(str::to_owned),
        tenant: call.of_tenant()?,
        livemode: call.params.flag(LIVEMODE.name)?,
        before: call.params.get(BEFORE.name).map(str::to_owned),
        ..StateFilter::all(Kind::Compensation, limit)
    };
    let states = call.api.store.find_states(filter).await?;
    let next = states.last().filter(|_| states.len() == limit).map(|last| last.key.id.clone());
    let items: Vec<Compensation> = states.iter().map(queries::compensation_view).collect::<Result<_, _>>()?;
    Ok(Page { items, next }.into())
}
