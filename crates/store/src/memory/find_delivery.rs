//! Bounded reads about deliveries.

use sekisho_core::Seq;
use sekisho_core::job::JobKind;

use super::Tables;
use crate::find::{COUNTED_MAX, DeliveryList, delivery_keys};
use crate::{
    DeliveryCounts, DeliveryFilter, DeliveryPage, DeliveryRecord, DeliveryStatus, FIND_MAX, LastCall,
    SCAN_MAX,
};

impl Tables {
    pub(super) fn find_deliveries(&self, filter: &DeliveryFilter) -> DeliveryPage {
        let limit = filter.limit.min(FIND_MAX);
        let lists = filter.lists().iter().map(|list| {
            let within = self.numbers(*list, filter);
            let end = within.get(SCAN_MAX - 1).copied();
            let found = within.iter().take(SCAN_MAX).filter_map(|job| self.delivery(*job));
            (found.filter(|one| filter.matches(one)).take(limit).collect(), end)
        });
        DeliveryPage::of(lists.collect(), limit)
    }

    /// What a list holds, whatever it is, the newest first.
    fn numbers(&self, list: DeliveryList, filter: &DeliveryFilter) -> Vec<Seq> {
        let (low, high) = filter.reach(None);
        let all: Vec<Seq> = match list {
            DeliveryList::Unfinished => self.jobs.keys().copied().collect(),
            DeliveryList::Ended => self.outcomes.keys().copied().collect(),
            DeliveryList::Dead => self.dead.keys().copied().collect(),
        };
        let is_within = |job: &Seq| low < job.as_i64() && job.as_i64() < high;
        all.into_iter().rev().filter(is_within).collect()
    }

    fn delivery(&self, job: Seq) -> Option<DeliveryRecord> {
        let is_delivery = match (self.jobs.get(&job), self.dead.get(&job), self.outcomes.get(&job)) {
            (Some(row), _, _) => row.task.kind() == JobKind::Deliver,
            (None, Some(letter), _) => letter.task.kind() == JobKind::Deliver,
            (None, None, Some(ended)) => ended.lane.route().is_some(),
            (None, None, None) => false,
        };
        let message = self.message(job).filter(|_| is_delivery)?;
        let event = message.event.and_then(|event| self.events.get(&event));
        let calls = self.attempts.range((job, i32::MIN)..=(job, i32::MAX));
        Some(DeliveryRecord {
            job,
            lane: message.lane,
            attempts: message.attempts,
            standing: message.standing,
            event: message.event,
            event_id: event.map(|event| event.event_id.clone()),
            event_type: event.map(|event| event.event_type.clone()),
            source: event.map(|event| event.source.to_string()),
            last: calls.last().map(|(_, call)| LastCall {
                at: call.at,
                took_ms: call.took_ms,
                status: call.status,
                reason: call.reason.clone(),
            }),
        })
    }

    pub(super) fn delivery_counts(&self, events: &[Seq]) -> Vec<DeliveryCounts> {
        events.iter().take(FIND_MAX).map(|event| self.counts_of(*event)).collect()
    }

    fn counts_of(&self, event: Seq) -> DeliveryCounts {
        let (low, high) = delivery_keys(event);
        let jobs = self.effects.range(low..high).take(COUNTED_MAX).map(|(_, job)| *job);
        let messages = jobs.filter_map(|job| self.message(job));
        DeliveryCounts::of(messages.map(|one| (one.lane.clone(), one.job, DeliveryStatus::of(&one.standing))))
    }
}
