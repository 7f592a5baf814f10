//! Entries of the audit log with all that their hashes are made of, so that others can check them.

use sekisho_core::Seq;
use sekisho_core::provider::encode_hex;
use sekisho_store::{AuditEntry, AuditLink};

use super::audit;
use crate::types::{ExportedEntry, SealedEntry};

/// The entries of a link, with all that its hash is made of.
pub fn exported(link: &AuditLink) -> impl Iterator<Item = ExportedEntry> {
    link.entries.iter().map(|one| ExportedEntry {
        entry: sealed(one),
        chain: link.chain,
        n: link.n,
        previous: encode_hex(&link.previous),
        hash: encode_hex(&link.hash),
    })
}

/// An entry with all that its digest is made of.
pub fn sealed(one: &AuditEntry) -> SealedEntry {
    SealedEntry {
        entry: audit(one),
        details_text: one.entry.details.clone(),
        event_number: one.entry.event.map(Seq::as_i64),
        digest: encode_hex(one.entry.digest()),
    }
}
