//! Bounded reads for pages, API and CLI.

use std::collections::BTreeSet;

use bytes::Bytes;
use sekisho_core::change::Rejection;
use sekisho_core::event::{About, DedupeKey, Stored, Trust};
use sekisho_core::{Epoch, Seq, Time};
use tokio_postgres::Row;

use super::condition::Conditions;
use super::connection::{Link, unreadable, value};
use super::upkeep::limit_of;
use crate::error::Result;
use crate::find::EventLead;
use crate::{
    EventFilter, EventPage, EventRecord, EventSummary, FIND_MAX, NodeRecord, Order, RejectionFilter,
    SCAN_MAX, Status,
};

/// The columns that [`summary`] reads, in its order.
const SUMMARY: &str = "
    event.seq, event.event_id, event.source, event.type, event.received_at, event.created_at, event.object_kind,
    event.object_id, event.account, event.livemode, event.trust, outcome.result, outcome.note, outcome.at, dead.error,
    dead.at, outcome.payment, outcome.billing, outcome.tenant, event.id_reused";

/// What is found is looked up one by one, so that no plan reads a whole table for a page.
const OUTCOME: &str =
    "LEFT JOIN LATERAL (SELECT * FROM outcome WHERE outcome.job = event.seq LIMIT 1) AS outcome ON true";
/// Of several dead letters about an event the first counts.
const DEAD: &str = "LEFT JOIN LATERAL (SELECT * FROM dead WHERE dead.event = event.seq ORDER BY job LIMIT 1) AS dead ON true";
/// An event that left no trace of its settling was let go, and waits for its partition to be dropped.
const KEPT: &str =
    "(outcome.job IS NOT NULL OR dead.job IS NOT NULL OR EXISTS (SELECT FROM job WHERE job.id = event.seq))";

pub async fn events(link: &Link, filter: &EventFilter) -> Result<EventPage> {
    let limit = filter.limit.min(FIND_MAX);
    let end = end(link, filter).await?;
    let Lead { list, number, join } = lead(filter);
    let mut conditions = reach(filter, end, number);
    narrow(&mut conditions, filter);
    let sql = format!(
        "SELECT {SUMMARY} FROM {list} {join} {DEAD} WHERE {KEPT}{} ORDER BY {number} {} LIMIT {limit}",
        conditions.sql(),
        direction(filter.order),
    );
    let rows = link.query_once(&sql, &conditions.values()).await?;
    Ok(EventPage::of(rows.iter().map(summary).collect::<Result<_>>()?, limit, end))
}

/// The last number that one call may look at, if there are so many. Found first, so that what comes in meanwhile
/// can't move it.
async fn end(link: &Link, filter: &EventFilter) -> Result<Option<Seq>> {
    let Lead { list, number, .. } = lead(filter);
    let conditions = reach(filter, None, number);
    let sql = format!(
        "SELECT {number} FROM {list} WHERE true{} ORDER BY {number} {} LIMIT 1 OFFSET {}",
        conditions.sql(),
        direction(filter.order),
        SCAN_MAX - 1
    );
    let rows = link.query_once(&sql, &conditions.values()).await?;
    rows.first().map(|row| value(row, 0).map(Seq::from_i64)).transpose()
}

/// What leads to events, by which number, and what else their summaries need.
struct Lead {
    list: String,
    number: &'static str,
    join: String,
}

/// OFFSET 0 keeps the list a list of its own, read along its index and no further than needed.
fn lead(filter: &EventFilter) -> Lead {
    let event = |number: &str| {
        format!("CROSS JOIN LATERAL (SELECT * FROM event WHERE event.seq = {number} LIMIT 1) AS event")
    };
    let outcomes = |of: &str| {
        let within = format!("job > $1 AND job < $2 AND {of} = $3");
        let order = direction(filter.order);
        format!("(SELECT * FROM outcome WHERE {within} ORDER BY job {order} OFFSET 0) AS outcome")
    };
    match filter.lead() {
        EventLead::Payment => {
            Lead { list: outcomes("payment"), number: "outcome.job", join: event("outcome.job") }
        }
        EventLead::Tenant => {
            Lead { list: outcomes("tenant"), number: "outcome.job", join: event("outcome.job") }
        }
        EventLead::Failed => Lead {
            list: "dead AS failed".into(),
            number: "failed.event",
            join: format!("{} {OUTCOME}", event("failed.event")),
        },
        EventLead::Received => {
            Lead { list: "job".into(), number: "job.id", join: format!("{} {OUTCOME}", event("job.id")) }
        }
        EventLead::All => Lead { list: "event".into(), number: "event.seq", join: OUTCOME.into() },
    }
}

/// Which part of the list is looked at. Order matters: the list names the first ones.
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
        conditions.demand("outcome.tenant = ?", filter.tenant.clone());
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
        id_reused: value(row, 19)?,
        note,
        processed_at,
        about: About { payment: value(row, 16)?, billing: value(row, 17)?, tenant: value(row, 18)? },
    })
}

fn time(row: &Row, index: usize) -> Result<Option<Time>> {
    Ok(value::<Option<i64>>(row, index)?.map(Time::from_ms))
}

pub async fn event(link: &Link, seq: Seq) -> Result<Option<EventRecord>> {
    let sql = format!(
        "SELECT {SUMMARY}, event.headers, event.body FROM event {OUTCOME} {DEAD} WHERE {KEPT} AND event.seq = $1"
    );
    let rows = link.query_once(&sql, &[&seq.as_i64()]).await?;
    let record = |row| {
        let body: &[u8] = value(row, 21)?;
        Ok(EventRecord {
            summary: summary(row)?,
            headers: value(row, 20)?,
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

/// When the event was created is not known here, so every key is looked at. One byte rules most of them out, and is read
/// without a copy: half of the time.
const SEQ: &str = "
SELECT seq FROM dedupe WHERE get_byte(key, 4) = get_byte($1::bytea, 0) AND substr(key, 5) = $1
ORDER BY seq DESC
LIMIT 1";

/// Where the proof does not cover the id, the keys hold more than it.
const FIRST_SEQ: &str = "SELECT seq FROM first_body WHERE id = $1";

pub async fn seq(link: &Link, key: &DedupeKey) -> Result<Option<Seq>> {
    let mut rows = link.query(FIRST_SEQ, &[&&key.as_bytes()[..]]).await?;
    if rows.is_empty() {
        rows = link.query(SEQ, &[&&key.hash()[..]]).await?;
    }
    rows.first().map(|row| value(row, 0).map(Seq::from_i64)).transpose()
}

pub async fn rejections(link: &Link, filter: &RejectionFilter) -> Result<Vec<Rejection>> {
    let mut conditions = Conditions::default();
    conditions.demand("source = ?", filter.source.clone());
    conditions.demand("reason = ?", filter.reason.clone());
    conditions.demand("seq < ?", filter.before.map(Seq::as_i64));
    let sql = format!(
        "SELECT seq, at, source, peer, reason, detail, request_id, count, last_at, network FROM rejection
         WHERE true{} ORDER BY seq DESC LIMIT {}",
        conditions.sql(),
        filter.limit.min(FIND_MAX)
    );
    let rows = link.query_once(&sql, &conditions.values()).await?;
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
            last_at: Time::from_ms(value(row, 8)?),
            network: value(row, 9)?,
        })
    };
    rows.iter().map(rejection).collect()
}

const NODES: &str = "SELECT epoch, beat, joined_at FROM node WHERE ended IS NULL ORDER BY epoch LIMIT $1";

pub async fn nodes(link: &Link) -> Result<Vec<NodeRecord>> {
    let rows = link.query(NODES, &[&limit_of(FIND_MAX, FIND_MAX)]).await?;
    let node = |row| {
        Ok(NodeRecord {
            epoch: Epoch(value(row, 0)?),
            beat: value(row, 1)?,
            joined_at: Time::from_ms(value(row, 2)?),
        })
    };
    rows.iter().map(node).collect()
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
