//! Events: what came in, and settling it again.

use sekisho_core::time::DAY_MS;
use sekisho_core::trace::Sampler;
use sekisho_store::Order;

use super::endpoint::{Answer, Call, Endpoint, Method, Success, schema};
use super::params::{ADDRESSES, AFTER, BEFORE, LIMIT, Parameter};
use super::problem;
use crate::config::Scope;
use crate::types::{Count, Event, EventDetail, EventQuery, List, Page, Replay, ReplayReport, Trace};
use crate::{acts, queries, view};

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::Get,
        path: "/v1/events",
        scope: Some(Scope::Read),
        for_tenants: false,
        summary: "Events, the newest first; with `after` the oldest first",
        parameters: &[BEFORE, AFTER, LIMIT],
        query: Some(schema::<EventQuery>),
        body: None,
        answer: schema::<Page<Event>>,
        success: Success::Done,
        run: |call| Box::pin(list(call)),
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/events/{id}",
        scope: Some(Scope::Read),
        for_tenants: false,
        summary: "One event with headers, body and messages, by Sekisho's id or the provider's",
        parameters: &[Parameter::text("source", "Whose id it is, if several know it"), ADDRESSES],
        query: None,
        body: None,
        answer: schema::<EventDetail>,
        success: Success::Done,
        run: |call| Box::pin(show(call)),
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/events/{id}/trace",
        scope: Some(Scope::Read),
        for_tenants: false,
        summary: "What was done because of an event, as spans: when, for how long, and what went wrong",
        parameters: &[Parameter::text("source", "Whose id it is, if several know it")],
        query: None,
        body: None,
        answer: schema::<Trace>,
        success: Success::Done,
        run: |call| Box::pin(trace(call)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/events/replay",
        scope: Some(Scope::Operate),
        for_tenants: false,
        summary: "Process events again; completed deliveries are not repeated unless `again` is true",
        parameters: &[],
        query: None,
        body: Some(schema::<Replay>),
        answer: schema::<ReplayReport>,
        success: Success::Done,
        run: |call| Box::pin(replay(call)),
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/counts",
        scope: Some(Scope::Read),
        for_tenants: false,
        summary: "Events of closed hours by source, type and status",
        parameters: &[
            Parameter::time("from", "Default: a day ago"),
            Parameter::time("to", "Default: now; at most 100 days after from"),
        ],
        query: None,
        body: None,
        answer: schema::<List<Count>>,
        success: Success::Done,
        run: |call| Box::pin(counts(call)),
    },
];

pub const SOURCE: Parameter = Parameter::text("source", "Only this source");

const COUNTED_DAYS_MAX: i64 = 100;

async fn list(call: Call) -> Answer {
    let query = call.params.query::<EventQuery>()?;
    let (mut filter, delivery) = (query.filter()?, query.delivery()?);
    filter.limit = call.params.limit()?;
    // The cursor lies within what `until` allows.
    filter.before = [call.params.before()?, filter.before].into_iter().flatten().min();
    if let Some(after) = call.params.after()? {
        filter.after = filter.after.max(Some(after));
        filter.order = Order::OldestFirst;
    }
    let found = queries::find_events(&*call.api.store, filter, delivery).await?;
    let mut items = view::events(&*call.api.store, &found.events).await?;
    view::unlink(&*call.api.store, &mut items).await?;
    Ok(Page { items, next: found.next.map(|next| next.as_event().to_string()) }.into())
}

async fn show(call: Call) -> Answer {
    let store = &*call.api.store;
    let named = call.params.get(SOURCE.name).map(|source| vec![source.to_owned()]);
    let sources = named.as_ref().unwrap_or(&call.api.known.sources);
    let shown = match queries::find_event(store, sources, &call.path).await? {
        Some(seq) => view::event_with_all(store, seq).await?,
        None => None,
    };
    let missing = || problem::missing(format!("no event has the id {}", call.path));
    call.veiled(shown.ok_or_else(missing)?)
}

async fn trace(call: Call) -> Answer {
    let store = &*call.api.store;
    let named = call.params.get(SOURCE.name).map(|source| vec![source.to_owned()]);
    let sources = named.as_ref().unwrap_or(&call.api.known.sources);
    let missing = || problem::missing(format!("no event has the id {}", call.path));
    let seq = queries::find_event(store, sources, &call.path).await?.ok_or_else(missing)?;
    let sampler = match &call.api.engine {
        Some(engine) => engine.tracer.sampler,
        None => Sampler::new(acts::read_installation(store).await?, 0.0),
    };
    let spans = queries::trace(store, &sampler, seq).await?;
    let trace = view::trace(&spans, call.api.trace_url.as_deref()).ok_or_else(missing)?;
    Ok(trace.into())
}

async fn replay(call: Call) -> Answer {
    let actor = call.actor();
    let report = acts::replay(&*call.api.store, &call.api.known, &call.order()?, &actor).await?;
    Ok(report.into())
}

async fn counts(call: Call) -> Answer {
    let to = call.params.time("to")?.unwrap_or_else(|| call.api.env.wall());
    let from = call.params.time("from")?.unwrap_or_else(|| to.plus_ms(-DAY_MS));
    if from > to || to.ms() - from.ms() > COUNTED_DAYS_MAX * DAY_MS {
        return Err(problem::wrong(format!(
            "expected from before to, and at most {COUNTED_DAYS_MAX} days between"
        )));
    }
    let found = call.api.store.find_counts(from, to).await?;
    Ok(found.iter().map(view::count).collect::<List<_>>().into())
}
