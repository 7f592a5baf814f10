//! Bounded reads for pages, API and CLI.

use bytes::Bytes;
use sekisho_core::change::Rejection;
use sekisho_core::event::DedupeKey;
use sekisho_core::{Seq, Time};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::connection::{Link, value};
use super::upkeep::limit_of;
use crate::error::{Error, Result};
use crate::{EventFilter, EventRecord, EventSummary, FIND_MAX, Order, Status};

/// A value that a statement numbers.
type Value = Box<dyn ToSql + Sync + Send>;

/// The columns that [`summary`] reads, in its order.
const SUMMARY: &str = "
    event.seq, event.event_id, event.source, event.type, event.received_at, event.created_at, event.object_kind,
    event.object_id, event.account, event.livemode, event.trust, outcome.result, outcome.note, outcome.at, dead.error,
    dead.at";

const FROM: &str = "
FROM event LEFT JOIN outcome ON outcome.job = event.seq LEFT JOIN dead ON dead.job = event.seq";

pub async fn events(link: &Link, filter: &EventFilter) -> Result<Vec<EventSummary>> {
    let (conditions, values) = conditions(filter);
    let order = match filter.order {
        Order::NewestFirst => "DESC",
        Order::OldestFirst => "ASC",
    };
    let limit = limit_of(filter.limit, FIND_MAX);
    let sql = format!("SELECT {SUMMARY} {FROM} WHERE {conditions} ORDER BY event.seq {order} LIMIT {limit}");
    let values: Vec<_> = values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
    link.query_once(&sql, &values).await?.iter().map(summary).collect()
}

/// The conditions as SQL, and the values they number. Nothing of the filter's text goes into the SQL.
fn conditions(filter: &EventFilter) -> (String, Vec<Value>) {
    let mut sql = String::from("true");
    let mut values: Vec<Value> = Vec::new();
    let mut demand = |condition: &str, wanted: Option<Value>| {
        if let Some(wanted) = wanted {
            values.push(wanted);
            let number = format!("${}", values.len());
            sql.push_str(" AND ");
            sql.push_str(&condition.replace('?', &number));
        }
    };
    let text = |wanted: Option<&str>| wanted.map(|wanted| Box::new(wanted.to_owned()) as Value);
    let seq = |wanted: Option<Seq>| wanted.map(|wanted| Box::new(wanted.as_i64()) as Value);
    let prefix = filter.event_type.as_deref().and_then(|wanted| wanted.strip_suffix('*'));
    let exact = filter.event_type.as_deref().filter(|_| prefix.is_none());
    demand("event.seq > ?", seq(filter.after));
    demand("event.seq < ?", seq(filter.before));
    demand("event.source = ?", text(filter.source.as_deref()));
    demand("event.type = ?", text(exact));
    demand("starts_with(event.type, ?)", text(prefix));
    demand("event.object_id = ?", text(filter.object_id.as_deref()));
    if let Some(status) = filter.status {
        sql.push_str(" AND ");
        sql.push_str(standing(status));
    }
    (sql, values)
}

/// Written so that the few are not searched among the many: what waits is listed in `job`, what failed in `dead`.
const fn standing(status: Status) -> &'static str {
    match status {
        Status::Received => "dead.job IS NULL AND outcome.job IS NULL AND event.seq IN (SELECT id FROM job)",
        Status::Failed => "dead.job IS NOT NULL",
        Status::Success => "dead.job IS NULL AND outcome.result = 'success'",
        Status::Skipped => "dead.job IS NULL AND outcome.result = 'skipped'",
    }
}

fn summary(row: &Row) -> Result<EventSummary> {
    let kind: Option<String> = value(row, 6)?;
    let id: Option<String> = value(row, 7)?;
    let (result, note): (Option<&str>, Option<String>) = (value(row, 11)?, value(row, 12)?);
    let error: Option<String> = value(row, 14)?;
    let (status, note, processed_at) = match (error, result) {
        (Some(error), _) => (Status::Failed, Some(error), time(row, 15)?),
        (None, Some(result)) => (outcome(result)?, note, time(row, 13)?),
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
    })
}

fn outcome(result: &str) -> Result<Status> {
    Status::parse(result).ok_or_else(|| Error::corrupt(format!("no outcome is called `{result}`")))
}

fn time(row: &Row, index: usize) -> Result<Option<Time>> {
    Ok(value::<Option<i64>>(row, index)?.map(Time::from_ms))
}

pub async fn event(link: &Link, seq: Seq) -> Result<Option<EventRecord>> {
    let sql = format!("SELECT {SUMMARY}, event.headers, event.body {FROM} WHERE event.seq = $1");
    let rows = link.query_once(&sql, &[&seq.as_i64()]).await?;
    let record = |row| {
        let body: &[u8] = value(row, 17)?;
        Ok(EventRecord {
            summary: summary(row)?,
            headers: value(row, 16)?,
            body: Bytes::copy_from_slice(body),
        })
    };
    rows.first().map(record).transpose()
}

/// When the event was created is not known here, so the whole of `dedupe` is scanned for the rest of the key.
const SEQ: &str = "SELECT seq FROM dedupe WHERE substr(key, 5) = $1 ORDER BY seq DESC LIMIT 1";

pub async fn seq(link: &Link, source: &str, event_id: &str) -> Result<Option<Seq>> {
    let key = DedupeKey::new(source, event_id, None);
    let rows = link.query(SEQ, &[&&key.as_bytes()[4..]]).await?;
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
