//! One of the directory by the id that the app uses: two tenants may use the same.

use sekisho_core::directory::Register;
use sekisho_core::state::State;
use sekisho_store::{StateFilter, Store};

use super::states::load;
use crate::refusal::{Refusal, Result};

/// Most tenants that are named where several have the same id.
pub const NAMED_MAX: usize = 10;

/// The tenant's, if one is named. Otherwise what belongs to no tenant, or else the only one there is; where several
/// tenants have one, whoever asks must say whose. An empty name is for what belongs to no tenant, and nothing else.
pub async fn find_member(
    store: &dyn Store,
    register: Register,
    tenant: Option<&str>,
    id: &str,
) -> Result<Option<State>> {
    if let Some(state) = load(store, &register.key(tenant, id)).await? {
        // Who deletes the same thing twice deletes no other.
        return Ok(Some(state).filter(State::is_shown));
    }
    if tenant.is_some() || register == Register::Tenants {
        return Ok(None);
    }
    let mut found = every_of_id(store, register, id).await?;
    if found.len() > 1 {
        let tenants = found.into_iter().filter_map(|state| state.index.tenant);
        return Err(several(register.noun(), id, tenants.collect()));
    }
    Ok(found.pop())
}

/// All who have this id, whichever tenant they belong to; the first of them.
pub async fn every_of_id(
    store: &dyn Store,
    register: Register,
    id: &str,
) -> sekisho_store::Result<Vec<State>> {
    let all = StateFilter::all(register.kind(), NAMED_MAX + 1);
    let found = store.find_states(StateFilter { customer: Some(id.to_owned()), ..all }).await?;
    Ok(found.into_iter().filter(State::is_shown).collect())
}

pub fn several(noun: &str, id: &str, mut tenants: Vec<String>) -> Refusal {
    tenants.sort();
    let more = if tenants.len() > NAMED_MAX { " and others" } else { "" };
    let named = tenants.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    Refusal::Conflict(format!("several tenants have a {noun} {id}: {named}{more}; specify `tenant`"))
}
