//! Stripe's objects that speak of money, read into a payment's facts. Every field may be missing, and a word that is not
//! known counts as the least: what a newer version calls something must not move money.

use super::said::{
    SaidAction, SaidCharge, SaidDispute, SaidIntent, SaidRefund, SaidSession, SaidTransaction,
};
use super::status::{
    charge_status, dispute_status, intent_status, refund_status, refunds_wait, session_status,
};
use super::{Context, Metadata, Ref, amount, billing, currency, labels, unreadable};
use crate::money::{self, Currency};
use crate::settlement::billing::{BillingFacts, Invoice};
use crate::settlement::payment::{
    Charge, ChargeStatus, CheckoutSession, Dispute, Facts, Intent, IntentStatus, Refund, Snapshot, Till,
    Transaction,
};
use crate::settlement::reading::{Labels, Reading, UnreadableEvent};
use crate::settlement::refund;
use crate::time::Time;

const PAYMENT_FAILED: &str = "payment_intent.payment_failed";

pub(super) fn intent(context: &Context<'_>, object: &str) -> Result<Reading, UnreadableEvent> {
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
    let stated = intent_status(said.status.as_deref(), said.next_action.as_ref());
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
    let failed = context.event_type == PAYMENT_FAILED || gave_up;
    let error = said.last_payment_error.filter(|_| failed);
    let (charge, failure) = error.map_or((None, None), |error| (id(error.charge), error.code.or(error.kind)));
    // Nothing was charged when the customer could not be recognised, or a voucher ran out.
    let told = || Some(context.event_id).filter(|id| context.event_type == PAYMENT_FAILED && !id.is_empty());
    let intent = Intent {
        status,
        newest: Some(Snapshot { at: context.created, failed, status, amount: wanted }),
        amount: wanted,
        received,
        currency: currency(said.currency.as_deref())?,
        failed,
        failure,
        tries: charge.or_else(|| told().map(str::to_owned)).into_iter().collect(),
        charges: latest.into_iter().collect(),
        expires_at: said.next_action.as_ref().and_then(SaidAction::expires_at),
        ..Intent::default()
    };
    draft.facts.intents.insert(said.id, intent);
    Ok(draft.finish())
}

pub(super) fn charge(context: &Context<'_>, object: &str) -> Result<Reading, UnreadableEvent> {
    let said: SaidCharge = serde_json::from_str(object).map_err(unreadable)?;
    let mut draft = Draft::about(context, &said.id);
    draft.charge(said)?;
    Ok(draft.finish())
}

/// A session says what belongs together and how far the customer came; never that there is money.
pub(super) fn session(context: &Context<'_>, object: &str) -> Result<Reading, UnreadableEvent> {
    let said: SaidSession = serde_json::from_str(object).map_err(unreadable)?;
    let billing = billing::session(context, object)?;
    let subscribes = matches!(said.mode.as_deref(), Some("subscription" | "setup"));
    let intent = id(said.payment_intent);
    if subscribes && intent.is_none() {
        return Ok(Reading { billing, ..Reading::default() });
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
    let session = CheckoutSession {
        status: session_status(said.status.as_deref()),
        paid: matches!(said.payment_status.as_deref(), Some("paid" | "no_payment_required")),
        failed: context.event_type == "checkout.session.async_payment_failed",
        amount: amount(said.amount_total)?,
        currency: currency(said.currency.as_deref())?,
        intent,
        completed_at: (context.event_type == "checkout.session.completed").then_some(context.created),
    };
    draft.facts.sessions.insert(said.id, session);
    Ok(Reading { billing, ..draft.finish() })
}

pub(super) fn read_refund(context: &Context<'_>, object: &str) -> Result<Reading, UnreadableEvent> {
    let said: SaidRefund = serde_json::from_str(object).map_err(unreadable)?;
    let mut draft = Draft::about(context, &said.id);
    draft.refund(said, None)?;
    Ok(draft.finish())
}

pub(super) fn dispute(context: &Context<'_>, object: &str) -> Result<Reading, UnreadableEvent> {
    let said: SaidDispute = serde_json::from_str(object).map_err(unreadable)?;
    let mut draft = Draft::about(context, &said.id);
    let charge = id(said.charge);
    draft.name(charge.as_deref());
    draft.name(id(said.payment_intent).as_deref());
    let disputed = amount(said.amount)?;
    let currency = currency(said.currency.as_deref())?;
    let Moved { withdrawn, reinstated, fee, fee_returned } =
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
        fee_returned,
    };
    draft.facts.disputes.insert(said.id, dispute);
    Ok(draft.finish())
}

/// An entry of Stripe's own books. No webhook brings it: it is the answer to a question of ours.
pub(super) fn transaction(context: &Context<'_>, object: &str) -> Result<Reading, UnreadableEvent> {
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
    billing: Option<BillingFacts>,
}

impl<'c> Draft<'c> {
    fn about(context: &'c Context<'c>, own: &str) -> Self {
        let facts = Facts {
            livemode: context.realm.livemode,
            account: context.realm.account.clone(),
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
        labels.order(self.context.references, &mut self.facts);
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
            let facts = BillingFacts {
                names: names.into(),
                livemode: self.context.realm.livemode,
                realms: self.facts.realms.clone(),
                invoices: [(invoice.clone(), paid)].into(),
                ..BillingFacts::default()
            };
            self.billing = Some(facts);
        }
        self.facts.invoices.insert(invoice);
    }

    fn charge(&mut self, said: SaidCharge) -> Result<(), UnreadableEvent> {
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
        self.facts.money_came(said.created.filter(|_| captured > 0).map(Time::from_seconds));
        // A reservation that was let go is called refunded too, but no money came.
        let refunded = amount(said.amount_refunded)?;
        let rest = if self.context.refunds_releases { money::minus(whole, part).max(0) } else { 0 };
        let released = if taken { refunded.min(rest) } else { 0 };
        let is_over = self.context.event_type == "charge.expired" || said.refunded == Some(true);
        let charge = Charge {
            status,
            intent,
            amount: whole,
            captured,
            refunded: if taken { money::minus(refunded, released) } else { 0 },
            released,
            let_go: !taken && (is_over || refunded > 0),
            refunds_wait: refunds_wait(said.payment_method_details.as_ref()),
            currency: currency(said.currency.as_deref())?,
            transactions: id(said.balance_transaction).into_iter().collect(),
            receipt_url: said.receipt_url,
            failure: said.failure_code,
            ..Charge::default()
        };
        self.facts.charges.insert(said.id, charge);
        Ok(())
    }

    fn refund(&mut self, said: SaidRefund, of: Option<&str>) -> Result<(), UnreadableEvent> {
        let charge = id(said.charge).or_else(|| of.map(str::to_owned));
        self.name(Some(&said.id));
        self.name(charge.as_deref());
        let intent = id(said.payment_intent);
        self.name(intent.as_deref());
        let refund = Refund {
            order: ordered_by(said.metadata),
            intent,
            pending_reason: said.pending_reason,
            status: refund_status(said.status.as_deref()),
            charge,
            amount: amount(said.amount)?,
            currency: currency(said.currency.as_deref())?,
            reason: said.reason,
            failure: said.failure_reason,
            transaction: id(said.balance_transaction),
        };
        self.facts.refunds.insert(said.id, refund);
        Ok(())
    }

    fn finish(self) -> Reading {
        Reading { payment: Some(self.facts), billing: self.billing, ..Reading::default() }
    }
}

fn id(reference: Option<Ref>) -> Option<String> {
    reference.map(Ref::into_id).filter(|id| !id.is_empty())
}

/// The order of ours that a refund carries out.
fn ordered_by(metadata: Option<Metadata>) -> Option<String> {
    match metadata?.remove(refund::ORDER)? {
        serde_json::Value::String(key) => Some(key),
        _ => None,
    }
}

/// A refund as Stripe lists it.
pub fn listed_refund(object: &str) -> Option<refund::Listed> {
    let said: SaidRefund = serde_json::from_str(object).ok()?;
    let holds = refund_status(said.status.as_deref()).holds();
    let (amount, order) = (amount(said.amount).ok()?, ordered_by(said.metadata));
    Some(refund::Listed { id: said.id, amount, holds, order })
}

/// An amount that may be below zero.
fn signed(amount: Option<i64>) -> Result<i64, UnreadableEvent> {
    let amount = amount.unwrap_or(0);
    let possible = money::checked(amount.saturating_abs()).is_some();
    possible.then_some(amount).ok_or_else(|| UnreadableEvent::Amount(amount.to_string()))
}

/// What a dispute moved.
struct Moved {
    withdrawn: i64,
    reinstated: i64,
    fee: i64,
    fee_returned: i64,
}

/// Where our account is kept in another currency than the dispute's, the disputed amount stands for what moved, and the
/// fee stays unknown.
fn moved(
    disputed: i64,
    currency_disputed: Option<Currency>,
    entries: Vec<SaidTransaction>,
) -> Result<Moved, UnreadableEvent> {
    let mut moved = Moved { withdrawn: 0, reinstated: 0, fee: 0, fee_returned: 0 };
    for entry in entries {
        let (amount, fee) = (signed(entry.amount)?, signed(entry.fee)?);
        let side = if amount < 0 { &mut moved.withdrawn } else { &mut moved.reinstated };
        let own = currency(entry.currency.as_deref())?;
        if own.is_none() || own == currency_disputed {
            *side = side.saturating_add(amount.abs());
            let of_fee = if fee < 0 { &mut moved.fee_returned } else { &mut moved.fee };
            *of_fee = of_fee.saturating_add(fee.abs());
        } else if amount != 0 {
            *side = disputed;
        }
    }
    Ok(moved)
}
