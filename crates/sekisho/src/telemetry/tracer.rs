//! Spans on their way to a collector: a bounded queue that nobody waits for, and one task that sends what is in it. What does
//! not fit is dropped and counted; a collector that hangs costs nothing else.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sekisho_core::event::Stored;
use sekisho_core::trace::{EventTrace, Installation, Sampler, Span};
use sekisho_core::traceparent::Traceparent;
use sekisho_core::{Seq, Time};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{Metrics, ResultLabels};
use crate::effects::otlp::{ExportFailure, Otlp};
use crate::stop::Stop;

/// Spans that may wait.
const WAITING_MAX: usize = 8_192;
/// Spans in one request.
const BATCH: usize = 512;
/// How often what waits is sent, if it is not a whole batch.
const EVERY: Duration = Duration::from_secs(1);
/// Pause after a request that failed, doubled each time, and its bound.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_mins(1);
/// At a stop.
const FLUSH_WITHIN: Duration = Duration::from_secs(2);
/// Jobs that died and whose traces are yet to be put together.
const DIED_MAX: usize = 1_000;
/// Lines of processed events in a second; beyond that they are counted, so that a busy server does not drown in its log.
const LINES_A_SECOND: u32 = 50;

pub struct Tracer {
    pub sampler: Sampler,
    is_on: bool,
    /// Whose processing is logged.
    logged: Sampler,
    lines: Mutex<EventLines>,
    metrics: Arc<Metrics>,
    waiting: Mutex<VecDeque<Span>>,
    filled: Notify,
    died: Mutex<VecDeque<(Seq, Seq)>>,
    buried: Notify,
}

#[derive(Default)]
struct EventLines {
    second: i64,
    written: u32,
    left_out: u64,
}

impl Tracer {
    /// `sample` is `None` where no spans are kept.
    pub fn new(installation: Installation, sample: Option<f64>, logged: f64, metrics: Arc<Metrics>) -> Self {
        Self {
            sampler: Sampler::new(installation, sample.unwrap_or_default()),
            is_on: sample.is_some(),
            logged: Sampler::new(installation, logged),
            lines: Mutex::default(),
            metrics,
            waiting: Mutex::default(),
            filled: Notify::new(),
            died: Mutex::default(),
            buried: Notify::new(),
        }
    }

    /// Without a collector.
    pub fn off() -> Self {
        Self::new(Installation::default(), None, 1.0, Arc::default())
    }

    pub fn is_on(&self) -> bool {
        self.is_on
    }

    pub fn installation(&self) -> Installation {
        self.sampler.installation
    }

    /// The trace of an event, while traces are kept.
    pub fn trace(&self, event: &Stored) -> Option<EventTrace> {
        self.is_on.then(|| self.sampler.of_event(event))
    }

    /// Below what the runs of an event hang.
    pub fn below_event(&self, event: &Stored) -> Option<Traceparent> {
        self.trace(event).map(|trace| trace.below(self.installation().span_of(event.seq)))
    }

    pub fn record(&self, span: Span) {
        let mut waiting = self.waiting.lock().expect("no code panics here");
        if waiting.len() >= WAITING_MAX {
            drop(waiting);
            return self.count("dropped", 1);
        }
        waiting.push_back(span);
        if waiting.len() == BATCH {
            self.filled.notify_one();
        }
    }

    /// A job of this event died and its trace was not sampled: it is put together from what is stored.
    pub fn bury(&self, event: Seq, job: Seq) {
        let mut died = self.died.lock().expect("no code panics here");
        if died.len() >= DIED_MAX {
            drop(died);
            return self.count("dropped", 1);
        }
        died.push_back((event, job));
        self.buried.notify_one();
    }

    /// The next event and job of which that is so; waits for one.
    pub async fn next_buried(&self) -> (Seq, Seq) {
        loop {
            if let Some(next) = self.died.lock().expect("no code panics here").pop_front() {
                return next;
            }
            self.buried.notified().await;
        }
    }

    /// Whether the processing of an event is logged, and how many were not since the last line.
    pub fn is_logged(&self, event: Seq, now: Time) -> Option<u64> {
        if !self.logged.of(event, "", None).is_sampled {
            return None;
        }
        let mut lines = self.lines.lock().expect("no code panics here");
        if lines.second != now.seconds() {
            (lines.second, lines.written) = (now.seconds(), 0);
        }
        if lines.written >= LINES_A_SECOND {
            lines.left_out += 1;
            return None;
        }
        lines.written += 1;
        Some(std::mem::take(&mut lines.left_out))
    }

    /// Sends until told to stop, then for a moment what is left.
    pub async fn export(&self, collector: Otlp, stop: Stop) {
        let mut pause = Duration::ZERO;
        while !stop.is_told() {
            if pause.is_zero() {
                tokio::select! {
                    biased;
                    () = stop.told() => break,
                    () = tokio::time::sleep(EVERY) => {}
                    () = self.filled.notified() => {}
                }
            } else {
                tokio::select! {
                    biased;
                    () = stop.told() => break,
                    () = tokio::time::sleep(pause) => {}
                }
            }
            let batch = self.take();
            if batch.is_empty() {
                continue;
            }
            let sent = tokio::select! {
                biased;
                () = stop.told() => {
                    self.put_back(batch);
                    break;
                }
                sent = collector.send(&batch) => sent,
            };
            pause = self.judge(batch, sent, pause);
        }
        let deadline = Instant::now() + FLUSH_WITHIN;
        loop {
            let batch = self.take();
            if batch.is_empty() {
                return;
            }
            let count = batch.len();
            let sent = tokio::time::timeout_at(deadline, collector.send(&batch)).await;
            if !matches!(sent, Ok(Ok(()))) {
                let left = count + self.waiting.lock().expect("no code panics here").len();
                return self.count("dropped", left);
            }
            self.count("exported", count);
        }
    }

    /// How long to leave the collector alone.
    fn judge(&self, batch: Vec<Span>, sent: Result<(), ExportFailure>, before: Duration) -> Duration {
        match sent {
            Ok(()) => {
                self.count("exported", batch.len());
                if before > Duration::ZERO {
                    tracing::info!("the collector takes spans again");
                }
                let is_full = self.waiting.lock().expect("no code panics here").len() >= BATCH;
                if is_full {
                    self.filled.notify_one();
                }
                Duration::ZERO
            }
            Err(ExportFailure::Later { error, after }) => {
                self.put_back(batch);
                if before.is_zero() {
                    tracing::warn!(
                        error_type = "collector_unavailable",
                        error,
                        "the collector does not take spans; what does not fit into the queue is dropped"
                    );
                }
                after.unwrap_or((before * 2).max(PAUSE)).min(PAUSE_MAX)
            }
            Err(ExportFailure::Refused { error }) => {
                self.count("refused", batch.len());
                tracing::warn!(
                    error_type = "collector_refused",
                    error,
                    "the collector refused spans; they are dropped"
                );
                Duration::ZERO
            }
        }
    }

    fn take(&self) -> Vec<Span> {
        let mut waiting = self.waiting.lock().expect("no code panics here");
        let count = waiting.len().min(BATCH);
        waiting.drain(..count).collect()
    }

    /// What comes meanwhile counts more than what is old.
    fn put_back(&self, batch: Vec<Span>) {
        let mut waiting = self.waiting.lock().expect("no code panics here");
        let (room, count) = (WAITING_MAX.saturating_sub(waiting.len()), batch.len());
        let kept = batch.into_iter().skip(count.saturating_sub(room));
        kept.rev().for_each(|span| waiting.push_front(span));
        drop(waiting);
        self.count("dropped", count.saturating_sub(room));
    }

    fn count(&self, result: &'static str, spans: usize) {
        self.metrics.spans.get_or_create(&ResultLabels { result }).inc_by(spans as u64);
    }
}

#[cfg(test)]
mod tests {
    use sekisho_core::trace::SpanKind;

    use super::*;

    fn span() -> Span {
        let installation = Installation::from_bytes([7; 16]);
        Span {
            trace: installation.trace_of(Seq::from_i64(1)),
            id: installation.span_of(Seq::from_i64(1)),
            parent: None,
            name: "settle".into(),
            kind: SpanKind::Consumer,
            start_us: 1,
            end_us: 2,
            attributes: Vec::new(),
            error: None,
        }
    }

    fn dropped(tracer: &Tracer) -> u64 {
        tracer.metrics.spans.get_or_create(&ResultLabels { result: "dropped" }).get()
    }

    #[test]
    fn h3_a_full_queue_drops_and_counts_and_nobody_waits() {
        let tracer = Tracer::new(Installation::default(), Some(1.0), 1.0, Arc::default());
        (0..WAITING_MAX + 3).for_each(|_| tracer.record(span()));
        assert_eq!(dropped(&tracer), 3);
        let batch = tracer.take();
        assert_eq!(batch.len(), BATCH);
        (0..10).for_each(|_| tracer.record(span()));
        tracer.put_back(batch);
        assert_eq!((tracer.waiting.lock().unwrap().len(), dropped(&tracer)), (WAITING_MAX, 13));
    }

    #[test]
    fn h3_lines_of_processed_events_are_bounded_and_those_left_out_are_counted() {
        let tracer = Tracer::off();
        let at = |ms| Time::from_ms(ms);
        let written = (0..200).filter(|n| tracer.is_logged(Seq::from_i64(*n), at(1_000)).is_some()).count();
        assert_eq!(written, LINES_A_SECOND as usize);
        assert_eq!(tracer.is_logged(Seq::from_i64(1), at(2_000)), Some(150));
        let none = Tracer::new(Installation::default(), None, 0.0, Arc::default());
        assert_eq!(none.is_logged(Seq::from_i64(1), at(1)), None);
    }
}
