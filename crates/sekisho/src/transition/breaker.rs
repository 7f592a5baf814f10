//! Breakers, closed by hand.

use sekisho_core::change::{Act, Lane};
use sekisho_core::queue::Breaker;
use sekisho_store::{State, Store};
use serde::{Deserialize, Serialize};

use super::{Actor, Refusal, Result};
use crate::worker::BREAKER;

/// How often nodes may be faster before one gives up.
const TRIES: usize = 10;

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
        let states = store.states(BREAKER).await?;
        let stored = states.into_iter().find(|state| *state.id == *lane.0);
        let breaker = stored.as_ref().and_then(|state| serde_json::from_str::<Breaker>(&state.facts).ok());
        let reset = Reset { route: route.to_owned(), was: breaker.unwrap_or_default().state().to_owned() };
        let Some(stored) = stored else { return Ok(reset) };
        let facts = serde_json::to_string(&Breaker::default()).expect("a breaker is plain data");
        let act = Act { at: actor.at, actor: actor.name.to_owned(), reason: "reset by hand".into() };
        if store.put_state(State { facts, ..stored }, Some(act)).await? {
            return Ok(reset);
        }
    }
    Err(Refusal::Wrong(format!("the breaker of {route} changes all the time; try again")))
}
