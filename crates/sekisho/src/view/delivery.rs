//! Deliveries as they are shown, and the outages that they wait for.

use std::collections::BTreeMap;

use sekisho_core::Time;
use sekisho_core::job::Lane;
use sekisho_core::queue::Breaker;
use sekisho_core::queue::retry_dead::DeadDelivery;
use sekisho_core::state::{Kind, State};
use sekisho_store::{
    DeadLetter, DeliveryCounts, DeliveryRecord, DeliveryStatus, FIND_MAX, Result, Standing, StateFilter,
    Store,
};

use super::{ConfiguredRoute, event_id};
use crate::types;

/// Which destinations are left alone now.
pub struct Outages(BTreeMap<Lane, types::Outage>);

impl Outages {
    pub async fn find(store: &dyn Store) -> Result<Self> {
        let states = store.find_states(StateFilter::all(Kind::Breaker, FIND_MAX)).await?;
        Ok(Self(states.iter().filter_map(outage).collect()))
    }

    /// The one that a job of this lane waits for.
    pub fn of(&self, lane: &Lane) -> Option<types::Outage> {
        self.0.get(lane).cloned()
    }
}

fn outage(state: &State) -> Option<(Lane, types::Outage)> {
    let lane = Lane(state.key.id.as_str().into());
    let route = lane.route()?.to_owned();
    let breaker: Breaker = serde_json::from_str(&state.facts).ok()?;
    let (since, next_probe_at) = (breaker.since()?, breaker.next_probe());
    Some((lane, types::Outage { route, since, next_probe_at }))
}

/// Deliveries with the outages they wait for, and when failed ones are tried again.
pub fn delivery(
    one: &DeliveryRecord,
    outages: &Outages,
    places: &[ConfiguredRoute],
    now: Time,
) -> types::Delivery {
    let status = match &one.standing {
        Standing::Running => "running",
        other => DeliveryStatus::of(other).name(),
    };
    let (mut next_try_at, mut ended_at, mut reason) = (None, None, None);
    match &one.standing {
        Standing::Running => {}
        Standing::Waiting(due_at) => next_try_at = Some(*due_at),
        Standing::Done(_, at) => ended_at = Some(*at),
        Standing::Dead(death, at) => {
            let dead =
                DeadDelivery { job: one.job, class: death.class, died_at: *at, attempts: one.attempts };
            next_try_at = next_try(places, &one.lane, &dead, now);
            reason = Some(death.reason.clone());
            ended_at = Some(*at);
        }
    }
    let last = one.last.as_ref();
    types::Delivery {
        id: one.job.as_message().to_string(),
        route: one.lane.route().unwrap_or_default().to_owned(),
        status: status.to_owned(),
        event: event_id(one.event),
        event_id: one.event_id.clone(),
        event_type: one.event_type.clone(),
        source: one.source.clone(),
        attempts: one.attempts,
        queued_at: one.job.made_at(),
        last_attempt_at: last.map(|call| call.at),
        took_ms: last.map(|call| call.took_ms),
        http_status: last.and_then(|call| call.status),
        reason: reason.or_else(|| last.and_then(|call| call.reason.clone())),
        next_try_at,
        ended_at,
        outage: matches!(one.standing, Standing::Waiting(_)).then(|| outages.of(&one.lane)).flatten(),
    }
}

/// When a dead letter is tried again automatically, at the latest; none where that needs a person.
pub fn next_automatic_try(places: &[ConfiguredRoute], letter: &DeadLetter, now: Time) -> Option<Time> {
    let dead = DeadDelivery {
        job: letter.job,
        class: letter.death.class,
        died_at: letter.at,
        attempts: letter.attempts,
    };
    next_try(places, &letter.lane, &dead, now)
}

fn next_try(places: &[ConfiguredRoute], lane: &Lane, dead: &DeadDelivery, now: Time) -> Option<Time> {
    let place = places.iter().find(|place| Some(place.name.as_str()) == lane.route())?;
    place.retry_dead.next_try(dead, now)
}

pub fn event_deliveries(counts: &DeliveryCounts) -> types::EventDeliveries {
    types::EventDeliveries {
        status: counts.status().map(|status| status.name().to_owned()),
        total: counts.all(),
        delivered: counts.delivered,
        waiting: counts.waiting,
        failed: counts.failed,
        cancelled: counts.cancelled,
    }
}
