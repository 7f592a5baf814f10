//! Links by which customers open the pages of their orders.

use super::endpoint::{Answer, Call, Endpoint, Method, Success, schema};
use super::problem;
use crate::config::Scope;
use crate::types::CustomerLink;
use crate::{acts, queries};

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::Get,
        path: "/v1/order_links/{id}",
        scope: Some(Scope::Write),
        for_tenants: true,
        summary: "The link to the page of a reservation, or of a fulfilment without one; whoever has it may cancel the order",
        parameters: &[],
        query: None,
        body: None,
        answer: schema::<CustomerLink>,
        success: Success::Done,
        run: |call| Box::pin(show(call)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/order_links/{id}/revoke",
        scope: Some(Scope::Operate),
        for_tenants: true,
        summary: "Make every link to this order void that was given out before; the answer has a new one",
        parameters: &[],
        query: None,
        body: None,
        answer: schema::<CustomerLink>,
        success: Success::Done,
        run: |call| Box::pin(revoke(call)),
    },
];

async fn show(call: Call) -> Answer {
    find(&call).await
}

async fn revoke(call: Call) -> Answer {
    acts::revoke_links(&*call.api.store, &call.path, &call.actor()).await?;
    find(&call).await
}

async fn find(call: &Call) -> Answer {
    let (store, policy, at) = (&*call.api.store, &call.api.known.orders, call.api.env.wall());
    let found = queries::order_link(store, policy, &call.path, at).await?;
    let found = found.filter(|(_, tenant)| call.may_see(tenant.as_deref()));
    let missing = || problem::missing(format!("no order with a page has the id {}", call.path));
    Ok(found.ok_or_else(missing)?.0.into())
}
