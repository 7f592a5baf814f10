//! Schedules: which events Sekisho makes itself, and when the next one is due.

use std::future::ready;

use super::endpoint::{Answer, Call, Endpoint, Method, Success, schema};
use crate::config::Scope;
use crate::types::{List, Schedule};
use crate::view;

pub const ENDPOINTS: &[Endpoint] = &[Endpoint {
    method: Method::Get,
    path: "/v1/schedules",
    scope: Some(Scope::Read),
    for_tenants: false,
    summary: "Every schedule and when it is due next",
    parameters: &[],
    query: None,
    body: None,
    answer: schema::<List<Schedule>>,
    success: Success::Done,
    run: |call| Box::pin(ready(list(&call))),
}];

fn list(call: &Call) -> Answer {
    let at = call.api.env.wall();
    let schedules = call.api.schedules.iter().map(|schedule| view::schedule(schedule, at));
    Ok(schedules.collect::<List<_>>().into())
}
