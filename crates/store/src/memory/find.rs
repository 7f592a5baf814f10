//! Reads that look at no more than they may.

use std::collections::BTreeMap;

use sekisho_core::Seq;
use sekisho_core::change::Arrival;
use sekisho_core::job::effect_prefix;
use sekisho_core::state::{Key, Kind};

use super::{Ended, Tables};
use crate::find::AuditLead;
use crate::{
    AuditFilter, AuditPage, DeadFilter, DeadGroup, DeadLetter, EventFilter, EventPage, EventSummary,
    FIND_MAX, GROUPED_MAX, Order, PendingWork, SCAN_MAX, Stake, Standing, Status, StoredMessage, WORK_MAX,
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

    pub(super) fn find_work(&self) -> Vec<PendingWork> {
        let mut lanes: BTreeMap<_, PendingWork> = BTreeMap::new();
        for job in self.jobs.values().take(WORK_MAX) {
            let (waiting, retrying, running, oldest_due) = (0, 0, 0, None);
            let none = || PendingWork { lane: job.lane.clone(), waiting, retrying, running, oldest_due };
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

/// How single rows are shown.
impl Tables {
    pub(super) fn summary(&self, event: &Arrival) -> EventSummary {
        let letter = self.dead.values().find(|letter| letter.event == Some(event.seq));
        let (status, note, processed_at) = match (letter, self.outcomes.get(&event.seq)) {
            (Some(letter), _) => (Status::Failed, Some(letter.death.error.clone()), Some(letter.at)),
            (None, Some(Ended { outcome, at, .. })) => {
                let status = Status::of_result(outcome.name()).expect("every outcome is a status");
                (status, outcome.note().map(str::to_owned), Some(*at))
            }
            (None, None) => (Status::Received, None, None),
        };
        EventSummary {
            seq: event.seq,
            event_id: event.event_id.clone(),
            source: event.source.to_string(),
            event_type: event.event_type.clone(),
            status,
            received_at: event.received_at,
            created_at: event.created_at,
            object: event.object.clone(),
            account: event.account.clone(),
            livemode: event.livemode,
            trust: event.trust.name().into(),
            id_reused: self.reused.contains(&event.seq),
            note,
            processed_at,
            about: self.outcomes.get(&event.seq).map(|ended| ended.about.clone()).unwrap_or_default(),
        }
    }

    pub(super) fn message(&self, id: Seq) -> Option<StoredMessage> {
        if let Some(job) = self.jobs.get(&id) {
            let standing = job.owner.map_or(Standing::Waiting(job.due_at), |_| Standing::Running);
            let (lane, event) = (job.home.as_ref().unwrap_or(&job.lane).clone(), job.event);
            return Some(StoredMessage { job: id, lane, event, attempts: job.attempt, standing, key: None });
        }
        if let Some(letter) = self.dead.get(&id) {
            let standing = Standing::Dead(letter.death.clone(), letter.at);
            let (lane, event) = (letter.lane.clone(), letter.event);
            return Some(StoredMessage {
                job: id,
                lane,
                event,
                attempts: letter.attempts,
                standing,
                key: None,
            });
        }
        self.outcomes.get(&id).map(|ended| StoredMessage {
            job: id,
            lane: ended.lane.clone(),
            event: ended.event,
            attempts: ended.attempts,
            standing: Standing::Done(ended.outcome.clone(), ended.at),
            key: None,
        })
    }

    pub(super) fn addressed(&self, letter: &DeadLetter) -> DeadLetter {
        let event = letter.event.and_then(|event| self.events.get(&event));
        let settled = letter.event.and_then(|event| self.outcomes.get(&event));
        DeadLetter {
            event_id: event.map(|event| event.event_id.clone()),
            event_type: event.map(|event| event.event_type.clone()),
            source: event.map(|event| event.source.to_string()),
            about: settled.map(|ended| ended.about.clone()).unwrap_or_default(),
            stake: letter.event.and_then(|event| self.stake(event)),
            ..letter.clone()
        }
    }

    fn stake(&self, event: Seq) -> Option<Stake> {
        let payment = self.outcomes.get(&event)?.about.payment.as_ref()?;
        let index = &self.states.get(&Key::new(Kind::Payment, payment))?.index;
        Stake::of(Some(payment.clone()), index.amount, index.currency.clone())
    }

    pub(super) fn effects_of(&self, event: Seq) -> Vec<(String, Seq)> {
        let prefix = effect_prefix(event);
        let from = self.effects.range(prefix.clone()..);
        from.take_while(|(key, _)| key.starts_with(&prefix)).map(|(key, job)| (key.clone(), *job)).collect()
    }
}
