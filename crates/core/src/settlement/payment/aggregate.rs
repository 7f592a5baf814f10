//! A payment, as the decision sees it.

use crate::settlement::Terms;
use std::collections::BTreeSet;

use serde_json::json;

use super::{Derived, DuePart, Facts, MerchantOrder, anchor, due, lines, view};
use crate::announcement::Announcement;
use crate::settlement::decide::{Aggregate, Asked, Derivation};
use crate::settlement::reading::{MODES, order_name, own_name};
use crate::state::{Index, Kind, UNHEARD};

/// More that share a reference are not remembered: then it is no order's, but a customer's or a product's.
const NAMESAKES_MAX: usize = 100;

impl Aggregate for Facts {
    const KIND: Kind = Kind::Payment;
    const TAG: &'static str = "pay_";
    const NAMES: &'static str = "p:";
    /// What was announced or asked for.
    type Mark = String;

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
        let other = own_name(Some(!livemode), "");
        self.names.retain(|name| !name.starts_with(&other));
    }

    fn tenant(&self) -> Option<&str> {
        Self::tenant(self)
    }

    fn owner(&self) -> Option<&str> {
        self.ours.keys().next().map(String::as_str)
    }

    fn is_posted(&self) -> bool {
        !self.ours.is_empty()
    }

    fn claims(&self) -> Vec<String> {
        // What could belong to two belongs to none.
        if self.ours.is_empty() && !self.conflicts.is_empty() {
            return Vec::new();
        }
        let tenant = self.tenant();
        let mut claims: Vec<String> = self.orders.iter().map(|order| self.called(tenant, order)).collect();
        for (ours, reference, mode) in self.posted() {
            let name = |tenant: Option<&str>| order_name(mode, ours.account.as_deref(), tenant, reference);
            claims.extend(tenant.map(|tenant| name(Some(tenant))));
            claims.extend(ours.for_all.then(|| name(None)));
        }
        claims
    }

    fn seeks(&self) -> Vec<String> {
        if !self.ours.is_empty() || !self.conflicts.is_empty() {
            return Vec::new();
        }
        let tenant = self.tenant();
        let named = self.orders.iter().filter(|_| tenant.is_some()).map(|order| self.called(None, order));
        let within = self.client_references.iter().filter(|_| tenant.is_some());
        let maybe = within.map(|reference| self.called(tenant, reference));
        let anywhere = self.client_references.iter().map(|reference| self.called(None, reference));
        named.chain(maybe).chain(anywhere).collect()
    }

    fn answers(&self, name: &str, other: &Self) -> bool {
        let fits = || match (other.tenant(), self.tenant()) {
            (None, _) => true,
            (Some(theirs), Some(own)) => theirs == own,
            (Some(_), None) => self.sought_by.len() <= 1,
        };
        self.is_posted_as(name) && fits()
    }

    fn is_sought(&self, name: &str) -> bool {
        self.tenant().is_none() && self.is_posted_as(name)
    }

    fn sought_by(&mut self, tenant: String) {
        self.sought_by.insert(tenant);
    }

    fn aliases(&self) -> Vec<String> {
        let said = self.orders.iter().chain(&self.client_references).map(|order| self.called(None, order));
        let posted = self
            .posted()
            .map(|(ours, reference, mode)| order_name(mode, ours.account.as_deref(), None, reference));
        said.chain(posted).collect()
    }

    fn namesakes(&self) -> &BTreeSet<String> {
        &self.namesakes
    }

    fn add_namesake(&mut self, id: &str) {
        if self.namesakes.len() < NAMESAKES_MAX {
            self.namesakes.insert(id.to_owned());
        }
    }

    fn conflict_with(&mut self, other: String) {
        self.conflicts.insert(other);
    }

    fn forget_conflicts(&mut self) {
        // What was posted remembers what a provider's id said: that is never worked out anew.
        if self.ours.is_empty() {
            self.conflicts.clear();
        }
    }

    fn was_announced(&self) -> bool {
        self.emitted.contains("payment.paid")
    }

    fn lose(&mut self, to: &str) {
        self.lost.insert(to.to_owned());
    }

    fn derivation(&self) -> Derivation {
        let derived = Derived::of(self);
        let summary = json!({
            "status": derived.status.name(),
            "amount_received": derived.received,
            "amount_refunded": derived.refunded,
            "fee": derived.fee,
            "disputed": derived.disputed,
        });
        let lines = lines(self, &derived);
        let status = if self.says_something() { derived.status.name() } else { UNHEARD };
        let index = Index {
            status: Some(status.to_owned()),
            tenant: derived.tenant,
            customer: derived.customer,
            livemode: self.livemode,
            amount: Some(derived.amount),
            currency: derived.currency.map(String::from),
            attention: derived.attention.map(|reason| reason.name().to_owned()),
        };
        Derivation { index, summary, lines }
    }

    fn ask(&self, id: &str, terms: &Terms<'_>) -> Asked<String> {
        let derived = Derived::of(self);
        let mut asked = Asked::default();
        let all = due(self, &derived, terms.can_fetch);
        if all.is_empty() {
            return asked;
        }
        let anchor = anchor(self);
        for due in all {
            match due.what {
                DuePart::Fetch(fetch) => asked.fetches.push(fetch),
                DuePart::Refund(call) => asked.refunds.push(call),
                DuePart::Checkout(call) => asked.checkouts.push(call),
                DuePart::Remember => {}
                DuePart::Announce { event_type, about } => asked.announcements.push(Announcement {
                    id: format!("{anchor}/{}", due.key),
                    event_type: event_type.to_owned(),
                    livemode: self.livemode,
                    object: (Kind::Payment.name(), id.to_owned()),
                    tenant: derived.tenant.clone(),
                    about,
                    data: view(id, self, &derived),
                    at: terms.at,
                }),
            }
            asked.marks.push(due.key);
        }
        asked
    }

    fn mark(&mut self, mark: String) {
        self.emitted.insert(mark);
    }

    fn is_about(&self, mark: &String) -> bool {
        let object = mark.split('/').next_back().unwrap_or_default();
        self.refunds.contains_key(object)
            || self.refund_orders.keys().any(|order| mark.ends_with(order))
            || self.refund_orders.values().any(|order| order.calls.contains_key(object))
            || self.disputes.contains_key(object)
            || self.charges.contains_key(object)
            || self.transactions.contains_key(object)
            || self.charges.values().any(|charge| charge.transactions.contains(object))
    }

    fn anchor(&self) -> String {
        anchor(self)
    }
}

impl Facts {
    /// Whatever it may be asked for by.
    pub fn all_names(&self) -> impl Iterator<Item = String> {
        let clusters = if self.clusters.is_empty() { std::slice::from_ref(self) } else { &self.clusters };
        let names = clusters.iter().flat_map(|one| one.names.iter().cloned().chain(one.aliases()));
        names.map(|name| Self::full(&name))
    }

    /// What a provider's object calls it, inside a tenant or outside of all.
    fn called(&self, tenant: Option<&str>, reference: &str) -> String {
        order_name(self.livemode, self.account.as_deref(), tenant, reference)
    }

    /// What the app posted, by reference and by each mode it may be paid in.
    fn posted(&self) -> impl Iterator<Item = (&MerchantOrder, &str, Option<bool>)> {
        let named = self.ours.values().filter_map(|ours| Some((ours, ours.reference.as_deref()?)));
        let modes = |(ours, reference)| MODES.into_iter().map(move |mode| (ours, reference, mode));
        let is_possible =
            |mode: Option<bool>| self.livemode.is_none() || mode.is_none() || mode == self.livemode;
        named.flat_map(modes).filter(move |(_, _, mode)| is_possible(*mode))
    }

    fn is_posted_as(&self, name: &str) -> bool {
        self.is_posted() && self.claims().iter().any(|claim| claim == name)
    }
}
