//! What is written of reservations, fulfilments and slots, with an entry of the audit log for each that people know by name.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Value, json};

use super::super::Terms;
use super::super::finish::{NextStep, Steps};
use super::{Kept, Orders};
use crate::announcement::Announcement;
use crate::audit::Entry;
use crate::case;
use crate::compensation::Compensation;
use crate::fulfilment as ful;
use crate::reservation as rsv;
use crate::settlement::follow::view;
use crate::settlement::refund::Automatic;
use crate::slot::{SlotName, block_key};
use crate::state::{Index, Key, Kind, Write};

impl Orders<'_> {
    /// Whether something of these has changed, so that what locks them must be written too.
    pub fn is_any_changed(&self, members: &BTreeSet<String>) -> bool {
        members.iter().any(|id| {
            self.reservations.get(id).is_some_and(Kept::is_changed)
                || self.fulfilments.get(id).is_some_and(Kept::is_changed)
        }) || self.cases.values().any(Kept::is_changed)
    }

    /// Has the lock of an order without a payment written, whether or not it has changed itself.
    pub fn force(&mut self, anchor: &Key, n: usize) {
        if let Some(row) = self.reservations.get_mut(&anchor.id).filter(|row| !row.is_changed()) {
            (row.is_forced, row.by) = (true, n);
        }
    }

    /// Hands over what is written and told.
    pub fn finish(self, steps: &mut Steps<'_>, terms: &Terms<'_>) {
        let mut written: Vec<(usize, Write)> = Vec::new();
        for (key, row) in &self.slots {
            let name = SlotName::parse(&key.id);
            let index = Index {
                tenant: name.as_ref().and_then(|name| name.tenant.clone()),
                livemode: name.as_ref().map(|name| name.livemode),
                ..Index::default()
            };
            if row.head.is_changed() && row.head.now.capacity > 0 {
                let write = Write::of(key, row.head.version, &row.head.now);
                written.push((row.head.by, Write { index: index.clone(), ..write }));
            }
            for (n, block) in &row.blocks {
                let (version, before) = &row.stored[n];
                if block != before {
                    let key = block_key(key, *n);
                    let by = self.users.get(&key).and_then(BTreeSet::last).copied().unwrap_or_default();
                    written.push((by, Write { index: index.clone(), ..Write::of(&key, *version, block) }));
                }
            }
        }
        for (id, row) in self.reservations.iter().filter(|(_, row)| row.is_written()) {
            let key = Key::new(Kind::Reservation, id);
            let index = Index {
                status: Some(row.now.status(terms.at, terms.orders.grace_ms).name().to_owned()),
                tenant: row.now.ours.tenant.clone(),
                customer: row.now.ours.customer.clone(),
                livemode: Some(row.now.ours.livemode),
                ..Index::default()
            };
            let summary = |facts: &rsv::ReservationFacts| {
                json!({
                    "status": facts.status(terms.at, terms.orders.grace_ms).name(),
                    "until": facts.until,
                    "claim": facts.claimed(),
                })
            };
            let action = if row.before.is_none() { "reservation.held" } else { "reservation.changed" };
            let tenant = index.tenant.clone();
            steps.audit(row.by, entry(&key, action, tenant, row, summary, terms));
            written.push((row.by, Write { index, ..Write::of(&key, row.version, &row.now) }));
        }
        for (id, row) in self.fulfilments.iter().filter(|(_, row)| row.is_written()) {
            let key = Key::new(Kind::Fulfilment, id);
            let index = Index {
                status: Some(row.now.status(terms.orders.attempts).name().to_owned()),
                tenant: row.now.ours.tenant.clone(),
                customer: row.now.ours.customer.clone(),
                livemode: Some(row.now.ours.livemode),
                ..Index::default()
            };
            let summary = |facts: &ful::FulfilmentFacts| {
                json!({
                    "status": facts.status(terms.orders.attempts).name(),
                    "runs": facts.runs.len(),
                    "failed": facts.failed_runs(),
                })
            };
            let action = if row.before.is_none() { "fulfilment.created" } else { "fulfilment.changed" };
            let tenant = index.tenant.clone();
            steps.audit(row.by, entry(&key, action, tenant, row, summary, terms));
            written.push((row.by, Write { index, ..Write::of(&key, row.version, &row.now) }));
        }
        for (id, row) in self.cases.iter().filter(|(_, row)| row.is_written()) {
            let key = Key::new(Kind::Case, id);
            let index = Index {
                status: Some(row.now.status().name().to_owned()),
                tenant: row.now.tenant.clone(),
                livemode: row.now.livemode,
                attention: Some(row.now.trigger.clone()),
                ..Index::default()
            };
            let summary = |facts: &case::CaseFacts| json!({ "status": facts.status().name(), "level": facts.level(), "trigger": facts.trigger });
            let action = if row.before.is_none() { "case.opened" } else { "case.changed" };
            let tenant = index.tenant.clone();
            steps.audit(row.by, entry(&key, action, tenant, row, summary, terms));
            written.push((row.by, Write { index, ..Write::of(&key, row.version, &row.now) }));
        }
        for (id, (n, record)) in &self.compensations {
            let key = Key::new(Kind::Compensation, id);
            let index = Index {
                status: Some(record.kind.name().to_owned()),
                tenant: record.tenant.clone(),
                livemode: record.livemode,
                amount: record.amount,
                currency: record.currency.map(String::from),
                attention: Some(record.trigger.clone()),
                ..Index::default()
            };
            written.push((*n, Write { index, ..Write::of(&key, 0, record) }));
        }
        if let Some(row) = self.automatic.filter(Kept::is_changed) {
            written.push((row.by, Write::of(&Automatic::key(), row.version, &row.now)));
        }
        for (n, write) in written {
            let users = self.users.get(&write.key).into_iter().flatten().copied();
            steps.write_register(n, write, users);
        }
        for (n, announcement) in self.announcements {
            steps.announce(n, announcement);
        }
        for (id, (n, record)) in &self.compensations {
            steps.announce(*n, recorded(id, record, terms));
        }
        for (n, fetch) in self.fetches {
            steps.plan(n, NextStep::Fetch(fetch));
        }
        for (n, deadline) in self.deadlines {
            steps.plan(n, NextStep::Deadline(deadline));
        }
    }
}

fn recorded(id: &str, record: &Compensation, terms: &Terms<'_>) -> Announcement {
    let anchor = record.payment.as_ref().or(record.reservation.as_ref()).map_or("-", String::as_str);
    Announcement {
        id: format!("{anchor}/compensation.recorded/{id}"),
        event_type: "compensation.recorded".to_owned(),
        livemode: record.livemode,
        object: (Kind::Compensation.name(), id.to_owned()),
        tenant: record.tenant.clone(),
        about: json!({ "type": record.kind.name(), "trigger": record.trigger, "resolved_by": record.resolved_by }),
        data: view::compensation(id, record),
        at: terms.at,
    }
}

fn entry<T: Serialize>(
    key: &Key,
    action: &str,
    tenant: Option<String>,
    row: &Kept<T>,
    summary: impl Fn(&T) -> Value,
    terms: &Terms<'_>,
) -> Entry {
    let details = json!({ "before": row.before.as_ref().map(&summary), "after": summary(&row.now) });
    Entry {
        at: terms.at,
        actor: None,
        role: None,
        action: action.to_owned(),
        target: (key.kind.name().to_owned(), key.id.clone()),
        tenant,
        event: None,
        details: details.to_string(),
    }
}
