//! Keeping what is bounded within its bounds.

use std::collections::BTreeSet;

use rusqlite::{Connection, params};
use sekisho_core::change::Rejection;
use sekisho_core::event::{BodyDigest, DedupeKey};
use sekisho_core::job::{effect_prefix, past_effects};
use sekisho_core::state::PROVIDER_ACCOUNTS;
use sekisho_core::time::HOUR_MS;
use sekisho_core::{Seq, Time};

use super::transaction::Tx;
use crate::{CLAIM_MAX, Forgotten, REJECTIONS_MAX, REJECTIONS_OF_NETWORK_MAX};

pub fn reject(tx: &Connection, rejections: &[Rejection]) -> rusqlite::Result<()> {
    let mut insert = tx.prepare_cached(
        "INSERT INTO rejection (seq, at, last_at, hour, source, peer, network, reason, detail, request_id, count)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
         ON CONFLICT (source, reason, network, hour) DO UPDATE
         SET count = count + excluded.count, last_at = max(last_at, excluded.last_at)",
    )?;
    for one in rejections {
        insert.execute(params![
            one.seq.as_i64(),
            one.at.ms(),
            one.last_at.ms(),
            one.hour().ms(),
            one.source,
            one.peer,
            one.network,
            one.reason,
            one.detail,
            one.request_id,
            one.count,
        ])?;
    }
    let mut share = tx.prepare_cached(
        "DELETE FROM rejection WHERE network = $1 AND seq <= (
             SELECT seq FROM rejection WHERE network = $1 ORDER BY seq DESC LIMIT 1 OFFSET $2
         )",
    )?;
    for network in rejections.iter().map(|one| &one.network).collect::<BTreeSet<_>>() {
        share.execute(params![network, REJECTIONS_OF_NETWORK_MAX as i64])?;
    }
    tx.prepare_cached(
        "DELETE FROM rejection WHERE seq <= (SELECT seq FROM rejection ORDER BY seq DESC LIMIT 1 OFFSET $1)",
    )?
    .execute([REJECTIONS_MAX as i64])?;
    Ok(())
}

pub fn count_hour(tx: &Connection, hour: Time) -> rusqlite::Result<()> {
    tx.prepare_cached("DELETE FROM hourly WHERE hour = $1")?.execute([hour.ms()])?;
    tx.prepare_cached(
        "INSERT INTO hourly (hour, source, type, status, events)
         SELECT $1, source, type,
                CASE WHEN EXISTS (SELECT 1 FROM dead WHERE dead.event = event.seq) THEN 'failed'
                     WHEN outcome.result = 'discarded' THEN 'skipped'
                     ELSE coalesce(outcome.result, 'received') END AS status,
                count(*)
         FROM event LEFT JOIN outcome ON outcome.job = event.seq
         WHERE event.seq >= $2 AND event.seq < $3
         GROUP BY source, type, status",
    )?
    .execute([
        hour.ms(),
        Seq::floor_of(hour).as_i64(),
        Seq::floor_of(hour.plus_ms(HOUR_MS)).as_i64(),
    ])?;
    count_money(tx, hour)
}

fn count_money(tx: &Connection, hour: Time) -> rusqlite::Result<()> {
    tx.prepare_cached("DELETE FROM hourly_money WHERE hour = $1")?.execute([hour.ms()])?;
    tx.prepare_cached(
        "INSERT INTO hourly_money (hour, mode, currency, cause, amount, lines)
         SELECT $1, coalesce(livemode, -1), currency, cause, sum(amount), count(*)
         FROM posting WHERE at >= $1 AND at < $2 AND substr(account, 1, length($3)) = $3
         GROUP BY 2, currency, cause",
    )?
    .execute((hour.ms(), hour.plus_ms(HOUR_MS).ms(), PROVIDER_ACCOUNTS))?;
    Ok(())
}

/// What still needs its event is few and old: read once, then looked up.
pub fn forget(tx: &Tx<'_>, before: Time, after: Seq, limit: usize) -> rusqlite::Result<Forgotten> {
    let limit = limit.min(CLAIM_MAX);
    let mut old = tx.prepare_cached(
        "SELECT seq, source, event_id, created_at, digest,
                seq IN (SELECT event FROM job WHERE event < $1 UNION ALL SELECT event FROM dead WHERE event < $1)
         FROM event WHERE seq > $2 AND seq < $1 ORDER BY seq LIMIT $3",
    )?;
    let values = [Seq::floor_of(before).as_i64(), after.as_i64(), limit as i64];
    let rows = old.query_map(values, |row| {
        let created_at = row.get::<_, Option<i64>>(3)?.map(Time::from_ms);
        let digest = row.get::<_, Option<[u8; 16]>>(4)?.map(BodyDigest::from_bytes);
        let (source, event_id) = (row.get_ref(1)?.as_str()?, row.get_ref(2)?.as_str()?);
        let keys = DedupeKey::candidates(source, event_id, created_at, digest);
        Ok((Seq::from_i64(row.get(0)?), keys, row.get::<_, bool>(5)?))
    })?;
    let rows: Vec<_> = rows.collect::<rusqlite::Result<_>>()?;
    let mut events = 0;
    for (seq, keys, _) in rows.iter().filter(|(_, _, needed)| !needed) {
        events += 1;
        tx.prepare_cached("DELETE FROM event WHERE seq = $1")?.execute([seq.as_i64()])?;
        for key in keys {
            tx.remove_key(*key, *seq)?;
        }
        erase(tx, *seq)?;
        // `0` follows `/`: every key that begins with the prefix lies between.
        let prefix = effect_prefix(*seq);
        erase_effects(tx, &prefix, &prefix.replace('/', "0"), i64::MAX)?;
    }
    let mut past = 0;
    for (from, to) in past_effects(before) {
        past += erase_effects(tx, from, &to, limit as i64)?;
    }
    let bodies = forget_bodies(tx, before, limit as i64)?;
    let requests = forget_requests(tx, before, limit as i64)?;
    let last = rows.last().map_or(after, |(seq, ..)| *seq);
    Ok(Forgotten { events, next: Forgotten::next(last, &[rows.len(), past, bodies, requests], limit) })
}

/// What is remembered of bodies that came first; says how many.
fn forget_bodies(tx: &Connection, before: Time, limit: i64) -> rusqlite::Result<usize> {
    let mut delete = tx.prepare_cached(
        "DELETE FROM first_body WHERE id IN (
             SELECT id FROM first_body
             WHERE seq < $1 AND seq NOT IN (
                 SELECT event FROM job WHERE event < $1 UNION ALL SELECT event FROM dead WHERE event < $1
             )
             ORDER BY seq LIMIT $2
         )",
    )?;
    delete.execute([Seq::floor_of(before).as_i64(), limit])
}

/// Finished effects between two keys, with their traces; says how many.
fn erase_effects(tx: &Connection, from: &str, to: &str, limit: i64) -> rusqlite::Result<usize> {
    let mut finished = tx.prepare_cached(
        "SELECT key, job FROM effect WHERE key >= $1 AND key < $2
         AND job NOT IN (SELECT id FROM job) AND job NOT IN (SELECT job FROM dead) ORDER BY key LIMIT $3",
    )?;
    let effects = finished.query_map(params![from, to, limit], |row| {
        Ok((row.get::<_, String>(0)?, Seq::from_i64(row.get(1)?)))
    })?;
    let effects = effects.collect::<rusqlite::Result<Vec<_>>>()?;
    for (key, job) in &effects {
        tx.prepare_cached("DELETE FROM effect WHERE key = $1")?.execute([key])?;
        erase(tx, *job)?;
    }
    Ok(effects.len())
}

/// Requests that nobody will send again, with their names; says how many.
fn forget_requests(tx: &Connection, before: Time, limit: i64) -> rusqlite::Result<usize> {
    let mut old = tx.prepare_cached(
        "SELECT id FROM state WHERE kind = 'request' AND changed_at < $1 ORDER BY changed_at, id LIMIT $2",
    )?;
    let ids = old.query_map([before.ms(), limit], |row| row.get::<_, String>(0))?;
    let ids = ids.collect::<rusqlite::Result<Vec<_>>>()?;
    for id in &ids {
        tx.prepare_cached("DELETE FROM name WHERE kind = 'request' AND id = $1")?.execute([id])?;
        tx.prepare_cached("DELETE FROM state WHERE kind = 'request' AND id = $1")?.execute([id])?;
    }
    Ok(ids.len())
}

/// Rows of meters between two ids, the oldest first; says how many.
pub fn forget_meters(tx: &Connection, from: &str, to: &str, limit: usize) -> rusqlite::Result<usize> {
    let mut delete = tx.prepare_cached(
        "DELETE FROM state WHERE kind = 'meter' AND id IN (
             SELECT id FROM state WHERE kind = 'meter' AND id >= $1 AND id < $2 ORDER BY id LIMIT $3
         )",
    )?;
    delete.execute(params![from, to, limit.min(CLAIM_MAX) as i64])
}

/// The traces of a finished job.
fn erase(tx: &Connection, job: Seq) -> rusqlite::Result<()> {
    tx.prepare_cached("DELETE FROM outcome WHERE job = $1")?.execute([job.as_i64()])?;
    tx.prepare_cached("DELETE FROM attempt WHERE job = $1")?.execute([job.as_i64()])?;
    Ok(())
}
