//! The statement of a commit, in named pieces. Most sets only end and queue jobs: for them there is a shorter one, of
//! the same pieces.
//!
//! Order matters: locks are taken in one order everywhere, so that nodes wait for each other but never in a circle. Jobs
//! by id, states by key, names by name, keys of effects, keys of events; each kind is reached through the one before it.
//! A set that is refused is left out of everything, and no other set feels it.

use std::sync::LazyLock;

use super::column::{ColumnTable, Shape};
use super::columns;

/// Ends and new jobs.
pub static PLAIN: LazyLock<String> = LazyLock::new(|| filled(&[LEASES, ONLY_LEASES, ENDS, JOBS, ANSWER]));

/// Everything.
pub static WHOLE: LazyLock<String> = LazyLock::new(|| {
    filled(&[LEASES, GUARDS, STATES, NAMES, ENDS, JOBS, EVENTS, POSTINGS, AUDIT, ANSWER, MORE_ANSWERS])
});

/// The pieces with the columns of every table in the places that name it: `{jobs.given}` becomes its arrays,
/// `{jobs.all}` the names of its columns, `{jobs.stored}` of those that the database has too. The parameters of the
/// link come behind all tables.
fn filled(pieces: &[&str]) -> String {
    let mut text = pieces.concat();
    let mut next = 1;
    for ColumnTable { name, columns } in columns::whole(&[]).tables {
        let array = |(place, column): (usize, &Shape)| format!("${}::{}[]", next + place, column.sql_type);
        let names = |wanted: fn(&Shape) -> bool| {
            let wanted = columns.iter().filter(|column| wanted(column));
            wanted.map(|column| column.name).collect::<Vec<_>>().join(", ")
        };
        let given = columns.iter().enumerate().map(array).collect::<Vec<_>>().join(", ");
        text = text
            .replace(&format!("{{{name}.given}}"), &format!("unnest({given})"))
            .replace(&format!("{{{name}.all}}"), &names(|_| true))
            .replace(&format!("{{{name}.stored}}"), &names(|column| column.is_stored))
            .replace(&format!("{{{name}.changed}}"), &changed(&columns));
        next += columns.len();
    }
    for (link, sql_type) in [("{chain}", "bigint"), ("{n}", "bigint"), ("{previous}", "bytea")] {
        text = text.replace(link, &format!("${next}::{sql_type}"));
        next += 1;
    }
    text
}

/// What an update of a state sets: all but its key.
fn changed(columns: &[Shape]) -> String {
    let changed = columns.iter().filter(|column| column.is_stored && !["kind", "id"].contains(&column.name));
    changed.map(|column| format!("{0} = written.{0}", column.name)).collect::<Vec<_>>().join(", ")
}

/// A set is lost when fewer of its leases hold than it shows.
const LEASES: &str = "
WITH leased AS MATERIALIZED (
    SELECT given.*, job.crashes, job.kind, coalesce(job.home, job.lane) AS lane, job.event, job.fifo, job.payload
    FROM {ends.given} AS given ({ends.all})
    JOIN job ON job.id = given.job AND job.owner = given.epoch AND job.attempt = given.attempt
    ORDER BY job.id
    FOR UPDATE OF job
), lost AS MATERIALIZED (
    SELECT given.n FROM {sets.given} AS given ({sets.all})
    WHERE given.n NOT IN (SELECT n FROM leased GROUP BY n, leases HAVING count(*) = leases)
)";

const ONLY_LEASES: &str = ", refused AS MATERIALIZED (
    SELECT n FROM lost
), names_reached AS (
    SELECT 0 AS count
)";

/// What must be there is locked as it was loaded. What must not be there is looked for; the insert has the last word.
const GUARDS: &str = ", written AS MATERIALIZED (
    SELECT * FROM {writes.given} AS given ({writes.all})
    WHERE n NOT IN (SELECT n FROM lost)
), current AS MATERIALIZED (
    SELECT state.kind, state.id
    FROM written
    JOIN state ON state.kind = written.kind AND state.id = written.id AND state.version = written.version
    ORDER BY state.kind, state.id
    FOR UPDATE OF state
), naming AS MATERIALIZED (
    SELECT * FROM {names.given} AS given ({names.all})
    WHERE n NOT IN (SELECT n FROM lost)
), moving AS MATERIALIZED (
    SELECT name.name
    FROM naming
    JOIN name ON name.name = naming.name AND name.kind = naming.was_kind AND name.id = naming.was_id
    WHERE (SELECT count(*) FROM current) >= 0
    ORDER BY name.name
    FOR UPDATE OF name
), refused AS MATERIALIZED (
    SELECT n FROM lost
    UNION ALL
    SELECT n FROM written WHERE version <> 0 AND (kind, id) NOT IN (SELECT kind, id FROM current)
    UNION ALL
    SELECT n FROM written
    JOIN state ON state.kind = written.kind AND state.id = written.id WHERE written.version = 0
    UNION ALL
    SELECT n FROM naming WHERE was_kind IS NOT NULL AND name NOT IN (SELECT name FROM moving)
    UNION ALL
    SELECT n FROM naming JOIN name ON name.name = naming.name
    WHERE naming.was_kind IS NULL AND (name.kind <> naming.kind OR name.id <> naming.id)
)";

const STATES: &str = ", added AS (
    INSERT INTO state (version, created_at, changed_at, {writes.stored})
    SELECT 1, at, at, {writes.stored}
    FROM written WHERE version = 0 AND n NOT IN (SELECT n FROM refused)
    ORDER BY kind COLLATE \"C\", id COLLATE \"C\"
    RETURNING id
), changed AS (
    UPDATE state SET version = written.version + 1, changed_at = written.at, {writes.changed}
    FROM written
    WHERE state.kind = written.kind AND state.id = written.id
    AND written.version <> 0 AND written.n NOT IN (SELECT n FROM refused)
)";

/// A name that leads there already is left as it is.
const NAMES: &str = ", named AS (
    INSERT INTO name ({names.stored})
    SELECT {names.stored} FROM naming
    WHERE was_kind IS NULL AND n NOT IN (SELECT n FROM refused)
    AND NOT EXISTS (SELECT FROM name WHERE name.name = naming.name)
    AND (SELECT count(*) FROM added) >= 0
    ORDER BY name COLLATE \"C\"
    RETURNING name
), moved AS (
    UPDATE name SET kind = naming.kind, id = naming.id
    FROM naming
    WHERE name.name = naming.name AND naming.was_kind IS NOT NULL AND naming.n NOT IN (SELECT n FROM refused)
), names_reached AS (
    SELECT count(*) FROM named
)";

/// Which of `retry_at`, `result` and `reason` is set says how the run ended; without any it goes on.
const ENDS: &str = ", ending AS MATERIALIZED (
    SELECT * FROM leased WHERE n NOT IN (SELECT n FROM refused)
), retried AS (
    UPDATE job SET owner = NULL, started = false, due_at = ending.retry_at, base = job.base + ending.unspent, lane = ending.lane, home = NULL,
        crashes = CASE WHEN job.home IS NULL THEN job.crashes ELSE 0 END
    FROM ending WHERE job.id = ending.job AND ending.retry_at IS NOT NULL
), removed AS (
    DELETE FROM job USING ending
    WHERE job.id = ending.job AND (ending.result IS NOT NULL OR ending.reason IS NOT NULL)
), done AS (
    INSERT INTO outcome (job, result, note, at, attempts, lane, event, payment, billing, tenant)
    SELECT job, result, note, at, attempt, CASE WHEN NOT settles THEN lane END, CASE WHEN NOT settles THEN event END,
           payment, billing, tenant
    FROM (SELECT *, lane = 'settle' AND event IS NOT DISTINCT FROM job AS settles FROM ending) AS ending
    WHERE result IS NOT NULL
), died AS (
    INSERT INTO dead (job, at, class, reason, error, attempts, crashes, kind, lane, event, fifo, payload)
    SELECT job, at, class, reason, error, attempt, crashes, kind, lane, event, fifo, payload
    FROM ending WHERE reason IS NOT NULL
), tried AS (
    INSERT INTO attempt (job, n, at, took_ms, status, reason, error, headers, body)
    SELECT job, attempt, tried_at, took_ms, status, tried_reason, tried_error, headers, body
    FROM ending WHERE tried_at IS NOT NULL
)";

const JOBS: &str = ", new AS MATERIALIZED (
    SELECT new.*, row_number() OVER (PARTITION BY key ORDER BY place) AS copy
    FROM {jobs.given} WITH ORDINALITY AS new ({jobs.all}, place)
    WHERE new.n NOT IN (SELECT n FROM refused)
), fresh AS (
    INSERT INTO effect (key, job)
    SELECT key, id FROM new
    WHERE key IS NOT NULL AND copy = 1 AND (SELECT count FROM names_reached) >= 0
    ORDER BY key COLLATE \"C\"
    ON CONFLICT (key) DO NOTHING RETURNING job
), queued AS (
    INSERT INTO job (attempt, {jobs.stored})
    SELECT (owner IS NOT NULL)::integer, {jobs.stored}
    FROM new WHERE key IS NULL OR (copy = 1 AND id IN (SELECT job FROM fresh)) ORDER BY id
    RETURNING id
)";

/// As in `admit`.
const EVENTS: &str = ", made AS MATERIALIZED (
    SELECT made.*, row_number() OVER (PARTITION BY key ORDER BY place) AS copy
    FROM {events.given} WITH ORDINALITY AS made ({events.all}, place)
    WHERE made.n NOT IN (SELECT n FROM refused)
), first AS (
    INSERT INTO dedupe (key, seq)
    SELECT key, seq FROM made WHERE copy = 1 AND (SELECT count(*) FROM fresh) >= 0
    ORDER BY key
    ON CONFLICT (key) DO NOTHING RETURNING seq
), stored AS (
    INSERT INTO event ({events.stored})
    SELECT {events.stored}
    FROM made JOIN first USING (seq)
), begun AS (
    INSERT INTO job (id, lane, due_at, owner, attempt, kind, event, payload)
    SELECT seq, 'settle', received_at, owner, (owner IS NOT NULL)::integer, 'settle', seq, payload
    FROM made JOIN first USING (seq)
)";

const POSTINGS: &str = ", posted AS (
    INSERT INTO posting ({postings.stored})
    SELECT {postings.stored}
    FROM {postings.given} WITH ORDINALITY AS given ({postings.all}, place)
    WHERE n NOT IN (SELECT n FROM refused)
    ORDER BY place
)";

const AUDIT: &str = ", noted AS (
    INSERT INTO audit ({audit.stored}, chain, n)
    SELECT {audit.stored}, {chain}, {n}
    FROM {audit.given} WITH ORDINALITY AS given ({audit.all}, place)
    WHERE n NOT IN (SELECT n FROM refused)
    ORDER BY place
    RETURNING number, digest
), linked AS (
    INSERT INTO link (chain, n, previous, hash)
    SELECT {chain}, {n}, {previous}, sha256({previous} || string_agg(digest, ''::bytea ORDER BY number))
    FROM noted HAVING count(*) > 0
    RETURNING hash
)";

/// Only what is not as the caller expects: sets that were refused, fifos that were left, and what was new. A link's hash
/// comes last.
const ANSWER: &str = "
SELECT 'lost', n, NULL::text, NULL::bytea FROM lost
UNION ALL
SELECT 'left', NULL, fifo, NULL FROM ending WHERE retry_at IS NULL AND fifo IS NOT NULL
UNION ALL
SELECT 'new', id, NULL, NULL FROM queued";

const MORE_ANSWERS: &str = "
UNION ALL
SELECT 'stale', n, NULL, NULL FROM refused WHERE n NOT IN (SELECT n FROM lost)
UNION ALL
SELECT 'new', seq, NULL, NULL FROM first
UNION ALL
SELECT 'link', NULL, NULL, hash FROM linked";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_that_is_given_has_its_parameter() {
        let plain = columns::plain(&[]).values().len();
        let whole = columns::unlinked(&[]).values().len();
        for (statement, given) in [(&*PLAIN, plain), (&*WHOLE, whole)] {
            assert!(!statement.contains(['{', '}']), "a place was not filled: {statement}");
            for n in 1..=given {
                assert!(statement.contains(&format!("${n}::")), "${n} is not used: {statement}");
            }
            assert!(!statement.contains(&format!("${}::", given + 1)), "nothing is given: {statement}");
        }
    }
}
