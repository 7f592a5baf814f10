//! Which trace an event belongs to, and the spans of it. Nothing of a trace is stored: every id is computed from numbers that
//! exist (the installation, the event's number, the job's, its attempt), so that every node, and a retry next week, finds the
//! same ones.
//!
//! Ids are mixed, not hashed: SplitMix64's finaliser is a bijection, so that two events of an installation never share a
//! trace, and it costs a few instructions. They are names and no secrets.

mod rebuild;
mod span;
#[cfg(test)]
mod tests;

use crate::event::Stored;
use crate::id::Seq;
use crate::job::JobKind;
use crate::source_name::{FETCHED, OWN, SCHEDULE};
use crate::traceparent::{SpanId, TraceId, Traceparent};

pub use rebuild::{JobRows, NoticeRows, RunEnd, TraceRows, rebuild};
pub use span::{
    Attribute, RunSpan, Span, SpanKind, TracedEvent, duplicate_span, event_span, run_span, try_span,
};

/// 16 bytes that no other installation has, drawn once: what all ids are computed from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Installation([u64; 2]);

impl Installation {
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        let whole = u128::from_be_bytes(bytes);
        Self([(whole >> 64) as u64, whole as u64])
    }

    pub fn from_hex(text: &str) -> Option<Self> {
        let whole = u128::from_str_radix(text, 16).ok().filter(|_| text.len() == 32)?;
        Some(Self::from_bytes(whole.to_be_bytes()))
    }

    /// The trace of an event that came with none.
    pub fn trace_of(self, event: Seq) -> TraceId {
        let Self([high, low]) = self;
        let seq = event.as_i64() as u64;
        let half = |key: u64, salt: u64| u128::from(mix(mix(seq ^ key) ^ salt));
        TraceId(((half(high, TRACE) << 64) | half(low, TRACE)).max(1))
    }

    /// The span of an event itself: that it came in, or was announced.
    pub fn span_of(self, event: Seq) -> SpanId {
        self.span(EVENT, event, 0)
    }

    /// The span of a request that brought what had come before.
    pub fn span_of_request(self, request: Seq) -> SpanId {
        self.span(REQUEST, request, 0)
    }

    /// The span of a run.
    pub fn span_of_run(self, kind: JobKind, job: Seq, attempt: i32) -> SpanId {
        self.span(RUN + kind as u64, job, attempt)
    }

    fn span(self, what: u64, number: Seq, attempt: i32) -> SpanId {
        let Self([high, low]) = self;
        let own = mix(number.as_i64() as u64 ^ high) ^ mix(low ^ (what << 32) ^ u64::from(attempt as u32));
        SpanId(mix(own).max(1))
    }
}

const TRACE: u64 = 0x7472_6163_6500_0000;
const EVENT: u64 = 1;
const REQUEST: u64 = 2;
const RUN: u64 = 16;

/// SplitMix64's finaliser.
const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Decides for every event whether its trace is recorded: the same on every node, and of everything that follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampler {
    pub installation: Installation,
    /// Of 2⁵⁶ traces so many.
    share: u64,
}

impl Sampler {
    /// `share` from 0 to 1.
    pub fn new(installation: Installation, share: f64) -> Self {
        Self { installation, share: (share.clamp(0.0, 1.0) * (1_u64 << 56) as f64) as u64 }
    }

    pub fn of_event(&self, event: &Stored) -> EventTrace {
        self.of(event.seq, &event.source, Traceparent::carried(&event.headers))
    }

    /// Of an event that came with this traceparent, if with any.
    pub fn of(&self, event: Seq, source: &str, carried: Option<Traceparent>) -> EventTrace {
        let trace = carried.map_or_else(|| self.installation.trace_of(event), |carried| carried.trace);
        let is_sampled = carried.map_or_else(|| self.samples(trace), |carried| carried.is_sampled);
        let parent = carried.map(|carried| carried.span);
        EventTrace { trace, parent, is_sampled, is_ours: is_made_here(source) }
    }

    fn samples(&self, trace: TraceId) -> bool {
        (trace.0 as u64) & ((1 << 56) - 1) < self.share
    }
}

/// Whether an event was made here, and so no request brought it.
pub fn is_made_here(source: &str) -> bool {
    matches!(source, OWN | FETCHED | SCHEDULE)
}

/// Where an event stands in its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventTrace {
    pub trace: TraceId,
    /// The span it came from: the caller's, or the run that made it.
    pub parent: Option<SpanId>,
    pub is_sampled: bool,
    pub is_ours: bool,
}

impl EventTrace {
    /// What somebody is handed who goes on from this span.
    pub fn below(&self, span: SpanId) -> Traceparent {
        Traceparent { trace: self.trace, span, is_sampled: self.is_sampled }
    }
}
