//! This process among others: it joins the store, beats, notices who stopped beating, and knows whether the store
//! answers. A node is dead when its beat stood still for [`Timing::dead_after`] on *our* monotonic clock; no wall clock
//! decides.

mod clock;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sekisho_core::id::Sequence;
use sekisho_core::queue::SUSPECT_AFTER;
use sekisho_core::{Epoch, Seq, Time};
use sekisho_store::{PeerNode, Pulse, Store};
use tokio::time::Instant;

use crate::env::{Env, Timing};
use crate::stop::{Stop, Stopper};
use crate::telemetry;
use clock::{Clock, Moment, SKEW_MAX_MS};

const SWEEP_MAX: usize = 1_000;
/// How far the newest stored id may lie ahead of the clock before it is said.
const FLOOR_AHEAD_MAX_MS: i64 = 24 * 60 * 60 * 1000;
/// After so long without anything stored, a start lets go of nothing.
const IDLE_MAX_MS: i64 = 30 * 24 * 60 * 60 * 1000;

/// Whether events can be stored right now, and if not, why.
#[derive(Default)]
pub struct Health {
    down: AtomicBool,
    clock_in_doubt: AtomicBool,
    stopping: Stopper,
    reason: Mutex<String>,
}

/// Why events can't be stored right now.
#[derive(Debug, PartialEq, Eq)]
pub struct Unready {
    /// A word for everybody.
    pub reason: &'static str,
    /// What is known of it, which may be the database's own words: for operators.
    pub detail: String,
}

impl Health {
    pub fn unready(&self) -> Option<Unready> {
        let because = |reason, detail: &str| Some(Unready { reason, detail: detail.to_owned() });
        if self.stopping.is_told() {
            return because("shutting_down", "shutting down");
        }
        if self.clock_in_doubt.load(Ordering::Relaxed) {
            return because(
                "clock_in_doubt",
                "the clock jumped or disagrees with the database's; timers are held",
            );
        }
        let is_down = self.down.load(Ordering::Relaxed);
        is_down
            .then(|| self.reason.lock().expect("no code panics here").clone())
            .map(|detail| Unready { reason: "store_unavailable", detail })
    }

    /// Notes whether the clock is believed; says whether it was.
    fn clock_is_sure(&self, sure: bool) -> bool {
        !self.clock_in_doubt.swap(!sure, Ordering::Relaxed)
    }

    pub fn store_answered(&self) {
        if self.down.load(Ordering::Relaxed) && self.down.swap(false, Ordering::Relaxed) {
            tracing::info!("the database responds again");
        }
    }

    pub fn store_failed(&self, error: &sekisho_store::Error) {
        self.store_is_down(error.chain());
    }

    /// Nothing failed, but an event was not stored in time.
    pub fn store_is_late(&self) {
        self.store_is_down("the database does not respond in time".into());
    }

    fn store_is_down(&self, reason: String) {
        if !self.down.swap(true, Ordering::Relaxed) {
            tracing::error!(
                error_type = "store_unavailable",
                reason,
                "the database does not respond; webhooks get 503 until it does"
            );
        }
        *self.reason.lock().expect("no code panics here") = reason;
    }

    pub fn stop(&self) {
        self.stopping.stop();
    }

    /// Waits until the process is told to stop.
    pub async fn stopped(&self) {
        self.stopping.listen().told().await;
    }
}

pub struct Node {
    pub env: Env,
    store: Arc<dyn Store>,
    health: Arc<Health>,
    epoch: AtomicI64,
    beats: AtomicI64,
    sequence: Mutex<Sequence>,
    /// When a beat last reached the store.
    beaten: Mutex<Instant>,
    clock: Mutex<Clock>,
    born: Instant,
    clock_is_sure: AtomicBool,
    /// At the start the clock seemed right.
    may_forget: bool,
}

impl Node {
    pub async fn join(store: Arc<dyn Store>, health: Arc<Health>, env: Env) -> sekisho_store::Result<Self> {
        let joined = store.join(env.wall()).await?;
        telemetry::set_node(joined.epoch);
        if joined.floor.made_at() > env.wall().plus_ms(FLOOR_AHEAD_MAX_MS) {
            tracing::error!(error_type = "clock_in_doubt", newest = %joined.floor.made_at(),
                "the newest stored event is in the future: a clock is or was wrong; new ids continue from there");
        }
        // What an earlier life of this process had in hand is freed before anything new begins.
        while store.sweep(SWEEP_MAX, SUSPECT_AFTER).await? == SWEEP_MAX {}
        let known = Moment::now(&env);
        let mut node = Self {
            env,
            store,
            health,
            epoch: AtomicI64::new(joined.epoch.0),
            beats: AtomicI64::new(0),
            sequence: Mutex::new(Sequence::new(joined.epoch, joined.floor)),
            beaten: Mutex::new(Instant::now()),
            clock: Mutex::new(Clock::known_at(known)),
            born: Instant::now(),
            // Until the first beat has compared it with the database's.
            clock_is_sure: AtomicBool::new(false),
            may_forget: false,
        };
        // The database's time is asked before anything is due by ours.
        if let Pulse::Alive { store_time, .. } = node.store.beat(joined.epoch, 0).await? {
            node.check_clock(Moment::now(&node.env), store_time);
        }
        node.may_forget = is_plausible(joined.floor, node.now());
        if joined.floor.made_at() > node.now().plus_ms(SKEW_MAX_MS) {
            node.make_due().await?;
        }
        Ok(node)
    }

    /// Numbers of the future say that a clock was ahead: work that was queued by it, and retries, would be late by as much.
    async fn make_due(&self) -> sekisho_store::Result<()> {
        let mut jobs = 0;
        loop {
            let hastened = self.store.make_due(SWEEP_MAX, self.now()).await?;
            jobs += hastened;
            if hastened < SWEEP_MAX {
                break;
            }
        }
        if jobs > 0 {
            tracing::warn!(
                error_type = "clock_in_doubt",
                jobs,
                "jobs were queued by a clock that was ahead; they are due now, timers keep their time"
            );
        }
        Ok(())
    }

    /// Whether this node may start work: it was heard lately, so nobody gives it up.
    pub fn may_work(&self) -> bool {
        self.beaten.lock().expect("no code panics here").elapsed() < self.env.timing.fresh_for
    }

    /// The time by which work is due. A clock that jumped does not move it.
    pub fn now(&self) -> Time {
        self.clock().steady(Moment::now(&self.env))
    }

    /// The world by the time of this node: what people and apps do does not hang on a clock that jumped.
    pub fn steady_env(self: &Arc<Self>) -> Env {
        let node = Arc::clone(self);
        self.env.clone().with_wall(move || node.now())
    }

    fn clock(&self) -> Clock {
        *self.clock.lock().expect("no code panics here")
    }

    /// Whether the clock may be trusted with letting go of old events.
    pub fn may_forget(&self) -> bool {
        self.may_forget && self.clock().believed_ms() < IDLE_MAX_MS
    }

    /// How long this process has lived.
    pub fn age(&self) -> Duration {
        self.born.elapsed()
    }

    /// Whether what is due by the wall clock may be believed.
    pub fn clock_is_sure(&self) -> bool {
        self.clock_is_sure.load(Ordering::Relaxed)
    }

    /// The epoch under which work is claimed now. It changes when another node gave this one up.
    pub fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(Ordering::Acquire))
    }

    pub fn next_seq(&self, now: Time) -> Seq {
        self.sequence.lock().expect("no code panics here").next(now)
    }

    /// Beats until told to stop, then leaves.
    pub async fn run(&self, stop: Stop) {
        let timing = self.env.timing;
        let mut observed = Observed { timing, ..Observed::default() };
        let mut wait = Duration::ZERO;
        loop {
            tokio::select! {
                biased;
                () = stop.told() => break,
                () = tokio::time::sleep(wait) => {}
            }
            if let Err(error) = self.beat(&mut observed).await {
                self.health.store_failed(&error);
            } else {
                self.health.store_answered();
            }
            wait =
                if self.health.down.load(Ordering::Relaxed) { timing.beat_while_down } else { timing.beat };
        }
        // Everything it had to write is written: the next node may have its number.
        let _ = self.store.leave(self.epoch()).await;
    }

    async fn beat(&self, observed: &mut Observed) -> sekisho_store::Result<()> {
        // Every try has its own number: one whose answer was lost was heard all the same.
        let n = self.beats.fetch_add(1, Ordering::Relaxed) + 1;
        let asked = Instant::now();
        let pulse = self.store.beat(self.epoch(), n).await?;
        let Pulse::Alive { peers, store_time } = pulse else {
            tracing::warn!(error_type = "node_removed", "another node had removed this one");
            return self.join_anew().await;
        };
        *self.beaten.lock().expect("no code panics here") = asked;
        if self.check_clock(Moment::now(&self.env), store_time).is_some_and(|jump_ms| jump_ms < 0) {
            self.make_due().await?;
        }
        let mut gave_up = false;
        for dead in observed.dead(&peers, Instant::now()) {
            if self.store.end(dead.epoch, dead.beat).await? {
                gave_up = true;
                tracing::warn!(
                    error_type = "node_removed",
                    epoch = dead.epoch.0,
                    "a node missed its heartbeats and was removed; its jobs are released"
                );
            }
        }
        if observed.must_sweep(&peers, Instant::now()) || gave_up {
            while self.store.sweep(SWEEP_MAX, SUSPECT_AFTER).await? == SWEEP_MAX {}
            observed.has_swept(&peers, Instant::now());
        }
        self.store.upkeep(self.env.wall()).await
    }

    /// A clock that jumped moves nothing: timers wait until it can be believed again. Tells the jump that is believed from
    /// now on, if there is one.
    fn check_clock(&self, at: Moment, store_time: Option<Time>) -> Option<i64> {
        let checked = self.clock.lock().expect("no code panics here").check(at, store_time);
        self.clock_is_sure.store(checked.is_sure, Ordering::Relaxed);
        let was_sure = self.health.clock_is_sure(checked.is_sure);
        if checked.is_believed {
            tracing::warn!(
                error_type = "clock_in_doubt",
                jump_ms = checked.jump_ms,
                "this machine's clock jumped and has been steady since; it is trusted, timers resume"
            );
        } else if checked.is_sure && !was_sure {
            tracing::info!("clocks agree again; timers resume");
        } else if !checked.is_sure && was_sure {
            tracing::error!(
                error_type = "clock_in_doubt",
                jump_ms = checked.jump_ms,
                skew_ms = checked.skew_ms,
                "this machine's clock jumped, or disagrees with the database's: timers are held until it is set right, \
                 or on SQLite until it has run evenly for five minutes"
            );
        }
        checked.is_believed.then_some(checked.jump_ms)
    }

    async fn join_anew(&self) -> sekisho_store::Result<()> {
        let joined = self.store.join(self.env.wall()).await?;
        *self.sequence.lock().expect("no code panics here") = Sequence::new(joined.epoch, joined.floor);
        self.beats.store(0, Ordering::Relaxed);
        self.epoch.store(joined.epoch.0, Ordering::Release);
        telemetry::set_node(joined.epoch);
        *self.beaten.lock().expect("no code panics here") = Instant::now();
        tracing::info!(epoch = joined.epoch.0, "this node rejoined");
        Ok(())
    }
}

/// Whether old events may be let go by this clock: if nothing was stored for very long before the start, it may be the
/// clock that is wrong.
fn is_plausible(newest: Seq, now: Time) -> bool {
    newest == Seq::ZERO || now.ms() - newest.made_at().ms() < IDLE_MAX_MS
}

/// When each peer's beat was last seen to move.
#[derive(Default)]
struct Observed {
    timing: Timing,
    /// When we last looked.
    looked: Option<Instant>,
    seen: BTreeMap<Epoch, (i64, Instant)>,
    /// Who was there when work was last freed, and when that was.
    swept: Option<(Vec<Epoch>, Instant)>,
}

impl Observed {
    /// Somebody went since, whoever gave them up; or it is time anyway.
    fn must_sweep(&mut self, peers: &[PeerNode], now: Instant) -> bool {
        let alive = |epoch: &Epoch| peers.iter().any(|peer| peer.epoch == *epoch);
        let must = self.swept.as_ref().is_none_or(|(before, at)| {
            !before.iter().all(alive) || now.duration_since(*at) >= self.timing.sweep_every
        });
        if !must && let Some((before, _)) = &mut self.swept {
            *before = peers.iter().map(|peer| peer.epoch).collect();
        }
        must
    }

    /// Those given up in this beat are still among them; in the next they are missed, and it is swept once more.
    fn has_swept(&mut self, peers: &[PeerNode], now: Instant) {
        self.swept = Some((peers.iter().map(|peer| peer.epoch).collect(), now));
    }

    fn dead(&mut self, peers: &[PeerNode], now: Instant) -> Vec<PeerNode> {
        self.seen.retain(|epoch, _| peers.iter().any(|peer| peer.epoch == *epoch));
        // While we could not look ourselves, a beat that stood still proves nothing: the store may have been away.
        let blind =
            self.looked.replace(now).is_some_and(|at| now.duration_since(at) > self.timing.blind_after);
        if blind {
            self.seen.values_mut().for_each(|seen| seen.1 = now);
        }
        let dead_after = self.timing.dead_after;
        let still = |peer: &&PeerNode| {
            let seen = self.seen.entry(peer.epoch).or_insert((peer.beat, now));
            if seen.0 != peer.beat {
                *seen = (peer.beat, now);
            }
            now.duration_since(seen.1) >= dead_after
        };
        peers.iter().filter(still).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use sekisho_core::job::Lane;
    use sekisho_store::conformance::Arrivals;
    use sekisho_store::memory::MemoryStore;

    use super::*;

    #[test]
    fn b2_a_node_is_dead_only_after_its_beat_stood_still_before_our_eyes() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let peer = |beat| [PeerNode { epoch: Epoch(7), beat }];
        let mut observed = Observed::default();
        let mut looks = |beat, seconds: std::ops::RangeInclusive<u64>| {
            seconds.map(|second| observed.dead(&peer(beat), at(second))).collect::<Vec<_>>()
        };
        assert!(looks(100, 0..=9).iter().all(Vec::is_empty), "just met, however old the beat");
        assert!(looks(101, 10..=19).iter().all(Vec::is_empty), "it moved");
        assert_eq!(looks(101, 20..=20), [peer(101)]);
        // The store was away for everybody: nobody is dead because of that.
        assert!(looks(102, 21..=22).iter().chain(&looks(102, 40..=49)).all(Vec::is_empty));
        assert_eq!(looks(102, 50..=50), [peer(102)]);
        assert!(observed.dead(&[], at(51)).is_empty());
        assert!(observed.seen.is_empty(), "who left is forgotten");
    }

    #[test]
    fn b6_after_a_very_long_silence_the_clock_is_not_trusted_with_letting_go() {
        let now = crate::now();
        let stored = |days_ago: i64| {
            let at = now.plus_ms(-days_ago * 24 * 60 * 60 * 1000);
            Sequence::new(Epoch(1), Seq::ZERO).next(at)
        };
        assert!(is_plausible(Seq::ZERO, now), "a new store");
        assert!(is_plausible(stored(0), now) && is_plausible(stored(29), now));
        assert!(!is_plausible(stored(31), now));
    }

    #[test]
    fn b2_work_is_freed_when_somebody_went_and_now_and_then() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let peers = |epochs: &[i64]| {
            epochs.iter().map(|epoch| PeerNode { epoch: Epoch(*epoch), beat: 0 }).collect::<Vec<_>>()
        };
        let mut observed = Observed::default();
        assert!(observed.must_sweep(&peers(&[1, 2]), at(0)));
        assert!(observed.must_sweep(&peers(&[1, 2]), at(0)), "it failed, so it must be tried again");
        observed.has_swept(&peers(&[1, 2]), at(0));
        assert!(!observed.must_sweep(&peers(&[1, 2, 3]), at(2)), "somebody came");
        assert!(observed.must_sweep(&peers(&[1, 2]), at(4)), "and went");
        observed.has_swept(&peers(&[1, 2]), at(4));
        assert!(!observed.must_sweep(&peers(&[1, 2]), at(6)));
        assert!(observed.must_sweep(&peers(&[1, 2]), at(34)));
    }

    /// Without anybody else's clock, as on SQLite.
    #[tokio::test]
    async fn r10_a_clock_that_was_set_right_leaves_readiness_green_and_timers_running() {
        for jump in [8 * 60 * 60_000, -2 * 60 * 60_000] {
            let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
            let health: Arc<Health> = Arc::default();
            let node = Node::join(store, Arc::clone(&health), Env::system()).await.unwrap();
            let start = Moment::now(&node.env);
            let look = |jump, seconds: i64| {
                let passed = Duration::from_secs(seconds.unsigned_abs());
                let wall = start.wall.plus_ms(jump + seconds * 1_000);
                node.check_clock(Moment { wall, monotonic: start.monotonic + passed }, None)
            };
            let is_red =
                || (health.unready().is_some_and(|why| why.reason == "clock_in_doubt"), node.clock_is_sure());
            look(0, 2);
            assert_eq!(is_red(), (false, true));
            for second in (4..300).step_by(2) {
                assert_eq!(look(jump, second), None);
                assert_eq!(is_red(), (true, false), "{jump} after {second} s");
            }
            // It went back: all is well at once.
            assert_eq!((look(0, 300), is_red()), (None, (false, true)));
            for second in (302..602).step_by(2) {
                look(jump, second);
            }
            assert_eq!(is_red(), (true, false), "{jump}: counted from the last jump");
            assert_eq!(look(jump, 602), Some(jump));
            assert_eq!(is_red(), (false, true), "{jump}: it ran evenly");
            assert_eq!(look(jump, 604), None, "told once");
        }
    }

    #[tokio::test]
    async fn b6_a_jump_of_a_month_that_is_believed_lets_go_of_nothing() {
        for (days, may_forget) in [(29, true), (31, false), (-31, true)] {
            let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
            let node = Node::join(store, Arc::default(), Env::system()).await.unwrap();
            let start = Moment::now(&node.env);
            let jump = days * 24 * 60 * 60 * 1000;
            let mut believed = None;
            for second in 0..310 {
                let monotonic = start.monotonic + Duration::from_secs(second);
                let wall = start.wall.plus_ms(jump + second as i64 * 1_000);
                believed = believed.or(node.check_clock(Moment { wall, monotonic }, None));
            }
            // The node looked at its clock a moment before we did.
            let off = believed.map(|believed: i64| (believed - jump).abs());
            assert!(off.is_some_and(|off| off < 1_000), "{days} days: {believed:?}");
            assert_eq!(node.may_forget(), may_forget, "{days} days");
        }
    }

    #[tokio::test]
    async fn f1_what_people_and_apps_do_does_not_hang_on_a_clock_that_jumped() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let ahead = Arc::new(std::sync::atomic::AtomicI64::new(0));
        let shown = Arc::clone(&ahead);
        let env = Env::system().with_wall(move || crate::now().plus_ms(shown.load(Ordering::Relaxed)));
        let node = Arc::new(Node::join(store, Arc::default(), env).await.unwrap());
        for jump in [60 * 60_000, -60 * 60_000, 365 * 24 * 60 * 60_000] {
            ahead.store(jump, Ordering::Relaxed);
            let off = node.steady_env().wall().ms() - crate::now().ms();
            assert!(off.abs() < 60_000, "{jump} ms: {off} ms");
            assert!((node.env.wall().ms() - crate::now().ms() - jump).abs() < 60_000);
        }
    }

    /// As after a night with the wrong year: the events came, and their work was to begin when that year had come.
    #[tokio::test]
    async fn r10_what_was_queued_by_a_clock_ahead_is_done_after_a_start_with_the_right_one() {
        for (ahead, due) in [(24 * 60 * 60 * 1_000, 1), (30_000, 0)] {
            let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
            let event = Arrivals::new(1).event_at("early", crate::now().plus_ms(ahead));
            store.admit(Arc::new([event]), None).await.unwrap();
            let node = Node::join(Arc::clone(&store), Arc::default(), Env::system()).await.unwrap();
            let claimed = store.claim(node.epoch(), vec![(Lane::settle(), 9)], node.now()).await.unwrap();
            assert_eq!(claimed.len(), due, "{ahead} ms ahead");
        }
    }
}
