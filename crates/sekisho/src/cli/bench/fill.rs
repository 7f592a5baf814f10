//! Fills a store with what it would have after a long life: past every rule, so nothing is decided again.

use sekisho_core::change::ChangeSet;
use sekisho_store::{Result, Store};

pub async fn write_sets(store: &dyn Store, sets: Vec<ChangeSet>) -> Result<()> {
    store.commit(sets).await.map(drop)
}
