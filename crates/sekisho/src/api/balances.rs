//! Balances: what customers have with us, as the sum of the entries that made it so.

use super::endpoint::{Answer, Call, Endpoint, Success, Verb};
use super::problem;
use crate::config::Scope;
use crate::transition;

pub const ENDPOINTS: &[Endpoint] = &[Endpoint {
    method: Verb::Get,
    path: "/v1/balances/{customer}",
    scope: Some(Scope::Read),
    for_tenants: true,
    summary: "What a customer has, by currency and mode, with the newest 50 entries",
    parameters: &[],
    body: None,
    answer: "Balance",
    success: Success::Done,
    run: |call| Box::pin(show(call)),
}];

async fn show(call: Call) -> Answer {
    let store = &*call.api.store;
    let is_visible = match &call.tenant {
        Some(tenant) => transition::is_customer_of(store, &call.path, tenant).await?,
        None => true,
    };
    let found = if is_visible { transition::balance(store, &call.path).await? } else { None };
    Ok(found.ok_or_else(|| problem::missing(format!("there is no customer {}", call.path)))?.into())
}
