//! Reservations, slots and fulfilments as people and programs read them: the answers of the API, and the data of the events
//! that tell of them.

use serde_json::{Value, json};

use super::{Facts, OrderMoney, OrderPolicy, fulfilment};
use crate::case;
use crate::compensation::{Compensation, CompensationRule, RuleAction};
use crate::fulfilment as ful;
use crate::reservation as rsv;
use crate::slot::{Slot, SlotName, TakenPlaces};
use crate::time::Time;

/// The slot of a key, in short.
pub fn slot_id(key: &str) -> String {
    SlotName::parse(key).map_or_else(|| key.to_owned(), |name| name.id)
}

pub fn slot(key: &str, slot: &Slot, taken: TakenPlaces) -> Value {
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

pub fn reservation(id: &str, facts: &rsv::ReservationFacts, at: Time, policy: &OrderPolicy) -> Value {
    let ours = &facts.ours;
    let status = facts.status(at, policy.grace_ms);
    let is_held = status == rsv::ReservationStatus::Hold;
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

/// The same with the address of its page, for whoever may hand it to the customer. Announcements go without: their readers
/// are more.
pub fn reservation_with_link(
    id: &str,
    facts: &rsv::ReservationFacts,
    at: Time,
    policy: &OrderPolicy,
) -> Value {
    let mut shown = reservation(id, facts, at, policy);
    shown["customer_url"] = json!(reservation_link(id, facts, policy));
    shown["checkout_url"] = Value::Null;
    shown
}

/// One try to pay, with where that is done.
pub fn checkout(reservation: &str, payment: &str, facts: &Facts, number: u32) -> Value {
    let open = facts.open_session().filter(|(open, _)| *open == number).map(|(_, place)| place);
    let status = facts.session_tries.get(&number).map(|one| facts.fate(one).name());
    json!({
        "object": "checkout",
        "reservation": reservation,
        "payment": payment,
        "try": number,
        "status": status,
        "url": open.and_then(|place| place.url.as_ref()),
        "expires_at": open.and_then(|place| place.expires_at),
    })
}

/// Good for a while after the order was made, or after what it is for has begun.
pub fn reservation_link(id: &str, facts: &rsv::ReservationFacts, policy: &OrderPolicy) -> Option<String> {
    policy.links.page_of(id, facts.links, link_from(facts))
}

/// From when the time of a reservation's link counts.
pub fn link_from(facts: &rsv::ReservationFacts) -> Time {
    facts.ours.starts_at.map_or(facts.ours.at, |starts_at| starts_at.max(facts.ours.at))
}

pub(in crate::settlement) fn fulfilment_with(
    id: &str,
    facts: &ful::FulfilmentFacts,
    money: Option<&OrderMoney<'_>>,
    policy: &OrderPolicy,
) -> Value {
    fulfilment(id, facts, fulfilment::tier(facts, money), policy)
}

/// What the customer of a fulfilment has now.
pub fn tier(facts: &ful::FulfilmentFacts, payment: Option<&Facts>) -> ful::Tier {
    fulfilment::tier(facts, payment.map(|payment| OrderMoney::of("", payment)).as_ref())
}

/// `tier` is what the customer has now.
pub fn fulfilment(id: &str, facts: &ful::FulfilmentFacts, tier: ful::Tier, policy: &OrderPolicy) -> Value {
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
        "stopped_at": facts.stopped_at,
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

fn view_run(number: u32, run: &ful::FulfilmentRun) -> Value {
    json!({
        "run": number,
        "requested_at": run.requested_at,
        "status": run.result.name(),
        "ended_at": run.ended_at,
        "error": run.error,
        "url": run.url,
    })
}

/// When a rule gives the money back, if nothing changes.
pub fn refund_at(facts: &case::CaseFacts, rules: &[CompensationRule]) -> Option<Time> {
    coming(facts, rules).filter(|(rule, _)| rule.action == RuleAction::Refund).map(|(_, at)| at).min()
}

/// What rules do next, and when.
fn coming<'r>(
    facts: &'r case::CaseFacts,
    rules: &'r [CompensationRule],
) -> impl Iterator<Item = (&'r CompensationRule, Time)> {
    let episode = facts.newest().map(|(_, episode)| episode).filter(|episode| episode.resolved.is_none());
    let own = rules.iter().filter(|rule| rule.is_enabled && rule.trigger == facts.trigger);
    own.filter_map(move |rule| {
        let episode = episode.filter(|episode| !episode.fired.contains(&rule.name))?;
        Some((rule, episode.since.get(&rule.name)?.plus_ms(rule.after_ms)))
    })
}

pub fn case(id: &str, facts: &case::CaseFacts, rules: &[CompensationRule], at: Time) -> Value {
    let own: Vec<_> = rules.iter().filter(|rule| rule.trigger == facts.trigger).collect();
    let (number, episode) = facts.newest().map_or((0, None), |(number, episode)| (number, Some(episode)));
    let is_waiting = facts.status() == case::CaseStatus::Open;
    let due = |(level, reached): (&u8, &Time)| Some(reached.plus_ms(case::response_of(&own, *level)?));
    let respond_by = episode.and_then(|episode| episode.levels.iter().filter_map(due).min());
    let next: Vec<_> = coming(facts, rules)
        .map(|(rule, at)| json!({ "rule": rule.name, "at": at, "action": rule.action.name() }))
        .collect();
    json!({
        "id": id,
        "object": "case",
        "trigger": facts.trigger,
        "subject": facts.subject,
        "episode": number,
        "status": facts.status().name(),
        "level": facts.level(),
        "since": episode.and_then(|episode| episode.since.values().chain(episode.levels.values()).min()),
        "respond_by": respond_by,
        "overdue": is_waiting && respond_by.is_some_and(|by| by <= at),
        "refund_at": refund_at(facts, rules),
        "acknowledged": episode.and_then(|episode| episode.acknowledged.as_ref()),
        "resolved": episode.and_then(|episode| episode.resolved.as_ref()),
        "payment": facts.payment,
        "reservation": facts.reservation,
        "livemode": facts.livemode,
        "tenant": facts.tenant,
        "next": next,
    })
}

pub fn compensation(id: &str, record: &Compensation) -> Value {
    let mut shown = serde_json::to_value(record).expect("texts and numbers serialise");
    shown["id"] = json!(id);
    shown["object"] = json!("compensation");
    shown
}
