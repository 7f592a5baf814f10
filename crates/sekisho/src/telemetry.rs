//! Logs for people and programs, figures for Prometheus, spans for a collector, errors for Sentry. No secret and no full mail
//! address is ever a field.
//!
//! - [`line`] how a log line is written · [`fields`] what it says · [`context`] what it is about
//! - [`tracer`] spans on their way to a collector · [`reporter`] errors on their way to Sentry

mod context;
mod fields;
mod line;
mod meters;
mod orders;
mod reporter;
mod stock;
mod tracer;

use std::io::IsTerminal;
use std::panic;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::{Log, LogFormat};
pub use context::{LineContext, set_node};
use line::{JsonLine, PrettyLine};
pub use meters::{MeteredRun, Meters, SourceCounts};
use reporter::ReportLayer;
pub use reporter::Reporter;
pub use stock::{LaneStock, Stock, StockSample};
pub use tracer::Tracer;

pub use orders::OrderFigures;

/// Starts logging to standard error, so that standard output stays for answers. With a reporter, errors are handed to it, too.
pub fn start(log: Log, reporter: Option<Arc<Reporter>>) {
    let terminal = std::io::stderr().is_terminal();
    let json = match log.format {
        LogFormat::Json => true,
        LogFormat::Pretty => false,
        LogFormat::Auto => !terminal,
    };
    let registry = tracing_subscriber::registry().with(log.level).with(reporter.map(ReportLayer));
    // A second start, in a test, keeps the first.
    let started = if json {
        let layer = tracing_subscriber::fmt::layer().event_format(JsonLine);
        registry.with(layer.with_writer(std::io::stderr)).try_init()
    } else {
        let layer = tracing_subscriber::fmt::layer().event_format(PrettyLine).with_ansi(terminal);
        registry.with(layer.with_writer(std::io::stderr)).try_init()
    };
    if started.is_ok() && json {
        panic::set_hook(Box::new(tell_panic));
    }
}

/// A panic is a line like any other.
fn tell_panic(panic: &panic::PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string);
    let error = panic.payload_as_str();
    tracing::error!(
        error_type = "panicked",
        error,
        place,
        "the program panicked while it worked on something"
    );
}

#[derive(Clone, Debug, Default, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct ResultLabels {
    pub result: &'static str,
}

/// Buckets of how long something took.
const SECONDS: [f64; 14] =
    [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 1.5, 5.0, 10.0];

#[derive(Clone, Debug, Default, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct RequestLabels {
    pub source: String,
    pub outcome: &'static str,
}

#[derive(Clone, Debug, Default, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct SourceLabels {
    pub source: String,
}

#[derive(Clone, Debug, Default, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct RejectionLabels {
    pub source: String,
    pub reason: &'static str,
}

#[derive(Clone, Debug, Default, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct JobLabels {
    pub lane: String,
    pub result: &'static str,
}

#[derive(Clone, Debug, Default, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct NoticeLabels {
    pub channel: String,
    pub status: &'static str,
}

#[derive(Clone, Debug, Default, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct KindLabels {
    pub kind: &'static str,
}

#[derive(Clone, Debug, Default, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct OutcomeLabels {
    pub outcome: &'static str,
}

#[derive(Clone, Debug, Default, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct RunLabels {
    pub kind: &'static str,
    pub result: &'static str,
    /// Whether it was a first try: `true` or `false`.
    pub first: &'static str,
}

#[derive(Clone, Debug, Default, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct StageLabels {
    pub stage: &'static str,
}

#[derive(Clone, Debug, Default, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct SendLabels {
    pub channel: String,
    pub result: &'static str,
}

/// The figures of one process. Owned, not global, so that tests can have several.
pub struct Metrics {
    registry: Registry,
    pub requests: Family<RequestLabels, Counter>,
    pub events: Family<RequestLabels, Counter>,
    pub ids_reused: Family<SourceLabels, Counter>,
    pub rejections: Family<RejectionLabels, Counter>,
    pub failed_attempts: Family<KindLabels, Counter>,
    pub acknowledge_seconds: Histogram,
    pub commit_seconds: Histogram,
    pub batch_events: Histogram,
    pub waiting_events: Gauge,
    pub connections: Gauge,
    pub gate_hints: Counter,
    pub gate_confirmed: Counter,
    pub ready: Gauge,
    pub jobs: Family<JobLabels, Counter>,
    pub notices: Family<NoticeLabels, Counter>,
    pub delivery_seconds: Histogram,
    pub pick_up_seconds: Family<KindLabels, Histogram, fn() -> Histogram>,
    pub reconcile: Reconcile,
    pub orders: OrderFigures,
    pub spans: Family<ResultLabels, Counter>,
    pub reports: Family<ResultLabels, Counter>,
    pub published: Family<OutcomeLabels, Counter>,
    pub runs: Family<RunLabels, Counter>,
    pub end_to_end_seconds: Family<StageLabels, Histogram, fn() -> Histogram>,
    pub sends: Family<SendLabels, Counter>,
    pub stock: Stock,
    /// What targets and alerts are made from.
    pub meters: Meters,
}

/// What comparing sources with their providers found.
#[derive(Default)]
pub struct Reconcile {
    pub listed: Family<SourceLabels, Counter>,
    pub missing: Family<SourceLabels, Counter>,
    pub differing: Family<SourceLabels, Counter>,
    pub completeness: Family<SourceLabels, Gauge>,
}

impl Reconcile {
    fn register(&self, registry: &mut Registry) {
        registry.register("reconcile_listed", "Events in providers' lists", self.listed.clone());
        registry.register("reconcile_missing", "Listed events that had not come", self.missing.clone());
        registry.register(
            "reconcile_differing",
            "Objects of providers that did not say what we say",
            self.differing.clone(),
        );
        registry.register(
            "reconcile_completeness_percent",
            "Of a hundred events that the provider listed in the last 31 days, how many are here",
            self.completeness.clone(),
        );
    }
}

impl Default for Metrics {
    fn default() -> Self {
        const END_TO_END: [f64; 15] =
            [0.005, 0.02, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 8.0, 10.0, 30.0, 60.0, 300.0, 1_800.0, 3_600.0];
        const EVENTS: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 256.0, 1000.0];
        let mut metrics = Self {
            registry: Registry::with_prefix("sekisho"),
            requests: Family::default(),
            events: Family::default(),
            ids_reused: Family::default(),
            rejections: Family::default(),
            failed_attempts: Family::default(),
            acknowledge_seconds: Histogram::new(SECONDS),
            commit_seconds: Histogram::new(SECONDS),
            batch_events: Histogram::new(EVENTS),
            waiting_events: Gauge::default(),
            connections: Gauge::default(),
            gate_hints: Counter::default(),
            gate_confirmed: Counter::default(),
            ready: Gauge::default(),
            jobs: Family::default(),
            notices: Family::default(),
            delivery_seconds: Histogram::new(SECONDS),
            pick_up_seconds: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            reconcile: Reconcile::default(),
            orders: OrderFigures::default(),
            spans: Family::default(),
            reports: Family::default(),
            published: Family::default(),
            runs: Family::default(),
            end_to_end_seconds: Family::new_with_constructor(|| Histogram::new(END_TO_END)),
            sends: Family::default(),
            stock: Stock::default(),
            meters: Meters::default(),
        };
        let it = &mut metrics;
        let registry = &mut it.registry;
        registry.register("requests", "Webhook requests", it.requests.clone());
        registry.register("events", "Events in these requests", it.events.clone());
        registry.register(
            "ids_reused",
            "Accepted events whose id had come before with another body",
            it.ids_reused.clone(),
        );
        registry.register("rejections", "Rejected requests", it.rejections.clone());
        registry.register(
            "failed_attempts",
            "Wrong API keys and passwords, doubled login headers",
            it.failed_attempts.clone(),
        );
        registry.register_with_unit(
            "acknowledge",
            "From the end of the request to its acknowledgement",
            Unit::Seconds,
            it.acknowledge_seconds.clone(),
        );
        registry.register_with_unit(
            "commit",
            "Durable commits of events",
            Unit::Seconds,
            it.commit_seconds.clone(),
        );
        registry.register(
            "batch_events",
            "Events given to the store together; SQLite also commits together what comes at once",
            it.batch_events.clone(),
        );
        registry.register("waiting_events", "Events that wait for the store", it.waiting_events.clone());
        registry.register("connections", "Open connections", it.connections.clone());
        registry.register("gate_hints", "Events that the gate took for duplicates", it.gate_hints.clone());
        registry.register(
            "gate_confirmed",
            "Events that the gate took for duplicates, confirmed by the store",
            it.gate_confirmed.clone(),
        );
        registry.register("ready", "1 when events can be stored", it.ready.clone());
        registry.register("jobs", "Runs of jobs", it.jobs.clone());
        registry.register("notices", "Notices that reached their final status", it.notices.clone());
        registry.register_with_unit(
            "delivery",
            "Calls to destinations, from resolving the name to the end of the answer",
            Unit::Seconds,
            it.delivery_seconds.clone(),
        );
        registry.register_with_unit(
            "pick_up",
            "From when a job was due, and its commit known, to its start",
            Unit::Seconds,
            it.pick_up_seconds.clone(),
        );
        registry.register("spans", "Spans for the collector", it.spans.clone());
        registry.register("reports", "Errors of this program for Sentry", it.reports.clone());
        it.reconcile.register(&mut it.registry);
        it.orders.register(&mut it.registry);
        let registry = &mut it.registry;
        registry.register(
            "published",
            "Events stored or known, and requests answered 503",
            it.published.clone(),
        );
        registry.register("runs", "Runs of jobs, by their kind", it.runs.clone());
        registry.register_with_unit(
            "end_to_end",
            "From the receipt of an event to its settling and to each delivery",
            Unit::Seconds,
            it.end_to_end_seconds.clone(),
        );
        registry.register("sends", "Tries to send a notice", it.sends.clone());
        it.stock.register(&mut it.registry);
        metrics
    }
}

impl Metrics {
    /// An event was settled or delivered, so long after it came.
    pub fn arrived(&self, stage: &'static str, ms: i64) {
        match stage {
            "settled" => self.meters.settled(ms),
            _ => self.meters.delivered(ms),
        }
        self.end_to_end_seconds.get_or_create(&StageLabels { stage }).observe(ms as f64 / 1_000.0);
    }

    pub fn picked_up(&self, kind: &'static str, waited: Duration) {
        self.pick_up_seconds.get_or_create(&KindLabels { kind }).observe(waited.as_secs_f64());
    }

    /// With one of each kind counted, so that all are written, with their labels: for the reference. A figure that is
    /// added is added here, too; otherwise this does not compile.
    pub fn with_one_of_each() -> Self {
        let metrics = Self::default();
        let Self {
            registry: _,
            requests,
            events,
            ids_reused,
            rejections,
            failed_attempts,
            // Without labels they are written from the start.
            acknowledge_seconds: _,
            commit_seconds: _,
            batch_events: _,
            waiting_events: _,
            connections: _,
            gate_hints: _,
            gate_confirmed: _,
            ready: _,
            jobs,
            notices,
            delivery_seconds: _,
            pick_up_seconds,
            reconcile: Reconcile { listed, missing, differing, completeness },
            orders,
            spans,
            reports,
            published,
            runs,
            end_to_end_seconds,
            sends,
            stock,
            // Written down in the store, not here.
            meters: _,
        } = &metrics;
        for counted in [spans, reports] {
            drop(counted.get_or_create(&ResultLabels::default()));
        }
        orders.have_one_of_each();
        stock.set_one_of_each();
        drop(published.get_or_create(&OutcomeLabels::default()));
        drop(runs.get_or_create(&RunLabels::default()));
        drop(end_to_end_seconds.get_or_create(&StageLabels::default()));
        drop(sends.get_or_create(&SendLabels::default()));
        for counted in [requests, events] {
            drop(counted.get_or_create(&RequestLabels::default()));
        }
        for counted in [ids_reused, listed, missing, differing] {
            drop(counted.get_or_create(&SourceLabels::default()));
        }
        drop(completeness.get_or_create(&SourceLabels::default()));
        drop(rejections.get_or_create(&RejectionLabels::default()));
        drop(failed_attempts.get_or_create(&KindLabels::default()));
        drop(jobs.get_or_create(&JobLabels::default()));
        drop(notices.get_or_create(&NoticeLabels::default()));
        drop(pick_up_seconds.get_or_create(&KindLabels::default()));
        metrics
    }

    /// The figures in the OpenMetrics text format.
    pub fn encode(&self) -> String {
        self.stock.refresh();
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry)
            .expect("writing to a string can't fail");
        text
    }
}
