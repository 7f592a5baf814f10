//! The kinds of work: one file each, of one shape. Each is opened from the configuration, is handed a leased job, and
//! says what became of it; the [`engine`](crate::engine) does the rest.

mod accounts;
mod checkout;
mod deadline;
mod deliver;
mod fetch;
pub mod meters;
mod notify;
pub mod reconcile;
mod refund;
mod retry_dead;
pub mod sampler;
mod send;
mod settle;
mod sources;
mod timer;
mod watch;

use std::convert::Infallible;
use std::sync::Arc;

use async_trait::async_trait;
use sekisho_core::change::ChangeSet;
use sekisho_core::job::{DeadReason, End, Job, JobKind, Lane, Task};
use sekisho_core::notification::Alert;
use sekisho_core::queue::{Failure, breaker};
use sekisho_core::settlement::follow::OrderPolicy;

use crate::config::Config;
use crate::engine::lane::LanePolicy;
use crate::engine::{Base, Engine, EnginePolicy, Kinds, Parts, Ran, Work};
use crate::stop::Stop;
use crate::transact::TransactError;
use accounts::ApiAccounts;
use checkout::SessionMaker;
use deadline::Deadlines;
use deliver::Deliverer;
use fetch::Fetcher;
use notify::Notifier;
use reconcile::Reconciler;
use refund::Refunder;
use send::Sender;
use settle::Settler;
use sources::Sources;
use timer::Timers;
use watch::Watcher;

/// So many failures of a provider's API or a channel in a row, and its lane is left alone for a while. Of routes the
/// operator says how many.
const FAILURES_IN_A_ROW: u32 = 5;

pub struct Jobs {
    settler: Arc<Settler>,
    deliverer: Deliverer,
    sender: Sender,
    notifier: Notifier,
    fetcher: Fetcher,
    refunder: Refunder,
    sessions: SessionMaker,
    timers: Timers,
    /// How orders are decided.
    orders: Arc<OrderPolicy>,
    reconciler: Arc<Reconciler>,
}

/// Opens all kinds of work, and the engine that runs them.
pub fn open(config: &Config, parts: Parts, base: Base) -> anyhow::Result<(Arc<Engine>, Arc<Jobs>)> {
    let sources = Arc::new(Sources::new(config));
    let accounts = Arc::new(ApiAccounts::new(config, &base.node.env)?);
    let reconciler = Arc::new(Reconciler::new(config, Arc::clone(&accounts))?);
    let orders = Arc::new(config.orders());
    let settler = Settler::new(config, Arc::clone(&orders), Arc::clone(&sources), Arc::clone(&accounts));
    let jobs = Arc::new(Jobs {
        settler: Arc::new(settler),
        deliverer: Deliverer::new(config, sources, &base.node.env)?,
        sender: Sender::new(config, &base.node.env)?,
        notifier: Notifier::new(config),
        fetcher: Fetcher::new(Arc::clone(&accounts)),
        refunder: Refunder::new(Arc::clone(&accounts), Arc::clone(&orders)),
        sessions: SessionMaker::new(config, Arc::clone(&accounts), Arc::clone(&orders)),
        timers: Timers::new(
            config,
            Arc::clone(&reconciler),
            Deadlines::new(Arc::clone(&orders), accounts),
            Watcher::new(config, Arc::clone(&reconciler)),
        ),
        orders,
        reconciler,
    });
    let policy = EnginePolicy {
        parts,
        keeps_order: config.routes.iter().any(|route| route.route.fifo.is_some()),
        lanes: jobs.lanes(parts),
        stop_within: config.server.shutdown_timeout,
    };
    let kinds: Arc<dyn Kinds> = Arc::clone(&jobs) as _;
    Ok((Arc::new(Engine::new(base, policy, kinds)), jobs))
}

impl Jobs {
    /// Settles events in batches until told to stop.
    pub async fn settle(self: Arc<Self>, engine: Arc<Engine>, stop: Stop) {
        Arc::clone(&self.settler).run(&engine, stop).await;
    }

    /// What compares sources with their providers, also by hand.
    pub fn reconciler(&self) -> Arc<Reconciler> {
        Arc::clone(&self.reconciler)
    }

    fn lanes(&self, parts: Parts) -> Vec<(Lane, LanePolicy)> {
        let mut lanes = Vec::new();
        if parts.works {
            lanes.extend(self.deliverer.lanes());
            lanes.extend(self.sender.lanes());
            lanes.push((Lane::notify(), plain(notify::AT_ONCE)));
            lanes.push((Lane::suspect(), plain(1)));
            lanes.extend(fetch::lanes());
            lanes.extend(refund::lanes());
            lanes.extend(checkout::lanes());
        }
        if parts.schedules {
            lanes.push((Lane::timer(), plain(timer::AT_ONCE)));
            lanes.push((Lane::reconcile(), plain(reconcile::AT_ONCE)));
            lanes.push((Lane::deadline(), plain(deadline::AT_ONCE)));
        }
        lanes
    }
}

/// A lane without a rate, and whose breaker never opens.
fn plain(concurrency: usize) -> LanePolicy {
    let breaker = breaker::Policy { failures: 0, ..breaker::Policy::default() };
    LanePolicy { concurrency, rate: None, breaker }
}

#[async_trait]
impl Kinds for Jobs {
    async fn run(&self, engine: &Arc<Engine>, work: &Work) -> Result<Ran, Failure> {
        match &work.job.task {
            Task::Settle(_) => Ok(self.settler.run_alone(engine, work).await),
            Task::Deliver { route } => self.deliverer.run(engine, work, route).await,
            Task::Send { notice } => self.sender.run(engine, work, notice).await,
            Task::Notify(notify) => self.notifier.run(engine, work, notify).await,
            Task::Fetch(fetch) => self.fetcher.run(engine, work, fetch).await,
            Task::Refund(call) => self.refunder.run(engine, work, call).await,
            Task::Checkout(call) => self.sessions.run(engine, work, call).await,
            Task::Timer(timer) => self.timers.run(engine, work, timer).await,
            Task::Unreadable { kind, payload } => Err(unreadable(*kind, payload)),
        }
    }

    async fn dead(&self, engine: &Engine, job: &Job, reason: DeadReason) -> ChangeSet {
        match &job.task {
            Task::Send { notice } => self.sender.abandon(engine, job, notice, reason).await,
            Task::Refund(call) => refund::abandon(engine, &self.orders, job, call, reason).await,
            Task::Checkout(call) => self.sessions.abandon(engine, job, call, reason).await,
            Task::Deliver { route } => self.deliverer.abandon(engine, job, route, reason).await,
            Task::Settle(_) | Task::Notify(_) | Task::Fetch(_) | Task::Timer(_) | Task::Unreadable { .. } => {
                ChangeSet::end(job.lease, End::Dead(reason), engine.node.now())
            }
        }
    }

    async fn plan(&self, engine: &Engine) -> sekisho_store::Result<()> {
        self.timers.plan(engine).await
    }

    fn unserved(&self, lane: &Lane) -> Option<DeadReason> {
        let (reason, what) = match (lane.channel(), lane.route()) {
            (Some(channel), _) if !self.sender.serves(lane) => {
                ("channel_removed", format!("channel {channel}"))
            }
            (_, Some(route)) if !self.deliverer.serves(lane) => ("route_removed", format!("route {route}")),
            _ => return None,
        };
        Some(DeadReason::terminal(reason, format!("no node knows the {what} any more")))
    }
}

/// Another version queued it.
fn unreadable(kind: JobKind, payload: &str) -> Failure {
    match kind {
        JobKind::Timer => Failure::terminal("unknown_timer", format!("no timer is called {payload}")),
        JobKind::Fetch => Failure::terminal("unknown_fetch", format!("unknown kind of fetch: {payload}")),
        JobKind::Settle
        | JobKind::Deliver
        | JobKind::Notify
        | JobKind::Send
        | JobKind::Refund
        | JobKind::Checkout => Failure::terminal("unknown_task", format!("unknown kind of work: {payload}")),
    }
}

fn unavailable(error: sekisho_store::Error) -> Failure {
    Failure::transient("store_unavailable", error.chain())
}

/// Why a run could not write what it decided, when no rule refuses it.
fn unwritten(error: TransactError<Infallible>, contended: &str) -> Failure {
    match error {
        TransactError::Refused(never) => match never {},
        TransactError::Contended | TransactError::Lost => Failure::transient("contended", contended),
        TransactError::Store(error) => unavailable(error),
    }
}

/// Tells operators, as an event like any other.
async fn announce(base: &Base, alert: Alert) {
    let at = base.node.now();
    let event = alert.announcement(at).arrival(base.node.next_seq(at));
    if let Err(error) = base.store.admit(Arc::new([event]), None).await {
        base.health.store_failed(&error);
    }
}

#[cfg(test)]
mod tests {
    use sekisho_core::language::Language;
    use sekisho_store::memory::MemoryStore;

    use super::*;
    use crate::env::Env;
    use crate::node::{Health, Node};
    use crate::telemetry::Tracer;
    use crate::view::words;

    #[tokio::test]
    async fn h1_every_lane_has_words_in_both_languages() {
        let (store, health) = (Arc::new(MemoryStore::default()), Arc::new(Health::default()));
        let node = Node::join(Arc::clone(&store) as _, Arc::clone(&health), Env::system()).await.unwrap();
        let base = Base {
            store,
            node: Arc::new(node),
            health,
            metrics: Arc::default(),
            tracer: Arc::new(Tracer::off()),
        };
        let parts = Parts { works: true, schedules: true };
        let (engine, _) = open(&Config::default(), parts, base).unwrap();
        // Those that the configuration makes, and the one that has a queue of its own.
        let more = [Lane::to_route("app"), Lane::by_channel("mail"), Lane::settle()];
        for lane in engine.lanes.names.iter().chain(&more) {
            assert!(!words::lane(lane, Language::En).contains(':'), "no English for {}", lane.0);
            assert!(!words::lane(lane, Language::Ja).is_ascii(), "no Japanese for {}", lane.0);
        }
    }
}
