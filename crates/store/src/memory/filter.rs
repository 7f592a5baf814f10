//! What the conditions of a filter mean.

use sekisho_core::change::Rejection;
use sekisho_core::source_name;

use crate::find::{AuditLead, EventLead, matches_word};
use crate::{
    AuditEntry, AuditFilter, BookedLine, EventFilter, EventSummary, LineFilter, RejectionFilter, Status,
};

impl EventFilter {
    pub(super) fn matches(&self, event: &EventSummary) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        let kind = self.event_type.as_deref().is_none_or(|wanted| matches_word(wanted, &event.event_type));
        let is_ours = [source_name::OWN, source_name::FETCHED].contains(&&*event.source);
        kind && !(self.received && is_ours)
            && is(&self.source, Some(&event.source))
            && is(&self.object_id, event.object.as_ref().map(|(_, id)| id.as_str()))
            && is(&self.payment, event.about.payment.as_deref())
            && is(&self.tenant, event.about.tenant.as_deref())
            && self.status.is_none_or(|status| status == event.status)
            && self.after.is_none_or(|after| event.seq > after)
            && self.before.is_none_or(|before| event.seq < before)
    }

    /// Whether it is on the list that is searched.
    pub(super) fn leads_to(&self, event: &EventSummary) -> bool {
        match self.lead() {
            EventLead::Payment => event.about.payment == self.payment,
            EventLead::Tenant => event.about.tenant == self.tenant,
            EventLead::Failed => event.status == Status::Failed,
            EventLead::Received => event.status == Status::Received,
            EventLead::All => true,
        }
    }
}

impl RejectionFilter {
    pub(super) fn matches(&self, rejection: &Rejection) -> bool {
        self.source.as_ref().is_none_or(|source| rejection.source == *source)
            && self.reason.as_ref().is_none_or(|reason| rejection.reason == *reason)
            && self.before.is_none_or(|before| rejection.seq < before)
    }
}

impl LineFilter {
    pub(super) fn matches(&self, line: &BookedLine) -> bool {
        self.account.as_ref().is_none_or(|account| line.posting.account == *account)
            && self.payment.as_ref().is_none_or(|payment| line.posting.payment == *payment)
            && self.before.is_none_or(|before| line.number < before)
    }
}

impl AuditFilter {
    pub(super) fn matches(&self, AuditEntry { number, entry }: &AuditEntry) -> bool {
        let is =
            |wanted: &Option<String>, found: Option<&String>| wanted.is_none() || wanted.as_ref() == found;
        is(&self.tenant, entry.tenant.as_ref())
            && is(&self.target, Some(&entry.target.1))
            && is(&self.actor, entry.actor.as_ref())
            && self.action.as_deref().is_none_or(|wanted| matches_word(wanted, &entry.action))
            && self.since.is_none_or(|since| entry.at >= since)
            && self.until.is_none_or(|until| entry.at < until)
            && self.before.is_none_or(|before| *number < before)
    }

    /// Whether it is in the part of the log that is searched.
    pub(super) fn leads_to(&self, AuditEntry { number, entry }: &AuditEntry) -> bool {
        self.before.is_none_or(|before| *number < before)
            && match self.lead() {
                AuditLead::Target => self.target.as_ref() == Some(&entry.target.1),
                AuditLead::Actor => self.actor == entry.actor,
                AuditLead::Tenant => self.tenant == entry.tenant,
                AuditLead::Time | AuditLead::All => true,
            }
    }
}
