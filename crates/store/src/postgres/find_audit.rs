//! Reads of the audit log, and of the chains that its entries hang on.

use std::collections::{BTreeMap, BTreeSet};

use sekisho_core::audit::Entry;
use sekisho_core::{Seq, Time};
use tokio_postgres::Row;

use super::condition::Conditions;
use super::connection::{Link, value};
use super::upkeep::limit_of;
use crate::error::Result;
use crate::find::AuditLead;
use crate::{AuditEntry, AuditFilter, AuditPage, ChainHead, FIND_MAX, SCAN_MAX};

/// The columns that [`entry`] reads, in its order.
const ENTRY: &str = "number, at, actor, role, action, target_kind, target_id, tenant, event, details";

/// OFFSET 0 keeps what is looked at apart, so that it is found by the index that leads to it.
pub async fn audit(link: &Link, filter: &AuditFilter) -> Result<AuditPage> {
    let limit = filter.limit.min(FIND_MAX);
    let lead = lead(link, filter).await?;
    let end = end(link, filter, lead).await?;
    let mut conditions = reach(filter, lead, end);
    let seen = format!("(SELECT {ENTRY} FROM audit WHERE true{} OFFSET 0)", conditions.sql());
    narrow(&mut conditions, filter, lead);
    let sql = format!(
        "SELECT {ENTRY} FROM {seen} AS audit WHERE true{} ORDER BY number DESC LIMIT {limit}",
        conditions.sql()
    );
    let rows = link.query_once(&sql, &conditions.values()).await?;
    let entries = rows.iter().map(|row| entry(row, 0)).collect::<Result<_>>()?;
    Ok(AuditPage::of(entries, limit, end))
}

/// Times lead only where they lead to few.
async fn lead(link: &Link, filter: &AuditFilter) -> Result<AuditLead> {
    if filter.lead() != AuditLead::Time {
        return Ok(filter.lead());
    }
    let mut conditions = Conditions::default();
    conditions.demand("at >= ?", filter.since.map(Time::ms));
    conditions.demand("at < ?", filter.until.map(Time::ms));
    let sql = format!("SELECT at FROM audit WHERE true{} LIMIT 1 OFFSET {SCAN_MAX}", conditions.sql());
    let many = !link.query_once(&sql, &conditions.values()).await?.is_empty();
    Ok(if many { AuditLead::All } else { AuditLead::Time })
}

/// The last number that one call may look at, if there are so many.
async fn end(link: &Link, filter: &AuditFilter, lead: AuditLead) -> Result<Option<i64>> {
    if lead == AuditLead::Time {
        return Ok(None);
    }
    let conditions = reach(filter, lead, None);
    let sql = format!(
        "SELECT number FROM audit WHERE true{} ORDER BY number DESC LIMIT 1 OFFSET {}",
        conditions.sql(),
        SCAN_MAX - 1
    );
    let rows = link.query_once(&sql, &conditions.values()).await?;
    rows.first().map(|row| value(row, 0)).transpose()
}

/// Which part of the log is looked at.
fn reach(filter: &AuditFilter, lead: AuditLead, end: Option<i64>) -> Conditions {
    let mut conditions = Conditions::default();
    match lead {
        AuditLead::Target => conditions.demand("target_id = ?", filter.target.clone()),
        AuditLead::Actor => conditions.demand("actor = ?", filter.actor.clone()),
        AuditLead::Tenant => conditions.demand("tenant = ?", filter.tenant.clone()),
        AuditLead::Time => {
            conditions.demand("at >= ?", filter.since.map(Time::ms));
            conditions.demand("at < ?", filter.until.map(Time::ms));
        }
        AuditLead::All => {}
    }
    conditions.demand("number < ?", filter.before);
    conditions.demand("number >= ?", end);
    conditions
}

/// Which of them are meant.
fn narrow(conditions: &mut Conditions, filter: &AuditFilter, lead: AuditLead) {
    let others = |own: AuditLead| lead != own;
    conditions.demand("target_id = ?", filter.target.clone().filter(|_| others(AuditLead::Target)));
    conditions.demand("actor = ?", filter.actor.clone().filter(|_| others(AuditLead::Actor)));
    conditions.demand("tenant = ?", filter.tenant.clone().filter(|_| others(AuditLead::Tenant)));
    conditions.demand("at >= ?", filter.since.map(Time::ms).filter(|_| others(AuditLead::Time)));
    conditions.demand("at < ?", filter.until.map(Time::ms).filter(|_| others(AuditLead::Time)));
    conditions.demand_word("action", filter.action.as_deref());
}

fn entry(row: &Row, first: usize) -> Result<AuditEntry> {
    let entry = Entry {
        at: Time::from_ms(value(row, first + 1)?),
        actor: value(row, first + 2)?,
        role: value(row, first + 3)?,
        action: value(row, first + 4)?,
        target: (value(row, first + 5)?, value(row, first + 6)?),
        tenant: value(row, first + 7)?,
        event: value::<Option<i64>>(row, first + 8)?.map(Seq::from_i64),
        details: value(row, first + 9)?,
    };
    Ok(AuditEntry { number: value(row, first)?, entry })
}

/// A page of links, then the entries as far as the page goes: also those that hang on none of them. In three parts, the
/// rest of the first chain, whole chains, and the beginning of the last, so that each is one range of the index.
const LINKS: &str = "
WITH page AS MATERIALIZED (
    SELECT chain, n, previous, hash FROM link WHERE (chain, n) > ($1, $2) ORDER BY chain, n LIMIT $3
), last AS MATERIALIZED (
    SELECT coalesce(max(chain), 9223372036854775807) AS chain, coalesce(max(n), 9223372036854775807) AS n
    FROM (SELECT chain, n FROM page ORDER BY chain, n LIMIT 1 OFFSET $3 - 1) AS last
), part AS MATERIALIZED (
    SELECT $1::bigint AS low, $1::bigint AS high, $2::bigint AS above,
           CASE WHEN chain = $1 THEN n ELSE 9223372036854775807 END AS upto
    FROM last
    UNION ALL
    SELECT $1 + 1, chain - 1, -9223372036854775808, 9223372036854775807 FROM last WHERE chain - 1 > $1
    UNION ALL
    SELECT chain, chain, -9223372036854775808, n FROM last WHERE chain > $1
)
SELECT chain, n, previous, hash, NULL::bigint, NULL::bigint, NULL, NULL, NULL, NULL, NULL, NULL, NULL::bigint, NULL FROM page
UNION ALL
SELECT entry.* FROM part CROSS JOIN LATERAL (
    SELECT chain, n, NULL::bytea, NULL::bytea, number, at, actor, role, action, target_kind, target_id, tenant, event, details
    FROM audit
    WHERE chain >= part.low AND chain <= part.high AND n > part.above AND n <= part.upto
) AS entry";

pub async fn links(link: &Link, after: Option<(i64, i64)>, limit: usize) -> Result<Vec<crate::AuditLink>> {
    let limit = limit.min(FIND_MAX);
    if limit == 0 {
        return Ok(Vec::new());
    }
    let (chain, n) = after.unwrap_or((i64::MIN, i64::MIN));
    let rows = link.query(LINKS, &[&chain, &n, &limit_of(limit, FIND_MAX)]).await?;
    let mut links: BTreeMap<(i64, i64), crate::AuditLink> = BTreeMap::new();
    for row in &rows {
        let (chain, n) = (value(row, 0)?, value(row, 1)?);
        let loose =
            crate::AuditLink { chain, n, previous: Vec::new(), hash: Vec::new(), entries: Vec::new() };
        let link = links.entry((chain, n)).or_insert(loose);
        match value(row, 2)? {
            Some(previous) => (link.previous, link.hash) = (previous, value(row, 3)?),
            None => link.entries.push(entry(row, 4)?),
        }
    }
    let mut links: Vec<_> = links.into_values().take(limit).collect();
    links.iter_mut().for_each(|link| link.entries.sort_by_key(|entry| entry.number));
    Ok(links)
}

pub async fn places(link: &Link, entries: &[i64]) -> Result<BTreeSet<(i64, i64)>> {
    let entries = &entries[..entries.len().min(FIND_MAX)];
    let rows = link.query("SELECT chain, n FROM audit WHERE number = ANY($1)", &[&entries]).await?;
    rows.iter().map(|row| Ok((value(row, 0)?, value(row, 1)?))).collect()
}

/// Hops from chain to chain along the index.
const HEADS: &str = "
WITH RECURSIVE hop AS (
    (SELECT chain, n, hash FROM link ORDER BY chain DESC, n DESC LIMIT 1)
    UNION ALL
    SELECT next.* FROM hop CROSS JOIN LATERAL (
        SELECT link.chain, link.n, link.hash FROM link WHERE link.chain < hop.chain
        ORDER BY link.chain DESC, link.n DESC LIMIT 1
    ) AS next
)
SELECT chain, n, hash FROM hop ORDER BY chain";

pub async fn heads(link: &Link) -> Result<Vec<ChainHead>> {
    let rows = link.query(HEADS, &[]).await?;
    let head = |row| Ok(ChainHead { chain: value(row, 0)?, n: value(row, 1)?, hash: value(row, 2)? });
    rows.iter().map(head).collect()
}
