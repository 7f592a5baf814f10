//! Rejections: who was turned away, when, and why.

use sekisho_store::RejectionFilter;

use super::endpoint::{Answer, Call, Endpoint, Method, Success, schema};
use super::events::SOURCE;
use super::params::{BEFORE, LIMIT, Parameter};
use crate::config::Scope;
use crate::types::{Page, Rejection};
use crate::view;

pub const ENDPOINTS: &[Endpoint] = &[Endpoint {
    method: Method::Get,
    path: "/v1/rejections",
    scope: Some(Scope::Read),
    for_tenants: false,
    summary: "Rejected requests, the newest first; similar ones are grouped into one line",
    parameters: &[SOURCE, Parameter::text("reason", "Why, such as bad_signature"), BEFORE, LIMIT],
    query: None,
    body: None,
    answer: schema::<Page<Rejection>>,
    success: Success::Done,
    run: |call| Box::pin(list(call)),
}];

async fn list(call: Call) -> Answer {
    let text = |name: &str| call.params.get(name).map(str::to_owned);
    let (source, reason) = (text(SOURCE.name), text("reason"));
    let filter =
        RejectionFilter { source, reason, before: call.params.before()?, limit: call.params.limit()? };
    let limit = filter.limit;
    let found = call.api.store.find_rejections(filter).await?;
    Ok(Page::full(found.iter().map(view::rejection).collect(), limit, |one| &one.id).into())
}
