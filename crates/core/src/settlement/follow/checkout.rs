//! What follows for the Checkout Sessions of an order: which try may be asked for now, and which session nobody is to pay any
//! more. The till is closed before the seat is given away.

use std::collections::BTreeMap;

use super::{OrderMoney, OrderPolicy};
use crate::reservation::{ReservationFacts, ReservationStatus};
use crate::settlement::checkout;
use crate::settlement::payment::{Facts, SessionTry, TryFate};
use crate::time::Time;

/// Whoever asked for a try and was kept waiting longer has left.
const WAITING_MAX_MS: i64 = 10 * 60_000;

/// What a payment must remember of its tries, and does not yet.
pub fn follow(
    money: &OrderMoney<'_>,
    reservation: Option<&ReservationFacts>,
    at: Time,
    policy: &OrderPolicy,
) -> BTreeMap<u32, SessionTry> {
    let facts = money.facts;
    let mut said: BTreeMap<u32, SessionTry> = BTreeMap::new();
    let Some((newest, last)) = facts.newest_try() else { return said };
    let until = reservation.filter(|one| is_to_be_paid(one, money, at, policy)).map(|one| one.until);
    for (number, one) in &facts.session_tries {
        let is_payable = matches!(facts.fate(one), TryFate::Open | TryFate::Asked);
        if is_payable && one.closing.is_none() && (until.is_none() || *number < newest) {
            said.insert(*number, SessionTry { closing: Some(at), ..SessionTry::default() });
        }
    }
    let is_fresh = last.asked_at.is_some_and(|asked| at <= asked.plus_ms(WAITING_MAX_MS));
    if let Some(until) = until
        && facts.fate(last) == TryFate::Waiting
        && is_fresh
        && are_over(facts, newest)
    {
        let generations = [(1, checkout::generation(until, at))].into();
        said.insert(newest, SessionTry { generations, ..SessionTry::default() });
    }
    said
}

/// Whether its places are held for somebody who has not paid yet.
fn is_to_be_paid(one: &ReservationFacts, money: &OrderMoney<'_>, at: Time, policy: &OrderPolicy) -> bool {
    let is_held = one.status(at, policy.grace_ms) == ReservationStatus::Hold;
    is_held && at < one.until && money.derived.received == 0
}

/// Nobody can pay any try before this one, nor a session that is none.
fn are_over(facts: &Facts, number: u32) -> bool {
    facts.session_tries.range(..number).all(|(_, one)| facts.fate(one).is_over())
        && !facts.sessions.values().any(|session| facts.may_bring_money(session))
}
