//! What a payment's facts add up to: one status, the amounts, whose it is, and whether a person should look at it. A
//! function of the facts alone, so whoever knows the same says the same.

use std::collections::{BTreeMap, BTreeSet};

use super::amounts::{self, Amounts, severity};
use super::{ChargeStatus, DisputeStatus, Facts, Intent, IntentStatus, Ours, RefundStatus, Session, SessionStatus};
use crate::money::{Currency, minus};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Derived {
    pub status: Status,
    /// What is to be paid.
    pub amount: i64,
    pub currency: Option<Currency>,
    pub received: i64,
    /// What the customer gave on top, and what the provider took from the customer for itself. Neither pays for anything.
    pub tips: i64,
    pub surcharge: i64,
    pub refunded: i64,
    /// The part of `refunded` that is still on its way.
    pub refund_pending: i64,
    /// Refunds that failed or were cancelled.
    pub refund_returned: i64,
    /// Known once the provider's entry of every captured charge is, in the payment's currency.
    pub fee: Option<i64>,
    pub net: Option<i64>,
    /// Ever; an inquiry is no dispute yet.
    pub disputed: bool,
    /// The worst: open before lost before won before inquiries.
    pub dispute_status: Option<DisputeStatus>,
    pub dispute_fee: i64,
    /// Taken by disputes and not given back.
    pub disputed_amount: i64,
    pub net_of_dispute: i64,
    /// Something of ours asked for this money.
    pub linked: bool,
    pub attention: Option<Attention>,
    pub tenant: Option<String>,
    pub customer: Option<String>,
    pub purpose: Option<String>,
    pub reference: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    Unpaid,
    Processing,
    /// May still become paid.
    Failed,
    Expired,
    Cancelled,
    Paid,
    PartiallyRefunded,
    Refunded,
}

impl Status {
    pub const ALL: [Self; 8] = [
        Self::Unpaid,
        Self::Processing,
        Self::Failed,
        Self::Expired,
        Self::Cancelled,
        Self::Paid,
        Self::PartiallyRefunded,
        Self::Refunded,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Unpaid => "unpaid",
            Self::Processing => "processing",
            Self::Failed => "failed",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::Paid => "paid",
            Self::PartiallyRefunded => "partially_refunded",
            Self::Refunded => "refunded",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == text)
    }
}

/// Why a person should look at it; of several that hold, the first counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attention {
    CurrencyMismatch,
    ModeMismatch,
    Conflict,
    RefundFailed,
    Overpaid,
    Underpaid,
    OverRefunded,
    Unlinked,
}

impl Attention {
    pub const ALL: [Self; 8] = [
        Self::CurrencyMismatch,
        Self::ModeMismatch,
        Self::Conflict,
        Self::RefundFailed,
        Self::Overpaid,
        Self::Underpaid,
        Self::OverRefunded,
        Self::Unlinked,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::CurrencyMismatch => "currency_mismatch",
            Self::ModeMismatch => "mode_mismatch",
            Self::Conflict => "conflict",
            Self::RefundFailed => "refund_failed",
            Self::Overpaid => "overpaid",
            Self::Underpaid => "underpaid",
            Self::OverRefunded => "over_refunded",
            Self::Unlinked => "unlinked",
        }
    }

    fn of(facts: &Facts, derived: &Derived) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.holds(facts, derived))
    }

    fn holds(self, facts: &Facts, derived: &Derived) -> bool {
        let Derived { received, refunded, .. } = *derived;
        let of_mode = |mode: &str| facts.realms.iter().any(|realm| realm.ends_with(mode));
        match self {
            Self::CurrencyMismatch => other_money(facts, derived.currency),
            Self::ModeMismatch => of_mode("/live") && of_mode("/test"),
            Self::Conflict => !facts.conflicts.is_empty(),
            Self::RefundFailed => {
                let failed = facts.refunds.values().any(|refund| refund.status == RefundStatus::Failed);
                failed && !(received > 0 && refunded >= received)
            }
            Self::Overpaid => is_overpaid(facts, derived),
            Self::Underpaid => wanted(facts).is_some_and(|wanted| received > 0 && received < wanted),
            Self::OverRefunded => received > 0 && refunded > received,
            Self::Unlinked => received > 0 && !derived.linked,
        }
    }
}

impl Derived {
    pub fn of(facts: &Facts) -> Self {
        let currency = currency(facts);
        let amounts = Amounts::of(facts, currency);
        let linked = !(facts.ours.is_empty() && facts.orders.is_empty() && facts.invoices.is_empty());
        let worst =
            facts.disputes.values().map(|dispute| dispute.status).max_by_key(|status| severity(*status));
        let kept = minus(minus(amounts.received, amounts.refunded), amounts.disputed);
        let mut derived = Self {
            status: status(facts, &amounts),
            amount: amount(facts, currency),
            currency,
            received: amounts.received,
            tips: amounts.tips,
            surcharge: amounts.surcharges,
            refunded: amounts.refunded,
            refund_pending: amounts.refund_pending,
            refund_returned: amounts.refund_returned,
            fee: amounts.cost.map(|(fee, _)| fee),
            net: amounts.cost.map(|(_, net)| net),
            disputed: facts.disputes.values().any(|one| is_dispute(one.status) || one.withdrawn > 0),
            dispute_status: worst,
            dispute_fee: amounts.dispute_fee,
            disputed_amount: amounts.disputed,
            net_of_dispute: kept.max(0),
            linked,
            attention: None,
            tenant: ours(facts, |ours| ours.tenant.clone()).or_else(|| facts.tenants.first().cloned()),
            customer: ours(facts, |ours| ours.customer.clone()).or_else(|| facts.customers.first().cloned()),
            purpose: ours(facts, |ours| ours.purpose.clone()).or_else(|| facts.purposes.first().cloned()),
            reference: ours(facts, |ours| ours.reference.clone()).or_else(|| facts.orders.first().cloned()),
        };
        derived.attention = Attention::of(facts, &derived);
        derived
    }

    /// Whose balance this money fills.
    pub fn topped_up(&self) -> Option<&str> {
        let purpose = self.purpose.as_deref()?;
        self.customer.as_deref().filter(|_| matches!(purpose, "balance" | "top_up" | "topup"))
    }

    /// Whether the provider would call it paid: money came, whatever happened to it since.
    pub const fn payment_status(&self) -> &'static str {
        if self.received > 0 { "paid" } else { "unpaid" }
    }
}

impl Facts {
    /// How far the customer came at the provider's page, in the session that went furthest.
    pub fn session_status(&self) -> Option<SessionStatus> {
        self.sessions.values().map(|session| session.status).max()
    }
}

/// What the app that created it said, the smallest of our ids first.
fn ours<T>(facts: &Facts, field: impl Fn(&Ours) -> Option<T>) -> Option<T> {
    facts.ours.values().find_map(field)
}

/// A session is no evidence of money, so its currency gives way to that of an intent or charge.
fn currency(facts: &Facts) -> Option<Currency> {
    let intents = facts.intents.values().filter_map(|intent| intent.currency);
    let charges = facts.charges.values().filter_map(|charge| charge.currency);
    let sessions = facts.sessions.values().filter_map(|session| session.currency);
    let refunds = facts.refunds.values().filter_map(|refund| refund.currency);
    ours(facts, |ours| ours.currency)
        .or_else(|| intents.chain(charges).min())
        .or_else(|| sessions.min())
        .or_else(|| refunds.min())
}

fn amount(facts: &Facts, currency: Option<Currency>) -> i64 {
    let fits = |other: Option<Currency>| other.is_none() || other == currency;
    let sessions = facts.sessions.values().filter(|one| fits(one.currency)).map(|session| session.amount);
    let charges = facts.charges.values().filter(|charge| fits(charge.currency)).map(|charge| charge.amount);
    wanted(facts).or_else(|| asked(facts, fits)).or_else(|| sessions.chain(charges).max()).unwrap_or(0)
}

/// What the provider's intents ask for: the parts of one order together, and of several orders the largest. A part that
/// ended without money counts only where all did.
fn asked(facts: &Facts, fits: impl Fn(Option<Currency>) -> bool) -> Option<i64> {
    let mut orders: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    for (id, intent) in facts.intents.iter().filter(|(_, intent)| fits(intent.currency)) {
        let (together, largest) = orders.entry(part_of(facts, id)).or_default();
        if under_way(intent.status) || intent.status == IntentStatus::Succeeded {
            *together = together.saturating_add(intent.amount);
        }
        *largest = intent.amount.max(*largest);
    }
    orders.into_values().map(|(together, largest)| if together > 0 { together } else { largest }).max()
}

/// The order an intent belongs to; one that is no part is an order itself.
fn part_of<'f>(facts: &'f Facts, intent: &'f str) -> &'f str {
    facts.intents.get(intent).and_then(|intent| intent.part_of.as_deref()).unwrap_or(intent)
}

/// What we asked for, if we said how much.
fn wanted(facts: &Facts) -> Option<i64> {
    ours(facts, |ours| Some(ours.amount).filter(|amount| *amount > 0))
}

/// Order matters: money before everything, and what is final before what may still change.
fn status(facts: &Facts, amounts: &Amounts) -> Status {
    let Facts { sessions, intents, charges, .. } = facts;
    if amounts.received > 0 {
        return match amounts.refunded {
            0 => Status::Paid,
            refunded if refunded < amounts.received => Status::PartiallyRefunded,
            _ => Status::Refunded,
        };
    }
    // Nothing was to be paid, and the customer has ordered.
    let is_free =
        |session: &Session| session.status == SessionStatus::Complete && session.paid && session.amount == 0;
    if intents.is_empty() && sessions.values().any(is_free) {
        return Status::Paid;
    }
    let is_over =
        |intent: &Intent| matches!(intent.status, IntentStatus::Cancelled | IntentStatus::Expired);
    if !intents.is_empty() && intents.values().all(is_over) {
        let expired = intents.values().any(|intent| intent.status == IntentStatus::Expired);
        return if expired { Status::Expired } else { Status::Cancelled };
    }
    let failed = intents.values().any(|intent| intent.failed)
        || charges.values().any(|charge| charge.status == ChargeStatus::Failed)
        || sessions.values().any(|session| session.failed);
    if failed {
        return Status::Failed;
    }
    let moved_on = intents.values().any(|intent| under_way(intent.status))
        || charges.values().any(|charge| charge.status == ChargeStatus::Pending);
    let waits = sessions.values().any(|session| session.status == SessionStatus::Complete && !session.paid);
    if moved_on || waits {
        return Status::Processing;
    }
    if !sessions.is_empty() && sessions.values().all(|session| session.status == SessionStatus::Expired) {
        return Status::Expired;
    }
    Status::Unpaid
}

const fn under_way(status: IntentStatus) -> bool {
    match status {
        IntentStatus::RequiresAction | IntentStatus::Processing => true,
        IntentStatus::Waiting
        | IntentStatus::Failed
        | IntentStatus::Expired
        | IntentStatus::Cancelled
        | IntentStatus::Succeeded => false,
    }
}

pub(super) const fn is_dispute(status: DisputeStatus) -> bool {
    match status {
        DisputeStatus::Inquiry | DisputeStatus::InquiryClosed => false,
        DisputeStatus::NeedsResponse
        | DisputeStatus::UnderReview
        | DisputeStatus::Won
        | DisputeStatus::Lost => true,
    }
}

/// More came than was asked for: by us, or by any one of several orders that were each paid.
pub(super) fn is_overpaid(facts: &Facts, derived: &Derived) -> bool {
    if let Some(wanted) = wanted(facts) {
        return derived.received > wanted;
    }
    let received = amounts::received(facts, |other| other.is_none() || other == derived.currency);
    let paid = received.iter().filter(|(_, amount)| **amount > 0);
    let orders: BTreeSet<_> = paid.filter_map(|(intent, _)| Some(part_of(facts, (*intent)?))).collect();
    orders.len() > 1 && derived.received > derived.amount
}

/// Money came in another currency than the payment's.
fn other_money(facts: &Facts, currency: Option<Currency>) -> bool {
    let other = |found: Option<Currency>| found.is_some() && found != currency;
    facts.charges.values().any(|charge| charge.captured > 0 && other(charge.currency))
        || facts.intents.values().any(|intent| intent.received > 0 && other(intent.currency))
}
