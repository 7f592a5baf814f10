//! Lists of things that the store remembers, page by page.

use sekisho_core::state::State;
use sekisho_store::{StateFilter, Store};

/// So many things before one, without those that became part of another or were deleted.
pub async fn page(
    store: &dyn Store,
    filter: &StateFilter,
    mut before: Option<String>,
    limit: usize,
) -> anyhow::Result<Vec<State>> {
    let mut found = Vec::new();
    loop {
        let wanted = limit - found.len();
        let page = store.find_states(StateFilter { before, limit: wanted, ..filter.clone() }).await?;
        let is_last = page.len() < wanted;
        before = page.last().map(|state| state.key.id.clone());
        found.extend(page.into_iter().filter(State::is_shown));
        if is_last || found.len() == limit {
            return Ok(found);
        }
    }
}
