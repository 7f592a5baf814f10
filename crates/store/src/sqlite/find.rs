//! Bounded reads for pages, API and CLI.

use std::collections::BTreeSet;

use bytes::Bytes;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row};
use sekisho_core::change::Rejection;
use sekisho_core::event::{About, Stored, Trust};
use sekisho_core::{Epoch, Seq, Time};

use super::condition::Conditions;
use super::connection::unreadable;
use crate::find::EventLead;
use crate::{
    EventFilter, EventPage, EventRecord, EventSummary, FIND_MAX, NodeRecord, Order, RejectionFilter,
    SCAN_MAX, Status,
};

const SUMMARY: &str =
    "event.seq, event.event_id, event.source, event.type, event.received_at, event.created_at,
    event.object_kind, event.object_id, event.account, event.livemode, event.trust,
    dead.error, dead.at, outcome.result, outcome.note, outcome.at, outcome.payment,
    outcome.billing, outcome.tenant, event.id_reused";
/// Of several dead letters about an event the first counts.
const DEAD: &str = "LEFT JOIN dead ON dead.job = (SELECT min(job) FROM dead WHERE dead.event = event.seq)";
const OUTCOME: &str = "LEFT JOIN outcome ON outcome.job = event.seq";

pub fn events(db: &Connection, filter: &EventFilter) -> rusqlite::Result<EventPage> {
    let limit = filter.limit.min(FIND_MAX);
    let end = end(db, filter)?;
    let Lead { list, number, join } = lead(filter.lead());
    let mut conditions = reach(filter, end, number);
    narrow(&mut conditions, filter);
    let sql = format!(
        "SELECT {SUMMARY} FROM {list} {join} {DEAD} WHERE TRUE{} ORDER BY {number} {} LIMIT {limit}",
        conditions.sql(),
        direction(filter.order),
    );
    let mut statement = db.prepare_cached(&sql)?;
    let events = statement.query_map(&conditions.values()[..], summary)?;
    Ok(EventPage::of(events.collect::<rusqlite::Result<_>>()?, limit, end))
}

/// The last number that one call may look at, if there are so many. Found first, so that what comes in meanwhile
/// can't move it.
fn end(db: &Connection, filter: &EventFilter) -> rusqlite::Result<Option<Seq>> {
    let Lead { list, number, .. } = lead(filter.lead());
    let conditions = reach(filter, None, number);
    let sql = format!(
        "SELECT {number} FROM {list} WHERE TRUE{} ORDER BY {number} {} LIMIT 1 OFFSET {}",
        conditions.sql(),
        direction(filter.order),
        SCAN_MAX - 1
    );
    let mut statement = db.prepare_cached(&sql)?;
    statement.query_row(&conditions.values()[..], |row| row.get(0).map(Seq::from_i64)).optional()
}

/// What leads to events, by which number, and what else their summaries need.
struct Lead {
    list: &'static str,
    number: &'static str,
    join: String,
}

/// CROSS JOIN keeps the order of what it joins: the list comes first.
fn lead(by: EventLead) -> Lead {
    match by {
        EventLead::Payment | EventLead::Tenant => Lead {
            list: "outcome",
            number: "outcome.job",
            join: "CROSS JOIN event ON event.seq = outcome.job".into(),
        },
        EventLead::Failed => Lead {
            list: "dead AS failed",
            number: "failed.event",
            join: format!("CROSS JOIN event ON event.seq = failed.event {OUTCOME}"),
        },
        EventLead::Received => Lead {
            list: "job",
            number: "job.id",
            join: format!("CROSS JOIN event ON event.seq = job.id {OUTCOME}"),
        },
        EventLead::All => Lead { list: "event", number: "event.seq", join: OUTCOME.into() },
    }
}

/// Which part of the list is looked at.
fn reach(filter: &EventFilter, end: Option<Seq>, number: &str) -> Conditions {
    let mut conditions = Conditions::default();
    let (low, high) = filter.reach(end);
    conditions.demand(&format!("{number} > ?"), Some(low));
    conditions.demand(&format!("{number} < ?"), Some(high));
    match filter.lead() {
        EventLead::Payment => conditions.demand("outcome.payment = ?", filter.payment.clone()),
        EventLead::Tenant => conditions.demand("outcome.tenant = ?", filter.tenant.clone()),
        // Once, however many letters.
        EventLead::Failed => {
            conditions.state("failed.job = (SELECT min(job) FROM dead WHERE dead.event = failed.event)");
        }
        EventLead::Received | EventLead::All => {}
    }
    conditions
}

/// Which of them are meant.
fn narrow(conditions: &mut Conditions, filter: &EventFilter) {
    conditions.demand("event.source = ?", filter.source.clone());
    if filter.received {
        conditions.state("event.source NOT IN ('sekisho', 'fetched')");
    }
    conditions.demand_type(filter.event_type.as_deref());
    conditions.demand("event.object_id = ?", filter.object_id.clone());
    if filter.lead() != EventLead::Tenant {
        // Differs from PostgreSQL: the plus keeps its index out of it.
        conditions.demand("+outcome.tenant = ?", filter.tenant.clone());
    }
    if let Some(status) = filter.status {
        conditions.state(standing(status));
    }
}

const fn standing(status: Status) -> &'static str {
    match status {
        Status::Received => "dead.job IS NULL AND outcome.job IS NULL",
        Status::Failed => "dead.job IS NOT NULL",
        Status::Success => "dead.job IS NULL AND outcome.result = 'success'",
        Status::Skipped => "dead.job IS NULL AND outcome.result IN ('skipped', 'discarded')",
    }
}

const fn direction(order: Order) -> &'static str {
    match order {
        Order::NewestFirst => "DESC",
        Order::OldestFirst => "ASC",
    }
}

pub fn event(db: &Connection, seq: Seq) -> rusqlite::Result<Option<EventRecord>> {
    let sql = format!(
        "SELECT {SUMMARY}, event.headers, event.body FROM event {OUTCOME} {DEAD} WHERE event.seq = $1"
    );
    db.prepare_cached(&sql)?
        .query_row([seq.as_i64()], |row| {
            Ok(EventRecord { summary: summary(row)?, headers: row.get(20)?, body: body(row, 21)? })
        })
        .optional()
}

/// Text or blob: the bytes are what came.
fn body(row: &Row<'_>, column: usize) -> rusqlite::Result<Bytes> {
    match row.get_ref(column)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Ok(Bytes::copy_from_slice(bytes)),
        _ => Err(unreadable(column, "body")),
    }
}

pub fn stored(db: &Connection, seqs: &BTreeSet<Seq>) -> rusqlite::Result<Vec<Stored>> {
    let mut statement = db.prepare_cached(
        "SELECT seq, received_at, source, event_id, type, created_at, object_kind, object_id, account, livemode,
                trust, headers, body
         FROM event WHERE seq = $1",
    )?;
    let mut found = Vec::with_capacity(seqs.len());
    for seq in seqs {
        let event = statement.query_row([seq.as_i64()], |row| {
            let object: (Option<String>, Option<String>) = (row.get(6)?, row.get(7)?);
            Ok(Stored {
                seq: Seq::from_i64(row.get(0)?),
                received_at: Time::from_ms(row.get(1)?),
                source: row.get::<_, String>(2)?.into(),
                event_id: row.get(3)?,
                event_type: row.get(4)?,
                created_at: row.get::<_, Option<i64>>(5)?.map(Time::from_ms),
                object: object.0.zip(object.1),
                account: row.get(8)?,
                livemode: row.get(9)?,
                trust: Trust::parse(row.get_ref(10)?.as_str()?).ok_or_else(|| unreadable(10, "trust"))?,
                headers: row.get::<_, String>(11)?.into(),
                body: body(row, 12)?,
            })
        });
        found.extend(event.optional()?);
    }
    Ok(found)
}

fn summary(row: &Row<'_>) -> rusqlite::Result<EventSummary> {
    let time = |index| row.get::<_, Option<i64>>(index).map(|ms| ms.map(Time::from_ms));
    let (dead_error, dead_at): (Option<String>, _) = (row.get(11)?, time(12)?);
    let (result, note): (Option<String>, Option<String>) = (row.get(13)?, row.get(14)?);
    let status = match (&dead_at, result.as_deref()) {
        (Some(_), _) => Status::Failed,
        (None, None) => Status::Received,
        (None, Some(result)) => Status::of_result(result).ok_or_else(|| unreadable(13, "result"))?,
    };
    let object: (Option<String>, Option<String>) = (row.get(6)?, row.get(7)?);
    Ok(EventSummary {
        seq: Seq::from_i64(row.get(0)?),
        event_id: row.get(1)?,
        source: row.get(2)?,
        event_type: row.get(3)?,
        status,
        received_at: Time::from_ms(row.get(4)?),
        created_at: time(5)?,
        object: object.0.zip(object.1),
        account: row.get(8)?,
        livemode: row.get(9)?,
        trust: row.get(10)?,
        id_reused: row.get(19)?,
        note: dead_error.or(note),
        processed_at: dead_at.or(time(15)?),
        about: About { payment: row.get(16)?, billing: row.get(17)?, tenant: row.get(18)? },
    })
}

pub fn rejections(db: &Connection, filter: &RejectionFilter) -> rusqlite::Result<Vec<Rejection>> {
    let mut conditions = Conditions::default();
    conditions.demand("source = ?", filter.source.clone());
    conditions.demand("reason = ?", filter.reason.clone());
    conditions.demand("seq < ?", filter.before.map(Seq::as_i64));
    let sql = format!(
        "SELECT seq, at, source, peer, reason, detail, request_id, count, last_at, network FROM rejection
         WHERE TRUE{} ORDER BY seq DESC LIMIT {}",
        conditions.sql(),
        filter.limit.min(FIND_MAX)
    );
    let mut statement = db.prepare_cached(&sql)?;
    let rows = statement.query_map(&conditions.values()[..], |row| {
        Ok(Rejection {
            seq: Seq::from_i64(row.get(0)?),
            at: Time::from_ms(row.get(1)?),
            source: row.get(2)?,
            peer: row.get(3)?,
            reason: row.get(4)?,
            detail: row.get(5)?,
            request_id: row.get(6)?,
            count: row.get(7)?,
            last_at: Time::from_ms(row.get(8)?),
            network: row.get(9)?,
        })
    })?;
    rows.collect()
}

pub fn nodes(db: &Connection) -> rusqlite::Result<Vec<NodeRecord>> {
    let mut statement = db.prepare_cached(
        "SELECT epoch, beat, joined_at FROM node WHERE ended IS NULL ORDER BY epoch LIMIT $1",
    )?;
    let rows = statement.query_map([FIND_MAX as i64], |row| {
        Ok(NodeRecord { epoch: Epoch(row.get(0)?), beat: row.get(1)?, joined_at: Time::from_ms(row.get(2)?) })
    })?;
    rows.collect()
}
