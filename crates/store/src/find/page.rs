//! Pages of what may be a million rows: where a search begins, how far one call looks, and where the next goes on.
//!
//! A search begins at the shortest list that has everything it could find, and looks at no more than [`crate::SCAN_MAX`] of
//! it. So a page may be short, or empty, and still lead on.

use sekisho_core::Seq;

use super::{AuditFilter, EventFilter, EventSummary, Order, Status};
use crate::AuditEntry;

/// One page of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPage {
    pub events: Vec<EventSummary>,
    /// Where to go on, in the filter's direction: as `before`, or as `after` when the oldest come first. `None` at the
    /// end.
    pub next: Option<Seq>,
}

/// One page of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditPage {
    pub entries: Vec<AuditEntry>,
    /// Where to go on, as `before`. `None` at the end.
    pub next: Option<i64>,
}

/// Which list leads to the events that a filter means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventLead {
    Payment,
    Tenant,
    Failed,
    Received,
    All,
}

/// Which index leads to the entries that a filter means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditLead {
    Target,
    Actor,
    Tenant,
    /// Only while few entries are of that time: their numbers are in no order there.
    Time,
    All,
}

impl EventPage {
    /// `end` is the last number looked at, if the search stopped there.
    pub(crate) fn of(events: Vec<EventSummary>, limit: usize, end: Option<Seq>) -> Self {
        let last = events.last().filter(|_| events.len() >= limit).map(|event| event.seq);
        Self { events, next: last.or(end).filter(|_| limit > 0) }
    }
}

impl AuditPage {
    /// `end` is the last number looked at, if the search stopped there.
    pub(crate) fn of(entries: Vec<AuditEntry>, limit: usize, end: Option<i64>) -> Self {
        let last = entries.last().filter(|_| entries.len() >= limit).map(|entry| entry.number);
        Self { entries, next: last.or(end).filter(|_| limit > 0) }
    }
}

impl EventFilter {
    pub(crate) const fn lead(&self) -> EventLead {
        match (&self.payment, &self.tenant, self.status) {
            (Some(_), _, _) => EventLead::Payment,
            (None, _, Some(Status::Failed)) => EventLead::Failed,
            (None, Some(_), _) => EventLead::Tenant,
            (None, None, Some(Status::Received)) => EventLead::Received,
            (None, None, Some(Status::Success | Status::Skipped) | None) => EventLead::All,
        }
    }

    /// The numbers between which it looks, without both; as far as `end`, with it.
    pub(crate) fn reach(&self, end: Option<Seq>) -> (i64, i64) {
        let low = self.after.map_or(-1, Seq::as_i64);
        let high = self.before.unwrap_or(Seq::MAX).as_i64();
        match (end, self.order) {
            (None, _) => (low, high),
            (Some(end), Order::NewestFirst) => (end.as_i64() - 1, high),
            (Some(end), Order::OldestFirst) => (low, end.as_i64().saturating_add(1)),
        }
    }
}

impl AuditFilter {
    pub(crate) const fn lead(&self) -> AuditLead {
        if self.target.is_some() {
            AuditLead::Target
        } else if self.actor.is_some() {
            AuditLead::Actor
        } else if self.tenant.is_some() {
            AuditLead::Tenant
        } else if self.since.is_some() || self.until.is_some() {
            AuditLead::Time
        } else {
            AuditLead::All
        }
    }
}
