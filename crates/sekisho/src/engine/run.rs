//! One run of one job: when it may start, what its panic or its failure leads to, and how it ends.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use sekisho_core::change::ChangeSet;
use sekisho_core::job::{DeadReason, End, Job, Lane};
use sekisho_core::queue::{self, Failure, Retry};

use tokio::time::Instant;

use super::lanes::Next;
use super::{Engine, Work, completer};
use crate::telemetry::LineContext;

/// How long to look away while this node may not start anything.
const WAIT: Duration = Duration::from_millis(50);
/// For what fails inside, not at a destination: the store or this program.
const RETRY: Retry = Retry { retries: 9, first_ms: 1_000, factor: 2, cap_ms: 600_000, jitter_percent: 25 };

/// What became of a run.
pub enum Ran {
    /// This is how it ended: it is committed with others.
    Ended(ChangeSet),
    /// It goes back to the queue untried.
    Requeue,
    /// Its end is in the store already.
    Committed,
    /// Another node was given it, or may have been: here it ends without a word.
    NotOurs,
}

/// The kinds of work there are.
#[async_trait]
pub trait Kinds: Send + Sync {
    /// One run. What failed without a word from outside is retried or becomes a dead letter.
    async fn run(&self, engine: &Arc<Engine>, work: &Work) -> Result<Ran, Failure>;

    /// The end of a job that becomes a dead letter without having been run to its end, and of what waits for it.
    async fn dead(&self, engine: &Engine, job: &Job, reason: DeadReason) -> ChangeSet;

    /// Makes sure that everything that repeats has its next moment.
    async fn plan(&self, engine: &Engine) -> sekisho_store::Result<()>;

    /// Why the jobs of a lane will never run, if nobody serves it any more.
    fn unserved(&self, lane: &Lane) -> Option<DeadReason>;
}

impl Engine {
    /// Starts what a lane may run now.
    pub fn pump(self: &Arc<Self>, lane: &Lane) {
        loop {
            match self.lanes.next(lane, self.node.now()) {
                Next::Run(work) => drop(self.spawn(Arc::clone(self).run(work))),
                Next::Release(works) => {
                    let engine = Arc::clone(self);
                    return drop(self.spawn(async move { engine.release(works).await }));
                }
                Next::Nothing => return,
            }
        }
    }

    async fn run(self: Arc<Self>, mut work: Work) {
        let (lane, lease) = (work.job.lane.clone(), work.job.lease);
        work.begun = Some((self.node.now(), Instant::now()));
        let context = LineContext::of_run(&work.job, work.event.as_ref(), work.trace_id(&self.tracer));
        let ran = context.around(self.perform(&work)).await;
        // Order matters: at a stop, what no longer runs must be with the completer.
        match ran {
            Ran::Ended(set) => self.completer.push(&work, set),
            Ran::Committed | Ran::NotOurs => self.held.let_go([lease]),
            Ran::Requeue => {
                self.lanes.ran(&lane, lease);
                self.release(vec![work]).await;
                return self.pump(&lane);
            }
        }
        self.lanes.ran(&lane, lease);
        self.pump(&lane);
    }

    async fn perform(self: &Arc<Self>, work: &Work) -> Ran {
        while !self.node.may_work() {
            tokio::time::sleep(WAIT).await;
        }
        let job = &work.job;
        if job.lease.epoch != self.node.epoch() {
            self.lanes.breaker(&job.lane).unjudged(self.node.now());
            return Ran::NotOurs;
        }
        if job.lane == Lane::suspect() {
            if let Some(reason) = queue::crash_limit(job.crashes) {
                return Ran::Ended(self.kinds.dead(self, job, reason).await);
            }
            // Said before it runs: a crash from here on is its own.
            let started = self.store.start(vec![job.lease]).await;
            if !started.is_ok_and(|started| started == [true]) {
                self.held.doubt();
                return Ran::NotOurs;
            }
        }
        let ran = AssertUnwindSafe(self.kinds.run(self, work)).catch_unwind().await;
        let failure = match ran {
            Ok(Ok(ran)) => return ran,
            Ok(Err(failure)) => failure,
            Err(_) => {
                self.lanes.breaker(&job.lane).unjudged(self.node.now());
                Failure::transient("panicked", "the program failed while it worked on this")
            }
        };
        Ran::Ended(match self.end_of_failed(work, &failure) {
            End::Dead(reason) => self.kinds.dead(self, job, reason).await,
            end => ChangeSet::end(job.lease, end, self.node.now()),
        })
    }

    /// What follows a failure that no destination is to blame for.
    pub fn after(&self, job: &Job, failure: &Failure) -> End {
        queue::after(failure, &RETRY, job.tries(), job.lease.job.as_i64() as u64, self.node.now())
    }

    /// How a run ends that failed without a word from outside. No attempt tells of it, so that the log must.
    pub fn end_of_failed(&self, work: &Work, failure: &Failure) -> End {
        let end = self.after(&work.job, failure);
        if let End::Retry { due_at } = end {
            completer::tell_retry(work, due_at, failure.reason, &failure.error);
        }
        end
    }
}
