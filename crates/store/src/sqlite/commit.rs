//! Change sets, each whole or not at all. One writer, so what a guard saw is still true when the set is written: first
//! every guard of a set is looked at, then everything is written.

use rusqlite::{Connection, OptionalExtension, params};
use sekisho_core::change::{ChangeSet, Committed, Ended};
use sekisho_core::event::About;
use sekisho_core::job::{Attempt, DeadReason, End, Job, Lane, NewJob, Outcome};
use sekisho_core::state::{Key, Naming, Posting, Write};
use sekisho_core::{Seq, Time};

use super::admit::Added;
use super::transaction::Tx;
use super::work::held;
use crate::guard;

pub fn commit(tx: &Tx<'_>, sets: &[ChangeSet]) -> rusqlite::Result<Vec<Committed>> {
    sets.iter().map(|set| commit_one(tx, set)).collect()
}

fn commit_one(tx: &Tx<'_>, set: &ChangeSet) -> rusqlite::Result<Committed> {
    if let Some(refusal) = guard::refusal(set) {
        return Ok(refusal);
    }
    let mut jobs = Vec::with_capacity(set.ends.len());
    for ended in &set.ends {
        let Some(job) = held(tx, ended.lease)? else { return Ok(Committed::Lost) };
        jobs.push(at_home(tx, job)?);
    }
    if !is_current(tx, set)? {
        return Ok(Committed::Stale);
    }
    for (ended, job) in set.ends.iter().zip(&jobs) {
        end(tx, ended, job, set.at)?;
    }
    for one in &set.writes {
        write(tx, one, set.at)?;
    }
    for naming in &set.names {
        name(tx, naming)?;
    }
    for posting in &set.postings {
        post(tx, posting, set.at)?;
    }
    for entry in &set.audit {
        tx.note(entry)?;
    }
    Ok(Committed::Applied { repeated: bring_forth(tx, set)? })
}

/// Every version is still the one that was loaded, and every name is free or where it moves from.
fn is_current(tx: &Connection, set: &ChangeSet) -> rusqlite::Result<bool> {
    for Write { key, version, .. } in &set.writes {
        let stored = tx
            .prepare_cached("SELECT version FROM state WHERE kind = $1 AND id = $2")?
            .query_row(params![key.kind.name(), key.id], |row| row.get::<_, i64>(0))
            .optional()?;
        if stored.unwrap_or(0) != *version {
            return Ok(false);
        }
    }
    for Naming { name, key, was } in &set.names {
        let stored = tx
            .prepare_cached("SELECT kind, id FROM name WHERE name = $1")?
            .query_row([name], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))
            .optional()?;
        let leads_to =
            |key: &Key| stored.as_ref().is_some_and(|(kind, id)| kind == key.kind.name() && *id == key.id);
        let may_be_given = match was {
            Some(was) => leads_to(was),
            None => stored.is_none() || leads_to(key),
        };
        if !may_be_given {
            return Ok(false);
        }
    }
    Ok(true)
}

fn end(tx: &Connection, ended: &Ended, job: &Job, at: Time) -> rusqlite::Result<()> {
    match &ended.end {
        End::Retry { due_at } | End::Wait { due_at } => {
            let unspent = i64::from(matches!(ended.end, End::Wait { .. }));
            // A suspect that ran while nobody died is none any more.
            tx.prepare_cached(
                "UPDATE job SET owner = NULL, started = 0, due_at = $1, base = base + $2, lane = coalesce(home, lane),
                     home = NULL, crashes = iif(home IS NULL, crashes, 0)
                 WHERE id = $3",
            )?
            .execute([due_at.ms(), unspent, ended.lease.job.as_i64()])?;
        }
        End::Done(outcome) => {
            remove(tx, job)?;
            done(tx, job, outcome, &ended.about, at)?;
        }
        End::Dead(death) => {
            remove(tx, job)?;
            dead_letter(tx, job, death, at)?;
        }
        End::NotYet => {}
    }
    ended.attempt.as_ref().map_or(Ok(()), |attempt| tried(tx, job, attempt))
}

/// As it was before it became suspect: so it is remembered.
fn at_home(tx: &Connection, mut job: Job) -> rusqlite::Result<Job> {
    if job.lane == Lane::suspect() {
        let mut home = tx.prepare_cached("SELECT coalesce(home, lane) FROM job WHERE id = $1")?;
        job.lane = Lane(home.query_row([job.lease.job.as_i64()], |row| row.get::<_, String>(0))?.into());
    }
    Ok(job)
}

/// Takes a job out of the queue; the next of its fifo has its turn.
fn remove(tx: &Connection, job: &Job) -> rusqlite::Result<()> {
    tx.prepare_cached("DELETE FROM job WHERE id = $1")?.execute([job.lease.job.as_i64()])?;
    job.fifo.as_ref().map_or(Ok(()), |fifo| give_turn(tx, fifo))
}

/// The first of a fifo can be had.
pub fn give_turn(tx: &Connection, fifo: &str) -> rusqlite::Result<()> {
    tx.prepare_cached("UPDATE job SET parked = 0 WHERE id = (SELECT min(id) FROM job WHERE fifo = $1)")?
        .execute([fifo])?;
    Ok(())
}

fn done(tx: &Connection, job: &Job, outcome: &Outcome, about: &About, at: Time) -> rusqlite::Result<()> {
    let settles = job.lane == Lane::settle() && job.event == Some(job.lease.job);
    tx.prepare_cached(
        "INSERT INTO outcome (job, result, note, at, attempts, lane, event, payment, billing, tenant)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    )?
    .execute(params![
        job.lease.job.as_i64(),
        outcome.name(),
        outcome.note(),
        at.ms(),
        job.lease.attempt,
        (!settles).then_some(&*job.lane.0),
        job.event.filter(|_| !settles).map(Seq::as_i64),
        about.payment,
        about.billing,
        about.tenant,
    ])?;
    Ok(())
}

/// Puts a job before a person, with all that is needed to do it again.
fn dead_letter(tx: &Connection, job: &Job, death: &DeadReason, at: Time) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "INSERT INTO dead (job, at, class, reason, error, attempts, crashes, kind, lane, event, fifo, payload)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
    )?
    .execute(params![
        job.lease.job.as_i64(),
        at.ms(),
        death.class.name(),
        death.reason,
        death.error,
        job.lease.attempt,
        job.crashes,
        job.task.kind().name(),
        job.lane.0,
        job.event.map(Seq::as_i64),
        job.fifo,
        job.task.payload(),
    ])?;
    Ok(())
}

fn tried(tx: &Connection, job: &Job, attempt: &Attempt) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "INSERT INTO attempt (job, n, at, took_ms, status, reason, error, headers, body)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )?
    .execute(params![
        job.lease.job.as_i64(),
        job.lease.attempt,
        attempt.at.ms(),
        attempt.took_ms,
        attempt.status,
        attempt.reason,
        attempt.error,
        attempt.headers,
        attempt.body.as_deref(),
    ])?;
    Ok(())
}

fn write(tx: &Connection, write: &Write, at: Time) -> rusqlite::Result<()> {
    let Write { key, version, facts, index } = write;
    let sql = if *version == 0 {
        "INSERT INTO state (version, facts, status, tenant, customer, livemode, amount, currency, attention, changed_at,
                            kind, id, created_at)
         VALUES ($1 + 1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $10)"
    } else {
        "UPDATE state SET version = $1 + 1, facts = $2, status = $3, tenant = $4, customer = $5, livemode = $6,
             amount = $7, currency = $8, attention = $9, changed_at = $10
         WHERE kind = $11 AND id = $12"
    };
    tx.prepare_cached(sql)?.execute(params![
        version,
        facts,
        index.status,
        index.tenant,
        index.customer,
        index.livemode,
        index.amount,
        index.currency,
        index.attention,
        at.ms(),
        key.kind.name(),
        key.id,
    ])?;
    Ok(())
}

fn name(tx: &Connection, naming: &Naming) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "INSERT INTO name (name, kind, id) VALUES ($1, $2, $3)
         ON CONFLICT DO UPDATE SET kind = excluded.kind, id = excluded.id",
    )?
    .execute(params![naming.name, naming.key.kind.name(), naming.key.id])?;
    Ok(())
}

fn post(tx: &Connection, posting: &Posting, at: Time) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "INSERT INTO posting (at, account, currency, livemode, amount, payment, cause)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )?
    .execute(params![
        at.ms(),
        posting.account,
        posting.currency,
        posting.livemode,
        posting.amount,
        posting.payment,
        posting.cause,
    ])?;
    Ok(())
}

/// New jobs, and new events with their first jobs. Gives back those whose key had been there before.
fn bring_forth(tx: &Tx<'_>, set: &ChangeSet) -> rusqlite::Result<Vec<Seq>> {
    let mut repeated = Vec::new();
    for new in &set.jobs {
        if !queue(tx, new)? {
            repeated.push(new.id);
        }
    }
    if !set.events.is_empty() {
        let mut inserts = tx.inserts()?;
        for event in &set.events {
            if !matches!(inserts.add(tx, event, set.keep)?, Added::New { .. }) {
                repeated.push(event.seq);
            }
        }
    }
    Ok(repeated)
}

/// False when its key had been there before.
fn queue(tx: &Connection, new: &NewJob) -> rusqlite::Result<bool> {
    if let Some(key) = &new.key {
        let fresh = tx
            .prepare_cached("INSERT INTO effect (key, job) VALUES ($1, $2) ON CONFLICT DO NOTHING")?
            .execute(params![key, new.id.as_i64()])?;
        if fresh == 0 {
            return Ok(false);
        }
    }
    tx.prepare_cached(
        "INSERT INTO job (id, lane, due_at, owner, attempt, kind, event, fifo, payload)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )?
    .execute(params![
        new.id.as_i64(),
        new.lane.0,
        new.due_at.ms(),
        new.owner.map(|epoch| epoch.0),
        i32::from(new.owner.is_some()),
        new.task.kind().name(),
        new.event.map(Seq::as_i64),
        new.fifo,
        new.task.payload(),
    ])?;
    Ok(true)
}
