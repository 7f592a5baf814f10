//! Bounded reads for pages, API and CLI.

use bytes::Bytes;
use rusqlite::types::{ToSql, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row, params};
use sekisho_core::change::Rejection;
use sekisho_core::{Seq, Time};

use crate::{EventFilter, EventRecord, EventSummary, FIND_MAX, Order, Status};

const SUMMARY: &str =
    "event.seq, event.event_id, event.source, event.type, event.received_at, event.created_at,
    event.object_kind, event.object_id, event.account, event.livemode, event.trust,
    dead.error, dead.at, outcome.result, outcome.note, outcome.at";
const FROM: &str =
    "FROM event LEFT JOIN outcome ON outcome.job = event.seq LEFT JOIN dead ON dead.job = event.seq";

pub fn events(db: &Connection, filter: &EventFilter) -> rusqlite::Result<Vec<EventSummary>> {
    let mut conditions = vec!["TRUE".to_owned()];
    let mut values: Vec<Box<dyn ToSql>> = Vec::new();
    let mut add = |condition: &str, value: Box<dyn ToSql>| {
        values.push(value);
        conditions.push(condition.replace('?', &format!("${}", values.len())));
    };
    if let Some(source) = &filter.source {
        add("event.source = ?", Box::new(source.clone()));
    }
    if let Some(kind) = &filter.event_type {
        match kind.strip_suffix('*') {
            Some(prefix) => add("substr(event.type, 1, length(?)) = ?", Box::new(prefix.to_owned())),
            None => add("event.type = ?", Box::new(kind.clone())),
        }
    }
    if let Some(object_id) = &filter.object_id {
        add("event.object_id = ?", Box::new(object_id.clone()));
    }
    if let Some(after) = filter.after {
        add("event.seq > ?", Box::new(after.as_i64()));
    }
    if let Some(before) = filter.before {
        add("event.seq < ?", Box::new(before.as_i64()));
    }
    match filter.status {
        None => {}
        Some(Status::Failed) => conditions.push("dead.job IS NOT NULL".into()),
        Some(Status::Received) => conditions.push("dead.job IS NULL AND outcome.job IS NULL".into()),
        Some(done @ (Status::Success | Status::Skipped)) => {
            add("dead.job IS NULL AND outcome.result = ?", Box::new(done.name()));
        }
    }
    values.push(Box::new(filter.limit.min(FIND_MAX) as i64));
    let direction = match filter.order {
        Order::NewestFirst => "DESC",
        Order::OldestFirst => "ASC",
    };
    let sql = format!(
        "SELECT {SUMMARY} {FROM} WHERE {} ORDER BY event.seq {direction} LIMIT ${}",
        conditions.join(" AND "),
        values.len()
    );
    let values: Vec<&dyn ToSql> = values.iter().map(AsRef::as_ref).collect();
    db.prepare_cached(&sql)?.query_map(&values[..], summary)?.collect()
}

pub fn event(db: &Connection, seq: Seq) -> rusqlite::Result<Option<EventRecord>> {
    db.prepare_cached(&format!("SELECT {SUMMARY}, event.headers, event.body {FROM} WHERE event.seq = $1"))?
        .query_row([seq.as_i64()], |row| {
            let body = match row.get_ref(17)? {
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Bytes::copy_from_slice(bytes),
                other => {
                    return Err(rusqlite::Error::InvalidColumnType(17, "body".into(), other.data_type()));
                }
            };
            Ok(EventRecord { summary: summary(row)?, headers: row.get(16)?, body })
        })
        .optional()
}

fn summary(row: &Row<'_>) -> rusqlite::Result<EventSummary> {
    let time = |index| row.get::<_, Option<i64>>(index).map(|ms| ms.map(Time::from_ms));
    let (dead_error, dead_at): (Option<String>, _) = (row.get(11)?, time(12)?);
    let (result, note): (Option<String>, Option<String>) = (row.get(13)?, row.get(14)?);
    let status = match (&dead_at, result.as_deref()) {
        (Some(_), _) => Status::Failed,
        (None, None) => Status::Received,
        (None, Some(result)) => Status::parse(result).ok_or(rusqlite::Error::InvalidColumnType(
            13,
            "result".into(),
            rusqlite::types::Type::Text,
        ))?,
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
        note: dead_error.or(note),
        processed_at: dead_at.or(time(15)?),
    })
}

/// By the hash half of the key: the provider's clock, its first half, is not known here.
pub fn seq(db: &Connection, hash: &[u8; 12]) -> rusqlite::Result<Option<Seq>> {
    db.prepare_cached("SELECT seq FROM dedupe WHERE substr(key, 5) = $1 ORDER BY seq DESC LIMIT 1")?
        .query_row([&hash[..]], |row| row.get(0).map(Seq::from_i64))
        .optional()
}

pub fn rejections(db: &Connection, source: Option<&str>, limit: usize) -> rusqlite::Result<Vec<Rejection>> {
    let mut statement = db.prepare_cached(
        "SELECT seq, at, source, peer, reason, detail, request_id, count FROM rejection
         WHERE $1 IS NULL OR source = $1 ORDER BY seq DESC LIMIT $2",
    )?;
    let rows = statement.query_map(params![source, limit.min(FIND_MAX) as i64], |row| {
        Ok(Rejection {
            seq: Seq::from_i64(row.get(0)?),
            at: Time::from_ms(row.get(1)?),
            source: row.get(2)?,
            peer: row.get(3)?,
            reason: row.get(4)?,
            detail: row.get(5)?,
            request_id: row.get(6)?,
            count: row.get(7)?,
        })
    })?;
    rows.collect()
}
