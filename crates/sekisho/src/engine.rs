//! Leased work, done: what this node holds in memory, the lanes it waits in, who claims more, and how runs end. The engine
//! knows leases, batches, lanes and commits, and no kind of work: that is handed in as [`Kinds`].
//!
//! The dispatcher claims what is due for every lane that has room; runs call the outside; the completer commits how they
//! ended. New work of this node comes from memory, leased since it was born, and is never read back.
//!
//! Promises: nothing runs here that another node was given; what was lost between the store and memory is adopted; a run
//! that panics is a failed run; a job that keeps killing the process becomes a dead letter.

mod breakers;
pub mod completer;
pub mod dispatcher;
pub mod held_jobs;
pub mod lane;
pub mod lanes;
pub mod order_barrier;
pub mod run;
pub mod settle_queue;
mod traces;
mod unserved;
pub mod work;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sekisho_core::job::Lane;
use sekisho_store::Store;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::node::{Health, Node};
use crate::telemetry::{Metrics, Tracer};
use completer::Completer;
use held_jobs::HeldJobs;
use lane::LanePolicy;
use lanes::Lanes;
use order_barrier::OrderBarrier;
pub use run::{Kinds, Ran};
use settle_queue::SettleQueue;
pub use work::Work;

/// Which parts of the work this node does.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    pub works: bool,
    pub schedules: bool,
}

/// What a node is made of before it works.
#[derive(Clone)]
pub struct Base {
    pub store: Arc<dyn Store>,
    pub node: Arc<Node>,
    pub health: Arc<Health>,
    pub metrics: Arc<Metrics>,
    pub tracer: Arc<Tracer>,
}

/// How much of it is done at once, and how it ends.
pub struct EnginePolicy {
    pub parts: Parts,
    /// Events are settled in the order in which they came.
    pub keeps_order: bool,
    pub lanes: Vec<(Lane, LanePolicy)>,
    /// How long runs may take to end after the process was told to stop.
    pub stop_within: Duration,
}

/// What the engine's parts share, and every run is handed.
pub struct Engine {
    pub store: Arc<dyn Store>,
    pub node: Arc<Node>,
    pub health: Arc<Health>,
    pub metrics: Arc<Metrics>,
    pub tracer: Arc<Tracer>,
    pub held: Arc<HeldJobs>,
    pub lanes: Arc<Lanes>,
    pub settle_queue: Arc<SettleQueue>,
    pub completer: Completer,
    kinds: Arc<dyn Kinds>,
    parts: Parts,
    stop_within: Duration,
    /// Calls the dispatcher: there is room again, or something to look after.
    wake: Arc<Notify>,
    /// Told to stop: nothing new is begun.
    leaving: AtomicBool,
}

impl Engine {
    pub fn new(base: Base, policy: EnginePolicy, kinds: Arc<dyn Kinds>) -> Self {
        let EnginePolicy { parts, keeps_order, lanes, stop_within } = policy;
        let wake: Arc<Notify> = Arc::default();
        let held = Arc::new(HeldJobs::new(Arc::clone(&wake)));
        let lanes = Arc::new(Lanes::new(lanes, Arc::clone(&wake)));
        let barrier = keeps_order.then(|| OrderBarrier::unknown(base.node.env.timing.doubt_max));
        let settle_queue = Arc::new(SettleQueue::new(parts.works, barrier, Arc::clone(&wake)));
        let completer =
            Completer::new(base.clone(), Arc::clone(&held), Arc::clone(&lanes), Arc::clone(&wake));
        let Base { store, node, health, metrics, tracer } = base;
        Self {
            store,
            node,
            health,
            metrics,
            tracer,
            held,
            lanes,
            settle_queue,
            completer,
            kinds,
            parts,
            stop_within,
            wake,
            leaving: AtomicBool::new(false),
        }
    }

    /// What this node is made of.
    pub fn base(&self) -> Base {
        Base {
            store: Arc::clone(&self.store),
            node: Arc::clone(&self.node),
            health: Arc::clone(&self.health),
            metrics: Arc::clone(&self.metrics),
            tracer: Arc::clone(&self.tracer),
        }
    }

    /// Something of ours may be in the store only, and it may be something that was to be settled: newer ones wait.
    pub fn doubt_settling(&self) {
        self.settle_queue.set_doubt(|| {
            self.held.doubt();
            true
        });
    }

    pub fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Relaxed)
    }

    /// Goes on by itself.
    pub fn spawn<F: Future<Output = ()> + Send + 'static>(&self, task: F) -> JoinHandle<()> {
        self.node.env.spawn(task)
    }

    /// Gives leased jobs back to the store, untried.
    pub async fn release(&self, works: Vec<Work>) {
        let leases: Vec<_> = works.iter().map(|work| work.job.lease).collect();
        // Order matters: the job may be leased to this node again at once, and must not be let go then.
        self.held.let_go(leases.iter().copied());
        if self.store.release(leases).await.is_err() {
            self.held.doubt();
        }
    }
}
