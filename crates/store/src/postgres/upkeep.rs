//! Refused requests, and what keeps the database in shape.

use std::borrow::Cow;

use sekisho_core::Time;
use sekisho_core::change::Rejection;

use super::connection::Link;
use super::partition;
use crate::REJECTIONS_MAX;
use crate::error::Result;

const REJECT: &str = "
INSERT INTO rejection (seq, at, source, peer, reason, detail, request_id, count)
SELECT * FROM unnest(
    $1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[]
)
ON CONFLICT (seq) DO NOTHING";

const MAKE_ROOM: &str =
    "DELETE FROM rejection WHERE seq < (SELECT seq FROM rejection ORDER BY seq DESC OFFSET $1 LIMIT 1)";

pub async fn reject(link: &Link, rejections: &[Rejection]) -> Result<()> {
    let numbers = |of: fn(&Rejection) -> i64| rejections.iter().map(of).collect::<Vec<_>>();
    let texts =
        |of: fn(&Rejection) -> &str| rejections.iter().map(|one| without_nul(of(one))).collect::<Vec<_>>();
    link.query(
        REJECT,
        &[
            &numbers(|one| one.seq.as_i64()),
            &numbers(|one| one.at.ms()),
            &texts(|one| &one.source),
            &texts(|one| &one.peer),
            &texts(|one| &one.reason),
            &texts(|one| &one.detail),
            &texts(|one| &one.request_id),
            &numbers(|one| one.count),
        ],
    )
    .await?;
    link.query(MAKE_ROOM, &[&limit_of(REJECTIONS_MAX - 1, REJECTIONS_MAX)]).await?;
    Ok(())
}

pub async fn upkeep(link: &Link, now: Time) -> Result<()> {
    partition::make_ahead(link, now).await
}

/// Differs from SQLite: text can't hold NUL. Notes and details are for people, so a mark in its place will do.
pub fn without_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{FFFD}")) } else { Cow::Borrowed(text) }
}

/// As the LIMIT of a statement.
pub fn limit_of(wanted: usize, most: usize) -> i64 {
    i64::try_from(wanted.min(most)).unwrap_or(i64::MAX)
}
