//! The trace of an event, put together from what is stored: what it followed from, and all that followed from it.

use std::collections::VecDeque;

use sekisho_core::job::Lane;
use sekisho_core::notification::Notice;
use sekisho_core::source_name::OWN;
use sekisho_core::state;
use sekisho_core::trace::{JobRows, NoticeRows, RunEnd, Sampler, Span, TraceRows, rebuild};
use sekisho_core::{Seq, Time};
use sekisho_store::{
    AuditEntry, AuditFilter, EventRecord, EventSummary, Result, Standing, StateFilter, Store, StoredMessage,
};
use serde::Deserialize;

/// Events of one trace.
const EVENTS_MAX: usize = 20;
/// Jobs of one event.
const JOBS_MAX: usize = 50;
const AUDIT_MAX: usize = 200;
const NOTICES_LOOKED_MAX: usize = 100;
/// How long after an event its notices are looked for.
const NOTICES_WITHIN_MS: i64 = 10 * 60_000;
/// How far it is looked for what an event followed from.
const CAUSES_MAX: usize = 4;

/// Its spans, parents before children; none where there is no such event.
pub async fn trace(store: &dyn Store, sampler: &Sampler, event: Seq) -> Result<Vec<Span>> {
    let mut first = event;
    for _ in 0..CAUSES_MAX {
        match cause_of(store, first).await? {
            Some(cause) => first = cause,
            None => break,
        }
    }
    let mut open = VecDeque::from([(first, None)]);
    let mut found: Vec<TraceRows> = Vec::new();
    while let Some((seq, cause)) = open.pop_front().filter(|_| found.len() < EVENTS_MAX) {
        if found.iter().any(|rows| rows.seq == Some(seq)) {
            continue;
        }
        let Some(record) = store.find_event(seq).await? else { continue };
        for told in announced(store, &record.summary).await? {
            open.push_back((told, Some(seq)));
        }
        found.push(rows(store, record, cause).await?);
    }
    Ok(rebuild(sampler, &found))
}

/// What an entry says that was announced.
#[derive(Deserialize)]
struct ToldFact {
    id: Option<String>,
}

fn told(entry: &AuditEntry) -> Option<String> {
    serde_json::from_str::<ToldFact>(&entry.entry.details).ok()?.id
}

async fn entries(store: &dyn Store, event: &EventSummary, since: Option<Time>) -> Result<Vec<AuditEntry>> {
    let mut found = Vec::new();
    for target in [&event.about.payment, &event.about.billing].into_iter().flatten() {
        let filter =
            AuditFilter { target: Some(target.clone()), since, limit: AUDIT_MAX, ..AuditFilter::default() };
        found.extend(store.find_audit(filter).await?.entries);
    }
    Ok(found)
}

/// The event whose settling announced this one.
async fn cause_of(store: &dyn Store, event: Seq) -> Result<Option<Seq>> {
    let Some(record) = store.find_event(event).await?.filter(|record| record.summary.source == OWN) else {
        return Ok(None);
    };
    let entries = entries(store, &record.summary, None).await?;
    let own = entries.iter().find(|entry| told(entry).as_deref() == Some(&*record.summary.event_id));
    Ok(own.and_then(|entry| entry.entry.event).filter(|cause| *cause != event))
}

/// The announcements that were made when this one was settled, the oldest first.
async fn announced(store: &dyn Store, event: &EventSummary) -> Result<Vec<Seq>> {
    let entries = entries(store, event, Some(event.received_at)).await?;
    let mut found = Vec::new();
    for entry in entries.iter().rev().filter(|entry| entry.entry.event == Some(event.seq)) {
        if let Some(id) = told(entry) {
            found.extend(store.find_seq(OWN, &id).await?);
        }
    }
    Ok(found)
}

async fn rows(store: &dyn Store, record: EventRecord, cause: Option<Seq>) -> Result<TraceRows> {
    let EventRecord { summary, headers, .. } = record;
    let seq = summary.seq;
    let mut jobs = Vec::new();
    let settling = store.find_message(seq).await?;
    let others = store.find_messages(seq).await?;
    let tells = others.iter().any(|message| message.lane == Lane::notify());
    let others = others.into_iter().filter(|message| message.job != seq).take(JOBS_MAX);
    for message in settling.into_iter().chain(others) {
        jobs.push(job(store, message).await?);
    }
    let notices = if tells { notices(store, &summary).await? } else { Vec::new() };
    Ok(TraceRows {
        seq: Some(seq),
        source: summary.source,
        event_id: summary.event_id,
        event_type: summary.event_type,
        payment: summary.about.payment,
        received_at: summary.received_at,
        headers,
        cause,
        jobs,
        notices,
    })
}

async fn job(store: &dyn Store, message: StoredMessage) -> Result<JobRows> {
    let calls = store.find_attempts(message.job).await?;
    let end = match message.standing {
        Standing::Waiting(_) | Standing::Running => RunEnd::Open,
        Standing::Done(_, at) => RunEnd::Done(at),
        Standing::Dead(death, at) => RunEnd::Dead { reason: death.reason, at },
    };
    Ok(JobRows { job: message.job, lane: message.lane, attempts: message.attempts, calls, end })
}

/// Notices of this event, among those that were written down shortly after it.
async fn notices(store: &dyn Store, event: &EventSummary) -> Result<Vec<NoticeRows>> {
    let id = event.seq.as_event().to_string();
    let until = Seq::floor_of(event.received_at.plus_ms(NOTICES_WITHIN_MS)).tagged("ntc_");
    let filter =
        StateFilter { before: Some(until), ..StateFilter::all(state::Kind::Notice, NOTICES_LOOKED_MAX) };
    let mut found = Vec::new();
    for state in store.find_states(filter).await?.into_iter().rev() {
        let Ok(notice) = serde_json::from_str::<Notice>(&state.facts) else { continue };
        let job = notice.message.as_deref().and_then(|message| message.parse().ok());
        if let Some(job) = job.filter(|_| notice.event.as_deref() == Some(&*id)) {
            found.push(NoticeRows { id: state.key.id, channel: notice.channel, job, steps: notice.steps });
        }
    }
    Ok(found)
}
