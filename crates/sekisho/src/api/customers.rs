//! Customers: who pays, under the ids that the app uses. Each belongs to one tenant, or to none.

use sekisho_core::notification::directory::Register;
use sekisho_core::state::Kind;
use sekisho_store::StateFilter;
use serde_json::Value;

use super::endpoint::{
    ADDRESSES, Answer, BEFORE, Call, Endpoint, LIMIT, Success, TENANT, Verb, page_of_states,
};
use super::problem;
use crate::config::Scope;
use crate::{transition, view};

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Verb::Get,
        path: "/v1/customers",
        scope: Some(Scope::Read),
        for_tenants: true,
        summary: "Customers, by id, the highest first",
        parameters: &[TENANT, ADDRESSES, BEFORE, LIMIT],
        body: None,
        answer: "CustomerPage",
        success: Success::Done,
        run: |call| Box::pin(list(call)),
    },
    Endpoint {
        method: Verb::Post,
        path: "/v1/customers",
        scope: Some(Scope::Write),
        for_tenants: true,
        summary: "Enter a customer, or replace all that is said of it: what is left out is empty from then on",
        parameters: &[],
        body: Some("NewCustomer"),
        answer: "Customer",
        success: Success::CreatedOnce,
        run: |call| Box::pin(create(call)),
    },
    Endpoint {
        method: Verb::Get,
        path: "/v1/customers/{id}",
        scope: Some(Scope::Read),
        for_tenants: true,
        summary: "One customer",
        parameters: &[ADDRESSES],
        body: None,
        answer: "CustomerDetail",
        success: Success::Done,
        run: |call| Box::pin(show(call)),
    },
    Endpoint {
        method: Verb::Delete,
        path: "/v1/customers/{id}",
        scope: Some(Scope::Write),
        for_tenants: true,
        summary: "Delete a customer; what was paid stays, without a link to it",
        parameters: &[],
        body: None,
        answer: "Deleted",
        success: Success::Done,
        run: |call| Box::pin(delete(call)),
    },
];

async fn list(call: Call) -> Answer {
    let before = call.param(BEFORE.name).map(str::to_owned);
    let filter =
        StateFilter { before, tenant: call.of_tenant()?, ..StateFilter::all(Kind::Customer, call.limit()?) };
    let (limit, view) = (filter.limit, view::member_for(call.wants_addresses()?));
    let store = &*call.api.store;
    page_of_states(store, &store.find_states(filter).await?, limit, view).await
}

async fn create(call: Call) -> Answer {
    let (store, actor) = (&*call.api.store, call.actor());
    Ok(transition::create_member(store, Register::Customers, call.order()?, call.request.as_ref(), &actor)
        .await?
        .into())
}

async fn show(call: Call) -> Answer {
    let view = view::member_for(call.wants_addresses()?);
    let found = transition::member_as(&*call.api.store, Kind::Customer, &call.path, view).await?;
    let found = found.filter(|customer: &Value| call.may_see(customer["tenant"].as_str()));
    let missing = || problem::missing(format!("there is no customer {}", call.path));
    let mut found = found.ok_or_else(missing)?;
    view::unlink(&*call.api.store, [&mut found]).await?;
    Ok(found.into())
}

async fn delete(call: Call) -> Answer {
    Ok(transition::delete_member(&*call.api.store, Register::Customers, &call.path, &call.actor())
        .await?
        .into())
}
