//! The span of a request, for each event that it brought.

use sekisho_core::Seq;
use sekisho_core::change::Arrival;
use sekisho_core::trace::{TracedEvent, duplicate_span, event_span};

use super::Visit;

/// Its number here, and its type.
pub type NewEvent = (Seq, String);

impl Visit<'_> {
    /// What spans will say of events that are handed over to be stored; nothing while no traces are kept.
    pub(super) fn types(&self, arrivals: &[Arrival]) -> Vec<NewEvent> {
        if !self.checkpoint.tracer.is_on() {
            return Vec::new();
        }
        arrivals.iter().map(|arrival| (arrival.seq, arrival.event_type.clone())).collect()
    }

    /// Tells of events that are stored, each under the number it has in the store.
    pub(super) fn record(&self, ids: &[(String, Seq)], types: &[NewEvent]) {
        let tracer = &self.checkpoint.tracer;
        let start = self.at.ms() * 1_000;
        for ((event_id, stored), (seq, event_type)) in ids.iter().zip(types) {
            let source = &*self.source.config.name;
            let trace = tracer.sampler.of(*stored, source, self.trace);
            if !trace.is_sampled {
                continue;
            }
            let event = TracedEvent { seq: *stored, source, event_id, event_type, payment: None };
            let times = (start, start + self.began.elapsed().as_micros() as i64);
            tracer.record(if stored == seq {
                event_span(tracer.installation(), &trace, &event, times)
            } else {
                duplicate_span(tracer.installation(), &trace, &event, self.id, times)
            });
        }
    }
}
