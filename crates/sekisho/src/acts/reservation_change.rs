//! What is done to a reservation: it is confirmed by hand, held longer or given back, with everything that follows for its
//! order.

use sekisho_core::Time;
use sekisho_core::actor::Actor;
use sekisho_core::audit::Role;
use sekisho_core::reservation::{Cancelled, Confirmation, ReservationFacts, ReservationStatus};
use sekisho_core::settlement::follow::{OrderPart, OrderPolicy, view};
use sekisho_core::settlement::{Change, Input, Reading};
use sekisho_core::state::{Key, Kind, Loaded, Wanted};
use sekisho_store::Store;

use super::decided::{Prepared, decided};
use super::request::{Answered, OnceKey};
use super::reservation::{TEXT_MAX, by, cause, is_text};
use crate::env::Env;
use crate::refusal::{Refusal, Result};
use crate::types::FieldError;

/// What somebody does to a reservation.
#[derive(Clone, Debug)]
pub enum ReservationChange {
    /// It is theirs, whatever was paid.
    Confirm {
        reason: String,
    },
    Extend {
        until: Time,
    },
    Cancel {
        reason: String,
        refund: bool,
    },
}

/// Changes a reservation, with everything that follows for its order.
pub async fn change_reservation(
    store: &dyn Store,
    env: &Env,
    policy: &OrderPolicy,
    id: &str,
    change: &ReservationChange,
    request: Option<&OnceKey>,
    actor: &Actor<'_>,
) -> Result<Answered> {
    let key = Key::new(Kind::Reservation, id);
    let mut wanted = Wanted::keys([key.clone()]);
    wanted.extend(Wanted::keys(request.map(OnceKey::key)));
    let prepare = |loaded: &Loaded| {
        if let Some(answered) = OnceKey::repeated(request, loaded)? {
            return Ok(Prepared::Answer(answered));
        }
        let (known, input) = asked(loaded, env, policy, id, change, actor)?;
        let Some(input) = input else {
            let answer = view::reservation_with_link(id, &known, actor.at, policy);
            return Ok(Prepared::Answer(Answered { answer, repeated: false }));
        };
        Ok(Prepared::Decide(vec![input], known))
    };
    let answer = |known: ReservationFacts, made: &Change| {
        let after = match made.writes.iter().find(|write| write.key == key) {
            Some(write) => serde_json::from_str(&write.facts).map_err(sekisho_store::Error::corrupt)?,
            None => known,
        };
        check(&after, change, policy, actor.at)?;
        let answer = view::reservation_with_link(id, &after, actor.at, policy);
        let remembered = request.map(|request| request.write(&answer));
        Ok((Answered { answer, repeated: false }, remembered.into_iter().collect()))
    };
    decided(store, env, policy, actor.at, wanted, prepare, answer).await
}

/// The reservation as it is, and what is to be decided of it; nothing, where it was said before.
pub(super) fn asked(
    loaded: &Loaded,
    env: &Env,
    policy: &OrderPolicy,
    id: &str,
    change: &ReservationChange,
    actor: &Actor<'_>,
) -> Result<(ReservationFacts, Option<Input>)> {
    let unknown = || Refusal::Missing(format!("no reservation has the id {id}"));
    let key = Key::new(Kind::Reservation, id);
    let known = loaded.read::<ReservationFacts>(&key)?.ok_or_else(unknown)?.value;
    if !actor.may_touch(known.ours.tenant.as_deref()) {
        return Err(unknown());
    }
    if let ReservationChange::Confirm { reason } | ReservationChange::Cancel { reason, .. } = change
        && !is_text(reason, TEXT_MAX)
    {
        let detail = format!("expected 1 to {TEXT_MAX} characters without control characters");
        return Err(Refusal::Fields(vec![FieldError::new("reason", detail)]));
    }
    let input = said(&known, change, policy, actor)?.map(|said| {
        let part = OrderPart::Reservation { id: id.to_owned(), facts: Box::new(said) };
        let reading = Reading { order: vec![part], ..Reading::default() };
        Input { seq: env.fresh_seq(actor.at), reading, cause: cause(actor) }
    });
    Ok((known, input))
}

/// What is to be joined; nothing, where it was said before.
fn said(
    known: &ReservationFacts,
    change: &ReservationChange,
    policy: &OrderPolicy,
    actor: &Actor<'_>,
) -> Result<Option<ReservationFacts>> {
    let status = known.status(actor.at, policy.grace_ms);
    let (at, by) = (actor.at, by(actor));
    match change {
        ReservationChange::Confirm { .. } if status == ReservationStatus::Cancelled => {
            Err(Refusal::Conflict("the reservation was cancelled".into()))
        }
        ReservationChange::Confirm { .. } if status == ReservationStatus::Confirmed => Ok(None),
        ReservationChange::Confirm { reason } => {
            let confirm = Some(Confirmation { at, by, why: reason.clone() });
            Ok(Some(ReservationFacts { confirm, ..ReservationFacts::default() }))
        }
        ReservationChange::Extend { .. } if status != ReservationStatus::Hold => Err(Refusal::Conflict(
            format!("the reservation is {}; only a hold can be extended", status.name()),
        )),
        ReservationChange::Extend { until } => {
            let longest = known.ours.at.plus_ms(policy.delayed_max_ms);
            if *until <= known.until || *until > longest {
                let detail = format!("expected a time after {} and not after {longest}", known.until);
                return Err(Refusal::Fields(vec![FieldError::new("until", detail)]));
            }
            Ok(Some(ReservationFacts { until: *until, ..ReservationFacts::default() }))
        }
        ReservationChange::Cancel { .. } if status == ReservationStatus::Cancelled => Ok(None),
        ReservationChange::Cancel { .. }
            if actor.role == Role::Customer
                && !known.may_customer_cancel(at, policy.grace_ms, policy.cancel_until_ms) =>
        {
            Err(Refusal::Conflict("its customer may not cancel it any more".into()))
        }
        ReservationChange::Cancel { reason, refund } => {
            let cancelled = Some(Cancelled { at, by, why: reason.clone(), refund: *refund });
            Ok(Some(ReservationFacts { cancelled, ..ReservationFacts::default() }))
        }
    }
}

/// Whether what was asked for came about.
pub(super) fn check(
    after: &ReservationFacts,
    change: &ReservationChange,
    policy: &OrderPolicy,
    at: Time,
) -> Result<()> {
    let is_confirmed = after.status(at, policy.grace_ms) == ReservationStatus::Confirmed;
    match change {
        ReservationChange::Confirm { .. } if !is_confirmed => {
            Err(Refusal::Conflict("its places lapsed, and too few are free now".into()))
        }
        ReservationChange::Confirm { .. }
        | ReservationChange::Extend { .. }
        | ReservationChange::Cancel { .. } => Ok(()),
    }
}
