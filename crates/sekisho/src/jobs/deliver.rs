//! Delivering an event to the app: what is sent, how the answer is judged, and how the run ends.

use std::sync::Arc;

use sekisho_core::change::ChangeSet;
use sekisho_core::delivery::{Route, Signer, judge, outgoing};
use sekisho_core::event::Stored;
use sekisho_core::job::{Attempt, Class, DeadReason, End, Job, Lane, Outcome, Timer, Wave, WaveCause};
use sekisho_core::notification::Alert;
use sekisho_core::notification::alert::News;
use sekisho_core::queue::breaker::Policy;
use sekisho_core::queue::{self, Breaker, Failure, Retry, RetryDead};
use sekisho_core::traceparent::Traceparent;

use super::sources::Sources;
use crate::config::{self, Config};
use crate::effects::deliver::Client;
use crate::engine::lane::LanePolicy;
use crate::engine::{Engine, Ran, Work};
use crate::env::Env;
use crate::transact;

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
    retry_dead: RetryDead,
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
        let target = self.find(route).ok_or_else(gone)?;
        let event =
            work.event.as_ref().ok_or_else(|| Failure::terminal("event_missing", "it has no event"))?;
        if let Some(why) = target.route.bars(self.sources.origin(event), event) {
            return Err(Failure::terminal("not_for_route", why));
        }
        engine.metrics.picked_up(work.job.task.kind().name(), work.waited(engine.node.now()));
        let trace = work.traceparent(&engine.tracer);
        let (judged, attempt) = target.deliver(engine, &work.job, event, trace).await;
        target.judge(engine, judged.as_ref().err());
        let end = target.end(engine, work, &judged);
        let mut set = ChangeSet::end(work.job.lease, end, engine.node.now()).with_attempt(attempt);
        target.follow(engine, work, event, &mut set);
        Ok(Ran::Ended(set))
    }

    /// The end of a job that becomes a dead letter without an attempt, and what is told of it.
    pub async fn abandon(&self, engine: &Engine, job: &Job, route: &str, reason: DeadReason) -> ChangeSet {
        let at = engine.node.now();
        let events = engine.store.load_events(job.event.into_iter().collect()).await.unwrap_or_default();
        let alert = events.first().and_then(|event| Alert::of_delivery(job.lease.job, route, event, &reason));
        if let (Class::Transient, Some(target)) = (reason.class, self.find(route)) {
            engine.lanes.breaker(&target.lane).note_dead();
        }
        let events = alert.map(|alert| alert.announcement(at).arrival(engine.node.next_seq(at)));
        let end = ChangeSet::end(job.lease, End::Dead(reason), at);
        ChangeSet { events: events.into_iter().collect(), ..end }
    }

    fn find(&self, route: &str) -> Option<&Target> {
        self.targets.iter().find(|target| target.route.name == route)
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
            retry_dead: config.retry_dead,
            policy: LanePolicy { concurrency: config.concurrency, rate, breaker },
        })
    }

    /// What the app's answer means, and the attempt as it is kept.
    async fn deliver(
        &self,
        engine: &Engine,
        job: &Job,
        event: &Stored,
        trace: Option<Traceparent>,
    ) -> (Result<(), Failure>, Attempt) {
        let node = &engine.node;
        let (message, at) = (job.lease.job, node.now());
        let out = outgoing(&self.route, &self.signer, event, message, job.lease.attempt, trace, at);
        let (answer, took) = self.client.post(&out.headers, out.body).await;
        engine.metrics.delivery_seconds.observe(took.as_secs_f64());
        let judged = judge(&answer, node.now());
        let attempt = Attempt::of(answer.as_ref().ok(), judged.as_ref().err(), at, took.as_millis() as i64);
        (judged, attempt)
    }

    /// Tells the breaker how it went, and operators if it opened or closed.
    fn judge(&self, engine: &Arc<Engine>, failure: Option<&Failure>) {
        // An answer that refuses this one message says that the destination lives.
        let well = failure.is_none_or(|failure| !failure.blames_destination);
        let Some(breaker) = engine.lanes.breaker(&self.lane).judge(well, engine.node.now()) else { return };
        let route = self.route.name.clone();
        tracing::warn!(
            error_type = "breaker_changed",
            route,
            state = breaker.state(),
            "the breaker of a route changed"
        );
        let detail = failure.map(|failure| failure.error.clone());
        let (own, lane) = (Arc::clone(engine), self.lane.clone());
        engine.spawn(async move {
            let tell = |before: &Breaker| {
                Some(match &detail {
                    Some(error) if breaker.is_open() => {
                        let detail = format!("it failed too often in a row, the last time: {error}");
                        Alert::of_route(&route, News::RoutePaused, breaker.since(), &detail)
                    }
                    _ => {
                        let detail = "it answers again; what waited for it is delivered";
                        Alert::of_route(&route, News::RouteResumed, before.since(), detail)
                    }
                })
            };
            own.write_breaker_and_tell(&lane, &breaker, tell).await;
        });
    }

    fn end(&self, engine: &Engine, work: &Work, judged: &Result<(), Failure>) -> End {
        let (job, now) = (&work.job, engine.node.now());
        match judged {
            Ok(()) => End::Done(Outcome::SUCCESS),
            Err(failure) if work.is_probe => {
                queue::after_probe(failure, &engine.lanes.breaker(&self.lane).current(), now)
            }
            Err(failure) => {
                queue::after(failure, &self.retry, job.tries(), job.lease.job.as_i64() as u64, now)
            }
        }
    }

    /// What else an end leads to: a dead letter is told, and an answer brings those back that died before.
    fn follow(&self, engine: &Arc<Engine>, work: &Work, event: &Stored, set: &mut ChangeSet) {
        let breaker = engine.lanes.breaker(&self.lane);
        match set.ends.first().map(|ended| &ended.end) {
            Some(End::Dead(reason)) => {
                if reason.class == Class::Transient {
                    breaker.note_dead();
                }
                let alert = Alert::of_delivery(work.id(), &self.route.name, event, reason);
                let arrival =
                    alert.map(|alert| alert.announcement(set.at).arrival(engine.node.next_seq(set.at)));
                set.events.extend(arrival);
            }
            Some(End::Done(_)) if breaker.brings_back() => self.bring_back(engine),
            _ => {}
        }
    }

    /// Begins a wave of dead letters. If this is lost, the next hour does it.
    fn bring_back(&self, engine: &Arc<Engine>) {
        if self.retry_dead.is_off() {
            return;
        }
        let at = engine.node.now();
        let wave = Some(Wave::new(WaveCause::Answered, at));
        let timer = Timer::RetryDead { route: self.route.name.clone(), wave };
        let job = timer.job(engine.node.next_seq(at), at);
        let own = Arc::clone(engine);
        engine.spawn(async move {
            if let Err(error) = transact::queue(&*own.store, vec![job], at).await {
                own.health.store_failed(&error);
            }
        });
    }
}
