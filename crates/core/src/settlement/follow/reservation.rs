//! What follows for a reservation from where its money stands, and from the clock.

use super::{LatePayment, OrderMoney, OrderPolicy, Voucher};
use crate::reservation::{Cancelled, ReservationFacts, ReservationStatus};
use crate::slot::{Claim, Places, Untaken};
use crate::time::{HOUR_MS, Time};

/// What a reservation asks of others.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// The money that came for nothing must go back: the order's key, and what triggered it.
    pub refund: Option<(String, &'static str)>,
    /// Other places were found in place of those that had lapsed; why.
    pub reassigned: Option<&'static str>,
    /// When the clock may next change something.
    pub next: Option<Time>,
    /// Blocks of its slot that must be known first.
    pub blocks: Vec<u32>,
}

/// OrderMoney came when the hold was over, though it had been paid in time.
pub const WEBHOOK_DELAY: &str = "WEBHOOK_DELAY";
/// OrderMoney came for what had lapsed or was cancelled.
pub const EXPIRED_PAYMENT: &str = "EXPIRED_PAYMENT";

/// How often, and how long, places are kept for money that the provider calls paid and that is not here.
const AWAITED_MAX: u32 = 3;
const AWAITED_MS: i64 = 10 * 60_000;

/// Works out where a reservation stands now. `money` is `None` where nothing is to be paid.
pub fn follow(
    id: &str,
    facts: &mut ReservationFacts,
    places: &mut Places<'_>,
    money: Option<&OrderMoney<'_>>,
    policy: &OrderPolicy,
) -> Wants {
    let (at, grace) = (places.at, policy.grace_ms);
    let mut wants = Wants::default();
    // Its own places must be known before any of them is given back or sold.
    let unknown = |parts: &std::collections::BTreeMap<u32, u32>| {
        parts.keys().filter(|n| !places.blocks.contains_key(n)).copied().collect::<Vec<_>>()
    };
    wants.blocks = facts.parts().map(unknown).unwrap_or_default();
    if !wants.blocks.is_empty() {
        return wants;
    }
    if money.is_some_and(OrderMoney::is_refunded) && facts.cancelled.is_none() {
        facts.cancelled = Some(Cancelled { at, by: "SYSTEM".into(), why: "refunded".into(), refund: false });
    }
    let is_paid = facts.confirm.is_some() || money.is_none_or(OrderMoney::is_paid);
    match facts.status(at, grace) {
        ReservationStatus::Cancelled => {
            places.free(id);
            facts.lapsed = facts.lapsed.max(facts.claimed());
            wants.refund = refund_of_cancelled(id, facts, money);
        }
        ReservationStatus::Confirmed => {}
        ReservationStatus::Hold if is_paid => confirm(id, facts, places, facts.claimed()),
        ReservationStatus::Hold => {
            if money.is_some_and(OrderMoney::is_over) {
                lapse(id, facts, places);
                return wants;
            }
            if let Some(money) = money.filter(|money| money.is_delayed()) {
                facts.until = facts.until.max(delayed_until(facts, money, at, policy));
            } else if at >= facts.until
                && money.is_some_and(OrderMoney::is_promised)
                && facts.awaited < AWAITED_MAX
            {
                facts.awaited += 1;
                facts.until = at.plus_ms(AWAITED_MS);
            }
            let until = facts.until;
            places.change(id, facts.claimed(), |claim| claim.until = until);
            // Sessions are expired, and vouchers that nobody told of are given their time, before the places are given away.
            let has_sessions = money.is_some_and(|money| {
                let is_asked = money.is_delayed() && matches!(money.voucher(at), Voucher::AskedFor { .. });
                is_asked || !money.facts.session_tries.is_empty()
            });
            wants.next = Some(if has_sessions && at < until { until } else { until.plus_ms(grace) });
        }
        ReservationStatus::Expired => {
            lapse(id, facts, places);
            if is_paid {
                late(id, facts, places, money, policy, &mut wants);
            }
        }
    }
    wants
}

fn confirm(id: &str, facts: &mut ReservationFacts, places: &mut Places<'_>, number: u32) {
    facts.confirmed = number;
    facts.confirmed_at = facts.confirmed_at.or(Some(places.at));
    places.change(id, number, |claim| claim.sold = true);
}

fn lapse(id: &str, facts: &mut ReservationFacts, places: &mut Places<'_>) {
    facts.lapsed = facts.lapsed.max(facts.claimed());
    places.free(id);
}

/// The places lapsed, and the money came all the same.
fn late(
    id: &str,
    facts: &mut ReservationFacts,
    places: &mut Places<'_>,
    money: Option<&OrderMoney<'_>>,
    policy: &OrderPolicy,
    wants: &mut Wants,
) {
    let was_in_time = is_in_time(facts, money, places.at, policy);
    let may_have_others =
        was_in_time || facts.confirm.is_some() || policy.late_payment == LatePayment::Reassign;
    if !may_have_others || money.is_some_and(|money| money.kept() == 0) {
        return;
    }
    let number = facts.claimed() + 1;
    let claim = Claim { number, quantity: facts.ours.quantity, until: places.at, sold: true };
    match places.take(id, &claim) {
        Ok(parts) => {
            facts.claims.insert(number, parts);
            confirm(id, facts, places, number);
            wants.reassigned = Some(if was_in_time { WEBHOOK_DELAY } else { EXPIRED_PAYMENT });
        }
        // Nobody's fault but ours: whoever pays too late falls to the rule for that.
        Err(Untaken::Full(_)) if was_in_time => {
            wants.refund = Some((format!("rule/{WEBHOOK_DELAY}/{id}/1"), WEBHOOK_DELAY));
        }
        Err(Untaken::Full(_)) => {}
        Err(Untaken::Unknown(blocks)) => wants.blocks = blocks,
    }
}

/// How long those may take who pay at the konbini: as long as their voucher is good, but not beyond what is sold.
fn delayed_until(facts: &ReservationFacts, money: &OrderMoney<'_>, at: Time, policy: &OrderPolicy) -> Time {
    let longest = facts.ours.at.plus_ms(policy.delayed_max_ms);
    let longest = facts.ours.starts_at.map_or(longest, |starts_at| starts_at.min(longest));
    match money.voucher(at) {
        // The shop's till may be slow to tell.
        Voucher::Until(until) => until.plus_ms(HOUR_MS).min(longest),
        Voucher::AskedFor { by } => by.min(longest),
        Voucher::Endless => longest,
    }
}

fn refund_of_cancelled(
    id: &str,
    facts: &ReservationFacts,
    money: Option<&OrderMoney<'_>>,
) -> Option<(String, &'static str)> {
    let cancelled = facts.cancelled.as_ref()?;
    let kept = money.is_some_and(|money| money.kept() > 0);
    if !kept || money.is_some_and(OrderMoney::is_refunded) {
        return None;
    }
    let trigger = if cancelled.by == "CUSTOMER" { "CUSTOMER_CANCEL" } else { "OPERATOR" };
    cancelled.refund.then(|| (format!("cancel/{id}"), trigger))
}

/// Whether the customer paid while the hold lasted, whenever we heard of it.
pub fn is_in_time(
    facts: &ReservationFacts,
    money: Option<&OrderMoney<'_>>,
    at: Time,
    policy: &OrderPolicy,
) -> bool {
    let over = facts.until.plus_ms(policy.grace_ms);
    money.is_some_and(|money| money.is_paid() && money.paid_at(at) <= over)
}
