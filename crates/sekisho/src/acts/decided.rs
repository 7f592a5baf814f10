//! An act that is decided as events are: what it says is an input, joined with what is known, and everything that follows is
//! written with it.

use sekisho_core::Time;
use sekisho_core::change::ChangeSet;
use sekisho_core::settlement::follow::OrderPolicy;
use sekisho_core::settlement::{Change, Input, Terms, decide, names};
use sekisho_core::state::{Loaded, Wanted, Write};
use sekisho_store::Store;

use crate::env::Env;
use crate::refusal::{Refusal, Result};
use crate::transact::{Decision, transact_in_steps};

/// What an act makes of what was loaded.
pub enum Prepared<S, T> {
    /// Inputs that are all about one order, and what is needed to answer.
    Decide(Vec<Input>, S),
    /// It is answered without a change.
    Answer(T),
}

/// Decides an act, and again while others are faster. `answer` sees what will be written, and may add to it or refuse.
pub async fn decided<S, T>(
    store: &dyn Store,
    env: &Env,
    policy: &OrderPolicy,
    at: Time,
    wanted: Wanted,
    prepare: impl FnMut(&Loaded) -> Result<Prepared<S, T>>,
    mut answer: impl FnMut(S, &Change) -> Result<(T, Vec<Write>)>,
) -> Result<T> {
    decide_act(store, policy, at, wanted, prepare, |state, change| {
        let (answer, writes) = answer(state, &change)?;
        let mut set = change.into_set(at, || env.fresh_seq(at));
        set.writes.extend(writes);
        Ok((set, answer))
    })
    .await
}

/// The same without a trace: only what would be decided.
pub async fn foreseen<S, T>(
    store: &dyn Store,
    policy: &OrderPolicy,
    at: Time,
    wanted: Wanted,
    prepare: impl FnMut(&Loaded) -> Result<Prepared<S, T>>,
    mut answer: impl FnMut(S, &Change) -> Result<T>,
) -> Result<T> {
    decide_act(store, policy, at, wanted, prepare, |state, change| {
        Ok((ChangeSet::nothing(at), answer(state, &change)?))
    })
    .await
}

async fn decide_act<S, T>(
    store: &dyn Store,
    policy: &OrderPolicy,
    at: Time,
    mut wanted: Wanted,
    mut prepare: impl FnMut(&Loaded) -> Result<Prepared<S, T>>,
    mut finish: impl FnMut(S, Change) -> Result<(ChangeSet, T)>,
) -> Result<T> {
    let done = transact_in_steps(store, wanted.clone(), |loaded: &Loaded| -> Result<_> {
        let (inputs, state) = match prepare(loaded)? {
            Prepared::Decide(inputs, state) => (inputs, state),
            Prepared::Answer(answer) => return Ok(Decision::Write(ChangeSet::nothing(at), answer)),
        };
        let mut more = names(&inputs);
        more.names.retain(|name| !wanted.names.contains(name));
        let decided = if more.is_empty() {
            decide(&inputs, &wanted, loaded, &Terms::of(at, policy))
        } else {
            Err(more)
        };
        let change = match decided {
            Ok(changes) => changes.into_iter().next().unwrap_or_default(),
            Err(more) => {
                wanted.extend(more.clone());
                return Ok(Decision::Load(more));
            }
        };
        if let Some(refused) = change.refused {
            return Err(Refusal::Conflict(refused));
        }
        let (set, answer) = finish(state, change)?;
        Ok(Decision::Write(set, answer))
    });
    done.await.map_err(Refusal::from)
}
