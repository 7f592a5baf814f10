//! Everything that is known of one payment, gathered for whoever asks how it came to stand where it stands: what the log
//! says of it and of what became part of it, the events, what they caused, the lines of the books, who was told.
//!
//! Only reads, and each of them is bounded. What was left out is admitted by [`Dossier::is_whole`].

use std::collections::{BTreeMap, BTreeSet};

use sekisho_core::job::Lane;
use sekisho_core::notification::Notice;
use sekisho_core::settlement::payment::Facts;
use sekisho_core::source_name::OWN;
use sekisho_core::state::State;
use sekisho_core::{Seq, Time};
use sekisho_store::{
    AuditEntry, AuditFilter, BookedLine, Error, EventFilter, EventSummary, FIND_MAX, LineFilter, Order,
    Result, Standing, Store, StoredMessage,
};

use super::notices::NoticeQuery;
use crate::types::ChangeDetails;

/// Payments that became part of it, entries of the log, events, lines, and notices: at most so many of each.
const PARTS_MAX: usize = 50;
const ENTRIES_MAX: usize = FIND_MAX;
const EVENTS_MAX: usize = 300;
const LINES_MAX: usize = FIND_MAX;
const NOTICES_MAX: usize = 100;
/// How far the clocks of nodes may be apart where one wrote the event and another its notices.
const SLACK_MS: i64 = 60_000;

pub struct Dossier {
    pub state: State,
    pub facts: Facts,
    /// Its own id, then those of what became part of it.
    pub ids: Vec<String>,
    /// The oldest first, as all that follows.
    pub entries: Vec<AuditEntry>,
    pub events: Vec<EventSummary>,
    /// What each event caused.
    pub messages: BTreeMap<Seq, Vec<StoredMessage>>,
    pub lines: Vec<BookedLine>,
    pub notices: Vec<(String, Notice)>,
    /// Nothing was left out for being too much.
    pub is_whole: bool,
}

pub async fn dossier(store: &dyn Store, state: State, now: Time) -> Result<Dossier> {
    let facts = Facts::parse(&state.facts).map_err(Error::corrupt)?;
    let History { ids, entries, mut is_whole } = history(store, &state.key.id).await?;
    let (mut events, mut lines) = (Vec::new(), Vec::new());
    for id in &ids {
        let (of_events, of_lines) = (EVENTS_MAX - events.len(), LINES_MAX - lines.len());
        let found = events_of(store, id, of_events).await?;
        let booked = lines_of(store, id, of_lines).await?;
        is_whole &= found.len() < of_events && booked.len() < of_lines;
        events.extend(found);
        lines.extend(booked);
    }
    events.extend(announced(store, &entries).await?);
    events.sort_by_key(|event| event.seq);
    events.dedup_by_key(|event| event.seq);
    lines.sort_by_key(|line| line.number);
    let mut messages = BTreeMap::new();
    for event in &events {
        messages.insert(event.seq, store.find_messages(event.seq).await?);
    }
    let notices = notices_of(store, &ids, &events, &messages, now).await?;
    is_whole &= notices.len() < NOTICES_MAX;
    Ok(Dossier { state, facts, ids, entries, events, messages, lines, notices, is_whole })
}

/// What the log says of a payment.
pub struct History {
    /// Its own id, then those of what became part of it.
    pub ids: Vec<String>,
    /// The oldest first.
    pub entries: Vec<AuditEntry>,
    pub is_whole: bool,
}

/// The newest entries of a payment and of everything that became part of it.
pub async fn history(store: &dyn Store, id: &str) -> Result<History> {
    let (mut entries, mut ids, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
    let (mut open, mut is_whole) = (vec![id.to_owned()], true);
    while let Some(target) = open.pop() {
        if seen.contains(&target) {
            continue;
        }
        let room = ENTRIES_MAX - entries.len();
        if ids.len() > PARTS_MAX || room == 0 {
            is_whole = false;
            break;
        }
        let filter = AuditFilter { target: Some(target.clone()), limit: room, ..AuditFilter::default() };
        let page = store.find_audit(filter).await?;
        is_whole &= page.next.is_none();
        page.entries.iter().for_each(|entry| open.extend(merged(entry)));
        entries.extend(page.entries);
        seen.insert(target.clone());
        ids.push(target);
    }
    entries.sort_by_key(|entry| entry.number);
    Ok(History { ids, entries, is_whole })
}

/// What this entry says became part of it.
fn merged(entry: &AuditEntry) -> Vec<String> {
    ChangeDetails::of(&entry.entry.details).merged_ids()
}

async fn events_of(store: &dyn Store, payment: &str, limit: usize) -> Result<Vec<EventSummary>> {
    let filter = EventFilter {
        payment: Some(payment.to_owned()),
        order: Order::NewestFirst,
        limit,
        ..EventFilter::default()
    };
    Ok(store.find_events(filter).await?.events)
}

/// What was announced and is not settled yet is an event of no payment, but the log says its id.
async fn announced(store: &dyn Store, entries: &[AuditEntry]) -> Result<Vec<EventSummary>> {
    let mut announced = Vec::new();
    for entry in entries {
        let Some(id) = ChangeDetails::of(&entry.entry.details).id else { continue };
        if let Some(seq) = store.find_seq(OWN, &id).await? {
            announced.extend(store.find_event(seq).await?.map(|record| record.summary));
        }
    }
    Ok(announced)
}

async fn lines_of(store: &dyn Store, payment: &str, limit: usize) -> Result<Vec<BookedLine>> {
    store.find_lines(LineFilter { payment: Some(payment.to_owned()), limit, ..LineFilter::default() }).await
}

/// Notices are not found by their payment, but they are written while it is worked out whom an event is told: between
/// the event and the end of that work.
async fn notices_of(
    store: &dyn Store,
    ids: &[String],
    events: &[EventSummary],
    messages: &BTreeMap<Seq, Vec<StoredMessage>>,
    now: Time,
) -> Result<Vec<(String, Notice)>> {
    let mut found: BTreeMap<String, Notice> = BTreeMap::new();
    let notify = Lane::notify();
    for event in events {
        let tasks = messages.get(&event.seq).into_iter().flatten().filter(|task| task.lane == notify);
        let Some(until) = tasks.map(|task| end_of(task, now)).max() else { continue };
        for id in ids {
            let query = NoticeQuery {
                payment: Some(id.clone()),
                since: Some(event.received_at.plus_ms(-SLACK_MS)),
                until: Some(until.plus_ms(SLACK_MS)),
                ..NoticeQuery::default()
            };
            found.extend(query.page(store, None, NOTICES_MAX).await?.notices);
        }
        if found.len() >= NOTICES_MAX {
            break;
        }
    }
    Ok(found.into_iter().take(NOTICES_MAX).collect())
}

fn end_of(task: &StoredMessage, now: Time) -> Time {
    match &task.standing {
        Standing::Waiting(_) | Standing::Running => now,
        Standing::Done(_, at) | Standing::Dead(_, at) => *at,
    }
}
