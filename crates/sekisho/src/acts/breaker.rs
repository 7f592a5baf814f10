//! Breakers, closed by hand: those of routes, and those of channels.

use sekisho_core::actor::Actor;
use sekisho_core::change::ChangeSet;
use sekisho_core::job::Lane;
use sekisho_core::queue::Breaker;
use sekisho_core::state::{Key, Kind, Wanted, Write};
use sekisho_store::Store;
use serde_json::json;

use crate::refusal::{Refusal, Result};
use crate::transact::transact;
use crate::types::{Reset, Resumed};

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
    let key = Key::new(Kind::Breaker, &*lane.0);
    let closed = transact(store, Wanted::keys([key.clone()]), |loaded| -> Result<_> {
        // One that can't be read is closed like any other.
        let breaker = loaded.read::<Breaker>(&key).ok().flatten().map(|kept| kept.value).unwrap_or_default();
        let was = breaker.state().to_owned();
        let mut set = ChangeSet::nothing(actor.at);
        if loaded.states.contains_key(&key) {
            let (action, kind, name) = noted;
            let details = match breaker.why() {
                Some(why) => json!({ "was": was, "why": why }),
                None => json!({ "was": was }),
            };
            set.writes.push(Write::of(&key, loaded.version(&key), &Breaker::default()));
            set.audit.push(actor.entry(None, action, (kind, name), &details));
        }
        Ok((set, was))
    });
    closed.await.map_err(Refusal::from)
}
