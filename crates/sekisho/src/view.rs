//! What people are shown, as JSON: the same names in the API, in `--json` and behind every table. Times are RFC 3339,
//! ids are `evt_…` and `msg_…`. A `find_…` or `…_with_all` reads from the store; the others only write down what they
//! are given.
//!
//! Pages are made by the console, from [`words`] for statuses and reasons and [`show`] for times and amounts. The page of
//! a proof is made here: a command prints it too.

mod balance;
mod books;
mod chain;
mod detail;
mod find;
mod links;
mod notifications;
mod proof;
#[cfg(test)]
pub(crate) mod samples;
pub mod show;
mod veil;
pub mod words;

use sekisho_core::Time;
use sekisho_core::change::Rejection;
use sekisho_core::event::About;
use sekisho_core::job::{Attempt, Lane};
use sekisho_core::provider::encode_base64;
use sekisho_core::queue::Breaker;
use sekisho_core::state::{Kind, State};
use sekisho_store::{
    AuditEntry, Count, DeadLetter, EventSummary, FIND_MAX, Message, Standing, StateFilter, Store,
};
use serde_json::{Value, json};

use crate::config::{Config, Schedule};

pub use balance::{find_balance, find_balances};
pub use books::{OfMember, balance, billing, books, invite, key, line, member, member_for, payment, user};
pub use chain::{exported, sealed};
pub use detail::{dead_letter_with_all, event_with_all, message_with_all};
pub use find::{find_member, find_payment};
pub use links::unlink;
pub use notifications::{Outlet, channels, notice, notice_with_all};
pub use proof::{page as proof_page, proof};
pub use veil::veil;

/// Where the console's pages are.
pub const ROOT: &str = "/console";

pub fn event(event: &EventSummary) -> Value {
    json!({
        "id": event.seq.as_event().to_string(),
        "event_id": event.event_id,
        "source": event.source,
        "type": event.event_type,
        "status": event.status.name(),
        "received_at": event.received_at,
        "created_at": event.created_at,
        "object": event.object.as_ref().map(|(kind, id)| json!({ "kind": kind, "id": id })),
        "account": event.account,
        "livemode": event.livemode,
        "trust": event.trust,
        "id_reused": event.id_reused,
        "note": event.note,
        "processed_at": event.processed_at,
        "about": about(Some(&event.about)),
    })
}

/// What an event turned out to be about, in our ids.
fn about(about: Option<&About>) -> Value {
    json!({
        "payment": about.and_then(|about| about.payment.as_ref()),
        "billing": about.and_then(|about| about.billing.as_ref()),
        "tenant": about.and_then(|about| about.tenant.as_ref()),
    })
}

pub fn dead_letter(letter: &DeadLetter) -> Value {
    json!({
        "id": letter.job.as_message().to_string(),
        "kind": letter.kind.name(),
        "lane": &*letter.lane.0,
        "route": letter.lane.route(),
        "reason": letter.death.reason,
        "class": letter.death.class.name(),
        "error": letter.death.error,
        "attempts": letter.attempts,
        "crashes": letter.crashes,
        "died_at": letter.at,
        "event": letter.event.map(|event| event.as_event().to_string()),
        "event_id": letter.event_id,
        "type": letter.event_type,
        "source": letter.source,
        "about": about(Some(&letter.about)),
        "amount": letter.stake.as_ref().map(|stake| stake.amount),
        "currency": letter.stake.as_ref().map(|stake| &stake.currency),
    })
}

pub fn message(message: &Message) -> Value {
    let mut value = json!({
        "id": message.job.as_message().to_string(),
        "lane": &*message.lane.0,
        "route": message.lane.route(),
        "event": message.event.map(|event| event.as_event().to_string()),
        "attempts": message.attempts,
        "standing": "running",
        "at": null,
        "due_at": null,
        "note": null,
        "reason": null,
        "class": null,
        "error": null,
    });
    match &message.standing {
        Standing::Running => {}
        Standing::Waiting(due_at) => {
            value["standing"] = "waiting".into();
            value["due_at"] = json!(due_at);
        }
        Standing::Done(outcome, at) => {
            value["standing"] = outcome.name().into();
            value["note"] = json!(outcome.note());
            value["at"] = json!(at);
        }
        Standing::Dead(death, at) => {
            value["standing"] = "dead".into();
            value["reason"] = death.reason.as_str().into();
            value["class"] = death.class.name().into();
            value["error"] = death.error.as_str().into();
            value["at"] = json!(at);
        }
    }
    value
}

/// One call to a destination, and what it answered.
pub fn call(attempt: i32, call: &Attempt) -> Value {
    let mut value = json!({
        "attempt": attempt,
        "at": call.at,
        "took_ms": call.took_ms,
        "status": call.status,
        "reason": call.reason,
        "error": call.error,
        "headers": call.headers.as_deref().map(headers),
    });
    put_body(&mut value, call.body.as_deref());
    value
}

pub fn rejection(rejection: &Rejection) -> Value {
    json!({
        "id": rejection.seq.as_rejection().to_string(),
        "at": rejection.at,
        "last_at": rejection.last_at,
        "source": rejection.source,
        "peer": rejection.peer,
        "network": rejection.network,
        "reason": rejection.reason,
        "detail": rejection.detail,
        "request_id": rejection.request_id,
        "count": rejection.count,
    })
}

pub fn audit(entry: &AuditEntry) -> Value {
    let AuditEntry { number, entry } = entry;
    let details: Value = serde_json::from_str(&entry.details).unwrap_or_default();
    json!({
        "id": number,
        "at": entry.at,
        "actor": entry.actor,
        "role": entry.role,
        "action": entry.action,
        "target": entry.target.1,
        "target_type": entry.target.0,
        "tenant": entry.tenant,
        "event": entry.event.map(|event| event.as_event().to_string()),
        "reason": details.get("reason"),
        "details": details,
    })
}

pub fn count(count: &Count) -> Value {
    json!({
        "hour": count.hour,
        "source": count.source,
        "type": count.event_type,
        "status": count.status.name(),
        "events": count.events,
    })
}

pub fn schedule(schedule: &Schedule, now: Time) -> Value {
    json!({
        "name": schedule.name,
        "type": schedule.event_type,
        "cron": schedule.cron,
        "timezone": schedule.timezone,
        "next_at": schedule.times.next_after(now),
    })
}

/// A route as configured, before the store is asked how it fares.
#[derive(Clone, Debug)]
pub struct Place {
    pub name: String,
    /// Without its query, which may hold a token.
    pub url: String,
}

impl Place {
    pub fn all(config: &Config) -> Vec<Self> {
        let places = config.routes.iter().map(|route| {
            let mut url = route.url.clone();
            url.set_query(None);
            Self { name: route.route.name.clone(), url: url.to_string() }
        });
        places.collect()
    }
}

/// Every route with its breaker and its oldest work that waits.
pub async fn routes(places: &[Place], store: &dyn Store) -> sekisho_store::Result<Vec<Value>> {
    let states = store.find_states(StateFilter::all(Kind::Breaker, FIND_MAX)).await?;
    let lanes = store.lanes().await?;
    let route = |place: &Place| {
        let lane = Lane::to_route(&place.name);
        let waiting = lanes.iter().find(|(own, _)| *own == lane).map(|(_, due_at)| due_at);
        let breaker = breaker_of(&states, &lane);
        let until = match breaker {
            Breaker::Open { until, .. } => Some(until),
            Breaker::Closed { .. } | Breaker::HalfOpen { .. } => None,
        };
        json!({
            "name": place.name,
            "url": place.url,
            "breaker": breaker.state(),
            "open_since": breaker.since(),
            "open_until": until,
            "oldest_due_at": waiting,
        })
    };
    Ok(places.iter().map(route).collect())
}

fn breaker_of(states: &[State], lane: &Lane) -> Breaker {
    let state = states.iter().find(|state| *state.key.id == *lane.0);
    state.and_then(|state| serde_json::from_str(&state.facts).ok()).unwrap_or_default()
}

/// `body` when it is text, else `body_base64`. The other is null.
fn put_body(value: &mut Value, body: Option<&[u8]>) {
    let text = body.map(std::str::from_utf8);
    value["body"] = json!(text.and_then(Result::ok));
    value["body_base64"] = json!(body.filter(|_| text.is_some_and(|text| text.is_err())).map(encode_base64));
    value["body_masked"] = false.into();
}

/// Stored as JSON already: a list of [name, value].
fn headers(stored: &str) -> Value {
    serde_json::from_str(stored).unwrap_or_default()
}
