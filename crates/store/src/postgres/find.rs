//! Bounded reads for pages, API and CLI.

use std::collections::BTreeSet;

use bytes::Bytes;
use sekisho_core::change::{About, Rejection};
use sekisho_core::event::{Stored, Trust};
use sekisho_core::{Seq, Time};
use tokio_postgres::Row;

use super::condition::Conditions;
use super::connection::{Link, unreadable, value};
use super::upkeep::limit_of;
use crate::error::Result;
use crate::{EventFilter, EventRecord, EventSummary, FIND_MAX, Order, Status};

/// The columns that [`summary`] reads, in its order.
const SUMMARY: &str = "
    event.seq, event.event_id, event.source, event.type, event.received_at, event.created_at, event.object_kind,
    event.object_id, event.account, event.livemode, event.trust, outcome.result, outcome.note, outcome.at, dead.error,
    dead.at, outcome.payment, outcome.billing, outcome.tenant";

/// An event that left no trace of its settling was let go, and waits for its partition to be dropped.
const FROM: &str = "
FROM event LEFT JOIN outcome ON outcome.job = event.seq
LEFT JOIN LATERAL (SELECT * FROM dead WHERE dead.event = event.seq ORDER BY job LIMIT 1) AS dead ON true
WHERE (outcome.job IS NOT NULL OR dead.job IS NOT NULL OR EXISTS (SELECT FROM job WHERE job.id = event.seq))";

pub async fn events(link: &Link, filter: &EventFilter) -> Result<Vec<EventSummary>> {
    let conditions = conditions(filter);
    let order = match filter.order {
        Order::NewestFirst => "DESC",
        Order::OldestFirst => "ASC",
    };
    let limit = limit_of(filter.limit, FIND_MAX);
    let wanted = conditions.sql();
    let sql = format!("SELECT {SUMMARY} {FROM} {wanted} ORDER BY event.seq {order} LIMIT {limit}");
    link.query_once(&sql, &conditions.values()).await?.iter().map(summary).collect()
}

/// Which events are meant.
fn conditions(filter: &EventFilter) -> Conditions {
    let mut conditions = Conditions::default();
    conditions.demand("event.seq > ?", filter.after.map(Seq::as_i64));
    conditions.demand("event.seq < ?", filter.before.map(Seq::as_i64));
    conditions.demand("event.source = ?", filter.source.clone());
    if filter.received {
        conditions.state("event.source NOT IN ('sekisho', 'fetched')");
    }
    conditions.demand_type(filter.event_type.as_deref());
    conditions.demand("event.object_id = ?", filter.object_id.clone());
    if let Some(status) = filter.status {
        conditions.state(standing(status));
    }
    conditions
}

/// The few are not searched among the many: what waits is listed in `job`, what failed in `dead`.
const fn standing(status: Status) -> &'static str {
    match status {
        Status::Received => "dead.job IS NULL AND outcome.job IS NULL AND event.seq IN (SELECT id FROM job)",
        Status::Failed => "event.seq IN (SELECT event FROM dead)",
        Status::Success => "dead.job IS NULL AND outcome.result = 'success'",
        Status::Skipped => "dead.job IS NULL AND outcome.result IN ('skipped', 'discarded')",
    }
}

fn summary(row: &Row) -> Result<EventSummary> {
    let kind: Option<String> = value(row, 6)?;
    let id: Option<String> = value(row, 7)?;
    let (result, note): (Option<&str>, Option<String>) = (value(row, 11)?, value(row, 12)?);
    let error: Option<String> = value(row, 14)?;
    let (status, note, processed_at) = match (error, result) {
        (Some(error), _) => (Status::Failed, Some(error), time(row, 15)?),
        (None, Some(result)) => {
            let status = Status::of_result(result).ok_or_else(|| unreadable("result"))?;
            (status, note, time(row, 13)?)
        }
        (None, None) => (Status::Received, None, None),
    };
    Ok(EventSummary {
        seq: Seq::from_i64(value(row, 0)?),
        event_id: value(row, 1)?,
        source: value(row, 2)?,
        event_type: value(row, 3)?,
        status,
        received_at: Time::from_ms(value(row, 4)?),
        created_at: time(row, 5)?,
        object: kind.zip(id),
        account: value(row, 8)?,
        livemode: value(row, 9)?,
        trust: value(row, 10)?,
        note,
        processed_at,
        about: About { payment: value(row, 16)?, billing: value(row, 17)?, tenant: value(row, 18)? },
    })
}

fn time(row: &Row, index: usize) -> Result<Option<Time>> {
    Ok(value::<Option<i64>>(row, index)?.map(Time::from_ms))
}

pub async fn event(link: &Link, seq: Seq) -> Result<Option<EventRecord>> {
    let sql = format!("SELECT {SUMMARY}, event.headers, event.body {FROM} AND event.seq = $1");
    let rows = link.query_once(&sql, &[&seq.as_i64()]).await?;
    let record = |row| {
        let body: &[u8] = value(row, 20)?;
        Ok(EventRecord {
            summary: summary(row)?,
            headers: value(row, 19)?,
            body: Bytes::copy_from_slice(body),
        })
    };
    rows.first().map(record).transpose()
}

/// Looked up one by one, so that only the partitions of these events are visited.
const STORED: &str = "
SELECT found.*
FROM unnest($1::bigint[]) AS wanted (seq)
CROSS JOIN LATERAL (
    SELECT seq, received_at, source, event_id, type, created_at, object_kind, object_id, account, livemode, trust,
           headers, body
    FROM event WHERE event.seq = wanted.seq LIMIT 1
) AS found
ORDER BY found.seq";

pub async fn stored(link: &Link, seqs: &BTreeSet<Seq>) -> Result<Vec<Stored>> {
    let seqs: Vec<i64> = seqs.iter().map(|seq| seq.as_i64()).collect();
    let rows = link.query(STORED, &[&seqs]).await?;
    let event = |row| {
        let object: (Option<String>, Option<String>) = (value(row, 6)?, value(row, 7)?);
        Ok(Stored {
            seq: Seq::from_i64(value(row, 0)?),
            received_at: Time::from_ms(value(row, 1)?),
            source: value::<&str>(row, 2)?.into(),
            event_id: value(row, 3)?,
            event_type: value(row, 4)?,
            created_at: time(row, 5)?,
            object: object.0.zip(object.1),
            account: value(row, 8)?,
            livemode: value(row, 9)?,
            trust: Trust::parse(value(row, 10)?).ok_or_else(|| unreadable("trust"))?,
            headers: value::<&str>(row, 11)?.into(),
            body: Bytes::copy_from_slice(value(row, 12)?),
        })
    };
    rows.iter().map(event).collect()
}

/// When the event was created is not known here, so the whole of `dedupe` is scanned for the rest of the key.
const SEQ: &str = "SELECT seq FROM dedupe WHERE substr(key, 5) = $1 ORDER BY seq DESC LIMIT 1";

pub async fn seq(link: &Link, hash: &[u8; 12]) -> Result<Option<Seq>> {
    let rows = link.query(SEQ, &[&&hash[..]]).await?;
    rows.first().map(|row| value(row, 0).map(Seq::from_i64)).transpose()
}

const REJECTIONS: &str = "
SELECT seq, at, source, peer, reason, detail, request_id, count FROM rejection
WHERE $1::text IS NULL OR source = $1
ORDER BY seq DESC LIMIT $2";

pub async fn rejections(link: &Link, source: Option<&str>, limit: usize) -> Result<Vec<Rejection>> {
    let rows = link.query(REJECTIONS, &[&source, &limit_of(limit, FIND_MAX)]).await?;
    let rejection = |row| {
        Ok(Rejection {
            seq: Seq::from_i64(value(row, 0)?),
            at: Time::from_ms(value(row, 1)?),
            source: value(row, 2)?,
            peer: value(row, 3)?,
            reason: value(row, 4)?,
            detail: value(row, 5)?,
            request_id: value(row, 6)?,
            count: value(row, 7)?,
        })
    };
    rows.iter().map(rejection).collect()
}

const DESCRIBE: &str = "
SELECT 'database', current_database()::text
UNION ALL
SELECT name, setting FROM pg_settings WHERE name IN (
    'server_version', 'fsync', 'full_page_writes', 'synchronous_commit', 'synchronous_standby_names',
    'default_toast_compression'
)
UNION ALL
SELECT 'event partitions', count(*)::text FROM pg_inherits WHERE inhparent = 'event'::regclass";

pub async fn describe(link: &Link) -> Result<Vec<(String, String)>> {
    let rows = link.query(DESCRIBE, &[]).await?;
    let mut lines = vec![("store".to_owned(), "PostgreSQL".to_owned())];
    for row in &rows {
        lines.push((value(row, 0)?, value(row, 1)?));
    }
    Ok(lines)
}
