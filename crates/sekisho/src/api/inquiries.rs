//! Inquiries: what customers ask by the form of their order's page.

use sekisho_core::inquiry::InquiryStatus;
use sekisho_core::state::Kind;
use sekisho_store::StateFilter;

use super::endpoint::{Answer, Call, Endpoint, Method, Success, schema};
use super::params::{BEFORE, LIMIT, LIVEMODE, Parameter, TENANT};
use super::problem;
use crate::config::Scope;
use crate::types::{Inquiry, Page};
use crate::{acts, queries};

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::Get,
        path: "/v1/inquiries",
        scope: Some(Scope::Read),
        for_tenants: true,
        summary: "What customers asked, the newest first",
        parameters: &[STATUS, TENANT, LIVEMODE, BEFORE, LIMIT],
        query: None,
        body: None,
        answer: schema::<Page<Inquiry>>,
        success: Success::Done,
        run: |call| Box::pin(list(call)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/inquiries/{id}/close",
        scope: Some(Scope::Operate),
        for_tenants: true,
        summary: "Say that an inquiry was answered",
        parameters: &[],
        query: None,
        body: None,
        answer: schema::<Inquiry>,
        success: Success::Done,
        run: |call| Box::pin(close(call)),
    },
];

const STATUS: Parameter = Parameter::text("status", "open or closed");

async fn list(call: Call) -> Answer {
    let limit = call.params.limit()?;
    let status = call.params.get(STATUS.name);
    if status.is_some_and(|status| InquiryStatus::parse(status).is_none()) {
        return Err(problem::parameter(STATUS.name, format!("expected {}", STATUS.about)));
    }
    let filter = StateFilter {
        status: status.map(str::to_owned),
        tenant: call.of_tenant()?,
        livemode: call.params.flag(LIVEMODE.name)?,
        before: call.params.get(BEFORE.name).map(str::to_owned),
        ..StateFilter::all(Kind::Inquiry, limit)
    };
    let states = call.api.store.find_states(filter).await?;
    let next = states.last().filter(|_| states.len() == limit).map(|last| last.key.id.clone());
    let mut items = Vec::new();
    for state in states.iter().filter(|state| state.is_shown()) {
        items.push(queries::inquiry_view(state, call.scope >= Scope::Operate)?);
    }
    Ok(Page { items, next }.into())
}

async fn close(call: Call) -> Answer {
    let closed = acts::close_inquiry(&*call.api.store, &call.path, &call.actor()).await?;
    Ok(queries::shown_inquiry(&call.path, &closed, true).into())
}
