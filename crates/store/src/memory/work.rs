//! The work that nodes lease: leases are given, kept and taken back.

use std::collections::BTreeMap;

use sekisho_core::event::About;
use sekisho_core::job::{DeadReason, Job, JobKind, Lane, Lease, Outcome, Settle, Task};
use sekisho_core::{Epoch, Seq, Time};

use super::{Ended, JobRow, Tables};
use crate::{CLAIM_MAX, DeadLetter};

impl Tables {
    pub(super) fn claim(&mut self, epoch: Epoch, wants: Vec<(Lane, usize)>, now: Time) -> Vec<Job> {
        let mut claimed = Vec::new();
        for (lane, limit) in wants {
            let mut ready: Vec<_> = self
                .jobs
                .iter()
                .filter(|(_, job)| job.owner.is_none() && job.lane == lane && job.due_at <= now)
                .filter(|(id, job)| self.has_its_turn(**id, job))
                .map(|(&id, job)| (job.due_at, id))
                .collect();
            ready.sort_unstable();
            ready.truncate(limit.min(CLAIM_MAX));
            claimed.extend(ready.into_iter().map(|(_, id)| self.lease(id, epoch)));
        }
        claimed
    }

    /// No job of the same row is unfinished before it.
    fn has_its_turn(&self, id: Seq, job: &JobRow) -> bool {
        job.fifo.is_none() || !self.jobs.range(..id).any(|(_, earlier)| earlier.fifo == job.fifo)
    }

    fn lease(&mut self, id: Seq, epoch: Epoch) -> Job {
        let job = self.jobs.get_mut(&id).expect("it was just seen");
        job.owner = Some(epoch);
        job.attempt += 1;
        Job {
            lease: Lease { job: id, epoch, attempt: job.attempt },
            task: job.task.clone(),
            lane: job.lane.clone(),
            fifo: job.fifo.clone(),
            due_at: job.due_at,
            event: job.event,
            base: job.base,
            crashes: job.crashes,
        }
    }

    pub(super) fn held(&mut self, lease: Lease) -> Option<&mut JobRow> {
        self.jobs
            .get_mut(&lease.job)
            .filter(|job| job.owner == Some(lease.epoch) && job.attempt == lease.attempt)
    }

    pub(super) fn release(&mut self, lease: Lease) {
        if let Some(job) = self.held(lease) {
            job.owner = None;
            job.started = false;
            job.base += 1;
        }
    }

    pub(super) fn adopt(&mut self, lease: Lease) -> Option<Job> {
        let job = self.held(lease)?;
        // The run that never was, or was cut off, is no try.
        job.base += 1;
        Some(self.lease(lease.job, lease.epoch))
    }

    pub(super) fn sweep(&mut self, limit: usize, suspect_after: i32) -> usize {
        let Self { nodes, jobs, .. } = self;
        let orphans =
            jobs.values_mut().filter(|job| job.owner.is_some_and(|owner| !nodes.contains_key(&owner)));
        let free = |job: &mut JobRow| {
            if job.lane != Lane::suspect() || job.started {
                job.crashes += 1;
            }
            if job.crashes >= suspect_after && job.home.is_none() {
                job.home = Some(std::mem::replace(&mut job.lane, Lane::suspect()));
            }
            // The run that was cut off is no try.
            job.base += 1;
            job.owner = None;
            job.started = false;
        };
        orphans.take(limit.min(CLAIM_MAX)).map(free).count()
    }

    pub(super) fn make_due(&mut self, limit: usize, now: Time) -> usize {
        let waits =
            |job: &&mut JobRow| job.owner.is_none() && job.due_at > now && job.task.kind() != JobKind::Timer;
        let hastened = self.jobs.values_mut().filter(waits).take(limit.min(CLAIM_MAX));
        hastened.map(|job| job.due_at = now).count()
    }

    pub(super) fn lanes(&self) -> Vec<(Lane, Time)> {
        let mut oldest: BTreeMap<Lane, Time> = BTreeMap::new();
        for job in self.jobs.values().filter(|job| job.owner.is_none()) {
            let due_at = oldest.entry(job.lane.clone()).or_insert(job.due_at);
            *due_at = job.due_at.min(*due_at);
        }
        oldest.into_iter().collect()
    }
}

impl JobRow {
    pub(super) fn settle(event: Seq, due_at: Time) -> Self {
        Self {
            task: Task::Settle(Settle::Once),
            lane: Lane::settle(),
            home: None,
            fifo: None,
            due_at,
            event: Some(event),
            owner: None,
            attempt: 0,
            base: 0,
            crashes: 0,
            started: false,
        }
    }

    pub(super) fn ended(self, outcome: Outcome, about: About, at: Time) -> Ended {
        let lane = self.home.unwrap_or(self.lane);
        Ended { outcome, at, attempts: self.attempt, lane, event: self.event, about }
    }

    pub(super) fn letter(self, job: Seq, death: DeadReason, at: Time) -> DeadLetter {
        DeadLetter {
            job,
            task: self.task,
            lane: self.home.unwrap_or(self.lane),
            fifo: self.fifo,
            attempts: self.attempt,
            crashes: self.crashes,
            death,
            at,
            event: self.event,
            event_id: None,
            event_type: None,
            source: None,
            about: About::default(),
            stake: None,
        }
    }
}
