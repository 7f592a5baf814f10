//! The rules that say what is done when something goes wrong with an order.

use std::future::ready;

use super::endpoint::{Answer, Call, Endpoint, Method, Success, schema};
use super::problem;
use crate::config::Scope;
use crate::queries;
use crate::types::{CompensationRule, List, RuleCheck};

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::Get,
        path: "/v1/compensation_rules",
        scope: Some(Scope::Read),
        for_tenants: false,
        summary: "The rules of compensation, shipped and configured",
        parameters: &[],
        query: None,
        body: None,
        answer: schema::<List<CompensationRule>>,
        success: Success::Done,
        run: |call| Box::pin(ready(list(&call))),
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/compensation_rules/check/{id}",
        scope: Some(Scope::Read),
        for_tenants: true,
        summary: "Which rules hold for an order now, and when they act; by the id of its payment, reservation or fulfilment",
        parameters: &[],
        query: None,
        body: None,
        answer: schema::<RuleCheck>,
        success: Success::Done,
        run: |call| Box::pin(check(call)),
    },
];

fn list(call: &Call) -> Answer {
    Ok(queries::compensation_rules(&call.api.known.orders).collect::<List<CompensationRule>>().into())
}

async fn check(call: Call) -> Answer {
    let (store, policy, at) = (&*call.api.store, &call.api.known.orders, call.api.env.wall());
    let found = queries::check_rules(store, policy, &call.path, at).await?;
    let found = found.filter(|(_, tenant)| call.may_see(tenant.as_deref()));
    let (check, _) = found.ok_or_else(|| {
        problem::missing(format!("no payment, reservation or fulfilment has the id {}", call.path))
    })?;
    Ok(check.into())
}
