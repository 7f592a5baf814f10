//! The audit log and the chain its entries hang on.

use sekisho_core::audit::{self, BEGINNING, Entry};

use super::Tables;
use crate::{AuditEntry, AuditLink};

/// One process, one writer: one chain.
const CHAIN: i64 = 1;

impl Tables {
    pub(super) fn note(&mut self, entry: Entry) {
        let number = self.audit.last().map_or(0, |last| last.number) + 1;
        self.audit.push(AuditEntry { number, entry });
    }

    /// Hangs what was noted since on one link.
    pub(super) fn link(&mut self) {
        let linked = self.links.iter().map(|link| link.entries.len()).sum();
        let entries = self.audit[linked..].to_vec();
        if entries.is_empty() {
            return;
        }
        let last = self.links.last();
        let previous = last.map_or(BEGINNING.to_vec(), |link| link.hash.clone());
        let before = previous.as_slice().try_into().expect("every hash has 32 bytes");
        let hash = audit::link(before, entries.iter().map(|entry| entry.entry.digest())).to_vec();
        let n = last.map_or(0, |link| link.n) + 1;
        self.links.push(AuditLink { chain: CHAIN, n, previous, hash, entries });
    }
}
