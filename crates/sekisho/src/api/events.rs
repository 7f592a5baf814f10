//! Events: what came in, and settling it again.

use sekisho_core::timer::DAY_MS;
use serde_json::{Value, json};

use super::endpoint::{
    ADDRESSES, Answer, BEFORE, Call, Endpoint, LIMIT, OWN, Parameter, Success, TENANT, Verb, page_until,
};
use super::problem;
use crate::acts::{self, EventQuery};
use crate::config::Scope;
use crate::{now, view};

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Verb::Get,
        path: "/v1/events",
        scope: Some(Scope::Read),
        for_tenants: false,
        summary: "Events, the newest first",
        parameters: &[
            SOURCE,
            TYPE,
            Parameter {
                name: "status",
                kind: "text",
                about: "received, success (or processed), failed or skipped",
            },
            Parameter { name: "object", kind: "text", about: "The provider's id of what it is about" },
            Parameter { name: "payment", kind: "text", about: "Only events of this payment" },
            TENANT,
            OWN,
            Parameter { name: "since", kind: "time", about: "Received at or after" },
            Parameter { name: "until", kind: "time", about: "Received before" },
            BEFORE,
            LIMIT,
        ],
        body: None,
        answer: "EventPage",
        success: Success::Done,
        run: |call| Box::pin(list(call)),
    },
    Endpoint {
        method: Verb::Get,
        path: "/v1/events/{id}",
        scope: Some(Scope::Read),
        for_tenants: false,
        summary: "One event with headers, body and messages, by Sekisho's id or the provider's",
        parameters: &[
            Parameter { name: "source", kind: "text", about: "Whose id it is, if several know it" },
            ADDRESSES,
        ],
        body: None,
        answer: "EventDetail",
        success: Success::Done,
        run: |call| Box::pin(show(call)),
    },
    Endpoint {
        method: Verb::Post,
        path: "/v1/events/replay",
        scope: Some(Scope::Operate),
        for_tenants: false,
        summary: "Process events again; completed deliveries are not repeated unless `again` is true",
        parameters: &[],
        body: Some("Replay"),
        answer: "ReplayReport",
        success: Success::Done,
        run: |call| Box::pin(replay(call)),
    },
    Endpoint {
        method: Verb::Get,
        path: "/v1/counts",
        scope: Some(Scope::Read),
        for_tenants: false,
        summary: "Events of closed hours by source, type and status",
        parameters: &[
            Parameter { name: "from", kind: "time", about: "Default: a day ago" },
            Parameter { name: "to", kind: "time", about: "Default: now; at most 100 days after from" },
        ],
        body: None,
        answer: "CountList",
        success: Success::Done,
        run: |call| Box::pin(counts(call)),
    },
];

pub const SOURCE: Parameter = Parameter { name: "source", kind: "text", about: "Only this source" };
pub const TYPE: Parameter =
    Parameter { name: "type", kind: "text", about: "Only this type; a * at the end stands for anything" };

const COUNTED_DAYS_MAX: i64 = 100;

async fn list(call: Call) -> Answer {
    let own = call.flag(OWN.name)?.unwrap_or(false);
    let mut filter = EventQuery { own, ..call.query()? }.filter()?;
    filter.limit = call.limit()?;
    // The cursor lies within what `until` allows.
    filter.before = [call.before()?, filter.before].into_iter().flatten().min();
    let found = call.api.store.find_events(filter).await?;
    let mut items: Vec<Value> = found.events.iter().map(view::event).collect();
    view::unlink(&*call.api.store, &mut items).await?;
    Ok(page_until(items, found.next.map(|next| next.as_event().to_string())))
}

async fn show(call: Call) -> Answer {
    let store = &*call.api.store;
    let named = call.param(SOURCE.name).map(|source| vec![source.to_owned()]);
    let sources = named.as_ref().unwrap_or(&call.api.known.sources);
    let shown = match acts::find_event(store, sources, &call.path).await? {
        Some(seq) => view::event_with_all(store, seq).await?,
        None => None,
    };
    let missing = || problem::missing(format!("no event has the id {}", call.path));
    call.veiled(shown.ok_or_else(missing)?)
}

async fn replay(call: Call) -> Answer {
    let actor = call.actor();
    let report = acts::replay(&*call.api.store, &call.api.known, &call.order()?, &actor).await?;
    Ok(json!(report).into())
}

async fn counts(call: Call) -> Answer {
    let to = call.time("to")?.unwrap_or_else(now);
    let from = call.time("from")?.unwrap_or_else(|| to.plus_ms(-DAY_MS));
    if from > to || to.ms() - from.ms() > COUNTED_DAYS_MAX * DAY_MS {
        return Err(problem::wrong(format!(
            "expected from before to, and at most {COUNTED_DAYS_MAX} days between"
        )));
    }
    let found = call.api.store.find_counts(from, to).await?;
    Ok(json!({ "items": found.iter().map(view::count).collect::<Vec<Value>>() }).into())
}
