//! What a tenant subscribed to, and until when it is paid: facts that only grow, joined like a payment's.
//!
//! A subscription goes back and forth between `active` and `past_due`, so it has no rank. The newest snapshot counts;
//! snapshots of one second are ordered by what they are (created before updated before deleted) and then by status, never
//! by arrival. Invoices do have a rank, and what they say beyond the snapshot is believed.

mod aggregate;
mod delete;
mod derive;
mod due;
#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;
mod view;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::decide::{parts, unite};
use super::payment::{each, greater, is_nothing, oldest};
use crate::money::Currency;

pub use delete::{DeletedBilling, delete};
pub use derive::{BillingAttention, BillingDerived, BillingStatus, GRACE};
pub use due::{BillingDue, anchor, due};
pub use view::view;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BillingFacts {
    /// Where it went when it turned out to be another's part. Then nothing else counts.
    #[serde(skip_serializing_if = "is_nothing")]
    pub merged_into: Option<String>,
    /// The clusters it is made of, if they are several; everything else is then what they know together.
    #[serde(skip_serializing_if = "is_nothing")]
    pub clusters: Vec<Self>,
    /// The id it has when it stands alone.
    #[serde(skip_serializing_if = "is_nothing")]
    pub born: Option<String>,
    #[serde(skip_serializing_if = "is_nothing")]
    pub names: BTreeSet<String>,
    #[serde(skip_serializing_if = "is_nothing")]
    pub livemode: Option<bool>,
    #[serde(skip_serializing_if = "is_nothing")]
    pub tenants: BTreeSet<String>,
    #[serde(skip_serializing_if = "is_nothing")]
    pub realms: BTreeSet<String>,
    #[serde(skip_serializing_if = "is_nothing")]
    pub provider_customers: BTreeSet<String>,
    /// Customers who say themselves whose they are: what says nothing of its own follows them.
    #[serde(skip_serializing_if = "is_nothing")]
    pub declared: BTreeSet<String>,
    #[serde(skip_serializing_if = "is_nothing")]
    pub subscriptions: BTreeMap<String, Subscription>,
    #[serde(skip_serializing_if = "is_nothing")]
    pub invoices: BTreeMap<String, Invoice>,
    /// The status that was announced last.
    #[serde(skip_serializing_if = "is_nothing")]
    pub announced: Option<Announced>,
    #[serde(skip_serializing_if = "is_nothing")]
    pub emitted: BTreeSet<String>,
    #[serde(skip_serializing_if = "is_nothing")]
    pub deleted: Option<DeletedBilling>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Subscription {
    pub newest: Option<BillingSnapshot>,
    pub currency: Option<Currency>,
}

/// A subscription as it was at a moment. The order of the fields is the order of snapshots.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BillingSnapshot {
    /// Ended for good: nothing is newer.
    pub ended: bool,
    /// Seconds.
    pub at: i64,
    /// What took it: 0 created, 1 updated, 2 deleted.
    pub by: u8,
    pub status: SubscriptionStatus,
    pub period_start: Option<i64>,
    pub period_end: Option<i64>,
    pub trial_end: Option<i64>,
    pub cancel_at: Option<i64>,
    pub ended_at: Option<i64>,
}

/// In the order in which one second's snapshots are believed: the later in life, the later here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubscriptionStatus {
    Incomplete,
    Trialing,
    PastDue,
    Active,
    Paused,
    Unpaid,
    IncompleteExpired,
    Canceled,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Invoice {
    pub status: InvoiceStatus,
    pub subscription: Option<String>,
    /// Seconds; the latest moment at which somebody said that a payment of it failed, and that it was paid.
    pub failed_at: Option<i64>,
    pub paid_at: Option<i64>,
    pub amount_due: i64,
    pub amount_paid: i64,
    pub currency: Option<Currency>,
    /// The end of what it pays for, in seconds.
    pub paid_through: Option<i64>,
    /// What pays it.
    pub intents: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InvoiceStatus {
    #[default]
    Draft,
    Open,
    Uncollectible,
    Void,
    Paid,
}

/// A status that was told, by the latest moment that was known of then: one told later is greater.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Announced {
    /// Seconds.
    pub at: i64,
    /// How often the status had turned already while nothing later was known: one second can hold a failure, its cure
    /// and the next failure.
    pub turn: u32,
    pub status: String,
}

impl BillingFacts {
    /// Adds what another knows.
    pub fn join(&mut self, other: &Self) {
        greater(&mut self.merged_into, &other.merged_into);
        oldest(&mut self.born, other.born.as_ref());
        greater(&mut self.livemode, &other.livemode);
        self.declared.extend(other.declared.iter().cloned());
        self.names.extend(other.names.iter().cloned());
        self.tenants.extend(other.tenants.iter().cloned());
        self.realms.extend(other.realms.iter().cloned());
        self.provider_customers.extend(other.provider_customers.iter().cloned());
        self.emitted.extend(other.emitted.iter().cloned());
        greater(&mut self.announced, &other.announced);
        DeletedBilling::join(&mut self.deleted, other.deleted.as_ref());
        each(&mut self.subscriptions, &other.subscriptions, Subscription::join);
        each(&mut self.invoices, &other.invoices, Invoice::join);
    }
}

impl BillingFacts {
    /// Everything that is kept of a billing, whatever it is made of.
    pub fn parse(facts: &str) -> serde_json::Result<Self> {
        Ok(unite(&parts::<Self>(facts)?).into_owned())
    }

    /// Names of the payments that pay its invoices.
    pub fn paid_by(&self) -> Vec<String> {
        let intents = self.invoices.values().flat_map(|invoice| &invoice.intents);
        let realms = &self.realms;
        intents.flat_map(|intent| realms.iter().map(move |realm| format!("{realm}/{intent}"))).collect()
    }

    /// Whether it is about a subscription or whose it is, and not only about what pays an invoice that may be anybody's.
    pub fn says_something(&self) -> bool {
        let is_subscribed = |invoice: &Invoice| invoice.subscription.is_some();
        !(self.subscriptions.is_empty() && self.tenants.is_empty())
            || self.invoices.values().any(is_subscribed)
    }
}

impl Subscription {
    fn join(&mut self, other: &Self) {
        greater(&mut self.newest, &other.newest);
        greater(&mut self.currency, &other.currency);
    }
}

impl Invoice {
    /// Whether money was paid for it: what a trial or a coupon made free is no payment.
    pub fn is_payment(&self) -> bool {
        self.status == InvoiceStatus::Paid && self.amount_paid > 0
    }

    fn join(&mut self, other: &Self) {
        greater(&mut self.status, &other.status);
        greater(&mut self.subscription, &other.subscription);
        greater(&mut self.failed_at, &other.failed_at);
        greater(&mut self.paid_at, &other.paid_at);
        greater(&mut self.amount_due, &other.amount_due);
        greater(&mut self.amount_paid, &other.amount_paid);
        greater(&mut self.currency, &other.currency);
        greater(&mut self.paid_through, &other.paid_through);
        self.intents.extend(other.intents.iter().cloned());
    }
}
