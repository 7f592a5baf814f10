//! What this node has in hand: every job it holds in memory, those that wait to be settled, and each lane with its
//! room, its rate and its breaker.
//!
//! Invariant: an id is in `held` before the store is asked to lease it to this node, and until the store has heard
//! how it ended. Whatever the store counts as ours and is not held was lost on the way, and is adopted.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use sekisho_core::event::Stored;
use sekisho_core::job::{Job, Lane, Lease};
use sekisho_core::queue::Breaker;
use sekisho_core::queue::breaker::Policy;
use sekisho_core::{Seq, Time};
use tokio::sync::Notify;

use super::inbox::Inbox;
use crate::limits::Rate;

/// What the bodies of one lane may take, but for those of a last claim.
const LANE_BYTES_MAX: usize = 32 << 20;
/// So long after this node changed a breaker, what the store says of it may be older.
const ON_ITS_WAY: Duration = Duration::from_secs(3);

/// A leased job, with the event it is about.
#[derive(Clone, Debug)]
pub struct Work {
    pub job: Job,
    pub event: Option<Arc<Stored>>,
    /// When its commit was answered, if it was born leased.
    pub born: Option<Instant>,
}

impl Work {
    /// A job the store gave.
    pub fn claimed(job: Job, event: Option<Arc<Stored>>) -> Self {
        Self { job, event, born: None }
    }

    /// A job that was leased to this node when it was queued, just now.
    pub fn born(job: Job, event: Option<Arc<Stored>>) -> Self {
        Self { job, event, born: Some(Instant::now()) }
    }

    /// How long it has been ready to run, at most.
    pub fn waited(&self, now: Time) -> Duration {
        let due =
            u64::try_from(now.ms() - self.job.due_at.ms()).map_or(Duration::ZERO, Duration::from_millis);
        self.born.map_or(due, |born| born.elapsed())
    }

    pub fn bytes(&self) -> usize {
        self.event.as_ref().map_or(0, |event| event.body.len() + event.headers.len())
    }

    pub fn id(&self) -> Seq {
        self.job.lease.job
    }
}

pub struct Desk {
    hands: Mutex<Hands>,
    /// Calls the settler.
    pub to_settle: Notify,
    /// Calls the dispatcher: there is room again, or something to look after.
    pub look: Notify,
    /// Something of ours may be leased that nobody holds.
    doubt: AtomicBool,
    settles: bool,
}

#[derive(Default)]
struct Hands {
    /// By id, with the lease under which it is held: an earlier run that ends late lets go of nothing newer.
    held: HashMap<Seq, Lease>,
    /// With the bytes of each.
    running: HashMap<Lease, usize>,
    inbox: Inbox,
    lanes: HashMap<Lane, LaneState>,
}

/// How a lane may be used.
#[derive(Clone, Debug)]
pub struct LanePolicy {
    pub concurrency: usize,
    pub rate: Option<u32>,
    pub breaker: Policy,
}

struct LaneState {
    policy: LanePolicy,
    running: usize,
    /// Promised to jobs that are being queued.
    reserved: usize,
    waiting: VecDeque<Work>,
    /// Of the events of those that run and wait.
    bytes: usize,
    rate: Option<Rate>,
    breaker: Breaker,
    /// When this node last changed it in kind.
    judged: Option<Instant>,
    /// The store holds more than fitted.
    has_more: bool,
}

/// What a lane can do next.
pub enum Next {
    Run(Work),
    /// The destination is left alone: these go back to the store.
    Release(Vec<Work>),
    Nothing,
}

impl LaneState {
    fn new(policy: LanePolicy) -> Self {
        let rate = policy.rate.map(Rate::per_second);
        let (waiting, breaker) = (VecDeque::new(), Breaker::default());
        Self {
            policy,
            running: 0,
            reserved: 0,
            waiting,
            bytes: 0,
            rate,
            breaker,
            judged: None,
            has_more: true,
        }
    }

    /// Running, and as many again ready to run, as far as memory allows.
    fn room(&self) -> usize {
        if self.bytes >= LANE_BYTES_MAX {
            return 0;
        }
        (2 * self.policy.concurrency).saturating_sub(self.running + self.reserved + self.waiting.len())
    }

    /// Asked for in halves, so that not every job that ends costs a question.
    fn wanted(&self, now: Time) -> usize {
        if self.breaker.is_open() {
            let idle = self.running + self.reserved + self.waiting.len() == 0;
            return usize::from(idle && self.breaker.clone().may_start(now));
        }
        if self.room() >= self.policy.concurrency { self.room() } else { 0 }
    }

    fn push(&mut self, work: Work) {
        self.bytes += work.bytes();
        self.waiting.push_back(work);
    }

    fn take_waiting(&mut self) -> Vec<Work> {
        self.bytes -= self.waiting.iter().map(Work::bytes).sum::<usize>();
        self.waiting.drain(..).collect()
    }
}

impl Desk {
    /// `settles`: this node settles events; `keeps_order`: in the order in which they came. Lanes that are not named here
    /// are not worked on.
    pub fn new(
        settles: bool,
        keeps_order: bool,
        lanes: impl IntoIterator<Item = (Lane, LanePolicy)>,
    ) -> Self {
        let lanes = lanes.into_iter().map(|(lane, policy)| (lane, LaneState::new(policy))).collect();
        let hands = Hands { lanes, inbox: Inbox::new(keeps_order), ..Hands::default() };
        Self {
            hands: Mutex::new(hands),
            to_settle: Notify::new(),
            look: Notify::new(),
            doubt: AtomicBool::new(false),
            settles,
        }
    }

    fn hands(&self) -> MutexGuard<'_, Hands> {
        self.hands.lock().expect("no code panics while it holds the hands")
    }

    // --- held ------------------------------------------------------------------------------------------------

    pub fn hold(&self, leases: impl IntoIterator<Item = Lease>) {
        self.hands().held.extend(leases.into_iter().map(|lease| (lease.job, lease)));
    }

    pub fn let_go(&self, leases: impl IntoIterator<Item = Lease>) {
        let mut hands = self.hands();
        for lease in leases {
            if hands.held.get(&lease.job) == Some(&lease) {
                hands.held.remove(&lease.job);
            }
        }
    }

    pub fn holds(&self, id: Seq) -> bool {
        self.hands().held.contains_key(&id)
    }

    /// An answer was lost, or a run broke: something may be ours in the store only.
    pub fn doubt(&self) {
        self.doubt.store(true, Ordering::Relaxed);
        self.look.notify_one();
    }

    /// The same, and it may be something that was to be settled: newer ones wait.
    pub fn doubt_settling(&self) {
        self.hands().inbox.doubt(true);
        self.doubt();
    }

    pub fn take_doubt(&self) -> bool {
        self.doubt.swap(false, Ordering::Relaxed)
    }

    /// Everything that was ours in the store alone is in hand, unless another doubt came up meanwhile.
    pub fn adopted(&self) {
        let mut hands = self.hands();
        hands.inbox.doubt(self.doubt.load(Ordering::Relaxed));
        drop(hands);
        self.to_settle.notify_one();
    }

    /// Forgets everything that waits: another node has been given it.
    pub fn clear(&self) {
        let mut hands = self.hands();
        let mut gone: Vec<Seq> = hands.inbox.clear().iter().map(Work::id).collect();
        for lane in hands.lanes.values_mut() {
            gone.extend(lane.take_waiting().iter().map(Work::id));
            lane.has_more = true;
        }
        gone.iter().for_each(|id| {
            hands.held.remove(id);
        });
    }

    /// Everything that waits, to be handed back.
    pub fn take_waiting(&self) -> Vec<Work> {
        let mut hands = self.hands();
        let mut waiting = hands.inbox.clear();
        for lane in hands.lanes.values_mut() {
            waiting.extend(lane.take_waiting());
        }
        waiting
    }

    /// What runs right now.
    pub fn running(&self) -> Vec<Lease> {
        self.hands().running.keys().copied().collect()
    }

    // --- settling --------------------------------------------------------------------------------------------

    /// Whether so many new events can be settled from memory.
    pub fn has_settle_room(&self, events: usize, bytes: usize) -> bool {
        self.settles && self.hands().inbox.has_room(events, bytes)
    }

    /// A batch of new events that begins with this one sets out for the store.
    pub fn set_out(&self, oldest: Seq) {
        self.hands().inbox.set_out(oldest);
    }

    /// It is stored and handed on, or its senders were told that it is not.
    pub fn arrived(&self, oldest: Seq) {
        self.hands().inbox.arrive(oldest);
        self.to_settle.notify_one();
    }

    /// Sets room aside for new events, while they are on their way into the store.
    pub fn reserve_settle_room(&self, events: usize, bytes: usize) -> bool {
        self.settles && self.hands().inbox.reserve(events, bytes)
    }

    pub fn give_back_settle_room(&self, events: usize, bytes: usize) {
        self.hands().inbox.give_back(events, bytes);
    }

    pub fn settle(&self, works: impl IntoIterator<Item = Work>) {
        let mut hands = self.hands();
        works.into_iter().for_each(|work| hands.inbox.put(work));
        drop(hands);
        self.to_settle.notify_one();
    }

    /// New events that are to be settled went into the store and were not kept.
    pub fn leave(&self, oldest: Seq) {
        let mut hands = self.hands();
        hands.inbox.leave(oldest);
        if self.settles && hands.inbox.is_hungry() {
            self.look.notify_one();
        }
    }

    pub fn take_settle(&self, most: usize) -> Vec<Work> {
        let mut hands = self.hands();
        let taken = hands.inbox.take(most);
        if hands.inbox.has_more && hands.inbox.is_hungry() {
            self.look.notify_one();
        }
        taken
    }

    /// What the store had to be settled is in hand: all of it, or what is not newer than this.
    pub fn answered(&self, newest: Option<Seq>, is_all: bool) {
        self.hands().inbox.answered(newest, is_all);
        self.to_settle.notify_one();
    }

    // --- lanes -----------------------------------------------------------------------------------------------

    /// Promises room for one job of a lane, if there is any: then it may be born leased.
    pub fn reserve(&self, lane: &Lane) -> bool {
        let mut hands = self.hands();
        let Some(lane) = hands.lanes.get_mut(lane) else { return false };
        let room = lane.room() > 0 && !lane.breaker.is_open();
        lane.reserved += usize::from(room);
        lane.has_more |= !room;
        room
    }

    pub fn unreserve(&self, lane: &Lane) {
        if let Some(lane) = self.hands().lanes.get_mut(lane) {
            lane.reserved -= 1;
        }
    }

    /// A job for which room was promised.
    pub fn arrive(&self, work: Work) {
        if let Some(lane) = self.hands().lanes.get_mut(&work.job.lane) {
            lane.reserved -= 1;
            lane.push(work);
        }
    }

    /// A job that was claimed. Given back if this node has no such lane, or no memory for it now.
    pub fn put(&self, work: Work) -> Option<Work> {
        let mut hands = self.hands();
        let Some(lane) = hands.lanes.get_mut(&work.job.lane) else { return Some(work) };
        if lane.bytes >= LANE_BYTES_MAX {
            lane.has_more = true;
            return Some(work);
        }
        lane.push(work);
        None
    }

    pub fn next(&self, lane: &Lane, now: Time) -> Next {
        let mut hands = self.hands();
        let Some(lane) = hands.lanes.get_mut(lane) else { return Next::Nothing };
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
        let Some(work) = lane.waiting.pop_front() else { return Next::Nothing };
        // Order matters: a probe is announced only when it really starts.
        lane.breaker.may_start(now);
        lane.running += 1;
        hands.running.insert(work.job.lease, work.bytes());
        Next::Run(work)
    }

    /// A run of this lane ended; its place is free.
    pub fn ran(&self, lane: &Lane, lease: Lease) {
        let mut hands = self.hands();
        let bytes = hands.running.remove(&lease).unwrap_or_default();
        let Some(lane) = hands.lanes.get_mut(lane) else { return };
        lane.running -= 1;
        lane.bytes -= bytes;
        if lane.has_more && lane.room() >= lane.policy.concurrency {
            self.look.notify_one();
        }
    }

    /// What to ask the store for: of every lane with room, or only of those known to have more.
    pub fn wants(&self, all: bool, now: Time) -> Vec<(Lane, usize)> {
        let mut hands = self.hands();
        let mut wants = Vec::new();
        if self.settles {
            wants.extend(hands.inbox.ask(all).map(|wanted| (Lane::settle(), wanted)));
        }
        for (name, lane) in &mut hands.lanes {
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
        let mut hands = self.hands();
        if *lane == Lane::settle() {
            hands.inbox.has_more = true;
        } else if let Some(lane) = hands.lanes.get_mut(lane) {
            lane.has_more = true;
        }
    }

    pub fn lanes(&self) -> Vec<Lane> {
        self.hands().lanes.keys().cloned().collect()
    }

    // --- breakers --------------------------------------------------------------------------------------------

    /// Tells a lane's breaker how a call went; the breaker as it is now, if it changed in kind.
    pub fn judge(&self, lane: &Lane, well: bool, now: Time) -> Option<Breaker> {
        let mut hands = self.hands();
        let lane = hands.lanes.get_mut(lane)?;
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
    pub fn shut(&self, lane: &Lane, why: &str, until: Time, now: Time) -> Option<Breaker> {
        let mut hands = self.hands();
        let lane = hands.lanes.get_mut(lane)?;
        let was_shut = lane.breaker.why() == Some(why);
        lane.breaker.shut(why, until, now);
        lane.judged = Some(Instant::now());
        (!was_shut).then(|| lane.breaker.clone())
    }

    /// A run of this lane ended without a verdict: if it was the probe, the next may be one at once.
    pub fn unjudged(&self, lane: &Lane, now: Time) {
        if let Some(lane) = self.hands().lanes.get_mut(lane) {
            lane.breaker.unanswered(now);
        }
    }

    /// Takes over what another node or an operator wrote, unless our own word is on its way there.
    pub fn believe(&self, lane: &Lane, stored: Breaker) {
        let differs = self.hands().lanes.get(lane).is_some_and(|lane| {
            let settled = lane.judged.is_none_or(|judged| judged.elapsed() > ON_ITS_WAY);
            settled && lane.breaker.is_open() != stored.is_open()
        });
        if differs {
            self.set_breaker(lane, stored);
        }
    }

    pub fn set_breaker(&self, lane: &Lane, breaker: Breaker) {
        if let Some(lane) = self.hands().lanes.get_mut(lane) {
            lane.breaker = breaker;
            lane.has_more = true;
            self.look.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use sekisho_core::Epoch;

    use super::*;

    const NOW: Time = Time::from_ms(1_780_000_000_000);

    fn desk(concurrency: usize, rate: Option<u32>) -> (Desk, Lane) {
        let lane = Lane::to_route("app");
        let policy = LanePolicy { concurrency, rate, breaker: Policy { failures: 3, ..Policy::default() } };
        (Desk::new(true, false, [(lane.clone(), policy)]), lane)
    }

    fn work(id: i64, lane: &Lane) -> Work {
        let mut job = Job::born_with(Seq::from_i64(id), NOW, Epoch(1));
        job.lane = lane.clone();
        Work::claimed(job, None)
    }

    #[test]
    fn h2_a_lane_holds_no_more_bytes_than_it_may() {
        let (desk, lane) = desk(1_000, None);
        let event = Arc::new(Stored { body: vec![0; 1 << 20].into(), ..Stored::nothing() });
        let big = |id| Work { event: Some(Arc::clone(&event)), ..work(id, &lane) };
        let put = (0..100).take_while(|id| desk.put(big(*id)).is_none()).count();
        assert_eq!(put, LANE_BYTES_MAX >> 20);
        assert!(!desk.reserve(&lane));
        assert!(desk.wants(true, NOW).iter().all(|(wanted, _)| *wanted != lane));
        let Next::Run(first) = desk.next(&lane, NOW) else { panic!("it may run") };
        assert!(!desk.reserve(&lane), "what runs is in memory, too");
        desk.ran(&lane, first.job.lease);
        assert!(desk.reserve(&lane));
        assert_eq!(desk.take_waiting().len(), put - 1);
        assert_eq!(desk.hands().lanes[&lane].bytes, 0);
    }

    #[test]
    fn c4_a_lane_runs_no_more_than_it_may_and_asks_in_halves() {
        let (desk, lane) = desk(2, None);
        assert_eq!(desk.wants(true, NOW), [(Lane::settle(), 1000), (lane.clone(), 4)]);
        assert!((1..=4).all(|id| desk.put(work(id, &lane)).is_none()));
        assert!(!desk.reserve(&lane), "no room for a job born leased");
        assert!(
            matches!(desk.next(&lane, NOW), Next::Run(_)) && matches!(desk.next(&lane, NOW), Next::Run(_))
        );
        assert!(matches!(desk.next(&lane, NOW), Next::Nothing));
        desk.ran(&lane, work(1, &lane).job.lease);
        assert!(desk.wants(true, NOW).iter().all(|(wanted, _)| *wanted != lane), "half is still full");
        assert!(matches!(desk.next(&lane, NOW), Next::Run(_)));
        desk.ran(&lane, work(2, &lane).job.lease);
        assert_eq!(desk.wants(true, NOW)[1], (lane, 2));
    }

    #[test]
    fn c4_an_open_breaker_gives_work_back_and_lets_one_probe_through() {
        let (desk, lane) = desk(2, None);
        assert!(desk.put(work(1, &lane)).is_none());
        assert!(desk.put(work(9, &Lane::to_route("strange"))).is_some(), "it is nobody's here");
        assert!((0..2).all(|_| desk.judge(&lane, false, NOW).is_none()));
        assert!(desk.judge(&lane, false, NOW).is_some_and(|breaker| breaker.is_open()));
        assert!(!desk.reserve(&lane));
        assert!(matches!(desk.next(&lane, NOW), Next::Release(works) if works.len() == 1));
        assert!(desk.wants(true, NOW).iter().all(|(wanted, _)| *wanted != lane), "left alone");
        let later = NOW.plus_ms(5_000);
        assert_eq!(desk.wants(true, later)[1], (lane.clone(), 1), "one probe");
        assert!(desk.put(work(2, &lane)).is_none());
        assert!(matches!(desk.next(&lane, later), Next::Run(_)));
        assert!(desk.judge(&lane, true, later).is_some_and(|breaker| !breaker.is_open()));
        desk.ran(&lane, work(2, &lane).job.lease);
        assert_eq!(desk.wants(true, later)[1], (lane, 4));
    }

    #[test]
    fn b2_a_run_that_ends_late_lets_go_of_nothing_newer() {
        let (desk, lane) = desk(1, None);
        let first = work(1, &lane).job.lease;
        let second = Lease { attempt: 2, ..first };
        desk.hold([first]);
        desk.hold([second]);
        desk.let_go([first]);
        assert!(desk.holds(first.job), "the second run is under way");
        desk.let_go([second]);
        assert!(!desk.holds(first.job));
    }

    #[test]
    fn c4_a_rate_makes_work_wait() {
        let (desk, lane) = desk(9, Some(2));
        assert!((1..=3).all(|id| desk.put(work(id, &lane)).is_none()));
        assert!(
            matches!(desk.next(&lane, NOW), Next::Run(_)) && matches!(desk.next(&lane, NOW), Next::Run(_))
        );
        assert!(matches!(desk.next(&lane, NOW), Next::Nothing));
    }
}
