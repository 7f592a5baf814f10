//! Everything of a kind, page after page, for whoever needs all of it.

use sekisho_core::state::State;
use sekisho_store::{FIND_MAX, Result, StateFilter, Store};

/// Most things that are read for one order.
const EVERY_MAX: usize = 1_000_000;

/// Everything a filter finds, the newest first, without what became part of another or was deleted.
pub async fn all_pages(store: &dyn Store, filter: StateFilter) -> Result<Vec<State>> {
    let (mut all, mut before) = (Vec::new(), filter.before.clone());
    while all.len() < EVERY_MAX {
        let page = store.find_states(StateFilter { before, limit: FIND_MAX, ..filter.clone() }).await?;
        let is_last = page.len() < FIND_MAX;
        before = page.last().map(|last| last.key.id.clone());
        all.extend(page.into_iter().filter(State::is_shown));
        if is_last {
            break;
        }
    }
    Ok(all)
}
