//! A payment: everything that is known of it, as facts that only grow. Joining is commutative, associative and
//! idempotent, so whatever arrives in whatever order ends the same; status and amounts are derived, never kept.
//!
//! Every scalar joins by taking the greater, every collection by uniting. What goes back and forth by its nature, an intent
//! between two tries, is kept as its newest snapshot: the moment that the provider wrote on it decides, never its arrival.

mod aggregate;
mod amounts;
mod derive;
mod due;
#[cfg(test)]
mod histories;
mod lines;
mod objects;
mod refund_order;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod scenarios;
mod session_try;
#[cfg(test)]
mod tests;
mod tries;
mod view;
mod why;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::decide::{parts, unite};
use crate::mail_address::MailAddress;
use crate::money::Currency;
use crate::time::Time;

pub use derive::{Attention, Derived, PaymentStatus};
pub use due::{DuePart, PaymentDue, anchor, due, refund_ordered};
pub use lines::{BookLine, Lines, balance_of, customer_account, customer_of, lines};
pub use objects::{
    Capture, Charge, ChargeStatus, CheckoutSession, Dispute, DisputeStatus, Intent, IntentStatus, Refund,
    RefundStatus, SessionStatus, Snapshot, Transaction,
};
pub use refund_order::{Generation, RefundOrder, RefundOrderStatus, RefundWish, Refundable, Release};
pub use session_try::{SessionGeneration, SessionPlace, SessionTry, SessionWish, TRIES_MAX, TryFate};
pub use view::{refund_order, view};
pub use why::Why;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// Where it went when it turned out to be another's part. Then nothing else counts.
    #[serde(skip_serializing_if = "is_nothing")]
    pub merged_into: Option<String>,
    /// The clusters it is made of, if they are several; everything else is then what they know together.
    #[serde(skip_serializing_if = "is_nothing")]
    pub clusters: Vec<Self>,
    /// The id it has when it stands alone.
    #[serde(skip_serializing_if = "is_nothing")]
    pub born: Option<String>,
    /// The provider's ids, and ours.
    #[serde(skip_serializing_if = "is_nothing")]
    pub names: BTreeSet<String>,
    #[serde(skip_serializing_if = "is_nothing")]
    pub livemode: Option<bool>,
    /// The connected account whose words the references are.
    #[serde(skip_serializing_if = "is_nothing")]
    pub account: Option<String>,
    /// Said by the app that created it, by our id.
    #[serde(skip_serializing_if = "is_nothing")]
    pub ours: BTreeMap<String, MerchantOrder>,
    /// Said by the provider's objects in our name.
    #[serde(skip_serializing_if = "is_nothing")]
    pub orders: BTreeSet<String>,
    /// What may be an order or a customer: leads to an order that the app posted, and makes nothing one.
    #[serde(skip_serializing_if = "is_nothing")]
    pub client_references: BTreeSet<String>,
    /// Whose it is by the billing whose invoice it pays, as that stands now; counts where nothing else says it.
    #[serde(skip_serializing_if = "is_nothing")]
    pub billed_to: Option<String>,
    /// Tenants whose payments named this order, which was posted for none.
    #[serde(skip_serializing_if = "is_nothing")]
    pub sought_by: BTreeSet<String>,
    /// Other payments that have a reference of this one, too.
    #[serde(skip_serializing_if = "is_nothing")]
    pub namesakes: BTreeSet<String>,
    /// Payments to which money went that was told of as this one's.
    #[serde(skip_serializing_if = "is_nothing")]
    pub lost: BTreeSet<String>,
    #[serde(skip_serializing_if = "is_nothing")]
    pub tenants: BTreeSet<String>,
    #[serde(skip_serializing_if = "is_nothing")]
    pub customers: BTreeSet<String>,
    #[serde(skip_serializing_if = "is_nothing")]
    pub purposes: BTreeSet<String>,
    /// Provider, account and mode of the objects below, as text.
    #[serde(skip_serializing_if = "is_nothing")]
    pub realms: BTreeSet<String>,
    /// The provider's own customers.
    #[serde(skip_serializing_if = "is_nothing")]
    pub provider_customers: BTreeSet<String>,
    /// Where whoever paid can be reached, and how each address came to us.
    #[serde(skip_serializing_if = "is_nothing")]
    pub emails: BTreeMap<MailAddress, Till>,
    /// Invoices it pays.
    #[serde(skip_serializing_if = "is_nothing")]
    pub invoices: BTreeSet<String>,
    #[serde(skip_serializing_if = "is_nothing")]
    pub sessions: BTreeMap<String, CheckoutSession>,
    /// What is to be paid and can be tried several times: Stripe's payment intents.
    #[serde(skip_serializing_if = "is_nothing")]
    pub intents: BTreeMap<String, Intent>,
    /// Single attempts to take money.
    #[serde(skip_serializing_if = "is_nothing")]
    pub charges: BTreeMap<String, Charge>,
    /// Entries in the provider's own books.
    #[serde(skip_serializing_if = "is_nothing")]
    pub transactions: BTreeMap<String, Transaction>,
    #[serde(skip_serializing_if = "is_nothing")]
    pub refunds: BTreeMap<String, Refund>,
    #[serde(skip_serializing_if = "is_nothing")]
    pub disputes: BTreeMap<String, Dispute>,
    /// Refunds that were ordered here, by what caused them.
    #[serde(skip_serializing_if = "is_nothing")]
    pub refund_orders: BTreeMap<String, RefundOrder>,
    /// Checkout Sessions that were asked for here, by number.
    #[serde(skip_serializing_if = "is_nothing")]
    pub session_tries: BTreeMap<u32, SessionTry>,
    /// What hangs on this payment: reservations, fulfilments, cases, by their ids. Whoever writes one of them writes this too.
    #[serde(skip_serializing_if = "is_nothing")]
    pub members: BTreeSet<String>,
    /// When money came first, by the provider's clock where it says so.
    #[serde(skip_serializing_if = "is_nothing")]
    pub paid_at: Option<Time>,
    /// Other payments of the app's that something of this one also named. Two of them are never made one.
    #[serde(skip_serializing_if = "is_nothing")]
    pub conflicts: BTreeSet<String>,
    /// The keys of everything that was announced or asked for. What fired fired, also after a merge.
    #[serde(skip_serializing_if = "is_nothing")]
    pub emitted: BTreeSet<String>,
}

/// Where an address was written at the provider's till. The greater says more surely where the buyer reads mail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Till {
    /// Filled in beforehand by the shop.
    #[default]
    Prefilled,
    /// Of whoever owns the card or the account.
    Billing,
    /// Where the shop has the provider's receipt sent.
    Receipt,
    /// By the buyer.
    Buyer,
}

/// A payment as the app that created it described it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct MerchantOrder {
    pub amount: i64,
    pub currency: Option<Currency>,
    pub tenant: Option<String>,
    pub customer: Option<String>,
    pub purpose: Option<String>,
    pub reference: Option<String>,
    /// Posted by a key of the whole installation: its reference is nobody else's.
    pub for_all: bool,
    pub account: Option<String>,
    pub description: Option<String>,
    pub metadata: BTreeMap<String, String>,
}

impl Facts {
    /// Adds what another knows.
    pub fn join(&mut self, other: &Self) {
        greater(&mut self.merged_into, &other.merged_into);
        oldest(&mut self.born, other.born.as_ref());
        greater(&mut self.livemode, &other.livemode);
        greater(&mut self.account, &other.account);
        greater(&mut self.billed_to, &other.billed_to);
        self.names.extend(other.names.iter().cloned());
        self.orders.extend(other.orders.iter().cloned());
        self.client_references.extend(other.client_references.iter().cloned());
        self.sought_by.extend(other.sought_by.iter().cloned());
        self.namesakes.extend(other.namesakes.iter().cloned());
        self.lost.extend(other.lost.iter().cloned());
        self.tenants.extend(other.tenants.iter().cloned());
        self.customers.extend(other.customers.iter().cloned());
        self.purposes.extend(other.purposes.iter().cloned());
        self.realms.extend(other.realms.iter().cloned());
        self.provider_customers.extend(other.provider_customers.iter().cloned());
        each(&mut self.emails, &other.emails, greater);
        self.invoices.extend(other.invoices.iter().cloned());
        self.conflicts.extend(other.conflicts.iter().cloned());
        self.members.extend(other.members.iter().cloned());
        self.money_came(other.paid_at);
        self.emitted.extend(other.emitted.iter().cloned());
        each(&mut self.ours, &other.ours, greater);
        each(&mut self.sessions, &other.sessions, CheckoutSession::join);
        each(&mut self.intents, &other.intents, Intent::join);
        each(&mut self.charges, &other.charges, Charge::join);
        each(&mut self.transactions, &other.transactions, Transaction::join);
        each(&mut self.refunds, &other.refunds, Refund::join);
        each(&mut self.disputes, &other.disputes, Dispute::join);
        each(&mut self.refund_orders, &other.refund_orders, RefundOrder::join);
        each(&mut self.session_tries, &other.session_tries, SessionTry::join);
    }
}

impl Facts {
    /// Everything that is kept of a payment, whatever it is made of.
    pub fn parse(facts: &str) -> serde_json::Result<Self> {
        Ok(unite(&parts::<Self>(facts)?).into_owned())
    }

    /// Remembers when money came; the earliest that anybody says counts.
    pub fn money_came(&mut self, at: Option<Time>) {
        self.paid_at = self.paid_at.into_iter().chain(at).min();
    }

    /// Whether it tells of money that was taken.
    pub fn brings_money(&self) -> bool {
        self.charges.values().any(|charge| charge.taken() > 0)
            || self.intents.values().any(|intent| intent.received > 0)
    }

    /// Where whoever paid can be told something: what is most surely the buyer's own, whichever came first.
    pub fn email(&self) -> Option<&MailAddress> {
        let best = self.emails.iter().max_by_key(|(address, till)| (**till, Reverse(*address)));
        best.map(|(address, _)| address)
    }

    /// Adds an address; what is no address is no fact.
    pub fn reached_at(&mut self, email: Option<&str>, till: Till) {
        if let Some(address) = email.and_then(|email| email.parse().ok()) {
            greater(self.emails.entry(address).or_default(), &till);
        }
    }

    /// Whose it is.
    pub fn tenant(&self) -> Option<&str> {
        let posted = self.ours.values().find_map(|ours| ours.tenant.as_deref());
        posted.or_else(|| self.tenants.first().map(String::as_str)).or(self.billed_to.as_deref())
    }

    /// Everyone whose it is said to be.
    pub fn all_tenants(&self) -> BTreeSet<&str> {
        let posted = self.ours.values().filter_map(|ours| ours.tenant.as_deref());
        posted.chain(self.tenants.iter().map(String::as_str)).collect()
    }

    /// Whether something of ours asked for this money, and only one.
    pub fn is_linked(&self) -> bool {
        let is_named = !(self.orders.is_empty() && self.client_references.is_empty());
        !self.ours.is_empty() || !self.invoices.is_empty() || is_named && self.conflicts.is_empty()
    }

    /// Whether anything speaks of money, or of an order. An invoice alone does not: it only says what will pay it.
    pub fn says_something(&self) -> bool {
        let Self { ours, sessions, intents, charges, transactions, refunds, disputes, .. } = self;
        !(ours.is_empty()
            && sessions.is_empty()
            && intents.is_empty()
            && charges.is_empty()
            && transactions.is_empty()
            && refunds.is_empty()
            && disputes.is_empty())
    }

    /// The realm an object of it belongs to.
    pub fn realm_of(&self, id: &str) -> Option<&str> {
        let mut named = self.realms.iter().filter(|realm| self.names.contains(&format!("{realm}/{id}")));
        named.next().or_else(|| self.realms.first()).map(String::as_str)
    }
}

/// What says nothing is not written down.
pub(super) fn is_nothing<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Keeps the older of two ids.
pub(super) fn oldest(mine: &mut Option<String>, other: Option<&String>) {
    if other.is_some_and(|other| mine.as_ref().is_none_or(|mine| other < mine)) {
        *mine = other.cloned();
    }
}

/// Keeps the greater of two; nothing is less than anything.
pub(super) fn greater<T: Ord + Clone>(mine: &mut T, other: &T) {
    if *other > *mine {
        mine.clone_from(other);
    }
}

/// Joins two maps entry by entry.
pub(super) fn each<K: Ord + Clone, T: Clone>(
    mine: &mut BTreeMap<K, T>,
    other: &BTreeMap<K, T>,
    join: impl Fn(&mut T, &T),
) {
    for (id, theirs) in other {
        match mine.get_mut(id) {
            Some(known) => join(known, theirs),
            None => drop(mine.insert(id.clone(), theirs.clone())),
        }
    }
}
