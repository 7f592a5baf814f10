//! What people do with what failed or is long done. Every act is audited in its own statement.
//!
//! Where a job stands is one row, in `job`, `dead` or `outcome`, and whoever takes that row out may go on. So of two
//! people, or a person and retention, one comes first, and the other finds nothing left.

use std::collections::{BTreeMap, BTreeSet};

use sekisho_core::Seq;
use sekisho_core::change::{Act, Replayed};

use super::connection::{Link, value};
use super::failure::Failure;
use super::upkeep::without_nul;
use crate::error::Result;

/// How often a replay looks again where an event stands that somebody else moved meanwhile.
const ROUNDS_MAX: usize = 5;

const REVIVE: &str = "
WITH given AS MATERIALIZED (
    SELECT * FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS given (job, target, n)
), locked AS MATERIALIZED (
    SELECT dead.job FROM given JOIN dead ON dead.job = given.job ORDER BY dead.job FOR UPDATE OF dead
), letter AS (
    DELETE FROM dead USING locked WHERE dead.job = locked.job RETURNING dead.*
), queued AS (
    INSERT INTO job (id, lane, due_at, attempt, base, kind, event, fifo, payload)
    SELECT job, lane, $3::bigint, attempts, attempts, kind, event, fifo, payload FROM letter
), noted AS (
    INSERT INTO audit (at, actor, action, target, reason)
    SELECT $3::bigint, $4::text, 'dead_letter.retried', target, $5::text FROM given JOIN letter USING (job) ORDER BY n
)
SELECT job FROM letter";

pub async fn revive(link: &Link, jobs: &[Seq], act: &Act) -> Result<Vec<bool>> {
    let (ids, targets) = once(jobs, |job| job.as_message().to_string());
    let (actor, reason) = (without_nul(&act.actor), without_nul(&act.reason));
    let rows = link.query(REVIVE, &[&ids, &targets, &act.at.ms(), &actor, &reason]).await?;
    let mut revived = rows.iter().map(|row| value(row, 0)).collect::<Result<BTreeSet<i64>>>()?;
    Ok(jobs.iter().map(|job| revived.remove(&job.as_i64())).collect())
}

const DISCARD: &str = "
WITH given AS MATERIALIZED (
    SELECT * FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS given (job, target, n)
), locked AS MATERIALIZED (
    SELECT dead.job FROM given JOIN dead ON dead.job = given.job ORDER BY dead.job FOR UPDATE OF dead
), letter AS (
    DELETE FROM dead USING locked WHERE dead.job = locked.job RETURNING dead.*
), put_aside AS (
    INSERT INTO outcome (job, result, note, at, attempts, lane, event)
    SELECT job, 'discarded', $6::text, $3::bigint, attempts,
           CASE WHEN lane <> 'settle' OR event IS DISTINCT FROM job THEN lane END,
           CASE WHEN lane <> 'settle' OR event IS DISTINCT FROM job THEN event END
    FROM letter
), noted AS (
    INSERT INTO audit (at, actor, action, target, reason)
    SELECT $3::bigint, $4::text, 'dead_letter.discarded', target, $5::text FROM given JOIN letter USING (job) ORDER BY n
)
SELECT job FROM letter";

pub async fn discard(link: &Link, jobs: &[Seq], act: &Act) -> Result<Vec<bool>> {
    let (ids, targets) = once(jobs, |job| job.as_message().to_string());
    let (actor, reason) = (without_nul(&act.actor), without_nul(&act.reason));
    let why = format!("discarded by {actor}: {reason}");
    let rows = link.query(DISCARD, &[&ids, &targets, &act.at.ms(), &actor, &reason, &why]).await?;
    let mut discarded = rows.iter().map(|row| value(row, 0)).collect::<Result<BTreeSet<i64>>>()?;
    Ok(jobs.iter().map(|job| discarded.remove(&job.as_i64())).collect())
}

/// An event that stands nowhere was let go: only its row still waits for its partition to be dropped.
const REPLAY: &str = "
WITH given AS MATERIALIZED (
    SELECT given.*, EXISTS (SELECT FROM job WHERE job.id = given.seq) AS unfinished
    FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS given (seq, target, n)
    CROSS JOIN LATERAL (SELECT FROM event WHERE event.seq = given.seq LIMIT 1) AS present
    ORDER BY given.seq
), died AS MATERIALIZED (
    SELECT dead.job FROM given JOIN dead ON dead.job = given.seq WHERE NOT unfinished
    ORDER BY dead.job
    FOR UPDATE OF dead
), undead AS (
    DELETE FROM dead USING died WHERE dead.job = died.job RETURNING dead.job, dead.attempts
), done AS MATERIALIZED (
    SELECT outcome.job FROM given JOIN outcome ON outcome.job = given.seq WHERE NOT unfinished
    ORDER BY outcome.job
    FOR UPDATE OF outcome
), undone AS (
    DELETE FROM outcome USING done WHERE outcome.job = done.job RETURNING outcome.job, outcome.attempts
), queued AS (
    INSERT INTO job (id, lane, due_at, attempt, base, kind, event, payload)
    SELECT job, 'settle', $3::bigint, attempts, attempts, 'settle', job, $4::text
    FROM (SELECT * FROM undead UNION ALL SELECT * FROM undone) AS ended
    ORDER BY job
    RETURNING id
), noted AS (
    INSERT INTO audit (at, actor, action, target, reason)
    SELECT $3::bigint, $5::text, 'event.replayed', target, $6::text FROM given JOIN queued ON queued.id = given.seq ORDER BY n
)
SELECT seq, unfinished, queued.id IS NOT NULL,
       EXISTS (SELECT FROM dead WHERE dead.job = seq) OR EXISTS (SELECT FROM outcome WHERE outcome.job = seq)
FROM given LEFT JOIN queued ON queued.id = given.seq";

pub async fn replay(link: &Link, events: &[Seq], payload: &str, act: &Act) -> Result<Vec<Replayed>> {
    let (actor, reason) = (without_nul(&act.actor), without_nul(&act.reason));
    let payload = without_nul(payload);
    let (mut ids, mut targets) = once(events, |event| event.as_event().to_string());
    let mut answers: BTreeMap<i64, Replayed> = BTreeMap::new();
    for _ in 0..ROUNDS_MAX {
        let rows = link.query(REPLAY, &[&ids, &targets, &act.at.ms(), &payload, &actor, &reason]).await?;
        let mut moved = BTreeSet::new();
        for row in &rows {
            let event = value(row, 0)?;
            match (value(row, 1)?, value(row, 2)?, value(row, 3)?) {
                (true, _, _) => answers.insert(event, Replayed::Unfinished),
                (false, true, _) => answers.insert(event, Replayed::Queued),
                (false, false, false) => None,
                (false, false, true) => {
                    moved.insert(event);
                    None
                }
            };
        }
        if moved.is_empty() {
            return Ok(events.iter().map(|event| answer(*event, &mut answers)).collect());
        }
        targets =
            targets.into_iter().zip(&ids).filter(|(_, id)| moved.contains(id)).map(|(t, _)| t).collect();
        ids.retain(|id| moved.contains(id));
    }
    Err(Failure::Restless.into())
}

/// Named twice, an event is queued once.
fn answer(event: Seq, answers: &mut BTreeMap<i64, Replayed>) -> Replayed {
    match answers.get_mut(&event.as_i64()) {
        Some(answer) => std::mem::replace(answer, Replayed::Unfinished),
        None => Replayed::Unknown,
    }
}

/// Each number once, in the order given, and how the audit names it.
fn once(given: &[Seq], name: fn(&Seq) -> String) -> (Vec<i64>, Vec<String>) {
    let mut seen = BTreeSet::new();
    given.iter().filter(|seq| seen.insert(**seq)).map(|seq| (seq.as_i64(), name(seq))).unzip()
}
