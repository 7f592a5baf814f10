//! Addresses that nothing is sent to: entered, and released, by people. Bounces and complaints enter them by themselves.

use sekisho_core::change::ChangeSet;
use sekisho_core::mail_address::{MailAddress, mask_text};
use sekisho_core::notification::suppression::{Cause, Suppression, Turn};
use sekisho_core::state::Kind;
use sekisho_store::{FIND_MAX, StateFilter, Store};
use serde_json::{Map, Value, json};

use super::fields::Fields;
use super::typed_state::{is_written, load};
use super::{Actor, REASON_MAX, Refusal, Result, TRIES, check_reason, contended};
use crate::token;

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
        let state = load(store, &key).await?;
        let known = state.as_ref().and_then(Suppression::read);
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
        if is_written(store, set).await? {
            return Ok(view(&suppression, false));
        }
    }
    Err(contended())
}

/// What is ordered of an address, and why.
#[derive(Debug)]
pub struct Turned {
    pub address: MailAddress,
    pub reason: String,
}

impl Turned {
    pub fn read(order: Map<String, Value>) -> Result<Self> {
        let mut fields = Fields::new(order);
        let address = fields.email("address");
        let address = fields.need("address", address);
        let reason = fields.text("reason", REASON_MAX);
        let reason = fields.need("reason", reason);
        fields.finish()?;
        let read = address.zip(reason).map(|(address, reason)| Self { address, reason });
        Ok(read.expect("what is needed is there, or it was said"))
    }
}

/// Addresses that are looked through for one page.
const LOOKED_MAX: usize = 1_000_000;

/// Addresses that nothing is sent to, by address, the last first; `all`: also those that were released. `before` is
/// the id of the last one of the page before.
pub async fn suppressions(
    store: &dyn Store,
    all: bool,
    before: Option<&str>,
    limit: usize,
) -> Result<Vec<Suppression>> {
    let (mut found, mut is_after, mut looked) = (Vec::new(), before.is_none(), 0);
    let mut filter = StateFilter::all(Kind::Suppression, FIND_MAX);
    while looked < LOOKED_MAX {
        let page = store.find_states(filter.clone()).await?;
        looked += page.len();
        for suppression in page.iter().filter_map(Suppression::read) {
            if !is_after {
                is_after = before == Some(&id(&suppression.address));
            } else if all || suppression.cause().is_some() {
                found.push(suppression);
            }
            if found.len() == limit {
                return Ok(found);
            }
        }
        if page.len() < FIND_MAX {
            break;
        }
        filter.before = page.last().map(|last| last.key.id.clone());
    }
    if is_after {
        Ok(found)
    } else {
        Err(Refusal::Invalid("before: expected the last id of a page: sup_…".into()))
    }
}

/// What is known of one address.
pub async fn suppression(store: &dyn Store, address: &MailAddress) -> Result<Option<Suppression>> {
    Ok(load(store, &Suppression::key(address)).await?.as_ref().and_then(Suppression::read))
}

/// Names an entry without showing its address: `sup_` and the beginning of its hash.
fn id(address: &MailAddress) -> String {
    format!("sup_{}", &token::hash(address.whole())[..16])
}

/// As people and programs read it; `whole`: with addresses unmasked, also where a mail server names them.
pub fn view(suppression: &Suppression, whole: bool) -> Value {
    let address = &suppression.address;
    let shown = |note: &Option<String>| {
        note.as_deref().map(|note| if whole { note.to_owned() } else { mask_text(note) })
    };
    let history: Vec<_> = suppression
        .history
        .iter()
        .map(|turn| json!({ "at": turn.at, "cause": turn.cause, "note": shown(&turn.note), "by": turn.by }))
        .collect();
    let last = suppression.history.last();
    json!({
        "id": id(address),
        "object": "suppression",
        "address": if whole { address.whole().to_owned() } else { address.masked() },
        "suppressed": suppression.cause().is_some(),
        "cause": last.map(|turn| turn.cause),
        "note": last.and_then(|turn| shown(&turn.note)),
        "by": last.and_then(|turn| turn.by.as_ref()),
        "at": last.map(|turn| turn.at),
        "history": history,
    })
}
