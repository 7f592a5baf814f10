//! How much came, went back and was taken, in one currency. Money in another currency is not converted and not counted;
//! what says no currency is counted in the payment's own.

use std::collections::{BTreeMap, BTreeSet};

use super::{Charge, Dispute, DisputeStatus, Facts, Refund, RefundStatus, Transaction};
use crate::money::{Currency, minus, sum};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amounts {
    pub received: i64,
    /// What came beside the order: ours, and the provider's.
    pub tips: i64,
    pub surcharges: i64,
    pub back: Back,
    /// Refunds of what never paid for the order: of tips, and then of what the provider keeps. Not in `back`.
    pub refunded_beside: i64,
    /// (fee, net), once the provider's entries of every captured charge are known and add up to what was captured.
    pub cost: Option<(i64, i64)>,
    /// Taken by disputes that are not decided yet, and by those that were lost; what was given back is not in it.
    pub disputed: i64,
    pub dispute_lost: i64,
    pub dispute_fee: i64,
}

/// Money on its way back to the customer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Back {
    pub refunded: i64,
    /// On its way, beside what was refunded.
    pub pending: i64,
    /// Refunds that failed or were cancelled: the money came back, or never left.
    pub returned: i64,
}

impl Back {
    /// What is no longer ours.
    pub const fn gone(self) -> i64 {
        self.refunded.saturating_add(self.pending)
    }
}

impl Amounts {
    /// In the payment's own currency.
    pub(super) fn of(facts: &Facts, currency: Option<Currency>) -> Self {
        Self::fitting(facts, currency, |other| other.is_none() || other == currency)
    }

    /// In one that is not the payment's own.
    pub(super) fn beside(facts: &Facts, currency: Currency) -> Self {
        Self::fitting(facts, Some(currency), |other| other == Some(currency))
    }

    fn fitting(
        facts: &Facts,
        currency: Option<Currency>,
        fits: impl Fn(Option<Currency>) -> bool + Copy,
    ) -> Self {
        let received = sum(received(facts, fits).into_values());
        let beside = |of: fn(&Charge) -> i64| {
            let charges =
                facts.charges.values().filter(|charge| charge.captured > 0 && fits(charge.currency));
            sum(charges.map(of))
        };
        let (tips, surcharges) = (beside(|charge| charge.tip), beside(|charge| charge.surcharge));
        let mut back = back(facts, fits);
        // A refund may be heard of before the money it returns.
        let more = if received > 0 { minus(back.gone(), received).max(0) } else { 0 };
        let refunded_beside = more.min(tips.saturating_add(surcharges));
        back.leave_out(refunded_beside);
        let disputes = || facts.disputes.values().filter(|dispute| fits(dispute.currency));
        let taken = |lost: bool| {
            let own = disputes().filter(move |one| (one.status == DisputeStatus::Lost) == lost);
            sum(own.map(taken))
        };
        let fees = disputes().map(|dispute| minus(dispute.fee, dispute.fee_returned).max(0));
        Self {
            received,
            tips,
            surcharges,
            back,
            refunded_beside,
            cost: cost(facts, received, currency, fits),
            disputed: taken(false),
            dispute_lost: taken(true),
            dispute_fee: sum(fees),
        }
    }
}

/// What a dispute keeps from us. A dispute that was won keeps nothing, also before the money is seen to be back.
fn taken(dispute: &Dispute) -> i64 {
    match dispute.status {
        DisputeStatus::Won => 0,
        DisputeStatus::Inquiry
        | DisputeStatus::InquiryClosed
        | DisputeStatus::NeedsResponse
        | DisputeStatus::UnderReview
        | DisputeStatus::Lost => minus(dispute.withdrawn, dispute.reinstated).max(0),
    }
}

/// What each intent brought, and all charges that have none. An intent and its charges speak of the same money, so the
/// greater counts.
pub(super) fn received(
    facts: &Facts,
    fits: impl Fn(Option<Currency>) -> bool,
) -> BTreeMap<Option<&str>, i64> {
    let mut by_intent: BTreeMap<Option<&str>, i64> = BTreeMap::new();
    for (id, charge) in facts.charges.iter().filter(|(_, charge)| fits(charge.currency)) {
        let captured = by_intent.entry(intent_of(facts, id, charge)).or_default();
        *captured = captured.saturating_add(charge.taken());
    }
    for (id, intent) in facts.intents.iter().filter(|(_, intent)| fits(intent.currency)) {
        let received = by_intent.entry(Some(id)).or_default();
        *received = intent.received.max(*received);
    }
    by_intent
}

/// The intent a charge says it is of, or that says so itself.
pub(super) fn intent_of<'f>(facts: &'f Facts, id: &str, charge: &'f Charge) -> Option<&'f str> {
    let claims = || {
        let mut intents = facts.intents.iter();
        intents.find(|(_, intent)| intent.charges.contains(id)).map(|(intent, _)| intent.as_str())
    };
    charge.intent.as_deref().or_else(claims)
}

/// Sums over the refunds. A charge that says more than its refunds speaks of some that were not seen yet; refunds whose
/// charge is not known may be just these.
fn back(facts: &Facts, fits: impl Fn(Option<Currency>) -> bool + Copy) -> Back {
    let refunds = || facts.refunds.values().filter(move |one| fits(one.currency) && gives_back(facts, one));
    let mut back = Back::default();
    for refund in refunds().filter(|one| one.charge.as_ref().is_none_or(|id| !facts.charges.contains_key(id)))
    {
        back.add(refund);
    }
    let (mut unseen, mut unseen_waits) = (0_i64, 0_i64);
    for (id, charge) in facts.charges.iter().filter(|(_, charge)| fits(charge.currency)) {
        let mut own = Back::default();
        refunds().filter(|one| one.charge.as_ref() == Some(id)).for_each(|refund| own.add(refund));
        let seen = minus(own.gone().saturating_add(own.returned), released(charge)).max(0);
        let more = minus(minus(charge.refunded, charge.untaken()), seen).max(0);
        unseen = unseen.saturating_add(more);
        unseen_waits = unseen_waits.saturating_add(if charge.refunds_wait { more } else { 0 });
        own.let_go(released(charge));
        back.join(own);
    }
    let homeless = sum(refunds().filter(|one| one.charge.is_none()).map(|refund| refund.amount));
    let unseen = minus(unseen, homeless).max(0);
    let pending = unseen_waits.min(unseen);
    back.join(Back { refunded: minus(unseen, pending), pending, returned: 0 });
    back
}

impl Back {
    fn add(&mut self, refund: &Refund) {
        let side = match refund.status {
            RefundStatus::Pending | RefundStatus::RequiresAction => &mut self.pending,
            RefundStatus::Succeeded => &mut self.refunded,
            RefundStatus::Cancelled | RefundStatus::Failed => &mut self.returned,
        };
        *side = side.saturating_add(refund.amount);
    }

    fn join(&mut self, other: Self) {
        self.refunded = self.refunded.saturating_add(other.refunded);
        self.pending = self.pending.saturating_add(other.pending);
        self.returned = self.returned.saturating_add(other.returned);
    }

    /// Takes out what never paid for the order; it goes back last.
    fn leave_out(&mut self, beside: i64) {
        let of_pending = self.pending.min(beside);
        self.pending = minus(self.pending, of_pending);
        self.refunded = minus(self.refunded, minus(beside, of_pending).min(self.refunded));
    }

    /// Takes out what only let a reservation go.
    fn let_go(&mut self, released: i64) {
        let of_refunded = self.refunded.min(released);
        self.refunded = minus(self.refunded, of_refunded);
        self.pending = minus(self.pending, minus(released, of_refunded).min(self.pending));
    }
}

/// What was reserved, never captured, and has a refund all the same. More that is captured later was not let go.
pub(super) fn released(charge: &Charge) -> i64 {
    charge.released.min(minus(charge.amount, charge.captured)).max(0)
}

/// A refund of what nobody took only lets the reservation go.
pub(super) fn gives_back(facts: &Facts, refund: &Refund) -> bool {
    let Some((id, charge)) = refund.charge.as_ref().and_then(|id| facts.charges.get_key_value(id)) else {
        return true;
    };
    let intent = intent_of(facts, id, charge).and_then(|intent| facts.intents.get(intent));
    charge.captured > 0 || intent.is_some_and(|intent| intent.received > 0)
}

fn cost(
    facts: &Facts,
    received: i64,
    currency: Option<Currency>,
    fits: impl Fn(Option<Currency>) -> bool + Copy,
) -> Option<(i64, i64)> {
    let captured =
        || facts.charges.iter().filter(move |(_, charge)| charge.captured > 0 && fits(charge.currency));
    if received == 0 || sum(captured().map(|(_, charge)| charge.taken())) != received {
        return None;
    }
    captured().try_fold((0_i64, 0_i64), |(fee, net), (id, charge)| {
        let (of_fee, of_net) = cost_of(facts, id, charge, currency)?;
        Some((fee.saturating_add(of_fee), net.saturating_add(of_net)))
    })
}

/// What the provider booked in another currency than the charge's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Exchanged {
    pub amount: i64,
    pub fee: i64,
    pub net: i64,
}

/// By the provider's currency, for charges of which every entry is known.
pub(super) fn exchanged(facts: &Facts, own: Option<Currency>) -> BTreeMap<Currency, Exchanged> {
    let mut all: BTreeMap<Currency, Exchanged> = BTreeMap::new();
    for (id, charge) in facts.charges.iter().filter(|(_, charge)| charge.captured > 0) {
        let Some(entries) = entries_of(facts, id, charge) else { continue };
        for entry in entries {
            let Some(currency) = entry.currency.filter(|other| charge.currency.or(own) != Some(*other))
            else {
                continue;
            };
            let sums = all.entry(currency).or_default();
            sums.amount = sums.amount.saturating_add(entry.amount);
            sums.fee = sums.fee.saturating_add(entry.fee);
            sums.net = sums.net.saturating_add(entry.net);
        }
    }
    all
}

/// The provider's entries of a charge, if all that are named are known.
fn entries_of<'f>(facts: &'f Facts, id: &str, charge: &'f Charge) -> Option<Vec<&'f Transaction>> {
    let naming = facts.transactions.iter().filter(|(_, entry)| entry.source.as_deref() == Some(id));
    let brought = naming.filter(|(_, entry)| entry.amount > 0).map(|(id, _)| id);
    let ids: BTreeSet<&String> =
        charge.transactions.iter().chain(brought).chain(release_entry(facts, id, charge)).collect();
    ids.into_iter().map(|id| facts.transactions.get(id)).collect()
}

/// What a charge cost, if the entries that are known are of all that was captured.
fn cost_of(facts: &Facts, id: &str, charge: &Charge, currency: Option<Currency>) -> Option<(i64, i64)> {
    let entries = entries_of(facts, id, charge)?;
    let came = sum([charge.taken(), charge.tip, charge.surcharge]);
    let is_whole = sum(entries.iter().map(|entry| entry.amount)) == came;
    let is_own = entries.iter().all(|entry| entry.currency == currency);
    let total = || (sum(entries.iter().map(|entry| entry.fee)), sum(entries.iter().map(|entry| entry.net)));
    (is_whole && is_own).then(total)
}

/// Where a reservation was booked whole and a part of it let go, the entry of that refund belongs to the charge's own.
pub(super) fn release_entry<'f>(facts: &'f Facts, id: &str, charge: &Charge) -> Option<&'f String> {
    let released = released(charge);
    let mut own = facts.refunds.values().filter(|refund| refund.charge.as_deref() == Some(id));
    own.find(|refund| released > 0 && refund.amount == released)?.transaction.as_ref()
}

/// How bad a dispute is: what a person must act on first, then what is lost, then what is over.
pub(super) const fn severity(status: DisputeStatus) -> u8 {
    match status {
        DisputeStatus::InquiryClosed => 0,
        DisputeStatus::Inquiry => 1,
        DisputeStatus::Won => 2,
        DisputeStatus::Lost => 3,
        DisputeStatus::UnderReview => 4,
        DisputeStatus::NeedsResponse => 5,
    }
}
