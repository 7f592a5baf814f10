//! This process among others: it joins the store, beats, notices who stopped beating, and knows whether the store
//! answers. A node is dead when its beat stood still for [`DEAD_AFTER`] on *our* monotonic clock; no wall clock
//! decides.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sekisho_core::id::Sequence;
use sekisho_core::{Epoch, Seq, Time};
use sekisho_store::{Peer, Pulse, Store};
use tokio::sync::watch;

use crate::{now, told_to_stop};

const BEAT: Duration = Duration::from_secs(2);
/// While the store does not answer, it is asked this often.
const BEAT_WHILE_DOWN: Duration = Duration::from_millis(250);
const DEAD_AFTER: Duration = Duration::from_secs(10);
const SWEEP_MAX: usize = 1_000;
/// How far the newest stored id may lie ahead of the clock before it is said.
const FLOOR_AHEAD_MAX_MS: i64 = 24 * 60 * 60 * 1000;
/// Clocks further apart than this raise an alarm.
const SKEW_MAX_MS: i64 = 60_000;

/// Whether events can be stored right now, and if not, why.
#[derive(Default)]
pub struct Health {
    down: AtomicBool,
    stopping: AtomicBool,
    reason: Mutex<String>,
}

impl Health {
    pub fn reason(&self) -> Option<String> {
        if self.stopping.load(Ordering::Relaxed) {
            return Some("shutting down".into());
        }
        self.down.load(Ordering::Relaxed).then(|| self.reason.lock().expect("no code panics here").clone())
    }

    pub fn store_answered(&self) {
        if self.down.load(Ordering::Relaxed) && self.down.swap(false, Ordering::Relaxed) {
            tracing::info!("the store answers again");
        }
    }

    pub fn store_failed(&self, error: &sekisho_store::Error) {
        self.store_is_down(error.chain());
    }

    /// Nothing failed, but an event was not stored in time.
    pub fn store_is_late(&self) {
        self.store_is_down("the store does not answer in time".into());
    }

    fn store_is_down(&self, reason: String) {
        if !self.down.swap(true, Ordering::Relaxed) {
            tracing::error!(reason, "the store does not answer; webhooks get 503 until it does");
        }
        *self.reason.lock().expect("no code panics here") = reason;
    }

    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }
}

pub struct Node {
    store: Arc<dyn Store>,
    health: Arc<Health>,
    epoch: AtomicI64,
    beats: AtomicI64,
    sequence: Mutex<Sequence>,
}

impl Node {
    pub async fn join(store: Arc<dyn Store>, health: Arc<Health>) -> sekisho_store::Result<Self> {
        let joined = store.join(now()).await?;
        if joined.floor.made_at() > now().plus_ms(FLOOR_AHEAD_MAX_MS) {
            tracing::error!(newest = %joined.floor.made_at(),
                "the newest stored event lies in the future: a clock was wrong, or is; new ids go on from there");
        }
        let sequence = Mutex::new(Sequence::new(joined.epoch, joined.floor));
        Ok(Self { store, health, epoch: AtomicI64::new(joined.epoch.0), beats: AtomicI64::new(0), sequence })
    }

    /// The epoch under which work is claimed now. It changes when another node gave this one up.
    pub fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(Ordering::Acquire))
    }

    pub fn next_seq(&self, now: Time) -> Seq {
        self.sequence.lock().expect("no code panics here").next(now)
    }

    /// Beats until told to stop, then leaves.
    pub async fn run(&self, mut stop: watch::Receiver<bool>) {
        let mut observed = Observed::default();
        loop {
            let wait = if self.health.down.load(Ordering::Relaxed) { BEAT_WHILE_DOWN } else { BEAT };
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = told_to_stop(&mut stop) => break,
            }
            if let Err(error) = self.beat(&mut observed).await {
                self.health.store_failed(&error);
            } else {
                self.health.store_answered();
            }
        }
        let _ = self.store.end(self.epoch(), self.beats.load(Ordering::Relaxed)).await;
    }

    async fn beat(&self, observed: &mut Observed) -> sekisho_store::Result<()> {
        let n = self.beats.load(Ordering::Relaxed) + 1;
        let pulse = self.store.beat(self.epoch(), n).await?;
        self.beats.store(n, Ordering::Relaxed);
        let Pulse::Alive { peers, store_time } = pulse else {
            tracing::warn!("this node had been given up by another");
            return self.join_anew().await;
        };
        if let Some(skew) =
            store_time.map(|time| time.ms() - now().ms()).filter(|skew| skew.abs() > SKEW_MAX_MS)
        {
            tracing::error!(
                skew_ms = skew,
                "this machine's clock and the database's disagree: set them by NTP"
            );
        }
        for dead in observed.dead(&peers, Instant::now()) {
            if self.store.end(dead.epoch, dead.beat).await? {
                tracing::warn!(
                    epoch = dead.epoch.0,
                    "a node stopped beating and was given up; its work is freed"
                );
            }
        }
        while self.store.sweep(SWEEP_MAX).await? == SWEEP_MAX {}
        self.store.upkeep(now()).await
    }

    /// Leaves and joins again, under a new epoch. What was leased is freed for anybody: the cure when the answer to a
    /// claim was lost, and nobody knows what this node holds.
    pub async fn start_anew(&self) -> sekisho_store::Result<()> {
        // Said aloud once more, so that it is known at which beat this epoch ends: an answer may have been lost here too.
        let n = self.beats.load(Ordering::Relaxed) + 1;
        if self.store.beat(self.epoch(), n).await? != Pulse::Ended {
            self.store.end(self.epoch(), n).await?;
        }
        self.join_anew().await
    }

    async fn join_anew(&self) -> sekisho_store::Result<()> {
        let joined = self.store.join(now()).await?;
        *self.sequence.lock().expect("no code panics here") = Sequence::new(joined.epoch, joined.floor);
        self.beats.store(0, Ordering::Relaxed);
        self.epoch.store(joined.epoch.0, Ordering::Release);
        tracing::info!(epoch = joined.epoch.0, "this node joined anew");
        Ok(())
    }
}

/// When each peer's beat was last seen to move.
#[derive(Default)]
struct Observed(BTreeMap<Epoch, (i64, Instant)>);

impl Observed {
    fn dead(&mut self, peers: &[Peer], now: Instant) -> Vec<Peer> {
        self.0.retain(|epoch, _| peers.iter().any(|peer| peer.epoch == *epoch));
        let still = |peer: &&Peer| {
            let seen = self.0.entry(peer.epoch).or_insert((peer.beat, now));
            if seen.0 != peer.beat {
                *seen = (peer.beat, now);
            }
            now.duration_since(seen.1) >= DEAD_AFTER
        };
        peers.iter().filter(still).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b2_a_node_is_dead_only_after_its_beat_stood_still_before_our_eyes() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let peer = |beat| [Peer { epoch: Epoch(7), beat }];
        let mut observed = Observed::default();
        assert!(observed.dead(&peer(100), at(0)).is_empty(), "just met, however old the beat");
        assert!(observed.dead(&peer(100), at(9)).is_empty());
        assert!(observed.dead(&peer(101), at(11)).is_empty(), "it moved");
        assert!(observed.dead(&peer(101), at(20)).is_empty());
        assert_eq!(observed.dead(&peer(101), at(21)), peer(101));
        assert!(observed.dead(&[], at(22)).is_empty());
        assert!(observed.0.is_empty(), "who left is forgotten");
    }
}
