//! Bounded reads about work: dead letters, messages and their attempts, what waits, counts.

use std::collections::BTreeMap;

use bytes::Bytes;
use sekisho_core::job::{Attempt, Lane, Outcome, Task, effect_prefix};
use sekisho_core::{Seq, Time};
use tokio_postgres::Row;

use super::condition::Conditions;
use super::connection::{Link, unreadable, value};
use super::row::PostgresRow;
use super::upkeep::limit_of;
use crate::error::Result;
use crate::find::read_reason;
use crate::{
    Count, DeadFilter, DeadGroup, DeadLetter, FIND_MAX, GROUPED_MAX, HourMoney, PendingWork, Standing,
    Status, StoredMessage, WORK_MAX,
};

pub async fn dead(link: &Link, filter: &DeadFilter) -> Result<Vec<DeadLetter>> {
    let mut conditions = Conditions::default();
    conditions.demand_all(filter.reach().chain(filter.narrow()));
    letters(link, "dead", &conditions, filter.limit.min(FIND_MAX)).await
}

pub async fn dead_groups(link: &Link, filter: &DeadFilter) -> Result<Vec<DeadGroup>> {
    let limit = filter.limit.min(GROUPED_MAX);
    let mut conditions = Conditions::default();
    conditions.demand_all(filter.reach());
    let newest = format!(
        "(SELECT * FROM dead WHERE true{} ORDER BY job DESC LIMIT {limit}) AS dead",
        conditions.sql()
    );
    conditions.demand_all(filter.narrow());
    Ok(DeadGroup::all(&letters(link, &newest, &conditions, limit).await?))
}

/// Events are looked up one by one, so that only their partitions are visited; the rest likewise, so that no table is read
/// whole.
async fn letters(link: &Link, list: &str, conditions: &Conditions, limit: usize) -> Result<Vec<DeadLetter>> {
    let sql = format!(
        "SELECT {}
         FROM {list}
         LEFT JOIN LATERAL (
             SELECT * FROM event WHERE event.seq = dead.event LIMIT 1
         ) AS event ON true
         LEFT JOIN LATERAL (
             SELECT * FROM outcome WHERE outcome.job = dead.event LIMIT 1
         ) AS outcome ON true
         LEFT JOIN LATERAL (
             SELECT * FROM state WHERE state.kind = 'payment' AND state.id = outcome.payment LIMIT 1
         ) AS state ON true
         WHERE true{} ORDER BY dead.job DESC LIMIT {limit}",
        DeadLetter::COLUMNS,
        conditions.sql(),
    );
    link.query_once(&sql, &conditions.values())
        .await?
        .iter()
        .map(|row| DeadLetter::read(&mut PostgresRow::of(row, 0)))
        .collect()
}

/// What is to be done, from its two columns.
pub fn task(row: &Row, kind: usize, payload: usize) -> Result<Task> {
    Task::parse(value(row, kind)?, value(row, payload)?).ok_or_else(|| unreadable("kind"))
}

pub async fn message(link: &Link, job: Seq) -> Result<Option<StoredMessage>> {
    Ok(standing(link, &[job.as_i64()]).await?.remove(&job))
}

/// Where a job stands is one row in one of three tables; one statement sees it there whatever moves meanwhile.
const STANDING: &str = "
SELECT id, coalesce(home, lane), event, attempt, due_at, owner IS NOT NULL, NULL, NULL, NULL, NULL, NULL
FROM job WHERE id = ANY ($1::bigint[])
UNION ALL
SELECT job, lane, event, attempts, at, NULL, class, reason, error, NULL, NULL
FROM dead WHERE job = ANY ($1::bigint[])
UNION ALL
SELECT job, coalesce(lane, 'settle'), CASE WHEN lane IS NULL THEN job ELSE event END, attempts, at, NULL, NULL, NULL,
       NULL, result, note
FROM outcome WHERE job = ANY ($1::bigint[])";

async fn standing(link: &Link, jobs: &[i64]) -> Result<BTreeMap<Seq, StoredMessage>> {
    let rows = link.query(STANDING, &[&jobs]).await?;
    let message = |row| {
        let at = Time::from_ms(value(row, 4)?);
        let standing = match (value(row, 5)?, value(row, 9)?) {
            (Some(true), _) => Standing::Running,
            (Some(false), _) => Standing::Waiting(at),
            (None, None) => Standing::Dead(read_reason(&mut PostgresRow::of(row, 6))?, at),
            (None, Some(result)) => {
                let outcome = Outcome::parse(result, value(row, 10)?);
                Standing::Done(outcome.ok_or_else(|| unreadable("result"))?, at)
            }
        };
        Ok(StoredMessage {
            job: Seq::from_i64(value(row, 0)?),
            lane: Lane(value::<&str>(row, 1)?.into()),
            event: value::<Option<i64>>(row, 2)?.map(Seq::from_i64),
            attempts: value(row, 3)?,
            standing,
            key: None,
        })
    };
    rows.iter().map(|row| message(row).map(|message| (message.job, message))).collect()
}

const EFFECTS: &str = "SELECT job, key FROM effect WHERE key >= $1 AND key < $2 ORDER BY key LIMIT $3";

pub async fn messages(link: &Link, event: Seq) -> Result<Vec<StoredMessage>> {
    let prefix = effect_prefix(event);
    // `0` follows `/`: every key that begins with the prefix lies between.
    let end = prefix.replace('/', "0");
    let rows = link.query(EFFECTS, &[&prefix, &end, &limit_of(FIND_MAX, FIND_MAX)]).await?;
    let jobs = rows.iter().map(|row| value(row, 0)).collect::<Result<Vec<i64>>>()?;
    let mut standing = standing(link, &jobs).await?;
    let keyed = |(job, row)| {
        let message = standing.remove(&Seq::from_i64(job))?;
        Some(value(row, 1).map(|key| StoredMessage { key: Some(key), ..message }))
    };
    jobs.into_iter().zip(&rows).filter_map(keyed).collect()
}

const ATTEMPTS: &str = "
SELECT n, at, took_ms, status, reason, error, headers, body FROM attempt WHERE job = $1 ORDER BY n LIMIT $2";

pub async fn attempts(link: &Link, job: Seq) -> Result<Vec<(i32, Attempt)>> {
    let rows = link.query(ATTEMPTS, &[&job.as_i64(), &limit_of(FIND_MAX, FIND_MAX)]).await?;
    let attempt = |row| {
        let attempt = Attempt {
            at: Time::from_ms(value(row, 1)?),
            took_ms: value(row, 2)?,
            status: value(row, 3)?,
            reason: value(row, 4)?,
            error: value(row, 5)?,
            headers: value(row, 6)?,
            body: value::<Option<Vec<u8>>>(row, 7)?.map(Bytes::from),
        };
        Ok((value(row, 0)?, attempt))
    };
    rows.iter().map(attempt).collect()
}

const WORK: &str = "
SELECT lane, count(*) FILTER (WHERE owner IS NULL AND attempt <= base),
       count(*) FILTER (WHERE owner IS NULL AND attempt > base), count(*) FILTER (WHERE owner IS NOT NULL),
       min(due_at) FILTER (WHERE owner IS NULL)
FROM (SELECT lane, owner, attempt, base, due_at FROM job ORDER BY id LIMIT $1) AS job GROUP BY lane ORDER BY lane";

pub async fn work(link: &Link) -> Result<Vec<PendingWork>> {
    let rows = link.query(WORK, &[&limit_of(WORK_MAX, WORK_MAX)]).await?;
    let work = |row| {
        Ok(PendingWork {
            lane: Lane(value::<&str>(row, 0)?.into()),
            waiting: value(row, 1)?,
            retrying: value(row, 2)?,
            running: value(row, 3)?,
            oldest_due: value::<Option<i64>>(row, 4)?.map(Time::from_ms),
        })
    };
    rows.iter().map(work).collect()
}

const COUNTS: &str = "
SELECT hour, source, type, status, events FROM hourly WHERE hour >= $1 AND hour < $2
ORDER BY hour, source, type, status";

pub async fn counts(link: &Link, from: Time, to: Time) -> Result<Vec<Count>> {
    let rows = link.query(COUNTS, &[&from.ms(), &to.ms()]).await?;
    let count = |row| {
        Ok(Count {
            hour: Time::from_ms(value(row, 0)?),
            source: value(row, 1)?,
            event_type: value(row, 2)?,
            status: Status::parse(value(row, 3)?).ok_or_else(|| unreadable("status"))?,
            events: value(row, 4)?,
        })
    };
    rows.iter().map(count).collect()
}

const MONEY: &str = "
SELECT hour, mode, currency, cause, amount, lines FROM hourly_money WHERE hour >= $1 AND hour < $2
ORDER BY hour, mode, currency, cause";

pub async fn money(link: &Link, from: Time, to: Time) -> Result<Vec<HourMoney>> {
    let rows = link.query(MONEY, &[&from.ms(), &to.ms()]).await?;
    let money = |row| {
        Ok(HourMoney {
            hour: Time::from_ms(value(row, 0)?),
            livemode: HourMoney::livemode(value(row, 1)?),
            currency: value(row, 2)?,
            cause: value(row, 3)?,
            amount: value(row, 4)?,
            lines: value(row, 5)?,
        })
    };
    rows.iter().map(money).collect()
}
