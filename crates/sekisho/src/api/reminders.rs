//! Reminders of deadlines: a day's run by hand, and how it stands.

use serde_json::json;

use super::endpoint::{Answer, Call, Endpoint, Success, TENANT, Verb};
use crate::acts::{self, Remind, check_tenant};
use crate::config::Scope;
use crate::now;

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Verb::Post,
        path: "/v1/reminders",
        scope: Some(Scope::Operate),
        for_tenants: true,
        summary: "Run the reminders of a day, or list who would get one; no one gets a second one for the same day",
        parameters: &[],
        body: Some("Remind"),
        answer: "RemindReport",
        success: Success::Done,
        run: |call| Box::pin(run(call)),
    },
    Endpoint {
        method: Verb::Get,
        path: "/v1/reminders/{date}",
        scope: Some(Scope::Read),
        for_tenants: true,
        summary: "How the reminders of a day stand: how many there are of each status",
        parameters: &[TENANT],
        body: None,
        answer: "ReminderSummary",
        success: Success::Done,
        run: |call| Box::pin(show(call)),
    },
];

async fn run(call: Call) -> Answer {
    let (mut order, actor) = (call.order::<Remind>()?, call.actor());
    order.tenant = order.tenant.or_else(|| call.tenant.clone());
    check_tenant(&actor, order.tenant.as_deref())?;
    let (api, at) = (&call.api, actor.at);
    let next_seq = || api.worker.node.next_seq(at);
    let report = acts::run_reminders(&*api.store, &api.notifications, &order, &actor, next_seq).await?;
    if !order.dry_run {
        tracing::info!(
            actor = call.actor,
            new = report.new,
            due = report.due,
            "reminders run by an operator"
        );
    }
    Ok(json!(report).into())
}

async fn show(call: Call) -> Answer {
    let tenant = call.of_tenant()?;
    let shown = acts::reminders_summary(&*call.api.store, &call.path, tenant.as_deref(), now());
    Ok(shown.await?.into())
}
