//! The W3C `traceparent`: which trace a request belongs to, and below which span. How it is read, written and kept with an event.

use std::fmt;

/// What the header is called, on the wire and in stored events.
pub const TRACEPARENT: &str = "traceparent";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId(pub(crate) u128);

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId(pub(crate) u64);

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A W3C `traceparent`: the trace, the span that the next one hangs below, and whether it is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traceparent {
    pub trace: TraceId,
    pub span: SpanId,
    pub is_sampled: bool,
}

impl Traceparent {
    /// Anything but version, trace, span and flags in lower-case hex is no traceparent.
    pub fn parse(text: &str) -> Option<Self> {
        let hex = |text: &str| {
            text.bytes().all(|letter| letter.is_ascii_digit() || (b'a'..=b'f').contains(&letter))
        };
        let mut parts = text.split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let lengths = (version, trace.len(), span.len(), flags.len(), parts.next());
        if lengths != ("00", 32, 16, 2, None) || ![trace, span, flags].into_iter().all(hex) {
            return None;
        }
        let trace = u128::from_str_radix(trace, 16).ok().filter(|trace| *trace != 0)?;
        let span = u64::from_str_radix(span, 16).ok().filter(|span| *span != 0)?;
        let flags = u8::from_str_radix(flags, 16).ok()?;
        Some(Self { trace: TraceId(trace), span: SpanId(span), is_sampled: flags & 1 == 1 })
    }

    /// The one that stored headers begin with.
    pub fn carried(headers: &str) -> Option<Self> {
        let value = headers.strip_prefix("[[\"traceparent\",\"")?;
        Self::parse(value.get(..55)?)
    }

    /// Stored headers that begin with it, so that it is found without reading them. Of ours, which have none yet.
    pub fn put_before(self, headers: &str) -> String {
        let rest = headers.strip_prefix('[').unwrap_or("]");
        let comma = if rest.starts_with(']') { "" } else { "," };
        format!("[[\"{TRACEPARENT}\",\"{self}\"]{comma}{rest}")
    }
}

impl fmt::Display for Traceparent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-0{}", self.trace, self.span, u8::from(self.is_sampled))
    }
}
