//! Tenants, customers, staff and subjects: whose money it is and who is told what, under the ids that the app itself
//! uses.
//!
//! Whoever is said anew is replaced as a whole: what is left out is empty from then on. What changes nothing is neither
//! written nor audited. Ids of customers, staff and subjects are their tenant's: what one tenant enters is no business of
//! another that uses the same id. Staff and subjects need a tenant that is known. Addresses are masked in answers, in what is remembered of requests, and in the audit log.

mod parse;

use sekisho_core::actor::Actor;
use sekisho_core::change::ChangeSet;
use sekisho_core::directory::Register;
use sekisho_core::state::Wanted;
use sekisho_store::Store;
use serde_json::{Map, Value, json};

use super::request::{Answered, OnceKey};
use crate::refusal::{Refusal, Result};
use crate::transact::transact;
use crate::types;

pub(super) use parse::parse;

/// Writes one, new or over what was said before.
pub async fn create_member(
    store: &dyn Store,
    register: Register,
    order: Map<String, Value>,
    request: Option<&OnceKey>,
    actor: &Actor<'_>,
) -> Result<Answered> {
    let draft = parse(register, order, actor)?;
    let wanted = Wanted::keys(draft.keys().chain(request.map(OnceKey::key)));
    let created = transact(store, wanted, |loaded| -> Result<_> {
        let mut set = ChangeSet::nothing(actor.at);
        if let Some(answered) = OnceKey::repeated(request, loaded)? {
            return Ok((set, answered));
        }
        let answer = json!(types::Member::of(&draft.key, &draft.member, false));
        draft.add_to(&mut set, draft.effect(loaded)?, loaded, actor);
        set.writes.extend(request.map(|request| request.write(&answer)));
        Ok((set, Answered { answer, repeated: false }))
    });
    created.await.map_err(Refusal::from)
}

/// What is wrong with an order, as far as that can be told without looking at what is there.
pub fn check_member(register: Register, order: Map<String, Value>, actor: &Actor<'_>) -> Result<()> {
    parse(register, order, actor).map(drop)
}

#[cfg(test)]
mod tests;
