//! How much came, went back and was taken, in one currency. Money in another currency is not converted and not counted;
//! what says no currency is counted in the payment's own.

use std::collections::BTreeMap;

use super::{Charge, DisputeStatus, Facts, Refund, RefundStatus, Transaction};
use crate::money::{Currency, minus, sum};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amounts {
    pub received: i64,
    /// What came beside the order: ours, and the provider's.
    pub tips: i64,
    pub surcharges: i64,
    pub refunded: i64,
    /// Refunds of what never paid for the order: of tips, and then of what the provider keeps.
    pub refunded_beside: i64,
    /// The part of `refunded` that is still on its way.
    pub refund_pending: i64,
    /// Refunds that failed or were cancelled: the money came back.
    pub refund_returned: i64,
    /// (fee, net), once the provider's entry of every captured charge is known.
    pub cost: Option<(i64, i64)>,
    /// Taken by disputes and not given back.
    pub disputed: i64,
    pub dispute_fee: i64,
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
        let refunded = refunded(facts, fits);
        let beside = |of: fn(&Charge) -> i64| {
            let charges = facts.charges.values().filter(|charge| charge.captured > 0 && fits(charge.currency));
            sum(charges.map(of))
        };
        let (tips, surcharges) = (beside(|charge| charge.tip), beside(|charge| charge.surcharge));
        // A refund may be heard of before the money it returns.
        let more = if received > 0 { minus(refunded, received).max(0) } else { 0 };
        let refunded_beside = more.min(tips.saturating_add(surcharges));
        let refunds = || facts.refunds.values().filter(|refund| fits(refund.currency));
        let disputes = || facts.disputes.values().filter(|dispute| fits(dispute.currency));
        Self {
            received,
            tips,
            surcharges,
            refunded: minus(refunded, refunded_beside),
            refunded_beside,
            refund_pending: sum(refunds().filter(|refund| pending(refund)).map(|refund| refund.amount)),
            refund_returned: sum(refunds().filter(|refund| returned(refund)).map(|refund| refund.amount)),
            cost: cost(facts, received, currency, fits),
            disputed: sum(disputes().map(|dispute| minus(dispute.withdrawn, dispute.reinstated).max(0))),
            dispute_fee: sum(disputes().map(|dispute| dispute.fee)),
        }
    }
}

/// What each intent brought, and all charges that have none. An intent and its charges speak of the same money, so the
/// greater counts.
pub(super) fn received(
    facts: &Facts,
    fits: impl Fn(Option<Currency>) -> bool,
) -> BTreeMap<Option<&str>, i64> {
    let mut by_intent: BTreeMap<Option<&str>, i64> = BTreeMap::new();
    let claims = |id: &String| {
        let mut intents = facts.intents.iter();
        intents.find(|(_, intent)| intent.charges.contains(id)).map(|(intent, _)| intent.as_str())
    };
    for (id, charge) in facts.charges.iter().filter(|(_, charge)| fits(charge.currency)) {
        let intent = charge.intent.as_deref().or_else(|| claims(id));
        let captured = by_intent.entry(intent).or_default();
        *captured = captured.saturating_add(charge.taken());
    }
    for (id, intent) in facts.intents.iter().filter(|(_, intent)| fits(intent.currency)) {
        let received = by_intent.entry(Some(id)).or_default();
        *received = intent.received.max(*received);
    }
    by_intent
}

/// The sum over the refunds that hold. A charge that says more than its refunds speaks of some that were not seen yet;
/// refunds whose charge is not known may be just these.
fn refunded(facts: &Facts, fits: impl Fn(Option<Currency>) -> bool) -> i64 {
    let of = |charge: Option<&str>, wanted: fn(&Refund) -> bool| {
        let own =
            |refund: &&Refund| fits(refund.currency) && refund.charge.as_deref() == charge && wanted(refund);
        sum(facts.refunds.values().filter(own).map(|refund| refund.amount))
    };
    let holds: fn(&Refund) -> bool = |refund| !returned(refund);
    let unseen = facts.charges.iter().filter(|(_, charge)| fits(charge.currency)).map(|(id, charge)| {
        let known = of(Some(id), holds).saturating_add(of(Some(id), returned));
        minus(minus(charge.refunded, charge.released), known).max(0)
    });
    let all = facts.refunds.values().filter(|refund| fits(refund.currency) && holds(refund));
    let homeless = of(None, holds);
    sum(all.map(|refund| refund.amount)).saturating_add(minus(sum(unseen), homeless).max(0))
}

fn returned(refund: &Refund) -> bool {
    match refund.status {
        RefundStatus::Pending | RefundStatus::RequiresAction | RefundStatus::Succeeded => false,
        RefundStatus::Cancelled | RefundStatus::Failed => true,
    }
}

fn pending(refund: &Refund) -> bool {
    match refund.status {
        RefundStatus::Pending | RefundStatus::RequiresAction => true,
        RefundStatus::Succeeded | RefundStatus::Cancelled | RefundStatus::Failed => false,
    }
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
        let entry = entry_of(facts, id, charge).filter(|entry| entry.currency == currency)?;
        Some((fee.saturating_add(entry.fee), net.saturating_add(entry.net)))
    })
}

/// The provider's entry of a charge: the one it names, or the one that names it and brought money.
fn entry_of<'f>(facts: &'f Facts, id: &str, charge: &Charge) -> Option<&'f Transaction> {
    let named = charge.transaction.as_ref().and_then(|transaction| facts.transactions.get(transaction));
    let mut naming = facts.transactions.values().filter(|entry| entry.source.as_deref() == Some(id));
    named.or_else(|| naming.find(|entry| entry.amount > 0))
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
