//! A payment, as the decision sees it.

use std::collections::BTreeSet;

use serde_json::json;

use super::{Derived, Facts, What, anchor, due, lines, view};
use crate::settlement::decide::{Look, Thing};
use crate::settlement::reading::is_order_name;
use crate::settlement::{Announcement, Fetch, Part};
use crate::state::{Index, Kind};
use crate::time::Time;

impl Thing for Facts {
    const KIND: Kind = Kind::Payment;
    const TAG: &'static str = "pay_";
    const NAMES: &'static str = "p:";

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

    fn is_ours(&self) -> bool {
        !self.ours.is_empty()
    }

    fn tenants(&self) -> &BTreeSet<String> {
        &self.tenants
    }

    fn is_loose(_: &Part<Self>, name: &str) -> bool {
        is_order_name(name)
    }

    fn conflict_with(&mut self, other: String) {
        self.conflicts.insert(other);
    }

    fn look(&self) -> Look {
        let derived = Derived::of(self);
        let summary = json!({
            "status": derived.status.name(),
            "amount_received": derived.received,
            "amount_refunded": derived.refunded,
            "fee": derived.fee,
            "disputed": derived.disputed,
        });
        let lines = lines(self, &derived);
        let index = Index {
            status: Some(derived.status.name().to_owned()),
            tenant: derived.tenant,
            customer: derived.customer,
            livemode: self.livemode,
            amount: Some(derived.amount),
            currency: derived.currency.map(String::from),
            attention: derived.attention.map(|reason| reason.name().to_owned()),
        };
        Look { index, summary, lines }
    }

    fn ask(
        &mut self,
        id: &str,
        can_fetch: &dyn Fn(&str) -> bool,
        at: Time,
    ) -> (Vec<Announcement>, Vec<Fetch>) {
        let derived = Derived::of(self);
        let (anchor, mut announcements, mut fetches) = (anchor(self), Vec::new(), Vec::new());
        for due in due(self, &derived, can_fetch) {
            match due.what {
                What::Fetch(fetch) => fetches.push(fetch),
                What::Remember => {}
                What::Announce { event_type, about } => announcements.push(Announcement {
                    id: format!("{anchor}/{}", due.key),
                    event_type: event_type.to_owned(),
                    livemode: self.livemode,
                    object: (Kind::Payment.name(), id.to_owned()),
                    tenant: derived.tenant.clone(),
                    about,
                    data: view(id, self, &derived),
                    at,
                }),
            }
            self.emitted.insert(due.key);
        }
        (announcements, fetches)
    }
}
