//! Balances: what customers have with us, as the sum of the entries that made it so.

use super::endpoint::{Answer, Call, Endpoint, Method, Success, schema};
use super::params::WHOSE;
use super::problem;
use crate::config::Scope;
use crate::types::Balance;
use crate::view;

pub const ENDPOINTS: &[Endpoint] = &[Endpoint {
    method: Method::Get,
    path: "/v1/balances/{customer}",
    scope: Some(Scope::Read),
    for_tenants: true,
    summary: "What a customer of a tenant has, by currency and mode, with the newest 50 entries",
    parameters: &[WHOSE],
    query: None,
    body: None,
    answer: schema::<Balance>,
    success: Success::Done,
    run: |call| Box::pin(show(call)),
}];

async fn show(call: Call) -> Answer {
    let tenant = call.of_tenant()?;
    let found = view::find_balance(&*call.api.store, tenant.as_deref(), &call.path).await?;
    Ok(found.ok_or_else(|| problem::missing(format!("there is no customer {}", call.path)))?.into())
}
