//! The audit log: what changed, by whom, and why.

use sekisho_store::AuditFilter;

use super::endpoint::{Answer, BEFORE, Call, Endpoint, LIMIT, Parameter, Success, TENANT, Verb, page_until};
use super::problem;
use crate::config::Scope;
use crate::view;

pub const ENDPOINTS: &[Endpoint] = &[Endpoint {
    method: Verb::Get,
    path: "/v1/audit",
    scope: Some(Scope::Read),
    for_tenants: true,
    summary: "What people and events changed, the newest first",
    parameters: &[
        TENANT,
        Parameter {
            name: "action",
            kind: "text",
            about: "Such as payment.paid; a * at the end stands for anything",
        },
        Parameter { name: "target", kind: "text", about: "The id of what was changed" },
        Parameter { name: "actor", kind: "text", about: "Who did it" },
        Parameter { name: "since", kind: "time", about: "At or after" },
        Parameter { name: "until", kind: "time", about: "Before" },
        BEFORE,
        LIMIT,
    ],
    body: None,
    answer: "AuditPage",
    success: Success::Done,
    run: |call| Box::pin(list(call)),
}];

async fn list(call: Call) -> Answer {
    let text = |name: &str| call.param(name).map(str::to_owned);
    let before = call.param(BEFORE.name).map(|text| {
        let wanted =
            || problem::parameter(BEFORE.name, "expected `next` of the page before, a number".into());
        text.parse().map_err(|_| wanted())
    });
    let filter = AuditFilter {
        tenant: call.of_tenant()?,
        action: text("action"),
        target: text("target"),
        actor: text("actor"),
        since: call.time("since")?,
        until: call.time("until")?,
        before: before.transpose()?,
        limit: call.limit()?,
    };
    let found = call.api.store.find_audit(filter).await?;
    Ok(page_until(found.entries.iter().map(view::audit).collect(), found.next))
}
