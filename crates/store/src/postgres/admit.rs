//! Arrival: each new event with its dedupe entry and first job, one statement and one durable commit for the batch.
//!
//! Keys are inserted in order, so that batches of several nodes wait for each other but never in a circle. Whoever
//! loses a key reads its number afterwards, in a later snapshot.

use std::collections::{BTreeMap, BTreeSet};

use sekisho_core::change::{Admission, Arrival};
use sekisho_core::event::{BodyDigest, DedupeKey, FirstBody, OtherBody};
use sekisho_core::{Epoch, Seq};
use tokio_postgres::types::ToSql;

use super::connection::{Link, Links};
use super::failure::QueryFailure;
use super::partition::{self, PartitionDay};
use super::upkeep::without_nul;
use crate::error::{Error, Result};

/// How often a batch is tried again for a partition, or for a row that vanished while we looked.
const ROUNDS_MAX: usize = 5;

/// Arrivals that agree in this have one answer.
type Slot = (DedupeKey, Option<FirstBody>);

/// What became of each.
type Stored = BTreeMap<Slot, Fate>;

#[derive(Clone)]
enum Fate {
    /// It is stored under this number.
    Stored(Seq),
    /// It is stored under this number, and another body had come under its id.
    IdReused(Seq),
    OtherBody,
    /// Why it can't be stored.
    Refused(String),
}

pub async fn admit(
    committers: &Links,
    work: &Link,
    arrivals: &[Arrival],
    keep: Option<Epoch>,
) -> Result<Vec<Admission>> {
    let mut batch: BTreeMap<Slot, &Arrival> = BTreeMap::new();
    for arrival in arrivals {
        batch.entry(slot(arrival)).or_insert(arrival);
    }
    let stored = store(committers, work, batch.into_values().collect(), keep).await?;
    arrivals.iter().map(|arrival| answer(arrival, &stored)).collect()
}

fn slot(arrival: &Arrival) -> Slot {
    (arrival.key, arrival.first_body)
}

fn answer(arrival: &Arrival, stored: &Stored) -> Result<Admission> {
    match stored.get(&slot(arrival)) {
        Some(Fate::OtherBody) => Ok(Admission::OtherBody),
        Some(Fate::Stored(seq)) if *seq == arrival.seq => Ok(Admission::Admitted),
        Some(Fate::IdReused(seq)) if *seq == arrival.seq => Ok(Admission::IdReused),
        Some(Fate::Stored(seq) | Fate::IdReused(seq)) => Ok(Admission::Duplicate(*seq)),
        Some(Fate::Refused(why)) => Ok(Admission::Refused(why.clone())),
        None => Err(Error::corrupt("a row of the batch has no answer")),
    }
}

/// Stores a batch, and parts of it where the whole is refused: a bad row is found by halving.
async fn store(committers: &Links, work: &Link, batch: Vec<&Arrival>, keep: Option<Epoch>) -> Result<Stored> {
    let mut stored = Stored::new();
    let mut parts = vec![batch];
    let mut rounds = 0;
    while let Some(part) = parts.pop() {
        let link = committers.take().await;
        let failure = match store_part(&link, &part, keep, &mut stored).await {
            Ok(()) => continue,
            Err(failure) => failure,
        };
        drop(link);
        if failure.misses_a_partition() {
            let days = part.iter().filter_map(|row| PartitionDay::of_seq(row.seq)).collect::<BTreeSet<_>>();
            let (sane, wild): (Vec<_>, Vec<_>) =
                part.into_iter().partition(|row| PartitionDay::of_seq(row.seq).is_some());
            for row in wild {
                let why = format!("the number {} belongs to no date", row.seq.as_i64());
                stored.insert(slot(row), Fate::Refused(why));
            }
            rounds += 1;
            if rounds > ROUNDS_MAX {
                return Err(Error::unavailable(failure));
            }
            partition::make(work, &days).await?;
            parts.push(sane);
        } else if !failure.refuses_the_row() {
            return Err(failure.into());
        } else if let [row] = part[..] {
            stored.insert(slot(row), Fate::Refused(failure.message()));
        } else {
            let (left, right) = part.split_at(part.len() / 2);
            parts.extend([right.to_vec(), left.to_vec()]);
        }
    }
    Ok(stored)
}

async fn store_part(
    link: &Link,
    part: &[&Arrival],
    keep: Option<Epoch>,
    stored: &mut Stored,
) -> std::result::Result<(), QueryFailure> {
    let mut waiting = part.to_vec();
    for _ in 0..ROUNDS_MAX {
        if waiting.is_empty() {
            return Ok(());
        }
        let fresh = insert(link, &waiting, keep).await?;
        waiting.retain(|row| !fresh.contains_key(&row.seq));
        let lost = waiting.clone();
        let firsts = first_bodies(link, &lost).await?;
        let found = numbers(link, lost.iter().map(|row| &row.key)).await?;
        // Who was there before may have gone since (retention): then the key is free, and the row tries again.
        waiting.retain(|row| !found.contains_key(&row.key) && !is_refused(row, &firsts));
        // Our own rows of an earlier call and, where commits wait for a standby, anybody's: the answer rests on them.
        let doubtful = |row: &&&Arrival| link.has_standby() || found.get(&row.key) == Some(&row.seq);
        confirm(link, lost.iter().filter(doubtful)).await?;
        for row in part {
            let fate = if is_refused(row, &firsts) {
                Some(Fate::OtherBody)
            } else if let Some(id_reused) = fresh.get(&row.seq) {
                Some(if *id_reused { Fate::IdReused(row.seq) } else { Fate::Stored(row.seq) })
            } else {
                let is_other = is_other_body(row, &firsts);
                found
                    .get(&row.key)
                    .map(|seq| if is_other { Fate::IdReused(*seq) } else { Fate::Stored(*seq) })
            };
            stored.extend(fate.map(|fate| (slot(row), fate)));
        }
    }
    if waiting.is_empty() { Ok(()) } else { Err(QueryFailure::Restless) }
}

const INSERT: &str = "
WITH given AS (
    SELECT * FROM unnest(
        $1::bytea[], $2::bigint[], $3::bigint[], $4::bigint[], $5::boolean[], $6::boolean[], $7::text[], $8::text[],
        $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::bytea[], $16::text[]
    ) AS given (
        key, seq, received_at, created_at, livemode, is_text, trust, source, event_id, type, object_kind, object_id,
        account, headers, body, payload
    )
), fresh AS (
    INSERT INTO dedupe (key, seq) SELECT key, seq FROM given ON CONFLICT (key) DO NOTHING RETURNING seq
), stored AS (
    INSERT INTO event (
        seq, received_at, created_at, livemode, is_text, trust, source, event_id, type, object_kind, object_id,
        account, headers, body
    )
    SELECT
        seq, received_at, created_at, livemode, is_text, trust, source, event_id, type, object_kind, object_id,
        account, headers, body
    FROM given JOIN fresh USING (seq)
), queued AS (
    INSERT INTO job (id, lane, due_at, owner, attempt, kind, event, payload)
    SELECT seq, 'settle', received_at, $17::bigint, ($17::bigint IS NOT NULL)::integer, 'settle', seq, payload
    FROM given JOIN fresh USING (seq)
)
SELECT seq FROM fresh";

/// As [`INSERT`], for a batch in which bodies are compared with the first under their id; other batches don't pay for it.
/// Order matters: all transmissions, in order, then all keys, then all ids that no proof covers. What the statement can't
/// see yet, because another committed it meanwhile, counts as another body; where that must not be, the row tries again.
const INSERT_AND_COMPARE: &str = "
WITH given AS (
    SELECT * FROM unnest(
        $1::bytea[], $2::bigint[], $3::bigint[], $4::bigint[], $5::boolean[], $6::boolean[], $7::text[], $8::text[],
        $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::bytea[], $16::text[],
        $18::bytea[], $19::bytea[], $20::boolean[]
    ) AS given (
        key, seq, received_at, created_at, livemode, is_text, trust, source, event_id, type, object_kind, object_id,
        account, headers, body, payload, first_id, first_digest, is_refused
    )
), sent AS (
    INSERT INTO first_body (id, digest, seq) SELECT first_id, first_digest, seq FROM given WHERE is_refused
    ORDER BY first_id, seq
    ON CONFLICT (id) DO NOTHING RETURNING seq
), fresh AS (
    INSERT INTO dedupe (key, seq)
    SELECT given.key, given.seq FROM given LEFT JOIN sent USING (seq)
    WHERE is_refused IS NOT TRUE OR sent.seq IS NOT NULL OR EXISTS (
        SELECT FROM first_body WHERE first_body.id = given.first_id AND first_body.digest = given.first_digest
    )
    ORDER BY given.key, given.seq
    ON CONFLICT (key) DO NOTHING RETURNING seq
), named AS (
    INSERT INTO first_body (id, digest, seq)
    SELECT first_id, first_digest, seq FROM given JOIN fresh USING (seq) WHERE NOT is_refused
    ORDER BY first_id, seq
    ON CONFLICT (id) DO NOTHING RETURNING seq
), stored AS (
    INSERT INTO event (
        seq, received_at, created_at, livemode, is_text, trust, source, event_id, type, object_kind, object_id,
        account, headers, body, digest, id_reused
    )
    SELECT
        seq, received_at, created_at, livemode, is_text, trust, source, event_id, type, object_kind, object_id,
        account, headers, body, CASE WHEN NOT is_refused THEN first_digest END,
        is_refused IS FALSE AND seq NOT IN (SELECT seq FROM named) AND NOT EXISTS (
            SELECT FROM first_body WHERE first_body.id = given.first_id AND first_body.digest = given.first_digest
        )
    FROM given JOIN fresh USING (seq)
    RETURNING seq, id_reused
), queued AS (
    INSERT INTO job (id, lane, due_at, owner, attempt, kind, event, payload)
    SELECT seq, 'settle', received_at, $17::bigint, ($17::bigint IS NOT NULL)::integer, 'settle', seq, payload
    FROM given JOIN fresh USING (seq)
)
SELECT seq, id_reused FROM stored";

/// The numbers of those that were new, and now are stored; and whether another body had come under their id.
async fn insert(
    link: &Link,
    rows: &[&Arrival],
    keep: Option<Epoch>,
) -> std::result::Result<BTreeMap<Seq, bool>, QueryFailure> {
    let column = |of: fn(&Arrival) -> i64| rows.iter().map(|row| of(row)).collect::<Vec<_>>();
    let keys: Vec<&[u8]> = rows.iter().map(|row| &row.key.as_bytes()[..]).collect();
    let bodies: Vec<&[u8]> = rows.iter().map(|row| &row.body[..]).collect();
    let (seqs, received) = (column(|row| row.seq.as_i64()), column(|row| row.received_at.ms()));
    let created: Vec<_> = rows.iter().map(|row| row.created_at.map(sekisho_core::Time::ms)).collect();
    let livemodes: Vec<_> = rows.iter().map(|row| row.livemode).collect();
    let are_text: Vec<_> = bodies.iter().map(|body| is_text(body)).collect();
    let trusts = texts(rows, |row| Some(row.trust.name()));
    let sources = texts(rows, |row| Some(&row.source));
    let ids = texts(rows, |row| Some(&row.event_id));
    let types = texts(rows, |row| Some(&row.event_type));
    let object_kinds = texts(rows, |row| row.object.as_ref().map(|(kind, _)| kind.as_str()));
    let object_ids = texts(rows, |row| row.object.as_ref().map(|(_, id)| id.as_str()));
    let accounts = texts(rows, |row| row.account.as_deref());
    let headers = texts(rows, |row| Some(&row.headers));
    let payloads: Vec<_> = rows.iter().map(|row| without_nul(&row.settle().payload()).into_owned()).collect();
    let owner = keep.map(|epoch| epoch.0);
    let mut values: Vec<&(dyn ToSql + Sync)> = vec![
        &keys,
        &seqs,
        &received,
        &created,
        &livemodes,
        &are_text,
        &trusts,
        &sources,
        &ids,
        &types,
        &object_kinds,
        &object_ids,
        &accounts,
        &headers,
        &bodies,
        &payloads,
        &owner,
    ];
    if rows.iter().all(|row| row.first_body.is_none()) {
        let answer = link.query(INSERT, &values).await?;
        return answer.iter().map(|row| Ok((Seq::from_i64(row.try_get(0)?), false))).collect();
    }
    let firsts = || rows.iter().map(|row| row.first_body.as_ref());
    let first_ids: Vec<_> = firsts().map(|first| first.map(|first| &first.id.as_bytes()[..])).collect();
    let digests: Vec<_> = firsts().map(|first| first.map(|first| &first.digest.as_bytes()[..])).collect();
    let are_refused: Vec<_> =
        firsts().map(|first| first.map(|first| first.other == OtherBody::Refused)).collect();
    values.extend([&first_ids as &(dyn ToSql + Sync), &digests, &are_refused]);
    let answer = link.query(INSERT_AND_COMPARE, &values).await?;
    answer.iter().map(|row| Ok((Seq::from_i64(row.try_get(0)?), row.try_get(1)?))).collect()
}

fn texts<'r>(rows: &[&'r Arrival], of: fn(&'r Arrival) -> Option<&'r str>) -> Vec<Option<&'r str>> {
    rows.iter().map(|row| of(row)).collect()
}

pub fn is_text(body: &[u8]) -> bool {
    !body.contains(&0) && std::str::from_utf8(body).is_ok()
}

const FIRST_BODIES: &str = "SELECT id, digest FROM first_body WHERE id = ANY ($1::bytea[])";

/// The bodies that came first under the ids of these rows.
async fn first_bodies(
    link: &Link,
    rows: &[&Arrival],
) -> std::result::Result<BTreeMap<DedupeKey, BodyDigest>, QueryFailure> {
    let ids: Vec<&[u8]> =
        rows.iter().filter_map(|row| row.first_body.as_ref()).map(|first| &first.id.as_bytes()[..]).collect();
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let rows = link.query(FIRST_BODIES, &[&ids]).await?;
    let mut firsts = BTreeMap::new();
    for row in &rows {
        let (id, digest): (&[u8], &[u8]) = (row.try_get(0)?, row.try_get(1)?);
        if let (Ok(id), Ok(digest)) = (id.try_into(), digest.try_into()) {
            firsts.insert(DedupeKey::from_bytes(id), BodyDigest::from_bytes(digest));
        }
    }
    Ok(firsts)
}

fn is_other_body(row: &Arrival, firsts: &BTreeMap<DedupeKey, BodyDigest>) -> bool {
    row.first_body.is_some_and(|own| firsts.get(&own.id).is_some_and(|digest| *digest != own.digest))
}

fn is_refused(row: &Arrival, firsts: &BTreeMap<DedupeKey, BodyDigest>) -> bool {
    row.first_body.is_some_and(|own| own.other == OtherBody::Refused) && is_other_body(row, firsts)
}

const NUMBERS: &str = "SELECT key, seq FROM dedupe WHERE key = ANY ($1::bytea[])";

async fn numbers(
    link: &Link,
    keys: impl Iterator<Item = &DedupeKey>,
) -> std::result::Result<BTreeMap<DedupeKey, Seq>, QueryFailure> {
    let keys: Vec<&[u8]> = keys.map(|key| &key.as_bytes()[..]).collect();
    if keys.is_empty() {
        return Ok(BTreeMap::new());
    }
    let rows = link.query(NUMBERS, &[&keys]).await?;
    let mut found = BTreeMap::new();
    for row in &rows {
        // A key of another length is not ours: it stays unfound, and the row tries again.
        if let Ok(key) = row.try_get::<_, &[u8]>(0)?.try_into() {
            found.insert(DedupeKey::from_bytes(key), Seq::from_i64(row.try_get(1)?));
        }
    }
    Ok(found)
}

/// A row lock is written to the log, so this commit waits for a synchronous standby.
const CONFIRM: &str = "SELECT 1 FROM dedupe WHERE key = ANY ($1::bytea[]) FOR UPDATE";

/// Rows that were ours already: an earlier call had stored them and never heard so. If it was cut off while it waited
/// for the standby, the primary shows the rows although only it has them; reading them proves nothing.
async fn confirm<'r>(
    link: &Link,
    own: impl Iterator<Item = &'r &'r Arrival>,
) -> std::result::Result<(), QueryFailure> {
    let keys: Vec<&[u8]> = own.map(|row| &row.key.as_bytes()[..]).collect();
    if !keys.is_empty() {
        link.query(CONFIRM, &[&keys]).await?;
    }
    Ok(())
}

/// Where commits wait for a standby, a row that is merely seen proves nothing: then nothing is known, and `admit` decides.
pub async fn known(link: &Link, keys: &[DedupeKey]) -> Result<Vec<Option<Seq>>> {
    if link.has_standby() {
        return Ok(vec![None; keys.len()]);
    }
    let found = numbers(link, keys.iter()).await?;
    Ok(keys.iter().map(|key| found.get(key).copied()).collect())
}
