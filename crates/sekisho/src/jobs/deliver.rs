//! Delivering an event to the app: what is sent, how the answer is judged, and how the run ends.

use std::sync::Arc;

use sekisho_core::change::ChangeSet;
use sekisho_core::delivery::{Route, Signer, judge, outgoing};
use sekisho_core::event::Stored;
use sekisho_core::job::{Attempt, End, Job, Lane, Outcome};
use sekisho_core::queue::breaker::Policy;
use sekisho_core::queue::{self, Failure, Retry};

use super::sources::Sources;
use crate::config::{self, Config};
use crate::effects::deliver::Client;
use crate::engine::lane::LanePolicy;
use crate::engine::{Engine, Ran, Work};
use crate::env::Env;

pub struct Deliverer {
    /// In the order of the configuration.
    targets: Vec<Target>,
    sources: Arc<Sources>,
}

/// One destination.
struct Target {
    lane: Lane,
    route: Route,
    client: Client,
    signer: Arc<Signer>,
    retry: Retry,
    policy: LanePolicy,
}

impl Deliverer {
    pub fn new(config: &Config, sources: Arc<Sources>, env: &Env) -> anyhow::Result<Self> {
        let targets = config.routes.iter().map(|route| Target::new(route, env));
        let targets = targets.collect::<anyhow::Result<_>>()?;
        Ok(Self { targets, sources })
    }

    pub fn lanes(&self) -> impl Iterator<Item = (Lane, LanePolicy)> {
        self.targets.iter().map(|target| (target.lane.clone(), target.policy.clone()))
    }

    pub fn serves(&self, lane: &Lane) -> bool {
        self.targets.iter().any(|target| target.lane == *lane)
    }

    /// One attempt. The destination's breaker hears how it went.
    pub async fn run(&self, engine: &Arc<Engine>, work: &Work, route: &str) -> Result<Ran, Failure> {
        let gone = || Failure::terminal("route_removed", "the configuration has no such route any more");
        let target = self.targets.iter().find(|target| target.route.name == route).ok_or_else(gone)?;
        let event =
            work.event.as_ref().ok_or_else(|| Failure::terminal("event_missing", "it has no event"))?;
        if let Some(why) = target.route.bars(self.sources.origin(event), event) {
            return Err(Failure::terminal("not_for_route", why));
        }
        engine.metrics.picked_up(work.job.task.kind().name(), work.waited(engine.node.now()));
        let (set, well) = target.deliver(engine, &work.job, event).await;
        if let Some(breaker) = engine.lanes.breaker(&target.lane).judge(well, engine.node.now()) {
            tracing::warn!(route, state = breaker.state(), "the breaker of a route changed");
            let (own, lane) = (Arc::clone(engine), target.lane.clone());
            engine.spawn(async move { own.write_breaker(&lane, &breaker).await });
        }
        Ok(Ran::Ended(set))
    }
}

impl Target {
    fn new(config: &config::Route, env: &Env) -> anyhow::Result<Self> {
        let mut client = Client::new(config.url.as_str(), config.timeout, config.allow_private)?;
        if let Some(way) = env.outside.exchange() {
            client = client.by(way);
        }
        let (rate, breaker): (_, Policy) = (config.rate, config.breaker.clone());
        Ok(Self {
            lane: Lane::to_route(&config.route.name),
            route: config.route.clone(),
            client,
            signer: Arc::clone(&config.signer),
            retry: config.retry.clone(),
            policy: LanePolicy { concurrency: config.concurrency, rate, breaker },
        })
    }

    /// Says how the job ends, and whether the destination is well.
    async fn deliver(&self, engine: &Engine, job: &Job, event: &Stored) -> (ChangeSet, bool) {
        let node = &engine.node;
        let (message, at) = (job.lease.job, node.now());
        let out = outgoing(&self.route, &self.signer, event, message, job.lease.attempt, at);
        let (answer, took) = self.client.post(&out.headers, out.body).await;
        engine.metrics.delivery_seconds.observe(took.as_secs_f64());
        let judged = judge(&answer, node.now());
        let (end, well) = match &judged {
            Ok(()) => (End::Done(Outcome::SUCCESS), true),
            Err(failure) => {
                let end =
                    queue::after(failure, &self.retry, job.tries(), message.as_i64() as u64, node.now());
                // An answer that refuses this one message says that the destination lives.
                (end, !failure.blames_destination)
            }
        };
        let (answer, failure) = (answer.as_ref().ok(), judged.as_ref().err());
        let attempt = Attempt::of(answer, failure, at, took.as_millis() as i64);
        (ChangeSet::end(job.lease, end, node.now()).with_attempt(attempt), well)
    }
}
