//! Keys to the API that people made; those of the configuration are not among them.

use sekisho_core::api_key::{ApiKey, PREFIX, Scope};
use sekisho_core::state::{Key, Kind, State};
use sekisho_store::{FIND_MAX, StateFilter, Store};

use super::states::{all_pages, load, read};
use crate::refusal::Result;
use crate::token;

/// Every key there ever was, the oldest first.
pub async fn list_keys(store: &dyn Store) -> Result<Vec<ApiKey>> {
    let states = key_states(store).await?;
    let mut keys: Vec<ApiKey> = states.iter().filter_map(|state| read(state).ok()).collect();
    keys.sort_by_key(|key| key.created_at);
    Ok(keys)
}

/// The key that somebody shows, if it is one of ours and was not taken back.
pub async fn find_key(store: &dyn Store, shown: &str) -> Result<Option<ApiKey>> {
    if !shown.starts_with(PREFIX) {
        return Ok(None);
    }
    let found = load(store, &Key::new(Kind::ApiKey, token::hash(shown))).await?;
    Ok(found.and_then(|state| read::<ApiKey>(&state).ok()).filter(ApiKey::is_alive))
}

/// Where the living key is kept that has this name or these first characters.
pub async fn find_key_called(store: &dyn Store, which: &str) -> Result<Option<Key>> {
    let is_meant = |state: &State| read::<ApiKey>(state).is_ok_and(|key| key.is_called(which));
    Ok(key_states(store).await?.into_iter().find(is_meant).map(|state| state.key))
}

/// The widest scope of a key that speaks for this tenant now.
pub async fn strongest_key(store: &dyn Store, tenant: &str) -> Result<Option<Scope>> {
    let keys = list_keys(store).await?;
    let own = keys.iter().filter(|key| key.is_alive() && key.tenant.as_deref() == Some(tenant));
    Ok(own.filter_map(ApiKey::scope).max())
}

async fn key_states(store: &dyn Store) -> Result<Vec<State>> {
    Ok(all_pages(store, StateFilter::all(Kind::ApiKey, FIND_MAX)).await?)
}
