//! Channels: the ways notices go by, and whether they are open.

use sekisho_core::job::Lane;
use sekisho_core::queue::Breaker;
use serde_json::json;

use super::endpoint::{Answer, Call, Endpoint, Success, Verb};
use super::problem;
use crate::config::Scope;
use crate::{acts, now, view};

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Verb::Get,
        path: "/v1/channels",
        scope: Some(Scope::Read),
        for_tenants: false,
        summary: "Every channel with its breaker, its day's quota and its oldest waiting notice",
        parameters: &[],
        body: None,
        answer: "ChannelList",
        success: Success::Done,
        run: |call| Box::pin(list(call)),
    },
    Endpoint {
        method: Verb::Post,
        path: "/v1/channels/{name}/resume",
        scope: Some(Scope::Operate),
        for_tenants: false,
        summary: "Resume a channel: waiting messages are sent at once",
        parameters: &[],
        body: None,
        answer: "Resumed",
        success: Success::Done,
        run: |call| Box::pin(resume(call)),
    },
];

async fn list(call: Call) -> Answer {
    Ok(json!({ "items": view::channels(&call.api.outlets, &*call.api.store, now()).await? }).into())
}

async fn resume(call: Call) -> Answer {
    if !call.api.outlets.iter().any(|outlet| outlet.name == call.path) {
        let names: Vec<_> = call.api.outlets.iter().map(|outlet| outlet.name.as_str()).collect();
        let detail = format!("there is no channel {}; configured are: {}", call.path, names.join(", "));
        return Err(problem::missing(detail));
    }
    let resumed = acts::resume(&*call.api.store, &call.path, &call.actor()).await?;
    // This node need not wait until it looks at the store again.
    call.api.worker.desk.set_breaker(&Lane::by_channel(&call.path), Breaker::default());
    tracing::info!(
        channel = call.path,
        actor = call.actor,
        was = resumed.was,
        "channel resumed by an operator"
    );
    Ok(json!(resumed).into())
}
