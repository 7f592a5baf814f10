//! Reads about things: what names and keys lead to, lists, and the books.

use rusqlite::{Connection, OptionalExtension, Row, params};
use sekisho_core::Time;
use sekisho_core::state::{Index, Key, Kind, Posting, State};

use super::condition::Conditions;
use super::connection::unreadable;
use crate::find::Branches;
use crate::{BookedLine, FIND_MAX, LineFilter, Loaded, StateFilter, Sum};

/// The columns that [`state`] reads, in its order.
const STATE: &str =
    "kind, id, version, facts, status, tenant, customer, livemode, amount, currency, attention,
    created_at, changed_at";

/// In a transaction, so that names and things are of one moment.
pub fn load(db: &Connection, names: Vec<String>, keys: Vec<Key>) -> rusqlite::Result<Loaded> {
    let tx = db.unchecked_transaction()?;
    let mut loaded = Loaded::default();
    let mut named = tx.prepare_cached("SELECT kind, id FROM name WHERE name = $1")?;
    for name in names {
        if let Some(key) = named.query_row([&name], key).optional()? {
            loaded.names.insert(name, key);
        }
    }
    let mut found = tx.prepare_cached(&format!("SELECT {STATE} FROM state WHERE kind = $1 AND id = $2"))?;
    for key in keys.iter().chain(loaded.names.values()) {
        let state = found.query_row(params![key.kind.name(), key.id], state).optional()?;
        loaded.states.extend(state.map(|state| (state.key.clone(), state)));
    }
    Ok(loaded)
}

fn key(row: &Row<'_>) -> rusqlite::Result<Key> {
    let kind = Kind::parse(row.get_ref(0)?.as_str()?).ok_or_else(|| unreadable(0, "kind"))?;
    Ok(Key { kind, id: row.get(1)? })
}

fn state(row: &Row<'_>) -> rusqlite::Result<State> {
    let index = Index {
        status: row.get(4)?,
        tenant: row.get(5)?,
        customer: row.get(6)?,
        livemode: row.get(7)?,
        amount: row.get(8)?,
        currency: row.get(9)?,
        attention: row.get(10)?,
    };
    let (created_at, changed_at) = (Time::from_ms(row.get(11)?), Time::from_ms(row.get(12)?));
    Ok(State { key: key(row)?, version: row.get(2)?, facts: row.get(3)?, index, created_at, changed_at })
}

pub fn branches(db: &Connection, prefix: String, limit: usize) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT name FROM name WHERE name >= $1 AND name < $2 ORDER BY name LIMIT 1";
    let mut next = db.prepare_cached(sql)?;
    let mut branches = Branches::new(prefix, limit.min(FIND_MAX));
    while let Some((from, to)) = branches.span() {
        let name: Option<String> = next.query_row([from, to], |row| row.get(0)).optional()?;
        if !branches.met(name.as_deref()) {
            break;
        }
    }
    Ok(branches.into_words())
}

pub fn states(db: &Connection, filter: &StateFilter) -> rusqlite::Result<Vec<State>> {
    let conditions = conditions(filter);
    let sql = format!(
        "SELECT {STATE} FROM state WHERE TRUE{} ORDER BY id DESC LIMIT {}",
        conditions.sql(),
        filter.limit.min(FIND_MAX)
    );
    db.prepare_cached(&sql)?.query_map(&conditions.values()[..], state)?.collect()
}

/// Which things are meant.
fn conditions(filter: &StateFilter) -> Conditions {
    let mut conditions = Conditions::default();
    conditions.demand("kind = ?", Some(filter.kind.name()));
    // Differs from PostgreSQL: the plus keeps its index out of it, where another leads to fewer.
    let is_led = filter.tenant.is_some() || filter.customer.is_some() || filter.attention.is_some();
    conditions.demand(if is_led { "+status = ?" } else { "status = ?" }, filter.status.clone());
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

pub fn sums(db: &Connection, account: Option<&str>) -> rusqlite::Result<Vec<Sum>> {
    let mut conditions = Conditions::default();
    conditions.demand("account = ?", account.map(str::to_owned));
    let sql = format!(
        "SELECT account, currency, livemode, sum(amount), count(*) FROM posting WHERE TRUE{}
         GROUP BY account, currency, livemode",
        conditions.sql()
    );
    let mut statement = db.prepare_cached(&sql)?;
    let sums = statement.query_map(&conditions.values()[..], |row| {
        Ok(Sum {
            account: row.get(0)?,
            currency: row.get(1)?,
            livemode: row.get(2)?,
            amount: row.get(3)?,
            lines: row.get(4)?,
        })
    })?;
    let mut sums: Vec<_> = sums.collect::<rusqlite::Result<_>>()?;
    sums.sort();
    Ok(sums)
}

pub fn lines(db: &Connection, filter: &LineFilter) -> rusqlite::Result<Vec<BookedLine>> {
    let mut conditions = Conditions::default();
    conditions.demand("account = ?", filter.account.clone());
    conditions.demand("payment = ?", filter.payment.clone());
    conditions.demand("number < ?", filter.before);
    let sql = format!(
        "SELECT number, at, account, currency, livemode, amount, payment, cause FROM posting
         WHERE TRUE{} ORDER BY number DESC LIMIT {}",
        conditions.sql(),
        filter.limit.min(FIND_MAX)
    );
    let mut statement = db.prepare_cached(&sql)?;
    let lines = statement.query_map(&conditions.values()[..], |row| {
        let posting = Posting {
            account: row.get(2)?,
            currency: row.get(3)?,
            livemode: row.get(4)?,
            amount: row.get(5)?,
            payment: row.get(6)?,
            cause: row.get(7)?,
        };
        Ok(BookedLine { number: row.get(0)?, at: Time::from_ms(row.get(1)?), posting })
    })?;
    lines.collect()
}
