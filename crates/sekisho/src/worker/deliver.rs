//! One destination, and one delivery to it: what is sent, how the answer is judged, and how the run ends.

use std::sync::Arc;

use sekisho_core::change::ChangeSet;
use sekisho_core::delivery::{Route, Signer, judge, outgoing};
use sekisho_core::event::Stored;
use sekisho_core::job::{Attempt, End, Job, Lane, Outcome};
use sekisho_core::queue::breaker::Policy;
use sekisho_core::queue::{self, Retry};

use super::desk::LanePolicy;
use crate::config;
use crate::effects::deliver::Client;
use crate::node::Node;
use crate::telemetry::Metrics;

pub struct Target {
    pub lane: Lane,
    pub route: Route,
    client: Client,
    signer: Arc<Signer>,
    retry: Retry,
    concurrency: usize,
    rate: Option<u32>,
    breaker: Policy,
}

impl Target {
    pub fn open(config: &config::Route) -> anyhow::Result<Self> {
        Ok(Self {
            lane: Lane::to_route(&config.route.name),
            route: config.route.clone(),
            client: Client::new(config.url.as_str(), config.timeout, config.allow_private)?,
            signer: Arc::clone(&config.signer),
            retry: config.retry.clone(),
            concurrency: config.concurrency,
            rate: config.rate,
            breaker: config.breaker.clone(),
        })
    }

    pub fn policy(&self) -> LanePolicy {
        LanePolicy { concurrency: self.concurrency, rate: self.rate, breaker: self.breaker.clone() }
    }

    /// Delivers once. Says how the job ends, and whether the destination is well.
    pub async fn deliver(
        &self,
        job: &Job,
        event: &Stored,
        node: &Node,
        metrics: &Metrics,
    ) -> (ChangeSet, bool) {
        let (message, at) = (job.lease.job, node.now());
        let out = outgoing(&self.route, &self.signer, event, message, job.lease.attempt, at);
        let (answer, took) = self.client.post(&out.headers, out.body).await;
        metrics.delivery_seconds.observe(took.as_secs_f64());
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
