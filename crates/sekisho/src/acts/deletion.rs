//! Tenants, customers, staff, subjects and billing that are deleted. What is left is a stone without what was said of them: who reads
//! finds nothing there, and what leads there leads nowhere. Events, payments, books and the audit log stay as they are
//! ([ADR 20](../../../../docs/adr/0020-deleting-leaves-a-stone.md)).

use sekisho_core::change::{ChangeSet, Committed};
use sekisho_core::directory::{Register, own_id};
use sekisho_core::settlement::billing;
use sekisho_core::settlement::order::billing_known_as;
use sekisho_core::state::{DELETED, Index, Key, Kind, State, Write};
use sekisho_store::{Error, StateFilter, Store};
use serde_json::{Value, json};

use super::api_key::{list_keys, revoke_key};
use super::directory::{check_tenant, find_member};
use super::typed_state::{is_written, load};
use super::{Actor, Refusal, Result, TRIES, contended};

/// Members of a tenant that are deleted in one commit.
const PIECE: usize = 100;

/// One of the directory: of the tenant that is named, or that the actor belongs to. For an actor of one tenant what belongs
/// to others is not there.
pub async fn delete_member(
    store: &dyn Store,
    register: Register,
    tenant: Option<&str>,
    id: &str,
    actor: &Actor<'_>,
) -> Result<Value> {
    let tenant = tenant.or(actor.tenant);
    check_tenant(actor, tenant)?;
    let (noun, list) = (register.noun(), register.name());
    let missing = || Refusal::Missing(format!("there is no {noun} {id}; `sekisho {list}` lists them"));
    let found = find_member(store, register, tenant, id).await?;
    let mut found = found.filter(|state| actor.may_touch(state.index.tenant.as_deref()));
    if register == Register::Tenants && found.is_some() {
        // Order matters: whoever has this id next must find nobody who belonged to, or spoke for, the one before.
        clear_out(store, id, actor).await?;
    }
    for _ in 0..TRIES {
        let Some(state) = found.filter(State::is_shown) else { return Err(missing()) };
        if is_written(store, buried(&state, actor)).await? {
            return Ok(gone(&state.key, None));
        }
        found = load(store, &state.key).await?;
    }
    Err(contended())
}

/// What leaves a stone where this one of the directory stood.
fn buried(state: &State, actor: &Actor<'_>) -> ChangeSet {
    let whose = state.index.tenant.as_deref();
    let write = Write {
        key: state.key.clone(),
        version: state.version,
        facts: json!({ "deleted": { "at": actor.at, "by": actor.name } }).to_string(),
        index: Index { status: Some(DELETED.to_owned()), ..Index::default() },
    };
    let tenant = if state.key.kind == Kind::Tenant { Some(&*state.key.id) } else { whose };
    deletion(write, tenant, &json!({ "tenant": whose, "created_at": state.created_at }), actor)
}

/// Deletes a tenant's customers, staff and subjects, and revokes its keys. Can be done again from the beginning.
async fn clear_out(store: &dyn Store, tenant: &str, actor: &Actor<'_>) -> Result<()> {
    for register in [Register::Customers, Register::Staff, Register::Subjects] {
        let mut tries = 0..TRIES;
        loop {
            let filter =
                StateFilter { tenant: Some(tenant.to_owned()), ..StateFilter::all(register.kind(), PIECE) };
            let found = store.find_states(filter).await?;
            if found.is_empty() {
                break;
            }
            let sets = found.iter().map(|state| buried(state, actor)).collect();
            let answers = store.commit(sets).await?;
            // Those that somebody changed meanwhile are found again.
            let is_contended = !answers.iter().any(|answer| matches!(answer, Committed::Applied { .. }));
            if is_contended && tries.next().is_none() {
                return Err(contended());
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
        if is_written(store, deletion(write, state.index.tenant.as_deref(), &before, actor)).await? {
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
        0 => Err(Refusal::Missing(format!("there is no billing of {which}"))),
        1 => Ok(found.remove(0)),
        _ => Err(Refusal::Conflict(format!(
            "{which} has billing in both modes; specify the mode, live or test"
        ))),
    }
}

/// What is written, and noted with what stood there before.
fn deletion(write: Write, tenant: Option<&str>, before: &Value, actor: &Actor<'_>) -> ChangeSet {
    let (kind, id) = (write.key.kind.name(), own_id(&write.key).to_owned());
    let entry = actor.entry(tenant, &format!("{kind}.deleted"), (kind, &id), json!({ "before": before }));
    ChangeSet { writes: vec![write], audit: vec![entry], ..ChangeSet::nothing(actor.at) }
}

/// What is answered; `was` is how it stood.
fn gone(key: &Key, was: Option<&str>) -> Value {
    json!({ "id": own_id(key), "object": key.kind.name(), "deleted": true, "was": was })
}

#[cfg(test)]
mod tests;
