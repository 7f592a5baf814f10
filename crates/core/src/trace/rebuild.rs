//! A whole trace, put together from what is stored: the event, the jobs it caused with their calls, the notices, and the
//! announcements that were made of it. For a page without any collector, and for what ended badly and was not sampled.
//!
//! Where rows do not say when a run began (settling, working out notices), its span begins when it could first have run, or
//! when the one before it ended.

use super::span::{RunSpan, Span, TracedEvent, event_span, run_span, try_span};
use super::{EventTrace, Sampler};
use crate::id::Seq;
use crate::job::{Attempt, JobKind, Lane};
use crate::notification::{NoticeStatus, Step};
use crate::time::Time;
use crate::traceparent::Traceparent;

/// What is stored of one event.
#[derive(Clone, Debug, Default)]
pub struct TraceRows {
    pub seq: Option<Seq>,
    pub source: String,
    pub event_id: String,
    pub event_type: String,
    pub payment: Option<String>,
    pub received_at: Time,
    /// As it is stored.
    pub headers: String,
    /// The event whose settling announced it.
    pub cause: Option<Seq>,
    /// Its own settling first.
    pub jobs: Vec<JobRows>,
    pub notices: Vec<NoticeRows>,
}

#[derive(Clone, Debug)]
pub struct JobRows {
    pub job: Seq,
    pub lane: Lane,
    /// Runs so far.
    pub attempts: i32,
    pub calls: Vec<(i32, Attempt)>,
    pub end: RunEnd,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// It waits, or runs.
    Open,
    Done(Time),
    Dead {
        reason: String,
        at: Time,
    },
}

#[derive(Clone, Debug)]
pub struct NoticeRows {
    pub id: String,
    pub channel: String,
    /// The job that sends it.
    pub job: Seq,
    pub steps: Vec<Step>,
}

/// Its spans, parents before children. `events` begins with the one that all others follow from.
pub fn rebuild(sampler: &Sampler, events: &[TraceRows]) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut places: Vec<(Seq, EventTrace, i32)> = Vec::new();
    for rows in events {
        let Some(seq) = rows.seq else { continue };
        let trace = place(sampler, rows, seq, &places);
        let settled = rows.jobs.iter().find(|job| job.job == seq).map_or(1, |job| job.attempts.max(1));
        places.push((seq, trace, settled));
        spans.extend(of_event(sampler, rows, seq, &trace));
    }
    spans
}

/// Its own, where it carries one; else that of its cause.
fn place(sampler: &Sampler, rows: &TraceRows, seq: Seq, known: &[(Seq, EventTrace, i32)]) -> EventTrace {
    let carried = Traceparent::carried(&rows.headers);
    let own = sampler.of(seq, &rows.source, carried);
    let cause = rows.cause.and_then(|cause| known.iter().find(|(seq, ..)| *seq == cause));
    match cause {
        Some((cause, trace, attempt)) if carried.is_none() => {
            let parent = sampler.installation.span_of_run(JobKind::Settle, *cause, *attempt);
            EventTrace { trace: trace.trace, parent: Some(parent), ..own }
        }
        _ => own,
    }
}

fn of_event(sampler: &Sampler, rows: &TraceRows, seq: Seq, trace: &EventTrace) -> Vec<Span> {
    let installation = sampler.installation;
    let event = TracedEvent {
        seq,
        source: &rows.source,
        event_id: &rows.event_id,
        event_type: &rows.event_type,
        payment: rows.payment.as_deref(),
    };
    let came = us(rows.received_at);
    let root = event_span(installation, trace, &event, (came, came));
    let below = trace.below(root.id);
    let mut spans = vec![root];
    for job in &rows.jobs {
        spans.extend(runs(job, seq).iter().map(|run| run_span(installation, below, Some(&event), run)));
    }
    let notify = spans.iter().rev().find(|span| span.name == "notify").map_or(below.span, |span| span.id);
    for notice in &rows.notices {
        let lane = Lane::by_channel(&notice.channel);
        let tries = tries(notice, &lane);
        let below = trace.below(notify);
        spans.extend(tries.iter().map(|run| try_span(installation, below, &notice.id, run)));
    }
    spans
}

fn runs(rows: &JobRows, event: Seq) -> Vec<RunSpan<'_>> {
    let JobRows { job, lane, attempts, calls, end } = rows;
    let kind = kind_of(*job, lane, event);
    let mut runs: Vec<RunSpan<'_>> = Vec::new();
    for (attempt, call) in calls {
        let start = us(call.at);
        let times = (start, start + call.took_ms.max(0) * 1_000);
        runs.push(RunSpan { kind, lane, job: *job, attempt: *attempt, call: Some(call), error: None, times });
    }
    let free = runs.last().map_or_else(|| us(job.made_at()), |run| run.times.1);
    let is_told = |attempt: i32| calls.iter().any(|(told, _)| *told == attempt);
    match end {
        RunEnd::Open => {}
        // What its last call saw is told already.
        RunEnd::Done(_) if is_told(*attempts) => {}
        RunEnd::Done(at) => runs.push(RunSpan {
            kind,
            lane,
            job: *job,
            attempt: (*attempts).max(1),
            call: None,
            error: None,
            times: (free.min(us(*at)), us(*at)),
        }),
        RunEnd::Dead { reason, at } => match runs.last_mut().filter(|run| run.attempt == *attempts) {
            Some(last) => last.error = Some(reason),
            None => runs.push(RunSpan {
                kind,
                lane,
                job: *job,
                attempt: (*attempts).max(1),
                call: None,
                error: Some(reason),
                times: (free.min(us(*at)), us(*at)),
            }),
        },
    }
    runs
}

/// A try begins with `sending` and ends with whatever comes next.
fn tries<'r>(rows: &'r NoticeRows, lane: &'r Lane) -> Vec<RunSpan<'r>> {
    let mut runs = Vec::new();
    for (n, step) in rows.steps.iter().enumerate().filter(|(_, step)| step.status == NoticeStatus::Sending) {
        let end = rows.steps.get(n + 1);
        let went_well = end.is_none_or(|end| {
            matches!(end.status, NoticeStatus::Sent | NoticeStatus::Bounced | NoticeStatus::Complained)
        });
        let error = end.filter(|_| !went_well).map(|end| end.reason.as_deref().unwrap_or(end.status.name()));
        runs.push(RunSpan {
            kind: JobKind::Send,
            lane,
            job: rows.job,
            attempt: runs.len() as i32 + 1,
            call: None,
            error,
            times: (us(step.at), us(end.unwrap_or(step).at)),
        });
    }
    runs
}

/// Rows tell a job's lane and not its kind.
fn kind_of(job: Seq, lane: &Lane, event: Seq) -> JobKind {
    if job == event || *lane == Lane::settle() {
        return JobKind::Settle;
    }
    if *lane == Lane::notify() {
        return JobKind::Notify;
    }
    match lane.0.split_once(':').map(|(kind, _)| kind) {
        Some("fetch") => JobKind::Fetch,
        Some("refund") => JobKind::Refund,
        Some("by") => JobKind::Send,
        _ => JobKind::Deliver,
    }
}

const fn us(time: Time) -> i64 {
    time.ms().saturating_mul(1_000)
}
