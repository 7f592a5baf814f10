//! Subscriptions, invoices and the customers behind them, in the shapes before and since 2025-03-31: the period on the
//! subscription or on its items, the invoice's subscription on it or in its parent, what pays an invoice on it or in an
//! object of its own. A value that is not known yet leaves what is known alone.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::{Context, Metadata, Ref, amount, currency, labels, unreadable};
use crate::settlement::billing::{self, BillingFacts, BillingSnapshot, InvoiceStatus, SubscriptionStatus};
use crate::settlement::payment;
use crate::settlement::reading::{Reading, UnreadableEvent};

pub(super) fn subscription(context: &Context<'_>, object: &str) -> Result<Reading, UnreadableEvent> {
    let object: Subscription = serde_json::from_str(object).map_err(unreadable)?;
    let subscription = billing::Subscription {
        currency: currency(object.currency.as_deref())?,
        newest: Some(object.snapshot(context)),
    };
    let mut facts = customer_facts(context, object.customer, object.metadata, None);
    facts.subscriptions.insert(object.id, subscription);
    Ok(billing_reading(context, facts))
}

pub(super) fn invoice(context: &Context<'_>, object: &str) -> Result<Reading, UnreadableEvent> {
    let mut object: Invoice = serde_json::from_str(object).map_err(unreadable)?;
    // A look ahead is no invoice, and has no id of its own.
    let Some(id) = object.id.take().filter(|_| context.event_type != "invoice.upcoming") else {
        return Ok(Reading::default());
    };
    let (subscription, metadata) = object.subscription();
    let is_subscribed = subscription.is_some() || object.lines().any(Line::is_subscribed);
    let intent = object.payment_intent.take().map(Ref::into_id);
    let charge = object.charge.take().map(Ref::into_id);
    let mut invoice = object.known(context, subscription.is_some())?;
    invoice.subscription.clone_from(&subscription);
    invoice.intents.extend(intent.clone());

    let mut facts = customer_facts(context, object.customer, Some(metadata), None);
    facts.subscriptions.extend(subscription.map(|id| (id, billing::Subscription::default())));
    facts.invoices.insert(id.clone(), invoice);
    let payment = paying(context, id, intent.into_iter().chain(charge), &facts);
    // A single invoice is nobody's subscription: it is a payment and nothing else.
    let billing = is_subscribed.then(|| part(context, facts));
    Ok(Reading { payment, billing, ..Reading::default() })
}

pub(super) fn invoice_payment(context: &Context<'_>, object: &str) -> Result<Reading, UnreadableEvent> {
    let object: InvoicePayment = serde_json::from_str(object).map_err(unreadable)?;
    let Some(id) = object.invoice.map(Ref::into_id) else { return Ok(Reading::default()) };
    let (intent, charge) = object.payment.map_or((None, None), |by| (by.payment_intent, by.charge));
    let (intent, charge) = (intent.map(Ref::into_id), charge.map(Ref::into_id));
    let invoice = billing::Invoice { intents: intent.iter().cloned().collect(), ..Default::default() };

    let mut facts = BillingFacts::default();
    facts.invoices.insert(id.clone(), invoice);
    let payment = paying(context, id, intent.into_iter().chain(charge), &facts);
    Ok(Reading { payment, ..billing_reading(context, facts) })
}

/// Says something only when it names a tenant.
pub(super) fn customer(context: &Context<'_>, object: &str) -> Result<Reading, UnreadableEvent> {
    let object: Customer = serde_json::from_str(object).map_err(unreadable)?;
    let mut facts = customer_facts(context, Some(Ref::Id(object.id.clone())), object.metadata, None);
    if facts.tenants.is_empty() {
        return Ok(Reading::default());
    }
    facts.declared.insert(object.id);
    Ok(billing_reading(context, facts))
}

/// What a checkout for a subscription links. One that led to no subscription says nothing.
pub(super) fn session(context: &Context<'_>, object: &str) -> Result<Option<BillingFacts>, UnreadableEvent> {
    let object: Session = serde_json::from_str(object).map_err(unreadable)?;
    let Some(subscription) = object.subscription.filter(|_| object.mode.as_deref() == Some("subscription"))
    else {
        return Ok(None);
    };
    let subscription = subscription.into_id();
    let mut facts = customer_facts(context, object.customer, object.metadata, object.client_reference_id);
    if let Some(invoice) = object.invoice {
        let known = billing::Invoice { subscription: Some(subscription.clone()), ..Default::default() };
        facts.invoices.insert(invoice.into_id(), known);
    }
    facts.subscriptions.insert(subscription, billing::Subscription::default());
    Ok(Some(part(context, facts)))
}

#[derive(Deserialize)]
struct Subscription {
    id: String,
    status: Option<String>,
    customer: Option<Ref>,
    currency: Option<String>,
    current_period_start: Option<i64>,
    current_period_end: Option<i64>,
    items: Option<List<Item>>,
    trial_end: Option<i64>,
    cancel_at: Option<i64>,
    cancel_at_period_end: Option<bool>,
    ended_at: Option<i64>,
    metadata: Option<Metadata>,
}

#[derive(Deserialize)]
struct List<T> {
    data: Vec<T>,
}

#[derive(Deserialize)]
struct Item {
    current_period_start: Option<i64>,
    current_period_end: Option<i64>,
}

impl Subscription {
    fn snapshot(&self, context: &Context<'_>) -> BillingSnapshot {
        let status = subscription_status(self.status.as_deref());
        let (period_start, period_end) = self.period();
        let at_period_end = period_end.filter(|_| self.cancel_at_period_end == Some(true));
        BillingSnapshot {
            ended: matches!(status, SubscriptionStatus::Canceled | SubscriptionStatus::IncompleteExpired),
            at: context.created,
            by: match context.event_type {
                "customer.subscription.created" => 0,
                "customer.subscription.deleted" => 2,
                _ => 1,
            },
            status,
            period_start,
            period_end,
            trial_end: self.trial_end,
            cancel_at: self.cancel_at.or(at_period_end),
            ended_at: self.ended_at,
        }
    }

    /// Items may be paid in different rhythms: the period that ends first is the current one.
    fn period(&self) -> (Option<i64>, Option<i64>) {
        let items = self.items.iter().flat_map(|items| &items.data);
        let periods = items.filter_map(|item| Some((item.current_period_end?, item.current_period_start)));
        match (self.current_period_end, periods.min()) {
            (None, Some((end, start))) => (start, Some(end)),
            (end, _) => (self.current_period_start, end),
        }
    }
}

fn subscription_status(text: Option<&str>) -> SubscriptionStatus {
    match text {
        Some("trialing") => SubscriptionStatus::Trialing,
        Some("past_due") => SubscriptionStatus::PastDue,
        Some("active") => SubscriptionStatus::Active,
        Some("paused") => SubscriptionStatus::Paused,
        Some("unpaid") => SubscriptionStatus::Unpaid,
        Some("incomplete_expired") => SubscriptionStatus::IncompleteExpired,
        Some("canceled") => SubscriptionStatus::Canceled,
        // A status that is not known yet opens no door, ends nothing, is not announced, gives way to every other of its
        // second, and money paid from then on makes it active: all of that is what incomplete means.
        _ => SubscriptionStatus::Incomplete,
    }
}

#[derive(Deserialize)]
struct Invoice {
    id: Option<String>,
    status: Option<String>,
    paid: Option<bool>,
    paid_out_of_band: Option<bool>,
    customer: Option<Ref>,
    currency: Option<String>,
    amount_due: Option<i64>,
    amount_paid: Option<i64>,
    period_end: Option<i64>,
    lines: Option<List<Line>>,
    status_transitions: Option<StatusTransitions>,
    metadata: Option<Metadata>,
    parent: Option<Parent>,
    subscription: Option<Ref>,
    subscription_details: Option<SubscriptionDetails>,
    payment_intent: Option<Ref>,
    charge: Option<Ref>,
}

#[derive(Deserialize)]
struct Parent {
    subscription_details: Option<SubscriptionDetails>,
}

#[derive(Deserialize)]
struct SubscriptionDetails {
    subscription: Option<Ref>,
    metadata: Option<Metadata>,
}

#[derive(Deserialize)]
struct StatusTransitions {
    paid_at: Option<i64>,
}

#[derive(Deserialize)]
struct Line {
    period: Option<Period>,
    subscription: Option<Ref>,
    parent: Option<LineParent>,
}

#[derive(Deserialize)]
struct Period {
    end: Option<i64>,
}

#[derive(Deserialize)]
struct LineParent {
    subscription_item_details: Option<LineDetails>,
    invoice_item_details: Option<LineDetails>,
}

#[derive(Deserialize)]
struct LineDetails {
    subscription: Option<Ref>,
}

impl Invoice {
    /// The subscription it is for, and what the merchant wrote on it or else on the subscription.
    fn subscription(&mut self) -> (Option<String>, Metadata) {
        let mut subscription = self.subscription.take().map(Ref::into_id);
        let mut metadata = Metadata::new();
        let in_parent = self.parent.take().and_then(|parent| parent.subscription_details);
        for details in self.subscription_details.take().into_iter().chain(in_parent) {
            subscription = subscription.or(details.subscription.map(Ref::into_id));
            metadata.extend(details.metadata.into_iter().flatten());
        }
        metadata.extend(self.metadata.take().into_iter().flatten());
        (subscription, metadata)
    }

    fn known(&self, context: &Context<'_>, subscribed: bool) -> Result<billing::Invoice, UnreadableEvent> {
        let status = self.status();
        let is_paid = status == InvoiceStatus::Paid;
        let amount_due = amount(self.amount_due)?;
        let amount_paid = amount(self.amount_paid)?;
        let elsewhere = is_paid && self.paid_out_of_band == Some(true);
        Ok(billing::Invoice {
            status,
            failed_at: (context.event_type == "invoice.payment_failed").then_some(context.created),
            paid_at: self.paid_at(context).filter(|_| is_paid),
            amount_due,
            amount_paid: if elsewhere { amount_paid.max(amount_due) } else { amount_paid },
            currency: currency(self.currency.as_deref())?,
            paid_through: self.paid_through().filter(|_| subscribed),
            ..Default::default()
        })
    }

    fn status(&self) -> InvoiceStatus {
        match self.status.as_deref() {
            Some("open") => InvoiceStatus::Open,
            Some("uncollectible") => InvoiceStatus::Uncollectible,
            Some("void") => InvoiceStatus::Void,
            Some("paid") => InvoiceStatus::Paid,
            None if self.paid == Some(true) => InvoiceStatus::Paid,
            // The least: it takes nothing away from what is known.
            _ => InvoiceStatus::Draft,
        }
    }

    fn paid_at(&self, context: &Context<'_>) -> Option<i64> {
        let tells = matches!(context.event_type, "invoice.paid" | "invoice.payment_succeeded");
        let said = self.status_transitions.as_ref().and_then(|transitions| transitions.paid_at);
        said.or(tells.then_some(context.created))
    }

    fn lines(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().flat_map(|lines| &lines.data)
    }

    fn paid_through(&self) -> Option<i64> {
        let lines = self.lines().filter(|line| line.is_subscribed());
        let ends = lines.filter_map(|line| line.period.as_ref()?.end);
        ends.max().or(self.period_end)
    }
}

impl Line {
    fn is_subscribed(&self) -> bool {
        let by_parent = |parent: &LineParent| {
            let details = [&parent.subscription_item_details, &parent.invoice_item_details];
            details.into_iter().flatten().any(|details| details.subscription.is_some())
        };
        self.subscription.is_some() || self.parent.as_ref().is_some_and(by_parent)
    }
}

#[derive(Deserialize)]
struct InvoicePayment {
    invoice: Option<Ref>,
    payment: Option<PaidBy>,
}

#[derive(Deserialize)]
struct PaidBy {
    payment_intent: Option<Ref>,
    charge: Option<Ref>,
}

#[derive(Deserialize)]
struct Customer {
    id: String,
    metadata: Option<Metadata>,
}

#[derive(Deserialize)]
struct Session {
    mode: Option<String>,
    subscription: Option<Ref>,
    customer: Option<Ref>,
    invoice: Option<Ref>,
    client_reference_id: Option<String>,
    metadata: Option<Metadata>,
}

/// Whose it is, as far as the object says.
fn customer_facts(
    context: &Context<'_>,
    customer: Option<Ref>,
    metadata: Option<Metadata>,
    client_reference_id: Option<String>,
) -> BillingFacts {
    let tenant = labels(metadata, client_reference_id).first(&context.references.tenant);
    BillingFacts {
        tenants: tenant.into_iter().collect(),
        provider_customers: customer.map(Ref::into_id).into_iter().collect(),
        ..Default::default()
    }
}

fn billing_reading(context: &Context<'_>, facts: BillingFacts) -> Reading {
    Reading { billing: Some(part(context, facts)), ..Reading::default() }
}

/// Everything the facts speak of leads to them.
fn part(context: &Context<'_>, mut facts: BillingFacts) -> BillingFacts {
    let realm = &context.realm;
    facts.livemode = realm.livemode;
    facts.realms.insert(realm.to_string());
    let ids = facts.subscriptions.keys().chain(facts.invoices.keys()).chain(&facts.declared);
    facts.names = ids.map(|id| realm.name(id)).collect();
    facts
}

/// The payment of an invoice, if the event says which it is. It is the tenant's whose invoice it is.
fn paying(
    context: &Context<'_>,
    invoice: String,
    by: impl Iterator<Item = String>,
    billing: &BillingFacts,
) -> Option<payment::Facts> {
    let names: BTreeSet<String> = by.map(|id| context.realm.name(&id)).collect();
    if names.is_empty() {
        return None;
    }
    let facts = payment::Facts {
        names,
        livemode: context.realm.livemode,
        account: context.realm.account.clone(),
        realms: [context.realm.to_string()].into(),
        invoices: [invoice].into(),
        tenants: billing.tenants.clone(),
        provider_customers: billing.provider_customers.clone(),
        ..Default::default()
    };
    Some(facts)
}
