//! A leased job in memory, with the event it is about.

use std::sync::Arc;
use std::time::Duration;

use sekisho_core::event::Stored;
use sekisho_core::job::Job;
use sekisho_core::{Seq, Time};
use tokio::time::Instant;

#[derive(Clone, Debug)]
pub struct Work {
    pub job: Job,
    pub event: Option<Arc<Stored>>,
    /// When its commit was answered, if it was born leased.
    pub born: Option<Instant>,
    /// It runs to find out whether the destination of an open breaker answers again.
    pub is_probe: bool,
    /// When its run began.
    pub begun: Option<(Time, Instant)>,
}

impl Work {
    /// A job the store gave.
    pub fn claimed(job: Job, event: Option<Arc<Stored>>) -> Self {
        Self { job, event, born: None, is_probe: false, begun: None }
    }

    /// A job that was leased to this node when it was queued, just now.
    pub fn born(job: Job, event: Option<Arc<Stored>>) -> Self {
        Self { job, event, born: Some(Instant::now()), is_probe: false, begun: None }
    }

    /// How long it has been ready to run, at most.
    pub fn waited(&self, now: Time) -> Duration {
        let due =
            u64::try_from(now.ms() - self.job.due_at.ms()).map_or(Duration::ZERO, Duration::from_millis);
        self.born.map_or(due, |born| born.elapsed())
    }

    /// From the beginning of its run until now, in microseconds since 1970.
    pub fn times(&self) -> (i64, i64) {
        self.begun.map_or((0, 0), |(at, begun)| {
            let start = at.ms() * 1_000;
            (start, start + begun.elapsed().as_micros() as i64)
        })
    }

    pub fn bytes(&self) -> usize {
        self.event.as_ref().map_or(0, |event| event.body.len() + event.headers.len())
    }

    pub fn id(&self) -> Seq {
        self.job.lease.job
    }
}
