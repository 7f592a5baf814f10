//! Channels: the ways notices go by, and whether they are open.

use sekisho_core::job::Lane;
use sekisho_core::queue::Breaker;

use super::endpoint::{Answer, Call, Endpoint, Method, Success, schema};
use super::problem;
use crate::config::Scope;
use crate::types::{Channel, List, Resumed};
use crate::{acts, view};

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::Get,
        path: "/v1/channels",
        scope: Some(Scope::Read),
        for_tenants: false,
        summary: "Every channel with its breaker, its day's quota and its oldest waiting notice",
        parameters: &[],
        query: None,
        body: None,
        answer: schema::<List<Channel>>,
        success: Success::Done,
        run: |call| Box::pin(list(call)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/channels/{name}/resume",
        scope: Some(Scope::Operate),
        for_tenants: false,
        summary: "Resume a channel: waiting messages are sent at once",
        parameters: &[],
        query: None,
        body: None,
        answer: schema::<Resumed>,
        success: Success::Done,
        run: |call| Box::pin(resume(call)),
    },
];

async fn list(call: Call) -> Answer {
    let items = view::channels(&call.api.channels, &*call.api.store, call.api.env.wall()).await?;
    Ok(List { items }.into())
}

async fn resume(call: Call) -> Answer {
    if !call.api.channels.iter().any(|configured| configured.name == call.path) {
        let names: Vec<_> = call.api.channels.iter().map(|configured| configured.name.as_str()).collect();
        let detail = format!("there is no channel {}; configured are: {}", call.path, names.join(", "));
        return Err(problem::missing(detail));
    }
    let resumed = acts::resume(&*call.api.store, &call.path, &call.actor()).await?;
    // This node need not wait until it looks at the store again.
    if let Some(engine) = &call.api.engine {
        engine.lanes.breaker(&Lane::by_channel(&call.path)).set(Breaker::default());
    }
    tracing::info!(
        channel = call.path,
        actor = call.actor,
        was = resumed.was,
        "channel resumed by an operator"
    );
    Ok(resumed.into())
}
