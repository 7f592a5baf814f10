//! Lists of things that the store remembers, page by page.

use sekisho_core::state::State;
use sekisho_store::{StateFilter, Store};
use serde_json::Value;

use crate::view::OfMember;

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

/// The same of the directory: each with its cursor, as `view` shows it.
pub async fn members(
    store: &dyn Store,
    filter: &StateFilter,
    before: Option<String>,
    limit: usize,
    view: OfMember,
) -> anyhow::Result<Vec<(String, Value)>> {
    let found = page(store, filter, before, limit).await?;
    Ok(found
        .iter()
        .map(|state| Ok((state.key.id.clone(), view(state)?)))
        .collect::<sekisho_store::Result<_>>()?)
}
