//! Where a tenant stands, from the facts alone: what it subscribed to, until when that is paid, and whether it may come
//! in. The newest snapshot counts, and invoices that say more than it does are believed: of one second, an invoice's
//! failure or payment comes after the snapshot, and its payment after its failure.

use std::cmp::Reverse;

use super::{BillingFacts, BillingSnapshot, Invoice, InvoiceStatus, SubscriptionStatus};
use crate::money::{self, Currency};
use crate::time::Time;

/// How long access lasts beyond what was paid unless somebody says otherwise, in milliseconds: three days.
pub const GRACE: i64 = 3 * 24 * 60 * 60 * 1000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BillingDerived {
    pub status: BillingStatus,
    /// The subscription that decides.
    pub subscription: Option<String>,
    /// Seconds; the latest moment the facts speak of.
    pub moment: i64,
    pub tenant: Option<String>,
    pub period_start: Option<Time>,
    pub period_end: Option<Time>,
    pub trial_end: Option<Time>,
    pub cancel_at: Option<Time>,
    pub ended_at: Option<Time>,
    pub paid_through: Option<Time>,
    pub entitled_until: Option<Time>,
    /// Every subscription that may let the tenant in, and until when: not only the one that decides.
    pub entitlements: Vec<(BillingStatus, Option<Time>)>,
    /// Invoices that money was paid for, and how much in the currency below.
    pub paid_invoices: usize,
    pub amount_paid_total: i64,
    pub currency: Option<Currency>,
    pub attention: Option<BillingAttention>,
}

/// From the worst to the best: of several subscriptions the best decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum BillingStatus {
    /// No subscription is known yet.
    #[default]
    None,
    /// Ended for good, also when it never began.
    Cancelled,
    Incomplete,
    Unpaid,
    Paused,
    PastDue,
    Trialing,
    Active,
}

impl BillingStatus {
    pub const ALL: [Self; 8] = [
        Self::None,
        Self::Cancelled,
        Self::Incomplete,
        Self::Unpaid,
        Self::Paused,
        Self::PastDue,
        Self::Trialing,
        Self::Active,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Cancelled => "cancelled",
            Self::Incomplete => "incomplete",
            Self::Unpaid => "unpaid",
            Self::Paused => "paused",
            Self::PastDue => "past_due",
            Self::Trialing => "trialing",
            Self::Active => "active",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == text)
    }
}

/// Why a person should look at it; of several that hold, the first counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BillingAttention {
    Unlinked,
    SeveralTenants,
    Unpaid,
}

impl BillingAttention {
    pub const ALL: [Self; 3] = [Self::Unlinked, Self::SeveralTenants, Self::Unpaid];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Unlinked => "unlinked",
            Self::SeveralTenants => "several_tenants",
            Self::Unpaid => "unpaid",
        }
    }

    fn of(facts: &BillingFacts, derived: &BillingDerived) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.holds(facts, derived))
    }

    fn holds(self, facts: &BillingFacts, derived: &BillingDerived) -> bool {
        match self {
            Self::Unlinked => derived.paid_invoices > 0 && facts.tenants.is_empty(),
            Self::SeveralTenants => facts.tenants.len() > 1,
            Self::Unpaid => derived.status == BillingStatus::Unpaid,
        }
    }
}

impl BillingDerived {
    pub fn of(facts: &BillingFacts) -> Self {
        let mut derived = Self {
            moment: moment(facts),
            tenant: facts.tenants.first().cloned(),
            paid_through: paid_through(facts.invoices.values()).map(Time::from_seconds),
            paid_invoices: facts.invoices.values().filter(|invoice| invoice.is_payment()).count(),
            ..Self::default()
        };
        if let Some(standing) = deciding(facts) {
            let snapshot = standing.snapshot;
            let time = |seconds: Option<i64>| seconds.map(Time::from_seconds);
            derived.status = standing.status;
            derived.subscription = Some(standing.id.to_owned());
            derived.period_start = time(snapshot.period_start);
            derived.period_end = time(snapshot.period_end);
            derived.trial_end = time(snapshot.trial_end);
            derived.cancel_at = time(snapshot.cancel_at);
            derived.ended_at = time(snapshot.ended_at);
            derived.entitled_until = time(standing.entitled_until());
        }
        let standings = facts.subscriptions.keys().filter_map(|id| BillingStanding::of(facts, id));
        derived.entitlements =
            standings.map(|one| (one.status, one.entitled_until().map(Time::from_seconds))).collect();
        derived.currency = currency(facts, derived.subscription.as_deref());
        derived.amount_paid_total = total(facts, derived.currency);
        derived.attention = BillingAttention::of(facts, &derived);
        derived
    }

    /// Whether the tenant may come in. What is paid for ends by the clock, whether or not the provider's word of the end
    /// arrives; the grace is for the word of a renewal that is late. Where a payment failed, there is none.
    pub fn access(&self, now: Time, grace_ms: i64) -> bool {
        let lets_in = |(status, until): &(BillingStatus, Option<Time>)| match status {
            BillingStatus::Active | BillingStatus::Trialing => {
                until.is_none_or(|until| now < until.plus_ms(grace_ms))
            }
            BillingStatus::PastDue => until.is_some_and(|until| now < until),
            BillingStatus::None
            | BillingStatus::Cancelled
            | BillingStatus::Incomplete
            | BillingStatus::Unpaid
            | BillingStatus::Paused => false,
        };
        self.entitlements.iter().any(lets_in)
    }
}

/// One subscription after its invoices had their say.
pub(super) struct BillingStanding<'f> {
    pub id: &'f str,
    pub snapshot: &'f BillingSnapshot,
    pub status: BillingStatus,
    pub paid_through: Option<i64>,
}

impl<'f> BillingStanding<'f> {
    /// `None` as long as nobody showed the subscription itself.
    pub fn of(facts: &'f BillingFacts, id: &'f str) -> Option<Self> {
        let snapshot = facts.subscriptions.get(id)?.newest.as_ref()?;
        let invoices = Invoices::of(facts, id);
        Some(Self { id, snapshot, status: status(snapshot, &invoices), paid_through: invoices.paid_through })
    }

    fn entitled_until(&self) -> Option<i64> {
        let BillingSnapshot { period_end, trial_end, cancel_at, ended_at, .. } = *self.snapshot;
        match self.status {
            BillingStatus::Trialing => earlier(trial_end.max(self.paid_through), cancel_at),
            // A period that has just begun is not paid yet: its invoice is a draft for an hour.
            BillingStatus::Active => earlier(period_end.max(self.paid_through), cancel_at),
            BillingStatus::PastDue => self.paid_through.or(period_end),
            BillingStatus::Cancelled if self.snapshot.status == SubscriptionStatus::IncompleteExpired => None,
            BillingStatus::Cancelled => earlier(self.paid_through, ended_at),
            BillingStatus::None
            | BillingStatus::Incomplete
            | BillingStatus::Unpaid
            | BillingStatus::Paused => None,
        }
    }
}

fn deciding(facts: &BillingFacts) -> Option<BillingStanding<'_>> {
    let standings = facts.subscriptions.keys().filter_map(|id| BillingStanding::of(facts, id));
    standings.max_by_key(|standing| (standing.status, standing.snapshot, Reverse(standing.id)))
}

fn status(snapshot: &BillingSnapshot, invoices: &Invoices<'_>) -> BillingStatus {
    let failing = || invoices.failing().any(|failed_at| failed_at >= snapshot.at);
    let unless_failing = |status| if failing() { BillingStatus::PastDue } else { status };
    match snapshot.status {
        SubscriptionStatus::Incomplete => match invoices.paid_since(snapshot.at) {
            Some(paid_at) if snapshot.trial_end.is_some_and(|end| end > paid_at) => {
                unless_failing(BillingStatus::Trialing)
            }
            Some(_) => unless_failing(BillingStatus::Active),
            None => BillingStatus::Incomplete,
        },
        SubscriptionStatus::Trialing if invoices.ended_trial(snapshot) => {
            unless_failing(BillingStatus::Active)
        }
        SubscriptionStatus::Trialing => unless_failing(BillingStatus::Trialing),
        SubscriptionStatus::Active => unless_failing(BillingStatus::Active),
        SubscriptionStatus::PastDue | SubscriptionStatus::Unpaid if invoices.cured(snapshot) => {
            BillingStatus::Active
        }
        SubscriptionStatus::PastDue => BillingStatus::PastDue,
        SubscriptionStatus::Unpaid => BillingStatus::Unpaid,
        SubscriptionStatus::Paused => BillingStatus::Paused,
        SubscriptionStatus::IncompleteExpired | SubscriptionStatus::Canceled => BillingStatus::Cancelled,
    }
}

/// The invoices of one subscription.
struct Invoices<'f> {
    all: Vec<&'f Invoice>,
    paid_through: Option<i64>,
}

impl<'f> Invoices<'f> {
    fn of(facts: &'f BillingFacts, subscription: &str) -> Self {
        let belongs = |invoice: &&Invoice| invoice.subscription.as_deref() == Some(subscription);
        let all: Vec<&Invoice> = facts.invoices.values().filter(belongs).collect();
        let paid_through = paid_through(all.iter().copied());
        Self { all, paid_through }
    }

    /// When those failed that are still to be paid. One that was overtaken, because a later period is paid, is left to
    /// the provider.
    fn failing(&self) -> impl Iterator<Item = i64> {
        let due = self.all.iter().filter(|invoice| invoice.status <= InvoiceStatus::Open);
        let overtaken =
            |invoice: &Invoice| invoice.paid_through.is_some() && self.paid_through > invoice.paid_through;
        due.filter(move |invoice| !overtaken(invoice)).filter_map(|invoice| invoice.failed_at)
    }

    /// Those that were paid at this moment or later, with the moment.
    fn paid(&self, since: i64) -> impl Iterator<Item = (&'f Invoice, i64)> {
        let paid = self.all.iter().filter(|invoice| invoice.status == InvoiceStatus::Paid);
        let with_moment = paid.filter_map(|invoice| invoice.paid_at.map(|at| (*invoice, at)));
        with_moment.filter(move |(_, at)| *at >= since)
    }

    fn paid_since(&self, since: i64) -> Option<i64> {
        self.paid(since).filter(|(invoice, _)| invoice.is_payment()).map(|(_, at)| at).max()
    }

    /// Money was paid for what follows the trial. A fee that is paid during the trial does not end it.
    fn ended_trial(&self, snapshot: &BillingSnapshot) -> bool {
        let beyond = |invoice: &Invoice, at| {
            snapshot
                .trial_end
                .is_none_or(|end| at >= end || invoice.paid_through.is_some_and(|paid| paid > end))
        };
        self.paid(snapshot.at).any(|(invoice, at)| invoice.is_payment() && beyond(invoice, at))
    }

    /// What had failed, or what pays for the current period, was paid, and nothing else is failing.
    fn cured(&self, snapshot: &BillingSnapshot) -> bool {
        let covers =
            |invoice: &Invoice| snapshot.period_end.is_some() && invoice.paid_through >= snapshot.period_end;
        let paid = self.paid(snapshot.at).any(|(invoice, _)| invoice.failed_at.is_some() || covers(invoice));
        paid && self.failing().next().is_none()
    }
}

fn paid_through<'f>(invoices: impl Iterator<Item = &'f Invoice>) -> Option<i64> {
    invoices
        .filter(|invoice| invoice.status == InvoiceStatus::Paid)
        .filter_map(|invoice| invoice.paid_through)
        .max()
}

/// The earlier of two, or the one that is known.
fn earlier(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    one.into_iter().chain(other).min()
}

fn moment(facts: &BillingFacts) -> i64 {
    let snapshots =
        facts.subscriptions.values().filter_map(|one| one.newest.as_ref()).map(|newest| newest.at);
    let invoices =
        facts.invoices.values().flat_map(|invoice| invoice.failed_at.into_iter().chain(invoice.paid_at));
    snapshots.chain(invoices).max().unwrap_or_default()
}

/// That of the deciding subscription, or the first that was paid in.
fn currency(facts: &BillingFacts, deciding: Option<&str>) -> Option<Currency> {
    let subscribed = deciding.and_then(|id| facts.subscriptions.get(id)?.currency);
    let paid =
        || facts.invoices.values().filter(|invoice| invoice.is_payment()).filter_map(|one| one.currency);
    subscribed.or_else(|| paid().min())
}

fn total(facts: &BillingFacts, currency: Option<Currency>) -> i64 {
    let paid = facts.invoices.values().filter(|invoice| invoice.is_payment() && invoice.currency == currency);
    money::sum(paid.map(|invoice| invoice.amount_paid))
}
