//! Loads what inputs speak of and asks the core what follows, with all that turns out to be needed for that.

use sekisho_core::Time;
use sekisho_core::settlement::{Change, Input, Terms, Wanted, decide, names};
use sekisho_core::state::Loaded;
use sekisho_store::{Result, Store};

/// What the inputs change, and what was known when that was decided; `besides` is loaded with it. Nothing is asked of a
/// provider.
pub async fn decided(
    store: &dyn Store,
    inputs: &[Input],
    besides: Wanted,
    at: Time,
) -> Result<(Loaded, Vec<Change>)> {
    let mut wanted = names(inputs);
    wanted.extend(besides);
    loop {
        let (names, keys) = (wanted.names.iter().cloned().collect(), wanted.keys.iter().cloned().collect());
        let loaded = store.load(names, keys).await?;
        match decide(inputs, &wanted, &loaded, &Terms::at(at)) {
            Ok(changes) => return Ok((loaded, changes)),
            Err(more) => wanted.extend(more),
        }
    }
}
