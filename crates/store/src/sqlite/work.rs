//! Nodes and the work they lease.

use rusqlite::{Connection, OptionalExtension, params};
use sekisho_core::change::{ChangeSet, Committed, End, Job, Lane, Lease};
use sekisho_core::{Epoch, Seq, Time};

use crate::{CLAIM_MAX, Joined, Peer, Pulse};

pub fn join(tx: &Connection, now: Time) -> rusqlite::Result<Joined> {
    tx.prepare_cached("INSERT INTO node (beat, joined_at) VALUES (0, $1)")?.execute([now.ms()])?;
    let epoch = Epoch(tx.last_insert_rowid());
    let floor =
        "SELECT max(coalesce((SELECT max(seq) FROM event), 0), coalesce((SELECT max(id) FROM job), 0))";
    let floor = tx.query_row(floor, [], |row| row.get(0))?;
    Ok(Joined { epoch, floor: Seq::from_i64(floor) })
}

pub fn beat(tx: &Connection, epoch: Epoch, n: i64) -> rusqlite::Result<Pulse> {
    let alive = tx.prepare_cached("UPDATE node SET beat = $1 WHERE epoch = $2")?.execute([n, epoch.0])?;
    if alive == 0 {
        return Ok(Pulse::Ended);
    }
    let mut statement = tx.prepare_cached("SELECT epoch, beat FROM node WHERE epoch <> $1 ORDER BY epoch")?;
    let peers =
        statement.query_map([epoch.0], |row| Ok(Peer { epoch: Epoch(row.get(0)?), beat: row.get(1)? }))?;
    // Differs from PostgreSQL: the file has no clock of its own.
    Ok(Pulse::Alive { peers: peers.collect::<rusqlite::Result<_>>()?, store_time: None })
}

pub fn end(tx: &Connection, epoch: Epoch, n: i64) -> rusqlite::Result<bool> {
    let ended =
        tx.prepare_cached("DELETE FROM node WHERE epoch = $1 AND beat = $2")?.execute([epoch.0, n])?;
    Ok(ended == 1)
}

pub fn claim(
    tx: &Connection,
    epoch: Epoch,
    lane: &Lane,
    limit: usize,
    now: Time,
) -> rusqlite::Result<Vec<Job>> {
    let mut ready = tx.prepare_cached(
        "SELECT job.id, job.attempt + 1, coalesce(event.type, '')
         FROM job LEFT JOIN event ON event.seq = job.id
         WHERE job.owner IS NULL AND job.lane = $1 AND job.due_at <= $2
         ORDER BY job.due_at, job.id LIMIT $3",
    )?;
    let jobs = ready.query_map(params![lane.0, now.ms(), limit.min(CLAIM_MAX) as i64], |row| {
        let lease = Lease { job: Seq::from_i64(row.get(0)?), epoch, attempt: row.get(1)? };
        Ok(Job { lease, lane: lane.clone(), event_type: row.get(2)? })
    })?;
    let jobs: Vec<_> = jobs.collect::<rusqlite::Result<_>>()?;
    let mut take = tx.prepare_cached("UPDATE job SET owner = $1, attempt = $2 WHERE id = $3")?;
    for Job { lease, .. } in &jobs {
        take.execute(params![epoch.0, lease.attempt, lease.job.as_i64()])?;
    }
    Ok(jobs)
}

pub fn commit(tx: &Connection, sets: &[ChangeSet]) -> rusqlite::Result<Vec<Committed>> {
    sets.iter().map(|set| if holds(tx, set.lease)? { apply(tx, set) } else { Ok(Committed::Lost) }).collect()
}

fn holds(tx: &Connection, lease: Lease) -> rusqlite::Result<bool> {
    tx.prepare_cached("SELECT 1 FROM job WHERE id = $1 AND owner = $2 AND attempt = $3")?
        .query_row(params![lease.job.as_i64(), lease.epoch.0, lease.attempt], |_| Ok(()))
        .optional()
        .map(|found| found.is_some())
}

fn apply(tx: &Connection, set: &ChangeSet) -> rusqlite::Result<Committed> {
    let job = set.lease.job.as_i64();
    match &set.end {
        End::Retry { due_at } => {
            tx.prepare_cached("UPDATE job SET owner = NULL, due_at = $1 WHERE id = $2")?
                .execute([due_at.ms(), job])?;
            return Ok(Committed::Applied);
        }
        End::Done(outcome) => {
            tx.prepare_cached("INSERT INTO outcome (job, result, note, at) VALUES ($1, $2, $3, $4)")?
                .execute(params![job, outcome.name(), outcome.note(), set.at.ms()])?;
        }
        End::Dead(death) => {
            tx.prepare_cached(
                "INSERT INTO dead (job, reason, error, attempts, at) VALUES ($1, $2, $3, $4, $5)",
            )?
            .execute(params![job, death.reason, death.error, set.lease.attempt, set.at.ms()])?;
        }
    }
    tx.prepare_cached("DELETE FROM job WHERE id = $1")?.execute([job])?;
    Ok(Committed::Applied)
}

pub fn sweep(tx: &Connection, limit: usize) -> rusqlite::Result<usize> {
    tx.prepare_cached(
        "UPDATE job SET owner = NULL, crashes = crashes + 1
         WHERE id IN (SELECT id FROM job WHERE owner IS NOT NULL
                      AND owner NOT IN (SELECT epoch FROM node) ORDER BY id LIMIT $1)",
    )?
    .execute([limit.min(CLAIM_MAX) as i64])
}

pub fn release(tx: &Connection, leases: &[Lease]) -> rusqlite::Result<()> {
    let mut give_back = tx.prepare_cached(
        "UPDATE job SET owner = NULL, attempt = attempt - 1 WHERE id = $1 AND owner = $2 AND attempt = $3",
    )?;
    for lease in leases {
        give_back.execute(params![lease.job.as_i64(), lease.epoch.0, lease.attempt])?;
    }
    Ok(())
}
