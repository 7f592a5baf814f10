//! Breakers, closed by hand: those of routes, and those of channels.

use sekisho_core::change::{ChangeSet, Committed};
use sekisho_core::job::Lane;
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

/// What a resume did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumed {
    pub channel: String,
    /// As in [`Reset`].
    pub was: String,
}

/// Closes the breaker of a route, for every node.
pub async fn reset(store: &dyn Store, route: &str, actor: &Actor<'_>) -> Result<Reset> {
    let was = close(store, &Lane::to_route(route), ("breaker.reset", "route", route), actor).await?;
    Ok(Reset { route: route.to_owned(), was })
}

/// Closes the breaker of a channel, for every node: what waits for it is sent.
pub async fn resume(store: &dyn Store, channel: &str, actor: &Actor<'_>) -> Result<Resumed> {
    let was =
        close(store, &Lane::by_channel(channel), ("channel.resumed", "channel", channel), actor).await?;
    Ok(Resumed { channel: channel.to_owned(), was })
}

/// Says how it stood. `noted` is what the log calls it: the act, the kind of thing, its name.
async fn close(
    store: &dyn Store,
    lane: &Lane,
    noted: (&str, &str, &str),
    actor: &Actor<'_>,
) -> Result<String> {
    for _ in 0..TRIES {
        let key = Key::new(Kind::Breaker, &*lane.0);
        let stored = store.load(Vec::new(), vec![key.clone()]).await?.states.remove(&key);
        let breaker = stored.as_ref().and_then(|state| serde_json::from_str::<Breaker>(&state.facts).ok());
        let breaker = breaker.unwrap_or_default();
        let was = breaker.state().to_owned();
        let Some(stored) = stored else { return Ok(was) };
        let facts = serde_json::to_string(&Breaker::default()).expect("a breaker is plain data");
        let write = Write { key, version: stored.version, facts, index: Index::default() };
        let (action, kind, name) = noted;
        let mut details = serde_json::json!({ "was": was });
        if let Some(why) = breaker.why() {
            details["why"] = why.into();
        }
        let entry = actor.entry(None, action, (kind, name), details);
        let set = ChangeSet { writes: vec![write], audit: vec![entry], ..ChangeSet::nothing(actor.at) };
        if store.commit(vec![set]).await? != [Committed::Stale] {
            return Ok(was);
        }
    }
    Err(contended())
}
