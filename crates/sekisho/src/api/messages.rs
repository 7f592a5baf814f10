//! Messages: one piece of work and where it stands.

use super::endpoint::{Answer, Call, Endpoint, Method, Success, schema};
use super::params::ADDRESSES;
use super::problem;
use crate::config::Scope;
use crate::types::MessageDetail;
use crate::view;

pub const ENDPOINTS: &[Endpoint] = &[Endpoint {
    method: Method::Get,
    path: "/v1/messages/{id}",
    scope: Some(Scope::Read),
    for_tenants: false,
    summary: "Status of a message, and every call it made",
    parameters: &[ADDRESSES],
    query: None,
    body: None,
    answer: schema::<MessageDetail>,
    success: Success::Done,
    run: |call| Box::pin(show(call)),
}];

async fn show(call: Call) -> Answer {
    let shown = view::message_with_all(&*call.api.store, call.id()?).await?;
    let missing = || problem::missing(format!("no message has the id {}", call.path));
    call.veiled(shown.ok_or_else(missing)?)
}
