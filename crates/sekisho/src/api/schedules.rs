//! Schedules: which events Sekisho makes itself, and when the next one is due.

use std::future::ready;

use serde_json::{Value, json};

use super::endpoint::{Answer, Call, Endpoint, Success, Verb};
use crate::config::Scope;
use crate::{now, view};

pub const ENDPOINTS: &[Endpoint] = &[Endpoint {
    method: Verb::Get,
    path: "/v1/schedules",
    scope: Some(Scope::Read),
    for_tenants: false,
    summary: "Every schedule and when it is due next",
    parameters: &[],
    body: None,
    answer: "ScheduleList",
    success: Success::Done,
    run: |call| Box::pin(ready(list(&call))),
}];

fn list(call: &Call) -> Answer {
    let at = now();
    let schedules = call.api.schedules.iter().map(|schedule| view::schedule(schedule, at));
    Ok(json!({ "items": schedules.collect::<Vec<Value>>() }).into())
}
