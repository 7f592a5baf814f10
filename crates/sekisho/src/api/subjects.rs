//! Subjects: what has deadlines, under the ids that the app uses. Each belongs to one tenant.

use sekisho_core::notification::directory::Register;
use sekisho_core::state::Kind;
use sekisho_store::StateFilter;
use serde_json::Value;

use super::endpoint::{Answer, BEFORE, Call, Endpoint, LIMIT, Success, TENANT, Verb, page_of_states};
use super::problem;
use crate::config::Scope;
use crate::{transition, view};

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Verb::Get,
        path: "/v1/subjects",
        scope: Some(Scope::Read),
        for_tenants: true,
        summary: "Subjects, by id, the highest first",
        parameters: &[TENANT, BEFORE, LIMIT],
        body: None,
        answer: "SubjectPage",
        success: Success::Done,
        run: |call| Box::pin(list(call)),
    },
    Endpoint {
        method: Verb::Post,
        path: "/v1/subjects",
        scope: Some(Scope::Write),
        for_tenants: true,
        summary: "Enter a subject, or replace all that is said of it: what is left out is empty from then on. The tenant must be there",
        parameters: &[],
        body: Some("NewSubject"),
        answer: "Subject",
        success: Success::CreatedOnce,
        run: |call| Box::pin(create(call)),
    },
    Endpoint {
        method: Verb::Get,
        path: "/v1/subjects/{id}",
        scope: Some(Scope::Read),
        for_tenants: true,
        summary: "One subject",
        parameters: &[],
        body: None,
        answer: "SubjectDetail",
        success: Success::Done,
        run: |call| Box::pin(show(call)),
    },
    Endpoint {
        method: Verb::Delete,
        path: "/v1/subjects/{id}",
        scope: Some(Scope::Write),
        for_tenants: true,
        summary: "Delete a subject: what was said of it is gone, the audit log stays",
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
        StateFilter { before, tenant: call.of_tenant()?, ..StateFilter::all(Kind::Subject, call.limit()?) };
    let limit = filter.limit;
    let store = &*call.api.store;
    page_of_states(store, &store.find_states(filter).await?, limit, view::member).await
}

async fn create(call: Call) -> Answer {
    let (store, actor) = (&*call.api.store, call.actor());
    Ok(transition::create_member(store, Register::Subjects, call.order()?, call.request.as_ref(), &actor)
        .await?
        .into())
}

async fn show(call: Call) -> Answer {
    let found = transition::member(&*call.api.store, Kind::Subject, &call.path).await?;
    let found = found.filter(|found: &Value| call.may_see(found["tenant"].as_str()));
    Ok(found.ok_or_else(|| problem::missing(format!("there is no subject {}", call.path)))?.into())
}

async fn delete(call: Call) -> Answer {
    Ok(transition::delete_member(&*call.api.store, Register::Subjects, &call.path, &call.actor())
        .await?
        .into())
}
