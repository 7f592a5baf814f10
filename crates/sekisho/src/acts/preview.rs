//! What a change of a reservation would bring about, asked of the same decision that the change itself makes. Nothing is
//! written.

use sekisho_core::actor::Actor;
use sekisho_core::fulfilment::{FulfilmentFacts, FulfilmentStatus};
use sekisho_core::reservation::{ReservationFacts, ReservationStatus};
use sekisho_core::settlement::Change;
use sekisho_core::settlement::follow::OrderPolicy;
use sekisho_core::settlement::payment::{self, Facts};
use sekisho_core::state::{Key, Kind, Loaded, Wanted, Write};
use sekisho_store::{Error, Store};
use serde::de::DeserializeOwned;

use super::decided::{Prepared, foreseen};
use super::reservation_change::{ReservationChange, asked, check};
use crate::env::Env;
use crate::refusal::Result;
use crate::types::RefundOrder;

/// A reservation before and after, and what comes of it for the rest of its order.
#[derive(Clone, Debug)]
pub struct ReservationPreview {
    pub before: ReservationFacts,
    pub after: ReservationFacts,
    pub status_before: ReservationStatus,
    pub status_after: ReservationStatus,
    /// Refunds that would be ordered.
    pub refunds: Vec<RefundOrder>,
    /// What is made for it would be begun, or begun no more.
    pub fulfilment: Option<FulfilmentPreview>,
    /// The types of the events that would be announced.
    pub announced: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FulfilmentPreview {
    pub status: FulfilmentStatus,
    pub is_stopped: bool,
}

pub async fn preview_reservation(
    store: &dyn Store,
    env: &Env,
    policy: &OrderPolicy,
    id: &str,
    change: &ReservationChange,
    actor: &Actor<'_>,
) -> Result<ReservationPreview> {
    let key = Key::new(Kind::Reservation, id);
    let prepare = |loaded: &Loaded| {
        let (known, input) = asked(loaded, env, policy, id, change, actor)?;
        Ok(match input {
            Some(input) => Prepared::Decide(vec![input], known),
            None => Prepared::Answer(unchanged(known, policy, actor)),
        })
    };
    let answer = |before: ReservationFacts, made: &Change| {
        let after = written(made.writes.iter().find(|write| write.key == key))?;
        let after = after.unwrap_or_else(|| before.clone());
        check(&after, change, policy, actor.at)?;
        let made_for_it: Option<FulfilmentFacts> =
            written(made.writes.iter().find(|write| write.key.kind == Kind::Fulfilment))?;
        Ok(ReservationPreview {
            status_after: after.status(actor.at, policy.grace_ms),
            after,
            refunds: refunds(made, actor)?,
            fulfilment: made_for_it.map(|facts| FulfilmentPreview {
                status: facts.status(policy.attempts),
                is_stopped: facts.stopped_at.is_some(),
            }),
            announced: made.announcements.iter().map(|told| told.event_type.clone()).collect(),
            ..unchanged(before, policy, actor)
        })
    };
    foreseen(store, policy, actor.at, Wanted::keys([key.clone()]), prepare, answer).await
}

fn unchanged(known: ReservationFacts, policy: &OrderPolicy, actor: &Actor<'_>) -> ReservationPreview {
    let status = known.status(actor.at, policy.grace_ms);
    ReservationPreview {
        after: known.clone(),
        before: known,
        status_before: status,
        status_after: status,
        refunds: Vec::new(),
        fulfilment: None,
        announced: Vec::new(),
    }
}

/// The refunds that this act would order, and no other had.
fn refunds(made: &Change, actor: &Actor<'_>) -> Result<Vec<RefundOrder>> {
    let Some(write) = made.writes.iter().find(|write| write.key.kind == Kind::Payment) else {
        return Ok(Vec::new());
    };
    let facts = Facts::parse(&write.facts).map_err(Error::corrupt)?;
    let own = facts.refund_orders.iter().filter(|(_, order)| order.wish.at == actor.at);
    let shown = own.map(|(key, order)| serde_json::from_value(payment::refund_order(&facts, key, order)));
    Ok(shown.collect::<std::result::Result<_, _>>().map_err(Error::corrupt)?)
}

fn written<T: DeserializeOwned>(write: Option<&Write>) -> Result<Option<T>> {
    let read = write.map(|write| serde_json::from_str(&write.facts));
    Ok(read.transpose().map_err(Error::corrupt)?)
}
