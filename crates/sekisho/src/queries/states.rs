//! What is kept of one thing, or of all of a kind, page after page.

use sekisho_core::state::{Key, State};
use sekisho_store::{Error, FIND_MAX, Result, StateFilter, Store};
use serde::de::DeserializeOwned;

/// Most things that are read for one order.
const EVERY_MAX: usize = 1_000_000;

pub async fn load(store: &dyn Store, key: &Key) -> Result<Option<State>> {
    Ok(store.load(Vec::new(), vec![key.clone()]).await?.states.remove(key))
}

pub fn read<T: DeserializeOwned>(state: &State) -> Result<T> {
    serde_json::from_str(&state.facts).map_err(Error::corrupt)
}

/// One thing, read.
pub async fn load_typed<T: DeserializeOwned>(store: &dyn Store, key: &Key) -> Result<Option<T>> {
    load(store, key).await?.map(|state| read(&state)).transpose()
}

/// Everything a filter finds, the newest first, without what became part of another or was deleted.
pub async fn all_pages(store: &dyn Store, filter: StateFilter) -> Result<Vec<State>> {
    let (mut all, mut before) = (Vec::new(), filter.before.clone());
    while all.len() < EVERY_MAX {
        let page = store.find_states(StateFilter { before, limit: FIND_MAX, ..filter.clone() }).await?;
        let is_last = page.len() < FIND_MAX;
        before = page.last().map(|last| last.key.id.clone());
        all.extend(page.into_iter().filter(State::is_shown));
        if is_last {
            break;
        }
    }
    Ok(all)
}
