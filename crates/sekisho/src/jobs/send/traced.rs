//! The span of one try to send a notice, in the trace of what made the notice.

use sekisho_core::job::{Job, JobKind, Lane};
use sekisho_core::notification::{Message, Notice, Sent};
use sekisho_core::trace::{RunSpan, try_span};
use sekisho_core::traceparent::Traceparent;
use sekisho_core::{Seq, Time};
use tokio::time::Instant;

use super::pending::PendingNotice;
use crate::engine::Engine;

pub struct NoticeTry {
    parent: Traceparent,
    notice: String,
    job: Seq,
    n: i32,
    at: Time,
    began: Instant,
}

impl NoticeTry {
    /// While traces are kept, and the notice is in one.
    pub fn begin(engine: &Engine, job: &Job, pending: &PendingNotice, n: u32) -> Option<Self> {
        let parent = parent(engine, &pending.notice)?;
        let (at, began) = (engine.node.now(), Instant::now());
        Some(Self { parent, notice: pending.id.clone(), job: job.lease.job, n: n as i32, at, began })
    }

    /// The message, for a receiver that goes on in this trace.
    pub fn in_message(&self, engine: &Engine, message: &Message) -> Message {
        let span = engine.tracer.installation().span_of_run(JobKind::Send, self.job, self.n);
        let trace = Traceparent { span, ..self.parent };
        Message { trace: Some(trace.to_string()), ..message.clone() }
    }

    pub fn end(self, engine: &Engine, lane: &Lane, sent: &Sent) {
        if !self.parent.is_sampled {
            return;
        }
        let error = match sent {
            Sent::Accepted(_) => None,
            Sent::Failed(failure) | Sent::Uncertain(failure) | Sent::Closed { failure, .. } => {
                Some(failure.reason)
            }
        };
        let start = self.at.ms() * 1_000;
        let times = (start, start + self.began.elapsed().as_micros() as i64);
        let run =
            RunSpan { kind: JobKind::Send, lane, job: self.job, attempt: self.n, call: None, error, times };
        engine.tracer.record(try_span(engine.tracer.installation(), self.parent, &self.notice, &run));
    }
}

fn parent(engine: &Engine, notice: &Notice) -> Option<Traceparent> {
    if !engine.tracer.is_on() {
        return None;
    }
    Traceparent::parse(notice.trace.as_deref()?)
}

/// A notice that failed for good: if its trace was not sampled, it is put together all the same.
pub fn bury(engine: &Engine, job: &Job, notice: &Notice) {
    let is_unsampled = parent(engine, notice).is_some_and(|parent| !parent.is_sampled);
    let event = notice.event.as_deref().and_then(|event| event.parse().ok());
    if let Some(event) = event.filter(|_| is_unsampled) {
        engine.tracer.bury(event, job.lease.job);
    }
}
