//! What a provider's objects say of a payment: checkout sessions, intents, charges, balance transactions, refunds and disputes.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{greater, is_nothing};
use crate::money::{Currency, minus};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckoutSession {
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
    /// Seconds; until when the customer may pay elsewhere, where a voucher says so.
    #[serde(skip_serializing_if = "is_nothing")]
    pub expires_at: Option<i64>,
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
    /// What it refunds, where that is more than a charge.
    #[serde(skip_serializing_if = "is_nothing")]
    pub intent: Option<String>,
    /// The order of ours that it carries out.
    #[serde(skip_serializing_if = "is_nothing")]
    pub order: Option<String>,
    /// Why it is not on its way yet.
    #[serde(skip_serializing_if = "is_nothing")]
    pub pending_reason: Option<String>,
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

impl CheckoutSession {
    pub(super) fn join(&mut self, other: &Self) {
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
    pub(super) fn join(&mut self, other: &Self) {
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
        greater(&mut self.expires_at, &other.expires_at);
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

    pub(super) fn join(&mut self, other: &Self) {
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
    pub(super) fn join(&mut self, other: &Self) {
        greater(&mut self.source, &other.source);
        greater(&mut self.amount, &other.amount);
        greater(&mut self.fee, &other.fee);
        greater(&mut self.net, &other.net);
        greater(&mut self.currency, &other.currency);
    }
}

impl Refund {
    pub(super) fn join(&mut self, other: &Self) {
        greater(&mut self.status, &other.status);
        greater(&mut self.charge, &other.charge);
        greater(&mut self.amount, &other.amount);
        greater(&mut self.currency, &other.currency);
        greater(&mut self.reason, &other.reason);
        greater(&mut self.failure, &other.failure);
        greater(&mut self.transaction, &other.transaction);
        greater(&mut self.intent, &other.intent);
        greater(&mut self.order, &other.order);
        greater(&mut self.pending_reason, &other.pending_reason);
    }
}

impl Dispute {
    pub(super) fn join(&mut self, other: &Self) {
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
