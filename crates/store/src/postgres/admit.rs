//! Arrival: each new event with its dedupe entry and first job, one statement and one durable commit for the batch.
//!
//! Keys are inserted in order, so that batches of several nodes wait for each other but never in a circle. Whoever
//! loses a key reads its number afterwards, in a later snapshot.

use std::collections::{BTreeMap, BTreeSet};

use sekisho_core::change::{Admission, Arrival};
use sekisho_core::event::DedupeKey;
use sekisho_core::{Epoch, Seq};

use super::connection::{Link, Links};
use super::failure::Failure;
use super::partition::{self, Day};
use super::upkeep::without_nul;
use crate::error::{Error, Result};

/// How often a batch is tried again for a partition, or for a row that vanished while we looked.
const ROUNDS_MAX: usize = 5;

/// Per key: the number it is stored under, or why it can't be stored.
type Stored = BTreeMap<DedupeKey, std::result::Result<Seq, String>>;

pub async fn admit(
    committers: &Links,
    work: &Link,
    arrivals: &[Arrival],
    keep: Option<Epoch>,
) -> Result<Vec<Admission>> {
    let mut batch: BTreeMap<DedupeKey, &Arrival> = BTreeMap::new();
    for arrival in arrivals {
        batch.entry(arrival.key).or_insert(arrival);
    }
    let stored = store(committers, work, batch.into_values().collect(), keep).await?;
    arrivals.iter().map(|arrival| answer(arrival, &stored)).collect()
}

fn answer(arrival: &Arrival, stored: &Stored) -> Result<Admission> {
    match stored.get(&arrival.key) {
        Some(Ok(seq)) if *seq == arrival.seq => Ok(Admission::Admitted),
        Some(Ok(seq)) => Ok(Admission::Duplicate(*seq)),
        Some(Err(why)) => Ok(Admission::Refused(why.clone())),
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
            let days = part.iter().filter_map(|row| Day::of_seq(row.seq)).collect::<BTreeSet<_>>();
            let (sane, wild): (Vec<_>, Vec<_>) =
                part.into_iter().partition(|row| Day::of_seq(row.seq).is_some());
            for row in wild {
                stored.insert(row.key, Err(format!("the number {} belongs to no date", row.seq.as_i64())));
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
            stored.insert(row.key, Err(failure.message()));
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
) -> std::result::Result<(), Failure> {
    let mut waiting = part.to_vec();
    for _ in 0..ROUNDS_MAX {
        if waiting.is_empty() {
            return Ok(());
        }
        let fresh = insert(link, &waiting, keep).await?;
        waiting.retain(|row| !fresh.contains(&row.seq.as_i64()));
        let lost = waiting.clone();
        let found = numbers(link, lost.iter().map(|row| &row.key)).await?;
        // Who was there before may have gone since (retention): then the key is free, and the row tries again.
        waiting.retain(|row| !found.contains_key(&row.key));
        // Our own rows of an earlier call and, where commits wait for a standby, anybody's: the answer rests on them.
        let doubtful = |row: &&&Arrival| link.has_standby() || found.get(&row.key) == Some(&row.seq);
        confirm(link, lost.iter().filter(doubtful)).await?;
        for row in part.iter().filter(|row| fresh.contains(&row.seq.as_i64())) {
            stored.insert(row.key, Ok(row.seq));
        }
        stored.extend(found.into_iter().map(|(key, seq)| (key, Ok(seq))));
    }
    if waiting.is_empty() { Ok(()) } else { Err(Failure::Restless) }
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

/// The numbers of those that were new, and now are stored.
async fn insert(
    link: &Link,
    rows: &[&Arrival],
    keep: Option<Epoch>,
) -> std::result::Result<BTreeSet<i64>, Failure> {
    let column = |of: fn(&Arrival) -> i64| rows.iter().map(|row| of(row)).collect::<Vec<_>>();
    let keys: Vec<&[u8]> = rows.iter().map(|row| &row.key.as_bytes()[..]).collect();
    let bodies: Vec<&[u8]> = rows.iter().map(|row| &row.body[..]).collect();
    let answer = link
        .query(
            INSERT,
            &[
                &keys,
                &column(|row| row.seq.as_i64()),
                &column(|row| row.received_at.ms()),
                &rows.iter().map(|row| row.created_at.map(sekisho_core::Time::ms)).collect::<Vec<_>>(),
                &rows.iter().map(|row| row.livemode).collect::<Vec<_>>(),
                &bodies.iter().map(|body| is_text(body)).collect::<Vec<_>>(),
                &texts(rows, |row| Some(row.trust.name())),
                &texts(rows, |row| Some(&row.source)),
                &texts(rows, |row| Some(&row.event_id)),
                &texts(rows, |row| Some(&row.event_type)),
                &texts(rows, |row| row.object.as_ref().map(|(kind, _)| kind.as_str())),
                &texts(rows, |row| row.object.as_ref().map(|(_, id)| id.as_str())),
                &texts(rows, |row| row.account.as_deref()),
                &texts(rows, |row| Some(&row.headers)),
                &bodies,
                &rows.iter().map(|row| without_nul(&row.payload()).into_owned()).collect::<Vec<_>>(),
                &keep.map(|epoch| epoch.0),
            ],
        )
        .await?;
    answer.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

fn texts<'r>(rows: &[&'r Arrival], of: fn(&'r Arrival) -> Option<&'r str>) -> Vec<Option<&'r str>> {
    rows.iter().map(|row| of(row)).collect()
}

pub fn is_text(body: &[u8]) -> bool {
    !body.contains(&0) && std::str::from_utf8(body).is_ok()
}

const NUMBERS: &str = "SELECT key, seq FROM dedupe WHERE key = ANY ($1::bytea[])";

async fn numbers(
    link: &Link,
    keys: impl Iterator<Item = &DedupeKey>,
) -> std::result::Result<BTreeMap<DedupeKey, Seq>, Failure> {
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
) -> std::result::Result<(), Failure> {
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
