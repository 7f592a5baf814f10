//! Nodes: each has a number of its own, and beats for as long as it lives.

use std::collections::BTreeSet;

use rusqlite::Connection;
use sekisho_core::id::NODES_MAX;
use sekisho_core::{Epoch, Seq, Time};

use crate::{Joined, PeerNode, Pulse};

/// Nothing when every number is taken by a node that lives.
pub fn join(tx: &Connection, now: Time) -> rusqlite::Result<Option<Joined>> {
    let mut taken = numbers(tx)?;
    if taken.len() as i64 == NODES_MAX {
        tx.execute(
            "DELETE FROM node WHERE epoch =
                 (SELECT epoch FROM node WHERE ended IS NOT NULL ORDER BY ended, epoch LIMIT 1)",
            [],
        )?;
        taken = numbers(tx)?;
    }
    let Some(epoch) =
        Epoch(tx.query_row(LAST_EPOCH, [], |row| row.get(0))?).next_free(|number| taken.contains(&number))
    else {
        return Ok(None);
    };
    tx.prepare_cached("INSERT INTO node (epoch, beat, joined_at) VALUES ($1, 0, $2)")?
        .execute([epoch.0, now.ms()])?;
    let floor = "SELECT max(coalesce((SELECT max(seq) FROM event), 0), coalesce((SELECT max(id) FROM job), 0),
                            coalesce((SELECT max(job) FROM outcome), 0), coalesce((SELECT max(job) FROM dead), 0))";
    let floor = tx.query_row(floor, [], |row| row.get(0))?;
    Ok(Some(Joined { epoch, floor: Seq::from_i64(floor) }))
}

/// The newest ever given, though its node may be gone.
const LAST_EPOCH: &str = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'node'";

fn numbers(tx: &Connection) -> rusqlite::Result<BTreeSet<i64>> {
    let mut statement = tx.prepare_cached("SELECT epoch FROM node")?;
    let numbers = statement.query_map([], |row| Ok(Epoch(row.get(0)?).number()))?;
    numbers.collect()
}

pub fn beat(tx: &Connection, epoch: Epoch, n: i64) -> rusqlite::Result<Pulse> {
    let alive = tx
        .prepare_cached("UPDATE node SET beat = $1 WHERE epoch = $2 AND ended IS NULL")?
        .execute([n, epoch.0])?;
    if alive == 0 {
        return Ok(Pulse::Ended);
    }
    let mut statement =
        tx.prepare_cached("SELECT epoch, beat FROM node WHERE epoch <> $1 AND ended IS NULL ORDER BY epoch")?;
    let peers = statement
        .query_map([epoch.0], |row| Ok(PeerNode { epoch: Epoch(row.get(0)?), beat: row.get(1)? }))?;
    // Differs from PostgreSQL: the file has no clock of its own.
    Ok(Pulse::Alive { peers: peers.collect::<rusqlite::Result<_>>()?, store_time: None })
}

pub fn end(tx: &Connection, epoch: Epoch, n: i64) -> rusqlite::Result<bool> {
    let newest: i64 = tx.query_row(LAST_EPOCH, [], |row| row.get(0))?;
    let ended = tx
        .prepare_cached("UPDATE node SET ended = $1 WHERE epoch = $2 AND beat = $3 AND ended IS NULL")?
        .execute([newest, epoch.0, n])?;
    Ok(ended > 0)
}

pub fn leave(tx: &Connection, epoch: Epoch) -> rusqlite::Result<()> {
    tx.prepare_cached("DELETE FROM node WHERE epoch = $1")?.execute([epoch.0])?;
    Ok(())
}
