//! Reads that look at no more than they may.

use std::collections::BTreeMap;

use super::Tables;
use crate::find::AuditLead;
use crate::{
    AuditFilter, AuditPage, DeadFilter, DeadGroup, EventFilter, EventPage, FIND_MAX, GROUPED_MAX, Order,
    SCAN_MAX, WORK_MAX, Work,
};

impl Tables {
    pub(super) fn find_events(&self, filter: &EventFilter) -> EventPage {
        let limit = filter.limit.min(FIND_MAX);
        let (low, high) = filter.reach(None);
        let within =
            self.events.values().filter(|event| low < event.seq.as_i64() && event.seq.as_i64() < high);
        let mut list: Vec<_> = within.map(|event| self.summary(event)).collect();
        list.retain(|event| filter.leads_to(event));
        if filter.order == Order::NewestFirst {
            list.reverse();
        }
        let end = list.get(SCAN_MAX - 1).map(|event| event.seq);
        let found = list.into_iter().take(SCAN_MAX).filter(|event| filter.matches(event));
        EventPage::of(found.take(limit).collect(), limit, end)
    }

    /// Times lead to entries where few are of that time.
    pub(super) fn find_audit(&self, filter: &AuditFilter) -> AuditPage {
        let limit = filter.limit.min(FIND_MAX);
        let of_time = AuditFilter { since: filter.since, until: filter.until, ..AuditFilter::default() };
        let of_time = self.audit.iter().filter(|entry| of_time.matches(entry)).count();
        let by_time = filter.lead() == AuditLead::Time && of_time <= SCAN_MAX;
        let within = self.audit.iter().rev().filter(|entry| filter.leads_to(entry));
        let list: Vec<_> = within.filter(|entry| !by_time || filter.matches(entry)).collect();
        let end = list.get(SCAN_MAX - 1).filter(|_| !by_time).map(|entry| entry.number);
        let found = list.into_iter().take(SCAN_MAX).filter(|entry| filter.matches(entry));
        AuditPage::of(found.take(limit).cloned().collect(), limit, end)
    }

    pub(super) fn find_dead_groups(&self, filter: &DeadFilter) -> Vec<DeadGroup> {
        let reach = DeadFilter { before: filter.before, event: filter.event, ..DeadFilter::default() };
        let newest = self.dead.values().rev().map(|letter| self.addressed(letter));
        let newest = newest.filter(|letter| reach.matches(letter)).take(filter.limit.min(GROUPED_MAX));
        let meant: Vec<_> = newest.filter(|letter| filter.matches(letter)).collect();
        DeadGroup::all(&meant)
    }

    pub(super) fn find_work(&self) -> Vec<Work> {
        let mut lanes: BTreeMap<_, Work> = BTreeMap::new();
        for job in self.jobs.values().take(WORK_MAX) {
            let (waiting, retrying, running, oldest_due) = (0, 0, 0, None);
            let none = || Work { lane: job.lane.clone(), waiting, retrying, running, oldest_due };
            let work = lanes.entry(&job.lane).or_insert_with(none);
            match (job.owner, job.attempt > job.base) {
                (Some(_), _) => work.running += 1,
                (None, true) => work.retrying += 1,
                (None, false) => work.waiting += 1,
            }
            if job.owner.is_none() {
                work.oldest_due = Some(work.oldest_due.map_or(job.due_at, |due_at| due_at.min(job.due_at)));
            }
        }
        lanes.into_values().collect()
    }
}
