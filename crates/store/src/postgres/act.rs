//! What people do with what failed or is long done. Every act is audited in its own statement.
//!
//! Where a job stands is one row, in `job`, `dead` or `outcome`, and whoever takes that row out may go on. So of two
//! people, or a person and retention, one comes first, and the other finds nothing left.

use std::collections::{BTreeMap, BTreeSet};

use sekisho_core::Seq;
use sekisho_core::audit::Entry;
use sekisho_core::change::{Act, Replayed};
use sekisho_core::job::Settle;
use tokio_postgres::types::ToSql;

use super::chain::storable;
use super::connection::{Link, value};
use super::failure::QueryFailure;
use super::find_work::task;
use super::upkeep::without_nul;
use super::work::give_turns;
use crate::audit;
use crate::error::Result;

/// How often a replay looks again where an event stands that somebody else moved meanwhile.
const ROUNDS_MAX: usize = 5;

const FIND_TASKS: &str = "SELECT job, kind, payload FROM dead WHERE job = ANY($1::bigint[])";

/// A payload that is given takes the place of the letter's own.
const RETRY: &str = "
WITH given AS MATERIALIZED (
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::bytea[], $9::text[])
        WITH ORDINALITY AS given (job, target, digest, payload, place)
), locked AS MATERIALIZED (
    SELECT dead.job FROM given JOIN dead ON dead.job = given.job ORDER BY dead.job FOR UPDATE OF dead
), letter AS (
    DELETE FROM dead USING locked WHERE dead.job = locked.job RETURNING dead.*
), queued AS (
    INSERT INTO job (id, lane, due_at, attempt, base, kind, event, fifo, payload)
    SELECT job, lane, $4::bigint, attempts, attempts, kind, event, fifo, coalesce(given.payload, letter.payload)
    FROM letter JOIN given USING (job)
), noted AS (
    INSERT INTO audit (at, actor, role, action, target_kind, target_id, details, digest, chain, n)
    SELECT $4::bigint, $5::text, $6::text, $7::text, 'message', target, $8::text, digest, $10::bigint, $11::bigint
    FROM given JOIN letter USING (job) ORDER BY place
    RETURNING number, digest
), linked AS (
    INSERT INTO link (chain, n, previous, hash)
    SELECT $10::bigint, $11::bigint, $12::bytea,
           sha256($12::bytea || string_agg(digest, ''::bytea ORDER BY number))
    FROM noted HAVING count(*) > 0
    RETURNING hash
)
SELECT job, (SELECT hash FROM linked) FROM letter";

pub async fn retry(link: &Link, jobs: &[Seq], act: &Act) -> Result<Vec<bool>> {
    let noted = Noted::of(jobs, |job| audit::of_message(act, audit::RETRIED, job));
    let Some(entry) = noted.first() else { return Ok(Vec::new()) };
    let Noted { ids, targets, digests, .. } = &noted;
    let payloads = retried_payloads(link, ids).await?;
    let values: [&(dyn ToSql + Sync); 9] = [
        ids,
        targets,
        digests,
        &entry.at.ms(),
        &entry.actor,
        &entry.role,
        &entry.action,
        &entry.details,
        &payloads,
    ];
    let rows = link.query_chained(RETRY, &values).await?;
    let mut retried = rows.iter().map(|row| value(row, 0)).collect::<Result<BTreeSet<i64>>>()?;
    Ok(jobs.iter().map(|job| retried.remove(&job.as_i64())).collect())
}

/// What each is told from now on, where a retry changes that.
async fn retried_payloads(link: &Link, jobs: &[i64]) -> Result<Vec<Option<String>>> {
    let mut changed = BTreeMap::new();
    for row in link.query(FIND_TASKS, &[&jobs]).await? {
        let task = task(&row, 1, 2)?;
        let after = task.clone().retried();
        if after != task {
            changed.insert(value::<i64>(&row, 0)?, after.payload().into_owned());
        }
    }
    Ok(jobs.iter().map(|job| changed.remove(job)).collect())
}

const DISCARD: &str = "
WITH given AS MATERIALIZED (
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::bytea[]) WITH ORDINALITY AS given (job, target, digest, place)
), locked AS MATERIALIZED (
    SELECT dead.job FROM given JOIN dead ON dead.job = given.job ORDER BY dead.job FOR UPDATE OF dead
), letter AS (
    DELETE FROM dead USING locked WHERE dead.job = locked.job RETURNING dead.*
), put_aside AS (
    INSERT INTO outcome (job, result, note, at, attempts, lane, event)
    SELECT job, 'discarded', $9::text, $4::bigint, attempts,
           CASE WHEN lane <> 'settle' OR event IS DISTINCT FROM job THEN lane END,
           CASE WHEN lane <> 'settle' OR event IS DISTINCT FROM job THEN event END
    FROM letter
), noted AS (
    INSERT INTO audit (at, actor, role, action, target_kind, target_id, details, digest, chain, n)
    SELECT $4::bigint, $5::text, $6::text, $7::text, 'message', target, $8::text, digest, $10::bigint, $11::bigint
    FROM given JOIN letter USING (job) ORDER BY place
    RETURNING number, digest
), linked AS (
    INSERT INTO link (chain, n, previous, hash)
    SELECT $10::bigint, $11::bigint, $12::bytea,
           sha256($12::bytea || string_agg(digest, ''::bytea ORDER BY number))
    FROM noted HAVING count(*) > 0
    RETURNING hash
)
SELECT job, (SELECT hash FROM linked) FROM letter";

pub async fn discard(link: &Link, jobs: &[Seq], act: &Act) -> Result<Vec<bool>> {
    let noted = Noted::of(jobs, |job| audit::of_message(act, audit::DISCARDED, job));
    let Some(entry) = noted.first() else { return Ok(Vec::new()) };
    let Noted { ids, targets, digests, .. } = &noted;
    let why = format!("discarded by {}: {}", without_nul(&act.actor), without_nul(&act.reason));
    let values: [&(dyn ToSql + Sync); 9] = [
        ids,
        targets,
        digests,
        &entry.at.ms(),
        &entry.actor,
        &entry.role,
        &entry.action,
        &entry.details,
        &why,
    ];
    let rows = link.query_chained(DISCARD, &values).await?;
    let mut discarded = rows.iter().map(|row| value(row, 0)).collect::<Result<BTreeSet<i64>>>()?;
    Ok(jobs.iter().map(|job| discarded.remove(&job.as_i64())).collect())
}

const CANCEL: &str = "
WITH given AS MATERIALIZED (
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::bytea[]) WITH ORDINALITY AS given (job, target, digest, place)
), locked AS MATERIALIZED (
    SELECT job.id FROM given JOIN job ON job.id = given.job WHERE job.owner IS NULL AND job.kind = 'deliver'
    ORDER BY job.id FOR UPDATE OF job
), taken AS (
    DELETE FROM job USING locked WHERE job.id = locked.id RETURNING job.*
), put_aside AS (
    INSERT INTO outcome (job, result, note, at, attempts, lane, event)
    SELECT id, 'discarded', $9::text, $4::bigint, attempt, coalesce(home, lane), event FROM taken
), noted AS (
    INSERT INTO audit (at, actor, role, action, target_kind, target_id, details, digest, chain, n)
    SELECT $4::bigint, $5::text, $6::text, $7::text, 'message', target, $8::text, digest, $10::bigint, $11::bigint
    FROM given JOIN taken ON taken.id = given.job ORDER BY place
    RETURNING number, digest
), linked AS (
    INSERT INTO link (chain, n, previous, hash)
    SELECT $10::bigint, $11::bigint, $12::bytea,
           sha256($12::bytea || string_agg(digest, ''::bytea ORDER BY number))
    FROM noted HAVING count(*) > 0
    RETURNING hash
)
SELECT id, fifo, (SELECT hash FROM linked) FROM taken";

pub async fn cancel(link: &Link, jobs: &[Seq], act: &Act) -> Result<Vec<bool>> {
    let noted = Noted::of(jobs, |job| audit::of_message(act, audit::CANCELLED, job));
    let Some(entry) = noted.first() else { return Ok(Vec::new()) };
    let Noted { ids, targets, digests, .. } = &noted;
    let why = without_nul(&audit::cancelled_note(act)).into_owned();
    let values: [&(dyn ToSql + Sync); 9] = [
        ids,
        targets,
        digests,
        &entry.at.ms(),
        &entry.actor,
        &entry.role,
        &entry.action,
        &entry.details,
        &why,
    ];
    let rows = link.query_chained(CANCEL, &values).await?;
    let mut cancelled = rows.iter().map(|row| value(row, 0)).collect::<Result<BTreeSet<i64>>>()?;
    let fifos = rows.iter().map(|row| value(row, 1)).collect::<Result<Vec<Option<String>>>>()?;
    give_turns(link, fifos.into_iter().flatten().collect::<BTreeSet<_>>()).await;
    Ok(jobs.iter().map(|job| cancelled.remove(&job.as_i64())).collect())
}

/// An event that stands nowhere was let go: only its row still waits for its partition to be dropped.
const REPLAY: &str = "
WITH given AS MATERIALIZED (
    SELECT given.*, EXISTS (SELECT FROM job WHERE job.id = given.seq) AS unfinished
    FROM unnest($1::bigint[], $2::text[], $3::bytea[]) WITH ORDINALITY AS given (seq, target, digest, place)
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
    SELECT job, 'settle', $4::bigint, attempts, attempts, 'settle', job, $9::text
    FROM (SELECT * FROM undead UNION ALL SELECT * FROM undone) AS ended
    ORDER BY job
    RETURNING id
), noted AS (
    INSERT INTO audit (at, actor, role, action, target_kind, target_id, event, details, digest, chain, n)
    SELECT $4::bigint, $5::text, $6::text, $7::text, 'event', target, seq, $8::text, digest, $10::bigint, $11::bigint
    FROM given JOIN queued ON queued.id = given.seq ORDER BY place
    RETURNING number, digest
), linked AS (
    INSERT INTO link (chain, n, previous, hash)
    SELECT $10::bigint, $11::bigint, $12::bytea,
           sha256($12::bytea || string_agg(digest, ''::bytea ORDER BY number))
    FROM noted HAVING count(*) > 0
    RETURNING hash
)
SELECT seq, unfinished, queued.id IS NOT NULL,
       EXISTS (SELECT FROM dead WHERE dead.job = seq) OR EXISTS (SELECT FROM outcome WHERE outcome.job = seq),
       (SELECT hash FROM linked)
FROM given LEFT JOIN queued ON queued.id = given.seq";

pub async fn replay(link: &Link, events: &[Seq], settle: &Settle, act: &Act) -> Result<Vec<Replayed>> {
    let payload = settle.payload();
    let payload = without_nul(&payload);
    let mut rest = events.to_vec();
    let mut answers: BTreeMap<i64, Replayed> = BTreeMap::new();
    for _ in 0..ROUNDS_MAX {
        let noted = Noted::of(&rest, |event| audit::of_event(act, audit::REPLAYED, event));
        let Some(entry) = noted.first() else { return Ok(Vec::new()) };
        let Noted { ids, targets, digests, .. } = &noted;
        let values: [&(dyn ToSql + Sync); 9] = [
            ids,
            targets,
            digests,
            &entry.at.ms(),
            &entry.actor,
            &entry.role,
            &entry.action,
            &entry.details,
            &payload,
        ];
        let rows = link.query_chained(REPLAY, &values).await?;
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
        rest.retain(|event| moved.contains(&event.as_i64()));
    }
    Err(QueryFailure::Restless.into())
}

/// Named twice, an event is queued once.
fn answer(event: Seq, answers: &mut BTreeMap<i64, Replayed>) -> Replayed {
    match answers.get_mut(&event.as_i64()) {
        Some(answer) => std::mem::replace(answer, Replayed::Unfinished),
        None => Replayed::Unknown,
    }
}

/// What is to be noted of each number, once, in the order given.
struct Noted {
    ids: Vec<i64>,
    targets: Vec<String>,
    digests: Vec<Vec<u8>>,
    entries: Vec<Entry>,
}

impl Noted {
    fn of(given: &[Seq], entry: impl Fn(Seq) -> Entry) -> Self {
        let mut seen = BTreeSet::new();
        let once: Vec<Seq> = given.iter().copied().filter(|seq| seen.insert(*seq)).collect();
        let entries: Vec<Entry> = once.iter().map(|seq| storable(entry(*seq))).collect();
        Self {
            ids: once.iter().map(|seq| seq.as_i64()).collect(),
            targets: entries.iter().map(|entry| entry.target.1.clone()).collect(),
            digests: entries.iter().map(|entry| entry.digest().to_vec()).collect(),
            entries,
        }
    }

    /// What all have in common can be read from one.
    fn first(&self) -> Option<&Entry> {
        self.entries.first()
    }
}
