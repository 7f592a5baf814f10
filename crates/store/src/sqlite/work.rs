//! The work that nodes lease. One writer, so what a statement read is still true when the next one writes.

use rusqlite::{Connection, OptionalExtension, Row, params};
use sekisho_core::job::{Job, Lane, Lease};
use sekisho_core::{Epoch, Seq, Time};

use super::find_work::task;
use crate::CLAIM_MAX;

pub fn claim(
    tx: &Connection,
    epoch: Epoch,
    wants: &[(Lane, usize)],
    now: Time,
) -> rusqlite::Result<Vec<Job>> {
    let mut jobs = Vec::new();
    for (lane, limit) in wants {
        jobs.extend(claim_lane(tx, epoch, lane, (*limit).min(CLAIM_MAX), now)?);
    }
    Ok(jobs)
}

/// What waits behind another of its fifo is parked when it is met, so that it is met once and not at every claim.
fn claim_lane(
    tx: &Connection,
    epoch: Epoch,
    lane: &Lane,
    limit: usize,
    now: Time,
) -> rusqlite::Result<Vec<Job>> {
    let mut ready = tx.prepare_cached(&format!(
        "SELECT {JOB},
                fifo IS NOT NULL AND EXISTS (SELECT 1 FROM job AS earlier WHERE earlier.fifo = job.fifo AND earlier.id < job.id)
         FROM job WHERE owner IS NULL AND parked = 0 AND lane = $1 AND due_at <= $2
         ORDER BY due_at, id LIMIT $3"
    ))?;
    let mut taken = Vec::new();
    while taken.len() < limit {
        let wanted = (limit - taken.len()) as i64;
        let found = ready
            .query_map(params![lane.0, now.ms(), wanted], |row| Ok((job(row, epoch)?, row.get(10)?)))?
            .collect::<rusqlite::Result<Vec<(Job, bool)>>>()?;
        let last = (found.len() as i64) < wanted;
        for (job, waits) in found {
            if waits {
                tx.prepare_cached("UPDATE job SET parked = 1 WHERE id = $1")?
                    .execute([job.lease.job.as_i64()])?;
            } else {
                taken.push(take(tx, job)?);
            }
        }
        if last {
            break;
        }
    }
    Ok(taken)
}

/// The columns that [`job`] reads, in its order.
const JOB: &str = "id, attempt, kind, lane, fifo, due_at, event, payload, base, crashes";

fn job(row: &Row<'_>, epoch: Epoch) -> rusqlite::Result<Job> {
    Ok(Job {
        lease: Lease { job: Seq::from_i64(row.get(0)?), epoch, attempt: row.get(1)? },
        task: task(row, 2, 7)?,
        lane: Lane(row.get::<_, String>(3)?.into()),
        fifo: row.get(4)?,
        due_at: Time::from_ms(row.get(5)?),
        event: row.get::<_, Option<i64>>(6)?.map(Seq::from_i64),
        base: row.get(8)?,
        crashes: row.get(9)?,
    })
}

/// Leases a job as one more attempt.
fn take(tx: &Connection, mut job: Job) -> rusqlite::Result<Job> {
    job.lease.attempt += 1;
    tx.prepare_cached("UPDATE job SET owner = $1, attempt = $2 WHERE id = $3")?.execute(params![
        job.lease.epoch.0,
        job.lease.attempt,
        job.lease.job.as_i64()
    ])?;
    Ok(job)
}

pub fn held(tx: &Connection, lease: Lease) -> rusqlite::Result<Option<Job>> {
    tx.prepare_cached(&format!("SELECT {JOB} FROM job WHERE id = $1 AND owner = $2 AND attempt = $3"))?
        .query_row(params![lease.job.as_i64(), lease.epoch.0, lease.attempt], |row| job(row, lease.epoch))
        .optional()
}

pub fn start(tx: &Connection, leases: &[Lease]) -> rusqlite::Result<Vec<bool>> {
    let mut start =
        tx.prepare_cached("UPDATE job SET started = 1 WHERE id = $1 AND owner = $2 AND attempt = $3")?;
    leases.iter().map(|lease| start.execute(fence(lease)).map(|held| held == 1)).collect()
}

pub fn release(tx: &Connection, leases: &[Lease]) -> rusqlite::Result<()> {
    let mut give_back = tx.prepare_cached(
        "UPDATE job SET owner = NULL, started = 0, base = base + 1
         WHERE id = $1 AND owner = $2 AND attempt = $3",
    )?;
    for lease in leases {
        give_back.execute(fence(lease))?;
    }
    Ok(())
}

fn fence(lease: &Lease) -> [i64; 3] {
    [lease.job.as_i64(), lease.epoch.0, lease.attempt.into()]
}

pub fn owned(db: &Connection, epoch: Epoch, after: Seq) -> rusqlite::Result<Vec<Lease>> {
    let mut own =
        db.prepare_cached("SELECT id, attempt FROM job WHERE owner = $1 AND id > $2 ORDER BY id LIMIT $3")?;
    let leases = own.query_map([epoch.0, after.as_i64(), CLAIM_MAX as i64], |row| {
        Ok(Lease { job: Seq::from_i64(row.get(0)?), epoch, attempt: row.get(1)? })
    })?;
    leases.collect()
}

pub fn adopt(tx: &Connection, leases: &[Lease]) -> rusqlite::Result<Vec<Job>> {
    let mut adopted = Vec::new();
    for lease in leases {
        if let Some(mut job) = held(tx, *lease)? {
            job.base += 1;
            tx.prepare_cached("UPDATE job SET base = base + 1 WHERE id = $1")?
                .execute([lease.job.as_i64()])?;
            adopted.push(take(tx, job)?);
        }
    }
    Ok(adopted)
}

pub fn sweep(tx: &Connection, limit: usize, suspect_after: i32) -> rusqlite::Result<usize> {
    // Differs from PostgreSQL: a turn can't be lost between two transactions of one writer.
    tx.prepare_cached(
        "UPDATE job SET owner = NULL, started = 0, base = base + 1,
             crashes = crashes + (lane <> 'suspect' OR started),
             home = iif(crashes + (lane <> 'suspect' OR started) >= $1, coalesce(home, lane), home),
             lane = iif(crashes + (lane <> 'suspect' OR started) >= $1, 'suspect', lane)
         WHERE id IN (SELECT id FROM job WHERE owner IS NOT NULL
                      AND owner NOT IN (SELECT epoch FROM node WHERE ended IS NULL)
                      ORDER BY id LIMIT $2)",
    )?
    .execute([i64::from(suspect_after), limit.min(CLAIM_MAX) as i64])
}

pub fn make_due(tx: &Connection, limit: usize, now: Time) -> rusqlite::Result<usize> {
    tx.prepare_cached(
        "UPDATE job SET due_at = $1
         WHERE id IN (SELECT id FROM job WHERE owner IS NULL AND due_at > $1 AND kind <> 'timer' ORDER BY id LIMIT $2)",
    )?
    .execute([now.ms(), limit.min(CLAIM_MAX) as i64])
}

/// Hops from lane to lane along the index.
pub fn lanes(db: &Connection) -> rusqlite::Result<Vec<(Lane, Time)>> {
    let mut next = db.prepare_cached(
        "SELECT lane, due_at FROM job WHERE owner IS NULL AND parked = 0 AND lane > $1
         ORDER BY lane, due_at LIMIT 1",
    )?;
    let mut lanes: Vec<(Lane, Time)> = Vec::new();
    loop {
        let last = lanes.last().map_or("", |(lane, _)| &lane.0);
        let found = next.query_row([last], |row| Ok((row.get::<_, String>(0)?, row.get(1)?))).optional()?;
        let Some((lane, due_at)) = found else { return Ok(lanes) };
        lanes.push((Lane(lane.into()), Time::from_ms(due_at)));
    }
}
