//! Tenants, customers, staff, subjects and billing that are deleted: a tombstone is left of each
//! ([ADR 20](../../../../docs/adr/0020-deleting-leaves-a-stone.md)).

use sekisho_core::actor::Actor;
use sekisho_core::deletion::{self, DeletionRefusal, billing_wanted};
use sekisho_core::directory::Register;
use sekisho_core::state::Wanted;
use sekisho_store::{StateFilter, Store};
use serde_json::Value;

use super::api_key::revoke_key;
use crate::queries::{find_member, list_keys};
use crate::refusal::{Refusal, Result};
use crate::transact::transact;

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
    actor.check_tenant(tenant)?;
    let found = find_member(store, register, tenant, id).await?;
    let found = found.filter(|state| actor.may_touch(state.index.tenant.as_deref()));
    let missing = || DeletionRefusal::NoMember { register, id: id.to_owned() };
    let key = found.ok_or_else(missing)?.key;
    if register == Register::Tenants {
        // Order matters: whoever has this id next must find nobody who belonged to, or spoke for, the one before.
        clear_out(store, id, actor).await?;
    }
    let deleted = transact(store, Wanted::keys([key.clone()]), |loaded| {
        deletion::delete_member(register, id, loaded.states.get(&key), actor)
    });
    deleted.await.map_err(Refusal::from)
}

/// Deletes a tenant's customers, staff and subjects, and revokes its keys. Can be done again from the beginning.
async fn clear_out(store: &dyn Store, tenant: &str, actor: &Actor<'_>) -> Result<()> {
    for register in [Register::Customers, Register::Staff, Register::Subjects] {
        let filter =
            StateFilter { tenant: Some(tenant.to_owned()), ..StateFilter::all(register.kind(), PIECE) };
        loop {
            let found = store.find_states(filter.clone()).await?;
            if found.is_empty() {
                break;
            }
            transact(store, Wanted::keys(found.into_iter().map(|state| state.key)), |loaded| -> Result<_> {
                Ok((deletion::delete_members(loaded.states.values(), actor), ()))
            })
            .await?;
        }
    }
    for key in list_keys(store).await?.into_iter().filter(|key| key.tenant.as_deref() == Some(tenant)) {
        if key.is_alive() {
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
    let deleted = transact(store, billing_wanted(which, livemode), |loaded| {
        deletion::delete_billing(which, livemode, loaded, actor)
    });
    deleted.await.map_err(Refusal::from)
}

#[cfg(test)]
mod tests;
