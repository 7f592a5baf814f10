//! What follows for an order as a whole: its payment, the places it reserves, and what must be made for it. They are decided
//! together and written together; the payment is their lock (without one, the reservation, or else the fulfilment): whoever
//! writes one of them writes it too, so two decisions about one order never pass each other.
//!
//! Time enters by deadlines: each decision says when the clock may next change something, and one timer is planned for that
//! moment. A timer that comes early or twice finds nothing to do.

mod asking;
mod check;
mod checkout;
mod conditions;
mod fulfilment;
mod reservation;
#[cfg(test)]
mod tests;
pub mod view;

use std::sync::LazyLock;

use super::checkout::CheckoutPolicy;
use super::payment::{CheckoutSession, Derived, Facts, PaymentStatus, SessionStatus, TryFate};
use super::refund::RefundPolicy;
use crate::case::{FaultReport, Word};
use crate::compensation::{CompensationRule, shipped};
use crate::fulfilment as ful;
use crate::link::{LinkKeys, LinkedOrder, OrderLink};
use crate::reservation as rsv;
use crate::slot::Slot;
use crate::state::{Key, Kind};
use crate::time::{DAY_MS, HOUR_MS, Time};

pub use check::{CheckedRule, OrderFacts, RuleStanding};

pub(super) use asking::questions;
pub(super) use checkout::follow as follow_tries;
pub(super) use conditions::conditions;
pub(super) use fulfilment::{follow as follow_fulfilment, tier};
pub(super) use reservation::{Wants, follow as follow_reservation};

/// What operators decide about orders.
#[derive(Clone, Debug)]
pub struct OrderPolicy {
    /// How long after its time a hold still keeps its places.
    pub grace_ms: i64,
    /// The longest hold, for those who pay at the konbini.
    pub delayed_max_ms: i64,
    pub late_payment: LatePayment,
    /// How long before it starts a customer may still cancel.
    pub cancel_until_ms: i64,
    /// Runs that may fail before a fulfilment has.
    pub attempts: u32,
    /// How long a run may take.
    pub timeout_ms: i64,
    /// The pause before the next run; doubles with each.
    pub retry_wait_ms: i64,
    /// How long what was made stays available once its money went back.
    pub keep_after_refund_ms: i64,
    pub refunds: RefundPolicy,
    pub checkout: CheckoutPolicy,
    /// What is done when something goes wrong.
    pub rules: Vec<CompensationRule>,
    pub links: LinkPolicy,
}

/// What is handed to customers and to whoever makes something, so that they can come back.
#[derive(Clone, Debug, Default)]
pub struct LinkPolicy {
    pub keys: LinkKeys,
    /// Where customers' pages are; `None` is nowhere.
    pub pages: Option<String>,
    /// How long a customer's link is good.
    pub lasts_ms: i64,
    /// Where the API is, for results.
    pub api: Option<String>,
}

impl LinkPolicy {
    /// The address of an order's page, if there are pages.
    pub fn page_of(&self, id: &str, generation: u32, at: Time) -> Option<String> {
        let (order, generation) = (LinkedOrder::of(id)?, u16::try_from(generation).ok()?);
        let link = OrderLink { order, expires_at: at.plus_ms(self.lasts_ms), generation };
        Some(format!("{}/o/{}", self.pages.as_ref()?, self.keys.sign_link(&link)?))
    }

    /// Where the result of a fulfilment's run is posted.
    pub fn result_url(&self, fulfilment: &str) -> Option<String> {
        Some(format!("{}/v1/fulfilments/{fulfilment}/result", self.api.as_ref()?))
    }
}

/// What is done with money that comes when the hold is over, and its places are free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatePayment {
    Refund,
    Reassign,
}

impl OrderPolicy {
    /// Takes a rule in place of the one of its name, or beside the others.
    pub fn set_rule(&mut self, rule: CompensationRule) {
        match self.rules.iter_mut().find(|known| known.name == rule.name) {
            Some(known) => *known = rule,
            None => self.rules.push(rule),
        }
    }
}

impl Default for OrderPolicy {
    fn default() -> Self {
        Self {
            grace_ms: 2 * 60_000,
            delayed_max_ms: 7 * DAY_MS,
            late_payment: LatePayment::Refund,
            cancel_until_ms: 48 * HOUR_MS,
            attempts: 3,
            timeout_ms: 30 * 60_000,
            retry_wait_ms: 0,
            keep_after_refund_ms: 7 * DAY_MS,
            refunds: RefundPolicy::default(),
            checkout: CheckoutPolicy::default(),
            rules: shipped(),
            links: LinkPolicy::default(),
        }
    }
}

pub(super) static DEFAULT_POLICY: LazyLock<OrderPolicy> = LazyLock::new(OrderPolicy::default);

/// What an input says of an order, beside its payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderPart {
    Hold(Box<Hold>),
    Reservation {
        id: String,
        facts: Box<rsv::ReservationFacts>,
    },
    /// Somebody wants to pay once more: the places are held anew, or others if they lapsed.
    Renewal(Renewal),
    NewFulfilment {
        id: String,
        facts: Box<ful::FulfilmentFacts>,
    },
    Fulfilment {
        id: String,
        facts: Box<ful::FulfilmentFacts>,
    },
    /// What a person says of a case.
    Case {
        id: String,
        word: CaseWord,
    },
    /// A node says what does not work, or works again.
    Fault(FaultReport),
    /// A place is taken and given back, to see whether that works.
    Probe(HoldProbe),
    /// A moment that was waited for has come.
    Deadline(Key),
}

/// A place that a node takes of a slot nobody sees, or gives back. Only the block of that slot is written: no reservation, no
/// entry of the audit log, nothing that grows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldProbe {
    /// Whose place it is: the node.
    pub by: String,
    pub takes: bool,
}

/// What a person may say of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseWord {
    Acknowledge(Word),
    Resolve(Word),
}

/// Places that are asked for, and what they are for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    pub id: String,
    pub reservation: rsv::ReservationFacts,
    /// The slot as it is made if nobody has made it.
    pub slot: Slot,
    pub fulfilment: Option<(String, ful::FulfilmentFacts)>,
}

/// Places that are held longer, or again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewal {
    pub id: String,
    pub until: Time,
}

/// The kind of what an id of ours names.
pub(super) fn member(id: &str) -> Option<Key> {
    let kind = match id.split('_').next()? {
        "rsv" => Kind::Reservation,
        "ful" => Kind::Fulfilment,
        "case" => Kind::Case,
        _ => return None,
    };
    Some(Key::new(kind, id))
}

/// How long what a customer pays with elsewhere is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Voucher {
    Until(Time),
    /// The provider is being asked; by then it will have said.
    AskedFor {
        by: Time,
    },
    Endless,
}

/// Where the money of an order stands.
pub(super) struct OrderMoney<'f> {
    pub id: &'f str,
    pub facts: &'f Facts,
    pub derived: Derived,
    /// Whether the provider can be asked about it.
    pub can_ask: bool,
}

impl<'f> OrderMoney<'f> {
    pub fn of(id: &'f str, facts: &'f Facts) -> Self {
        Self { id, facts, derived: Derived::of(facts), can_ask: false }
    }

    pub fn is_paid(&self) -> bool {
        self.derived.is_settled() && self.derived.status != PaymentStatus::Refunded
    }

    /// All of it went back, and arrived.
    pub fn is_refunded(&self) -> bool {
        self.derived.status == PaymentStatus::Refunded
    }

    /// Nothing more can come of it by itself: the session ran out, or the order was called off.
    pub fn is_over(&self) -> bool {
        let fate = self.facts.newest_try().map(|(_, one)| self.facts.fate(one));
        match self.derived.status {
            PaymentStatus::Expired | PaymentStatus::Cancelled => true,
            // A voucher ran out. Without a try of ours, another session may be open.
            PaymentStatus::Failed => fate == Some(TryFate::Failed),
            PaymentStatus::Unpaid
            | PaymentStatus::Processing
            | PaymentStatus::PartiallyPaid
            | PaymentStatus::Paid
            | PaymentStatus::PartiallyRefunded
            | PaymentStatus::Refunded => false,
        }
    }

    /// The customer went to pay elsewhere, at the konbini or by a bank transfer, which may take days.
    pub fn is_delayed(&self) -> bool {
        self.derived.status == PaymentStatus::Processing
    }

    /// A session of it is complete and called paid, and its money is not here yet.
    pub fn is_promised(&self) -> bool {
        let is_paid = |one: &CheckoutSession| one.status == SessionStatus::Complete && one.paid;
        self.derived.received == 0 && self.facts.sessions.values().any(is_paid)
    }

    /// Until when a customer who pays elsewhere may do so.
    pub fn voucher(&self, at: Time) -> Voucher {
        if let Some(seconds) = self.facts.intents.values().filter_map(|intent| intent.expires_at).max() {
            return Voucher::Until(Time::from_seconds(seconds));
        }
        // Who can't be asked says nothing: then the customer has all the time there is.
        let is_unknown = |id: &String| self.can_ask && !self.facts.intents.contains_key(id);
        let asked = self.facts.sessions.values().filter(|one| one.intent.as_ref().is_some_and(is_unknown));
        let completed = asked.filter_map(|one| one.completed_at).max().map(Time::from_seconds);
        match completed.map(|completed| completed.plus_ms(HOUR_MS)).filter(|by| at < *by) {
            Some(by) => Voucher::AskedFor { by },
            None => Voucher::Endless,
        }
    }

    /// What came beyond what was asked for, and is still here.
    pub fn surplus(&self) -> i64 {
        let due = if self.derived.amount > 0 { self.derived.amount } else { self.derived.received };
        crate::money::minus(self.derived.received, due).max(0).min(self.kept())
    }

    /// What came, less what went back or is ordered to.
    pub fn kept(&self) -> i64 {
        crate::money::sum(self.facts.refundables().iter().map(|one| one.left))
    }

    pub fn paid_at(&self, now: Time) -> Time {
        self.facts.paid_at.unwrap_or(now)
    }
}
