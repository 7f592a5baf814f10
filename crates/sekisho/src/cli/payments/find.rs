//! Which payment is meant: by our id, or by anything that a provider or the app calls it.

use anyhow::bail;
use sekisho_core::provider;
use sekisho_core::settlement::payment::Facts;
use sekisho_core::settlement::reading::{Realm, mode, order_name};
use sekisho_core::state::{Key, Kind, State};
use sekisho_store::Store;

use crate::cli::amount::Mode;

/// Steps from a payment to the one it became part of: more would be a ring.
const STEPS_MAX: usize = 100;

pub async fn find(
    store: &dyn Store,
    called: &str,
    account: Option<&str>,
    wanted: &Mode,
) -> anyhow::Result<State> {
    let own = Key::new(Kind::Payment, called);
    let loaded = store.load(names(called, account), vec![own.clone()]).await?;
    if let Some(state) = loaded.states.get(&own) {
        return follow(store, state.clone()).await;
    }
    let found = loaded.states.into_values().filter(|state| wanted.allows(state.index.livemode));
    let found: Vec<_> = found.collect();
    match &found[..] {
        [] => bail!(
            "no payment is called {called}; `sekisho payments list` lists them{}",
            if account.is_none() {
                ". What belongs to a connected account is found with --account ID"
            } else {
                ""
            }
        ),
        [only] => follow(store, only.clone()).await,
        several => {
            let each =
                several.iter().map(|state| format!("{} ({})", state.key.id, mode(state.index.livemode)));
            let each: Vec<_> = each.collect();
            bail!(
                "{called} means {} payments: {}. Choose one by its id, or with --live or --test",
                several.len(),
                each.join(", ")
            )
        }
    }
}

/// Everything it may be known as in the store.
fn names(called: &str, account: Option<&str>) -> Vec<String> {
    let mut names = Vec::new();
    for livemode in [Some(true), Some(false), None] {
        names.push(format!("p:{}", order_name(livemode, called)));
        for provider in provider::ALL {
            let realm =
                Realm { provider: provider.about().name, account: account.map(str::to_owned), livemode };
            names.push(format!("p:{}", realm.name(called)));
        }
    }
    names
}

/// What became part of another is that other.
async fn follow(store: &dyn Store, mut state: State) -> anyhow::Result<State> {
    for _ in 0..STEPS_MAX {
        let facts: Facts = serde_json::from_str(&state.facts).unwrap_or_default();
        let Some(target) = facts.merged_into else { return Ok(state) };
        eprintln!("{} turned out to be part of {target}", state.key.id);
        let key = Key::new(Kind::Payment, target);
        let loaded = store.load(Vec::new(), vec![key.clone()]).await?;
        let Some(next) = loaded.states.get(&key) else {
            bail!("{} became part of {}, which is not there: check the store", state.key.id, key.id);
        };
        state = next.clone();
    }
    bail!("{} became part of another, which leads in a ring: check the store", state.key.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h2_a_payment_is_found_by_what_anybody_calls_it() {
        let plain = names("pi_1", None);
        for name in ["p:live/order/pi_1", "p:any/order/pi_1", "p:stripe/-/test/pi_1", "p:payjp/-/live/pi_1"] {
            assert!(plain.iter().any(|one| one == name), "{name}");
        }
        assert!(names("pi_1", Some("acct_1")).contains(&"p:stripe/acct_1/live/pi_1".to_owned()));
    }
}
