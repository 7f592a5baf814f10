//! Keeping what is bounded within its bounds.

use std::borrow::Cow;

use sekisho_core::change::Rejection;
use sekisho_core::event::{BodyDigest, DedupeKey};
use sekisho_core::job::{effect_prefix, past_effects};
use sekisho_core::state::PROVIDER_ACCOUNTS;
use sekisho_core::time::HOUR_MS;
use sekisho_core::{Seq, Time};

use tokio_postgres::Row;

use super::connection::{Link, value};
use super::partition::{self, PartitionDay};
use crate::error::Result;
use crate::{CLAIM_MAX, Forgotten, REJECTIONS_MAX, REJECTIONS_OF_NETWORK_MAX};

const REJECT: &str = "
INSERT INTO rejection (seq, at, last_at, hour, source, peer, network, reason, detail, request_id, count)
SELECT * FROM unnest(
    $1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
    $10::text[], $11::bigint[]
)
ON CONFLICT (source, reason, network, hour) DO UPDATE
SET count = rejection.count + excluded.count, last_at = greatest(rejection.last_at, excluded.last_at)";

const SHARE: &str = "
DELETE FROM rejection USING (
    SELECT network, (
        SELECT seq FROM rejection WHERE network = touched.network ORDER BY seq DESC LIMIT 1 OFFSET $2
    ) AS last
    FROM (SELECT DISTINCT unnest($1::text[]) AS network) AS touched
) AS share
WHERE rejection.network = share.network AND rejection.seq <= share.last";

const MAKE_ROOM: &str =
    "DELETE FROM rejection WHERE seq <= (SELECT seq FROM rejection ORDER BY seq DESC LIMIT 1 OFFSET $1)";

/// Differs from SQLite: one statement can't meet a line twice; and nodes that count the same lines take them in one order.
pub async fn reject(link: &Link, rejections: Vec<Rejection>) -> Result<()> {
    let rejections = &Rejection::lines(rejections);
    let numbers = |of: fn(&Rejection) -> i64| rejections.iter().map(of).collect::<Vec<_>>();
    let texts =
        |of: fn(&Rejection) -> &str| rejections.iter().map(|one| without_nul(of(one))).collect::<Vec<_>>();
    link.query(
        REJECT,
        &[
            &numbers(|one| one.seq.as_i64()),
            &numbers(|one| one.at.ms()),
            &numbers(|one| one.last_at.ms()),
            &numbers(|one| one.hour().ms()),
            &texts(|one| &one.source),
            &texts(|one| &one.peer),
            &texts(|one| &one.network),
            &texts(|one| &one.reason),
            &texts(|one| &one.detail),
            &texts(|one| &one.request_id),
            &numbers(|one| one.count),
        ],
    )
    .await?;
    let share = limit_of(REJECTIONS_OF_NETWORK_MAX, REJECTIONS_MAX);
    link.query(SHARE, &[&texts(|one| &one.network), &share]).await?;
    link.query(MAKE_ROOM, &[&limit_of(REJECTIONS_MAX, REJECTIONS_MAX)]).await?;
    Ok(())
}

pub async fn upkeep(link: &Link, now: Time) -> Result<()> {
    partition::make_ahead(link, now).await
}

/// Differs from SQLite: counted anew over what was counted before, since one statement can't delete a row and then
/// insert it. The bounds are given twice, because they don't follow from one table to the other.
const COUNT_HOUR: &str = "
WITH counted AS MATERIALIZED (
    SELECT source, type,
           CASE WHEN EXISTS (SELECT FROM dead WHERE dead.event = event.seq) THEN 'failed'
                WHEN outcome.result = 'discarded' THEN 'skipped'
                ELSE coalesce(outcome.result, 'received') END AS status,
           count(*) AS events
    FROM event LEFT JOIN outcome ON outcome.job = event.seq AND outcome.job >= $2 AND outcome.job < $3
    WHERE event.seq >= $2 AND event.seq < $3 AND (
        outcome.job IS NOT NULL OR EXISTS (SELECT FROM dead WHERE dead.event = event.seq)
        OR EXISTS (SELECT FROM job WHERE job.id = event.seq)
    )
    GROUP BY 1, 2, 3
), gone AS (
    DELETE FROM hourly WHERE hour = $1 AND NOT EXISTS (
        SELECT FROM counted
        WHERE counted.source = hourly.source AND counted.type = hourly.type AND counted.status = hourly.status
    )
)
INSERT INTO hourly (hour, source, type, status, events)
SELECT $1::bigint, source, type, status, events FROM counted ORDER BY source COLLATE \"C\", type COLLATE \"C\", status COLLATE \"C\"
ON CONFLICT (hour, source, type, status) DO UPDATE SET events = excluded.events";

pub async fn count_hour(link: &Link, hour: Time) -> Result<()> {
    let (from, to) = (Seq::floor_of(hour).as_i64(), Seq::floor_of(hour.plus_ms(HOUR_MS)).as_i64());
    link.query(COUNT_HOUR, &[&hour.ms(), &from, &to]).await?;
    link.query(COUNT_MONEY, &[&hour.ms(), &hour.plus_ms(HOUR_MS).ms(), &PROVIDER_ACCOUNTS]).await?;
    Ok(())
}

/// Differs from SQLite, as above.
const COUNT_MONEY: &str = "
WITH counted AS MATERIALIZED (
    SELECT coalesce(livemode::integer, -1) AS mode, currency, cause, sum(amount)::bigint AS amount, count(*) AS lines
    FROM posting WHERE at >= $1 AND at < $2 AND starts_with(account, $3)
    GROUP BY 1, 2, 3
), gone AS (
    DELETE FROM hourly_money WHERE hour = $1 AND NOT EXISTS (
        SELECT FROM counted WHERE counted.mode = hourly_money.mode AND counted.currency = hourly_money.currency
        AND counted.cause = hourly_money.cause
    )
)
INSERT INTO hourly_money (hour, mode, currency, cause, amount, lines)
SELECT $1, mode, currency, cause, amount, lines FROM counted ORDER BY mode, currency, cause COLLATE \"C\"
ON CONFLICT (hour, mode, currency, cause) DO UPDATE SET amount = excluded.amount, lines = excluded.lines";

const OLD: &str = "
SELECT seq, source, event_id, created_at, digest FROM event WHERE seq > $1 AND seq < $2 ORDER BY seq LIMIT $3";

/// Differs from SQLite: an event is let go by taking out how its settling ended, which a replay would need too, so that
/// one of the two comes first. The row itself is left to be dropped with its day, and until then shown to nobody; only
/// where something else keeps the day, or it is not over, rows are deleted one by one. (The upper bits of a number are
/// milliseconds since the start of a day, in 2025: divided, they name the day.)
const FORGET: &str = "
WITH needed AS MATERIALIZED (
    SELECT event FROM job WHERE event < $2 UNION ALL SELECT event FROM dead WHERE event < $2
), free AS MATERIALIZED (
    SELECT job AS seq FROM outcome
    WHERE job = ANY ($1::bigint[]) AND job NOT IN (SELECT event FROM needed)
    ORDER BY job
    FOR UPDATE
), known AS (
    DELETE FROM dedupe USING unnest($4::bigint[], $5::bytea[]) AS given (seq, key)
    WHERE dedupe.key = given.key AND dedupe.seq = given.seq AND given.seq = ANY (ARRAY(SELECT seq FROM free))
), finished AS MATERIALIZED (
    SELECT range.seq, found.key, found.job
    FROM unnest($6::bigint[], $7::text[], $8::text[], $9::bigint[]) AS range (seq, low, high, most)
    CROSS JOIN LATERAL (
        SELECT key, job FROM effect WHERE effect.key >= range.low AND effect.key < range.high
        AND NOT EXISTS (SELECT FROM job WHERE job.id = effect.job)
        AND NOT EXISTS (SELECT FROM dead WHERE dead.job = effect.job)
        ORDER BY key
        LIMIT range.most
    ) AS found
    WHERE range.seq IS NULL OR range.seq IN (SELECT seq FROM free)
), effects AS (
    DELETE FROM effect USING finished WHERE effect.key = finished.key
), trace AS MATERIALIZED (
    SELECT seq AS job FROM free UNION SELECT job FROM finished
), outcomes AS (
    DELETE FROM outcome USING trace WHERE outcome.job = trace.job
), attempts AS (
    DELETE FROM attempt USING trace WHERE attempt.job = trace.job
), events AS (
    DELETE FROM event WHERE seq >= $10 AND seq <= $11 AND seq = ANY (ARRAY(
        SELECT given.seq FROM unnest($1::bigint[]) AS given (seq)
        WHERE (given.seq IN (SELECT seq FROM free) OR NOT EXISTS (SELECT FROM outcome WHERE outcome.job = given.seq))
        AND given.seq NOT IN (SELECT event FROM needed)
        AND (given.seq >= $3 OR (given.seq >> 22) / 86400000 IN (SELECT (event >> 22) / 86400000 FROM needed))
    ))
)
SELECT (SELECT count(*) FROM free), (SELECT count(*) FROM finished WHERE seq IS NULL)";

/// Requests that nobody will send again, with their names.
const FORGET_REQUESTS: &str = "
WITH old AS MATERIALIZED (
    SELECT id FROM state WHERE kind = 'request' AND changed_at < $1
    ORDER BY changed_at, id
    LIMIT $2
    FOR UPDATE SKIP LOCKED
), names AS (
    DELETE FROM name USING old WHERE name.kind = 'request' AND name.id = old.id
), requests AS (
    DELETE FROM state USING old WHERE state.kind = 'request' AND state.id = old.id
)
SELECT count(*) FROM old";

/// What is remembered of bodies that came first.
const FORGET_BODIES: &str = "
WITH old AS MATERIALIZED (
    SELECT id FROM first_body
    WHERE seq < $1 AND NOT EXISTS (SELECT FROM job WHERE job.event = first_body.seq AND job.event < $1)
    AND NOT EXISTS (SELECT FROM dead WHERE dead.event = first_body.seq)
    ORDER BY seq
    LIMIT $2
    FOR UPDATE SKIP LOCKED
), bodies AS (
    DELETE FROM first_body USING old WHERE first_body.id = old.id
)
SELECT count(*) FROM old";

pub async fn forget(link: &Link, before: Time, after: Seq, limit: usize) -> Result<Forgotten> {
    let limit = limit.min(CLAIM_MAX);
    let horizon = Seq::floor_of(before).as_i64();
    let rows = link.query(OLD, &[&after.as_i64(), &horizon, &limit_of(limit, CLAIM_MAX)]).await?;
    let mut old = Vec::with_capacity(rows.len());
    let mut entries = (Vec::new(), Vec::new());
    for row in &rows {
        let seq: i64 = value(row, 0)?;
        let created_at = value::<Option<i64>>(row, 3)?.map(Time::from_ms);
        let digest = value::<Option<&[u8]>>(row, 4)?.and_then(|bytes| bytes.try_into().ok());
        let digest = digest.map(BodyDigest::from_bytes);
        for key in DedupeKey::candidates(value(row, 1)?, value(row, 2)?, created_at, digest) {
            entries.0.push(seq);
            entries.1.push(key.as_bytes().to_vec());
        }
        old.push(seq);
    }
    // `0` follows `/`: every key that begins with the prefix lies between. Others belong to no event.
    let prefixes = old.iter().map(|seq| (Some(*seq), effect_prefix(Seq::from_i64(*seq))));
    let mut ranges: Vec<_> = prefixes.map(|(seq, low)| (seq, low.replace('/', "0"), low)).collect();
    ranges.extend(past_effects(before).map(|(from, to)| (None, to, from.to_owned())));
    let most = |seq: Option<i64>| limit_of(seq.map_or(limit, |_| CLAIM_MAX), CLAIM_MAX);
    let rows = link
        .query(
            FORGET,
            &[
                &old,
                &horizon,
                &PartitionDay::of(before).map_or(horizon, PartitionDay::floor),
                &entries.0,
                &entries.1,
                &ranges.iter().map(|(seq, ..)| *seq).collect::<Vec<_>>(),
                &ranges.iter().map(|(.., low)| low).collect::<Vec<_>>(),
                &ranges.iter().map(|(_, high, _)| high).collect::<Vec<_>>(),
                &ranges.iter().map(|(seq, ..)| most(*seq)).collect::<Vec<_>>(),
                &old.first().copied().unwrap_or_default(),
                &old.last().copied().unwrap_or_default(),
            ],
        )
        .await?;
    let requests = link.query(FORGET_REQUESTS, &[&before.ms(), &limit_of(limit, CLAIM_MAX)]).await?;
    let bodies = link.query(FORGET_BODIES, &[&horizon, &limit_of(limit, CLAIM_MAX)]).await?;
    let [events, past] = [count(&rows, 0)?, count(&rows, 1)?];
    let [bodies, requests] = [count(&bodies, 0)?, count(&requests, 0)?];
    let last = old.last().copied().map_or(after, Seq::from_i64);
    let next = Forgotten::next(last, &[old.len(), past, bodies, requests], limit);
    if next.is_none() {
        partition::drop_before(link, before).await?;
    }
    Ok(Forgotten { events, next })
}

/// Rows of meters between two ids, the oldest first.
const FORGET_METERS: &str = "
WITH old AS MATERIALIZED (
    SELECT id FROM state WHERE kind = 'meter' AND id >= $1 AND id < $2
    ORDER BY id
    LIMIT $3
    FOR UPDATE SKIP LOCKED
), meters AS (
    DELETE FROM state USING old WHERE state.kind = 'meter' AND state.id = old.id
)
SELECT count(*) FROM old";

pub async fn forget_meters(link: &Link, from: &str, to: &str, limit: usize) -> Result<usize> {
    count(&link.query(FORGET_METERS, &[&from, &to, &limit_of(limit, CLAIM_MAX)]).await?, 0)
}

/// A count that a statement answers with.
fn count(rows: &[Row], place: usize) -> Result<usize> {
    let count: i64 = rows.first().map_or(Ok(0), |row| value(row, place))?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// Differs from SQLite: text can't hold NUL. Notes and details are for people, so a mark in its place will do.
pub fn without_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{FFFD}")) } else { Cow::Borrowed(text) }
}

/// As the LIMIT of a statement.
pub fn limit_of(wanted: usize, most: usize) -> i64 {
    i64::try_from(wanted.min(most)).unwrap_or(i64::MAX)
}
