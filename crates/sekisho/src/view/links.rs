//! Links to what was deleted are shown as null, in whatever is shown: the thing is not there any more, and who asks for
//! it is told so.

use std::collections::BTreeSet;

use sekisho_core::state::{Key, State};
use sekisho_store::{FIND_MAX, Result, Store};

use crate::types::Linked;

/// Takes out of each what leads to something deleted.
pub async fn unlink<'v, T: Linked + 'v>(
    store: &dyn Store,
    shown: impl IntoIterator<Item = &'v mut T>,
) -> Result<()> {
    let mut shown: Vec<&mut T> = shown.into_iter().collect();
    let keys: BTreeSet<Key> = shown.iter_mut().flat_map(|one| one.links()).map(|(key, _)| key).collect();
    let keys: Vec<Key> = keys.into_iter().collect();
    let mut gone = BTreeSet::new();
    for chunk in keys.chunks(FIND_MAX) {
        let states = store.load(Vec::new(), chunk.to_vec()).await?.states;
        gone.extend(states.into_values().filter(State::is_deleted).map(|state| state.key));
    }
    for one in &mut shown {
        one.links().into_iter().filter(|(key, _)| gone.contains(key)).for_each(|(_, link)| *link = None);
    }
    Ok(())
}
