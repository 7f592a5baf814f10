//! A tenant's billing, as the decision sees it.

use crate::settlement::Terms;
use std::collections::BTreeSet;

use serde_json::json;

use super::{BillingDerived, BillingDue, BillingFacts, anchor, due, view};
use crate::announcement::Announcement;
use crate::settlement::decide::{Aggregate, Asked, Derivation};
use crate::settlement::payment::Lines;
use crate::settlement::reading::{billing_name, customer_name};
use crate::state::{DELETED, Index, Kind, UNHEARD};

impl Aggregate for BillingFacts {
    const KIND: Kind = Kind::Billing;
    const TAG: &'static str = "bil_";
    const NAMES: &'static str = "b:";
    type Mark = BillingDue;

    fn join(&mut self, other: &Self) {
        Self::join(self, other);
    }

    fn names(&self) -> &BTreeSet<String> {
        &self.names
    }

    fn names_mut(&mut self) -> &mut BTreeSet<String> {
        &mut self.names
    }

    fn merged_into(&mut self) -> &mut Option<String> {
        &mut self.merged_into
    }

    fn clusters_mut(&mut self) -> &mut Vec<Self> {
        &mut self.clusters
    }

    fn born(&self) -> Option<&str> {
        self.born.as_deref()
    }

    fn set_born(&mut self, id: String) {
        self.born = Some(id);
    }

    fn livemode(&self) -> Option<bool> {
        self.livemode
    }

    fn take_mode(&mut self, livemode: bool) {
        self.livemode = Some(livemode);
    }

    fn tenant(&self) -> Option<&str> {
        self.tenants.first().map(String::as_str)
    }

    fn owner(&self) -> Option<&str> {
        self.tenant()
    }

    fn is_posted(&self) -> bool {
        false
    }

    /// One customer of the provider's may subscribe for several tenants, so it ties only what says no tenant.
    fn claims(&self) -> Vec<String> {
        let own = self.tenant().map(|tenant| billing_name(self.livemode, tenant));
        let customers = if own.is_some() { &self.declared } else { &self.provider_customers };
        let named = self
            .realms
            .iter()
            .flat_map(|realm| customers.iter().map(move |customer| customer_name(realm, customer)));
        own.into_iter().chain(named).collect()
    }

    /// Nothing of it is posted.
    fn seeks(&self) -> Vec<String> {
        Vec::new()
    }

    fn answers(&self, _name: &str, _other: &Self) -> bool {
        false
    }

    fn is_sought(&self, _name: &str) -> bool {
        false
    }

    fn sought_by(&mut self, _tenant: String) {}

    fn aliases(&self) -> Vec<String> {
        Vec::new()
    }

    fn namesakes(&self) -> &BTreeSet<String> {
        const { &BTreeSet::new() }
    }

    fn add_namesake(&mut self, _id: &str) {}

    fn conflict_with(&mut self, _other: String) {}

    fn forget_conflicts(&mut self) {}

    fn was_announced(&self) -> bool {
        false
    }

    fn lose(&mut self, _to: &str) {}

    fn derivation(&self) -> Derivation {
        let derived = BillingDerived::of(self);
        let is_deleted = self.is_deleted();
        // An invoice that nobody subscribed for, or whose subscription is not known yet, is no billing.
        let status = match (is_deleted, self.says_something()) {
            (true, _) => DELETED,
            (false, false) => UNHEARD,
            (false, true) => derived.status.name(),
        };
        let summary = json!({
            "status": status,
            "paid_invoices": derived.paid_invoices,
            "amount_paid_total": derived.amount_paid_total,
        });
        let index = Index {
            status: Some(status.to_owned()),
            tenant: derived.tenant,
            customer: None,
            livemode: self.livemode,
            amount: (!is_deleted).then_some(derived.amount_paid_total),
            currency: derived.currency.map(String::from),
            attention: derived.attention.filter(|_| !is_deleted).map(|reason| reason.name().to_owned()),
        };
        // Money is booked by the payments.
        Derivation { index, summary, lines: Lines::new() }
    }

    fn ask(&self, id: &str, terms: &Terms<'_>) -> Asked<BillingDue> {
        let derived = BillingDerived::of(self);
        let marks = due(self, &derived);
        let anchor = anchor(self);
        let announcement = |due: &BillingDue| Announcement {
            id: format!("{anchor}/{}", due.key),
            event_type: due.event_type.to_owned(),
            livemode: self.livemode,
            object: (Kind::Billing.name(), id.to_owned()),
            tenant: derived.tenant.clone(),
            about: due.about.clone(),
            data: view(id, self, &derived, terms.at, terms.grace_ms),
            at: terms.at,
        };
        let announcements = marks.iter().map(announcement).collect();
        let (fetches, refunds, checkouts) = (Vec::new(), Vec::new(), Vec::new());
        Asked { announcements, fetches, refunds, checkouts, marks }
    }

    fn mark(&mut self, mark: BillingDue) {
        self.announce(&mark);
    }

    /// Every key names the invoice or the subscription it tells of.
    fn is_about(&self, mark: &BillingDue) -> bool {
        let mut words = mark.key.split('/');
        words.any(|word| self.invoices.contains_key(word) || self.subscriptions.contains_key(word))
    }

    fn anchor(&self) -> String {
        anchor(self)
    }
}
