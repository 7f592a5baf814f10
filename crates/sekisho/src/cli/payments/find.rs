//! Which payment is meant: by our id, or by anything that a provider or the app calls it.

use anyhow::bail;
use sekisho_core::settlement::reading::mode;
use sekisho_core::state::State;
use sekisho_store::Store;

use crate::cli::amount::Mode;
use crate::transition;

pub async fn find(
    store: &dyn Store,
    called: &str,
    account: Option<&str>,
    wanted: &Mode,
) -> anyhow::Result<State> {
    let found = transition::payments_by_reference(store, called, account).await?;
    let mut found: Vec<_> = found.into_iter().filter(|state| wanted.allows(state.index.livemode)).collect();
    match &found[..] {
        [] => {
            let more = ". What belongs to a connected account is found with --account ID";
            let more = if account.is_none() { more } else { "" };
            bail!("no payment is called {called}; `sekisho payments list` lists them{more}")
        }
        [_] => Ok(found.remove(0)),
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
