//! Whose subscription it is, what it paid and whether it lets in: the second half of the truth.

use std::collections::{BTreeMap, BTreeSet};

use super::truth::{Payment, Told, Wanted};
use super::world::{Api, Invoice, Life, Subscription, World};

#[derive(Debug)]
pub struct Billing {
    pub tenant: Option<String>,
    pub live: bool,
    pub subscriptions: BTreeSet<String>,
    pub status: Option<&'static str>,
    pub access: bool,
    pub paid_invoices: usize,
    pub amount_paid: i64,
}

/// Whose subscription it is: what its own objects say, or else its customer's.
fn tenant_of(world: &World, subscription: &Subscription) -> Option<String> {
    let buyer = world.buyers.iter().find(|buyer| buyer.id == subscription.buyer);
    subscription.tenant.clone().or_else(|| buyer.and_then(|buyer| buyer.tenant.clone()))
}

/// The payment behind an invoice belongs to whoever subscribed. Since basil nothing ties one that failed to its invoice.
pub fn payment_of_invoice(world: &World, subscription: &Subscription, invoice: &Invoice) -> Payment {
    let is_tied = invoice.paid || subscription.api == Api::Old;
    let (received, told) = if invoice.paid { (invoice.amount, 1) } else { (0, 0) };
    Payment {
        members: [format!("pi_{}", invoice.name)].into(),
        tenant: if is_tied { Wanted::of(tenant_of(world, subscription)) } else { Wanted::Any },
        live: Some(subscription.live),
        status: Some(if invoice.paid { "paid" } else { "failed" }),
        received,
        told: Told { paid: (told, told), ..Told::default() },
        ..Payment::default()
    }
}

/// A tenant, or else a customer; and the mode.
type Owner = (Option<String>, Option<String>, bool);

/// One record for each tenant and mode; of what is nobody's, one for each customer.
pub fn owners(world: &World) -> BTreeMap<Owner, Vec<&Subscription>> {
    let mut owners = BTreeMap::<_, Vec<_>>::new();
    for one in &world.subscriptions {
        let tenant = tenant_of(world, one);
        let customer = if tenant.is_none() { Some(one.buyer.clone()) } else { None };
        owners.entry((tenant, customer, one.live)).or_default().push(one);
    }
    owners
}

pub fn record(owner: Owner, all: &[&Subscription], now: i64) -> Billing {
    let (tenant, _, live) = owner;
    let paid: Vec<_> =
        all.iter().flat_map(|one| one.invoices(now)).filter(|one| one.paid && one.amount > 0).collect();
    let statuses: BTreeSet<_> = all.iter().map(|one| status_of(one.life)).collect();
    let best =
        ["active", "trialing", "past_due", "cancelled"].into_iter().find(|status| statuses.contains(status));
    // Which of a trial and a paid one is the better is nowhere said.
    let is_open = statuses.contains("active") && statuses.contains("trialing");
    Billing {
        tenant,
        live,
        subscriptions: all.iter().map(|one| one.id()).collect(),
        status: best.filter(|_| !is_open),
        access: all.iter().any(|one| lets_in(one.life)),
        paid_invoices: paid.len(),
        amount_paid: paid.iter().map(|one| one.amount).sum(),
    }
}

fn status_of(life: Life) -> &'static str {
    match life {
        Life::Trial => "trialing",
        Life::TrialPaid | Life::Active | Life::Recovered | Life::Forgotten => "active",
        Life::PastDue => "past_due",
        Life::Cancelled => "cancelled",
    }
}

/// At the end of the history. What was paid for is over when its time and three days of grace are over.
fn lets_in(life: Life) -> bool {
    match life {
        Life::Trial | Life::TrialPaid | Life::Active | Life::Recovered => true,
        Life::PastDue | Life::Cancelled | Life::Forgotten => false,
    }
}
