//! Billing: what tenants subscribed to, and until when they may come in.

use sekisho_core::settlement::billing::BillingStatus;
use sekisho_core::state::{Key, Kind};
use sekisho_store::StateFilter;

use super::endpoint::{Answer, Call, Endpoint, Method, Success, page_of_states, schema};
use super::params::{BEFORE, LIMIT, LIVEMODE, Parameter, TENANT};
use super::problem;
use crate::config::Scope;
use crate::types::{Billing, Dated, Deleted, Page};
use crate::{acts, queries, view};

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::Get,
        path: "/v1/billing",
        scope: Some(Scope::Read),
        for_tenants: true,
        summary: "Billing of every tenant, the newest first",
        parameters: &[
            Parameter::text("status", "Such as trialing, active, past_due or cancelled"),
            TENANT,
            LIVEMODE,
            Parameter::text("attention", "Only what needs attention, for this reason; empty is any"),
            BEFORE,
            LIMIT,
        ],
        query: None,
        body: None,
        answer: schema::<Page<Dated<Billing>>>,
        success: Success::Done,
        run: |call| Box::pin(list(call)),
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/billing/{tenant}",
        scope: Some(Scope::Read),
        for_tenants: true,
        summary: "A tenant's billing, also by its own id: subscriptions, invoices, and whether it has access",
        parameters: &[Parameter::flag("livemode", "Which of both, if there are two; default: the live one")],
        query: None,
        body: None,
        answer: schema::<Dated<Billing>>,
        success: Success::Done,
        run: |call| Box::pin(show(call)),
    },
    Endpoint {
        method: Method::Delete,
        path: "/v1/billing/{tenant}",
        scope: Some(Scope::Operate),
        for_tenants: false,
        summary: "Delete a tenant's billing, also by its own id; a new subscription brings it back",
        parameters: &[Parameter::flag("livemode", "Which of both; needed if there are two")],
        query: None,
        body: None,
        answer: schema::<Deleted>,
        success: Success::Done,
        run: |call| Box::pin(delete(call)),
    },
];

async fn list(call: Call) -> Answer {
    let status = call.params.get("status");
    if status.is_some_and(|status| BillingStatus::parse(status).is_none()) {
        let names = BillingStatus::ALL.map(BillingStatus::name).join(", ");
        return Err(problem::parameter("status", format!("expected one of {names}")));
    }
    let filter = StateFilter {
        status: status.map(str::to_owned),
        tenant: call.of_tenant()?,
        livemode: call.params.flag(LIVEMODE.name)?,
        attention: call.params.get("attention").map(str::to_owned),
        before: call.params.get(BEFORE.name).map(str::to_owned),
        ..StateFilter::all(Kind::Billing, call.params.limit()?)
    };
    let (limit, at, grace) = (filter.limit, call.api.env.wall(), call.api.grace);
    let states = call.api.store.find_states(filter).await?;
    page_of_states(&*call.api.store, &states, limit, |state| view::billing(state, at, grace)).await
}

async fn show(call: Call) -> Answer {
    let livemode = call.params.flag(LIVEMODE.name)?;
    let store = &*call.api.store;
    let mut found = queries::billing_state(store, &call.path, livemode).await?;
    if found.is_none() && call.path.starts_with("bil_") {
        let state = queries::load(store, &Key::new(Kind::Billing, &call.path)).await?;
        found = state
            .filter(|state| state.is_shown() && livemode.is_none_or(|it| state.index.livemode == Some(it)));
    }
    let is_own = call.may_see(Some(&call.path));
    let found = found.filter(|state| is_own || call.may_see(state.index.tenant.as_deref()));
    let missing = || problem::missing(format!("there is no billing of the tenant {}", call.path));
    let mut shown = view::billing(&found.ok_or_else(missing)?, call.api.env.wall(), call.api.grace)?;
    view::unlink(store, [&mut shown]).await?;
    Ok(shown.into())
}

async fn delete(call: Call) -> Answer {
    let livemode = call.params.flag(LIVEMODE.name)?;
    Ok(acts::delete_billing(&*call.api.store, &call.path, livemode, &call.actor()).await?.into())
}
