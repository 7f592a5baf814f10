//! The books: every account, and whether they are balanced.

use super::endpoint::{Answer, Call, Endpoint, Success, Verb};
use crate::config::Scope;
use crate::view;

pub const ENDPOINTS: &[Endpoint] = &[Endpoint {
    method: Verb::Get,
    path: "/v1/books",
    scope: Some(Scope::Read),
    for_tenants: false,
    summary: "The sum of every account, and whether all sum to zero in each currency and mode",
    parameters: &[],
    body: None,
    answer: "Books",
    success: Success::Done,
    run: |call| Box::pin(show(call)),
}];

async fn show(call: Call) -> Answer {
    Ok(view::books(&call.api.store.find_sums(None).await?).into())
}
