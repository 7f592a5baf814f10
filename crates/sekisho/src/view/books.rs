//! What the books say: payments, billing, balances, and who they belong to. Payments and billing look as the core
//! writes them in business events, with when they were written first and last.

use std::collections::BTreeMap;
use std::time::Duration;

use sekisho_core::Time;
use sekisho_core::directory::{Member, Register};
use sekisho_core::settlement::payment::{balance_of, customer_account};
use sekisho_core::settlement::{billing as bill, payment as pay};
use sekisho_core::state::State;
use sekisho_core::user::{Invite, User};
use sekisho_store::{BookedLine, Error, Result, Sum};
use serde_json::{Value, json};

use super::ROOT;
use crate::acts::{ApiKey, member_view, member_view_whole};

pub fn payment(state: &State) -> Result<Value> {
    let facts = pay::Facts::parse(&state.facts).map_err(Error::corrupt)?;
    Ok(with_times(pay::view(&state.key.id, &facts, &pay::Derived::of(&facts)), state))
}

/// `now` and the grace decide whether the tenant may still come in.
pub fn billing(state: &State, now: Time, grace: Duration) -> Result<Value> {
    let facts = bill::Facts::parse(&state.facts).map_err(Error::corrupt)?;
    let derived = bill::Derived::of(&facts);
    let grace_ms = i64::try_from(grace.as_millis()).unwrap_or(i64::MAX);
    Ok(with_times(bill::view(&state.key.id, &facts, &derived, now, grace_ms), state))
}

/// One of the directory, with its address masked.
pub fn member(state: &State) -> Result<Value> {
    Ok(with_times(member_view(&state.key, &kept(state)?), state))
}

/// How one of the directory is shown.
pub type OfMember = fn(&State) -> Result<Value>;

/// With its address masked, unless whole ones are wanted by somebody who may see them.
pub fn member_for(wants_addresses: bool) -> OfMember {
    if wants_addresses { member_whole } else { member }
}

fn member_whole(state: &State) -> Result<Value> {
    Ok(with_times(member_view_whole(&state.key, &kept(state)?), state))
}

fn kept(state: &State) -> Result<Member> {
    let kind = state.key.kind;
    let register = Register::of(kind)
        .ok_or_else(|| Error::corrupt(format!("a {} is not in the directory", kind.name())))?;
    Member::read(register, &state.facts).map_err(Error::corrupt)
}

/// What a customer has, and the newest entries that made it so.
pub fn balance(tenant: Option<&str>, customer: &str, sums: &[Sum], lines: &[BookedLine]) -> Value {
    let account = customer_account(tenant, customer);
    let balances = sums.iter().map(|sum| {
        json!({
            "currency": sum.currency,
            "livemode": sum.livemode,
            "balance": balance_of(&account, sum.amount),
        })
    });
    json!({
        "customer": customer,
        "tenant": tenant.filter(|tenant| !tenant.is_empty()),
        "balances": balances.collect::<Vec<_>>(),
        "entries": lines.iter().map(line).collect::<Vec<_>>(),
    })
}

/// One line of the books; its amount has the sign that the account's owner expects.
pub fn line(line: &BookedLine) -> Value {
    let BookedLine { number, at, posting } = line;
    json!({
        "id": number,
        "at": at,
        "account": posting.account,
        "currency": posting.currency,
        "livemode": posting.livemode,
        "amount": balance_of(&posting.account, posting.amount),
        "payment": posting.payment,
        "cause": posting.cause,
    })
}

/// Every account, and whether all that was booked sums to zero.
pub fn books(sums: &[Sum]) -> Value {
    let accounts = sums.iter().map(|sum| {
        json!({
            "account": sum.account,
            "currency": sum.currency,
            "livemode": sum.livemode,
            "sum": sum.amount,
            "balance": balance_of(&sum.account, sum.amount),
            "lines": sum.lines,
        })
    });
    let mut totals: BTreeMap<_, i128> = BTreeMap::new();
    for sum in sums {
        *totals.entry((&sum.currency, sum.livemode)).or_default() += i128::from(sum.amount);
    }
    let balanced = totals.values().all(|sum| *sum == 0);
    let totals = totals.into_iter().map(|((currency, livemode), sum)| {
        let shown = i64::try_from(sum).unwrap_or(if sum < 0 { i64::MIN } else { i64::MAX });
        json!({ "currency": currency, "livemode": livemode, "sum": shown, "balanced": sum == 0 })
    });
    json!({
        "balanced": balanced,
        "totals": totals.collect::<Vec<_>>(),
        "accounts": accounts.collect::<Vec<_>>(),
    })
}

/// A key to the API, without what opens it.
pub fn key(key: &ApiKey) -> Value {
    json!({
        "name": key.name,
        "hint": key.hint,
        "scopes": key.scopes,
        "tenant": key.tenant,
        "created_at": key.created_at,
        "revoked_at": key.revoked_at,
    })
}

/// Somebody who may enter the console, without what they enter with.
pub fn user(name: &str, user: &User, now: Time) -> Value {
    json!({
        "name": name,
        "rank": user.rank,
        "created_at": user.created_at,
        "entered_at": user.entered_at,
        "disabled_at": user.disabled_at,
        "shut_until": user.shut_anywhere(now),
        "sessions": user.living_sessions(now).count(),
    })
}

/// A link that makes somebody a user: where it leads, at the console's own address.
pub fn invite(token: &str, invite: &Invite) -> Value {
    json!({ "path": format!("{ROOT}/join/{token}"), "rank": invite.rank, "expires_at": invite.expires_at })
}

fn with_times(mut value: Value, state: &State) -> Value {
    value["created_at"] = json!(state.created_at);
    value["changed_at"] = json!(state.changed_at);
    value
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
        assert_eq!(shown["accounts"][1]["balance"], 1200);
        assert_eq!(shown["balanced"], false);
        let totals: Vec<_> = shown["totals"].as_array().unwrap().iter().map(|one| &one["balanced"]).collect();
        assert_eq!(totals, [true, false]);
        // What is missing in one mode is not made good in another.
        sums[2] = sum("sales", "jpy", Some(false), -1);
        sums.push(sum("fees", "jpy", Some(true), 1));
        assert_eq!(books(&sums)["balanced"], false);
        assert_eq!(books(&[])["balanced"], true);
    }
}
