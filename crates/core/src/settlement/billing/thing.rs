//! A tenant's billing, as the decision sees it.

use std::collections::BTreeSet;

use serde_json::json;

use super::{Derived, Facts, GRACE, anchor, due, view};
use crate::settlement::decide::{Look, Thing};
use crate::settlement::payment::Lines;
use crate::settlement::{Announcement, Fetch, Part};
use crate::state::{DELETED, Index, Kind};
use crate::time::Time;

impl Thing for Facts {
    const KIND: Kind = Kind::Billing;
    const TAG: &'static str = "bil_";
    const NAMES: &'static str = "b:";

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

    fn livemode(&self) -> Option<bool> {
        self.livemode
    }

    /// Nobody outside knows its id.
    fn is_ours(&self) -> bool {
        false
    }

    fn tenants(&self) -> &BTreeSet<String> {
        &self.tenants
    }

    /// One customer of the provider's may subscribe for several tenants.
    fn is_loose(part: &Part<Self>, name: &str) -> bool {
        let customer = name.rsplit('/').next().unwrap_or_default();
        part.facts.provider_customers.contains(customer)
    }

    fn conflict_with(&mut self, _other: String) {}

    fn look(&self) -> Look {
        let derived = Derived::of(self);
        let is_deleted = self.is_deleted();
        let status = if is_deleted { DELETED } else { derived.status.name() };
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
        Look { index, summary, lines: Lines::new() }
    }

    fn ask(
        &mut self,
        id: &str,
        _can_fetch: &dyn Fn(&str) -> bool,
        at: Time,
    ) -> (Vec<Announcement>, Vec<Fetch>) {
        let derived = Derived::of(self);
        let anchor = anchor(self);
        let mut announcements = Vec::new();
        for due in due(self, &derived) {
            announcements.push(Announcement {
                id: format!("{anchor}/{}", due.key),
                event_type: due.event_type.to_owned(),
                livemode: self.livemode,
                object: (Kind::Billing.name(), id.to_owned()),
                tenant: derived.tenant.clone(),
                about: due.about.clone(),
                data: view(id, self, &derived, at, GRACE),
                at,
            });
            self.announce(&due);
        }
        (announcements, Vec::new())
    }
}
