//! Fulfilments: what was paid for and must be made, and what became of each run.

use sekisho_core::fulfilment::FulfilmentStatus;
use sekisho_core::state::Kind;
use sekisho_store::StateFilter;

use super::endpoint::{Answer, Call, Endpoint, Method, Reply, Success, schema};
use super::params::{BEFORE, LIMIT, LIVEMODE, Parameter, TENANT};
use super::problem;
use crate::config::Scope;
use crate::types::{
    CountedResult, FieldError, Fulfilment, FulfilmentResult, NewFulfilment, Page, RetryFulfilment,
};
use crate::{acts, queries};

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::Get,
        path: "/v1/fulfilments",
        scope: Some(Scope::Read),
        for_tenants: true,
        summary: "Fulfilments, the newest first",
        parameters: &[STATUS, TENANT, LIVEMODE, BEFORE, LIMIT],
        query: None,
        body: None,
        answer: schema::<Page<Fulfilment>>,
        success: Success::Done,
        run: |call| Box::pin(list(call)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/fulfilments",
        scope: Some(Scope::Write),
        for_tenants: true,
        summary: "Have something made; of tier paid, once its payment is paid",
        parameters: &[],
        query: None,
        body: Some(schema::<NewFulfilment>),
        answer: schema::<Fulfilment>,
        success: Success::CreatedOnce,
        run: |call| Box::pin(create(call)),
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/fulfilments/{id}",
        scope: Some(Scope::Read),
        for_tenants: true,
        summary: "One fulfilment with its runs",
        parameters: &[],
        query: None,
        body: None,
        answer: schema::<Fulfilment>,
        success: Success::Done,
        run: |call| Box::pin(show(call)),
    },
    Endpoint {
        method: Method::Post,
        path: RESULT,
        scope: Some(Scope::Write),
        for_tenants: true,
        summary: "Say what became of a run, with a key or the result_token of that run; of an older run, or said before, it does not count",
        parameters: &[],
        query: None,
        body: Some(schema::<FulfilmentResult>),
        answer: schema::<CountedResult>,
        success: Success::Done,
        run: |call| Box::pin(result(call)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/fulfilments/{id}/retry",
        scope: Some(Scope::Operate),
        for_tenants: true,
        summary: "Allow one more run of a fulfilment that failed",
        parameters: &[],
        query: None,
        body: Some(schema::<RetryFulfilment>),
        answer: schema::<Fulfilment>,
        success: Success::Done,
        run: |call| Box::pin(retry(call)),
    },
];

/// Also open to whoever shows the token of a run.
pub const RESULT: &str = "/v1/fulfilments/{id}/result";
const STATUS: Parameter = Parameter::text("status", "waiting, processing, done or failed");

async fn list(call: Call) -> Answer {
    let limit = call.params.limit()?;
    let status = call.params.get(STATUS.name);
    if status.is_some_and(|status| FulfilmentStatus::parse(status).is_none()) {
        return Err(problem::parameter(STATUS.name, format!("expected {}", STATUS.about)));
    }
    let filter = StateFilter {
        status: status.map(str::to_owned),
        tenant: call.of_tenant()?,
        livemode: call.params.flag(LIVEMODE.name)?,
        before: call.params.get(BEFORE.name).map(str::to_owned),
        ..StateFilter::all(Kind::Fulfilment, limit)
    };
    let store = &*call.api.store;
    let states = store.find_states(filter).await?;
    let next = states.last().filter(|_| states.len() == limit).map(|last| last.key.id.clone());
    let items = queries::fulfilments(store, &call.api.known.orders, &states).await?;
    Ok(Page { items, next }.into())
}

async fn create(call: Call) -> Answer {
    let (store, policy, body) = (&*call.api.store, &call.api.known.orders, call.fields()?);
    let request = call.request.as_ref();
    Ok(Reply::once(
        acts::create_fulfilment(store, &call.api.env, policy, body, request, &call.actor()).await?,
    ))
}

async fn show(call: Call) -> Answer {
    find(&call).await
}

async fn find(call: &Call) -> Answer {
    let found = queries::fulfilment(&*call.api.store, &call.api.known.orders, &call.path).await?;
    let found = found.filter(|one| call.may_see(one.tenant.as_deref()));
    Ok(found.ok_or_else(|| problem::missing(format!("no fulfilment has the id {}", call.path)))?.into())
}

async fn result(call: Call) -> Answer {
    let (store, policy) = (&*call.api.store, &call.api.known.orders);
    let body: FulfilmentResult = call.fields()?;
    if let Some(run) = call.run.filter(|run| *run != body.run) {
        let detail = format!("this token speaks for run {run}, and for no other");
        return Err(acts::Refusal::Fields(vec![FieldError::new("run", detail)]).into());
    }
    Ok(acts::take_result(store, &call.api.env, policy, &call.path, body, &call.actor()).await?.into())
}

async fn retry(call: Call) -> Answer {
    let RetryFulfilment { reason } = call.fields()?;
    let (store, policy) = (&*call.api.store, &call.api.known.orders);
    acts::retry_fulfilment(store, &call.api.env, policy, &call.path, &reason, &call.actor()).await?;
    find(&call).await
}
