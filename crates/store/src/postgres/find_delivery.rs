//! Bounded reads about deliveries, which lie in three tables.

use std::collections::BTreeMap;

use sekisho_core::job::{Lane, Outcome};
use sekisho_core::{Seq, Time};

use super::condition::Conditions;
use super::connection::{Link, value};
use super::row::PostgresRow;
use super::upkeep::limit_of;
use crate::error::Result;
use crate::find::{COUNTED_MAX, DeliveryList, RowReader, delivery_keys, read_reason};
use crate::{
    DeliveryCounts, DeliveryFilter, DeliveryPage, DeliveryRecord, DeliveryStatus, FIND_MAX, SCAN_MAX,
    Standing,
};

pub async fn deliveries(link: &Link, filter: &DeliveryFilter) -> Result<DeliveryPage> {
    let limit = filter.limit.min(FIND_MAX);
    let mut found = Vec::new();
    for list in filter.lists() {
        found.push(list_of(link, filter, *list, limit).await?);
    }
    Ok(DeliveryPage::of(found, limit))
}

/// A table, its number, and the columns of a delivery in it.
const fn table(list: DeliveryList) -> (&'static str, &'static str, &'static str) {
    match list {
        DeliveryList::Unfinished => (
            "job",
            "id",
            "id AS job, coalesce(home, lane) AS lane, attempt AS attempts, event, due_at AS at, (owner IS NOT NULL)::integer AS running",
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

/// What is found is looked up one by one, so that no plan reads a whole table for a page.
async fn list_of(
    link: &Link,
    filter: &DeliveryFilter,
    list: DeliveryList,
    limit: usize,
) -> Result<(Vec<DeliveryRecord>, Option<Seq>)> {
    let (table, number, columns) = table(list);
    let (rest, is_delivery) = rest(list);
    let (low, high) = filter.reach(None);
    // Found first, so that what comes meanwhile can't move it.
    let sql = format!(
        "SELECT {number} FROM {table} WHERE {number} > $1 AND {number} < $2 ORDER BY {number} DESC LIMIT 1 OFFSET {}",
        SCAN_MAX - 1
    );
    let rows = link.query_once(&sql, &[&low, &high]).await?;
    let end = rows.first().map(|row| value(row, 0).map(Seq::from_i64)).transpose()?;
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
         FROM (SELECT {columns} FROM {table} WHERE true{} ORDER BY {number} DESC LIMIT {limit}) AS delivery
         LEFT JOIN LATERAL (
             SELECT * FROM event WHERE event.seq = delivery.event LIMIT 1
         ) AS event ON true
         LEFT JOIN LATERAL (
             SELECT * FROM attempt WHERE attempt.job = delivery.job ORDER BY n DESC LIMIT 1
         ) AS attempt ON true
         ORDER BY delivery.job DESC",
        DeliveryRecord::COLUMNS,
        conditions.sql(),
    );
    let rows = link.query_once(&sql, &conditions.values()).await?;
    let found =
        rows.iter().map(|row| DeliveryRecord::read(&mut PostgresRow::of(row, 0), |row| standing(row, list)));
    Ok((found.collect::<Result<_>>()?, end))
}

fn standing(row: &mut PostgresRow<'_>, list: DeliveryList) -> Result<Standing> {
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

const COUNTS: &str = "
SELECT given.seq, effect.job, coalesce(job.home, job.lane, dead.lane, outcome.lane), job.id IS NOT NULL,
       dead.job IS NOT NULL, outcome.result
FROM unnest($1::bigint[], $2::text[], $3::text[]) AS given (seq, low, high)
CROSS JOIN LATERAL (
    SELECT effect.job FROM effect WHERE key >= given.low AND key < given.high ORDER BY key LIMIT $4
) AS effect
LEFT JOIN LATERAL (SELECT id, home, lane FROM job WHERE job.id = effect.job LIMIT 1) AS job ON true
LEFT JOIN LATERAL (SELECT dead.job, lane FROM dead WHERE dead.job = effect.job LIMIT 1) AS dead ON true
LEFT JOIN LATERAL (SELECT result, lane FROM outcome WHERE outcome.job = effect.job LIMIT 1) AS outcome ON true";

pub async fn delivery_counts(link: &Link, events: &[Seq]) -> Result<Vec<DeliveryCounts>> {
    let seqs: Vec<i64> = events.iter().map(|event| event.as_i64()).collect();
    let (low, high): (Vec<_>, Vec<_>) = events.iter().map(|event| delivery_keys(*event)).unzip();
    let rows = link.query(COUNTS, &[&seqs, &low, &high, &limit_of(COUNTED_MAX, COUNTED_MAX)]).await?;
    let mut found: BTreeMap<i64, Vec<(Lane, Seq, DeliveryStatus)>> = BTreeMap::new();
    for row in &rows {
        let status = match (value(row, 3)?, value(row, 4)?, value::<Option<&str>>(row, 5)?) {
            (true, _, _) => DeliveryStatus::Waiting,
            (false, true, _) => DeliveryStatus::Failed,
            (false, false, Some("success")) => DeliveryStatus::Delivered,
            (false, false, Some(_)) => DeliveryStatus::Cancelled,
            (false, false, None) => continue,
        };
        let Some(lane) = value::<Option<&str>>(row, 2)? else { continue };
        let one = (Lane(lane.into()), Seq::from_i64(value(row, 1)?), status);
        found.entry(value(row, 0)?).or_default().push(one);
    }
    let counts = |seq: &i64| DeliveryCounts::of(found.get(seq).into_iter().flatten().cloned());
    Ok(seqs.iter().map(counts).collect())
}
