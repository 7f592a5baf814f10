//! Routes: where events go, and whether the destinations are well.

use sekisho_core::job::Lane;
use sekisho_core::queue::Breaker;
use serde_json::json;

use super::endpoint::{Answer, Call, Endpoint, Success, Verb};
use super::problem;
use crate::config::Scope;
use crate::{acts, view};

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Verb::Get,
        path: "/v1/routes",
        scope: Some(Scope::Read),
        for_tenants: false,
        summary: "Every route with its breaker and its oldest waiting message",
        parameters: &[],
        body: None,
        answer: "RouteList",
        success: Success::Done,
        run: |call| Box::pin(list(call)),
    },
    Endpoint {
        method: Verb::Post,
        path: "/v1/routes/{name}/reset",
        scope: Some(Scope::Operate),
        for_tenants: false,
        summary: "Close the breaker of a route: its destination is called again at once",
        parameters: &[],
        body: None,
        answer: "Reset",
        success: Success::Done,
        run: |call| Box::pin(reset(call)),
    },
];

async fn list(call: Call) -> Answer {
    Ok(json!({ "items": view::routes(&call.api.places, &*call.api.store).await? }).into())
}

async fn reset(call: Call) -> Answer {
    if !call.api.places.iter().any(|place| place.name == call.path) {
        let names: Vec<_> = call.api.places.iter().map(|place| place.name.as_str()).collect();
        let detail = format!("there is no route {}; configured are: {}", call.path, names.join(", "));
        return Err(problem::missing(detail));
    }
    let actor = call.actor();
    let reset = acts::reset(&*call.api.store, &call.path, &actor).await?;
    // This node need not wait until it looks at the store again.
    call.api.worker.desk.set_breaker(&Lane::to_route(&call.path), Breaker::default());
    tracing::info!(route = call.path, actor = call.actor, was = reset.was, "breaker reset by an operator");
    Ok(json!(reset).into())
}
