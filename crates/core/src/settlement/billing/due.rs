//! What is to be announced of a tenant's billing: each recorded payment once, and the status whenever it is not the one
//! that was announced last. Whatever arrives in whatever order, the last word is the status in which it ends; an old event
//! that comes late changes no status, so nothing is said about it.

use serde_json::{Value, json};

use super::{Announced, BillingDerived, BillingFacts, BillingStatus, Invoice};
use crate::settlement::reading::billing_name;
use crate::time::Time;

/// An announcement that was not made yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BillingDue {
    /// Names the fact that causes it.
    pub key: String,
    pub event_type: &'static str,
    pub about: Value,
    /// The status it tells, if it tells one.
    pub announced: Option<Announced>,
}

pub fn due(facts: &BillingFacts, derived: &BillingDerived) -> Vec<BillingDue> {
    if facts.merged_into.is_some() {
        return Vec::new();
    }
    let payments = facts.invoices.iter().filter(|(_, invoice)| invoice.is_payment()).map(payment_succeeded);
    let all = payments.chain(turned(facts, derived));
    all.filter(|due| !facts.emitted.contains(&due.key)).collect()
}

impl BillingFacts {
    /// Remembers that this was announced.
    pub fn announce(&mut self, due: &BillingDue) {
        self.emitted.insert(due.key.clone());
        if due.announced > self.announced {
            self.announced.clone_from(&due.announced);
        }
    }
}

/// The name outward ids of announcements begin with: `{anchor}/{key}`.
pub fn anchor(facts: &BillingFacts) -> String {
    let subscription = facts.subscriptions.keys().next();
    let customer = || facts.provider_customers.first();
    let object = subscription.or_else(customer).or_else(|| facts.invoices.keys().next());
    let qualified = |id: &String| match facts.realms.first() {
        Some(realm) => format!("{realm}/{id}"),
        None => id.clone(),
    };
    let tenant = || facts.tenants.first().map(|tenant| billing_name(facts.livemode, tenant));
    object.map(qualified).or_else(tenant).unwrap_or_default()
}

fn payment_succeeded((id, invoice): (&String, &Invoice)) -> BillingDue {
    BillingDue {
        key: format!("billing.payment_succeeded/{id}"),
        event_type: "billing.payment_succeeded",
        about: json!({
            "invoice": id,
            "subscription": invoice.subscription,
            "amount": invoice.amount_paid,
            "currency": invoice.currency,
            "paid_at": invoice.paid_at.map(Time::from_seconds),
            "paid_through": invoice.paid_through.map(Time::from_seconds),
            "payment_intents": invoice.intents,
        }),
        announced: None,
    }
}

/// The status, if it is another than was told.
fn turned(facts: &BillingFacts, derived: &BillingDerived) -> Option<BillingDue> {
    let event_type = told_as(derived.status)?;
    let subscription = derived.subscription.as_deref()?;
    let status = derived.status.name();
    let last = facts.announced.as_ref();
    if last.is_some_and(|last| last.status == status) {
        return None;
    }
    // Invariant: greater than the last, so that the key is new and joining never brings the last one back.
    let (at, turn) = match last {
        Some(last) if last.at >= derived.moment => (last.at, last.turn.saturating_add(1)),
        Some(_) | None => (derived.moment, 0),
    };
    let again = if turn == 0 { String::new() } else { format!("#{turn}") };
    Some(BillingDue {
        key: format!("{event_type}/{subscription}/{at}{again}"),
        event_type,
        about: json!({
            "subscription": subscription,
            "status": status,
            "previous_status": last.map(|last| &last.status),
            "at": Time::from_seconds(at),
        }),
        announced: Some(Announced { at, turn, status: status.to_owned() }),
    })
}

const fn told_as(status: BillingStatus) -> Option<&'static str> {
    match status {
        BillingStatus::Trialing => Some("billing.trialing"),
        BillingStatus::Active => Some("billing.active"),
        BillingStatus::PastDue => Some("billing.past_due"),
        BillingStatus::Unpaid => Some("billing.unpaid"),
        BillingStatus::Paused => Some("billing.paused"),
        BillingStatus::Cancelled => Some("billing.cancelled"),
        BillingStatus::None | BillingStatus::Incomplete => None,
    }
}
