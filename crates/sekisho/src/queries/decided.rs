//! Loads what inputs speak of and asks the core what would follow, with all that turns out to be needed for that.

use sekisho_core::Time;
use sekisho_core::settlement::{Change, Input, Terms, decide, names};
use sekisho_store::{Result, Store};

/// What the inputs would change. Nothing is asked of a provider.
pub async fn decided(store: &dyn Store, inputs: &[Input], at: Time) -> Result<Vec<Change>> {
    let mut wanted = names(inputs);
    loop {
        let (names, keys) = (wanted.names.iter().cloned().collect(), wanted.keys.iter().cloned().collect());
        let loaded = store.load(names, keys).await?;
        match decide(inputs, &wanted, &loaded, &Terms::at(at)) {
            Ok(changes) => return Ok(changes),
            Err(more) => wanted.extend(more),
        }
    }
}
