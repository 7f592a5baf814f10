//! Tenants: whose customers and payments these are, under the ids that the app uses.

use sekisho_core::notification::directory::Register;
use sekisho_core::state::Kind;
use sekisho_store::StateFilter;

use super::endpoint::{Answer, BEFORE, Call, Endpoint, LIMIT, Success, Verb, page_of_states};
use super::problem;
use crate::config::Scope;
use crate::{transition, view};

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Verb::Get,
        path: "/v1/tenants",
        scope: Some(Scope::Read),
        for_tenants: false,
        summary: "Tenants, by id, the highest first",
        parameters: &[BEFORE, LIMIT],
        body: None,
        answer: "TenantPage",
        success: Success::Done,
        run: |call| Box::pin(list(call)),
    },
    Endpoint {
        method: Verb::Post,
        path: "/v1/tenants",
        scope: Some(Scope::Write),
        for_tenants: false,
        summary: "Enter a tenant, or replace all that is said of it: what is left out is empty from then on",
        parameters: &[],
        body: Some("NewTenant"),
        answer: "Tenant",
        success: Success::CreatedOnce,
        run: |call| Box::pin(create(call)),
    },
    Endpoint {
        method: Verb::Get,
        path: "/v1/tenants/{id}",
        scope: Some(Scope::Read),
        for_tenants: false,
        summary: "One tenant",
        parameters: &[],
        body: None,
        answer: "TenantDetail",
        success: Success::Done,
        run: |call| Box::pin(show(call)),
    },
    Endpoint {
        method: Verb::Delete,
        path: "/v1/tenants/{id}",
        scope: Some(Scope::Write),
        for_tenants: false,
        summary: "Delete a tenant; what was paid stays, without a link to it",
        parameters: &[],
        body: None,
        answer: "Deleted",
        success: Success::Done,
        run: |call| Box::pin(delete(call)),
    },
];

async fn list(call: Call) -> Answer {
    let before = call.param(BEFORE.name).map(str::to_owned);
    let filter = StateFilter { before, ..StateFilter::all(Kind::Tenant, call.limit()?) };
    let limit = filter.limit;
    let store = &*call.api.store;
    page_of_states(store, &store.find_states(filter).await?, limit, view::member).await
}

async fn create(call: Call) -> Answer {
    let (store, actor) = (&*call.api.store, call.actor());
    Ok(transition::create_member(store, Register::Tenants, call.order()?, call.request.as_ref(), &actor)
        .await?
        .into())
}

async fn show(call: Call) -> Answer {
    let found = transition::member(&*call.api.store, Kind::Tenant, &call.path).await?;
    Ok(found.ok_or_else(|| problem::missing(format!("there is no tenant {}", call.path)))?.into())
}

async fn delete(call: Call) -> Answer {
    Ok(transition::delete_member(&*call.api.store, Register::Tenants, &call.path, &call.actor())
        .await?
        .into())
}
