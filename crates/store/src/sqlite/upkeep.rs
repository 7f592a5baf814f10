//! Keeping what is bounded within its bounds.

use rusqlite::{Connection, params};
use sekisho_core::change::Rejection;

use crate::REJECTIONS_MAX;

pub fn reject(tx: &Connection, rejections: &[Rejection]) -> rusqlite::Result<()> {
    let mut insert = tx.prepare_cached(
        "INSERT INTO rejection (seq, at, source, peer, reason, detail, request_id, count)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING",
    )?;
    for one in rejections {
        insert.execute(params![
            one.seq.as_i64(),
            one.at.ms(),
            one.source,
            one.peer,
            one.reason,
            one.detail,
            one.request_id,
            one.count,
        ])?;
    }
    tx.prepare_cached(
        "DELETE FROM rejection WHERE seq <= (SELECT seq FROM rejection ORDER BY seq DESC LIMIT 1 OFFSET $1)",
    )?
    .execute([REJECTIONS_MAX as i64])?;
    Ok(())
}
