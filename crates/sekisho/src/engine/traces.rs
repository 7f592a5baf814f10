//! The spans of runs: below what they hang, and what is recorded when they end.

use sekisho_core::change::Ended;
use sekisho_core::job::{End, JobKind};
use sekisho_core::trace::{RunSpan, TracedEvent, event_span, is_made_here, run_span};
use sekisho_core::traceparent::{TraceId, Traceparent};

use super::work::Work;
use crate::telemetry::Tracer;

impl Work {
    /// Below what its run hangs, while traces are kept: what it carries itself, or its event.
    pub fn parent(&self, tracer: &Tracer) -> Option<Traceparent> {
        if !tracer.is_on() {
            return None;
        }
        let of_event = || self.event.as_deref().and_then(|event| tracer.below_event(event));
        self.job.task.trace().or_else(of_event)
    }

    /// What is handed on by whatever this run makes or calls.
    pub fn traceparent(&self, tracer: &Tracer) -> Option<Traceparent> {
        let parent = self.parent(tracer)?;
        let (kind, lease) = (self.job.task.kind(), self.job.lease);
        let span = tracer.installation().span_of_run(kind, lease.job, lease.attempt);
        Some(Traceparent { span, ..parent })
    }

    pub fn trace_id(&self, tracer: &Tracer) -> Option<TraceId> {
        self.parent(tracer).map(|parent| parent.trace)
    }
}

/// A run ended: its span, and if it died unsampled, its whole trace.
pub fn record(tracer: &Tracer, work: &Work, ended: &Ended) {
    let Some(parent) = work.parent(tracer) else { return };
    let kind = work.job.task.kind();
    if !parent.is_sampled {
        if let (End::Dead(_), Some(event)) = (&ended.end, &work.event) {
            tracer.bury(event.seq, ended.lease.job);
        }
        return;
    }
    // The tries of a notice are spans of their own.
    if kind == JobKind::Send {
        return;
    }
    if let (JobKind::Settle, End::Done(_) | End::Dead(_), Some(event)) = (kind, &ended.end, &work.event)
        && is_made_here(&event.source)
    {
        // No request brought it, so that this is the place to tell of it.
        let (trace, at) = (tracer.sampler.of_event(event), event.received_at.ms() * 1_000);
        tracer.record(event_span(tracer.installation(), &trace, &TracedEvent::from(&**event), (at, at)));
    }
    let call = ended.attempt.as_ref();
    let error = match &ended.end {
        End::Done(_) | End::Wait { .. } | End::NotYet => None,
        End::Retry { .. } => Some(call.and_then(|call| call.reason.as_deref()).unwrap_or("retried")),
        End::Dead(death) => Some(&*death.reason),
    };
    let event = work.event.as_deref().map(TracedEvent::from);
    let event = event.map(|event| TracedEvent { payment: ended.about.payment.as_deref(), ..event });
    let run = RunSpan {
        kind,
        lane: &work.job.lane,
        job: ended.lease.job,
        attempt: ended.lease.attempt,
        call,
        error,
        times: work.times(),
    };
    tracer.record(run_span(tracer.installation(), parent, event.as_ref(), &run));
}
