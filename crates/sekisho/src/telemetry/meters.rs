//! What this process counted since it was last asked: a few atomic numbers on the hot path, taken out by whoever writes
//! them down.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use sekisho_core::job::Lane;
use sekisho_core::meter::{EDGES_MS, LaneMeter, LatencyCounts, Meter, MeterTally, SourceMeter};

#[derive(Default)]
pub struct Meters {
    stored: AtomicU64,
    unstored: AtomicU64,
    sources: RwLock<BTreeMap<String, Arc<SourceCounts>>>,
    lanes: RwLock<BTreeMap<Lane, Arc<LaneCounts>>>,
    mail: Mutex<BTreeMap<String, MeterTally>>,
    settled: Latencies,
    delivered: Latencies,
}

/// Requests at one source, looked up once.
#[derive(Default)]
pub struct SourceCounts {
    pub accepted: AtomicU64,
    pub refused: AtomicU64,
    pub wrong_signature: AtomicU64,
}

#[derive(Default)]
struct LaneCounts {
    good: AtomicU64,
    failed: AtomicU64,
    retries: AtomicU64,
    dead: AtomicU64,
}

/// How one run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeteredRun {
    pub is_good: bool,
    pub is_dead: bool,
    /// Not a first try.
    pub is_retry: bool,
}

struct Latencies([AtomicU64; EDGES_MS.len() + 1]);

impl Default for Latencies {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Latencies {
    fn take(&self) -> LatencyCounts {
        let mut counts = LatencyCounts::default();
        for (bucket, times) in self.0.iter().enumerate() {
            let times = times.swap(0, Ordering::Relaxed);
            if times > 0 {
                counts.count(bucket, times);
            }
        }
        counts
    }
}

fn add(counter: &AtomicU64, is_so: bool) {
    counter.fetch_add(u64::from(is_so), Ordering::Relaxed);
}

fn take(counter: &AtomicU64) -> u64 {
    counter.swap(0, Ordering::Relaxed)
}

impl Meters {
    /// An event was stored or known.
    pub fn stored(&self) {
        add(&self.stored, true);
    }

    /// A request was answered 503 for want of the store, or of room.
    pub fn unstored(&self) {
        add(&self.unstored, true);
    }

    pub fn source(&self, name: &str) -> Arc<SourceCounts> {
        let mut sources = self.sources.write().expect("no code panics here");
        Arc::clone(sources.entry(name.to_owned()).or_default())
    }

    pub fn ran(&self, lane: &Lane, end: MeteredRun) {
        let known = self.lanes.read().expect("no code panics here").get(lane).cloned();
        let counts = known.unwrap_or_else(|| {
            let mut lanes = self.lanes.write().expect("no code panics here");
            Arc::clone(lanes.entry(lane.clone()).or_default())
        });
        add(&counts.good, end.is_good);
        add(&counts.failed, !end.is_good);
        add(&counts.retries, end.is_retry);
        add(&counts.dead, end.is_dead);
    }

    pub fn mailed(&self, channel: &str, is_good: bool) {
        let one = MeterTally {
            good: u64::from(is_good),
            bad: u64::from(!is_good),
            bad_in_a_row: u64::from(!is_good),
        };
        let mut mail = self.mail.lock().expect("no code panics here");
        let own = mail.entry(channel.to_owned()).or_default();
        *own = own.then(one);
    }

    pub fn settled(&self, ms: i64) {
        add(&self.settled.0[LatencyCounts::bucket(ms)], true);
    }

    pub fn delivered(&self, ms: i64) {
        add(&self.delivered.0[LatencyCounts::bucket(ms)], true);
    }

    /// What was counted since the last time.
    pub fn take(&self) -> Meter {
        let published = MeterTally { good: take(&self.stored), bad: take(&self.unstored), bad_in_a_row: 0 };
        let sources = self.sources.read().expect("no code panics here");
        let sources = sources.iter().map(|(name, counts)| {
            let meter = SourceMeter {
                accepted: take(&counts.accepted),
                refused: take(&counts.refused),
                wrong_signature: take(&counts.wrong_signature),
            };
            (name.clone(), meter)
        });
        let lanes = self.lanes.read().expect("no code panics here");
        let lanes = lanes.iter().map(|(lane, counts)| {
            let meter = LaneMeter {
                good: take(&counts.good),
                failed: take(&counts.failed),
                retries: take(&counts.retries),
                dead: take(&counts.dead),
            };
            (lane.0.to_string(), meter)
        });
        Meter {
            published,
            sources: sources.filter(|(_, meter)| *meter != SourceMeter::default()).collect(),
            lanes: lanes.filter(|(_, meter)| *meter != LaneMeter::default()).collect(),
            mail: std::mem::take(&mut *self.mail.lock().expect("no code panics here")),
            settled: self.settled.take(),
            delivered: self.delivered.take(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h3_what_was_counted_is_taken_once() {
        let meters = Meters::default();
        let stripe = meters.source("stripe");
        add(&stripe.refused, true);
        meters.stored();
        meters.unstored();
        let failed = MeteredRun { is_good: false, is_dead: true, is_retry: true };
        meters.ran(&Lane::to_route("app"), failed);
        meters.mailed("mail", false);
        meters.delivered(10_001);
        let taken = meters.take();
        assert_eq!((taken.published.all(), taken.source("stripe").refused), (2, 1));
        assert_eq!(taken.lane("to:app"), LaneMeter { good: 0, failed: 1, retries: 1, dead: 1 });
        assert_eq!((taken.mail["mail"].bad_in_a_row, taken.delivered.above(10_000)), (1, 1));
        assert!(meters.take().is_empty());
        add(&meters.source("stripe").refused, true);
        assert_eq!(meters.take().source("stripe").refused, 1, "the same counters go on");
    }
}
