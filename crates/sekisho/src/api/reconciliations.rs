//! Reconciliations: how complete each source is, and a run by hand.

use super::endpoint::{Answer, Call, Endpoint, Method, Success, schema};
use super::problem;
use crate::acts::Refusal;
use crate::config::Scope;
use crate::types::{List, NewReconciliation, Reconciliation, ReconciliationReport};

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::Get,
        path: "/v1/reconciliations",
        scope: Some(Scope::Read),
        for_tenants: false,
        summary: "Every source: when it was last compared with its provider, what was missing, and how complete each day is",
        parameters: &[],
        query: None,
        body: None,
        answer: schema::<List<Reconciliation>>,
        success: Success::Done,
        run: |call| Box::pin(list(call)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/reconciliations",
        scope: Some(Scope::Operate),
        for_tenants: false,
        summary: "Read from a provider what never came; it is processed and delivered like any other event, old ones too. See first what it would be with dry_run; what is known is not taken in twice",
        parameters: &[],
        query: None,
        body: Some(schema::<NewReconciliation>),
        answer: schema::<ReconciliationReport>,
        success: Success::Done,
        run: |call| Box::pin(run(call)),
    },
];

async fn list(call: Call) -> Answer {
    let (known, reconciler) = (&call.api.known, &call.api.reconciler);
    let mut rows = Vec::new();
    for source in &known.sources {
        let provider = known.origins.get(source).map(|origin| origin.provider);
        rows.push(reconciler.standing(&*call.api.store, source, provider).await?);
    }
    Ok(rows.into_iter().collect::<List<_>>().into())
}

async fn run(call: Call) -> Answer {
    let (order, actor, reconciler) = (call.order::<NewReconciliation>()?, call.actor(), &call.api.reconciler);
    if !call.api.known.sources.contains(&order.source) {
        return Err(problem::missing(format!("there is no source {}", order.source)));
    }
    if order.since.is_some_and(|since| since > actor.at) {
        return Err(Refusal::Invalid("since lies in the future".into()).into());
    }
    let report = match &call.api.engine {
        Some(engine) => reconciler.by_hand(&engine.base(), &order, &actor).await?,
        None => reconciler.by_hand_alone(&call.api.store, &order, &actor).await?,
    };
    Ok(report.into())
}
