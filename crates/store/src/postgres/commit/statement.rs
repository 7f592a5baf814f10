//! The statement of a commit, in named pieces. Most sets only end and queue jobs: for them there is a shorter one, of
//! the same pieces.
//!
//! Order matters: locks are taken in one order everywhere, so that nodes wait for each other but never in a circle. Jobs
//! by id, states by key, names by name, keys of effects, keys of events; each kind is reached through the one before it.
//! A set that is refused is left out of everything, and no other set feels it.

use std::sync::LazyLock;

/// Ends and new jobs.
pub static PLAIN: LazyLock<String> = LazyLock::new(|| [LEASES, ONLY_LEASES, ENDS, JOBS, ANSWER].concat());

/// Everything.
pub static WHOLE: LazyLock<String> = LazyLock::new(|| {
    [LEASES, GUARDS, STATES, NAMES, ENDS, JOBS, EVENTS, POSTINGS, AUDIT, ANSWER, MORE_ANSWERS].concat()
});

/// A set is lost when fewer of its leases hold than it shows.
const LEASES: &str = "
WITH leased AS MATERIALIZED (
    SELECT given.*, job.crashes, job.kind, coalesce(job.home, job.lane) AS lane, job.event, job.fifo, job.payload
    FROM unnest(
        $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::integer[], $8::bigint[], $9::bigint[], $10::text[],
        $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::text[], $18::bigint[],
        $19::bigint[], $20::integer[], $21::text[], $22::text[], $23::text[], $24::bytea[]
    ) AS given (
        n, leases, job, epoch, attempt, at, retry_at, result, note, payment, billing, tenant, class, reason, error,
        tried_at, took_ms, status, tried_reason, tried_error, headers, body
    )
    JOIN job ON job.id = given.job AND job.owner = given.epoch AND job.attempt = given.attempt
    ORDER BY job.id
    FOR UPDATE OF job
), lost AS MATERIALIZED (
    SELECT given.n FROM unnest($1::bigint[], $2::bigint[]) AS given (n, leases)
    WHERE given.n NOT IN (SELECT n FROM leased GROUP BY n, leases HAVING count(*) = leases)
)";

const ONLY_LEASES: &str = ", refused AS MATERIALIZED (
    SELECT n FROM lost
), names_reached AS (
    SELECT 0 AS count
)";

/// What must be there is locked as it was loaded. What must not be there is looked for; the insert has the last word.
const GUARDS: &str = ", written AS MATERIALIZED (
    SELECT * FROM unnest(
        $35::bigint[], $36::bigint[], $37::bigint[], $38::bigint[], $39::boolean[], $40::text[], $41::text[],
        $42::text[], $43::text[], $44::text[], $45::text[], $46::text[], $47::text[]
    ) AS given (
        n, at, version, amount, livemode, kind, id, facts, status, tenant, customer, currency, attention
    )
    WHERE n NOT IN (SELECT n FROM lost)
), current AS MATERIALIZED (
    SELECT state.kind, state.id
    FROM written
    JOIN state ON state.kind = written.kind AND state.id = written.id AND state.version = written.version
    ORDER BY state.kind, state.id
    FOR UPDATE OF state
), naming AS MATERIALIZED (
    SELECT * FROM unnest($48::bigint[], $49::text[], $50::text[], $51::text[], $52::text[], $53::text[])
        AS given (n, name, kind, id, was_kind, was_id)
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
    INSERT INTO state (
        version, created_at, changed_at, amount, livemode, kind, id, facts, status, tenant, customer, currency, attention
    )
    SELECT 1, at, at, amount, livemode, kind, id, facts, status, tenant, customer, currency, attention
    FROM written WHERE version = 0 AND n NOT IN (SELECT n FROM refused)
    ORDER BY kind COLLATE \"C\", id COLLATE \"C\"
    RETURNING id
), changed AS (
    UPDATE state SET version = written.version + 1, changed_at = written.at, amount = written.amount,
        livemode = written.livemode, facts = written.facts, status = written.status, tenant = written.tenant,
        customer = written.customer, currency = written.currency, attention = written.attention
    FROM written
    WHERE state.kind = written.kind AND state.id = written.id
    AND written.version <> 0 AND written.n NOT IN (SELECT n FROM refused)
)";

/// A name that leads there already is left as it is.
const NAMES: &str = ", named AS (
    INSERT INTO name (name, kind, id)
    SELECT name, kind, id FROM naming
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

/// Which of `retry_at`, `result` and `reason` is set says how the run ended.
const ENDS: &str = ", ending AS MATERIALIZED (
    SELECT * FROM leased WHERE n NOT IN (SELECT n FROM refused)
), retried AS (
    UPDATE job SET owner = NULL, started = false, due_at = ending.retry_at, lane = ending.lane, home = NULL,
        crashes = CASE WHEN job.home IS NULL THEN job.crashes ELSE 0 END
    FROM ending WHERE job.id = ending.job AND ending.retry_at IS NOT NULL
), removed AS (
    DELETE FROM job USING ending WHERE job.id = ending.job AND ending.retry_at IS NULL
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
    FROM unnest(
        $25::bigint[], $26::bigint[], $27::text[], $28::text[], $29::text[], $30::text[], $31::bigint[], $32::bigint[],
        $33::text[], $34::bigint[]
    ) WITH ORDINALITY AS new (n, id, key, kind, lane, fifo, due_at, event, payload, owner, place)
    WHERE new.n NOT IN (SELECT n FROM refused)
), fresh AS (
    INSERT INTO effect (key, job)
    SELECT key, id FROM new
    WHERE key IS NOT NULL AND copy = 1 AND (SELECT count FROM names_reached) >= 0
    ORDER BY key COLLATE \"C\"
    ON CONFLICT (key) DO NOTHING RETURNING job
), queued AS (
    INSERT INTO job (id, lane, due_at, owner, attempt, kind, event, fifo, payload)
    SELECT id, lane, due_at, owner, (owner IS NOT NULL)::integer, kind, event, fifo, payload
    FROM new WHERE key IS NULL OR (copy = 1 AND id IN (SELECT job FROM fresh)) ORDER BY id
    RETURNING id
)";

/// As in `admit`.
const EVENTS: &str = ", made AS MATERIALIZED (
    SELECT made.*, row_number() OVER (PARTITION BY key ORDER BY place) AS copy
    FROM unnest(
        $73::bigint[], $74::bigint[], $75::bytea[], $76::bigint[], $77::bigint[], $78::bigint[], $79::boolean[],
        $80::boolean[], $81::text[], $82::text[], $83::text[], $84::text[], $85::text[], $86::text[], $87::text[],
        $88::text[], $89::bytea[], $90::text[]
    ) WITH ORDINALITY AS made (
        n, owner, key, seq, received_at, created_at, livemode, is_text, trust, source, event_id, type, object_kind,
        object_id, account, headers, body, payload, place
    )
    WHERE made.n NOT IN (SELECT n FROM refused)
), first AS (
    INSERT INTO dedupe (key, seq)
    SELECT key, seq FROM made WHERE copy = 1 AND (SELECT count(*) FROM fresh) >= 0
    ORDER BY key
    ON CONFLICT (key) DO NOTHING RETURNING seq
), stored AS (
    INSERT INTO event (
        seq, received_at, created_at, livemode, is_text, trust, source, event_id, type, object_kind, object_id,
        account, headers, body
    )
    SELECT
        seq, received_at, created_at, livemode, is_text, trust, source, event_id, type, object_kind, object_id,
        account, headers, body
    FROM made JOIN first USING (seq)
), begun AS (
    INSERT INTO job (id, lane, due_at, owner, attempt, kind, event, payload)
    SELECT seq, 'settle', received_at, owner, (owner IS NOT NULL)::integer, 'settle', seq, payload
    FROM made JOIN first USING (seq)
)";

const POSTINGS: &str = ", posted AS (
    INSERT INTO posting (at, amount, livemode, account, currency, payment, cause)
    SELECT at, amount, livemode, account, currency, payment, cause
    FROM unnest(
        $54::bigint[], $55::bigint[], $56::bigint[], $57::boolean[], $58::text[], $59::text[], $60::text[], $61::text[]
    ) WITH ORDINALITY AS given (n, at, amount, livemode, account, currency, payment, cause, place)
    WHERE n NOT IN (SELECT n FROM refused)
    ORDER BY place
)";

const AUDIT: &str = ", noted AS (
    INSERT INTO audit (
        at, event, actor, role, action, target_kind, target_id, tenant, details, digest, chain, n
    )
    SELECT at, event, actor, role, action, target_kind, target_id, tenant, details, digest, $91::bigint, $92::bigint
    FROM unnest(
        $62::bigint[], $63::bigint[], $64::bigint[], $65::text[], $66::text[], $67::text[], $68::text[], $69::text[],
        $70::text[], $71::text[], $72::bytea[]
    ) WITH ORDINALITY AS given (
        n, at, event, actor, role, action, target_kind, target_id, tenant, details, digest, place
    )
    WHERE n NOT IN (SELECT n FROM refused)
    ORDER BY place
    RETURNING number, digest
), linked AS (
    INSERT INTO link (chain, n, previous, hash)
    SELECT $91::bigint, $92::bigint, $93::bytea, sha256($93::bytea || string_agg(digest, ''::bytea ORDER BY number))
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
