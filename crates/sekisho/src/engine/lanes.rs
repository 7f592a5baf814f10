//! Every lane that this node works on, and what may run next in each.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use sekisho_core::Time;
use sekisho_core::job::{Lane, Lease};
use sekisho_core::queue::Breaker;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::lane::{LANE_BYTES_MAX, LanePolicy, LaneState};
use super::work::Work;

/// So long after this node changed a breaker, what the store says of it may be older.
const ON_ITS_WAY: Duration = Duration::from_secs(3);
/// Dead letters are brought back no more often, however often a destination fails and answers in turn.
const BRING_BACK_PAUSE: Duration = Duration::from_secs(10);

pub struct Lanes {
    pub names: Vec<Lane>,
    inner: Mutex<Inner>,
    /// Calls the dispatcher: there is room again.
    wake: Arc<Notify>,
}

struct Inner {
    by_name: BTreeMap<Lane, LaneState>,
    /// With the bytes of each.
    running: BTreeMap<Lease, usize>,
}

/// What a lane can do next.
#[allow(clippy::large_enum_variant, reason = "it is taken apart where it is returned")]
pub enum Next {
    Run(Work),
    /// The destination is left alone: these go back to the store.
    Release(Vec<Work>),
    Nothing,
}

impl Lanes {
    /// Lanes that are not named here are not worked on.
    pub fn new(lanes: impl IntoIterator<Item = (Lane, LanePolicy)>, wake: Arc<Notify>) -> Self {
        let by_name: BTreeMap<_, _> =
            lanes.into_iter().map(|(lane, policy)| (lane, LaneState::new(policy))).collect();
        let names = by_name.keys().cloned().collect();
        Self { names, inner: Mutex::new(Inner { by_name, running: BTreeMap::new() }), wake }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no code panics while it holds the lanes")
    }

    /// Promises room for one job of a lane, if there is any: then it may be born leased.
    pub fn reserve(&self, lane: &Lane) -> bool {
        let mut lanes = self.lock();
        let Some(lane) = lanes.by_name.get_mut(lane) else { return false };
        let room = lane.room() > 0 && !lane.breaker.is_open();
        lane.reserved += usize::from(room);
        lane.has_more |= !room;
        room
    }

    pub fn unreserve(&self, lane: &Lane) {
        if let Some(lane) = self.lock().by_name.get_mut(lane) {
            lane.reserved -= 1;
        }
    }

    /// A job for which room was promised.
    pub fn arrive(&self, work: Work) {
        if let Some(lane) = self.lock().by_name.get_mut(&work.job.lane) {
            lane.reserved -= 1;
            lane.push(work);
        }
    }

    /// A job that was claimed. Given back if this node has no such lane, or no memory for it now.
    pub fn put(&self, work: Work) -> Option<Work> {
        let mut lanes = self.lock();
        let Some(lane) = lanes.by_name.get_mut(&work.job.lane) else { return Some(work) };
        if lane.bytes >= LANE_BYTES_MAX {
            lane.has_more = true;
            return Some(work);
        }
        lane.push(work);
        None
    }

    pub fn next(&self, lane: &Lane, now: Time) -> Next {
        let mut lanes = self.lock();
        let Some(lane) = lanes.by_name.get_mut(lane) else { return Next::Nothing };
        if lane.waiting.is_empty() || lane.running >= lane.policy.concurrency {
            return Next::Nothing;
        }
        if !lane.breaker.clone().may_start(now) {
            lane.has_more = true;
            return Next::Release(lane.take_waiting());
        }
        if lane.rate.as_ref().is_some_and(|rate| !rate.allow()) {
            // The dispatcher looks again within a moment.
            return Next::Nothing;
        }
        let Some(mut work) = lane.waiting.pop_front() else { return Next::Nothing };
        // Order matters: a probe is announced only when it really starts.
        lane.breaker.may_start(now);
        work.is_probe = lane.breaker.is_open();
        lane.running += 1;
        lanes.running.insert(work.job.lease, work.bytes());
        Next::Run(work)
    }

    /// A run of this lane ended; its place is free.
    pub fn ran(&self, lane: &Lane, lease: Lease) {
        let mut lanes = self.lock();
        let bytes = lanes.running.remove(&lease).unwrap_or_default();
        let Some(lane) = lanes.by_name.get_mut(lane) else { return };
        lane.running -= 1;
        lane.bytes -= bytes;
        if lane.has_more && lane.room() >= lane.policy.concurrency {
            self.wake.notify_one();
        }
    }

    /// What to ask the store for: of every lane with room, or only of those known to have more.
    pub fn wants(&self, all: bool, now: Time) -> Vec<(Lane, usize)> {
        let mut wants = Vec::new();
        for (name, lane) in &mut self.lock().by_name {
            let wanted = lane.wanted(now).min(sekisho_store::CLAIM_MAX);
            if wanted > 0 && (all || lane.has_more) {
                wants.push((name.clone(), wanted));
                lane.has_more = false;
            }
        }
        wants
    }

    /// The store gave all that was asked for, so there may be more.
    pub fn expect_more(&self, lane: &Lane) {
        if let Some(lane) = self.lock().by_name.get_mut(lane) {
            lane.has_more = true;
        }
    }

    /// Everything that waits: it goes back to the store, or was given to another node.
    pub fn take_waiting(&self) -> Vec<Work> {
        let mut waiting = Vec::new();
        for lane in self.lock().by_name.values_mut() {
            waiting.extend(lane.take_waiting());
            lane.has_more = true;
        }
        waiting
    }

    /// What runs right now.
    pub fn running(&self) -> Vec<Lease> {
        self.lock().running.keys().copied().collect()
    }

    pub fn breaker<'l>(&'l self, lane: &'l Lane) -> LaneBreaker<'l> {
        LaneBreaker { lanes: self, lane }
    }
}

/// The breaker of one lane. A lane that this node does not work on has none, and hears nothing.
pub struct LaneBreaker<'l> {
    lanes: &'l Lanes,
    lane: &'l Lane,
}

impl LaneBreaker<'_> {
    /// Hears how a call went; the breaker as it is now, if it changed in kind.
    pub fn judge(&self, well: bool, now: Time) -> Option<Breaker> {
        let mut lanes = self.lanes.lock();
        let lane = lanes.by_name.get_mut(self.lane)?;
        let before = lane.breaker.state();
        if well {
            lane.breaker.succeeded();
        } else {
            lane.breaker.failed(&lane.policy.breaker, now);
        }
        if lane.breaker.state() == before {
            return None;
        }
        lane.judged = Some(Instant::now());
        Some(lane.breaker.clone())
    }

    /// The other side said that nothing goes before a time; the breaker as it is now, if it was not shut for that already.
    pub fn shut(&self, why: &str, until: Time, now: Time) -> Option<Breaker> {
        let mut lanes = self.lanes.lock();
        let lane = lanes.by_name.get_mut(self.lane)?;
        let was_shut = lane.breaker.why() == Some(why);
        lane.breaker.shut(why, until, now);
        lane.judged = Some(Instant::now());
        (!was_shut).then(|| lane.breaker.clone())
    }

    /// A run of this lane ended without a verdict: if it was the probe, the next may be one at once.
    pub fn unjudged(&self, now: Time) {
        if let Some(lane) = self.lanes.lock().by_name.get_mut(self.lane) {
            lane.breaker.unanswered(now);
        }
    }

    /// Takes over what another node or an operator wrote, unless our own word is on its way there.
    pub fn believe(&self, stored: Breaker) {
        // Where others failed, theirs may be among the dead letters: an answer here brings them back, too.
        if stored.is_open() {
            self.note_dead();
        }
        let differs = self.lanes.lock().by_name.get(self.lane).is_some_and(|lane| {
            let settled = lane.judged.is_none_or(|judged| judged.elapsed() > ON_ITS_WAY);
            settled && lane.breaker.is_open() != stored.is_open()
        });
        if differs {
            self.set(stored);
        }
    }

    /// The breaker as it is.
    pub fn current(&self) -> Breaker {
        self.lanes.lock().by_name.get(self.lane).map(|lane| lane.breaker.clone()).unwrap_or_default()
    }

    /// Something became a dead letter that may come back.
    pub fn note_dead(&self) {
        if let Some(lane) = self.lanes.lock().by_name.get_mut(self.lane) {
            lane.has_dead = true;
        }
    }

    /// The destination answered well: may its dead letters come back now? Says so once for all that died before.
    pub fn brings_back(&self) -> bool {
        let mut lanes = self.lanes.lock();
        let Some(lane) = lanes.by_name.get_mut(self.lane).filter(|lane| lane.has_dead) else { return false };
        if lane.brought_back.is_some_and(|at| at.elapsed() < BRING_BACK_PAUSE) {
            return false;
        }
        lane.has_dead = false;
        lane.brought_back = Some(Instant::now());
        true
    }

    pub fn set(&self, breaker: Breaker) {
        if let Some(lane) = self.lanes.lock().by_name.get_mut(self.lane) {
            lane.breaker = breaker;
            lane.has_more = true;
            self.lanes.wake.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use sekisho_core::event::Stored;
    use sekisho_core::job::{Job, Settle};
    use sekisho_core::queue::breaker::Policy;
    use sekisho_core::{Epoch, Seq};

    use super::*;

    const NOW: Time = Time::from_ms(1_780_000_000_000);

    fn lanes(concurrency: usize, rate: Option<u32>) -> (Lanes, Lane) {
        let lane = Lane::to_route("app");
        let policy = LanePolicy { concurrency, rate, breaker: Policy { failures: 3, ..Policy::default() } };
        (Lanes::new([(lane.clone(), policy)], Arc::default()), lane)
    }

    fn work(id: i64, lane: &Lane) -> Work {
        let mut job = Job::born_with(Seq::from_i64(id), Settle::Once, NOW, Epoch(1));
        job.lane = lane.clone();
        Work::claimed(job, None)
    }

    #[test]
    fn h2_a_lane_holds_no_more_bytes_than_it_may() {
        let (lanes, lane) = lanes(1_000, None);
        let event = Arc::new(Stored { body: vec![0; 1 << 20].into(), ..Stored::nothing() });
        let big = |id| Work { event: Some(Arc::clone(&event)), ..work(id, &lane) };
        let put = (0..100).take_while(|id| lanes.put(big(*id)).is_none()).count();
        assert_eq!(put, LANE_BYTES_MAX >> 20);
        assert!(!lanes.reserve(&lane));
        assert!(lanes.wants(true, NOW).iter().all(|(wanted, _)| *wanted != lane));
        let Next::Run(first) = lanes.next(&lane, NOW) else { panic!("it may run") };
        assert!(!lanes.reserve(&lane), "what runs is in memory, too");
        lanes.ran(&lane, first.job.lease);
        assert!(lanes.reserve(&lane));
        assert_eq!(lanes.take_waiting().len(), put - 1);
        assert_eq!(lanes.lock().by_name[&lane].bytes, 0);
    }

    #[test]
    fn c4_a_lane_runs_no_more_than_it_may_and_asks_in_halves() {
        let (lanes, lane) = lanes(2, None);
        assert_eq!(lanes.wants(true, NOW), [(lane.clone(), 4)]);
        assert!((1..=4).all(|id| lanes.put(work(id, &lane)).is_none()));
        assert!(!lanes.reserve(&lane), "no room for a job born leased");
        assert!(
            matches!(lanes.next(&lane, NOW), Next::Run(_)) && matches!(lanes.next(&lane, NOW), Next::Run(_))
        );
        assert!(matches!(lanes.next(&lane, NOW), Next::Nothing));
        lanes.ran(&lane, work(1, &lane).job.lease);
        assert!(lanes.wants(true, NOW).iter().all(|(wanted, _)| *wanted != lane), "half is still full");
        assert!(matches!(lanes.next(&lane, NOW), Next::Run(_)));
        lanes.ran(&lane, work(2, &lane).job.lease);
        assert_eq!(lanes.wants(true, NOW)[0], (lane, 2));
    }

    #[test]
    fn c4_an_open_breaker_gives_work_back_and_lets_one_probe_through() {
        let (lanes, lane) = lanes(2, None);
        assert!(lanes.put(work(1, &lane)).is_none());
        assert!(lanes.put(work(9, &Lane::to_route("strange"))).is_some(), "it is nobody's here");
        assert!((0..2).all(|_| lanes.breaker(&lane).judge(false, NOW).is_none()));
        assert!(lanes.breaker(&lane).judge(false, NOW).is_some_and(|breaker| breaker.is_open()));
        assert!(!lanes.reserve(&lane));
        assert!(matches!(lanes.next(&lane, NOW), Next::Release(works) if works.len() == 1));
        assert!(lanes.wants(true, NOW).iter().all(|(wanted, _)| *wanted != lane), "left alone");
        let later = NOW.plus_ms(5_000);
        assert_eq!(lanes.wants(true, later)[0], (lane.clone(), 1), "one probe");
        assert!(lanes.put(work(2, &lane)).is_none());
        assert!(matches!(lanes.next(&lane, later), Next::Run(work) if work.is_probe));
        assert!(lanes.breaker(&lane).judge(true, later).is_some_and(|breaker| !breaker.is_open()));
        lanes.ran(&lane, work(2, &lane).job.lease);
        assert_eq!(lanes.wants(true, later)[0], (lane, 4));
    }

    #[test]
    fn c2_an_answer_brings_dead_letters_back_once() {
        let (lanes, lane) = lanes(2, None);
        assert!(!lanes.breaker(&lane).brings_back(), "nothing died here");
        lanes.breaker(&lane).note_dead();
        assert!(lanes.breaker(&lane).brings_back() && !lanes.breaker(&lane).brings_back());
        lanes.breaker(&lane).note_dead();
        assert!(!lanes.breaker(&lane).brings_back(), "not so soon again");
        assert!(lanes.put(work(1, &lane)).is_none());
        assert!(matches!(lanes.next(&lane, NOW), Next::Run(work) if !work.is_probe));
    }

    #[test]
    fn c4_a_rate_makes_work_wait() {
        let (lanes, lane) = lanes(9, Some(2));
        assert!((1..=3).all(|id| lanes.put(work(id, &lane)).is_none()));
        assert!(
            matches!(lanes.next(&lane, NOW), Next::Run(_)) && matches!(lanes.next(&lane, NOW), Next::Run(_))
        );
        assert!(matches!(lanes.next(&lane, NOW), Next::Nothing));
    }
}
