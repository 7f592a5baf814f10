//! Addresses that nothing is sent to: entered, and released, by people. Bounces and complaints enter them by themselves.

use sekisho_core::change::{ChangeSet, Committed};
use sekisho_core::notification::MailAddress;
use sekisho_core::notification::suppression::{Cause, Suppression, Turn};
use sekisho_core::state::State;
use sekisho_store::Store;
use serde_json::{Value, json};

use super::{Actor, Refusal, Result, TRIES, check_reason, contended};

/// Nothing is sent to this address any more.
pub async fn suppress(
    store: &dyn Store,
    address: &MailAddress,
    reason: &str,
    actor: &Actor<'_>,
) -> Result<Value> {
    turn(store, address, Cause::Manual, reason, actor).await
}

/// Mail goes to this address again.
pub async fn release(
    store: &dyn Store,
    address: &MailAddress,
    reason: &str,
    actor: &Actor<'_>,
) -> Result<Value> {
    turn(store, address, Cause::Released, reason, actor).await
}

async fn turn(
    store: &dyn Store,
    address: &MailAddress,
    cause: Cause,
    reason: &str,
    actor: &Actor<'_>,
) -> Result<Value> {
    let reason = check_reason(reason)?;
    let key = Suppression::key(address);
    let releases = cause == Cause::Released;
    for _ in 0..TRIES {
        let loaded = store.load(Vec::new(), vec![key.clone()]).await?;
        let state = loaded.states.get(&key);
        let known = state.and_then(Suppression::read);
        let mut suppression = known.unwrap_or_else(|| Suppression::new(address.clone()));
        match suppression.cause() {
            None if releases => {
                return Err(Refusal::Missing(format!("{address} is not on the suppression list")));
            }
            Some(turn) if !releases => {
                let cause = turn.cause.name();
                return Err(Refusal::Conflict(format!(
                    "{address} is on the suppression list already: {cause}"
                )));
            }
            None | Some(_) => {}
        }
        let note = Some(reason.clone()).filter(|reason| !reason.is_empty());
        suppression.turn(Turn { at: actor.at, cause, note, by: Some(actor.name.to_owned()) });
        let action = if releases { "address.released" } else { "address.suppressed" };
        let entry = actor.entry(None, action, ("address", &address.masked()), json!({ "reason": reason }));
        let set = ChangeSet {
            writes: vec![suppression.write(state.map_or(0, |state| state.version))],
            audit: vec![entry],
            ..ChangeSet::nothing(actor.at)
        };
        if let [Committed::Applied { .. }] = &*store.commit(vec![set]).await? {
            return Ok(view(&suppression, false));
        }
    }
    Err(contended())
}

/// As people and programs read it; `whole`: with the address unmasked.
pub fn view(suppression: &Suppression, whole: bool) -> Value {
    let address = &suppression.address;
    let last = suppression.history.last();
    json!({
        "object": "suppression",
        "address": if whole { address.whole().to_owned() } else { address.masked() },
        "suppressed": suppression.cause().is_some(),
        "cause": last.map(|turn| turn.cause),
        "note": last.and_then(|turn| turn.note.as_ref()),
        "by": last.and_then(|turn| turn.by.as_ref()),
        "at": last.map(|turn| turn.at),
        "history": suppression.history,
    })
}

/// The same, as it is stored.
pub fn view_state(state: &State, whole: bool) -> Option<Value> {
    Suppression::read(state).map(|suppression| view(&suppression, whole))
}
