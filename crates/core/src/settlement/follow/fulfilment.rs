//! What follows for a fulfilment: when a run is asked for, when one that nobody answered has failed, and when nothing more is
//! asked for.

use super::{OrderMoney, OrderPolicy};
use crate::fulfilment::{FulfilmentFacts, FulfilmentRun, RunResult, TIMEOUT, Tier};
use crate::reservation;
use crate::time::Time;

/// Pauses double no more often than this.
const DOUBLINGS_MAX: u32 = 20;

/// Works out where a fulfilment stands now; says when the clock may next change something.
pub fn follow(
    facts: &mut FulfilmentFacts,
    reservation: Option<&reservation::ReservationFacts>,
    money: Option<&OrderMoney<'_>>,
    at: Time,
    policy: &OrderPolicy,
) -> Option<Time> {
    if money.is_some_and(OrderMoney::is_refunded) {
        facts.downgraded_at = facts.downgraded_at.or(Some(at));
    }
    if reservation.is_some_and(|one| one.cancelled.is_some()) {
        facts.stopped_at = facts.stopped_at.or(Some(at));
    }
    let mut next = None;
    // Each run that ends may begin another, which begins open: so this ends.
    while let Some((number, run)) = facts.newest() {
        match run.result {
            // Its reservation was cancelled: nobody waits for it any more.
            RunResult::Open if facts.stopped_at.is_some() => break,
            RunResult::Open => {
                let over = run.requested_at.unwrap_or(at).plus_ms(policy.timeout_ms);
                if at < over {
                    next = Some(over);
                    break;
                }
                let failed = FulfilmentRun {
                    result: RunResult::Failed,
                    ended_at: Some(at),
                    error: Some(TIMEOUT.to_owned()),
                    ..run.clone()
                };
                facts.runs.insert(number, failed);
            }
            RunResult::Failed if may_go_on(facts, money, policy) => {
                let begins = run.ended_at.unwrap_or(at).plus_ms(wait_ms(facts, policy));
                if at < begins {
                    next = Some(begins);
                    break;
                }
                facts
                    .runs
                    .insert(number + 1, FulfilmentRun { requested_at: Some(at), ..FulfilmentRun::default() });
            }
            RunResult::Failed | RunResult::Done => break,
        }
    }
    if facts.runs.is_empty() && may_start(facts, reservation, money) {
        facts.runs.insert(1, FulfilmentRun { requested_at: Some(at), ..FulfilmentRun::default() });
        next = Some(at.plus_ms(policy.timeout_ms));
    }
    next
}

fn is_over(facts: &FulfilmentFacts) -> bool {
    facts.stopped_at.is_some() || facts.downgraded_at.is_some()
}

fn may_start(
    facts: &FulfilmentFacts,
    reservation: Option<&reservation::ReservationFacts>,
    money: Option<&OrderMoney<'_>>,
) -> bool {
    // What an operator confirmed is theirs, whatever was paid.
    let is_free = facts.ours.tier == Tier::Free
        || money.is_none_or(OrderMoney::is_paid)
        || reservation.is_some_and(|one| one.confirm.is_some());
    let is_confirmed = reservation.is_none_or(|one| one.confirmed > one.lapsed);
    !is_over(facts) && is_free && is_confirmed
}

/// Once the money is going back, no other run is asked for.
fn may_go_on(facts: &FulfilmentFacts, money: Option<&OrderMoney<'_>>, policy: &OrderPolicy) -> bool {
    let may_fail = policy.attempts.saturating_add(facts.more_runs);
    let goes_back = facts.ours.tier == Tier::Paid
        && money.is_some_and(|money| money.derived.received > 0 && money.kept() == 0);
    !is_over(facts) && facts.failed_runs() < may_fail && !goes_back
}

fn wait_ms(facts: &FulfilmentFacts, policy: &OrderPolicy) -> i64 {
    let doublings = facts.failed_runs().saturating_sub(1).min(DOUBLINGS_MAX);
    policy.retry_wait_ms.saturating_mul(1 << doublings)
}

/// What the customer has: what they paid for, as long as their money is ours.
pub fn tier(facts: &FulfilmentFacts, money: Option<&OrderMoney<'_>>) -> Tier {
    let is_paid = facts.downgraded_at.is_none() && money.is_none_or(OrderMoney::is_paid);
    if is_paid { facts.ours.tier } else { Tier::Free }
}
