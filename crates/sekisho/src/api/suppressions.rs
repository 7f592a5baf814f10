//! Suppressions: addresses that nothing is sent to, because mail came back, was called spam, or a person said so.

use sekisho_core::mail_address::MailAddress;
use sekisho_core::notification::Suppression as Kept;

use super::endpoint::{Answer, Call, Endpoint, Method, Success, schema};
use super::params::{ADDRESSES, BEFORE, LIMIT, Parameter};
use super::problem;
use crate::acts::{self, SuppressionOrder};
use crate::config::Scope;
use crate::queries;
use crate::types::{Page, Suppression, Turn};

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::Get,
        path: "/v1/suppressions",
        scope: Some(Scope::Read),
        for_tenants: false,
        summary: "Addresses that nothing is sent to, by address, the last first",
        parameters: &[
            Parameter::text("address", "Only this one, released or not"),
            ALL,
            ADDRESSES,
            BEFORE,
            LIMIT,
        ],
        query: None,
        body: None,
        answer: schema::<Page<Suppression>>,
        success: Success::Done,
        run: |call| Box::pin(list(call)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/suppressions",
        scope: Some(Scope::Operate),
        for_tenants: false,
        summary: "Send nothing to an address any more",
        parameters: &[],
        query: None,
        body: Some(schema::<Turn>),
        answer: schema::<Suppression>,
        success: Success::Created,
        run: |call| Box::pin(suppress(call)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/suppressions/release",
        scope: Some(Scope::Operate),
        for_tenants: false,
        summary: "Send to an address again; what was suppressed meanwhile is resent by its notice",
        parameters: &[],
        query: None,
        body: Some(schema::<Turn>),
        answer: schema::<Suppression>,
        success: Success::Done,
        run: |call| Box::pin(release(call)),
    },
];

const ALL: Parameter = Parameter::flag("all", "true: also those that were released");

async fn list(call: Call) -> Answer {
    let (store, whole, limit) = (&*call.api.store, call.wants_addresses()?, call.params.limit()?);
    let view = |one: &Kept| queries::suppression_view(one, whole);
    if let Some(text) = call.params.get("address") {
        let address: MailAddress =
            text.parse().map_err(|error| problem::parameter("address", format!("is {error}")))?;
        let found = queries::suppression(store, &address).await?;
        return Ok(Page::<_> { items: found.iter().map(view).collect(), next: None }.into());
    }
    let all = call.params.flag(ALL.name)?.unwrap_or(false);
    let found = queries::suppressions(store, all, call.params.get(BEFORE.name), limit).await?;
    Ok(Page::full(found.iter().map(view).collect(), limit, |one| &one.id).into())
}

async fn suppress(call: Call) -> Answer {
    let SuppressionOrder { address, reason } = SuppressionOrder::parse(call.order()?)?;
    let turned = acts::suppress(&*call.api.store, &address, &reason, &call.actor()).await?;
    tracing::info!(%address, actor = call.actor, "address suppressed by an operator");
    Ok(turned.into())
}

async fn release(call: Call) -> Answer {
    let SuppressionOrder { address, reason } = SuppressionOrder::parse(call.order()?)?;
    let turned = acts::release(&*call.api.store, &address, &reason, &call.actor()).await?;
    tracing::info!(%address, actor = call.actor, "address released by an operator");
    Ok(turned.into())
}
