//! How far the tries to pay came, as long as no money is here: which are under way, and which failed.
//!
//! An intent goes back and forth: declined, tried again, a voucher printed, the voucher run out. So its newest snapshot
//! counts, by the moment that the provider wrote on the event; of one second, the failure. What is final (cancelled,
//! succeeded) needs no moment. Where a provider says no moments, each try is an intent of its own that fails for good.

use std::collections::BTreeSet;

use super::amounts::intent_of;
use super::{
    Charge, ChargeStatus, CheckoutSession, Facts, Intent, IntentStatus, PaymentStatus, SessionStatus,
};

/// How many tries failed. Each counts once, however many objects and events tell of it.
pub(super) fn failed(facts: &Facts) -> usize {
    let of_charges = facts.charges.iter().filter(|(_, charge)| charge.status == ChargeStatus::Failed);
    let of_intents = facts.intents.values().flat_map(|intent| &intent.tries);
    let named: BTreeSet<&String> = of_charges.map(|(id, _)| id).chain(of_intents).collect();
    let is_named = |id: &String, intent: &Intent| {
        let own = |charge: &&String| {
            let of = facts.charges.get(*charge).and_then(|known| intent_of(facts, charge, known));
            of == Some(id)
        };
        !intent.tries.is_empty() || named.iter().any(own)
    };
    let unnamed = facts.intents.iter().filter(|(id, intent)| intent.failed && !is_named(id, intent)).count();
    let of_sessions = facts.sessions.values().any(|session| session.failed);
    named.len().saturating_add(unnamed).max(usize::from(of_sessions))
}

/// What it ended as, if every intent was cancelled or ran out of time; or, where none is known, every reservation was let
/// go.
pub(super) fn ended(facts: &Facts) -> Option<PaymentStatus> {
    let Facts { intents, charges, .. } = facts;
    if intents.is_empty() {
        let let_go = !charges.is_empty() && charges.values().all(|charge| charge.let_go);
        return let_go.then_some(PaymentStatus::Cancelled);
    }
    let is_over = |intent: &Intent| matches!(intent.status, IntentStatus::Cancelled | IntentStatus::Expired);
    let expired = intents.values().any(|intent| intent.status == IntentStatus::Expired);
    let ended = if expired { PaymentStatus::Expired } else { PaymentStatus::Cancelled };
    intents.values().all(is_over).then_some(ended)
}

/// The customer has done something, and the money is on its way.
pub(super) fn is_under_way(facts: &Facts) -> bool {
    facts.intents.iter().any(|(id, intent)| under_way(facts, id, intent).is_some())
        || is_reserved_or_pending(facts)
        || facts.sessions.values().any(|session| waits(facts, session))
}

/// What an intent is doing, if the customer has done something.
pub(super) fn under_way(facts: &Facts, id: &str, intent: &Intent) -> Option<IntentStatus> {
    let (status, failed) = intent.now();
    let is_over = match status {
        // A voucher comes after the charges that failed before it. Without a moment nobody knows that.
        IntentStatus::RequiresAction => intent.newest.is_none() && all_charges_failed(facts, id, intent),
        IntentStatus::Processing => all_charges_failed(facts, id, intent),
        IntentStatus::Waiting
        | IntentStatus::Failed
        | IntentStatus::Expired
        | IntentStatus::Cancelled
        | IntentStatus::Succeeded => true,
    };
    Some(status).filter(|_| !failed && !is_over)
}

/// Something was charged, and nothing of it is left that could still succeed. A charge that is not known yet could.
fn all_charges_failed(facts: &Facts, id: &str, intent: &Intent) -> bool {
    let own = facts.charges.iter().filter(|(charge, known)| intent_of(facts, charge, known) == Some(id));
    let mut charges: BTreeSet<&String> = own.map(|(charge, _)| charge).collect();
    charges.extend(&intent.charges);
    let has_failed = |charge: &&String| {
        let known = facts.charges.get(*charge);
        intent.tries.contains(*charge) || known.is_some_and(|known| known.status == ChargeStatus::Failed)
    };
    !charges.is_empty() && charges.iter().all(has_failed)
}

impl Intent {
    /// Where it stands, and whether its last try failed.
    fn now(&self) -> (IntentStatus, bool) {
        match &self.newest {
            _ if self.status > IntentStatus::Processing => (self.status, self.status == IntentStatus::Failed),
            Some(newest) => (newest.status, newest.failed),
            None => (self.status, self.failed),
        }
    }
}

/// The bank has said yes, or has not answered yet.
pub(super) fn is_reserved_or_pending(facts: &Facts) -> bool {
    facts.charges.iter().any(|(id, charge)| is_open(facts, id, charge))
}

/// An intent that was cancelled took its charge along.
fn is_open(facts: &Facts, id: &String, charge: &Charge) -> bool {
    let intent = intent_of(facts, id, charge).and_then(|intent| facts.intents.get(intent));
    let is_over = intent.is_some_and(|intent| is_gone(intent.status) || intent.tries.contains(id));
    let is_here = match charge.status {
        ChargeStatus::Failed => false,
        ChargeStatus::Pending => true,
        ChargeStatus::Succeeded => charge.captured == 0 && !charge.let_go,
    };
    is_here && !is_over
}

const fn is_gone(status: IntentStatus) -> bool {
    matches!(status, IntentStatus::Cancelled | IntentStatus::Expired)
}

/// A session was completed without money: it is on its way, unless a later try of its intent failed.
pub(super) fn waits(facts: &Facts, session: &CheckoutSession) -> bool {
    let is_open = session.status == SessionStatus::Complete && !session.paid && !session.failed;
    let intent = session.intent.as_ref().and_then(|intent| facts.intents.get(intent));
    let failed_since = intent.is_some_and(|intent| match (&intent.newest, intent.now()) {
        (_, (status, _)) if is_gone(status) => true,
        (Some(newest), (_, true)) => Some(newest.at) >= session.completed_at,
        (None, (_, failed)) => failed,
        (Some(_), (_, false)) => false,
    });
    is_open && !failed_since
}
