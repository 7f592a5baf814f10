//! Bounded reads about deliveries, which lie in three tables.

use rusqlite::{Connection, OptionalExtension};
use sekisho_core::job::{Lane, Outcome};
use sekisho_core::{Seq, Time};

use super::condition::Conditions;
use super::row::SqliteRow;
use crate::find::{COUNTED_MAX, DeliveryList, RowReader, delivery_keys, read_reason};
use crate::{
    DeliveryCounts, DeliveryFilter, DeliveryPage, DeliveryRecord, DeliveryStatus, FIND_MAX, SCAN_MAX,
    Standing,
};

pub fn deliveries(db: &Connection, filter: &DeliveryFilter) -> rusqlite::Result<DeliveryPage> {
    let limit = filter.limit.min(FIND_MAX);
    let found = filter.lists().iter().map(|list| list_of(db, filter, *list, limit));
    Ok(DeliveryPage::of(found.collect::<rusqlite::Result<_>>()?, limit))
}

/// A table, its number, and the columns of a delivery in it.
const fn table(list: DeliveryList) -> (&'static str, &'static str, &'static str) {
    match list {
        DeliveryList::Unfinished => (
            "job",
            "id",
            "id AS job, coalesce(home, lane) AS lane, attempt AS attempts, event, due_at AS at, owner IS NOT NULL AS running",
        ),
        DeliveryList::Ended => ("outcome", "job", "job, lane, attempts, event, at, result, note"),
        DeliveryList::Dead => ("dead", "job", "job, lane, attempts, event, at, class, reason, error"),
    }
}

/// What is read after the common columns, and what makes a row of the table a delivery.
const fn rest(list: DeliveryList) -> (&'static str, &'static str) {
    match list {
        DeliveryList::Unfinished => ("delivery.at, delivery.running", "kind = 'deliver'"),
        DeliveryList::Ended => ("delivery.at, delivery.result, delivery.note", "substr(lane, 1, 3) = 'to:'"),
        DeliveryList::Dead => {
            ("delivery.at, delivery.class, delivery.reason, delivery.error", "kind = 'deliver'")
        }
    }
}

fn list_of(
    db: &Connection,
    filter: &DeliveryFilter,
    list: DeliveryList,
    limit: usize,
) -> rusqlite::Result<(Vec<DeliveryRecord>, Option<Seq>)> {
    let (table, number, columns) = table(list);
    let (rest, is_delivery) = rest(list);
    let (low, high) = filter.reach(None);
    // Found first, so that what comes meanwhile can't move it.
    let sql = format!(
        "SELECT {number} FROM {table} WHERE {number} > $1 AND {number} < $2 ORDER BY {number} DESC LIMIT 1 OFFSET {}",
        SCAN_MAX - 1
    );
    let end =
        db.prepare_cached(&sql)?.query_row([low, high], |row| row.get(0).map(Seq::from_i64)).optional()?;
    let (low, high) = filter.reach(end);
    let mut conditions = Conditions::default();
    conditions.demand(&format!("{number} > ?"), Some(low));
    conditions.demand(&format!("{number} < ?"), Some(high));
    conditions.state(is_delivery);
    let lane = if list == DeliveryList::Unfinished { "coalesce(home, lane) = ?" } else { "lane = ?" };
    conditions.demand(lane, filter.lane.as_ref().map(|lane| lane.0.to_string()));
    match (list, filter.status) {
        (DeliveryList::Ended, Some(DeliveryStatus::Delivered)) => conditions.state("result = 'success'"),
        (DeliveryList::Ended, Some(DeliveryStatus::Cancelled)) => conditions.state("result <> 'success'"),
        _ => {}
    }
    let sql = format!(
        "SELECT {}, {rest}
         FROM (SELECT {columns} FROM {table} WHERE TRUE{} ORDER BY {number} DESC LIMIT {limit}) AS delivery
         LEFT JOIN event ON event.seq = delivery.event
         LEFT JOIN attempt ON attempt.job = delivery.job
              AND attempt.n = (SELECT max(n) FROM attempt AS last WHERE last.job = delivery.job)
         ORDER BY delivery.job DESC",
        DeliveryRecord::COLUMNS,
        conditions.sql(),
    );
    let mut statement = db.prepare_cached(&sql)?;
    let found = statement.query_map(&conditions.values()[..], |row| {
        DeliveryRecord::read(&mut SqliteRow::of(row, 0), |row| standing(row, list))
    })?;
    Ok((found.collect::<rusqlite::Result<_>>()?, end))
}

fn standing(row: &mut SqliteRow<'_, '_>, list: DeliveryList) -> rusqlite::Result<Standing> {
    let at = Time::from_ms(row.integer()?);
    Ok(match list {
        DeliveryList::Unfinished if row.small_integer()? != 0 => Standing::Running,
        DeliveryList::Unfinished => Standing::Waiting(at),
        DeliveryList::Ended => {
            let outcome = Outcome::parse(&row.text()?, row.optional_text()?);
            Standing::Done(outcome.ok_or_else(|| row.unreadable("result"))?, at)
        }
        DeliveryList::Dead => Standing::Dead(read_reason(row)?, at),
    })
}

pub fn delivery_counts(db: &Connection, events: &[Seq]) -> rusqlite::Result<Vec<DeliveryCounts>> {
    let mut statement = db.prepare_cached(
        "SELECT effect.job, coalesce(job.home, job.lane, dead.lane, outcome.lane), job.id, dead.job, outcome.result
         FROM (SELECT job FROM effect WHERE key >= $1 AND key < $2 ORDER BY key LIMIT $3) AS effect
         LEFT JOIN job ON job.id = effect.job
         LEFT JOIN dead ON dead.job = effect.job
         LEFT JOIN outcome ON outcome.job = effect.job",
    )?;
    let mut counts = Vec::with_capacity(events.len());
    for event in events {
        let (low, high) = delivery_keys(*event);
        let rows = statement.query_map((low, high, COUNTED_MAX as i64), |row| {
            let lane: Option<String> = row.get(1)?;
            let waits = row.get::<_, Option<i64>>(2)?.is_some();
            let is_dead = row.get::<_, Option<i64>>(3)?.is_some();
            let result: Option<String> = row.get(4)?;
            let status = match (waits, is_dead, result.as_deref()) {
                (true, _, _) => Some(DeliveryStatus::Waiting),
                (false, true, _) => Some(DeliveryStatus::Failed),
                (false, false, Some("success")) => Some(DeliveryStatus::Delivered),
                (false, false, Some(_)) => Some(DeliveryStatus::Cancelled),
                (false, false, None) => None,
            };
            let job = Seq::from_i64(row.get(0)?);
            Ok(lane.zip(status).map(|(lane, status)| (Lane(lane.into()), job, status)))
        })?;
        let found: Vec<_> = rows.collect::<rusqlite::Result<_>>()?;
        counts.push(DeliveryCounts::of(found.into_iter().flatten()));
    }
    Ok(counts)
}
