//! What one run of a refund's job does, once the provider was asked which refunds there are.

use serde_json::value::RawValue;

use crate::job::RefundCall;
use crate::money::{minus, sum};
use crate::settlement::payment::Facts;
use crate::settlement::stripe;
use crate::time::Time;

/// So often an order may ask for one object under another idempotency key.
pub(super) const GENERATIONS_MAX: u32 = 3;
/// So long after a failure that the provider keeps under a key, its work may still be done.
pub(super) const SETTLED_AFTER_MS: i64 = 10 * 60_000;

/// A refund as the provider lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub id: String,
    pub amount: i64,
    pub holds: bool,
    /// The order of ours that it carries out.
    pub order: Option<String>,
}

/// What the provider wrote of a refund; `None` when that can't be read.
pub fn listed(refund: &RawValue) -> Option<Listed> {
    stripe::listed_refund(refund.get())
}

/// What the job of a call does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefundStep {
    /// There is nothing left to do; says why.
    Over(&'static str),
    /// Nothing is left: others refunded it.
    Met,
    /// Ask for this much.
    Post { amount: i64 },
    /// Go on under another key, with this much.
    Next { amount: i64 },
    /// Not before then.
    Wait { until: Time },
    /// A person must decide: a reason to filter by, and a sentence.
    GiveUp { reason: &'static str, error: String },
}

/// What to do once it is known which refunds the object has.
pub fn next(facts: &Facts, call: &RefundCall, listed: &[Listed], now: Time) -> RefundStep {
    let Some(order) = facts.refund_orders.get(&call.order) else {
        let error = format!("the payment has no refund order {}", call.order);
        return RefundStep::GiveUp { reason: "unknown_order", error };
    };
    let generations = order.calls.get(&call.id);
    let Some((newest, wanted)) = generations.and_then(|all| all.last_key_value()) else {
        let error = format!("the refund order {} asks for nothing of {}", call.order, call.id);
        return RefundStep::GiveUp { reason: "unknown_order", error };
    };
    if listed.iter().any(|refund| refund.order.as_deref() == Some(&call.order)) {
        return RefundStep::Over("the refund was made");
    }
    if order.is_over(&call.id) {
        return RefundStep::Over("nothing more is asked for it; order the refund again");
    }
    if *newest > call.generation {
        return RefundStep::Over("another call took its place");
    }
    let received =
        facts.refundables().into_iter().find(|one| one.id == call.id).map_or(0, |one| one.received);
    let gone = sum(listed.iter().filter(|refund| refund.holds).map(|refund| refund.amount));
    let gone = minus(gone, facts.released_of(&call.id)).max(0);
    let left = minus(received, gone).max(0);
    let is_rest = order.wish.amount.is_none();
    if left < wanted.amount {
        return match (is_rest, left) {
            (true, 0) => RefundStep::Met,
            (true, _) => another(call, left),
            (false, _) => {
                let error = format!("{} was to be refunded, and only {left} is left", wanted.amount);
                RefundStep::GiveUp { reason: "more_than_left", error }
            }
        };
    }
    match wanted.failed_at.map(|at| at.plus_ms(SETTLED_AFTER_MS)) {
        Some(until) if now < until => RefundStep::Wait { until },
        Some(_) => another(call, wanted.amount),
        None => RefundStep::Post { amount: wanted.amount },
    }
}

fn another(call: &RefundCall, amount: i64) -> RefundStep {
    if call.generation < GENERATIONS_MAX {
        return RefundStep::Next { amount };
    }
    let error = format!("the provider was asked under {GENERATIONS_MAX} keys, and made no refund");
    RefundStep::GiveUp { reason: "no_refund_made", error }
}
