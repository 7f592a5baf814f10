//! Staff: who works for a tenant and is reminded of its deadlines, under the ids that the app uses.

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
        path: "/v1/staff",
        scope: Some(Scope::Read),
        for_tenants: true,
        summary: "Staff, by id, the highest first",
        parameters: &[TENANT, ADDRESSES, BEFORE, LIMIT],
        body: None,
        answer: "StaffPage",
        success: Success::Done,
        run: |call| Box::pin(list(call)),
    },
    Endpoint {
        method: Verb::Post,
        path: "/v1/staff",
        scope: Some(Scope::Write),
        for_tenants: true,
        summary: "Enter a staff member, or replace all that is said of one: what is left out is empty from then on, \
                  notifications are on and threshold_days is 30. The tenant must be there",
        parameters: &[],
        body: Some("NewStaff"),
        answer: "Staff",
        success: Success::CreatedOnce,
        run: |call| Box::pin(create(call)),
    },
    Endpoint {
        method: Verb::Get,
        path: "/v1/staff/{id}",
        scope: Some(Scope::Read),
        for_tenants: true,
        summary: "One staff member",
        parameters: &[ADDRESSES],
        body: None,
        answer: "StaffDetail",
        success: Success::Done,
        run: |call| Box::pin(show(call)),
    },
    Endpoint {
        method: Verb::Delete,
        path: "/v1/staff/{id}",
        scope: Some(Scope::Write),
        for_tenants: true,
        summary: "Delete a staff member: what was said is gone, the audit log stays",
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
        StateFilter { before, tenant: call.of_tenant()?, ..StateFilter::all(Kind::Staff, call.limit()?) };
    let (limit, view) = (filter.limit, view::member_for(call.wants_addresses()?));
    let store = &*call.api.store;
    page_of_states(store, &store.find_states(filter).await?, limit, view).await
}

async fn create(call: Call) -> Answer {
    let (store, actor) = (&*call.api.store, call.actor());
    Ok(transition::create_member(store, Register::Staff, call.order()?, call.request.as_ref(), &actor)
        .await?
        .into())
}

async fn show(call: Call) -> Answer {
    let view = view::member_for(call.wants_addresses()?);
    let found = transition::member_as(&*call.api.store, Kind::Staff, &call.path, view).await?;
    let found = found.filter(|found: &Value| call.may_see(found["tenant"].as_str()));
    Ok(found.ok_or_else(|| problem::missing(format!("there is no staff member {}", call.path)))?.into())
}

async fn delete(call: Call) -> Answer {
    Ok(transition::delete_member(&*call.api.store, Register::Staff, &call.path, &call.actor()).await?.into())
}
