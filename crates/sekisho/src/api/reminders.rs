//! Reminders of deadlines: a day's run by hand, and how it stands.

use sekisho_core::id::Sequence;

use super::endpoint::{Answer, Call, Endpoint, Method, Success, schema};
use super::params::TENANT;
use crate::acts::{self, Refusal};
use crate::config::Scope;
use crate::queries;
use crate::types::{Remind, RemindReport, ReminderSummary};

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::Post,
        path: "/v1/reminders",
        scope: Some(Scope::Operate),
        for_tenants: true,
        summary: "Run the reminders of a day, or list who would get one; no one gets a second one for the same day",
        parameters: &[],
        query: None,
        body: Some(schema::<Remind>),
        answer: schema::<RemindReport>,
        success: Success::Done,
        run: |call| Box::pin(run(call)),
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/reminders/{date}",
        scope: Some(Scope::Read),
        for_tenants: true,
        summary: "How the reminders of a day stand: how many there are of each status",
        parameters: &[TENANT],
        query: None,
        body: None,
        answer: schema::<ReminderSummary>,
        success: Success::Done,
        run: |call| Box::pin(show(call)),
    },
];

async fn run(call: Call) -> Answer {
    let (mut order, actor) = (call.order::<Remind>()?, call.actor());
    order.tenant = order.tenant.or_else(|| call.tenant.clone());
    actor.check_tenant(order.tenant.as_deref()).map_err(Refusal::from)?;
    let (store, notifications, at) = (&*call.api.store, &call.api.notifications, actor.at);
    let report = if let Some(engine) = &call.api.engine {
        let next_seq = || engine.node.next_seq(at);
        acts::run_reminders(store, notifications, &order, &actor, next_seq).await?
    } else {
        // Servers on other machines may run on the same store: the ids must be unique all the same.
        let joined = store.join(at).await?;
        let mut ids = Sequence::new(joined.epoch, joined.floor);
        let run = acts::run_reminders(store, notifications, &order, &actor, || ids.next(at)).await;
        store.leave(joined.epoch).await?;
        run?
    };
    if !order.dry_run {
        tracing::info!(
            actor = call.actor,
            new = report.new,
            due = report.due,
            "reminders run by an operator"
        );
    }
    Ok(report.into())
}

async fn show(call: Call) -> Answer {
    let tenant = call.of_tenant()?;
    let shown =
        queries::reminders_summary(&*call.api.store, &call.path, tenant.as_deref(), call.api.env.wall());
    Ok(shown.await?.into())
}
