//! Nodes and their work. A lease is checked where the row is locked, in the statement that writes; what it does not
//! cover is not touched.

use sekisho_core::change::{ChangeSet, Committed, Death, End, Job, Lane, Lease, Outcome};
use sekisho_core::{Epoch, Seq, Time};

use super::connection::{Link, value};
use super::partition;
use super::upkeep::{limit_of, without_nul};
use crate::error::{Error, Result};
use crate::{CLAIM_MAX, Joined, Peer, Pulse};

const JOIN: &str = "
INSERT INTO node (beat, joined_at) VALUES (0, $1)
RETURNING
    epoch,
    greatest(coalesce((SELECT max(seq) FROM event), 0), coalesce((SELECT max(id) FROM job), 0))";

pub async fn join(link: &Link, now: Time) -> Result<Joined> {
    partition::make_ahead(link, now).await?;
    let rows = link.query(JOIN, &[&now.ms()]).await?;
    let row = rows.first().ok_or_else(|| Error::corrupt("a new node has no epoch"))?;
    Ok(Joined { epoch: Epoch(value(row, 0)?), floor: Seq::from_i64(value(row, 1)?) })
}

const BEAT: &str = "
WITH beaten AS (UPDATE node SET beat = $2 WHERE epoch = $1 RETURNING epoch)
SELECT
    ARRAY(SELECT epoch FROM node WHERE epoch <> $1 ORDER BY epoch),
    ARRAY(SELECT beat FROM node WHERE epoch <> $1 ORDER BY epoch),
    (extract(epoch FROM clock_timestamp()) * 1000)::bigint
FROM beaten";

pub async fn beat(link: &Link, epoch: Epoch, n: i64) -> Result<Pulse> {
    let rows = link.query(BEAT, &[&epoch.0, &n]).await?;
    let Some(row) = rows.first() else { return Ok(Pulse::Ended) };
    let (epochs, beats): (Vec<i64>, Vec<i64>) = (value(row, 0)?, value(row, 1)?);
    let peers = epochs.into_iter().zip(beats).map(|(epoch, beat)| Peer { epoch: Epoch(epoch), beat });
    Ok(Pulse::Alive { peers: peers.collect(), store_time: Some(Time::from_ms(value(row, 2)?)) })
}

const END: &str = "DELETE FROM node WHERE epoch = $1 AND beat = $2 RETURNING epoch";

pub async fn end(link: &Link, epoch: Epoch, n: i64) -> Result<bool> {
    Ok(!link.query(END, &[&epoch.0, &n]).await?.is_empty())
}

/// The type is looked up row by row, so that only the partitions of the claimed events are visited.
const CLAIM: &str = "
WITH ready AS MATERIALIZED (
    SELECT id FROM job
    WHERE lane = $2 AND owner IS NULL AND due_at <= $3
    ORDER BY due_at, id
    LIMIT $4
    FOR UPDATE SKIP LOCKED
), taken AS (
    UPDATE job SET owner = $1, attempt = attempt + 1 FROM ready WHERE job.id = ready.id
    RETURNING job.id, job.due_at, job.attempt
)
SELECT id, attempt, (SELECT type FROM event WHERE event.seq = taken.id) FROM taken ORDER BY due_at, id";

pub async fn claim(link: &Link, epoch: Epoch, lane: &Lane, limit: usize, now: Time) -> Result<Vec<Job>> {
    let rows = link.query(CLAIM, &[&epoch.0, &lane.0, &now.ms(), &limit_of(limit, CLAIM_MAX)]).await?;
    let job = |row| {
        let lease = Lease { job: Seq::from_i64(value(row, 0)?), epoch, attempt: value(row, 1)? };
        let event_type = value::<Option<String>>(row, 2)?.unwrap_or_default();
        Ok(Job { lease, lane: lane.clone(), event_type })
    };
    rows.iter().map(job).collect()
}

/// Exactly one of `due_at`, `result` and `reason` is set, and says how the run ended.
const COMMIT: &str = "
WITH given AS (
    SELECT * FROM unnest(
        $1::bigint[], $2::bigint[], $3::integer[], $4::bigint[], $5::bigint[], $6::text[], $7::text[], $8::text[],
        $9::text[]
    ) WITH ORDINALITY AS given (job, epoch, attempt, at, due_at, result, note, reason, error, n)
), retried AS (
    UPDATE job SET owner = NULL, due_at = given.due_at FROM given
    WHERE job.id = given.job AND job.owner = given.epoch AND job.attempt = given.attempt AND given.due_at IS NOT NULL
    RETURNING given.n
), ended AS (
    DELETE FROM job USING given
    WHERE job.id = given.job AND job.owner = given.epoch AND job.attempt = given.attempt AND given.due_at IS NULL
    RETURNING given.*
), done AS (
    INSERT INTO outcome (job, at, result, note) SELECT job, at, result, note FROM ended WHERE result IS NOT NULL
), died AS (
    INSERT INTO dead (job, at, attempts, reason, error)
    SELECT job, at, attempt, reason, error FROM ended WHERE reason IS NOT NULL
)
SELECT n FROM retried UNION ALL SELECT n FROM ended";

pub async fn commit(link: &Link, sets: &[ChangeSet]) -> Result<Vec<Committed>> {
    let mut answers = vec![Committed::Lost; sets.len()];
    // Order matters: rows are locked by id. A lease can be spent once, so only its first set is sent.
    let mut order: Vec<usize> = (0..sets.len()).collect();
    order.sort_by_key(|&index| sets[index].lease);
    order.dedup_by_key(|index| sets[*index].lease);
    if order.is_empty() {
        return Ok(answers);
    }
    let sent: Vec<&ChangeSet> = order.iter().map(|&index| &sets[index]).collect();
    let texts = |of: fn(&ChangeSet) -> Option<&str>| {
        sent.iter().map(|set| of(set).map(without_nul)).collect::<Vec<_>>()
    };
    let rows = link
        .query(
            COMMIT,
            &[
                &sent.iter().map(|set| set.lease.job.as_i64()).collect::<Vec<_>>(),
                &sent.iter().map(|set| set.lease.epoch.0).collect::<Vec<_>>(),
                &sent.iter().map(|set| set.lease.attempt).collect::<Vec<_>>(),
                &sent.iter().map(|set| set.at.ms()).collect::<Vec<_>>(),
                &sent.iter().map(|set| due_at(&set.end)).collect::<Vec<_>>(),
                &texts(|set| outcome(&set.end).map(Outcome::name)),
                &texts(|set| outcome(&set.end).and_then(Outcome::note)),
                &texts(|set| death(&set.end).map(|death| death.reason.as_str())),
                &texts(|set| death(&set.end).map(|death| death.error.as_str())),
            ],
        )
        .await?;
    for row in &rows {
        let n: i64 = value(row, 0)?;
        let index = usize::try_from(n - 1).ok().and_then(|n| order.get(n));
        answers[*index.ok_or_else(|| Error::corrupt("an answer to no question"))?] = Committed::Applied;
    }
    Ok(answers)
}

fn due_at(end: &End) -> Option<i64> {
    match end {
        End::Retry { due_at } => Some(due_at.ms()),
        End::Done(_) | End::Dead(_) => None,
    }
}

fn outcome(end: &End) -> Option<&Outcome> {
    match end {
        End::Done(outcome) => Some(outcome),
        End::Retry { .. } | End::Dead(_) => None,
    }
}

fn death(end: &End) -> Option<&Death> {
    match end {
        End::Dead(death) => Some(death),
        End::Retry { .. } | End::Done(_) => None,
    }
}

const SWEEP: &str = "
WITH orphan AS MATERIALIZED (
    SELECT id FROM job
    WHERE owner IS NOT NULL AND NOT EXISTS (SELECT FROM node WHERE node.epoch = job.owner)
    ORDER BY id
    LIMIT $1
    FOR UPDATE OF job SKIP LOCKED
)
UPDATE job SET owner = NULL, crashes = crashes + 1 FROM orphan WHERE job.id = orphan.id RETURNING job.id";

pub async fn sweep(link: &Link, limit: usize) -> Result<usize> {
    Ok(link.query(SWEEP, &[&limit_of(limit, CLAIM_MAX)]).await?.len())
}

const RELEASE: &str = "
UPDATE job SET owner = NULL, attempt = job.attempt - 1
FROM unnest($1::bigint[], $2::bigint[], $3::integer[]) AS held (job, epoch, attempt)
WHERE job.id = held.job AND job.owner = held.epoch AND job.attempt = held.attempt";

pub async fn release(link: &Link, leases: &[Lease]) -> Result<()> {
    let jobs: Vec<i64> = leases.iter().map(|lease| lease.job.as_i64()).collect();
    let epochs: Vec<i64> = leases.iter().map(|lease| lease.epoch.0).collect();
    let attempts: Vec<i32> = leases.iter().map(|lease| lease.attempt).collect();
    link.query(RELEASE, &[&jobs, &epochs, &attempts]).await?;
    Ok(())
}
