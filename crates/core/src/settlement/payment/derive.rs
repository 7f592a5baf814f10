//! What a payment's facts add up to: one status, the amounts, whose it is, and whether a person should look at it. A
//! function of the facts alone, so whoever knows the same says the same.

use std::collections::{BTreeMap, BTreeSet};

use super::amounts::{self, Amounts, gives_back, severity};
use super::{
    CheckoutSession, DisputeStatus, Facts, IntentStatus, MerchantOrder, Refund, RefundOrder,
    RefundOrderStatus, RefundStatus, SessionStatus, tries,
};
use crate::money::{Currency, minus};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Derived {
    pub status: PaymentStatus,
    /// What is to be paid.
    pub amount: i64,
    pub currency: Option<Currency>,
    pub received: i64,
    /// How much of what we asked for did not come yet.
    pub missing: i64,
    /// Tries to pay that failed, each once.
    pub failed_tries: usize,
    /// What the customer gave on top, and what the provider took from the customer for itself. Neither pays for anything.
    pub tips: i64,
    pub surcharge: i64,
    /// What went back.
    pub refunded: i64,
    /// What is on its way back, beside `refunded`.
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
pub enum PaymentStatus {
    Unpaid,
    Processing,
    /// May still become paid.
    Failed,
    Expired,
    Cancelled,
    /// Money came, but less than we asked for.
    PartiallyPaid,
    Paid,
    PartiallyRefunded,
    Refunded,
}

impl PaymentStatus {
    pub const ALL: [Self; 9] = [
        Self::Unpaid,
        Self::Processing,
        Self::Failed,
        Self::Expired,
        Self::Cancelled,
        Self::PartiallyPaid,
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
            Self::PartiallyPaid => "partially_paid",
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
    RefundGivenUp,
    RefundHeldBack,
    RefundByHand,
    RefundCancelled,
    Overpaid,
    Underpaid,
    OverRefunded,
    Unlinked,
}

impl Attention {
    pub const ALL: [Self; 12] = [
        Self::CurrencyMismatch,
        Self::ModeMismatch,
        Self::Conflict,
        Self::RefundFailed,
        Self::RefundGivenUp,
        Self::RefundHeldBack,
        Self::RefundByHand,
        Self::RefundCancelled,
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
            Self::RefundGivenUp => "refund_given_up",
            Self::RefundHeldBack => "refund_held_back",
            Self::RefundByHand => "refund_by_hand",
            Self::RefundCancelled => "refund_cancelled",
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
        let received = derived.received;
        let of_mode = |mode: &str| facts.realms.iter().any(|realm| realm.ends_with(mode));
        match self {
            Self::CurrencyMismatch => !other_money(facts, derived.currency).is_empty(),
            Self::ModeMismatch => of_mode("/live") && of_mode("/test"),
            Self::Conflict => {
                !facts.conflicts.is_empty() || facts.sought_by.len() > 1 || facts.all_tenants().len() > 1
            }
            Self::RefundFailed => came_to_nothing(facts, derived, RefundStatus::Failed),
            Self::RefundGivenUp => some_order(facts, |order, status| {
                let is_over = !(order.gave_up.is_empty() && order.met.is_empty());
                let takes_it = |later: &RefundOrder, status: RefundOrderStatus| {
                    later.wish.at > order.wish.at
                        && status != RefundOrderStatus::Failed
                        && later.amount(order.wish.currency) >= order.amount(order.wish.currency)
                };
                // Until somebody orders it anew.
                status == RefundOrderStatus::Failed && is_over && !some_order(facts, takes_it)
            }),
            Self::RefundHeldBack => some_order(facts, |_, status| status == RefundOrderStatus::HeldBack),
            Self::RefundByHand => some_order(facts, |order, status| {
                status == RefundOrderStatus::Ordered && order.wish.by_hand.is_some()
            }),
            Self::RefundCancelled => came_to_nothing(facts, derived, RefundStatus::Cancelled),
            Self::Overpaid => surplus(facts, derived) > 0,
            Self::Underpaid => is_underpaid(facts, derived),
            Self::OverRefunded => received > 0 && derived.gone() > received,
            Self::Unlinked => received > 0 && !derived.linked,
        }
    }
}

impl Derived {
    pub fn of(facts: &Facts) -> Self {
        let currency = currency(facts);
        let amounts = Amounts::of(facts, currency);
        let linked = facts.is_linked();
        let worst =
            facts.disputes.values().map(|dispute| dispute.status).max_by_key(|status| severity(*status));
        let disputed = amounts.disputed.saturating_add(amounts.dispute_lost);
        let kept = minus(minus(amounts.received, amounts.back.gone()), disputed);
        let missing = wanted(facts).map_or(0, |wanted| minus(wanted, amounts.received).max(0));
        let mut derived = Self {
            status: status(facts, &amounts, missing),
            amount: amount(facts, currency),
            currency,
            received: amounts.received,
            missing,
            failed_tries: tries::failed(facts),
            tips: amounts.tips,
            surcharge: amounts.surcharges,
            refunded: amounts.back.refunded,
            refund_pending: amounts.back.pending,
            refund_returned: amounts.back.returned,
            fee: amounts.cost.map(|(fee, _)| fee),
            net: amounts.cost.map(|(_, net)| net),
            disputed: facts.disputes.values().any(|one| is_dispute(one.status) || one.withdrawn > 0),
            dispute_status: worst,
            dispute_fee: amounts.dispute_fee,
            disputed_amount: disputed,
            net_of_dispute: kept.max(0),
            linked,
            attention: None,
            tenant: facts.tenant().map(str::to_owned),
            customer: ours(facts, |ours| ours.customer.clone()).or_else(|| facts.customers.first().cloned()),
            purpose: ours(facts, |ours| ours.purpose.clone()).or_else(|| facts.purposes.first().cloned()),
            reference: ours(facts, |ours| ours.reference.clone())
                .or_else(|| facts.orders.first().cloned())
                .or_else(|| facts.client_references.first().cloned()),
        };
        derived.attention = Attention::of(facts, &derived);
        derived
    }

    /// What went back or is on its way.
    pub const fn gone(&self) -> i64 {
        self.refunded.saturating_add(self.refund_pending)
    }

    /// Everything that was asked for came, or nothing was to be paid; whatever happened to the money since.
    pub fn is_settled(&self) -> bool {
        self.missing == 0 && (self.received > 0 || self.status == PaymentStatus::Paid)
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
fn ours<T>(facts: &Facts, field: impl Fn(&MerchantOrder) -> Option<T>) -> Option<T> {
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
        let amount = intent.newest.as_ref().map_or(intent.amount, |newest| newest.amount);
        if tries::under_way(facts, id, intent).is_some() || intent.status == IntentStatus::Succeeded {
            *together = together.saturating_add(amount);
        }
        *largest = amount.max(*largest);
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

/// Order matters: money before everything, then what is final, then what is under way. A try that failed comes after all
/// of that: it hides nothing.
fn status(facts: &Facts, amounts: &Amounts, missing: i64) -> PaymentStatus {
    if amounts.received > 0 {
        return match amounts.back.refunded {
            refunded if refunded >= amounts.received => PaymentStatus::Refunded,
            _ if missing > 0 => PaymentStatus::PartiallyPaid,
            0 => PaymentStatus::Paid,
            _ => PaymentStatus::PartiallyRefunded,
        };
    }
    if is_free(facts) && missing == 0 {
        return PaymentStatus::Paid;
    }
    let is_tried = facts.is_tried();
    if let Some(ended) = tries::ended(facts).filter(|_| !is_tried) {
        return ended;
    }
    if tries::is_under_way(facts) {
        return PaymentStatus::Processing;
    }
    let have_expired = || facts.sessions.values().all(|session| session.status == SessionStatus::Expired);
    if !is_tried && !facts.sessions.is_empty() && have_expired() {
        return PaymentStatus::Expired;
    }
    if tries::failed(facts) > 0 {
        return PaymentStatus::Failed;
    }
    PaymentStatus::Unpaid
}

/// Nothing was to be paid, and the customer has ordered.
fn is_free(facts: &Facts) -> bool {
    let complete = |session: &CheckoutSession| {
        session.status == SessionStatus::Complete && session.paid && session.amount == 0
    };
    facts.intents.is_empty() && facts.sessions.values().any(complete)
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

/// Less is here than was asked for, and the customer believes to have paid.
pub(super) fn is_underpaid(facts: &Facts, derived: &Derived) -> bool {
    let is_free = || derived.received == 0 && is_free(facts);
    derived.status == PaymentStatus::PartiallyPaid || derived.missing > 0 && is_free()
}

/// How much more is here than was asked for: by us, or by any one of several that were each paid. What goes back is not
/// here.
pub(super) fn surplus(facts: &Facts, derived: &Derived) -> i64 {
    let kept = minus(derived.received, derived.gone());
    match wanted(facts) {
        Some(wanted) => minus(kept, wanted).max(0),
        None if orders_paid(facts, derived.currency) > 1 => minus(kept, derived.amount).max(0),
        None => 0,
    }
}

/// How many of the provider's orders were paid: parts of one are one.
fn orders_paid(facts: &Facts, currency: Option<Currency>) -> usize {
    let received = amounts::received(facts, |other| other.is_none() || other == currency);
    let paid = received.into_iter().filter(|(_, amount)| *amount > 0);
    paid.filter_map(|(intent, _)| Some(part_of(facts, intent?))).collect::<BTreeSet<_>>().len()
}

/// A refund ended so, and the money did not go back otherwise.
fn came_to_nothing(facts: &Facts, derived: &Derived, status: RefundStatus) -> bool {
    let ended = |refund: &Refund| refund.status == status && gives_back(facts, refund);
    let is_back = derived.received > 0 && derived.gone() >= derived.received;
    !is_back && facts.refunds.values().any(ended)
}

fn some_order(facts: &Facts, is_so: impl Fn(&RefundOrder, RefundOrderStatus) -> bool) -> bool {
    let mut orders = facts.refund_orders.iter();
    orders.any(|(key, order)| is_so(order, facts.refund_order_status(key, order)))
}

/// How much came in other currencies than the payment's.
pub(super) fn other_money(facts: &Facts, currency: Option<Currency>) -> Vec<(Currency, i64)> {
    let of_charges = facts.charges.values().map(|charge| charge.currency);
    let of_intents = facts.intents.values().map(|intent| intent.currency);
    let all = of_charges.chain(of_intents).flatten().filter(|other| Some(*other) != currency);
    let each = all.collect::<BTreeSet<_>>().into_iter();
    let received = each.map(|other| (other, Amounts::beside(facts, other).received));
    received.filter(|(_, received)| *received > 0).collect()
}
