//! Refunds that were ordered here: what is wanted, by whom and why, and by which calls the provider is asked for it. An order
//! stands in its payment's facts under a key that names its cause, so that one cause orders one refund, whoever says it
//! however often. Its key travels in the refund's own metadata, and by that every witness says the same: whose refund it is.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::amounts::{Amounts, intent_of, released};
use super::{Facts, RefundStatus, each, greater, is_nothing};
use crate::money::{Currency, minus, sum};
use crate::time::Time;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RefundOrder {
    pub wish: RefundWish,
    /// By the object that is refunded, and by generation: another idempotency key each, and perhaps another amount.
    #[serde(skip_serializing_if = "is_nothing")]
    pub calls: BTreeMap<String, BTreeMap<u32, Generation>>,
    /// Why nothing more is asked of the provider, by object.
    #[serde(skip_serializing_if = "is_nothing")]
    pub gave_up: BTreeMap<String, String>,
    /// Objects of which nothing was left when the provider was asked: nothing more is asked of it.
    #[serde(skip_serializing_if = "is_nothing")]
    pub met: BTreeSet<String>,
    /// Ordered by a rule beyond what rules may order in an hour: a person lets it go.
    #[serde(skip_serializing_if = "is_nothing")]
    pub held_back: bool,
    #[serde(skip_serializing_if = "is_nothing")]
    pub released: Option<Release>,
}

/// What is wanted. Never changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct RefundWish {
    pub at: Time,
    /// `SYSTEM`, `ADMIN:{name}`, `API:{key}` or `CUSTOMER`.
    pub by: String,
    /// What caused it: `OPERATOR`, or a rule's.
    pub trigger: String,
    /// `None` is whatever is left.
    pub amount: Option<i64>,
    pub currency: Option<Currency>,
    pub reason: String,
    pub notes: Option<String>,
    /// The provider has no command for it: a person refunds there, and the provider's own event closes it. How much must have
    /// gone back then, in all.
    pub by_hand: Option<i64>,
}

/// One way in which the provider is asked: what is sent under one idempotency key.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct Generation {
    pub amount: i64,
    pub currency: Option<Currency>,
    /// When the provider answered with a failure that it keeps under the key.
    #[serde(skip_serializing_if = "is_nothing")]
    pub failed_at: Option<Time>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Release {
    pub at: Time,
    pub by: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefundOrderStatus {
    /// The provider has not said anything yet.
    Ordered,
    /// The provider has it, and the money is on its way.
    Pending,
    Done,
    /// Nothing is left to give back: others were faster.
    MetElsewhere,
    /// It came to nothing; a person decides.
    Failed,
    /// A person must let it go first.
    HeldBack,
}

impl RefundOrderStatus {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ordered => "ordered",
            Self::Pending => "pending",
            Self::Done => "done",
            Self::MetElsewhere => "met_elsewhere",
            Self::Failed => "failed",
            Self::HeldBack => "held_back",
        }
    }
}

impl RefundOrder {
    pub(super) fn join(&mut self, other: &Self) {
        // Both say the same, unless two were ordered under one key: then the first counts.
        if self.wish == RefundWish::default() || other.wish < self.wish && other.wish != RefundWish::default()
        {
            self.wish.clone_from(&other.wish);
        }
        each(&mut self.calls, &other.calls, |mine, other| each(mine, other, Generation::join));
        each(&mut self.gave_up, &other.gave_up, greater);
        self.met.extend(other.met.iter().cloned());
        greater(&mut self.held_back, &other.held_back);
        greater(&mut self.released, &other.released);
    }

    /// The call that counts, of each object.
    pub fn newest(&self) -> impl Iterator<Item = (&String, u32, &Generation)> {
        self.calls.iter().filter_map(|(object, generations)| {
            generations.last_key_value().map(|(n, call)| (object, *n, call))
        })
    }

    /// How much it gives back in a currency: the first that was asked for.
    pub fn amount(&self, currency: Option<Currency>) -> i64 {
        let first = self.calls.values().filter_map(|generations| generations.values().next());
        let asked = sum(first.filter(|call| call.currency == currency).map(|call| call.amount));
        if self.calls.is_empty() { self.wish.amount.unwrap_or_default() } else { asked }
    }

    /// Whether nothing more is asked of the provider for an object.
    pub fn is_over(&self, object: &str) -> bool {
        self.gave_up.contains_key(object) || self.met.contains(object)
    }

    pub fn waits_for_release(&self) -> bool {
        self.held_back && self.released.is_none()
    }
}

impl Generation {
    fn join(&mut self, other: &Self) {
        greater(&mut self.amount, &other.amount);
        greater(&mut self.currency, &other.currency);
        greater(&mut self.failed_at, &other.failed_at);
    }
}

/// What brought money and can be refunded by itself: an intent with its charges, or a charge that has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refundable {
    pub id: String,
    /// In the provider's words.
    pub object: &'static str,
    pub currency: Option<Currency>,
    pub received: i64,
    /// What has not gone back, is not on its way back, and is not disputed.
    pub kept: i64,
    /// What of that no order takes.
    pub left: i64,
}

impl Facts {
    /// Everything that brought money, the oldest first.
    pub fn refundables(&self) -> Vec<Refundable> {
        let of_charges = self.charges.iter().filter(|(_, charge)| charge.taken() > 0);
        let of_charges = of_charges.map(|(id, charge)| intent_of(self, id, charge).unwrap_or(id));
        let of_intents = self.intents.iter().filter(|(_, intent)| intent.received > 0);
        let ids: BTreeSet<&str> = of_charges.chain(of_intents.map(|(id, _)| id.as_str())).collect();
        let is_only = ids.len() == 1;
        let age = |id: &str| self.intents.get(id).and_then(|intent| Some(intent.newest.as_ref()?.at));
        let mut ids: Vec<&str> = ids.into_iter().collect();
        ids.sort_by_key(|id| (age(id).unwrap_or(i64::MAX), *id));
        ids.into_iter().map(|id| self.refundable(id, is_only)).collect()
    }

    fn refundable(&self, id: &str, is_only: bool) -> Refundable {
        let part = self.only(id, is_only);
        let of_charges = part.charges.values().find_map(|charge| charge.currency);
        let currency = of_charges.or_else(|| part.intents.get(id).and_then(|intent| intent.currency));
        let amounts = Amounts::of(&part, currency);
        let disputed = amounts.disputed.saturating_add(amounts.dispute_lost);
        let kept = minus(minus(amounts.received, amounts.back.gone()), disputed).max(0);
        let open = self.refund_orders.iter().filter_map(|(key, order)| self.open_call(key, order, id));
        Refundable {
            id: id.to_owned(),
            object: if self.charges.contains_key(id) { "charge" } else { "payment_intent" },
            currency,
            received: amounts.received,
            kept,
            left: minus(kept, sum(open)).max(0),
        }
    }

    /// What is known of one object alone. Refunds that name none are its own where it is the only one.
    fn only(&self, id: &str, is_only: bool) -> Self {
        let mut part = Self::default();
        part.intents.extend(self.intents.get(id).map(|intent| (id.to_owned(), intent.clone())));
        for (charge_id, charge) in &self.charges {
            if charge_id == id || intent_of(self, charge_id, charge) == Some(id) {
                part.charges.insert(charge_id.clone(), charge.clone());
            }
        }
        for (refund_id, refund) in &self.refunds {
            let of_charge = refund.charge.as_ref().is_some_and(|charge| part.charges.contains_key(charge));
            if is_only || of_charge || refund.intent.as_deref() == Some(id) {
                part.refunds.insert(refund_id.clone(), refund.clone());
            }
        }
        for (dispute_id, dispute) in &self.disputes {
            let of_charge = dispute.charge.as_ref().is_some_and(|charge| part.charges.contains_key(charge));
            if is_only || of_charge {
                part.disputes.insert(dispute_id.clone(), dispute.clone());
            }
        }
        part
    }

    /// What went back in a currency, or is on its way.
    pub fn gone_in(&self, currency: Option<Currency>) -> i64 {
        Amounts::of(self, currency).back.gone()
    }

    /// What the provider lists as refunded of an object, and was only reserved and let go.
    pub fn released_of(&self, object: &str) -> i64 {
        let own = self
            .charges
            .iter()
            .filter(|(id, charge)| *id == object || intent_of(self, id, charge) == Some(object));
        sum(own.map(|(_, charge)| released(charge)))
    }

    /// What an order still takes from an object: its call, until its refund is known or nothing more is asked.
    fn open_call(&self, key: &str, order: &RefundOrder, object: &str) -> Option<i64> {
        let (_, call) = order.calls.get(object)?.last_key_value()?;
        let is_over = order.is_over(object) || self.refunds_of(key, object).next().is_some();
        (!is_over).then_some(call.amount)
    }

    /// The refunds that an order made at an object.
    fn refunds_of<'f>(
        &'f self,
        key: &'f str,
        object: &'f str,
    ) -> impl Iterator<Item = (&'f String, &'f super::Refund)> {
        let is_at = move |refund: &super::Refund| {
            let charge = refund.charge.as_deref();
            let of = charge.and_then(|id| intent_of(self, id, self.charges.get(id)?));
            [refund.intent.as_deref(), of, charge].into_iter().flatten().any(|id| id == object)
        };
        self.refunds.iter().filter(move |(_, refund)| refund.order.as_deref() == Some(key) && is_at(refund))
    }

    /// The ids of the refunds that carry an order's key.
    pub fn refunds_by(&self, key: &str) -> impl Iterator<Item = (&String, &super::Refund)> {
        self.refunds.iter().filter(move |(_, refund)| refund.order.as_deref() == Some(key))
    }

    /// Where an order stands.
    pub fn refund_order_status(&self, key: &str, order: &RefundOrder) -> RefundOrderStatus {
        use RefundOrderStatus as Is;
        if let Some(target) = order.wish.by_hand {
            return if self.gone_in(order.wish.currency) >= target { Is::MetElsewhere } else { Is::Ordered };
        }
        let kept = |object: &str| {
            self.refundables().into_iter().find(|one| one.id == object).map_or(0, |one| one.kept)
        };
        let mut all: BTreeSet<u8> = BTreeSet::new();
        for (object, _, call) in order.newest() {
            let made: Vec<_> = self.refunds_of(key, object).map(|(_, refund)| refund).collect();
            let is_back = order.wish.amount.is_none() && kept(object) == 0;
            let held = sum(made.iter().filter(|one| one.status.holds()).map(|one| one.amount));
            let rank = if held >= call.amount || is_back && held > 0 {
                if made.iter().any(|one| one.status.is_under_way()) { PENDING } else { DONE }
            } else if is_back {
                ELSEWHERE
            } else if !made.is_empty() || order.is_over(object) {
                FAILED
            } else {
                ORDERED
            };
            all.insert(rank);
        }
        match all.last().copied().unwrap_or(ORDERED) {
            FAILED => Is::Failed,
            ORDERED if order.waits_for_release() => Is::HeldBack,
            ORDERED => Is::Ordered,
            PENDING => Is::Pending,
            DONE => Is::Done,
            _ => Is::MetElsewhere,
        }
    }
}

/// Of the objects of one order, what is furthest from done says where it stands.
const ELSEWHERE: u8 = 0;
const DONE: u8 = 1;
const PENDING: u8 = 2;
const ORDERED: u8 = 3;
const FAILED: u8 = 4;

impl RefundStatus {
    /// The money is gone, or on its way.
    pub const fn holds(self) -> bool {
        match self {
            Self::Pending | Self::RequiresAction | Self::Succeeded => true,
            Self::Cancelled | Self::Failed => false,
        }
    }

    /// It may still end either way.
    pub const fn is_under_way(self) -> bool {
        match self {
            Self::Pending | Self::RequiresAction => true,
            Self::Succeeded | Self::Cancelled | Self::Failed => false,
        }
    }
}
