//! The store in memory: the plainest possible reading of [`Store`]'s promises. Tests compare the databases with it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use sekisho_core::change::{
    Admission, Arrival, ChangeSet, Committed, Death, End, Job, Lane, Lease, Next, Outcome, Rejection,
};
use sekisho_core::event::DedupeKey;
use sekisho_core::{Epoch, Seq, Time};

use crate::{
    EventFilter, EventRecord, EventSummary, FIND_MAX, Joined, Order, Peer, Pulse, REJECTIONS_MAX, Result,
    Status, Store,
};

#[derive(Default)]
pub struct MemoryStore {
    tables: Mutex<Tables>,
}

#[derive(Default)]
struct Tables {
    last_epoch: i64,
    nodes: BTreeMap<Epoch, i64>,
    dedupe: BTreeMap<DedupeKey, Seq>,
    events: BTreeMap<Seq, Arrival>,
    jobs: BTreeMap<Seq, JobRow>,
    outcomes: BTreeMap<Seq, (Outcome, Time)>,
    dead: BTreeMap<Seq, (Death, Time)>,
    rejections: BTreeMap<Seq, Rejection>,
}

struct JobRow {
    lane: Lane,
    due_at: Time,
    owner: Option<Epoch>,
    attempt: i32,
}

impl MemoryStore {
    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().expect("no code panics while it holds the tables")
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn join(&self, _now: Time) -> Result<Joined> {
        let mut tables = self.tables();
        tables.last_epoch += 1;
        let epoch = Epoch(tables.last_epoch);
        tables.nodes.insert(epoch, 0);
        let floor = tables.events.keys().chain(tables.jobs.keys()).max().copied().unwrap_or(Seq::ZERO);
        Ok(Joined { epoch, floor })
    }

    async fn beat(&self, epoch: Epoch, n: i64) -> Result<Pulse> {
        let mut tables = self.tables();
        let Some(beat) = tables.nodes.get_mut(&epoch) else { return Ok(Pulse::Ended) };
        *beat = n;
        let peers = tables.nodes.iter().filter(|(peer, _)| **peer != epoch);
        let peers = peers.map(|(&epoch, &beat)| Peer { epoch, beat }).collect();
        Ok(Pulse::Alive { peers, store_time: None })
    }

    async fn end(&self, epoch: Epoch, n: i64) -> Result<bool> {
        let mut tables = self.tables();
        let still = tables.nodes.get(&epoch) == Some(&n);
        if still {
            tables.nodes.remove(&epoch);
        }
        Ok(still)
    }

    async fn admit(&self, arrivals: Arc<[Arrival]>) -> Result<Vec<Admission>> {
        let mut tables = self.tables();
        Ok(arrivals.iter().map(|arrival| tables.admit(arrival)).collect())
    }

    fn committers(&self) -> usize {
        1
    }

    async fn known(&self, keys: &[DedupeKey]) -> Result<Vec<Option<Seq>>> {
        let tables = self.tables();
        Ok(keys.iter().map(|key| tables.dedupe.get(key).copied()).collect())
    }

    async fn claim(&self, epoch: Epoch, lane: &Lane, limit: usize, now: Time) -> Result<Vec<Job>> {
        let mut tables = self.tables();
        let mut ready: Vec<_> = tables
            .jobs
            .iter()
            .filter(|(_, job)| job.owner.is_none() && job.lane == *lane && job.due_at <= now)
            .map(|(&id, job)| (job.due_at, id))
            .collect();
        ready.sort_unstable();
        ready.truncate(limit);
        let claimed = ready.into_iter().map(|(_, id)| {
            let event_type = tables.events.get(&id).map(|event| event.event_type.clone()).unwrap_or_default();
            let job = tables.jobs.get_mut(&id).expect("it was just listed");
            job.owner = Some(epoch);
            job.attempt += 1;
            Job { lease: Lease { job: id, epoch, attempt: job.attempt }, lane: job.lane.clone(), event_type }
        });
        Ok(claimed.collect())
    }

    async fn commit(&self, sets: Vec<ChangeSet>) -> Result<Vec<Committed>> {
        let mut tables = self.tables();
        Ok(sets.into_iter().map(|set| tables.commit(set)).collect())
    }

    async fn sweep(&self, limit: usize) -> Result<usize> {
        let Tables { nodes, jobs, .. } = &mut *self.tables();
        let orphans =
            jobs.values_mut().filter(|job| job.owner.is_some_and(|owner| !nodes.contains_key(&owner)));
        Ok(orphans.take(limit).map(|job| job.owner = None).count())
    }

    async fn release(&self, leases: Vec<Lease>) -> Result<()> {
        let mut tables = self.tables();
        for lease in leases {
            if let Some(job) = tables.held(lease) {
                job.owner = None;
                job.attempt -= 1;
            }
        }
        Ok(())
    }

    async fn reject(&self, rejections: Vec<Rejection>) -> Result<()> {
        let mut tables = self.tables();
        tables.rejections.extend(rejections.into_iter().map(|rejection| (rejection.seq, rejection)));
        while tables.rejections.len() > REJECTIONS_MAX {
            tables.rejections.pop_first();
        }
        Ok(())
    }

    async fn upkeep(&self, _now: Time) -> Result<()> {
        Ok(())
    }

    async fn find_events(&self, filter: EventFilter) -> Result<Vec<EventSummary>> {
        let tables = self.tables();
        let matching =
            tables.events.values().map(|event| tables.summary(event)).filter(|event| filter.matches(event));
        let limit = filter.limit.min(FIND_MAX);
        Ok(match filter.order {
            Order::OldestFirst => matching.take(limit).collect(),
            Order::NewestFirst => {
                let mut all: Vec<_> = matching.collect();
                all.reverse();
                all.truncate(limit);
                all
            }
        })
    }

    async fn find_event(&self, seq: Seq) -> Result<Option<EventRecord>> {
        let tables = self.tables();
        Ok(tables.events.get(&seq).map(|event| EventRecord {
            summary: tables.summary(event),
            headers: event.headers.to_string(),
            body: event.body.clone(),
        }))
    }

    async fn find_seq(&self, source: &str, event_id: &str) -> Result<Option<Seq>> {
        let tables = self.tables();
        let found =
            tables.events.values().find(|event| &*event.source == source && event.event_id == event_id);
        Ok(found.map(|event| event.seq))
    }

    async fn find_rejections(&self, source: Option<String>, limit: usize) -> Result<Vec<Rejection>> {
        let tables = self.tables();
        let newest = tables.rejections.values().rev();
        let matching = newest.filter(|one| source.as_ref().is_none_or(|source| one.source == *source));
        Ok(matching.take(limit.min(FIND_MAX)).cloned().collect())
    }

    async fn describe(&self) -> Result<Vec<(String, String)>> {
        Ok(vec![("store".into(), "memory".into())])
    }
}

impl Tables {
    fn admit(&mut self, arrival: &Arrival) -> Admission {
        match self.dedupe.get(&arrival.key) {
            Some(&seq) if seq == arrival.seq => return Admission::Admitted,
            Some(&seq) => return Admission::Duplicate(seq),
            None => {}
        }
        self.dedupe.insert(arrival.key, arrival.seq);
        self.events.insert(arrival.seq, arrival.clone());
        match &arrival.next {
            Next::Settle => {
                let job =
                    JobRow { lane: Lane::settle(), due_at: arrival.received_at, owner: None, attempt: 0 };
                self.jobs.insert(arrival.seq, job);
            }
            Next::Dead(death) => {
                self.dead.insert(arrival.seq, (death.clone(), arrival.received_at));
            }
        }
        Admission::Admitted
    }

    fn held(&mut self, lease: Lease) -> Option<&mut JobRow> {
        self.jobs
            .get_mut(&lease.job)
            .filter(|job| job.owner == Some(lease.epoch) && job.attempt == lease.attempt)
    }

    fn commit(&mut self, set: ChangeSet) -> Committed {
        let Some(job) = self.held(set.lease) else { return Committed::Lost };
        match set.end {
            End::Retry { due_at } => {
                job.owner = None;
                job.due_at = due_at;
                return Committed::Applied;
            }
            End::Done(outcome) => {
                self.outcomes.insert(set.lease.job, (outcome, set.at));
            }
            End::Dead(death) => {
                self.dead.insert(set.lease.job, (death, set.at));
            }
        }
        self.jobs.remove(&set.lease.job);
        Committed::Applied
    }

    fn summary(&self, event: &Arrival) -> EventSummary {
        let (status, note, processed_at) = match (self.dead.get(&event.seq), self.outcomes.get(&event.seq)) {
            (Some((death, at)), _) => (Status::Failed, Some(death.error.clone()), Some(*at)),
            (None, Some((outcome, at))) => {
                let status = Status::parse(outcome.name()).expect("every outcome is a status");
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
            note,
            processed_at,
        }
    }
}

impl EventFilter {
    fn matches(&self, event: &EventSummary) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        let kind = self.event_type.as_deref().is_none_or(|wanted| match wanted.strip_suffix('*') {
            Some(prefix) => event.event_type.starts_with(prefix),
            None => event.event_type == wanted,
        });
        kind && is(&self.source, Some(&event.source))
            && is(&self.object_id, event.object.as_ref().map(|(_, id)| id.as_str()))
            && self.status.is_none_or(|status| status == event.status)
            && self.after.is_none_or(|after| event.seq > after)
            && self.before.is_none_or(|before| event.seq < before)
    }
}
