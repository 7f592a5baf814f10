//! The leases of every job that this node has in memory, and the doubt that one of ours may be in the store alone.
//!
//! Invariant: an id is held before the store is asked to lease it to this node, and until the store has heard how it
//! ended. Whatever the store counts as ours and is not held was lost on the way, and is adopted.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use sekisho_core::Seq;
use sekisho_core::job::Lease;
use tokio::sync::Notify;

pub struct HeldJobs {
    /// By id, with the lease under which it is held: an earlier run that ends late lets go of nothing newer.
    leases: Mutex<HashMap<Seq, Lease>>,
    in_doubt: AtomicBool,
    /// Calls the dispatcher.
    wake: Arc<Notify>,
}

impl HeldJobs {
    pub fn new(wake: Arc<Notify>) -> Self {
        Self { leases: Mutex::default(), in_doubt: AtomicBool::new(false), wake }
    }

    fn leases(&self) -> MutexGuard<'_, HashMap<Seq, Lease>> {
        self.leases.lock().expect("no code panics while it holds the leases")
    }

    pub fn hold(&self, leases: impl IntoIterator<Item = Lease>) {
        self.leases().extend(leases.into_iter().map(|lease| (lease.job, lease)));
    }

    pub fn let_go(&self, leases: impl IntoIterator<Item = Lease>) {
        let mut held = self.leases();
        for lease in leases {
            if held.get(&lease.job) == Some(&lease) {
                held.remove(&lease.job);
            }
        }
    }

    pub fn holds(&self, id: Seq) -> bool {
        self.leases().contains_key(&id)
    }

    /// An answer was lost, or a run broke: something may be ours in the store only.
    pub fn doubt(&self) {
        self.in_doubt.store(true, Ordering::Relaxed);
        self.wake.notify_one();
    }

    pub fn is_in_doubt(&self) -> bool {
        self.in_doubt.load(Ordering::Relaxed)
    }

    pub fn take_doubt(&self) -> bool {
        self.in_doubt.swap(false, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use sekisho_core::Epoch;

    use super::*;

    #[test]
    fn b2_a_run_that_ends_late_lets_go_of_nothing_newer() {
        let held = HeldJobs::new(Arc::default());
        let first = Lease::born(Seq::from_i64(1), Epoch(1));
        let second = Lease { attempt: 2, ..first };
        held.hold([first]);
        held.hold([second]);
        held.let_go([first]);
        assert!(held.holds(first.job), "the second run is under way");
        held.let_go([second]);
        assert!(!held.holds(first.job));
    }
}
