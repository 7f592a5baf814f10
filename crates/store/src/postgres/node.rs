//! Nodes: each has a number of its own, and beats for as long as it lives.

use sekisho_core::id::NODES_MAX;
use sekisho_core::{Epoch, Seq, Time};

use super::connection::{Link, value};
use super::partition;
use crate::error::{Error, Result};
use crate::{Joined, PeerNode, Pulse};

/// Looks at as many numbers as it is told, from the next one on, and takes the first that no node has.
const JOIN: &str = "
WITH candidate AS MATERIALIZED (SELECT nextval('node_epoch_seq') AS epoch FROM generate_series(1, $2::bigint))
INSERT INTO node (epoch, beat, joined_at) OVERRIDING SYSTEM VALUE
SELECT candidate.epoch, 0, $1::bigint FROM candidate
WHERE NOT EXISTS (SELECT FROM node WHERE node.epoch % 1024 = candidate.epoch % 1024)
ORDER BY candidate.epoch
LIMIT 1
ON CONFLICT DO NOTHING
RETURNING
    epoch,
    greatest(coalesce((SELECT max(seq) FROM event), 0), coalesce((SELECT max(id) FROM job), 0),
             coalesce((SELECT max(job) FROM outcome), 0), coalesce((SELECT max(job) FROM dead), 0))";

/// Lets go of the number of the node that was given up the longest ago, if all are taken.
const MAKE_ROOM: &str = "
WITH census AS MATERIALIZED (
    SELECT count(*) >= 1024 AS is_full FROM node
), freed AS (
    DELETE FROM node USING census
    WHERE census.is_full AND node.epoch = (
        SELECT given_up.epoch FROM node AS given_up WHERE given_up.ended IS NOT NULL
        ORDER BY given_up.ended, given_up.epoch LIMIT 1
    )
    RETURNING node.epoch
)
SELECT is_full, EXISTS (SELECT FROM freed) FROM census";

/// How often a join begins anew, because another took the number it had found.
const JOIN_TRIES_MAX: usize = 10;

pub async fn join(link: &Link, now: Time) -> Result<Joined> {
    partition::make_ahead(link, now).await?;
    let mut reach = 1;
    for _ in 0..JOIN_TRIES_MAX {
        let rows = link.query(JOIN, &[&now.ms(), &reach]).await?;
        if let Some(row) = rows.first() {
            return Ok(Joined { epoch: Epoch(value(row, 0)?), floor: Seq::from_i64(value(row, 1)?) });
        }
        if reach == NODES_MAX {
            let rows = link.query(MAKE_ROOM, &[]).await?;
            let row = rows.first().ok_or_else(|| Error::corrupt("nobody was counted"))?;
            if value(row, 0)? && !value::<bool>(row, 1)? {
                return Err(Error::crowded());
            }
        }
        // The next number was taken: now all of them are looked at.
        reach = NODES_MAX;
    }
    Err(Error::unavailable("other nodes joined at the same moment, again and again"))
}

const BEAT: &str = "
WITH beaten AS (UPDATE node SET beat = $2 WHERE epoch = $1 AND ended IS NULL RETURNING epoch)
SELECT
    ARRAY(SELECT epoch FROM node WHERE epoch <> $1 AND ended IS NULL ORDER BY epoch),
    ARRAY(SELECT beat FROM node WHERE epoch <> $1 AND ended IS NULL ORDER BY epoch),
    (extract(epoch FROM clock_timestamp()) * 1000)::bigint
FROM beaten";

pub async fn beat(link: &Link, epoch: Epoch, n: i64) -> Result<Pulse> {
    let rows = link.query(BEAT, &[&epoch.0, &n]).await?;
    let Some(row) = rows.first() else { return Ok(Pulse::Ended) };
    let (epochs, beats): (Vec<i64>, Vec<i64>) = (value(row, 0)?, value(row, 1)?);
    let peers = epochs.into_iter().zip(beats).map(|(epoch, beat)| PeerNode { epoch: Epoch(epoch), beat });
    Ok(Pulse::Alive { peers: peers.collect(), store_time: Some(Time::from_ms(value(row, 2)?)) })
}

const END: &str = "
UPDATE node SET ended = (SELECT last_value FROM node_epoch_seq)
WHERE epoch = $1 AND beat = $2 AND ended IS NULL
RETURNING epoch";

pub async fn end(link: &Link, epoch: Epoch, n: i64) -> Result<bool> {
    Ok(!link.query(END, &[&epoch.0, &n]).await?.is_empty())
}

const LEAVE: &str = "DELETE FROM node WHERE epoch = $1";

pub async fn leave(link: &Link, epoch: Epoch) -> Result<()> {
    link.query(LEAVE, &[&epoch.0]).await?;
    Ok(())
}
