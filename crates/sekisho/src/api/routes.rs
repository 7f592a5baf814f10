//! Routes: where events go, and whether the destinations are well.

use sekisho_core::job::Lane;
use sekisho_core::queue::Breaker;

use super::endpoint::{Answer, Call, Endpoint, Method, Success, schema};
use super::problem;
use crate::config::Scope;
use crate::types::{List, Reset, Route};
use crate::{acts, view};

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::Get,
        path: "/v1/routes",
        scope: Some(Scope::Read),
        for_tenants: false,
        summary: "Every route with its breaker and its oldest waiting message",
        parameters: &[],
        query: None,
        body: None,
        answer: schema::<List<Route>>,
        success: Success::Done,
        run: |call| Box::pin(list(call)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/routes/{name}/reset",
        scope: Some(Scope::Operate),
        for_tenants: false,
        summary: "Close the breaker of a route: its destination is called again at once",
        parameters: &[],
        query: None,
        body: None,
        answer: schema::<Reset>,
        success: Success::Done,
        run: |call| Box::pin(reset(call)),
    },
];

async fn list(call: Call) -> Answer {
    let items = view::routes(&call.api.places, &*call.api.store).await?;
    Ok(List { items }.into())
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
    if let Some(engine) = &call.api.engine {
        engine.lanes.breaker(&Lane::to_route(&call.path)).set(Breaker::default());
    }
    tracing::info!(route = call.path, actor = call.actor, was = reset.was, "breaker reset by an operator");
    Ok(reset.into())
}
