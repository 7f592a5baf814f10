//! The audit log: what people did.

use sekisho_store::AuditFilter;
use serde_json::{Value, json};

use super::endpoint::{Answer, Call, Endpoint, LIMIT, Verb};
use crate::config::Scope;
use crate::view;

pub const ENDPOINTS: &[Endpoint] = &[Endpoint {
    method: Verb::Get,
    path: "/v1/audit",
    scope: Some(Scope::Read),
    summary: "What people did, the newest first",
    parameters: &[LIMIT],
    body: None,
    answer: "AuditList",
    run: |call| Box::pin(list(call)),
}];

async fn list(call: Call) -> Answer {
    let found =
        call.api.store.find_audit(AuditFilter { limit: call.limit()?, ..AuditFilter::default() }).await?;
    Ok(json!({ "items": found.iter().map(view::audit).collect::<Vec<Value>>() }))
}
