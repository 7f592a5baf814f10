//! How tasks are told to stop: a flag, and those who wait for it.
//!
//! Not `tokio::sync::watch`: it spreads its waiters by chance, and then the order in which tasks wake differs from run to
//! run. Here they are spread too, since every connection waits, but in turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Lists of waiters, so that connections on many cores do not queue for one lock.
const LISTS: usize = 8;

/// Tells all who hold a [`Stop`] of it. Dropped, it tells them too: nobody is left who could.
#[derive(Default)]
pub struct Stopper(Arc<Signal>);

/// Hears of it.
pub struct Stop {
    signal: Arc<Signal>,
    list: usize,
}

#[derive(Default)]
struct Signal {
    is_told: AtomicBool,
    lists: [Notify; LISTS],
    next: AtomicUsize,
}

impl Stopper {
    pub fn listen(&self) -> Stop {
        Stop::of(&self.0)
    }

    pub fn stop(&self) {
        self.0.is_told.store(true, Ordering::Release);
        self.0.lists.iter().for_each(Notify::notify_waiters);
    }

    pub fn is_told(&self) -> bool {
        self.0.is_told.load(Ordering::Acquire)
    }
}

impl Drop for Stopper {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Stop {
    fn of(signal: &Arc<Signal>) -> Self {
        let list = signal.next.fetch_add(1, Ordering::Relaxed) % LISTS;
        Self { signal: Arc::clone(signal), list }
    }

    /// For work that nobody stops.
    pub fn never() -> Self {
        Self::of(&Arc::default())
    }

    pub fn is_told(&self) -> bool {
        self.signal.is_told.load(Ordering::Acquire)
    }

    /// Waits until it is told.
    pub async fn told(&self) {
        // Order matters: what is told from here on is heard, so the flag is asked after it.
        let told = self.signal.lists[self.list].notified();
        if !self.is_told() {
            told.await;
        }
    }
}

impl Clone for Stop {
    fn clone(&self) -> Self {
        Self::of(&self.signal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn h5_all_who_wait_are_told_once_and_for_all() {
        let stopper = Stopper::default();
        let waiting: Vec<_> = (0..3 * LISTS).map(|_| stopper.listen()).collect();
        let early = waiting[0].clone();
        let early = tokio::spawn(async move { early.told().await });
        tokio::task::yield_now().await;
        assert!(!early.is_finished() && !stopper.is_told());
        stopper.stop();
        early.await.unwrap();
        for stop in &waiting {
            stop.told().await;
        }
        assert!(waiting.iter().all(Stop::is_told));
    }

    #[tokio::test]
    async fn h5_who_can_not_be_told_any_more_stops() {
        let stopper = Stopper::default();
        let stop = stopper.listen();
        drop(stopper);
        stop.told().await;
        assert!(!Stop::never().is_told());
    }
}
