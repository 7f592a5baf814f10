//! What a span says: the same whether it is recorded while it happens or put together from rows afterwards. Never a body, an
//! address, a name, a secret or a query.

use super::{EventTrace, Installation};
use crate::event::Stored;
use crate::id::Seq;
use crate::job::{Attempt, JobKind, Lane};
use crate::traceparent::{SpanId, TraceId, Traceparent};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub trace: TraceId,
    pub id: SpanId,
    pub parent: Option<SpanId>,
    pub name: String,
    pub kind: SpanKind,
    /// Microseconds since 1970.
    pub start_us: i64,
    pub end_us: i64,
    pub attributes: Vec<(&'static str, Attribute)>,
    /// A stable word, where it went wrong.
    pub error: Option<String>,
}

/// As OpenTelemetry numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    Server = 2,
    Client = 3,
    Producer = 4,
    Consumer = 5,
}

impl SpanKind {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
            Self::Producer => "producer",
            Self::Consumer => "consumer",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attribute {
    Text(String),
    Number(i64),
}

impl From<&str> for Attribute {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// Of an event, what its spans say of it.
#[derive(Clone, Copy, Debug)]
pub struct TracedEvent<'e> {
    pub seq: Seq,
    pub source: &'e str,
    pub event_id: &'e str,
    pub event_type: &'e str,
    pub payment: Option<&'e str>,
}

impl<'e> From<&'e Stored> for TracedEvent<'e> {
    fn from(event: &'e Stored) -> Self {
        let Stored { seq, source, event_id, event_type, .. } = event;
        Self { seq: *seq, source, event_id, event_type, payment: None }
    }
}

impl TracedEvent<'_> {
    fn attributes(&self) -> Vec<(&'static str, Attribute)> {
        let mut attributes = vec![
            ("sekisho.source", self.source.into()),
            ("sekisho.event_id", self.event_id.into()),
            ("sekisho.event_type", self.event_type.into()),
        ];
        attributes.extend(self.payment.map(|payment| ("sekisho.payment_id", payment.into())));
        attributes
    }
}

/// That an event came in, or was made here: all that is done because of it hangs below.
pub fn event_span(
    installation: Installation,
    trace: &EventTrace,
    event: &TracedEvent<'_>,
    (start_us, end_us): (i64, i64),
) -> Span {
    let mut attributes = event.attributes();
    let (name, kind) = if trace.is_ours {
        attributes.push(("messaging.system", "sekisho".into()));
        attributes.push(("messaging.operation.type", "create".into()));
        (format!("announce {}", event.event_type), SpanKind::Producer)
    } else {
        attributes.push(("http.request.method", "POST".into()));
        attributes.push(("http.route", "/webhooks/{source}".into()));
        (format!("POST /webhooks/{}", event.source), SpanKind::Server)
    };
    attributes.push(("sekisho.id", event.seq.as_event().to_string().as_str().into()));
    Span {
        trace: trace.trace,
        id: installation.span_of(event.seq),
        parent: trace.parent,
        name,
        kind,
        start_us,
        end_us,
        attributes,
        error: None,
    }
}

/// That an event came in once more: below its first coming.
pub fn duplicate_span(
    installation: Installation,
    trace: &EventTrace,
    event: &TracedEvent<'_>,
    request: Seq,
    times: (i64, i64),
) -> Span {
    let first = event_span(installation, trace, event, times);
    let mut attributes = first.attributes;
    attributes.push(("sekisho.outcome", "duplicate".into()));
    Span { id: installation.span_of_request(request), parent: Some(first.id), attributes, ..first }
}

/// One run of one job.
#[derive(Clone, Copy, Debug)]
pub struct RunSpan<'r> {
    pub kind: JobKind,
    pub lane: &'r Lane,
    pub job: Seq,
    pub attempt: i32,
    /// What it saw outside.
    pub call: Option<&'r Attempt>,
    /// Why it went wrong.
    pub error: Option<&'r str>,
    pub times: (i64, i64),
}

pub fn run_span(
    installation: Installation,
    trace: Traceparent,
    event: Option<&TracedEvent<'_>>,
    run: &RunSpan<'_>,
) -> Span {
    let RunSpan { kind, lane, job, attempt, call, error, times: (start_us, end_us) } = *run;
    let (name, kind_of_span) = named(kind, lane);
    let mut attributes = event.map(TracedEvent::attributes).unwrap_or_default();
    attributes.push(("sekisho.message_id", job.as_message().to_string().as_str().into()));
    attributes.push(("sekisho.lane", (&*lane.0).into()));
    attributes.push(("sekisho.attempt", Attribute::Number(attempt.into())));
    if let Some(status) = call.and_then(|call| call.status) {
        attributes.push(("http.response.status_code", Attribute::Number(status.into())));
    }
    if kind_of_span == SpanKind::Client {
        attributes.push(("http.request.method", "POST".into()));
        if attempt > 1 {
            attributes.push(("http.request.resend_count", Attribute::Number(i64::from(attempt) - 1)));
        }
    }
    let error = error.or_else(|| call.and_then(|call| call.reason.as_deref()));
    Span {
        trace: trace.trace,
        id: installation.span_of_run(kind, job, attempt),
        parent: Some(trace.span),
        name,
        kind: kind_of_span,
        start_us,
        end_us: end_us.max(start_us),
        attributes,
        error: error.map(str::to_owned),
    }
}

/// One try to send a notice: `attempt` counts its tries.
pub fn try_span(installation: Installation, trace: Traceparent, notice: &str, run: &RunSpan<'_>) -> Span {
    let mut span = run_span(installation, trace, None, run);
    span.attributes.push(("sekisho.notice_id", notice.into()));
    span
}

fn named(kind: JobKind, lane: &Lane) -> (String, SpanKind) {
    let after = |name: &str| match lane.0.split_once(':') {
        Some((_, rest)) => format!("{name} {rest}"),
        None => name.to_owned(),
    };
    match kind {
        JobKind::Settle => ("settle".to_owned(), SpanKind::Consumer),
        JobKind::Notify => ("notify".to_owned(), SpanKind::Consumer),
        JobKind::Timer => ("timer".to_owned(), SpanKind::Consumer),
        JobKind::Deliver => (after("deliver"), SpanKind::Client),
        JobKind::Send => (after("send"), SpanKind::Client),
        JobKind::Fetch => (after("fetch"), SpanKind::Client),
        JobKind::Refund => (after("refund"), SpanKind::Client),
        JobKind::Checkout => (after("checkout"), SpanKind::Client),
    }
}
