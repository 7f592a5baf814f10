//! Tenants, customers, staff, subjects and billing that are deleted. What is left is a stone without what was said of them: who reads
//! finds nothing there, and what leads there leads nowhere. Events, payments, books and the audit log stay as they are
//! ([ADR 20](../../../../docs/adr/0020-deleting-leaves-a-stone.md)).

use sekisho_core::change::ChangeSet;
use sekisho_core::notification::directory::Register;
use sekisho_core::settlement::billing;
use sekisho_core::settlement::order::billing_known_as;
use sekisho_core::state::{DELETED, Index, Key, Kind, State, Write};
use sekisho_store::{Error, FIND_MAX, StateFilter, Store};
use serde_json::{Value, json};

use super::api_key::{list_keys, revoke_key};
use super::kept::{is_written, load};
use super::{Actor, Refusal, Result, TRIES, contended};

/// One of the directory. For an actor of one tenant what belongs to others is not there.
pub async fn delete_member(
    store: &dyn Store,
    register: Register,
    id: &str,
    actor: &Actor<'_>,
) -> Result<Value> {
    let key = Key::new(register.kind(), id);
    let mut is_bare = register != Register::Tenants;
    for _ in 0..TRIES {
        let found = load(store, &key).await?.filter(State::is_shown);
        let Some(state) = found.filter(|state| actor.may_touch(state.index.tenant.as_deref())) else {
            let (noun, list) = (register.noun(), register.name());
            return Err(Refusal::Missing(format!("there is no {noun} {id}; `sekisho {list}` lists them")));
        };
        if !is_bare {
            // Order matters: whoever has this id next must find nobody who worked for, or spoke for, the one before.
            clear_out(store, id, actor).await?;
            is_bare = true;
        }
        let whose = state.index.tenant.as_deref();
        let write = Write {
            key: key.clone(),
            version: state.version,
            facts: json!({ "deleted": { "at": actor.at, "by": actor.name } }).to_string(),
            index: Index { status: Some(DELETED.to_owned()), ..Index::default() },
        };
        let tenant = if key.kind == Kind::Tenant { Some(&*key.id) } else { whose };
        let before = json!({ "tenant": whose, "created_at": state.created_at });
        if commit(store, write, tenant, &before, actor).await? {
            return Ok(gone(&key, None));
        }
    }
    Err(contended())
}

/// Deletes a tenant's staff and subjects, and revokes its keys. Can be done again from the beginning.
async fn clear_out(store: &dyn Store, tenant: &str, actor: &Actor<'_>) -> Result<()> {
    for register in [Register::Staff, Register::Subjects] {
        loop {
            let filter = StateFilter {
                tenant: Some(tenant.to_owned()),
                ..StateFilter::all(register.kind(), FIND_MAX)
            };
            let found = store.find_states(filter).await?;
            if found.is_empty() {
                break;
            }
            for state in found {
                // One that is gone by now was what we wanted.
                match Box::pin(delete_member(store, register, &state.key.id, actor)).await {
                    Ok(_) | Err(Refusal::Missing(_)) => {}
                    Err(refusal) => return Err(refusal),
                }
            }
        }
    }
    for key in list_keys(store).await?.into_iter().filter(|key| key.tenant.as_deref() == Some(tenant)) {
        if key.revoked_at.is_none() {
            revoke_key(store, &key.hint, actor).await?;
        }
    }
    Ok(())
}

/// By its own id, or by its tenant's; then the mode says which, if there are two.
pub async fn delete_billing(
    store: &dyn Store,
    which: &str,
    livemode: Option<bool>,
    actor: &Actor<'_>,
) -> Result<Value> {
    for _ in 0..TRIES {
        let state = find_billing(store, which, livemode).await?;
        let (write, before) = billing::delete(&state, actor.name, actor.at)
            .map_err(|error| Refusal::Store(Error::corrupt(error)))?;
        let was = before["status"].as_str().map(str::to_owned);
        if commit(store, write, state.index.tenant.as_deref(), &before, actor).await? {
            return Ok(gone(&state.key, was.as_deref()));
        }
    }
    Err(contended())
}

async fn find_billing(store: &dyn Store, which: &str, livemode: Option<bool>) -> Result<State> {
    let loaded = store.load(billing_known_as(which, livemode), vec![Key::new(Kind::Billing, which)]).await?;
    let is_meant = |state: &State| {
        state.is_shown()
            && state.key.kind == Kind::Billing
            && (livemode.is_none() || state.index.livemode == livemode)
    };
    let mut found: Vec<State> = loaded.states.into_values().filter(is_meant).collect();
    match found.len() {
        0 => Err(Refusal::Missing(format!("nothing is known of billing of {which}"))),
        1 => Ok(found.remove(0)),
        _ => Err(Refusal::Conflict(format!("{which} has billing in both modes; say which: live or test"))),
    }
}

/// Writes it if nobody was faster, and says whether.
async fn commit(
    store: &dyn Store,
    write: Write,
    tenant: Option<&str>,
    before: &Value,
    actor: &Actor<'_>,
) -> Result<bool> {
    let kind = write.key.kind.name();
    let action = format!("{kind}.deleted");
    let entry = actor.entry(tenant, &action, (kind, &write.key.id), json!({ "before": before }));
    let set = ChangeSet { writes: vec![write], audit: vec![entry], ..ChangeSet::nothing(actor.at) };
    Ok(is_written(store, set).await?)
}

/// What is answered; `was` is how it stood.
fn gone(key: &Key, was: Option<&str>) -> Value {
    json!({ "id": key.id, "object": key.kind.name(), "deleted": true, "was": was })
}

#[cfg(test)]
mod tests;
