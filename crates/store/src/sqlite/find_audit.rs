//! Reads of the audit log, and of the chains that its entries hang on.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, OptionalExtension, Row};
use sekisho_core::audit::Entry;
use sekisho_core::{Seq, Time};

use super::condition::Conditions;
use crate::find::AuditLead;
use crate::{AuditEntry, AuditFilter, AuditLink, AuditPage, ChainHead, FIND_MAX, SCAN_MAX};

/// The columns that [`entry`] reads, in its order.
const ENTRY: &str = "number, at, actor, role, action, target_kind, target_id, tenant, event, details";

pub fn audit(db: &Connection, filter: &AuditFilter) -> rusqlite::Result<AuditPage> {
    let limit = filter.limit.min(FIND_MAX);
    let lead = lead(db, filter)?;
    let end = end(db, filter, lead)?;
    let mut conditions = reach(filter, lead, end);
    narrow(&mut conditions, filter, lead);
    // Differs from PostgreSQL: a plus keeps an index out of it.
    let number = if lead == AuditLead::Time { "+number" } else { "number" };
    let sql = format!(
        "SELECT {ENTRY} FROM audit WHERE TRUE{} ORDER BY {number} DESC LIMIT {limit}",
        conditions.sql()
    );
    let mut statement = db.prepare_cached(&sql)?;
    let entries = statement.query_map(&conditions.values()[..], |row| entry(row, 0))?;
    Ok(AuditPage::of(entries.collect::<rusqlite::Result<_>>()?, limit, end))
}

/// Times lead only where they lead to few.
fn lead(db: &Connection, filter: &AuditFilter) -> rusqlite::Result<AuditLead> {
    if filter.lead() != AuditLead::Time {
        return Ok(filter.lead());
    }
    let mut conditions = Conditions::default();
    conditions.demand("at >= ?", filter.since.map(Time::ms));
    conditions.demand("at < ?", filter.until.map(Time::ms));
    let sql = format!("SELECT at FROM audit WHERE TRUE{} LIMIT 1 OFFSET {SCAN_MAX}", conditions.sql());
    let many = db.prepare_cached(&sql)?.exists(&conditions.values()[..])?;
    Ok(if many { AuditLead::All } else { AuditLead::Time })
}

/// The last number that one call may look at, if there are so many.
fn end(db: &Connection, filter: &AuditFilter, lead: AuditLead) -> rusqlite::Result<Option<i64>> {
    if lead == AuditLead::Time {
        return Ok(None);
    }
    let conditions = reach(filter, lead, None);
    let sql = format!(
        "SELECT number FROM audit WHERE TRUE{} ORDER BY number DESC LIMIT 1 OFFSET {}",
        conditions.sql(),
        SCAN_MAX - 1
    );
    let mut statement = db.prepare_cached(&sql)?;
    statement.query_row(&conditions.values()[..], |row| row.get(0)).optional()
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
            conditions.demand("+number < ?", filter.before);
            return conditions;
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
    conditions.demand("+target_id = ?", filter.target.clone().filter(|_| others(AuditLead::Target)));
    conditions.demand("+actor = ?", filter.actor.clone().filter(|_| others(AuditLead::Actor)));
    conditions.demand("+tenant = ?", filter.tenant.clone().filter(|_| others(AuditLead::Tenant)));
    conditions.demand("+at >= ?", filter.since.map(Time::ms).filter(|_| others(AuditLead::Time)));
    conditions.demand("+at < ?", filter.until.map(Time::ms).filter(|_| others(AuditLead::Time)));
    conditions.demand_word("action", filter.action.as_deref());
}

fn entry(row: &Row<'_>, first: usize) -> rusqlite::Result<AuditEntry> {
    let entry = Entry {
        at: Time::from_ms(row.get(first + 1)?),
        actor: row.get(first + 2)?,
        role: row.get(first + 3)?,
        action: row.get(first + 4)?,
        target: (row.get(first + 5)?, row.get(first + 6)?),
        tenant: row.get(first + 7)?,
        event: row.get::<_, Option<i64>>(first + 8)?.map(Seq::from_i64),
        details: row.get(first + 9)?,
    };
    Ok(AuditEntry { number: row.get(first)?, entry })
}

/// A page of links, then the entries as far as the page goes: also those that hang on none of them.
const LINKS: &str = "
WITH page AS MATERIALIZED (
    SELECT chain, n, previous, hash FROM link WHERE (chain, n) > ($1, $2) ORDER BY chain, n LIMIT $3
), last AS MATERIALIZED (
    SELECT chain, n FROM page ORDER BY chain, n LIMIT 1 OFFSET $3 - 1
)
SELECT chain, n, previous, hash, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM page
UNION ALL
SELECT chain, n, NULL, NULL, number, at, actor, role, action, target_kind, target_id, tenant, event, details FROM audit
WHERE (chain, n) > ($1, $2) AND (chain, n) <= (
    coalesce((SELECT chain FROM last), 9223372036854775807), coalesce((SELECT n FROM last), 9223372036854775807)
)";

pub fn links(db: &Connection, after: Option<(i64, i64)>, limit: usize) -> rusqlite::Result<Vec<AuditLink>> {
    let limit = limit.min(FIND_MAX);
    if limit == 0 {
        return Ok(Vec::new());
    }
    let (chain, n) = after.unwrap_or((i64::MIN, i64::MIN));
    let mut statement = db.prepare_cached(LINKS)?;
    let mut rows = statement.query([chain, n, limit as i64])?;
    let mut links: BTreeMap<(i64, i64), AuditLink> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let (chain, n) = (row.get(0)?, row.get(1)?);
        let loose = AuditLink { chain, n, previous: Vec::new(), hash: Vec::new(), entries: Vec::new() };
        let link = links.entry((chain, n)).or_insert(loose);
        match row.get(2)? {
            Some(previous) => (link.previous, link.hash) = (previous, row.get(3)?),
            None => link.entries.push(entry(row, 4)?),
        }
    }
    let mut links: Vec<_> = links.into_values().take(limit).collect();
    links.iter_mut().for_each(|link| link.entries.sort_by_key(|entry| entry.number));
    Ok(links)
}

pub fn places(db: &Connection, entries: &[i64]) -> rusqlite::Result<BTreeSet<(i64, i64)>> {
    let mut place = db.prepare_cached("SELECT chain, n FROM audit WHERE number = $1")?;
    let mut places = BTreeSet::new();
    for number in entries.iter().take(FIND_MAX) {
        places.extend(place.query_row([number], |row| Ok((row.get(0)?, row.get(1)?))).optional()?);
    }
    Ok(places)
}

/// Hops from chain to chain along the index.
pub fn heads(db: &Connection) -> rusqlite::Result<Vec<ChainHead>> {
    let mut next = db.prepare_cached(
        "SELECT chain, n, hash FROM link WHERE chain < $1 ORDER BY chain DESC, n DESC LIMIT 1",
    )?;
    let mut heads: Vec<ChainHead> = Vec::new();
    loop {
        let before = heads.last().map_or(i64::MAX, |head| head.chain);
        let head = |row: &Row<'_>| Ok(ChainHead { chain: row.get(0)?, n: row.get(1)?, hash: row.get(2)? });
        let Some(head) = next.query_row([before], head).optional()? else { break };
        heads.push(head);
    }
    heads.reverse();
    Ok(heads)
}
