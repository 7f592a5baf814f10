//! Bounded reads about work: dead letters, messages and their attempts, what waits, counts.

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Row};
use sekisho_core::job::{Attempt, Lane, Outcome, Task, effect_prefix};
use sekisho_core::{Seq, Time};

use super::condition::Conditions;
use super::connection::unreadable;
use super::row::SqliteRow;
use crate::find::read_reason;
use crate::{
    Count, DeadFilter, DeadGroup, DeadLetter, FIND_MAX, GROUPED_MAX, HourMoney, PendingWork, Standing,
    Status, StoredMessage, WORK_MAX,
};

pub fn dead(db: &Connection, filter: &DeadFilter) -> rusqlite::Result<Vec<DeadLetter>> {
    let mut conditions = Conditions::default();
    conditions.demand_all(filter.reach().chain(filter.narrow()));
    letters(db, "dead", &conditions, filter.limit.min(FIND_MAX))
}

pub fn dead_groups(db: &Connection, filter: &DeadFilter) -> rusqlite::Result<Vec<DeadGroup>> {
    let limit = filter.limit.min(GROUPED_MAX);
    let mut conditions = Conditions::default();
    conditions.demand_all(filter.reach());
    let newest = format!(
        "(SELECT * FROM dead WHERE TRUE{} ORDER BY job DESC LIMIT {limit}) AS dead",
        conditions.sql()
    );
    conditions.demand_all(filter.narrow());
    Ok(DeadGroup::all(&letters(db, &newest, &conditions, limit)?))
}

fn letters(
    db: &Connection,
    list: &str,
    conditions: &Conditions,
    limit: usize,
) -> rusqlite::Result<Vec<DeadLetter>> {
    let sql = format!(
        "SELECT {}
         FROM {list}
         LEFT JOIN event ON event.seq = dead.event
         LEFT JOIN outcome ON outcome.job = dead.event
         LEFT JOIN state ON state.kind = 'payment' AND state.id = outcome.payment
         WHERE TRUE{} ORDER BY dead.job DESC LIMIT {limit}",
        DeadLetter::COLUMNS,
        conditions.sql(),
    );
    db.prepare_cached(&sql)?
        .query_map(&conditions.values()[..], |row| DeadLetter::read(&mut SqliteRow::of(row, 0)))?
        .collect()
}

/// What is to be done, from its two columns.
pub fn task(row: &Row<'_>, kind: usize, payload: usize) -> rusqlite::Result<Task> {
    let task = Task::parse(row.get_ref(kind)?.as_str()?, row.get_ref(payload)?.as_str()?);
    task.ok_or_else(|| unreadable(kind, "kind"))
}

pub fn message(db: &Connection, job: Seq) -> rusqlite::Result<Option<StoredMessage>> {
    let waiting = db
        .prepare_cached("SELECT coalesce(home, lane), event, attempt, owner, due_at FROM job WHERE id = $1")?
        .query_row([job.as_i64()], |row| {
            let standing = match row.get::<_, Option<i64>>(3)? {
                Some(_) => Standing::Running,
                None => Standing::Waiting(Time::from_ms(row.get(4)?)),
            };
            addressed(row, job, standing)
        })
        .optional()?;
    if waiting.is_some() {
        return Ok(waiting);
    }
    let dead = db
        .prepare_cached("SELECT lane, event, attempts, class, reason, error, at FROM dead WHERE job = $1")?
        .query_row([job.as_i64()], |row| {
            addressed(
                row,
                job,
                Standing::Dead(read_reason(&mut SqliteRow::of(row, 3))?, Time::from_ms(row.get(6)?)),
            )
        })
        .optional()?;
    if dead.is_some() {
        return Ok(dead);
    }
    db.prepare_cached(
        "SELECT coalesce(lane, 'settle'), iif(lane IS NULL, job, event), attempts, result, note, at
         FROM outcome WHERE job = $1",
    )?
    .query_row([job.as_i64()], |row| {
        let outcome = Outcome::parse(row.get_ref(3)?.as_str()?, row.get(4)?);
        let outcome = outcome.ok_or_else(|| unreadable(3, "result"))?;
        addressed(row, job, Standing::Done(outcome, Time::from_ms(row.get(5)?)))
    })
    .optional()
}

fn addressed(row: &Row<'_>, job: Seq, standing: Standing) -> rusqlite::Result<StoredMessage> {
    Ok(StoredMessage {
        job,
        lane: Lane(row.get::<_, String>(0)?.into()),
        event: row.get::<_, Option<i64>>(1)?.map(Seq::from_i64),
        attempts: row.get(2)?,
        standing,
        key: None,
    })
}

pub fn messages(db: &Connection, event: Seq) -> rusqlite::Result<Vec<StoredMessage>> {
    let prefix = effect_prefix(event);
    let mut keys =
        db.prepare_cached("SELECT key, job FROM effect WHERE key >= $1 AND key < $2 ORDER BY key LIMIT $3")?;
    // `0` follows `/`: every key that begins with the prefix lies between.
    let values = (&prefix, prefix.replace('/', "0"), FIND_MAX as i64);
    let jobs = keys.query_map(values, |row| Ok((row.get(0)?, Seq::from_i64(row.get(1)?))))?;
    let jobs: Vec<(String, Seq)> = jobs.collect::<rusqlite::Result<_>>()?;
    let keyed = |(key, job)| {
        let found = message(db, job).transpose()?;
        Some(found.map(|message| StoredMessage { key: Some(key), ..message }))
    };
    jobs.into_iter().filter_map(keyed).collect()
}

pub fn attempts(db: &Connection, job: Seq) -> rusqlite::Result<Vec<(i32, Attempt)>> {
    let mut statement = db.prepare_cached(
        "SELECT n, at, took_ms, status, reason, error, headers, body FROM attempt WHERE job = $1 ORDER BY n LIMIT $2",
    )?;
    let rows = statement.query_map([job.as_i64(), FIND_MAX as i64], |row| {
        let attempt = Attempt {
            at: Time::from_ms(row.get(1)?),
            took_ms: row.get(2)?,
            status: row.get(3)?,
            reason: row.get(4)?,
            error: row.get(5)?,
            headers: row.get(6)?,
            body: row.get::<_, Option<Vec<u8>>>(7)?.map(Bytes::from),
        };
        Ok((row.get(0)?, attempt))
    })?;
    rows.collect()
}

pub fn work(db: &Connection) -> rusqlite::Result<Vec<PendingWork>> {
    let mut statement = db.prepare_cached(
        "SELECT lane, count(*) FILTER (WHERE owner IS NULL AND attempt <= base),
                count(*) FILTER (WHERE owner IS NULL AND attempt > base), count(*) FILTER (WHERE owner IS NOT NULL),
                min(due_at) FILTER (WHERE owner IS NULL)
         FROM (SELECT lane, owner, attempt, base, due_at FROM job ORDER BY id LIMIT $1) GROUP BY lane ORDER BY lane",
    )?;
    let rows = statement.query_map([WORK_MAX as i64], |row| {
        Ok(PendingWork {
            lane: Lane(row.get::<_, String>(0)?.into()),
            waiting: row.get(1)?,
            retrying: row.get(2)?,
            running: row.get(3)?,
            oldest_due: row.get::<_, Option<i64>>(4)?.map(Time::from_ms),
        })
    })?;
    rows.collect()
}

pub fn counts(db: &Connection, from: Time, to: Time) -> rusqlite::Result<Vec<Count>> {
    let mut statement = db.prepare_cached(
        "SELECT hour, source, type, status, events FROM hourly WHERE hour >= $1 AND hour < $2
         ORDER BY hour, source, type, status",
    )?;
    let rows = statement.query_map([from.ms(), to.ms()], |row| {
        Ok(Count {
            hour: Time::from_ms(row.get(0)?),
            source: row.get(1)?,
            event_type: row.get(2)?,
            status: Status::parse(row.get_ref(3)?.as_str()?).ok_or_else(|| unreadable(3, "status"))?,
            events: row.get(4)?,
        })
    })?;
    rows.collect()
}

pub fn money(db: &Connection, from: Time, to: Time) -> rusqlite::Result<Vec<HourMoney>> {
    let mut statement = db.prepare_cached(
        "SELECT hour, mode, currency, cause, amount, lines FROM hourly_money WHERE hour >= $1 AND hour < $2
         ORDER BY hour, mode, currency, cause",
    )?;
    let rows = statement.query_map([from.ms(), to.ms()], |row| {
        Ok(HourMoney {
            hour: Time::from_ms(row.get(0)?),
            livemode: HourMoney::livemode(row.get(1)?),
            currency: row.get(2)?,
            cause: row.get(3)?,
            amount: row.get(4)?,
            lines: row.get(5)?,
        })
    })?;
    rows.collect()
}
