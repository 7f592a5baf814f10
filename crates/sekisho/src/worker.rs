//! Stored work, done: claims due jobs, asks the core how each ends, and commits that.

use std::sync::Arc;
use std::time::Duration;

use sekisho_core::change::{ChangeSet, Committed, End, Job, Lane};
use sekisho_core::settlement;
use sekisho_store::Store;
use tokio::sync::{Notify, watch};

use crate::node::{Health, Node};
use crate::telemetry::{JobLabels, Metrics};
use crate::{now, told_to_stop};

/// Jobs claimed and committed together.
const BATCH: usize = 256;
/// How long to look away when there was nothing to do and nobody called.
const POLL: Duration = Duration::from_millis(500);

pub struct Worker {
    pub store: Arc<dyn Store>,
    pub node: Arc<Node>,
    pub health: Arc<Health>,
    pub metrics: Arc<Metrics>,
    /// Called when this process stored new work.
    pub wake: Arc<Notify>,
}

impl Worker {
    /// Works until told to stop. What was claimed by then is finished.
    pub async fn run(&self, mut stop: watch::Receiver<bool>) {
        // After a lost answer nobody knows what this node holds: it must start anew before it claims again, or what
        // it claimed stays its own for as long as it lives.
        let mut certain = true;
        while !*stop.borrow() {
            if !certain {
                certain = self.node.start_anew().await.is_ok();
            }
            if certain {
                match self.settle().await {
                    Ok(BATCH) => continue,
                    Ok(_) => {}
                    Err(error) => {
                        self.health.store_failed(&error);
                        certain = false;
                    }
                }
            }
            tokio::select! {
                () = self.wake.notified() => {}
                () = tokio::time::sleep(POLL) => {}
                () = told_to_stop(&mut stop) => {}
            }
        }
    }

    /// One batch; says how many jobs it held.
    async fn settle(&self) -> sekisho_store::Result<usize> {
        let jobs = self.store.claim(self.node.epoch(), &Lane::settle(), BATCH, now()).await?;
        if jobs.is_empty() {
            return Ok(0);
        }
        let sets: Vec<_> = jobs.iter().map(decide).collect();
        let answers = self.store.commit(sets.clone()).await?;
        for (set, answer) in sets.iter().zip(&answers) {
            let result = match answer {
                Committed::Applied => result(&set.end),
                Committed::Lost => "lost",
            };
            self.metrics.jobs.get_or_create(&JobLabels { lane: "settle", result }).inc();
        }
        let lost = answers.iter().filter(|answer| **answer == Committed::Lost).count();
        if lost > 0 {
            tracing::warn!(
                jobs = lost,
                "leases were lost before the work was committed; their new owners do it"
            );
        }
        Ok(jobs.len())
    }
}

fn decide(job: &Job) -> ChangeSet {
    ChangeSet { lease: job.lease, end: settlement::decide(&job.event_type), at: now() }
}

fn result(end: &End) -> &'static str {
    match end {
        End::Done(outcome) => outcome.name(),
        End::Retry { .. } => "retry",
        End::Dead(_) => "dead",
    }
}
