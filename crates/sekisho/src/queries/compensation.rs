//! The rules that are in force for orders, and how they stand for one: everything that belongs to it is loaded, and the core
//! is asked.

use std::collections::BTreeSet;

use sekisho_core::Time;
use sekisho_core::case;
use sekisho_core::compensation as rule;
use sekisho_core::settlement::follow::{self, OrderFacts, OrderPolicy, RuleStanding};
use sekisho_core::settlement::payment::{Derived, Facts};
use sekisho_core::state::{Key, Kind};
use sekisho_core::{fulfilment as ful, reservation as rsv};
use sekisho_store::{CLAIM_MAX, Error, Result, Store};

use super::look_up::payment_state;
use super::states::{load_typed, read};
use crate::types::{CheckedRule, CompensationRule, RuleCheck};

/// Most parts of one order that rules are asked about.
const PARTS_MAX: usize = 1_000;

/// Every rule, in force or switched off.
pub fn compensation_rules(policy: &OrderPolicy) -> impl Iterator<Item = CompensationRule> + '_ {
    policy.rules.iter().map(|rule| CompensationRule {
        name: rule.name.clone(),
        object: "compensation_rule".to_owned(),
        trigger: rule.trigger.clone(),
        when: rule.when.as_str().to_owned(),
        after_seconds: rule.after_ms / 1_000,
        action: rule.action.name().to_owned(),
        level: rule.level,
        tell: rule.tell.clone(),
        respond_within_seconds: rule.respond_within_ms / 1_000,
        enabled: rule.is_enabled,
    })
}

/// How rules stand for the order that this payment, reservation or fulfilment belongs to, and whose it is; `None` if there is
/// none.
pub async fn check_rules(
    store: &dyn Store,
    policy: &OrderPolicy,
    id: &str,
    at: Time,
) -> Result<Option<(RuleCheck, Option<String>)>> {
    let Some(mut order) = order(store, id).await? else { return Ok(None) };
    let cases: Vec<Key> = order.case_ids(policy).iter().map(|id| Key::new(Kind::Case, id)).collect();
    for piece in cases.chunks(CLAIM_MAX) {
        for (key, state) in store.load(Vec::new(), piece.to_vec()).await?.states {
            order.cases.insert(key.id, read::<case::CaseFacts>(&state)?);
        }
    }
    let rules = order.check(policy, at).iter().map(checked).collect();
    let check = RuleCheck { order: id.to_owned(), object: "rule_check".to_owned(), at, rules };
    Ok(Some((check, tenant(&order))))
}

/// All that belongs to one order, from any part of it.
pub(super) async fn order(store: &dyn Store, id: &str) -> Result<Option<OrderFacts>> {
    let mut order = OrderFacts::default();
    let (mut waiting, mut seen) = (vec![id.to_owned()], BTreeSet::new());
    while let Some(id) = waiting.pop() {
        if seen.len() == PARTS_MAX || !seen.insert(id.clone()) {
            continue;
        }
        if id.starts_with(rsv::TAG) {
            let key = Key::new(Kind::Reservation, &*id);
            let Some(facts) = load_typed::<rsv::ReservationFacts>(store, &key).await? else { continue };
            waiting.extend(facts.ours.payment.clone().into_iter().chain(facts.ours.fulfilment.clone()));
            order.reservations.insert(id, facts);
        } else if id.starts_with(ful::TAG) {
            let key = Key::new(Kind::Fulfilment, &*id);
            let Some(facts) = load_typed::<ful::FulfilmentFacts>(store, &key).await? else { continue };
            waiting.extend(facts.ours.payment.clone().into_iter().chain(facts.ours.reservation.clone()));
            order.fulfilments.insert(id, facts);
        } else if !id.starts_with(case::TAG) && order.payment.is_none() {
            let Some(state) = payment_state(store, &id).await? else { continue };
            let facts = Facts::parse(&state.facts).map_err(Error::corrupt)?;
            waiting.extend(facts.members.iter().cloned());
            order.payment = Some((state.key.id, facts));
        }
    }
    let is_found = order.payment.is_some() || !order.reservations.is_empty() || !order.fulfilments.is_empty();
    Ok(is_found.then_some(order))
}

fn tenant(order: &OrderFacts) -> Option<String> {
    let reserved = order.reservations.values().find_map(|facts| facts.ours.tenant.clone());
    let made = || order.fulfilments.values().find_map(|facts| facts.ours.tenant.clone());
    let paid = || order.payment.as_ref().and_then(|(_, facts)| Derived::of(facts).tenant);
    reserved.or_else(made).or_else(paid)
}

fn checked(one: &follow::CheckedRule<'_>) -> CheckedRule {
    let rule::CompensationRule { name, action, level, .. } = one.rule;
    let (since, acts_at, error) = match &one.standing {
        RuleStanding::Idle => (None, None, None),
        RuleStanding::Waiting { since, at } => (Some(*since), Some(*at), None),
        RuleStanding::Done { since } | RuleStanding::Stopped { since } => (Some(*since), None, None),
        RuleStanding::Unanswered { why } => (None, None, Some(why.clone())),
    };
    CheckedRule {
        rule: name.clone(),
        subject: one.subject.clone(),
        status: one.standing.name().to_owned(),
        since,
        acts_at,
        action: action.name().to_owned(),
        level: *level,
        case: one.case.clone(),
        error,
    }
}
