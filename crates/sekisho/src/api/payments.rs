//! Payments: announced by the app, found by any name they have, and shown with every fact behind them.

use sekisho_core::settlement::payment::PaymentStatus;
use sekisho_core::state::Kind;
use sekisho_store::StateFilter;

use super::endpoint::{Answer, Call, Endpoint, Method, Reply, Success, page_of_states, schema};
use super::params::{BEFORE, LIMIT, LIVEMODE, Parameter, TENANT};
use super::problem;
use crate::acts::RefundOrderRequest;
use crate::config::Scope;
use crate::http::Problem;
use crate::types::{
    Dated, NewPayment, NewRefund, Page, Payment, PaymentHistory, PaymentProof, RefundOrdered, ReleaseRefund,
};
use crate::{acts, queries, view};

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::Get,
        path: "/v1/payments",
        scope: Some(Scope::Read),
        for_tenants: true,
        summary: "Payments, the newest first; or those that a reference leads to",
        parameters: &[
            REFERENCE,
            ACCOUNT,
            STATUS,
            TENANT,
            Parameter::text("customer", "Only this customer's"),
            LIVEMODE,
            Parameter::text("attention", "Only those that need attention, for this reason; empty is any"),
            BEFORE,
            LIMIT,
        ],
        query: None,
        body: None,
        answer: schema::<Page<Dated<Payment>>>,
        success: Success::Done,
        run: |call| Box::pin(list(call)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/payments",
        scope: Some(Scope::Write),
        for_tenants: true,
        summary: "Create a payment; provider events with the same reference are joined with it",
        parameters: &[],
        query: None,
        body: Some(schema::<NewPayment>),
        answer: schema::<Payment>,
        success: Success::CreatedOnce,
        run: |call| Box::pin(create(call)),
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/payments/{id}",
        scope: Some(Scope::Read),
        for_tenants: true,
        summary: "One payment with every fact; one that was merged is shown as what it became",
        parameters: &[],
        query: None,
        body: None,
        answer: schema::<Dated<Payment>>,
        success: Success::Done,
        run: |call| Box::pin(show(call)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/payments/{id}/refunds",
        scope: Some(Scope::Operate),
        for_tenants: true,
        summary: "Refund all that is left of a payment, or a part; carried out once, whatever the network does",
        parameters: &[],
        query: None,
        body: Some(schema::<NewRefund>),
        answer: schema::<RefundOrdered>,
        success: Success::AcceptedOnce,
        run: |call| Box::pin(refund(call)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/payments/{id}/release",
        scope: Some(Scope::Operate),
        for_tenants: true,
        summary: "Let a refund go that was held back",
        parameters: &[],
        query: None,
        body: Some(schema::<ReleaseRefund>),
        answer: schema::<RefundOrdered>,
        success: Success::Done,
        run: |call| Box::pin(release(call)),
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/payments/{id}/history",
        scope: Some(Scope::Read),
        for_tenants: true,
        summary: "What the audit log says of a payment and of everything that became part of it, the oldest first",
        parameters: &[],
        query: None,
        body: None,
        answer: schema::<PaymentHistory>,
        success: Success::Done,
        run: |call| Box::pin(history(call)),
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/payments/{id}/proof",
        scope: Some(Scope::Read),
        for_tenants: false,
        summary: "One payment with all the evidence for it, and whether that holds together",
        parameters: &[],
        query: None,
        body: None,
        answer: schema::<PaymentProof>,
        success: Success::Done,
        run: |call| Box::pin(prove(call)),
    },
];

const REFERENCE: Parameter =
    Parameter::text("reference", "Our id, or that of the payment intent, session, charge, refund or order");
const ACCOUNT: Parameter = Parameter::text(
    "account",
    "With reference: the account at the provider whose word it is. A provider's id is found without it, an order of a connected account is not",
);
const STATUS: Parameter = Parameter::text(
    "status",
    "unpaid, processing, failed, expired, cancelled, partially_paid, paid, partially_refunded or refunded",
);

async fn list(call: Call) -> Answer {
    let filter = filter(&call)?;
    let limit = filter.limit;
    let store = &*call.api.store;
    let states = match call.params.get(REFERENCE.name) {
        Some(reference) => {
            let found =
                queries::payments_by_reference(store, reference, call.params.get(ACCOUNT.name)).await?;
            let mut found: Vec<_> = found.into_iter().filter(|state| filter.matches(state)).collect();
            // In the order of every page, so that its cursor holds here too.
            found.sort_by(|one, other| other.key.id.cmp(&one.key.id));
            found.truncate(limit);
            found
        }
        None => store.find_states(filter).await?,
    };
    page_of_states(store, &states, limit, view::payment).await
}

fn filter(call: &Call) -> Result<StateFilter, Problem> {
    let text = |name: &str| call.params.get(name).map(str::to_owned);
    if let Some(status) = call.params.get(STATUS.name)
        && PaymentStatus::parse(status).is_none()
    {
        return Err(problem::parameter(STATUS.name, format!("expected {}", STATUS.about)));
    }
    if call.params.get(ACCOUNT.name).is_some() && call.params.get(REFERENCE.name).is_none() {
        return Err(problem::parameter(ACCOUNT.name, "says something only together with reference".into()));
    }
    let before = text(BEFORE.name);
    if before.as_ref().is_some_and(|before| !before.starts_with("pay_")) {
        return Err(problem::parameter(BEFORE.name, "expected `next` of the page before: pay_…".into()));
    }
    Ok(StateFilter {
        status: text(STATUS.name),
        tenant: call.of_tenant()?,
        customer: text("customer"),
        livemode: call.params.flag(LIVEMODE.name)?,
        attention: text("attention"),
        before,
        ..StateFilter::all(Kind::Payment, call.params.limit()?)
    })
}

async fn create(call: Call) -> Answer {
    let (store, env, actor) = (&*call.api.store, &call.api.env, call.actor());
    Ok(Reply::once(
        acts::create_payment(
            store,
            env,
            &call.api.known.orders,
            call.order()?,
            call.request.as_ref(),
            &actor,
        )
        .await?,
    ))
}

async fn refund(call: Call) -> Answer {
    let (store, env) = (&*call.api.store, &call.api.env);
    let (actor, request) = (call.actor(), call.request.as_ref());
    let order = RefundOrderRequest::parse(call.order()?, request, env)?;
    let policy = &call.api.known.orders;
    Ok(Reply::once(acts::order_refund(store, env, policy, &call.path, &order, request, &actor).await?))
}

async fn release(call: Call) -> Answer {
    let ReleaseRefund { order } = call.order()?;
    Ok(acts::release_refund(
        &*call.api.store,
        &call.api.env,
        &call.api.known.orders,
        &call.path,
        &order,
        &call.actor(),
    )
    .await?
    .into())
}

async fn show(call: Call) -> Answer {
    let found = view::find_payment(&*call.api.store, &call.path).await?;
    let found = found.filter(|payment| call.may_see(payment.thing.tenant.as_deref()));
    let mut found = found.ok_or_else(|| missing(&call))?;
    view::unlink(&*call.api.store, [&mut found]).await?;
    Ok(found.into())
}

async fn history(call: Call) -> Answer {
    let store = &*call.api.store;
    let found = queries::payment_state(store, &call.path).await?;
    let found = found.filter(|state| call.may_see(state.index.tenant.as_deref()));
    let found = found.ok_or_else(|| missing(&call))?;
    let history = queries::history(store, &found.key.id).await?;
    let own = history.entries.iter().filter(|one| call.may_see(one.entry.tenant.as_deref()));
    Ok(PaymentHistory { items: own.map(view::audit).collect(), complete: history.is_whole }.into())
}

async fn prove(call: Call) -> Answer {
    let found = view::proof(&*call.api.store, &call.path, call.api.env.wall()).await?;
    Ok(found.ok_or_else(|| missing(&call))?.into())
}

fn missing(call: &Call) -> Problem {
    let hint = "GET /v1/payments?reference=… finds one by the provider's id or the order";
    problem::missing(format!("no payment has the id {}; {hint}", call.path))
}
