//! What can be told of a change set by itself, before anything is read: one that shows a lease twice has only one to
//! spend, and one that writes a thing twice, or gives a name to two things, contradicts itself.

use std::collections::{BTreeMap, BTreeSet};

use sekisho_core::change::{ChangeSet, Committed};
use sekisho_core::state::Naming;

/// The answer to a set that can't be written, whatever is stored.
pub fn refusal(set: &ChangeSet) -> Option<Committed> {
    let mut jobs = BTreeSet::new();
    if !set.ends.iter().all(|ended| jobs.insert(ended.lease.job)) {
        return Some(Committed::Lost);
    }
    let mut keys = BTreeSet::new();
    let mut names: BTreeMap<&str, &Naming> = BTreeMap::new();
    let agrees = set.writes.iter().all(|write| keys.insert(&write.key))
        && set.names.iter().all(|naming| **names.entry(&naming.name).or_insert(naming) == *naming);
    (!agrees).then_some(Committed::Stale)
}

/// The names a set gives, each once.
pub fn namings(set: &ChangeSet) -> impl Iterator<Item = &Naming> {
    let mut seen = BTreeSet::new();
    set.names.iter().filter(move |naming| seen.insert(&naming.name))
}
