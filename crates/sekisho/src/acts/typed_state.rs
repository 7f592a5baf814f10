//! One thing as the store keeps it: found by its key, read, and written over the version that was found.

use sekisho_core::change::{ChangeSet, Committed};
use sekisho_core::state::{Index, Key, State, Write};
use sekisho_store::{Error, Result, Store};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub async fn load(store: &dyn Store, key: &Key) -> Result<Option<State>> {
    Ok(store.load(Vec::new(), vec![key.clone()]).await?.states.remove(key))
}

pub fn read<T: DeserializeOwned>(state: &State) -> Result<T> {
    serde_json::from_str(&state.facts).map_err(Error::corrupt)
}

pub fn write(key: &Key, version: i64, facts: &impl Serialize) -> Write {
    let facts = serde_json::to_string(facts).expect("plain data serialises");
    Write { key: key.clone(), version, facts, index: Index::default() }
}

/// Writes all of it, unless others were faster; says which.
pub async fn is_written(store: &dyn Store, set: ChangeSet) -> Result<bool> {
    Ok(matches!(&*store.commit(vec![set]).await?, [Committed::Applied { .. }]))
}
