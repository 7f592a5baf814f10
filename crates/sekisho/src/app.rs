//! One running process: opens the store, joins it, starts the roles asked for, and stops them in order.

mod beginning;
mod buried;
mod commands;
mod stage;

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use sekisho_core::Secret;
use sekisho_core::alert::AlertPolicy;
use sekisho_core::target::TargetPolicy;
use sekisho_store::{Access, Store};
use tokio::net::TcpListener;

use crate::api::Auth;
use crate::attempts::Attempts;
use crate::checkpoint::committer::Committer;
use crate::checkpoint::rejection::Recorder;
use crate::checkpoint::server::Front;
use crate::checkpoint::{Checkpoint, gate, server};
use crate::config::Config;
use crate::effects::otlp::Otlp;
use crate::effects::sentry::{self, Sentry};
use crate::engine::dispatcher::Dispatcher;
use crate::engine::{Base, Engine, Parts};
use crate::env::Env;
use crate::jobs::Jobs;
use crate::jobs::meters::MeterWriter;
use crate::node::{Health, Node};
use crate::telemetry::{Metrics, Reporter, Tracer};
use crate::watch::OrderWatch;
use crate::{acts, api, console, customer, jobs, pages};

use beginning::{bind, link_keys, warn_of_names, when_the_database_is_there};
use stage::TaskStage;

pub use commands::{Needs, examine, migrate, open_api};

/// What a process does. Several processes may share one PostgreSQL, each with its roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ProcessRole {
    /// Receives webhooks.
    Gateway,
    /// Settles events and delivers them.
    Worker,
    /// Fires timers and schedules, and keeps the store in shape.
    Scheduler,
    /// Answers the API, and people at the console.
    Console,
    /// Shows customers the pages of their orders.
    Customer,
}

impl ProcessRole {
    pub const ALL: [Self; 5] = [Self::Gateway, Self::Worker, Self::Scheduler, Self::Console, Self::Customer];
}

pub struct App {
    pub address: SocketAddr,
    /// How somebody becomes the first admin of the console, while there is nobody.
    pub first_invite: Option<String>,
    running: Process,
}

/// A process at work, whether or not it listens.
pub struct Process {
    /// What answers requests, over the network or by whoever holds it.
    pub front: Arc<Front>,
    stages: Vec<TaskStage>,
    env: Env,
    health: Arc<Health>,
    stop_within: Duration,
}

/// A process that is put together and has not begun.
pub struct Assembled {
    node: Arc<Node>,
    engine: Arc<Engine>,
    jobs: Arc<Jobs>,
    parts: Parts,
    committer: Arc<Committer>,
    recorder: Recorder,
    front: Arc<Front>,
    watch: Option<OrderWatch>,
    first_invite: Option<String>,
    collector: Option<Otlp>,
    /// Errors of this process, and where they go.
    reporting: Option<(Arc<Reporter>, Sentry)>,
    alerts: AlertPolicy,
    targets: TargetPolicy,
}

/// What the process exits with when it could not hand everything back at a stop.
const EXIT_UNFINISHED: i32 = 1;
/// At a stop, for what must be written after the last request and the last run have ended.
const LAST_WRITES: Duration = Duration::from_secs(5);
/// Connections that may wait to be accepted: a burst of them is not turned away.
const BACKLOG: u32 = 4_096;

impl App {
    /// `key` opens the API to commands on this machine.
    pub async fn start(
        mut config: Config,
        roles: &[ProcessRole],
        key: Option<Secret>,
        reporter: Option<Arc<Reporter>>,
    ) -> anyhow::Result<Self> {
        // Another part of the process may have installed it already; either way it is ring.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (address, no_port) =
            (config.server.listen, || format!("can't listen on {}", config.server.listen));
        // Order matters: whoever finds the port taken leaves no empty store behind.
        let socket = bind(address).with_context(no_port)?;
        let access = Access::Serve { allow_unsafe_durability: config.store.allow_unsafe_durability };
        let open = async || Ok(sekisho_store::open(&config.store.url, access).await?);
        let store = when_the_database_is_there(open).await?;
        let listener = socket.listen(BACKLOG).with_context(no_port)?;
        // Where it really is, also when the system chose the port.
        config.server.listen = listener.local_addr()?;
        let sentry = config.telemetry.sentry_dsn.clone();
        let mut assembled = Self::assemble(config, store, Env::system(), roles, key).await?;
        if let Some((dsn, reporter)) = sentry.zip(reporter) {
            let settings = sentry::Settings { dsn, allow_private: true };
            let sentry = Sentry::new(&settings, &assembled.node.env).context("telemetry.sentry_dsn")?;
            assembled.reporting = Some((reporter, sentry));
        }
        assembled.serve(listener)
    }

    /// Joins the store and puts everything together. Nothing runs yet, and nobody is let in.
    pub async fn assemble(
        mut config: Config,
        store: Arc<dyn Store>,
        env: Env,
        roles: &[ProcessRole],
        key: Option<Secret>,
    ) -> anyhow::Result<Assembled> {
        let health = Arc::new(Health::default());
        let metrics = Arc::new(Metrics::default());
        let join = async || Ok(Node::join(Arc::clone(&store), Arc::clone(&health), env.clone()).await?);
        let node = Arc::new(when_the_database_is_there(join).await?);
        let keys = async || Ok(link_keys(&*store, &config, node.env.wall()).await?);
        let keys = when_the_database_is_there(keys).await?;
        config.orders.links = config.links(keys);
        let parts = Parts {
            works: roles.contains(&ProcessRole::Worker),
            schedules: roles.contains(&ProcessRole::Scheduler),
        };
        let installation =
            async || Ok(acts::make_installation(&*store, env.chance(), node.env.wall()).await?);
        let installation = when_the_database_is_there(installation).await?;
        let collector = config.telemetry.collector().map(|settings| Otlp::new(&settings, &env));
        let collector = collector.transpose().context("telemetry.otlp")?;
        let sample = collector.is_some().then_some(config.telemetry.sample);
        let tracer = Arc::new(Tracer::new(installation, sample, config.log.events, Arc::clone(&metrics)));
        let base = Base {
            store: Arc::clone(&store),
            node: Arc::clone(&node),
            health: Arc::clone(&health),
            metrics: Arc::clone(&metrics),
            tracer: Arc::clone(&tracer),
        };
        let (engine, jobs) = jobs::open(&config, parts, base)?;

        let (mut first_invite, mut watch) = (None, None);
        if roles.contains(&ProcessRole::Console) {
            warn_of_names(&*store, &config).await;
        }
        let (alerts, targets) = (config.alerts.clone(), config.targets);
        let recorder = Recorder::default();
        let attempts = Arc::new(Attempts::new(env.clone(), Arc::clone(&metrics), recorder.clone()));
        let auth = Auth::new(&config.keys, key.as_ref(), Arc::clone(&store), Arc::clone(&attempts));
        let auth = Arc::new(auth);
        let mut router = pages::router(pages::HealthPages {
            health: Arc::clone(&health),
            metrics: Arc::clone(&metrics),
            readers: config.metrics,
            auth: Arc::clone(&auth),
        });
        if roles.contains(&ProcessRole::Console) {
            let invite = async || Ok(acts::first_invite(&*store, node.env.wall()).await?);
            first_invite = when_the_database_is_there(invite).await?;
            let own = OrderWatch::new(&config, &engine);
            let holds = Some(own.holds.clone());
            watch = Some(own);
            router = router.merge(api::router(
                api::ApiSettings { holds, ..api::ApiSettings::of(&config, jobs.reconciler()) },
                auth,
                Arc::clone(&store),
                Some(Arc::clone(&engine)),
            ));
            router = router.merge(console::router(
                &config,
                Arc::clone(&store),
                Arc::clone(&engine),
                Arc::clone(&health),
                Arc::clone(&metrics),
                attempts,
                jobs.reconciler(),
            ));
        }
        if roles.contains(&ProcessRole::Customer) && config.pages.url.is_some() {
            router = router.merge(customer::router(
                &config,
                Arc::clone(&store),
                Arc::clone(&node),
                metrics.orders.clone(),
            ));
        }
        let gate = gate::open(&config.gate, &node.env).context("the address of Redis can't be used")?;
        let committer = Arc::new(Committer::new(gate, config.admission.clone(), Arc::clone(&engine)));
        if !roles.contains(&ProcessRole::Gateway) {
            config.sources.clear();
        }
        let checkpoint = Checkpoint::new(
            config,
            Arc::clone(&node),
            Arc::clone(&committer),
            recorder.clone(),
            Arc::clone(&metrics),
            tracer,
        );
        let front = Arc::new(Front { checkpoint, pages: router });
        Ok(Assembled {
            node,
            engine,
            jobs,
            parts,
            committer,
            recorder,
            front,
            watch,
            first_invite,
            collector,
            reporting: None,
            alerts,
            targets,
        })
    }

    pub async fn stop(self) {
        self.running.stop().await;
    }
}

impl Process {
    fn listen(&mut self, listener: TcpListener) {
        let (front, env) = (Arc::clone(&self.front), self.env.clone());
        let (settings, connections) =
            (front.checkpoint.server.clone(), front.checkpoint.metrics.connections.clone());
        let mut stage = TaskStage::new(&self.env);
        stage.start("server", |stop| server::run(listener, settings, connections, front, env, stop));
        // Order matters: whoever stops lets nobody in first.
        self.stages.insert(0, stage);
    }

    /// Stops taking work in, finishes what is under way, leaves the store. If the store does not let it in time, the
    /// process ends here and now: what is ours in it is freed by others, or at the next start.
    pub async fn stop(self) {
        self.health.stop();
        let mut stages = pin!(async {
            for stage in self.stages {
                stage.stop().await;
            }
        });
        if tokio::time::timeout(self.stop_within, stages.as_mut()).await.is_err() {
            tracing::error!(
                error_type = "stop_timeout",
                "stopped without handing everything back: the store did not answer in time; nothing is lost, the rest is \
                 taken up by another node or at the next start"
            );
            self.env.exit(EXIT_UNFINISHED);
        }
    }
}

impl Assembled {
    /// Starts the work, and lets requests in over the network.
    pub fn serve(mut self, listener: TcpListener) -> anyhow::Result<App> {
        let (address, first_invite) = (listener.local_addr()?, self.first_invite.take());
        let mut running = self.start();
        running.listen(listener);
        Ok(App { address, first_invite, running })
    }

    /// Starts the work.
    pub fn start(self) -> Process {
        let Self {
            node,
            engine,
            jobs,
            parts,
            committer,
            recorder,
            front,
            watch,
            collector,
            reporting,
            alerts,
            targets,
            ..
        } = self;
        let env = node.env.clone();
        let stage = || TaskStage::new(&env);
        let (mut intake, mut settling) = (stage(), stage());
        let (mut work, mut ends, mut beat, mut telling) = (stage(), stage(), stage(), stage());
        let (tracer, metrics) = (Arc::clone(&engine.tracer), Arc::clone(&engine.metrics));
        if let Some(collector) = collector {
            let (store, tracing) = (Arc::clone(&engine.store), Arc::clone(&tracer));
            work.start("traces of dead letters", |stop| buried::run(store, tracing, stop));
            telling.start("exporter", |stop| async move { tracer.export(collector, stop).await });
        }
        if let Some((reporter, sentry)) = reporting {
            telling.start("reporter", |stop| reporter.run(sentry, metrics, stop));
        }
        // Requests have this time, and runs after them.
        let stop_within = 2 * front.checkpoint.server.shutdown_timeout + LAST_WRITES;
        let (store, health) = (Arc::clone(&engine.store), Arc::clone(&engine.health));
        for _ in 0..store.committers().count {
            let committer = Arc::clone(&committer);
            intake.start("committer", |stop| async move { committer.run(stop).await });
        }
        if let Some(watch) = watch {
            intake.start("watch", |stop| watch.run(stop));
        }
        let recording = Arc::clone(&node);
        intake.start("recorder", |stop| recorder.run(store, recording, stop));
        if parts.works {
            let engine = Arc::clone(&engine);
            settling.start("settler", |stop| jobs.settle(engine, stop));
        }
        let meters = MeterWriter::new(engine.base(), alerts.every_ms);
        ends.start("meters", |stop| meters.run(stop));
        if parts.schedules {
            let engine = Arc::clone(&engine);
            work.start("sampler", |stop| jobs::sampler::run(engine, targets, stop));
        }
        if parts.works || parts.schedules {
            let dispatcher = Dispatcher(Arc::clone(&engine));
            work.start("dispatcher", |stop| dispatcher.run(stop));
            ends.start("completer", |stop| async move { engine.completer.run(stop).await });
        }
        beat.start("node", |stop| async move { node.run(stop).await });
        let stages = vec![intake, settling, work, ends, beat, telling];
        Process { front, stages, env, health, stop_within }
    }
}

#[cfg(test)]
mod tests;
