//! What is only noted: the audit log says that it was done, and nothing else is written.

use sekisho_core::actor::Actor;
use sekisho_core::audit::Entry;
use sekisho_core::change::ChangeSet;
use sekisho_core::state::Wanted;
use sekisho_store::Store;
use serde_json::json;

use crate::refusal::Result;
use crate::transact::transact;

/// That somebody sends a test event to a source: it is handled as a real one.
pub async fn note_test(store: &dyn Store, source: &str, kind: &str, actor: &Actor<'_>) -> Result<()> {
    note(store, &actor.entry(None, "source.tested", ("source", source), &json!({ "type": kind }))).await
}

pub(super) async fn note(store: &dyn Store, entry: &Entry) -> Result<()> {
    let noted = transact(store, Wanted::default(), |_| -> Result<_> {
        Ok((ChangeSet { audit: vec![entry.clone()], ..ChangeSet::nothing(entry.at) }, ()))
    });
    Ok(noted.await?)
}
