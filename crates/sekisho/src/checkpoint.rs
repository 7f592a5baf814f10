//! Webhooks in. The walk of a request: [`server`] accepts it, [`receive`] limits, verifies and reads it,
//! [`committer`] stores it together with others, and only then is it answered.

pub mod certificate;
pub mod committer;
pub mod gate;
pub mod patience;
pub mod receive;
pub mod rejection;
pub mod server;

use std::collections::HashMap;
use std::sync::Arc;

use prometheus_client::metrics::counter::Counter;

use crate::config::{Config, Server, Source};
use crate::limits::{Bytes, NetworkRates, Rate};
use crate::node::Node;
use crate::telemetry::{
    Metrics, OutcomeLabels, RejectionLabels, RequestLabels, SourceCounts, SourceLabels, Tracer,
};
use certificate::Certificates;
use committer::Committer;
use rejection::{Recorder, RefusedRequest};

/// Everything a request needs, shared by all of them.
pub struct Checkpoint {
    pub sources: HashMap<String, OpenSource>,
    pub server: Server,
    /// How long events are kept, and with them the memory of what came before.
    pub kept_ms: i64,
    pub node: Arc<Node>,
    pub committer: Arc<Committer>,
    pub certificates: Certificates,
    pub rejections: Recorder,
    pub bodies: Bytes,
    pub metrics: Arc<Metrics>,
    pub tracer: Arc<Tracer>,
}

/// A source with what it keeps while running.
pub struct OpenSource {
    pub config: Source,
    pub rate: Option<Rate>,
    pub network_rate: Option<NetworkRates>,
    pub counts: Counts,
}

/// Counters looked up once: the hot path only adds.
pub struct Counts {
    pub accepted: Counter,
    pub duplicate: Counter,
    pub unusable: Counter,
    pub handshake: Counter,
    pub rejected: Counter,
    pub overloaded: Counter,
    pub unavailable: Counter,
    pub malformed: Counter,
    pub events_accepted: Counter,
    pub events_duplicate: Counter,
    pub ids_reused: Counter,
    pub published: Counter,
    pub unpublished: Counter,
    /// What alerts are made from.
    pub meter: Arc<SourceCounts>,
}

impl Counts {
    fn new(metrics: &Metrics, source: &str) -> Self {
        let labels = |outcome| RequestLabels { source: source.to_owned(), outcome };
        let count = |outcome| metrics.requests.get_or_create_owned(&labels(outcome));
        let events = |outcome| metrics.events.get_or_create_owned(&labels(outcome));
        Self {
            accepted: count("accepted"),
            duplicate: count("duplicate"),
            unusable: count("unusable"),
            handshake: count("handshake"),
            rejected: count("rejected"),
            overloaded: count("overloaded"),
            unavailable: count("unavailable"),
            malformed: count("malformed"),
            events_accepted: events("accepted"),
            events_duplicate: events("duplicate"),
            ids_reused: metrics.ids_reused.get_or_create_owned(&SourceLabels { source: source.to_owned() }),
            published: metrics.published.get_or_create_owned(&OutcomeLabels { outcome: "stored" }),
            unpublished: metrics.published.get_or_create_owned(&OutcomeLabels { outcome: "unavailable" }),
            meter: metrics.meters.source(source),
        }
    }
}

impl Checkpoint {
    pub fn new(
        config: Config,
        node: Arc<Node>,
        committer: Arc<Committer>,
        rejections: Recorder,
        metrics: Arc<Metrics>,
        tracer: Arc<Tracer>,
    ) -> Self {
        let sources = config.sources.into_iter().map(|source| {
            let counts = Counts::new(&metrics, &source.name);
            let rate = source.rate.map(Rate::per_second);
            let network_rate = source.network_rate.map(NetworkRates::per_second);
            (source.path.clone(), OpenSource { config: source, rate, network_rate, counts })
        });
        let certificates = Certificates::new(node.env.clone());
        Self {
            sources: sources.collect(),
            bodies: Bytes::new(config.admission.waiting_bytes_max),
            kept_ms: config.retention.kept_ms(),
            server: config.server,
            node,
            committer,
            certificates,
            rejections,
            metrics,
            tracer,
        }
    }

    fn turned_away(&self, refused: RefusedRequest<'_>) {
        let labels = RejectionLabels { source: refused.source.to_string(), reason: refused.reason };
        self.metrics.rejections.get_or_create(&labels).inc();
        self.rejections.record(refused);
    }
}
