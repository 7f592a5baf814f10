//! Stripe's objects that speak of money, read into a payment's facts. Every field may be missing, and a word that is not
//! known counts as the least: what a newer version calls something must not move money.

use serde::Deserialize;

use super::{Context, Metadata, Ref, amount, billing, currency, labels, unreadable};
use crate::money::{self, Currency};
use crate::settlement::billing::{Facts as Billing, Invoice};
use crate::settlement::payment::{
    Charge, ChargeStatus, Dispute, DisputeStatus, Facts, Intent, IntentStatus, Refund, RefundStatus, Session,
    SessionStatus, Till, Transaction,
};
use crate::settlement::reading::{Labels, Part, Reading, Realm, Unreadable, order_name};

pub(super) fn intent(context: &Context<'_>, object: &str) -> Result<Reading, Unreadable> {
    let said: SaidIntent = serde_json::from_str(object).map_err(unreadable)?;
    let mut draft = Draft::about(context, &said.id);
    let latest = id(said.latest_charge);
    draft.name(latest.as_deref());
    draft.bought_by(said.customer);
    draft.reached_at(said.receipt_email, Till::Receipt);
    let labels = labels(said.metadata, None);
    draft.labelled(&labels);
    draft.ordered(&labels);
    draft.invoiced(id(said.invoice), Some(&said.id));
    for charge in said.charges.into_iter().flat_map(|list| list.data) {
        draft.charge(charge)?;
    }
    let stated = intent_status(said.status.as_deref());
    let cancelled = context.event_type == "payment_intent.canceled";
    let status = if cancelled { stated.max(IntentStatus::Cancelled) } else { stated };
    let wanted = amount(said.amount)?;
    let received = match said.amount_received {
        None if status == IntentStatus::Succeeded => wanted,
        received => amount(received)?,
    };
    // The error of an earlier attempt stays on the object while the next one is under way.
    let idle = matches!(said.status.as_deref(), Some("requires_payment_method" | "requires_source"));
    let gave_up = idle && said.last_payment_error.is_some();
    let failed = context.event_type == "payment_intent.payment_failed" || gave_up;
    let failure = said.last_payment_error.and_then(|error| error.code.or(error.kind)).filter(|_| failed);
    let currency = currency(said.currency.as_deref())?;
    let charges = latest.into_iter().collect();
    let intent = Intent { status, amount: wanted, received, currency, failed, failure, charges };
    draft.facts.intents.insert(said.id, intent);
    Ok(draft.finish())
}

pub(super) fn charge(context: &Context<'_>, object: &str) -> Result<Reading, Unreadable> {
    let said: SaidCharge = serde_json::from_str(object).map_err(unreadable)?;
    let mut draft = Draft::about(context, &said.id);
    draft.charge(said)?;
    Ok(draft.finish())
}

/// A session says what belongs together and how far the customer came; never that there is money.
pub(super) fn session(context: &Context<'_>, object: &str) -> Result<Reading, Unreadable> {
    let said: SaidSession = serde_json::from_str(object).map_err(unreadable)?;
    let billing = billing::session(context, object)?;
    let subscribes = matches!(said.mode.as_deref(), Some("subscription" | "setup"));
    let intent = id(said.payment_intent);
    if subscribes && intent.is_none() {
        return Ok(Reading { payment: None, billing });
    }
    let mut draft = Draft::about(context, &said.id);
    draft.name(intent.as_deref());
    draft.bought_by(said.customer);
    draft.reached_at(said.customer_details.and_then(|details| details.email), Till::Buyer);
    draft.reached_at(said.customer_email, Till::Prefilled);
    // Whoever opens a payment link can write any reference into its address.
    let reference = said.client_reference_id.filter(|_| said.payment_link.is_none());
    let labels = labels(said.metadata, reference);
    draft.labelled(&labels);
    // Who subscribes is written where a shop writes its order, and would tie all its payments into one.
    if !subscribes {
        draft.ordered(&labels);
    }
    draft.facts.invoices.extend(id(said.invoice));
    let session = Session {
        status: session_status(said.status.as_deref()),
        paid: matches!(said.payment_status.as_deref(), Some("paid" | "no_payment_required")),
        failed: context.event_type == "checkout.session.async_payment_failed",
        amount: amount(said.amount_total)?,
        currency: currency(said.currency.as_deref())?,
    };
    draft.facts.sessions.insert(said.id, session);
    Ok(Reading { billing, ..draft.finish() })
}

pub(super) fn refund(context: &Context<'_>, object: &str) -> Result<Reading, Unreadable> {
    let said: SaidRefund = serde_json::from_str(object).map_err(unreadable)?;
    let mut draft = Draft::about(context, &said.id);
    draft.refund(said, None)?;
    Ok(draft.finish())
}

pub(super) fn dispute(context: &Context<'_>, object: &str) -> Result<Reading, Unreadable> {
    let said: SaidDispute = serde_json::from_str(object).map_err(unreadable)?;
    let mut draft = Draft::about(context, &said.id);
    let charge = id(said.charge);
    draft.name(charge.as_deref());
    draft.name(id(said.payment_intent).as_deref());
    let disputed = amount(said.amount)?;
    let currency = currency(said.currency.as_deref())?;
    let Moved { withdrawn, reinstated, fee } =
        moved(disputed, currency, said.balance_transactions.unwrap_or_default())?;
    let dispute = Dispute {
        status: dispute_status(said.status.as_deref()),
        charge,
        amount: disputed,
        currency,
        reason: said.reason,
        withdrawn,
        reinstated,
        fee,
    };
    draft.facts.disputes.insert(said.id, dispute);
    Ok(draft.finish())
}

/// An entry of Stripe's own books. No webhook brings it: it is the answer to a question of ours.
pub(super) fn transaction(context: &Context<'_>, object: &str) -> Result<Reading, Unreadable> {
    let said: SaidTransaction = serde_json::from_str(object).map_err(unreadable)?;
    let mut draft = Draft::about(context, &said.id);
    let source = id(said.source);
    draft.name(source.as_deref());
    let transaction = Transaction {
        source,
        amount: signed(said.amount)?,
        fee: signed(said.fee)?,
        net: signed(said.net)?,
        currency: currency(said.currency.as_deref())?,
    };
    draft.facts.transactions.insert(said.id, transaction);
    Ok(draft.finish())
}

/// What an object adds, while it is being read.
struct Draft<'c> {
    context: &'c Context<'c>,
    facts: Facts,
    billing: Option<Part<Billing>>,
}

impl<'c> Draft<'c> {
    fn about(context: &'c Context<'c>, own: &str) -> Self {
        let facts = Facts {
            livemode: context.realm.livemode,
            realms: [context.realm.to_string()].into(),
            ..Facts::default()
        };
        let mut draft = Self { context, facts, billing: None };
        draft.name(Some(own));
        draft
    }

    fn name(&mut self, id: Option<&str>) {
        self.facts.names.extend(id.map(|id| self.context.realm.name(id)));
    }

    fn bought_by(&mut self, customer: Option<Ref>) {
        self.facts.provider_customers.extend(id(customer));
    }

    fn reached_at(&mut self, email: Option<String>, till: Till) {
        self.facts.reached_at(email.as_deref(), till);
    }

    /// Takes over which order of ours it pays.
    fn ordered(&mut self, labels: &Labels) {
        let Realm { livemode, account, .. } = &self.context.realm;
        let Some(order) = labels.first(&self.context.references.order) else { return };
        self.facts.names.insert(order_name(*livemode, account.as_deref(), &order));
        self.facts.orders.insert(order);
    }

    /// Takes over whose it is and what for.
    fn labelled(&mut self, labels: &Labels) {
        let references = self.context.references;
        self.facts.tenants.extend(labels.first(&references.tenant));
        self.facts.customers.extend(labels.first(&references.customer));
        self.facts.purposes.extend(labels.first(&references.purpose));
    }

    /// Older versions say here which invoice is paid; newer ones in an object of its own.
    fn invoiced(&mut self, invoice: Option<String>, intent: Option<&str>) {
        let Some(invoice) = invoice else { return };
        if let Some(intent) = intent {
            let names = [self.context.realm.name(&invoice)];
            let paid = Invoice { intents: [intent.to_owned()].into(), ..Invoice::default() };
            let facts = Billing {
                names: names.clone().into(),
                livemode: self.context.realm.livemode,
                realms: self.facts.realms.clone(),
                invoices: [(invoice.clone(), paid)].into(),
                ..Billing::default()
            };
            self.billing = Some(Part { names: names.into(), facts });
        }
        self.facts.invoices.insert(invoice);
    }

    fn charge(&mut self, said: SaidCharge) -> Result<(), Unreadable> {
        let intent = id(said.payment_intent);
        self.name(Some(&said.id));
        self.name(intent.as_deref());
        self.bought_by(said.customer);
        self.reached_at(said.receipt_email, Till::Receipt);
        self.reached_at(said.billing_details.and_then(|details| details.email), Till::Billing);
        let labels = labels(said.metadata, None);
        self.labelled(&labels);
        self.ordered(&labels);
        self.invoiced(id(said.invoice), intent.as_deref());
        for refund in said.refunds.into_iter().flat_map(|list| list.data) {
            self.refund(refund, Some(&said.id))?;
        }
        let status = charge_status(said.status.as_deref(), said.paid);
        let whole = amount(said.amount)?;
        let part = amount(said.amount_captured.or(said.amount))?;
        let taken =
            status == ChargeStatus::Succeeded && said.captured == Some(true) && said.paid != Some(false);
        let captured = if taken { part } else { 0 };
        // An authorisation that was let go is called refunded too, but no money came.
        let refunded = if taken { amount(said.amount_refunded)? } else { 0 };
        let charge = Charge {
            status,
            intent,
            amount: whole,
            captured,
            refunded,
            currency: currency(said.currency.as_deref())?,
            transaction: id(said.balance_transaction),
            receipt_url: said.receipt_url,
            failure: said.failure_code,
        };
        self.facts.charges.insert(said.id, charge);
        Ok(())
    }

    fn refund(&mut self, said: SaidRefund, of: Option<&str>) -> Result<(), Unreadable> {
        let charge = id(said.charge).or_else(|| of.map(str::to_owned));
        self.name(Some(&said.id));
        self.name(charge.as_deref());
        self.name(id(said.payment_intent).as_deref());
        let refund = Refund {
            status: refund_status(said.status.as_deref()),
            charge,
            amount: amount(said.amount)?,
            currency: currency(said.currency.as_deref())?,
            reason: said.reason,
            failure: said.failure_reason,
        };
        self.facts.refunds.insert(said.id, refund);
        Ok(())
    }

    fn finish(self) -> Reading {
        let names = self.facts.names.clone();
        Reading { payment: Some(Part { names, facts: self.facts }), billing: self.billing }
    }
}

fn id(reference: Option<Ref>) -> Option<String> {
    reference.map(Ref::into_id).filter(|id| !id.is_empty())
}

/// An amount that may be below zero.
fn signed(amount: Option<i64>) -> Result<i64, Unreadable> {
    let amount = amount.unwrap_or(0);
    let possible = money::checked(amount.saturating_abs()).is_some();
    possible.then_some(amount).ok_or_else(|| Unreadable::Amount(amount.to_string()))
}

/// What a dispute moved.
struct Moved {
    withdrawn: i64,
    reinstated: i64,
    fee: i64,
}

/// Where our account is kept in another currency than the dispute's, the disputed amount stands for what moved, and the
/// fee stays unknown.
fn moved(
    disputed: i64,
    currency_disputed: Option<Currency>,
    entries: Vec<SaidTransaction>,
) -> Result<Moved, Unreadable> {
    let mut moved = Moved { withdrawn: 0, reinstated: 0, fee: 0 };
    for entry in entries {
        let (amount, fee) = (signed(entry.amount)?, signed(entry.fee)?);
        let side = if amount < 0 { &mut moved.withdrawn } else { &mut moved.reinstated };
        let own = currency(entry.currency.as_deref())?;
        if own.is_none() || own == currency_disputed {
            *side = side.saturating_add(amount.abs());
            moved.fee = moved.fee.saturating_add(fee.max(0));
        } else if amount != 0 {
            *side = disputed;
        }
    }
    Ok(moved)
}

fn intent_status(text: Option<&str>) -> IntentStatus {
    match text {
        Some("requires_action" | "requires_source_action") => IntentStatus::RequiresAction,
        // Authorised: the customer has done everything, the money is not ours yet.
        Some("processing" | "requires_capture") => IntentStatus::Processing,
        Some("canceled") => IntentStatus::Cancelled,
        Some("succeeded") => IntentStatus::Succeeded,
        _ => IntentStatus::Waiting,
    }
}

fn charge_status(text: Option<&str>, paid: Option<bool>) -> ChargeStatus {
    match text {
        Some("succeeded" | "paid") => ChargeStatus::Succeeded,
        Some("failed") => ChargeStatus::Failed,
        None if paid == Some(true) => ChargeStatus::Succeeded,
        _ => ChargeStatus::Pending,
    }
}

fn session_status(text: Option<&str>) -> SessionStatus {
    match text {
        Some("complete") => SessionStatus::Complete,
        Some("expired") => SessionStatus::Expired,
        _ => SessionStatus::Open,
    }
}

fn refund_status(text: Option<&str>) -> RefundStatus {
    match text {
        Some("requires_action") => RefundStatus::RequiresAction,
        Some("succeeded") => RefundStatus::Succeeded,
        Some("canceled") => RefundStatus::Cancelled,
        Some("failed") => RefundStatus::Failed,
        _ => RefundStatus::Pending,
    }
}

fn dispute_status(text: Option<&str>) -> DisputeStatus {
    match text {
        Some("needs_response") => DisputeStatus::NeedsResponse,
        Some("under_review") => DisputeStatus::UnderReview,
        Some("warning_closed" | "prevented") => DisputeStatus::InquiryClosed,
        Some("won") => DisputeStatus::Won,
        Some("lost") => DisputeStatus::Lost,
        _ => DisputeStatus::Inquiry,
    }
}

#[derive(Deserialize)]
struct SaidIntent {
    id: String,
    status: Option<String>,
    amount: Option<i64>,
    amount_received: Option<i64>,
    currency: Option<String>,
    customer: Option<Ref>,
    invoice: Option<Ref>,
    last_payment_error: Option<SaidError>,
    receipt_email: Option<String>,
    latest_charge: Option<Ref>,
    /// Before `latest_charge` there was a list of all.
    charges: Option<List<SaidCharge>>,
    metadata: Option<Metadata>,
}

#[derive(Deserialize)]
struct SaidError {
    code: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[derive(Deserialize)]
struct SaidCharge {
    id: String,
    status: Option<String>,
    paid: Option<bool>,
    captured: Option<bool>,
    amount: Option<i64>,
    amount_captured: Option<i64>,
    amount_refunded: Option<i64>,
    balance_transaction: Option<Ref>,
    billing_details: Option<Details>,
    currency: Option<String>,
    customer: Option<Ref>,
    failure_code: Option<String>,
    invoice: Option<Ref>,
    metadata: Option<Metadata>,
    payment_intent: Option<Ref>,
    receipt_email: Option<String>,
    receipt_url: Option<String>,
    refunds: Option<List<SaidRefund>>,
}

#[derive(Deserialize)]
struct SaidSession {
    id: String,
    status: Option<String>,
    payment_status: Option<String>,
    mode: Option<String>,
    amount_total: Option<i64>,
    client_reference_id: Option<String>,
    currency: Option<String>,
    customer: Option<Ref>,
    customer_details: Option<Details>,
    customer_email: Option<String>,
    invoice: Option<Ref>,
    metadata: Option<Metadata>,
    payment_intent: Option<Ref>,
    payment_link: Option<Ref>,
}

/// Of whoever pays.
#[derive(Deserialize)]
struct Details {
    email: Option<String>,
}

#[derive(Deserialize)]
struct SaidRefund {
    id: String,
    status: Option<String>,
    amount: Option<i64>,
    charge: Option<Ref>,
    currency: Option<String>,
    failure_reason: Option<String>,
    payment_intent: Option<Ref>,
    reason: Option<String>,
}

#[derive(Deserialize)]
struct SaidDispute {
    id: String,
    status: Option<String>,
    amount: Option<i64>,
    balance_transactions: Option<Vec<SaidTransaction>>,
    charge: Option<Ref>,
    currency: Option<String>,
    payment_intent: Option<Ref>,
    reason: Option<String>,
}

#[derive(Deserialize)]
struct SaidTransaction {
    id: String,
    amount: Option<i64>,
    currency: Option<String>,
    fee: Option<i64>,
    net: Option<i64>,
    source: Option<Ref>,
}

#[derive(Deserialize)]
struct List<T> {
    #[serde(default = "Vec::new")]
    data: Vec<T>,
}
