//! A payment: everything that is known of it, as facts that only grow. Joining is commutative, associative and
//! idempotent, so whatever arrives in whatever order ends the same; status and amounts are derived, never kept.
//!
//! Every scalar joins by taking the greater, every collection by uniting. No time decides anything.

mod amounts;
mod derive;
mod due;
mod lines;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod scenarios;
#[cfg(test)]
mod tests;
mod thing;
mod view;
mod why;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::money::Currency;
use crate::notification::MailAddress;

pub use derive::{Attention, Derived, Status};
pub use due::{Due, What, anchor, due};
pub use lines::{Line, Lines, balance_of, customer_account, customer_of, lines};
pub use view::view;
pub use why::Why;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// Where it went when it turned out to be another's part. Then nothing else counts.
    pub merged_into: Option<String>,
    /// What leads here.
    pub names: BTreeSet<String>,
    pub livemode: Option<bool>,
    /// Said by the app that created it, by our id.
    pub ours: BTreeMap<String, Ours>,
    /// Said by the provider's objects in our name.
    pub orders: BTreeSet<String>,
    pub tenants: BTreeSet<String>,
    pub customers: BTreeSet<String>,
    pub purposes: BTreeSet<String>,
    /// Provider, account and mode of the objects below, as text.
    pub realms: BTreeSet<String>,
    /// The provider's own customers.
    pub provider_customers: BTreeSet<String>,
    /// Where whoever paid can be reached, and how each address came to us.
    pub emails: BTreeMap<MailAddress, Till>,
    /// Invoices it pays.
    pub invoices: BTreeSet<String>,
    pub sessions: BTreeMap<String, Session>,
    /// What is to be paid and can be tried several times: Stripe's payment intents.
    pub intents: BTreeMap<String, Intent>,
    /// Single attempts to take money.
    pub charges: BTreeMap<String, Charge>,
    /// Entries in the provider's own books.
    pub transactions: BTreeMap<String, Transaction>,
    pub refunds: BTreeMap<String, Refund>,
    pub disputes: BTreeMap<String, Dispute>,
    /// Other payments of the app's that something of this one also named. Two of them are never made one.
    pub conflicts: BTreeSet<String>,
    /// The keys of everything that was announced or asked for. What fired fired, also after a merge.
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
pub struct Ours {
    pub amount: i64,
    pub currency: Option<Currency>,
    pub tenant: Option<String>,
    pub customer: Option<String>,
    pub purpose: Option<String>,
    pub reference: Option<String>,
    pub account: Option<String>,
    pub description: Option<String>,
    pub metadata: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Session {
    pub status: SessionStatus,
    /// The provider calls it paid. That alone is no evidence of money.
    pub paid: bool,
    /// Its delayed payment failed.
    pub failed: bool,
    pub amount: i64,
    pub currency: Option<Currency>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    #[default]
    Open,
    Expired,
    Complete,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Intent {
    pub status: IntentStatus,
    pub amount: i64,
    pub received: i64,
    pub currency: Option<Currency>,
    /// An attempt failed. More may follow.
    pub failed: bool,
    pub failure: Option<String>,
    /// The attempts it calls its own; a charge may not say so itself.
    pub charges: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntentStatus {
    #[default]
    Waiting,
    /// The customer has to do something elsewhere: pay at the konbini, transfer money.
    RequiresAction,
    Processing,
    Cancelled,
    Succeeded,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Charge {
    pub status: ChargeStatus,
    pub intent: Option<String>,
    pub amount: i64,
    pub captured: i64,
    /// As the charge itself says, over all its refunds; the greatest ever said.
    pub refunded: i64,
    pub currency: Option<Currency>,
    pub transaction: Option<String>,
    pub receipt_url: Option<String>,
    pub failure: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChargeStatus {
    #[default]
    Pending,
    Failed,
    Succeeded,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Transaction {
    /// The charge, refund or dispute it belongs to.
    pub source: Option<String>,
    pub amount: i64,
    pub fee: i64,
    pub net: i64,
    pub currency: Option<Currency>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Refund {
    pub status: RefundStatus,
    pub charge: Option<String>,
    pub amount: i64,
    pub currency: Option<Currency>,
    pub reason: Option<String>,
    pub failure: Option<String>,
}

/// A refund can fail after it succeeded, never the other way round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefundStatus {
    #[default]
    Pending,
    RequiresAction,
    Succeeded,
    Cancelled,
    Failed,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Dispute {
    pub status: DisputeStatus,
    pub charge: Option<String>,
    pub amount: i64,
    pub currency: Option<Currency>,
    pub reason: Option<String>,
    /// What was taken from our account and given back to it, and what it cost.
    pub withdrawn: i64,
    pub reinstated: i64,
    pub fee: i64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DisputeStatus {
    /// A question of the bank; no money moves.
    #[default]
    Inquiry,
    NeedsResponse,
    UnderReview,
    InquiryClosed,
    Won,
    Lost,
}

impl Facts {
    /// Adds what another knows.
    pub fn join(&mut self, other: &Self) {
        greater(&mut self.merged_into, &other.merged_into);
        greater(&mut self.livemode, &other.livemode);
        self.names.extend(other.names.iter().cloned());
        self.orders.extend(other.orders.iter().cloned());
        self.tenants.extend(other.tenants.iter().cloned());
        self.customers.extend(other.customers.iter().cloned());
        self.purposes.extend(other.purposes.iter().cloned());
        self.realms.extend(other.realms.iter().cloned());
        self.provider_customers.extend(other.provider_customers.iter().cloned());
        each(&mut self.emails, &other.emails, greater);
        self.invoices.extend(other.invoices.iter().cloned());
        self.conflicts.extend(other.conflicts.iter().cloned());
        self.emitted.extend(other.emitted.iter().cloned());
        each(&mut self.ours, &other.ours, greater);
        each(&mut self.sessions, &other.sessions, Session::join);
        each(&mut self.intents, &other.intents, Intent::join);
        each(&mut self.charges, &other.charges, Charge::join);
        each(&mut self.transactions, &other.transactions, Transaction::join);
        each(&mut self.refunds, &other.refunds, Refund::join);
        each(&mut self.disputes, &other.disputes, Dispute::join);
    }
}

impl Facts {
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

    /// The realm an object of it belongs to.
    pub fn realm_of(&self, id: &str) -> Option<&str> {
        let mut named = self.realms.iter().filter(|realm| self.names.contains(&format!("{realm}/{id}")));
        named.next().or_else(|| self.realms.first()).map(String::as_str)
    }
}

impl Session {
    fn join(&mut self, other: &Self) {
        greater(&mut self.status, &other.status);
        greater(&mut self.paid, &other.paid);
        greater(&mut self.failed, &other.failed);
        greater(&mut self.amount, &other.amount);
        greater(&mut self.currency, &other.currency);
    }
}

impl Intent {
    fn join(&mut self, other: &Self) {
        greater(&mut self.status, &other.status);
        greater(&mut self.amount, &other.amount);
        greater(&mut self.received, &other.received);
        greater(&mut self.currency, &other.currency);
        greater(&mut self.failed, &other.failed);
        greater(&mut self.failure, &other.failure);
        self.charges.extend(other.charges.iter().cloned());
    }
}

impl Charge {
    fn join(&mut self, other: &Self) {
        greater(&mut self.status, &other.status);
        greater(&mut self.intent, &other.intent);
        greater(&mut self.amount, &other.amount);
        greater(&mut self.captured, &other.captured);
        greater(&mut self.refunded, &other.refunded);
        greater(&mut self.currency, &other.currency);
        greater(&mut self.transaction, &other.transaction);
        greater(&mut self.receipt_url, &other.receipt_url);
        greater(&mut self.failure, &other.failure);
    }
}

impl Transaction {
    fn join(&mut self, other: &Self) {
        greater(&mut self.source, &other.source);
        greater(&mut self.amount, &other.amount);
        greater(&mut self.fee, &other.fee);
        greater(&mut self.net, &other.net);
        greater(&mut self.currency, &other.currency);
    }
}

impl Refund {
    fn join(&mut self, other: &Self) {
        greater(&mut self.status, &other.status);
        greater(&mut self.charge, &other.charge);
        greater(&mut self.amount, &other.amount);
        greater(&mut self.currency, &other.currency);
        greater(&mut self.reason, &other.reason);
        greater(&mut self.failure, &other.failure);
    }
}

impl Dispute {
    fn join(&mut self, other: &Self) {
        greater(&mut self.status, &other.status);
        greater(&mut self.charge, &other.charge);
        greater(&mut self.amount, &other.amount);
        greater(&mut self.currency, &other.currency);
        greater(&mut self.reason, &other.reason);
        greater(&mut self.withdrawn, &other.withdrawn);
        greater(&mut self.reinstated, &other.reinstated);
        greater(&mut self.fee, &other.fee);
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
