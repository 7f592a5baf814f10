//! Entries of the audit log with all that their hashes are made of, so that others can check them.

use sekisho_core::provider::encode_hex;
use sekisho_store::{AuditEntry, Link};
use serde_json::{Value, json};

use super::audit;

/// The entries of a link, with all that its hash is made of.
pub fn exported(link: &Link) -> impl Iterator<Item = Value> {
    link.entries.iter().map(|one| {
        let mut shown = sealed(one);
        shown["chain"] = json!(link.chain);
        shown["n"] = json!(link.n);
        shown["previous"] = json!(encode_hex(&link.previous));
        shown["hash"] = json!(encode_hex(&link.hash));
        shown
    })
}

/// An entry with all that its digest is made of.
pub fn sealed(one: &AuditEntry) -> Value {
    let AuditEntry { entry, .. } = one;
    let mut shown = audit(one);
    // Hashed as they are kept, to the letter.
    shown["details_text"] = json!(entry.details);
    shown["event_number"] = json!(entry.event.map(sekisho_core::Seq::as_i64));
    shown["digest"] = json!(encode_hex(entry.digest()));
    shown
}
