//! What people do with what failed or is long done. Every act is audited in its own transaction.

use rusqlite::{OptionalExtension, params};
use sekisho_core::Seq;
use sekisho_core::change::{Act, Replayed};
use sekisho_core::job::{Settle, Task};

use super::commit::give_turn;
use super::find_work::task;
use super::transaction::Tx;
use crate::audit;

pub fn retry(tx: &Tx<'_>, jobs: &[Seq], act: &Act) -> rusqlite::Result<Vec<bool>> {
    let mut find = tx.prepare_cached("SELECT kind, payload FROM dead WHERE job = $1")?;
    let mut queue = tx.prepare_cached(
        "INSERT INTO job (id, lane, due_at, attempt, base, kind, event, fifo, payload)
         SELECT job, lane, $1, attempts, attempts, kind, event, fifo, $2 FROM dead WHERE job = $3",
    )?;
    let mut retried = Vec::with_capacity(jobs.len());
    for job in jobs {
        let found = find.query_row([job.as_i64()], |row| task(row, 0, 1)).optional()?;
        let found = found.map(Task::retried);
        if let Some(task) = &found {
            queue.execute(params![act.at.ms(), task.payload(), job.as_i64()])?;
            tx.prepare_cached("DELETE FROM dead WHERE job = $1")?.execute([job.as_i64()])?;
            tx.note(&audit::of_message(act, audit::RETRIED, *job))?;
        }
        retried.push(found.is_some());
    }
    Ok(retried)
}

pub fn discard(tx: &Tx<'_>, jobs: &[Seq], act: &Act) -> rusqlite::Result<Vec<bool>> {
    let why = format!("discarded by {}: {}", act.actor, act.reason);
    let mut put_aside = tx.prepare_cached(
        "INSERT INTO outcome (job, result, note, at, attempts, lane, event)
         SELECT job, 'discarded', $1, $2, attempts,
                iif(lane = 'settle' AND event = job, NULL, lane), iif(lane = 'settle' AND event = job, NULL, event)
         FROM dead WHERE job = $3",
    )?;
    let mut discarded = Vec::with_capacity(jobs.len());
    for job in jobs {
        let found = put_aside.execute(params![why, act.at.ms(), job.as_i64()])? == 1;
        if found {
            tx.prepare_cached("DELETE FROM dead WHERE job = $1")?.execute([job.as_i64()])?;
            tx.note(&audit::of_message(act, audit::DISCARDED, *job))?;
        }
        discarded.push(found);
    }
    Ok(discarded)
}

pub fn cancel(tx: &Tx<'_>, jobs: &[Seq], act: &Act) -> rusqlite::Result<Vec<bool>> {
    let why = audit::cancelled_note(act);
    let mut put_aside = tx.prepare_cached(
        "INSERT INTO outcome (job, result, note, at, attempts, lane, event)
         SELECT id, 'discarded', $1, $2, attempt, coalesce(home, lane), event
         FROM job WHERE id = $3 AND owner IS NULL AND kind = 'deliver'",
    )?;
    let mut take_out = tx.prepare_cached("DELETE FROM job WHERE id = $1 RETURNING fifo")?;
    let mut cancelled = Vec::with_capacity(jobs.len());
    for job in jobs {
        let found = put_aside.execute(params![why, act.at.ms(), job.as_i64()])? == 1;
        if found {
            let fifo: Option<String> = take_out.query_row([job.as_i64()], |row| row.get(0))?;
            if let Some(fifo) = fifo {
                give_turn(tx, &fifo)?;
            }
            tx.note(&audit::of_message(act, audit::CANCELLED, *job))?;
        }
        cancelled.push(found);
    }
    Ok(cancelled)
}

pub fn replay(tx: &Tx<'_>, events: &[Seq], settle: &Settle, act: &Act) -> rusqlite::Result<Vec<Replayed>> {
    events.iter().map(|event| replay_one(tx, *event, settle, act)).collect()
}

fn replay_one(tx: &Tx<'_>, event: Seq, settle: &Settle, act: &Act) -> rusqlite::Result<Replayed> {
    let seq = event.as_i64();
    let found = tx
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM job WHERE id = $1),
                    coalesce((SELECT attempts FROM dead WHERE job = $1), (SELECT attempts FROM outcome WHERE job = $1), 0)
             FROM event WHERE seq = $1",
        )?
        .query_row([seq], |row| Ok((row.get::<_, bool>(0)?, row.get::<_, i32>(1)?)))
        .optional()?;
    let Some((unfinished, attempts)) = found else { return Ok(Replayed::Unknown) };
    if unfinished {
        return Ok(Replayed::Unfinished);
    }
    tx.prepare_cached("DELETE FROM dead WHERE job = $1")?.execute([seq])?;
    tx.prepare_cached("DELETE FROM outcome WHERE job = $1")?.execute([seq])?;
    tx.prepare_cached(
        "INSERT INTO job (id, lane, due_at, attempt, base, kind, event, payload)
         VALUES ($1, 'settle', $2, $3, $3, 'settle', $1, $4)",
    )?
    .execute(params![seq, act.at.ms(), attempts, settle.payload()])?;
    tx.note(&audit::of_event(act, audit::REPLAYED, event))?;
    Ok(Replayed::Queued)
}
