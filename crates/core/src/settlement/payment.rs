//! A payment: everything that is known of it, as facts that only grow. Joining is commutative, associative and
//! idempotent, so whatever arrives in whatever order ends the same; status and amounts are derived, never kept.
//!
//! Every scalar joins by taking the greater, every collection by uniting. What goes back and forth by its nature, an intent
//! between two tries, is kept as its newest snapshot: the moment that the provider wrote on it decides, never its arrival.

mod amounts;
mod derive;
mod due;
#[cfg(test)]
mod histories;
mod lines;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod scenarios;
#[cfg(test)]
mod tests;
mod thing;
mod tries;
mod view;
mod why;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::decide::{parts, unite};
use crate::money::{Currency, minus};
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
    pub ours: BTreeMap<String, Ours>,
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
    pub sessions: BTreeMap<String, Session>,
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
pub struct Ours {
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
    pub intent: Option<String>,
    /// Seconds; when the customer completed it.
    pub completed_at: Option<i64>,
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
    /// How far it ever came.
    pub status: IntentStatus,
    /// As it was last, where the provider says when.
    pub newest: Option<Snapshot>,
    /// The greatest ever asked for.
    pub amount: i64,
    pub received: i64,
    pub currency: Option<Currency>,
    /// An attempt failed. More may follow.
    pub failed: bool,
    pub failure: Option<String>,
    /// Attempts that failed, each by its charge, or by the event that told of it where no charge was made.
    pub tries: BTreeSet<String>,
    /// The attempts it calls its own; a charge may not say so itself.
    pub charges: BTreeSet<String>,
    /// The provider's order of which it pays a part. All parts of one order add up.
    pub part_of: Option<String>,
}

/// An intent as it was at a moment. The order of the fields is the order of snapshots: of one second, a failure comes
/// after what it ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Snapshot {
    /// Seconds.
    pub at: i64,
    /// The last try failed, and no other is under way.
    pub failed: bool,
    pub status: IntentStatus,
    pub amount: i64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntentStatus {
    #[default]
    Waiting,
    /// The customer has what to pay with elsewhere: at the konbini, by bank transfer. A question at the till, such as 3-D
    /// Secure's, is `Waiting`.
    RequiresAction,
    Processing,
    /// It was declined for good: another try is another intent, or another charge.
    Failed,
    /// The customer, or the merchant, let the time run out.
    Expired,
    Cancelled,
    Succeeded,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Charge {
    pub status: ChargeStatus,
    pub intent: Option<String>,
    pub amount: i64,
    /// What was taken towards the order.
    pub captured: i64,
    /// What of that was not taken after all, where the provider says so only together with its refunds; and whether it
    /// has told of the capture yet, by which the two are told apart.
    pub uncaptured: i64,
    pub capture: Capture,
    /// Taken beside that: a tip is ours, a surcharge the provider keeps. Neither pays for the order.
    pub tip: i64,
    pub surcharge: i64,
    /// As the charge itself says, over all its refunds; the greatest ever said. What was only reserved and let go is none,
    /// but for `uncaptured`.
    pub refunded: i64,
    /// A part of what was reserved that was not captured but let go, and has a refund of its own that gives nothing back.
    pub released: i64,
    /// The reservation was let go, or ran out.
    pub let_go: bool,
    /// Refunds take their time, so what it says is refunded is on its way until a refund says that it arrived.
    pub refunds_wait: bool,
    pub currency: Option<Currency>,
    /// The provider's entries, one for each capture.
    pub transactions: BTreeSet<String>,
    pub receipt_url: Option<String>,
    pub failure: Option<String>,
}

/// Whether how much was captured is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capture {
    /// The charge says it itself.
    #[default]
    Plain,
    /// Whatever is called refunded may never have been taken.
    Untold,
    Told,
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
    /// The provider's entry.
    pub transaction: Option<String>,
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
    pub fee_returned: i64,
}

/// What was lost can still be won, by a late reversal; what was won is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DisputeStatus {
    /// A question of the bank; no money moves.
    #[default]
    Inquiry,
    NeedsResponse,
    UnderReview,
    InquiryClosed,
    Lost,
    Won,
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
    /// Everything that is kept of a payment, whatever it is made of.
    pub fn kept(facts: &str) -> serde_json::Result<Self> {
        Ok(unite(&parts::<Self>(facts)?).into_owned())
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

impl Session {
    fn join(&mut self, other: &Self) {
        greater(&mut self.status, &other.status);
        greater(&mut self.paid, &other.paid);
        greater(&mut self.failed, &other.failed);
        greater(&mut self.amount, &other.amount);
        greater(&mut self.currency, &other.currency);
        greater(&mut self.intent, &other.intent);
        greater(&mut self.completed_at, &other.completed_at);
    }
}

impl Intent {
    fn join(&mut self, other: &Self) {
        greater(&mut self.status, &other.status);
        greater(&mut self.newest, &other.newest);
        greater(&mut self.amount, &other.amount);
        greater(&mut self.received, &other.received);
        greater(&mut self.currency, &other.currency);
        greater(&mut self.failed, &other.failed);
        greater(&mut self.failure, &other.failure);
        self.tries.extend(other.tries.iter().cloned());
        self.charges.extend(other.charges.iter().cloned());
        greater(&mut self.part_of, &other.part_of);
    }
}

impl Charge {
    /// What it brought towards the order.
    pub fn taken(&self) -> i64 {
        minus(self.captured, self.untaken()).max(0)
    }

    /// What of the captured amount was not taken, as far as that is known. Where it is not known what was refunded and
    /// what released, nothing counts yet.
    pub fn untaken(&self) -> i64 {
        match self.capture {
            Capture::Untold if self.refunded > 0 => self.captured.max(self.refunded),
            Capture::Plain | Capture::Told | Capture::Untold => self.uncaptured,
        }
    }

    fn join(&mut self, other: &Self) {
        greater(&mut self.status, &other.status);
        greater(&mut self.intent, &other.intent);
        greater(&mut self.amount, &other.amount);
        greater(&mut self.captured, &other.captured);
        greater(&mut self.uncaptured, &other.uncaptured);
        greater(&mut self.capture, &other.capture);
        greater(&mut self.tip, &other.tip);
        greater(&mut self.surcharge, &other.surcharge);
        greater(&mut self.refunded, &other.refunded);
        greater(&mut self.released, &other.released);
        greater(&mut self.let_go, &other.let_go);
        greater(&mut self.refunds_wait, &other.refunds_wait);
        greater(&mut self.currency, &other.currency);
        self.transactions.extend(other.transactions.iter().cloned());
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
        greater(&mut self.transaction, &other.transaction);
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
        greater(&mut self.fee_returned, &other.fee_returned);
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
