//! Stored work, done. The dispatcher claims what is due for every lane that has room; the settler decides what events
//! mean; runs call the outside; the closer commits how they ended. New work of this node comes to the [`desk`] from
//! memory, leased since it was born, and is never read back.
//!
//! Promises: nothing runs here that another node was given; what was lost between the store and memory is adopted;
//! a run that panics is a failed run; a job that keeps killing the process is buried.

pub mod closer;
pub mod deliver;
pub mod desk;
mod fetch;
pub mod inbox;
mod lanes;
mod notify;
mod outlet;
mod send;
mod settle;
mod timer;

use std::collections::{BTreeMap, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use sekisho_core::change::ChangeSet;
use sekisho_core::event::Stored;
use sekisho_core::job::{DeadReason, End, Job, Kind, Lane};
use sekisho_core::notification::template::Templates;
use sekisho_core::queue::{self, Failure, Retry, breaker};
use sekisho_core::settlement::{Provider, References};
use sekisho_core::source_name::Origin;
use sekisho_core::timer::Timer;
use sekisho_core::{Seq, Time, notification};
use sekisho_store::{CLAIM_MAX, Store};
use tokio::sync::watch;

use crate::config::{Config, Notifications};
use crate::node::{Health, Node};
use crate::telemetry::Metrics;
use crate::told_to_stop;
use closer::Closer;
use deliver::Target;
use desk::{Desk, LanePolicy, Next, Work};
use fetch::Fetchers;
use outlet::Outlet;

/// How long to look away when nobody called.
const POLL: Duration = Duration::from_millis(200);
/// How often what is ours in the store is compared with what is held, even when nothing seems lost.
const ADOPT: Duration = Duration::from_mins(1);
/// After a lost answer the store may still be at work on the question: it is looked after once more.
const ADOPT_AGAIN: Duration = Duration::from_secs(10);
/// Pause before it is tried again, where even that failed: somebody may be waiting for what is found.
const ADOPT_FAILED: Duration = Duration::from_secs(2);
/// How often breakers of other nodes are read, and schedules planned.
const GLANCE: Duration = Duration::from_secs(2);
/// How often lanes are looked for that no route serves any more. They are a day old by then.
const STRANGE: Duration = Duration::from_mins(1);
/// Events loaded at once.
const PIECE: usize = 64;
const TIMERS: usize = 4;
/// Events, or offices, of which it is worked out at once who is told.
const NOTIFIED: usize = 4;
/// Calls to one provider's API at once, and in a second: Stripe takes 25 of one kind.
const FETCHES: usize = 4;
const FETCH_RATE: u32 = 20;
/// So many failures of it in a row, and it is left alone for a while.
const FETCH_FAILURES: u32 = 5;
/// How long a process must have lived before it tries a suspect.
const SUSPECTS_AFTER: Duration = Duration::from_secs(5);

/// Which parts of the work this node does.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    pub works: bool,
    pub schedules: bool,
}

pub struct Worker {
    store: Arc<dyn Store>,
    pub node: Arc<Node>,
    health: Arc<Health>,
    metrics: Arc<Metrics>,
    pub desk: Arc<Desk>,
    closer: Closer,
    parts: Parts,
    /// In the order of the configuration.
    targets: Vec<Arc<Target>>,
    /// What is behind each source.
    origins: BTreeMap<String, Origin>,
    /// The one account that a source takes, by its name.
    accounts: BTreeMap<String, String>,
    references: References,
    fetchers: Fetchers,
    /// How long access goes on after what was paid for has ended.
    grace_ms: i64,
    outlets: Vec<Outlet>,
    rules: Vec<notification::Rule>,
    templates: Templates,
    notifications: Notifications,
    timers: timer::Timers,
    /// What was planned lately, so that the store is not asked again and again.
    planned: Mutex<Vec<(Timer, Time)>>,
    stop_within: Duration,
    /// Told to stop: nothing new is begun.
    leaving: AtomicBool,
}

impl Worker {
    pub fn new(
        config: &Config,
        parts: Parts,
        store: Arc<dyn Store>,
        node: Arc<Node>,
        health: Arc<Health>,
        metrics: Arc<Metrics>,
    ) -> anyhow::Result<Self> {
        let targets = config.routes.iter().map(|route| Target::open(route).map(Arc::new));
        let targets = targets.collect::<anyhow::Result<Vec<_>>>()?;
        let outlets = config.channels.iter().map(Outlet::open).collect::<anyhow::Result<Vec<_>>>()?;
        let plain = |concurrency| LanePolicy {
            concurrency,
            rate: None,
            breaker: breaker::Policy { failures: 0, ..breaker::Policy::default() },
        };
        let mut lanes = Vec::new();
        if parts.works {
            lanes.extend(targets.iter().map(|target| (target.lane.clone(), target.policy())));
            lanes.extend(outlets.iter().map(|outlet| (outlet.lane.clone(), outlet.policy())));
            lanes.push((Lane::notify(), plain(NOTIFIED)));
            lanes.push((Lane::suspect(), plain(1)));
            for provider in Provider::ALL {
                let breaker = breaker::Policy { failures: FETCH_FAILURES, ..breaker::Policy::default() };
                let policy = LanePolicy { rate: Some(FETCH_RATE), breaker, ..plain(FETCHES) };
                lanes.push((Lane::fetch(provider.name()), policy));
            }
        }
        if parts.schedules {
            lanes.push((Lane::timer(), plain(TIMERS)));
        }
        let keeps_order = targets.iter().any(|target| target.route.fifo.is_some());
        let desk = Arc::new(Desk::new(parts.works, keeps_order, lanes));
        Ok(Self {
            closer: Closer::new(
                Arc::clone(&store),
                Arc::clone(&node),
                Arc::clone(&health),
                Arc::clone(&metrics),
                Arc::clone(&desk),
            ),
            store,
            node,
            health,
            metrics,
            desk,
            parts,
            targets,
            origins: config.origins(),
            accounts: config.accounts(),
            references: config.references.clone(),
            fetchers: Fetchers::open(config)?,
            grace_ms: i64::try_from(config.grace.as_millis()).unwrap_or(i64::MAX),
            outlets,
            rules: config.rules(),
            templates: config.templates.clone(),
            notifications: config.notifications.clone(),
            timers: timer::Timers::of(config),
            planned: Mutex::default(),
            stop_within: config.server.shutdown_timeout,
            leaving: AtomicBool::new(false),
        })
    }

    /// Claims and hands out until told to stop; then lets what runs finish, and hands back the rest.
    pub async fn dispatch(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let mut rounds = Rounds::new();
        let mut epoch = self.node.epoch();
        while !*stop.borrow() {
            if epoch != self.node.epoch() {
                epoch = self.node.epoch();
                self.desk.clear();
                self.desk.doubt_settling();
            }
            if !self.try_round(&mut rounds).await {
                // Whoever calls meanwhile must wait, too: a store that is down is not asked faster.
                rounds.all = true;
                tokio::select! {
                    () = tokio::time::sleep(POLL) => continue,
                    () = told_to_stop(&mut stop) => break,
                }
            }
            // All: each may have waited for its rate.
            self.desk.lanes().iter().for_each(|lane| self.pump(lane));
            rounds.all = tokio::select! {
                () = self.desk.look.notified() => false,
                () = tokio::time::sleep_until(rounds.next_poll.into()) => true,
                () = told_to_stop(&mut stop) => break,
            };
        }
        self.leave().await;
    }

    /// False when this node may not work, or the store did not answer.
    async fn try_round(self: &Arc<Self>, rounds: &mut Rounds) -> bool {
        if !self.node.may_work() {
            return false;
        }
        let Err(error) = self.round(rounds).await else { return true };
        self.health.store_failed(&error);
        self.desk.doubt_settling();
        false
    }

    async fn round(self: &Arc<Self>, rounds: &mut Rounds) -> sekisho_store::Result<()> {
        if self.desk.take_doubt() {
            rounds.adopt_at = Instant::now();
            rounds.adopt_again = true;
        }
        if rounds.adopt_at <= Instant::now() {
            // A look that failed must not keep anything else from being done.
            let pause = match self.adopt().await {
                Ok(()) => {
                    self.desk.adopted();
                    if std::mem::take(&mut rounds.adopt_again) { ADOPT_AGAIN } else { ADOPT }
                }
                Err(error) => {
                    self.health.store_failed(&error);
                    ADOPT_FAILED
                }
            };
            rounds.adopt_at = Instant::now() + pause;
        }
        if rounds.glance_at <= Instant::now() {
            rounds.glance_at = Instant::now() + GLANCE;
            self.read_breakers().await?;
            if self.parts.schedules {
                self.plan().await?;
            }
        }
        if rounds.strange_at <= Instant::now() {
            rounds.strange_at = Instant::now() + STRANGE;
            if let Err(error) = self.claim_strange_lanes().await {
                self.health.store_failed(&error);
            }
        }
        if rounds.all {
            rounds.next_poll = Instant::now() + POLL;
        }
        let mut wants = self.desk.wants(rounds.all, self.node.now());
        if !self.node.clock_is_sure() {
            // Nothing is due by a clock that jumped.
            wants.retain(|(lane, _)| *lane != Lane::timer());
        }
        if self.node.age() < SUSPECTS_AFTER {
            // A process that dies young is not killed by what it has not begun; then suspects must not be blamed.
            wants.retain(|(lane, _)| *lane != Lane::suspect());
        }
        if wants.is_empty() {
            return Ok(());
        }
        let jobs = self.store.claim(self.node.epoch(), wants.clone(), self.node.now()).await?;
        self.health.store_answered();
        let mut settling = None;
        for (lane, wanted) in &wants {
            let found = jobs.iter().filter(|job| job.lane == *lane);
            let (count, newest) = (found.clone().count(), found.map(|job| job.lease.job).max());
            if count == *wanted {
                self.desk.expect_more(lane);
            }
            if *lane == Lane::settle() {
                settling = Some((newest, count < *wanted));
            }
        }
        self.hand_out(jobs).await?;
        if let Some((newest, is_all)) = settling {
            self.desk.answered(newest, is_all);
        }
        Ok(())
    }

    /// Takes over what the store counts as ours and nobody here holds.
    async fn adopt(self: &Arc<Self>) -> sekisho_store::Result<()> {
        let (epoch, mut after) = (self.node.epoch(), Seq::ZERO);
        loop {
            let owned = self.store.owned(epoch, after).await?;
            let more = owned.len() == CLAIM_MAX;
            after = owned.last().map_or(after, |lease| lease.job);
            // Order matters: what is not held now, after the read, was not held when it was read, or has ended since.
            let lost: Vec<_> = owned.into_iter().filter(|lease| !self.desk.holds(lease.job)).collect();
            if !lost.is_empty() {
                let jobs = self.store.adopt(lost).await?;
                tracing::info!(jobs = jobs.len(), "jobs missing from memory were picked up again");
                self.hand_out(jobs).await?;
            }
            if !more {
                return Ok(());
            }
        }
    }

    /// Gives leased jobs to their lanes, each with its event. In pieces, so that large events are not all loaded at
    /// once; a piece that can't be loaded now goes back.
    async fn hand_out(self: &Arc<Self>, jobs: Vec<Job>) -> sekisho_store::Result<()> {
        self.desk.hold(jobs.iter().map(|job| job.lease));
        let mut result = Ok(());
        for piece in jobs.chunks(PIECE) {
            match self.store.load_events(piece.iter().filter_map(|job| job.event).collect()).await {
                Ok(events) => self.place(piece, events).await,
                Err(error) => {
                    // Order matters: those after them wait until these are here.
                    let settling = piece.iter().filter(|job| job.lane == Lane::settle());
                    if let Some(oldest) = settling.map(|job| job.lease.job).min() {
                        self.desk.leave(oldest);
                    }
                    self.release(piece.iter().map(|job| Work::claimed(job.clone(), None)).collect()).await;
                    result = Err(error);
                }
            }
        }
        result
    }

    async fn place(self: &Arc<Self>, jobs: &[Job], events: Vec<Stored>) {
        let events: HashMap<_, _> = events.into_iter().map(|event| (event.seq, Arc::new(event))).collect();
        let (mut settle, mut strange) = (Vec::new(), Vec::new());
        for job in jobs {
            let event = job.event.and_then(|event| events.get(&event)).cloned();
            let work = Work::claimed(job.clone(), event);
            if work.job.event.is_some() && work.event.is_none() {
                self.dead_letter(
                    work,
                    DeadReason::terminal("event_missing", "the event it is about is no longer kept"),
                );
            } else if work.job.lane == Lane::settle() {
                settle.push(work);
            } else {
                strange.extend(self.desk.put(work));
            }
        }
        if !strange.is_empty() {
            self.release(strange).await;
        }
        self.desk.settle(settle);
        self.desk.lanes().iter().for_each(|lane| self.pump(lane));
    }

    fn dead_letter(&self, work: Work, death: DeadReason) {
        let set = ChangeSet::end(work.job.lease, End::Dead(death), self.node.now());
        self.closer.push(&work, set);
    }

    /// Starts what a lane may run now.
    pub fn pump(self: &Arc<Self>, lane: &Lane) {
        loop {
            match self.desk.next(lane, self.node.now()) {
                Next::Run(work) => drop(tokio::spawn(Arc::clone(self).run(work))),
                Next::Release(works) => {
                    let worker = Arc::clone(self);
                    return drop(tokio::spawn(async move { worker.release(works).await }));
                }
                Next::Nothing => return,
            }
        }
    }

    async fn release(&self, works: Vec<Work>) {
        let leases: Vec<_> = works.iter().map(|work| work.job.lease).collect();
        // Order matters: the job may be leased to this node again at once, and must not be let go then.
        self.desk.let_go(leases.iter().copied());
        if self.store.release(leases).await.is_err() {
            self.desk.doubt();
        }
    }

    async fn run(self: Arc<Self>, work: Work) {
        let lane = work.job.lane.clone();
        let set = self.perform(&work).await;
        // Order matters: at a stop, what no longer runs must be with the closer.
        match set {
            Some(set) => self.closer.push(&work, set),
            None if work.job.kind == Kind::Send => {
                self.desk.ran(&lane, work.job.lease);
                self.release(vec![work]).await;
                return self.pump(&lane);
            }
            None => self.desk.let_go([work.job.lease]),
        }
        self.desk.ran(&lane, work.job.lease);
        self.pump(&lane);
    }

    /// One run; `None` when it does not end here: the job is another node's, goes back untried, or its end was committed
    /// already.
    async fn perform(self: &Arc<Self>, work: &Work) -> Option<ChangeSet> {
        while !self.node.may_work() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let job = &work.job;
        if job.lease.epoch != self.node.epoch() {
            self.desk.unjudged(&job.lane, self.node.now());
            return None;
        }
        if job.lane == Lane::suspect() {
            if let Some(death) = queue::crash_limit(job.crashes) {
                return Some(self.dead(job, death).await);
            }
            // Said before it runs: a crash from here on is its own.
            let started = self.store.start(vec![job.lease]).await;
            if !started.is_ok_and(|started| started == [true]) {
                self.desk.doubt();
                return None;
            }
        }
        let run = async {
            match job.kind {
                Kind::Settle => {
                    self.metrics.picked_up(job.kind.name(), work.waited(self.node.now()));
                    self.settle_alone(work).await;
                    Ok(None)
                }
                Kind::Deliver => self.deliver(work).await.map(Some),
                Kind::Timer => self.fire(job).await.map(Some),
                Kind::Fetch => self.fetch(work).await.map(Some),
                Kind::Notify => self.notify(work).await.map(Some),
                Kind::Send => self.send(work).await,
            }
        };
        let set = AssertUnwindSafe(run).catch_unwind().await;
        let failed = match set {
            Ok(Ok(set)) => return set,
            Ok(Err(failure)) => failure,
            Err(_) => {
                self.desk.unjudged(&job.lane, self.node.now());
                Failure::transient("panicked", "the program failed while it worked on this")
            }
        };
        match self.end_of_failed(work, &failed) {
            End::Dead(death) => Some(self.dead(job, death).await),
            end => Some(ChangeSet::end(job.lease, end, self.node.now())),
        }
    }

    fn after(&self, job: &Job, failure: &Failure) -> End {
        queue::after(failure, &RETRY, job.tries(), job.lease.job.as_i64() as u64, self.node.now())
    }

    /// How a run ends that failed without a word from outside. No attempt tells of it, so that the log must.
    fn end_of_failed(&self, work: &Work, failure: &Failure) -> End {
        let end = self.after(&work.job, failure);
        if let End::Retry { due_at } = end {
            closer::tell_retry(work, due_at, failure.reason, &failure.error);
        }
        end
    }

    /// The end of a job that goes before a person, and of what waits for it.
    async fn dead(&self, job: &Job, death: DeadReason) -> ChangeSet {
        match job.kind {
            Kind::Send => self.abandoned(job, death).await,
            Kind::Settle | Kind::Deliver | Kind::Timer | Kind::Fetch | Kind::Notify => {
                ChangeSet::end(job.lease, End::Dead(death), self.node.now())
            }
        }
    }

    /// Delivers to the app, and tells the destination's breaker how it went.
    async fn deliver(self: &Arc<Self>, work: &Work) -> Result<ChangeSet, Failure> {
        let gone = || Failure::terminal("route_removed", "the configuration has no such route any more");
        let lane = Lane::to_route(&work.job.payload);
        let target = self.targets.iter().find(|target| target.lane == lane).ok_or_else(gone)?;
        let event =
            work.event.as_ref().ok_or_else(|| Failure::terminal("event_missing", "it has no event"))?;
        if let Some(why) = target.route.bars(self.origin(event), event) {
            return Err(Failure::terminal("not_for_route", why));
        }
        self.metrics.picked_up(work.job.kind.name(), work.waited(self.node.now()));
        let (set, well) = target.deliver(&work.job, event, &self.node, &self.metrics).await;
        if let Some(breaker) = self.desk.judge(&lane, well, self.node.now()) {
            tracing::warn!(
                route = work.job.payload,
                state = breaker.state(),
                "the breaker of a route changed"
            );
            let worker = Arc::clone(self);
            tokio::spawn(async move { worker.write_breaker(&lane, &breaker).await });
        }
        Ok(set)
    }

    // --- the end ---------------------------------------------------------------------------------------------

    /// Commits how runs ended, until told to stop and all have been.
    pub async fn close(self: Arc<Self>, stop: watch::Receiver<bool>) {
        self.closer.run(stop).await;
    }

    pub fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Relaxed)
    }

    async fn leave(&self) {
        self.leaving.store(true, Ordering::Relaxed);
        let waiting = self.desk.take_waiting();
        self.release(waiting).await;
        let deadline = Instant::now() + self.stop_within;
        while !self.desk.running().is_empty() && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let unfinished = self.desk.running();
        if !unfinished.is_empty() {
            tracing::warn!(jobs = unfinished.len(), "some jobs did not finish in time; they are released");
            let _ = self.store.release(unfinished).await;
        }
    }
}

/// For what fails inside, not at a destination: the store or this program.
const RETRY: Retry = Retry { retries: 9, first_ms: 1_000, factor: 2, cap_ms: 600_000, jitter_percent: 25 };

/// When the dispatcher does what.
struct Rounds {
    all: bool,
    next_poll: Instant,
    adopt_at: Instant,
    adopt_again: bool,
    glance_at: Instant,
    strange_at: Instant,
}

impl Rounds {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            all: true,
            next_poll: now,
            adopt_at: now + ADOPT,
            adopt_again: false,
            glance_at: now,
            strange_at: now,
        }
    }
}
