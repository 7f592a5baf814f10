//! Which payment is meant: by our id, or by anything that a provider or the app calls it.

use anyhow::bail;
use sekisho_core::settlement::reading::mode;
use sekisho_core::state::State;
use sekisho_store::Store;

use crate::acts;
use crate::cli::amount::Mode;

pub async fn find(
    store: &dyn Store,
    called: &str,
    account: Option<&str>,
    wanted: &Mode,
) -> anyhow::Result<State> {
    let mut found = acts::payments_by_reference(store, called, account).await?;
    let each = found.iter().map(|state| (state.key.id.clone(), state.index.livemode));
    let id = choose(each, called, account, wanted)?;
    found.retain(|state| state.key.id == id);
    Ok(found.remove(0))
}

/// The one of these, by id and mode, that can be meant.
pub fn choose(
    found: impl Iterator<Item = (String, Option<bool>)>,
    called: &str,
    account: Option<&str>,
    wanted: &Mode,
) -> anyhow::Result<String> {
    let mut found: Vec<_> = found.filter(|(_, livemode)| wanted.allows(*livemode)).collect();
    match &found[..] {
        [] => {
            let more = ". An order of a connected account is found with --account ID";
            let more = if account.is_none() { more } else { "" };
            bail!("no payment is called {called}; `sekisho payments list` lists them{more}")
        }
        [_] => Ok(found.remove(0).0),
        several => {
            let each: Vec<_> =
                several.iter().map(|(id, livemode)| format!("{id} ({})", mode(*livemode))).collect();
            bail!(
                "{called} means {} payments: {}. Choose one by its id, or with --live or --test",
                several.len(),
                each.join(", ")
            )
        }
    }
}
