//! Alerts: what is wrong now, silencing one, and trying whether anybody hears them; and targets.

use sekisho_core::language::Language;

use super::endpoint::{Answer, Call, Endpoint, Method, Success, schema};
use crate::config::Scope;
use crate::types::{AlertStanding, AlertTrial, List, SilenceAlert, TargetStanding};
use crate::{acts, view};

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::Get,
        path: "/v1/alerts",
        scope: Some(Scope::Read),
        for_tenants: false,
        summary: "Every alert and how it stands, those that fire first",
        parameters: &[],
        query: None,
        body: None,
        answer: schema::<List<AlertStanding>>,
        success: Success::Done,
        run: |call| Box::pin(list(call)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/alerts/{id}/silence",
        scope: Some(Scope::Operate),
        for_tenants: false,
        summary: "Silence an alert for a while: what still fires then is told. `{id}` is `NAME`, for all its subjects, or `NAME/SUBJECT` with `/` as `%2F`",
        parameters: &[],
        query: None,
        body: Some(schema::<SilenceAlert>),
        answer: schema::<AlertStanding>,
        success: Success::Done,
        run: |call| Box::pin(silence(call)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/alerts/{id}/test",
        scope: Some(Scope::Operate),
        for_tenants: false,
        summary: "Send a trial of an alert through, to see whether anybody hears it",
        parameters: &[],
        query: None,
        body: None,
        answer: schema::<AlertTrial>,
        success: Success::Done,
        run: |call| Box::pin(test(call)),
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/targets",
        scope: Some(Scope::Read),
        for_tenants: false,
        summary: "Every target against its figures of the last hour, day and 30 days",
        parameters: &[],
        query: None,
        body: None,
        answer: schema::<List<TargetStanding>>,
        success: Success::Done,
        run: |call| Box::pin(targets(call)),
    },
];

async fn list(call: Call) -> Answer {
    let api = &call.api;
    let items = view::alerts(&*api.store, &api.alerts, Language::En, api.env.wall()).await?;
    Ok(List { items }.into())
}

async fn silence(call: Call) -> Answer {
    let order: SilenceAlert = call.fields()?;
    let api = &call.api;
    let (alert, subject, state) = acts::silence_alert(&*api.store, &call.path, &order, &call.actor()).await?;
    tracing::info!(alert = call.path, actor = call.actor, "an alert was silenced");
    Ok(view::alert(alert.rule(), &subject, &state, &api.alerts, Language::En, api.env.wall()).into())
}

async fn test(call: Call) -> Answer {
    let (api, actor) = (&call.api, call.actor());
    let seq = api.env.fresh_seq(actor.at);
    let event_id =
        acts::try_alert(&*api.store, &call.path, &api.alerts, &api.console_url, seq, &actor).await?;
    Ok(AlertTrial { event_id, channel: api.notifications.alerts.clone() }.into())
}

async fn targets(call: Call) -> Answer {
    let api = &call.api;
    let items = view::targets(&*api.store, &api.targets, Language::En, api.env.wall()).await?;
    Ok(List { items }.into())
}
