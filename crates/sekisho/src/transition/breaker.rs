//! Breakers, closed by hand.

use sekisho_core::change::{ChangeSet, Committed, Lane};
use sekisho_core::queue::Breaker;
use sekisho_core::state::{Index, Key, Kind, Write};
use sekisho_store::Store;
use serde::{Deserialize, Serialize};

use super::{Actor, Result, TRIES, contended};

/// What a reset did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reset {
    pub route: String,
    /// How the breaker stood: `closed`, `open` or `half_open`.
    pub was: String,
}

/// Closes the breaker of a route, for every node.
pub async fn reset(store: &dyn Store, route: &str, actor: &Actor<'_>) -> Result<Reset> {
    let lane = Lane::to_route(route);
    for _ in 0..TRIES {
        let key = Key::new(Kind::Breaker, &*lane.0);
        let stored = store.load(Vec::new(), vec![key.clone()]).await?.states.remove(&key);
        let breaker = stored.as_ref().and_then(|state| serde_json::from_str::<Breaker>(&state.facts).ok());
        let reset = Reset { route: route.to_owned(), was: breaker.unwrap_or_default().state().to_owned() };
        let Some(stored) = stored else { return Ok(reset) };
        let facts = serde_json::to_string(&Breaker::default()).expect("a breaker is plain data");
        let write = Write { key, version: stored.version, facts, index: Index::default() };
        let entry =
            actor.entry(None, "breaker.reset", ("route", route), serde_json::json!({ "was": reset.was }));
        let set = ChangeSet { writes: vec![write], audit: vec![entry], ..ChangeSet::nothing(actor.at) };
        if store.commit(vec![set]).await? != [Committed::Stale] {
            return Ok(reset);
        }
    }
    Err(contended())
}
