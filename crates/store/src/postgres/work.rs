//! The work that nodes lease. A lease is checked where the row is locked, in the statement that writes; rows are
//! locked by id and keys in order, so that nodes wait for each other but never in a circle.
//!
//! A job of a fifo that waits behind another is parked, and freed when its turn comes. A statement sees the moment it
//! began: an earlier job it does not see is finished, so nothing runs out of turn. One it still sees may be finished
//! by now; so whoever parks or ends a job looks again in a later statement, and `sweep` finds what both missed.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use sekisho_core::job::{Job, Lane, Lease};
use sekisho_core::{Epoch, Seq, Time};
use tokio_postgres::Row;

use super::connection::{Link, lock, value};
use super::find_work::task;
use super::horizon::{Horizon, Reached};
use super::upkeep::{limit_of, without_nul};
use crate::CLAIM_MAX;
use crate::error::{Error, Result};

/// How often a claim looks again, because what it met had to wait.
const CLAIM_ROUNDS_MAX: usize = 5;
/// And how much further each time.
const CLAIM_REACH: usize = 4;

/// Per lane: `most` to be taken of the first `met`, due from `start` on. A row without an id was not taken but parked; the
/// last one, of no lane, says how many microseconds it took, without the sync.
const CLAIM: &str = "
WITH ready AS MATERIALIZED (
    SELECT want.n, want.most, found.*
    FROM unnest($2::text[], $3::bigint[], $4::bigint[], $6::bigint[]) WITH ORDINALITY AS want (lane, most, met, start, n)
    CROSS JOIN LATERAL (
        SELECT job.id, job.due_at, job.fifo IS NOT NULL AND EXISTS (
            SELECT FROM job AS earlier WHERE earlier.fifo = job.fifo AND earlier.id < job.id
        ) AS waits
        FROM job
        WHERE job.lane = want.lane AND job.owner IS NULL AND NOT job.parked
        AND job.due_at <= $5 AND job.due_at >= want.start
        ORDER BY job.due_at, job.id
        LIMIT want.met
        FOR UPDATE OF job SKIP LOCKED
    ) AS found
), turn AS (
    SELECT n, id, most, row_number() OVER (PARTITION BY n ORDER BY due_at, id) AS place FROM ready WHERE NOT waits
), taken AS (
    UPDATE job SET owner = $1, attempt = job.attempt + 1
    FROM turn WHERE job.id = turn.id AND turn.place <= turn.most
    RETURNING turn.n, job.*
), parked AS (
    UPDATE job SET parked = true FROM ready WHERE job.id = ready.id AND ready.waits RETURNING ready.n, job.fifo
)
SELECT id, attempt, kind, lane, fifo, due_at, event, payload, base, crashes, n, NULL::bigint FROM taken
UNION ALL
SELECT NULL, NULL, NULL, NULL, fifo, NULL, NULL, NULL, NULL, NULL, n, NULL FROM parked
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       (extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000000)::bigint";

pub async fn claim(
    link: &Link,
    horizon: &Mutex<Horizon>,
    epoch: Epoch,
    wants: &[(Lane, usize)],
    now: Time,
) -> Result<Vec<Job>> {
    let mut lanes: Vec<Wanted> = Vec::new();
    for (lane, most) in wants {
        let most = (*most).min(CLAIM_MAX);
        if let Some(known) = lanes.iter_mut().find(|known| known.lane == lane) {
            known.most += most;
        } else {
            let start = lock(horizon).start(lane, Instant::now());
            lanes.push(Wanted { lane, most, start, jobs: Vec::new(), open: true });
        }
    }
    let mut parked = BTreeSet::new();
    let mut reach = 1;
    for _ in 0..CLAIM_ROUNDS_MAX {
        let mut open: Vec<_> = lanes.iter_mut().filter(|lane| lane.open && lane.most > 0).collect();
        if open.is_empty() {
            break;
        }
        let round = claim_round(link, epoch, &mut open, reach, now, &mut parked).await;
        let (mut horizon, moment) = (lock(horizon), (Instant::now(), now));
        for lane in open {
            match &round {
                Ok(took) => {
                    horizon.looked(lane.lane, lane.start, lane.jobs.len(), *took, moment);
                    horizon.reached(lane.lane, now, lane.reached());
                }
                Err(error) if error.took_too_long() => horizon.failed(lane.lane, moment),
                Err(_) => {}
            }
        }
        drop(horizon);
        round?;
        reach *= CLAIM_REACH;
    }
    give_turns(link, parked).await;
    Ok(lanes.into_iter().flat_map(|lane| lane.jobs).collect())
}

/// What is claimed of a lane.
struct Wanted<'l> {
    lane: &'l Lane,
    most: usize,
    start: Time,
    jobs: Vec<Job>,
    /// There may be more to be had.
    open: bool,
}

impl Wanted<'_> {
    fn reached(&self) -> Reached {
        match self.jobs.last() {
            _ if self.open => Reached::Until(self.start),
            Some(last) if self.jobs.len() == self.most => Reached::Until(last.due_at),
            _ => Reached::All,
        }
    }
}

async fn claim_round(
    link: &Link,
    epoch: Epoch,
    lanes: &mut [&mut Wanted<'_>],
    reach: usize,
    now: Time,
    parked: &mut BTreeSet<String>,
) -> Result<Duration> {
    let most: Vec<usize> = lanes.iter().map(|lane| lane.most - lane.jobs.len()).collect();
    let numbers = |of: fn(usize, usize) -> usize| {
        most.iter().map(|most| limit_of(of(*most, reach), usize::MAX)).collect::<Vec<_>>()
    };
    let names: Vec<_> = lanes.iter().map(|lane| without_nul(&lane.lane.0)).collect();
    let (take, meet) = (numbers(|most, _| most), numbers(|most, reach| most * reach));
    let starts: Vec<_> = lanes.iter().map(|lane| lane.start.ms()).collect();
    let rows = link.query(CLAIM, &[&epoch.0, &names, &take, &meet, &now.ms(), &starts]).await?;
    let mut unmet = meet;
    let mut took = Duration::ZERO;
    for row in &rows {
        if let Some(micros) = value::<Option<i64>>(row, 11)? {
            took = Duration::from_micros(u64::try_from(micros).unwrap_or_default());
            continue;
        }
        let n = usize::try_from(value::<i64>(row, 10)? - 1).unwrap_or(usize::MAX);
        let lane = lanes.get_mut(n).ok_or_else(|| Error::corrupt("an answer to no question"))?;
        unmet[n] -= 1;
        match value::<Option<i64>>(row, 0)? {
            Some(_) => lane.jobs.push(job(row, epoch)?),
            None => parked.extend(value::<Option<String>>(row, 4)?),
        }
    }
    for (lane, unmet) in lanes.iter_mut().zip(unmet) {
        lane.jobs.sort_by_key(|job| (job.due_at, job.lease.job));
        lane.open = unmet == 0 && lane.jobs.len() < lane.most;
    }
    Ok(took)
}

/// Reads the columns id, attempt, kind, lane, fifo, `due_at`, event, payload, base and crashes.
fn job(row: &Row, epoch: Epoch) -> Result<Job> {
    Ok(Job {
        lease: Lease { job: Seq::from_i64(value(row, 0)?), epoch, attempt: value(row, 1)? },
        task: task(row, 2, 7)?,
        lane: Lane(value::<&str>(row, 3)?.into()),
        fifo: value(row, 4)?,
        due_at: Time::from_ms(value(row, 5)?),
        event: value::<Option<i64>>(row, 6)?.map(Seq::from_i64),
        base: value(row, 8)?,
        crashes: value(row, 9)?,
    })
}

/// The first of each fifo.
const GIVE_TURNS: &str = "
WITH head AS MATERIALIZED (
    SELECT job.id
    FROM unnest($1::text[]) AS given (fifo)
    CROSS JOIN LATERAL (SELECT id FROM job WHERE job.fifo = given.fifo ORDER BY id LIMIT 1) AS first
    JOIN job ON job.id = first.id AND job.parked
    ORDER BY job.id
    FOR UPDATE OF job
)
UPDATE job SET parked = false FROM head WHERE job.id = head.id";

/// A failure here is none of what came before it: that is written, and `sweep` gives the turns later.
pub async fn give_turns(link: &Link, fifos: BTreeSet<String>) {
    if fifos.is_empty() {
        return;
    }
    let fifos: Vec<String> = fifos.into_iter().collect();
    if let Err(failure) = link.query(GIVE_TURNS, &[&fifos]).await {
        tracing::debug!(error = failure.message(), "the next of a fifo waits for the sweep");
    }
}

const START: &str = "
WITH held AS MATERIALIZED (
    SELECT job.id FROM unnest($1::bigint[], $2::bigint[], $3::integer[]) AS lease (job, epoch, attempt)
    JOIN job ON job.id = lease.job AND job.owner = lease.epoch AND job.attempt = lease.attempt
    ORDER BY job.id
    FOR UPDATE OF job
)
UPDATE job SET started = true FROM held WHERE job.id = held.id RETURNING job.id, job.owner, job.attempt";

pub async fn start(link: &Link, leases: &[Lease]) -> Result<Vec<bool>> {
    let (jobs, epochs, attempts) = fences(leases);
    let rows = link.query(START, &[&jobs, &epochs, &attempts]).await?;
    let held = rows
        .iter()
        .map(|row| Ok((value(row, 0)?, value(row, 1)?, value(row, 2)?)))
        .collect::<Result<BTreeSet<(i64, i64, i32)>>>()?;
    Ok(leases
        .iter()
        .map(|lease| held.contains(&(lease.job.as_i64(), lease.epoch.0, lease.attempt)))
        .collect())
}

const RELEASE: &str = "
WITH held AS MATERIALIZED (
    SELECT job.id FROM unnest($1::bigint[], $2::bigint[], $3::integer[]) AS lease (job, epoch, attempt)
    JOIN job ON job.id = lease.job AND job.owner = lease.epoch AND job.attempt = lease.attempt
    ORDER BY job.id
    FOR UPDATE OF job
)
UPDATE job SET owner = NULL, started = false, base = job.base + 1 FROM held WHERE job.id = held.id";

pub async fn release(link: &Link, leases: &[Lease]) -> Result<()> {
    let (jobs, epochs, attempts) = fences(leases);
    link.query(RELEASE, &[&jobs, &epochs, &attempts]).await?;
    Ok(())
}

fn fences(leases: &[Lease]) -> (Vec<i64>, Vec<i64>, Vec<i32>) {
    let job = leases.iter().map(|lease| lease.job.as_i64());
    let epoch = leases.iter().map(|lease| lease.epoch.0);
    let attempt = leases.iter().map(|lease| lease.attempt);
    (job.collect(), epoch.collect(), attempt.collect())
}

/// No index serves this: it would cost every job, and the question is rare. Asked where a scan is allowed.
const OWNED: &str = "SELECT id, attempt FROM job WHERE owner = $1 AND id > $2 ORDER BY id LIMIT $3";

pub async fn owned(pages: &Link, epoch: Epoch, after: Seq) -> Result<Vec<Lease>> {
    let limit = limit_of(CLAIM_MAX, CLAIM_MAX);
    let rows = pages.query(OWNED, &[&epoch.0, &after.as_i64(), &limit]).await?;
    let lease = |row| Ok(Lease { job: Seq::from_i64(value(row, 0)?), epoch, attempt: value(row, 1)? });
    rows.iter().map(lease).collect()
}

const ADOPT: &str = "
WITH held AS MATERIALIZED (
    SELECT job.id, lease.n
    FROM unnest($1::bigint[], $2::bigint[], $3::integer[]) WITH ORDINALITY AS lease (job, epoch, attempt, n)
    JOIN job ON job.id = lease.job AND job.owner = lease.epoch AND job.attempt = lease.attempt
    ORDER BY job.id
    FOR UPDATE OF job
), adopted AS (
    UPDATE job SET attempt = job.attempt + 1, base = job.base + 1 FROM held WHERE job.id = held.id RETURNING held.n, job.*
)
SELECT id, attempt, kind, lane, fifo, due_at, event, payload, base, crashes, owner FROM adopted ORDER BY n";

pub async fn adopt(link: &Link, leases: &[Lease]) -> Result<Vec<Job>> {
    let (jobs, epochs, attempts) = fences(leases);
    let rows = link.query(ADOPT, &[&jobs, &epochs, &attempts]).await?;
    rows.iter().map(|row| job(row, Epoch(value(row, 10)?))).collect()
}

/// As for [`OWNED`]: no index, and asked where a scan is allowed.
const ORPHANS: &str = "
SELECT id, owner FROM job
WHERE owner IS NOT NULL AND id > $2 AND NOT EXISTS (SELECT FROM node WHERE node.epoch = job.owner AND node.ended IS NULL)
ORDER BY id
LIMIT $1";

/// The owner is compared again where the row is locked: one freed and leased anew meanwhile may belong to a node that
/// this statement is too old to know.
const SWEEP: &str = "
WITH orphan AS MATERIALIZED (
    SELECT job.id FROM unnest($1::bigint[], $3::bigint[]) AS seen (id, owner)
    JOIN job ON job.id = seen.id AND job.owner = seen.owner
    ORDER BY job.id
    FOR UPDATE OF job SKIP LOCKED
)
UPDATE job SET owner = NULL, started = false, base = base + 1,
    crashes = crashes + (lane <> 'suspect' OR started)::integer,
    home = CASE WHEN crashes + (lane <> 'suspect' OR started)::integer >= $2 THEN coalesce(home, lane) ELSE home END,
    lane = CASE WHEN crashes + (lane <> 'suspect' OR started)::integer >= $2 THEN 'suspect' ELSE lane END
FROM orphan WHERE job.id = orphan.id RETURNING job.id";

/// Hops from fifo to fifo along the index. Says where it stopped before the end.
const FIND_TURNS: &str = "
WITH RECURSIVE hop AS (
    (SELECT fifo, id, parked FROM job WHERE fifo >= $1 ORDER BY fifo, id LIMIT 1)
    UNION ALL
    SELECT next.* FROM hop CROSS JOIN LATERAL (
        SELECT job.fifo, job.id, job.parked FROM job WHERE job.fifo > hop.fifo ORDER BY job.fifo, job.id LIMIT 1
    ) AS next
), head AS MATERIALIZED (
    SELECT * FROM hop LIMIT $2
), lost AS MATERIALIZED (
    SELECT job.id FROM head JOIN job ON job.id = head.id AND job.parked WHERE head.parked
    ORDER BY job.id
    FOR UPDATE OF job SKIP LOCKED
), given AS (
    UPDATE job SET parked = false FROM lost WHERE job.id = lost.id
)
SELECT max(fifo) FROM head HAVING count(*) = $2";

/// Looks at orphans in one sweep: whoever sweeps must also beat.
const SWEEP_PAGES: usize = 8;

/// `turn` is the fifo from which lost turns are looked for next.
pub async fn sweep(
    pages: &Link,
    link: &Link,
    limit: usize,
    suspect_after: i32,
    turn: &Mutex<String>,
) -> Result<usize> {
    let limit = limit.min(CLAIM_MAX);
    let (mut freed, mut last) = (0, 0);
    // Those that somebody holds are passed by, and don't hide the ones behind them.
    for _ in 0..SWEEP_PAGES {
        if freed >= limit {
            break;
        }
        let rows = pages.query(ORPHANS, &[&limit_of(limit, CLAIM_MAX), &last]).await?;
        let ids = rows.iter().map(|row| value(row, 0)).collect::<Result<Vec<i64>>>()?;
        let owners = rows.iter().map(|row| value(row, 1)).collect::<Result<Vec<i64>>>()?;
        let Some(next) = ids.last() else { break };
        last = *next;
        freed += link.query(SWEEP, &[&ids, &suspect_after, &owners]).await?.len();
    }
    let after = lock(turn).clone();
    let rows = link.query(FIND_TURNS, &[&after, &limit_of(CLAIM_MAX, CLAIM_MAX)]).await?;
    *lock(turn) = rows.first().map(|row| value(row, 0)).transpose()?.unwrap_or_default();
    Ok(freed)
}

const MAKE_DUE: &str = "
WITH late AS MATERIALIZED (
    SELECT id FROM job WHERE owner IS NULL AND due_at > $1 AND kind <> 'timer' ORDER BY id LIMIT $2
    FOR UPDATE SKIP LOCKED
)
UPDATE job SET due_at = $1 FROM late WHERE job.id = late.id RETURNING job.id";

pub async fn make_due(link: &Link, limit: usize, now: Time) -> Result<usize> {
    Ok(link.query(MAKE_DUE, &[&now.ms(), &limit_of(limit, CLAIM_MAX)]).await?.len())
}

/// Hops from lane to lane along the index.
const LANES: &str = "
WITH RECURSIVE hop AS (
    (SELECT lane, due_at FROM job WHERE owner IS NULL AND NOT parked ORDER BY lane, due_at LIMIT 1)
    UNION ALL
    SELECT next.* FROM hop CROSS JOIN LATERAL (
        SELECT job.lane, job.due_at FROM job
        WHERE job.owner IS NULL AND NOT job.parked AND job.lane > hop.lane
        ORDER BY job.lane, job.due_at LIMIT 1
    ) AS next
)
SELECT lane, due_at FROM hop ORDER BY lane";

pub async fn lanes(link: &Link) -> Result<Vec<(Lane, Time)>> {
    let rows = link.query(LANES, &[]).await?;
    let lane = |row| Ok((Lane(value::<&str>(row, 0)?.into()), Time::from_ms(value(row, 1)?)));
    rows.iter().map(lane).collect()
}
