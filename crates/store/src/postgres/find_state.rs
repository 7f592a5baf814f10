//! Reads about things: what names and keys lead to, lists, and the books.

use std::borrow::Cow;

use sekisho_core::Time;
use sekisho_core::state::{Index, Key, Kind, Posting, State};
use tokio_postgres::Row;

use super::condition::Conditions;
use super::connection::{Link, unreadable, value};
use super::upkeep::{limit_of, without_nul};
use crate::error::Result;
use crate::find::Branches;
use crate::{BookedLine, FIND_MAX, LineFilter, Loaded, StateFilter, Sum};

/// The columns that [`state`] reads, in its order.
const STATE: &str =
    "kind, id, version, facts, status, tenant, customer, livemode, amount, currency, attention,
    created_at, changed_at";

/// A row with a name says what it leads to; one without, what a thing is.
const LOAD: &str = "
WITH named AS MATERIALIZED (
    SELECT found.* FROM unnest($1::text[]) AS given (name)
    CROSS JOIN LATERAL (SELECT name, kind, id FROM name WHERE name.name = given.name LIMIT 1) AS found
), wanted AS MATERIALIZED (
    SELECT kind, id FROM named UNION SELECT kind, id FROM unnest($2::text[], $3::text[]) AS given (kind, id)
)
SELECT kind, id, NULL::bigint, NULL, NULL, NULL, NULL, NULL::boolean, NULL::bigint, NULL, NULL, NULL::bigint, NULL::bigint, name
FROM named
UNION ALL
SELECT found.*, NULL FROM wanted
CROSS JOIN LATERAL (
    SELECT kind, id, version, facts, status, tenant, customer, livemode, amount, currency, attention, created_at,
           changed_at
    FROM state WHERE state.kind = wanted.kind AND state.id = wanted.id LIMIT 1
) AS found";

pub async fn load(link: &Link, names: &[String], keys: &[Key]) -> Result<Loaded> {
    let given: Vec<_> = names.iter().map(|name| without_nul(name)).collect();
    let kinds: Vec<_> = keys.iter().map(|key| key.kind.name()).collect();
    let ids: Vec<_> = keys.iter().map(|key| without_nul(&key.id)).collect();
    let rows = link.query(LOAD, &[&given, &kinds, &ids]).await?;
    let mut loaded = Loaded::default();
    for row in &rows {
        match value::<Option<String>>(row, 13)? {
            Some(name) => drop(loaded.names.insert(name, key(row)?)),
            None => drop(loaded.states.insert(key(row)?, state(row)?)),
        }
    }
    answer_as_asked(&mut loaded, names, keys);
    Ok(loaded)
}

/// What can't be stored as it is, is found under what was stored in its place.
fn answer_as_asked(loaded: &mut Loaded, names: &[String], keys: &[Key]) {
    for name in names {
        if let Cow::Owned(stored) = without_nul(name) {
            let found = loaded.names.remove(&stored);
            loaded.names.extend(found.map(|key| (name.clone(), key)));
        }
    }
    for key in keys {
        if let Cow::Owned(id) = without_nul(&key.id) {
            let found = loaded.states.remove(&Key { kind: key.kind, id });
            loaded.states.extend(found.map(|state| (key.clone(), State { key: key.clone(), ..state })));
        }
    }
}

fn key(row: &Row) -> Result<Key> {
    let kind = Kind::parse(value(row, 0)?).ok_or_else(|| unreadable("kind"))?;
    Ok(Key { kind, id: value(row, 1)? })
}

fn state(row: &Row) -> Result<State> {
    let index = Index {
        status: value(row, 4)?,
        tenant: value(row, 5)?,
        customer: value(row, 6)?,
        livemode: value(row, 7)?,
        amount: value(row, 8)?,
        currency: value(row, 9)?,
        attention: value(row, 10)?,
    };
    let (created_at, changed_at) = (Time::from_ms(value(row, 11)?), Time::from_ms(value(row, 12)?));
    Ok(State {
        key: key(row)?,
        version: value(row, 2)?,
        facts: value(row, 3)?,
        index,
        created_at,
        changed_at,
    })
}

pub async fn branches(link: &Link, prefix: String, limit: usize) -> Result<Vec<String>> {
    let sql = "SELECT name FROM name WHERE name >= $1 AND name < $2 ORDER BY name LIMIT 1";
    let mut branches = Branches::new(prefix, limit.min(FIND_MAX));
    while let Some((from, to)) = branches.span() {
        let rows = link.query(sql, &[&from, &to]).await?;
        let name = rows.first().map(|row| value::<String>(row, 0)).transpose()?;
        if !branches.met(name.as_deref()) {
            break;
        }
    }
    Ok(branches.into_words())
}

pub async fn states(link: &Link, filter: &StateFilter) -> Result<Vec<State>> {
    let conditions = conditions(filter);
    let sql = format!(
        "SELECT {STATE} FROM state WHERE true{} ORDER BY id DESC LIMIT {}",
        conditions.sql(),
        limit_of(filter.limit, FIND_MAX)
    );
    link.query_once(&sql, &conditions.values()).await?.iter().map(state).collect()
}

/// Which things are meant.
fn conditions(filter: &StateFilter) -> Conditions {
    let mut conditions = Conditions::default();
    conditions.demand("kind = ?", Some(filter.kind.name()));
    conditions.demand("status = ?", filter.status.clone());
    conditions.demand("tenant = ?", filter.tenant.clone());
    conditions.demand("customer = ?", filter.customer.clone());
    conditions.demand("livemode = ?", filter.livemode);
    match filter.attention.as_deref() {
        Some("") => conditions.state("attention IS NOT NULL"),
        wanted => conditions.demand("attention = ?", wanted.map(str::to_owned)),
    }
    conditions.demand("id < ?", filter.before.clone());
    conditions
}

pub async fn sums(link: &Link, account: Option<&str>) -> Result<Vec<Sum>> {
    let mut conditions = Conditions::default();
    conditions.demand("account = ?", account.map(str::to_owned));
    let sql = format!(
        "SELECT account, currency, livemode, sum(amount)::bigint, count(*) FROM posting WHERE true{}
         GROUP BY account, currency, livemode",
        conditions.sql()
    );
    let rows = link.query_once(&sql, &conditions.values()).await?;
    let sum = |row| {
        Ok(Sum {
            account: value(row, 0)?,
            currency: value(row, 1)?,
            livemode: value(row, 2)?,
            amount: value(row, 3)?,
            lines: value(row, 4)?,
        })
    };
    let mut sums = rows.iter().map(sum).collect::<Result<Vec<_>>>()?;
    sums.sort();
    Ok(sums)
}

pub async fn lines(link: &Link, filter: &LineFilter) -> Result<Vec<BookedLine>> {
    let mut conditions = Conditions::default();
    conditions.demand("account = ?", filter.account.clone());
    conditions.demand("payment = ?", filter.payment.clone());
    conditions.demand("number < ?", filter.before);
    let sql = format!(
        "SELECT number, at, account, currency, livemode, amount, payment, cause FROM posting
         WHERE true{} ORDER BY number DESC LIMIT {}",
        conditions.sql(),
        limit_of(filter.limit, FIND_MAX)
    );
    let rows = link.query_once(&sql, &conditions.values()).await?;
    let line = |row| {
        let posting = Posting {
            account: value(row, 2)?,
            currency: value(row, 3)?,
            livemode: value(row, 4)?,
            amount: value(row, 5)?,
            payment: value(row, 6)?,
            cause: value(row, 7)?,
        };
        Ok(BookedLine { number: value(row, 0)?, at: Time::from_ms(value(row, 1)?), posting })
    };
    rows.iter().map(line).collect()
}
