//! Reservations, slots and fulfilments as people and programs read them: the answers of the API, and the data of the events
//! that tell of them.

use serde_json::{Value, json};

use super::{Facts, Money, OrderPolicy, fulfilment};
use crate::fulfilment as ful;
use crate::reservation as rsv;
use crate::slot::{Slot, SlotName, Taken};
use crate::time::Time;

/// The slot of a key, in short.
pub fn slot_id(key: &str) -> String {
    SlotName::parse(key).map_or_else(|| key.to_owned(), |name| name.id)
}

pub fn slot(key: &str, slot: &Slot, taken: Taken) -> Value {
    let name = SlotName::parse(key);
    json!({
        "id": slot_id(key),
        "object": "slot",
        "capacity": slot.capacity,
        "held": taken.held,
        "sold": taken.sold,
        "free": slot.capacity.saturating_sub(taken.all()),
        "starts_at": slot.starts_at,
        "title": slot.title,
        "livemode": name.as_ref().map(|name| name.livemode),
        "tenant": name.and_then(|name| name.tenant),
    })
}

pub fn reservation(id: &str, facts: &rsv::Facts, at: Time, policy: &OrderPolicy) -> Value {
    let ours = &facts.ours;
    let status = facts.status(at, policy.grace_ms);
    let is_held = status == rsv::Status::Hold;
    json!({
        "id": id,
        "object": "reservation",
        "status": status.name(),
        "slot": slot_id(&ours.slot),
        "quantity": ours.quantity,
        "starts_at": ours.starts_at,
        "hold_expires_at": is_held.then_some(facts.until),
        "cancel_until": facts.cancel_until(policy.cancel_until_ms),
        "confirmed_at": facts.confirmed_at,
        "cancelled": facts.cancelled.as_ref().map(|one| json!({ "at": one.at, "by": one.by, "reason": one.why })),
        "reference": ours.reference,
        "payment": ours.payment,
        "fulfilment": ours.fulfilment,
        "customer": ours.customer,
        "language": ours.language,
        "livemode": ours.livemode,
        "tenant": ours.tenant,
        "metadata": ours.metadata,
        "created_at": ours.at,
    })
}

pub(in crate::settlement) fn fulfilment_with(
    id: &str,
    facts: &ful::Facts,
    money: Option<&Money<'_>>,
    policy: &OrderPolicy,
) -> Value {
    fulfilment(id, facts, fulfilment::tier(facts, money), policy)
}

/// What the customer of a fulfilment has now.
pub fn tier(facts: &ful::Facts, payment: Option<&Facts>) -> ful::Tier {
    fulfilment::tier(facts, payment.map(|payment| Money::of("", payment)).as_ref())
}

/// `tier` is what the customer has now.
pub fn fulfilment(id: &str, facts: &ful::Facts, tier: ful::Tier, policy: &OrderPolicy) -> Value {
    let ours = &facts.ours;
    let runs: Vec<_> = facts.runs.iter().map(|(number, run)| view_run(*number, run)).collect();
    let kept = facts.downgraded_at.map(|at| at.plus_ms(policy.keep_after_refund_ms));
    json!({
        "id": id,
        "object": "fulfilment",
        "kind": ours.kind,
        "name": ours.name,
        "status": facts.status(policy.attempts).name(),
        "tier": tier.name(),
        "retry_count": facts.failed_runs(),
        "last_error": facts.last_error(),
        "expires_at": kept.or(ours.expires_at),
        "downgraded": facts.downgraded_at.is_some(),
        "url": facts.newest().and_then(|(_, run)| run.url.as_ref()),
        "reservation": ours.reservation,
        "payment": ours.payment,
        "customer": ours.customer,
        "input": ours.input.as_deref().and_then(|input| serde_json::from_str::<Value>(input).ok()),
        "livemode": ours.livemode,
        "tenant": ours.tenant,
        "created_at": ours.at,
        "runs": runs,
    })
}

fn view_run(number: u32, run: &ful::Run) -> Value {
    json!({
        "run": number,
        "requested_at": run.requested_at,
        "status": run.result.name(),
        "ended_at": run.ended_at,
        "error": run.error,
        "url": run.url,
    })
}
