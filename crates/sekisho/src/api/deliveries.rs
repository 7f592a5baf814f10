//! Deliveries: events on their way to the routes.

use super::endpoint::{Answer, Call, Endpoint, Method, Success, schema};
use super::params::{BEFORE, LIMIT};
use crate::config::Scope;
use crate::types::{Delivery, DeliveryQuery, DeliveryReport, DeliverySelection, Page};
use crate::{acts, queries, view};

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::Get,
        path: "/v1/deliveries",
        scope: Some(Scope::Read),
        for_tenants: false,
        summary: "Deliveries, the newest first: waiting, delivered, failed or cancelled",
        parameters: &[BEFORE, LIMIT],
        query: Some(schema::<DeliveryQuery>),
        body: None,
        answer: schema::<Page<Delivery>>,
        success: Success::Done,
        run: |call| Box::pin(list(call)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/deliveries/cancel",
        scope: Some(Scope::Operate),
        for_tenants: false,
        summary: "Cancel deliveries that wait, with a reason; `dry_run` counts them",
        parameters: &[],
        query: None,
        body: Some(schema::<DeliverySelection>),
        answer: schema::<DeliveryReport>,
        success: Success::Done,
        run: |call| Box::pin(cancel(call)),
    },
];

async fn list(call: Call) -> Answer {
    let (store, places) = (&*call.api.store, &call.api.places);
    let query = call.params.query::<DeliveryQuery>()?;
    let found = queries::find_deliveries(store, &query, call.params.before()?, call.params.limit()?).await?;
    let outages = view::Outages::find(store).await?;
    let now = call.api.env.wall();
    let items = found.deliveries.iter().map(|one| view::delivery(one, &outages, places, now)).collect();
    Ok(Page { items, next: found.next.map(|next| next.as_message().to_string()) }.into())
}

async fn cancel(call: Call) -> Answer {
    let actor = call.actor();
    Ok(acts::cancel(&*call.api.store, &call.order()?, &actor).await?.into())
}
