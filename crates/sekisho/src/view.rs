//! What people are shown: what is stored as [`crate::types`], the same in the API, in `--json` and behind every table. A
//! `find_…` or `…_with_all` reads from the store; the others only write down what they are given.
//!
//! Pages are made by the console, from [`words`] for statuses and reasons and [`show`] for times and amounts. The page of
//! a proof is made here: a command prints it too.

mod alerts;
mod balance;
mod books;
mod chain;
mod delivery;
mod detail;
mod find;
mod links;
mod notifications;
pub mod order_words;
mod proof;
#[cfg(test)]
pub(crate) mod samples;
pub mod show;
mod trace;
mod veil;
pub mod words;

use sekisho_core::change::Rejection;
use sekisho_core::event::Trust;
use sekisho_core::job::{Attempt, Lane};
use sekisho_core::queue::{Breaker, RetryDead};
use sekisho_core::state::{Kind, State};
use sekisho_core::{Seq, Time};
use sekisho_store::{
    AuditEntry, Count, DeadLetter, EventSummary, FIND_MAX, Standing, StateFilter, Store, StoredMessage,
};
use serde_json::Value;

use crate::config::{Config, Schedule};
use crate::types;

pub use alerts::{alert, alerts, targets};
pub use balance::{find_balance, find_balances};
pub use books::{OfMember, balance, billing, books, invite, key, line, member, member_for, payment, user};
pub use chain::{exported, sealed};
pub use delivery::{Outages, delivery, event_deliveries, next_automatic_try};
pub use detail::{dead_letter_with_all, event_with_all, message_with_all};
pub use find::{find_member, find_payment};
pub use links::unlink;
pub use notifications::{ConfiguredChannel, channels, notice, notice_with_all};
pub use proof::{page as proof_page, proof};
pub use trace::{duration, trace};
pub use veil::Veiled;

/// Where the console's pages are.
pub const ROOT: &str = "/console";

pub fn event(event: &EventSummary) -> types::Event {
    types::Event {
        id: event.seq.as_event().to_string(),
        event_id: event.event_id.clone(),
        source: event.source.clone(),
        event_type: event.event_type.clone(),
        status: event.status.name().to_owned(),
        received_at: event.received_at,
        created_at: event.created_at,
        object: event.object.as_ref().map(Into::into),
        account: event.account.clone(),
        livemode: event.livemode,
        trust: event.trust.clone(),
        via: (event.trust == Trust::Fetched.name()).then(|| "reconcile".to_owned()),
        id_reused: event.id_reused,
        note: event.note.clone(),
        processed_at: event.processed_at,
        deliveries: types::EventDeliveries::default(),
        about: (&event.about).into(),
    }
}

/// Events with what became of their deliveries.
pub async fn events(store: &dyn Store, found: &[EventSummary]) -> sekisho_store::Result<Vec<types::Event>> {
    let counts = store.find_delivery_counts(found.iter().map(|event| event.seq).collect()).await?;
    let shown = found
        .iter()
        .zip(&counts)
        .map(|(one, counts)| types::Event { deliveries: event_deliveries(counts), ..event(one) });
    Ok(shown.collect())
}

pub fn dead_letter(letter: &DeadLetter, places: &[ConfiguredRoute], now: Time) -> types::DeadLetter {
    types::DeadLetter {
        id: letter.job.as_message().to_string(),
        kind: letter.task.kind().name().to_owned(),
        lane: letter.lane.0.to_string(),
        route: letter.lane.route().map(str::to_owned),
        reason: letter.death.reason.clone(),
        class: letter.death.class.name().to_owned(),
        error: letter.death.error.clone(),
        attempts: letter.attempts,
        crashes: letter.crashes,
        died_at: letter.at,
        next_try_at: next_automatic_try(places, letter, now),
        event: event_id(letter.event),
        event_id: letter.event_id.clone(),
        event_type: letter.event_type.clone(),
        source: letter.source.clone(),
        about: (&letter.about).into(),
        amount: letter.stake.as_ref().map(|stake| stake.amount),
        currency: letter.stake.as_ref().map(|stake| stake.currency.clone()),
    }
}

pub fn message(message: &StoredMessage) -> types::Message {
    let shown = types::Message {
        id: message.job.as_message().to_string(),
        lane: message.lane.0.to_string(),
        route: message.lane.route().map(str::to_owned),
        event: event_id(message.event),
        attempts: message.attempts,
        standing: "running".to_owned(),
        at: None,
        due_at: None,
        note: None,
        reason: None,
        class: None,
        error: None,
        outage: None,
    };
    match &message.standing {
        Standing::Running => shown,
        Standing::Waiting(due_at) => {
            types::Message { standing: "waiting".to_owned(), due_at: Some(*due_at), ..shown }
        }
        Standing::Done(outcome, at) => types::Message {
            standing: outcome.name().to_owned(),
            note: outcome.note().map(str::to_owned),
            at: Some(*at),
            ..shown
        },
        Standing::Dead(death, at) => types::Message {
            standing: "dead".to_owned(),
            reason: Some(death.reason.clone()),
            class: Some(death.class.name().to_owned()),
            error: Some(death.error.clone()),
            at: Some(*at),
            ..shown
        },
    }
}

/// One call to a destination, and what it answered.
pub fn call(attempt: i32, call: &Attempt) -> types::Call {
    types::Call {
        attempt,
        at: call.at,
        took_ms: call.took_ms,
        status: call.status,
        reason: call.reason.clone(),
        error: call.error.clone(),
        answer: types::Content::of(call.headers.as_deref(), call.body.as_deref()),
    }
}

pub fn rejection(rejection: &Rejection) -> types::Rejection {
    types::Rejection {
        id: rejection.seq.as_rejection().to_string(),
        at: rejection.at,
        last_at: rejection.last_at,
        source: rejection.source.clone(),
        peer: rejection.peer.clone(),
        network: rejection.network.clone(),
        reason: rejection.reason.clone(),
        detail: rejection.detail.clone(),
        request_id: rejection.request_id.clone(),
        count: rejection.count,
    }
}

pub fn audit(entry: &AuditEntry) -> types::AuditEntry {
    let AuditEntry { number, entry } = entry;
    let details: Value = serde_json::from_str(&entry.details).unwrap_or_default();
    types::AuditEntry {
        id: *number,
        at: entry.at,
        actor: entry.actor.clone(),
        role: entry.role.clone(),
        action: entry.action.clone(),
        target: entry.target.1.clone(),
        target_type: entry.target.0.clone(),
        tenant: entry.tenant.clone(),
        event: event_id(entry.event),
        reason: details.get("reason").and_then(Value::as_str).map(str::to_owned),
        details,
    }
}

pub fn count(count: &Count) -> types::Count {
    types::Count {
        hour: count.hour,
        source: count.source.clone(),
        event_type: count.event_type.clone(),
        status: count.status.name().to_owned(),
        events: count.events,
    }
}

pub fn schedule(schedule: &Schedule, now: Time) -> types::Schedule {
    types::Schedule {
        name: schedule.name.clone(),
        event_type: schedule.event_type.clone(),
        cron: schedule.cron.clone(),
        timezone: schedule.timezone.clone(),
        next_at: schedule.times.next_after(now),
    }
}

fn event_id(event: Option<Seq>) -> Option<String> {
    event.map(|event| event.as_event().to_string())
}

/// A route as configured, before the store is asked how it fares.
#[derive(Clone, Debug)]
pub struct ConfiguredRoute {
    pub name: String,
    /// Without its query, which may hold a token.
    pub url: String,
    pub retry_dead: RetryDead,
}

impl ConfiguredRoute {
    pub fn all(config: &Config) -> Vec<Self> {
        let places = config.routes.iter().map(|route| {
            let mut url = route.url.clone();
            url.set_query(None);
            Self { name: route.route.name.clone(), url: url.to_string(), retry_dead: route.retry_dead }
        });
        places.collect()
    }
}

/// Every route with its breaker and its oldest work that waits.
pub async fn routes(
    places: &[ConfiguredRoute],
    store: &dyn Store,
) -> sekisho_store::Result<Vec<types::Route>> {
    let states = store.find_states(StateFilter::all(Kind::Breaker, FIND_MAX)).await?;
    let lanes = store.lanes().await?;
    let route = |place: &ConfiguredRoute| {
        let lane = Lane::to_route(&place.name);
        let waiting = lanes.iter().find(|(own, _)| *own == lane).map(|(_, due_at)| *due_at);
        let breaker = breaker_of(&states, &lane);
        types::Route {
            name: place.name.clone(),
            url: place.url.clone(),
            breaker: breaker.state().to_owned(),
            open_since: breaker.since(),
            open_until: breaker.next_probe(),
            oldest_due_at: waiting,
        }
    };
    Ok(places.iter().map(route).collect())
}

fn breaker_of(states: &[State], lane: &Lane) -> Breaker {
    let state = states.iter().find(|state| *state.key.id == *lane.0);
    state.and_then(|state| serde_json::from_str(&state.facts).ok()).unwrap_or_default()
}
