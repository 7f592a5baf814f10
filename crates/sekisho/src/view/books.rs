//! What the books say: payments, billing, balances, and who they belong to. Payments and billing look as the core
//! writes them in business events, with when they were written first and last.

use std::collections::BTreeMap;
use std::time::Duration;

use sekisho_core::Time;
use sekisho_core::api_key::ApiKey;
use sekisho_core::directory::{Member, Register};
use sekisho_core::settlement::payment::{balance_of, customer_account};
use sekisho_core::settlement::{billing as bill, payment as pay};
use sekisho_core::state::State;
use sekisho_core::user::{Invite, User};
use sekisho_store::{BookedLine, Error, Result, Sum};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ROOT;
use crate::types::{self, Dated};

pub fn payment(state: &State) -> Result<Dated<types::Payment>> {
    let facts = pay::Facts::parse(&state.facts).map_err(Error::corrupt)?;
    dated(state, pay::view(&state.key.id, &facts, &pay::Derived::of(&facts)))
}

/// `now` and the grace decide whether the tenant may still come in.
pub fn billing(state: &State, now: Time, grace: Duration) -> Result<Dated<types::Billing>> {
    let facts = bill::BillingFacts::parse(&state.facts).map_err(Error::corrupt)?;
    let derived = bill::BillingDerived::of(&facts);
    let grace_ms = i64::try_from(grace.as_millis()).unwrap_or(i64::MAX);
    dated(state, bill::view(&state.key.id, &facts, &derived, now, grace_ms))
}

/// What the core wrote, with its times.
fn dated<T: DeserializeOwned>(state: &State, written: Value) -> Result<Dated<T>> {
    let thing = serde_json::from_value(written).map_err(Error::corrupt)?;
    Ok(with_times(thing, state))
}

/// One of the directory, with its address masked.
pub fn member(state: &State) -> Result<Dated<types::Member>> {
    Ok(with_times(types::Member::of(&state.key, &kept(state)?, false), state))
}

/// How one of the directory is shown.
pub type OfMember = fn(&State) -> Result<Dated<types::Member>>;

/// With its address masked, unless whole ones are wanted by somebody who may see them.
pub fn member_for(wants_addresses: bool) -> OfMember {
    if wants_addresses { member_whole } else { member }
}

fn member_whole(state: &State) -> Result<Dated<types::Member>> {
    Ok(with_times(types::Member::of(&state.key, &kept(state)?, true), state))
}

fn kept(state: &State) -> Result<Member> {
    let kind = state.key.kind;
    let register = Register::of(kind)
        .ok_or_else(|| Error::corrupt(format!("a {} is not in the directory", kind.name())))?;
    Member::read(register, &state.facts).map_err(Error::corrupt)
}

/// What a customer has, and the newest entries that made it so.
pub fn balance(tenant: Option<&str>, customer: &str, sums: &[Sum], lines: &[BookedLine]) -> types::Balance {
    let account = customer_account(tenant, customer);
    let balances = sums.iter().map(|sum| types::CurrencyBalance {
        currency: sum.currency.clone(),
        livemode: sum.livemode,
        balance: balance_of(&account, sum.amount),
    });
    types::Balance {
        customer: customer.to_owned(),
        tenant: tenant.filter(|tenant| !tenant.is_empty()).map(str::to_owned),
        balances: balances.collect(),
        entries: lines.iter().map(line).collect(),
    }
}

/// One line of the books; its amount has the sign that the account's owner expects.
pub fn line(line: &BookedLine) -> types::Line {
    let BookedLine { number, at, posting } = line;
    types::Line {
        id: *number,
        at: *at,
        account: posting.account.clone(),
        currency: posting.currency.clone(),
        livemode: posting.livemode,
        amount: balance_of(&posting.account, posting.amount),
        payment: posting.payment.clone(),
        cause: posting.cause.clone(),
    }
}

/// Every account, and whether all that was booked sums to zero.
pub fn books(sums: &[Sum]) -> types::Books {
    let accounts = sums.iter().map(|sum| types::Account {
        account: sum.account.clone(),
        currency: sum.currency.clone(),
        livemode: sum.livemode,
        sum: sum.amount,
        balance: balance_of(&sum.account, sum.amount),
        lines: sum.lines,
    });
    let mut totals: BTreeMap<_, i128> = BTreeMap::new();
    for sum in sums {
        *totals.entry((&sum.currency, sum.livemode)).or_default() += i128::from(sum.amount);
    }
    let balanced = totals.values().all(|sum| *sum == 0);
    let totals = totals.into_iter().map(|((currency, livemode), sum)| types::Total {
        currency: currency.clone(),
        livemode,
        sum: i64::try_from(sum).unwrap_or(if sum < 0 { i64::MIN } else { i64::MAX }),
        balanced: sum == 0,
    });
    types::Books { balanced, totals: totals.collect(), accounts: accounts.collect() }
}

/// A key to the API, without what opens it.
pub fn key(key: &ApiKey) -> types::ApiKey {
    types::ApiKey {
        name: key.name.clone(),
        hint: key.hint.clone(),
        scopes: key.scopes.iter().map(|scope| scope.name().to_owned()).collect(),
        tenant: key.tenant.clone(),
        created_at: key.created_at,
        revoked_at: key.revoked_at,
    }
}

/// Somebody who may enter the console, without what they enter with.
pub fn user(name: &str, user: &User, now: Time) -> types::User {
    types::User {
        name: name.to_owned(),
        rank: user.rank.name().to_owned(),
        created_at: user.created_at,
        entered_at: user.entered_at,
        disabled_at: user.disabled_at,
        shut_until: user.shut_anywhere(now),
        sessions: user.living_sessions(now).count(),
    }
}

/// A link that makes somebody a user: where it leads, at the console's own address.
pub fn invite(token: &str, invite: &Invite) -> types::Invite {
    types::Invite {
        path: format!("{ROOT}/join/{token}"),
        rank: invite.rank.name().to_owned(),
        expires_at: invite.expires_at,
    }
}

fn with_times<T>(thing: T, state: &State) -> Dated<T> {
    Dated { thing, created_at: state.created_at, changed_at: state.changed_at }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(account: &str, currency: &str, livemode: Option<bool>, amount: i64) -> Sum {
        Sum { account: account.into(), currency: currency.into(), livemode, amount, lines: 1 }
    }

    #[test]
    fn d7_the_books_are_balanced_in_each_currency_and_mode_by_itself() {
        let mut sums = vec![
            sum("provider/stripe/-/live", "jpy", Some(true), 1200),
            sum("customer//c1", "jpy", Some(true), -1200),
            sum("sales", "usd", Some(false), i64::MIN),
        ];
        let shown = books(&sums);
        assert_eq!(shown.accounts[1].balance, 1200);
        assert!(!shown.balanced);
        let totals: Vec<_> = shown.totals.iter().map(|one| one.balanced).collect();
        assert_eq!(totals, [true, false]);
        // What is missing in one mode is not made good in another.
        sums[2] = sum("sales", "jpy", Some(false), -1);
        sums.push(sum("fees", "jpy", Some(true), 1));
        assert!(!books(&sums).balanced);
        assert!(books(&[]).balanced);
    }
}
