//! The store in memory: the plainest possible reading of [`Store`]'s promises. Tests compare the databases with it.

mod act;
mod commit;
mod filter;
mod find;
mod upkeep;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use sekisho_core::audit::{BEGINNING, Entry};
use sekisho_core::change::{Act, Admission, Arrival, ChangeSet, Committed, Rejection, Replayed};
use sekisho_core::event::{About, BodyDigest, DedupeKey, FirstBody, OtherBody, Stored};
use sekisho_core::id::NODES_MAX;
use sekisho_core::job::{Attempt, DeadReason, Job, Kind, Lane, Lease, Outcome, Settle, Task, effect_prefix};
use sekisho_core::state::{self, Key, State};
use sekisho_core::time::HOUR_MS;
use sekisho_core::{Epoch, Seq, Time};

use crate::find::Branches;
use crate::{
    AuditEntry, AuditFilter, AuditPage, BookedLine, CLAIM_MAX, ChainHead, Committers, Count, DeadFilter,
    DeadGroup, DeadLetter, Error, EventFilter, EventPage, EventRecord, EventSummary, FIND_MAX, Forgotten,
    Joined, LineFilter, Link, Loaded, Message, NodeRecord, Peer, Pulse, RejectionFilter, Result, Stake,
    Standing, StateFilter, Status, Store, Sum, Work,
};

/// One process, one writer: one chain.
const CHAIN: i64 = 1;

#[derive(Default)]
pub struct MemoryStore {
    tables: Mutex<Tables>,
}

#[derive(Default)]
struct Tables {
    last_epoch: i64,
    nodes: BTreeMap<Epoch, NodeRecord>,
    /// Who was given up, with the newest epoch at that time: their numbers are taken again only when no other is free.
    given_up: BTreeSet<(i64, Epoch)>,
    dedupe: BTreeMap<DedupeKey, Seq>,
    first_bodies: BTreeMap<DedupeKey, (BodyDigest, Seq)>,
    /// Events before which another body had come under their id.
    reused: BTreeSet<Seq>,
    events: BTreeMap<Seq, Arrival>,
    jobs: BTreeMap<Seq, JobRow>,
    effects: BTreeMap<String, Seq>,
    outcomes: BTreeMap<Seq, Ended>,
    attempts: BTreeMap<(Seq, i32), Attempt>,
    dead: BTreeMap<Seq, DeadLetter>,
    states: BTreeMap<Key, State>,
    names: BTreeMap<String, Key>,
    lines: Vec<BookedLine>,
    counts: BTreeMap<(Time, String, String, &'static str), i64>,
    audit: Vec<AuditEntry>,
    links: Vec<Link>,
    rejections: BTreeMap<Seq, Rejection>,
}

#[derive(Clone)]
struct JobRow {
    task: Task,
    lane: Lane,
    /// The lane it was in before it became suspect.
    home: Option<Lane>,
    fifo: Option<String>,
    due_at: Time,
    event: Option<Seq>,
    owner: Option<Epoch>,
    attempt: i32,
    base: i32,
    crashes: i32,
    started: bool,
}

struct Ended {
    outcome: Outcome,
    at: Time,
    attempts: i32,
    lane: Lane,
    event: Option<Seq>,
    about: About,
}

impl MemoryStore {
    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().expect("no code panics while it holds the tables")
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn join(&self, now: Time) -> Result<Joined> {
        let mut tables = self.tables();
        let epoch = tables.next_epoch().ok_or_else(Error::crowded)?;
        tables.last_epoch = epoch.0;
        tables.nodes.insert(epoch, NodeRecord { epoch, beat: 0, joined_at: now });
        let floor = [
            tables.events.keys().max(),
            tables.jobs.keys().max(),
            tables.outcomes.keys().max(),
            tables.dead.keys().max(),
        ]
        .into_iter()
        .flatten()
        .max()
        .copied()
        .unwrap_or(Seq::ZERO);
        Ok(Joined { epoch, floor })
    }

    async fn beat(&self, epoch: Epoch, n: i64) -> Result<Pulse> {
        let mut tables = self.tables();
        let Some(node) = tables.nodes.get_mut(&epoch) else { return Ok(Pulse::Ended) };
        node.beat = n;
        let peers = tables.nodes.values().filter(|peer| peer.epoch != epoch);
        let peers = peers.map(|node| Peer { epoch: node.epoch, beat: node.beat }).collect();
        Ok(Pulse::Alive { peers, store_time: None })
    }

    async fn end(&self, epoch: Epoch, n: i64) -> Result<bool> {
        let mut tables = self.tables();
        let still = tables.nodes.get(&epoch).is_some_and(|node| node.beat == n);
        if still {
            tables.nodes.remove(&epoch);
            let newest = tables.last_epoch;
            tables.given_up.insert((newest, epoch));
        }
        Ok(still)
    }

    async fn leave(&self, epoch: Epoch) -> Result<()> {
        let mut tables = self.tables();
        tables.nodes.remove(&epoch);
        tables.given_up.retain(|(_, given_up)| *given_up != epoch);
        Ok(())
    }

    async fn admit(&self, arrivals: Arc<[Arrival]>, keep: Option<Epoch>) -> Result<Vec<Admission>> {
        let mut tables = self.tables();
        Ok(arrivals.iter().map(|arrival| tables.admit(arrival, keep)).collect())
    }

    fn committers(&self) -> Committers {
        Committers { count: 1, apart: Duration::ZERO }
    }

    async fn known(&self, keys: &[DedupeKey]) -> Result<Vec<Option<Seq>>> {
        let tables = self.tables();
        Ok(keys.iter().map(|key| tables.dedupe.get(key).copied()).collect())
    }

    async fn claim(&self, epoch: Epoch, wants: Vec<(Lane, usize)>, now: Time) -> Result<Vec<Job>> {
        let mut tables = self.tables();
        let mut claimed = Vec::new();
        for (lane, limit) in wants {
            let mut ready: Vec<_> = tables
                .jobs
                .iter()
                .filter(|(_, job)| job.owner.is_none() && job.lane == lane && job.due_at <= now)
                .filter(|(id, job)| tables.has_its_turn(**id, job))
                .map(|(&id, job)| (job.due_at, id))
                .collect();
            ready.sort_unstable();
            ready.truncate(limit.min(CLAIM_MAX));
            claimed.extend(ready.into_iter().map(|(_, id)| tables.lease(id, epoch)));
        }
        Ok(claimed)
    }

    async fn commit(&self, sets: Vec<ChangeSet>) -> Result<Vec<Committed>> {
        let mut tables = self.tables();
        let answers = sets.into_iter().map(|set| tables.commit(set)).collect();
        tables.link();
        Ok(answers)
    }

    async fn start(&self, leases: Vec<Lease>) -> Result<Vec<bool>> {
        let mut tables = self.tables();
        let start = |lease| tables.held(lease).map(|job| job.started = true).is_some();
        Ok(leases.into_iter().map(start).collect())
    }

    async fn release(&self, leases: Vec<Lease>) -> Result<()> {
        let mut tables = self.tables();
        for lease in leases {
            if let Some(job) = tables.held(lease) {
                job.owner = None;
                job.started = false;
                job.base += 1;
            }
        }
        Ok(())
    }

    async fn owned(&self, epoch: Epoch, after: Seq) -> Result<Vec<Lease>> {
        let tables = self.tables();
        let own = tables.jobs.iter().filter(|(id, job)| **id > after && job.owner == Some(epoch));
        Ok(own.map(|(&job, row)| Lease { job, epoch, attempt: row.attempt }).take(CLAIM_MAX).collect())
    }

    async fn adopt(&self, leases: Vec<Lease>) -> Result<Vec<Job>> {
        let mut tables = self.tables();
        let adopt = |lease: Lease| {
            let job = tables.held(lease)?;
            // The run that never was, or was cut off, is no try.
            job.base += 1;
            Some(tables.lease(lease.job, lease.epoch))
        };
        Ok(leases.into_iter().filter_map(adopt).collect())
    }

    async fn sweep(&self, limit: usize, suspect_after: i32) -> Result<usize> {
        let Tables { nodes, jobs, .. } = &mut *self.tables();
        let orphans =
            jobs.values_mut().filter(|job| job.owner.is_some_and(|owner| !nodes.contains_key(&owner)));
        let free = |job: &mut JobRow| {
            if job.lane != Lane::suspect() || job.started {
                job.crashes += 1;
            }
            if job.crashes >= suspect_after && job.home.is_none() {
                job.home = Some(std::mem::replace(&mut job.lane, Lane::suspect()));
            }
            // The run that was cut off is no try.
            job.base += 1;
            job.owner = None;
            job.started = false;
        };
        Ok(orphans.take(limit.min(CLAIM_MAX)).map(free).count())
    }

    async fn make_due(&self, limit: usize, now: Time) -> Result<usize> {
        let mut tables = self.tables();
        let waits =
            |job: &&mut JobRow| job.owner.is_none() && job.due_at > now && job.task.kind() != Kind::Timer;
        let hastened = tables.jobs.values_mut().filter(waits).take(limit.min(CLAIM_MAX));
        Ok(hastened.map(|job| job.due_at = now).count())
    }

    async fn lanes(&self) -> Result<Vec<(Lane, Time)>> {
        let mut oldest: BTreeMap<Lane, Time> = BTreeMap::new();
        for job in self.tables().jobs.values().filter(|job| job.owner.is_none()) {
            let due_at = oldest.entry(job.lane.clone()).or_insert(job.due_at);
            *due_at = job.due_at.min(*due_at);
        }
        Ok(oldest.into_iter().collect())
    }

    async fn load_events(&self, seqs: Vec<Seq>) -> Result<Vec<Stored>> {
        let tables = self.tables();
        let wanted: BTreeSet<_> = seqs.into_iter().collect();
        Ok(wanted.iter().filter_map(|seq| tables.events.get(seq).map(Arrival::stored)).collect())
    }

    async fn retry(&self, jobs: Vec<Seq>, act: Act) -> Result<Vec<bool>> {
        let mut tables = self.tables();
        let answers = jobs.into_iter().map(|job| tables.retry(job, &act)).collect();
        tables.link();
        Ok(answers)
    }

    async fn discard(&self, jobs: Vec<Seq>, act: Act) -> Result<Vec<bool>> {
        let mut tables = self.tables();
        let answers = jobs.into_iter().map(|job| tables.discard(job, &act)).collect();
        tables.link();
        Ok(answers)
    }

    async fn replay(&self, events: Vec<Seq>, settle: Settle, act: Act) -> Result<Vec<Replayed>> {
        let mut tables = self.tables();
        let answers = events.into_iter().map(|event| tables.replay(event, &settle, &act)).collect();
        tables.link();
        Ok(answers)
    }

    async fn load(&self, names: Vec<String>, keys: Vec<Key>) -> Result<Loaded> {
        let tables = self.tables();
        let named =
            names.into_iter().filter_map(|name| tables.names.get(&name).cloned().map(|key| (name, key)));
        let names: BTreeMap<_, _> = named.collect();
        let states = keys.iter().chain(names.values()).filter_map(|key| tables.states.get(key));
        let states = states.map(|state| (state.key.clone(), state.clone())).collect();
        Ok(Loaded { names, states })
    }

    async fn find_branches(&self, prefix: String, limit: usize) -> Result<Vec<String>> {
        let tables = self.tables();
        let mut branches = Branches::new(prefix, limit.min(FIND_MAX));
        while let Some((from, to)) = branches.span() {
            let next = tables.names.range(from..).next().map(|(name, _)| &**name).filter(|name| **name < *to);
            if !branches.met(next) {
                break;
            }
        }
        Ok(branches.into_words())
    }

    async fn find_states(&self, filter: StateFilter) -> Result<Vec<State>> {
        let tables = self.tables();
        let newest = tables.states.values().rev().filter(|state| filter.matches(state));
        Ok(newest.take(filter.limit.min(FIND_MAX)).cloned().collect())
    }

    async fn find_sums(&self, account: Option<String>) -> Result<Vec<Sum>> {
        let tables = self.tables();
        let mut sums: BTreeMap<_, (i64, i64)> = BTreeMap::new();
        for BookedLine { posting: line, .. } in &tables.lines {
            if account.as_ref().is_none_or(|account| line.account == *account) {
                let sum = sums.entry((&line.account, &line.currency, line.livemode)).or_default();
                *sum = (sum.0 + line.amount, sum.1 + 1);
            }
        }
        let sum = |((account, currency, livemode), (amount, lines)): ((&String, &String, _), _)| Sum {
            account: account.clone(),
            currency: currency.clone(),
            livemode,
            amount,
            lines,
        };
        Ok(sums.into_iter().map(sum).collect())
    }

    async fn find_lines(&self, filter: LineFilter) -> Result<Vec<BookedLine>> {
        let tables = self.tables();
        let newest = tables.lines.iter().rev().filter(|line| filter.matches(line));
        Ok(newest.take(filter.limit.min(FIND_MAX)).cloned().collect())
    }

    async fn find_audit(&self, filter: AuditFilter) -> Result<AuditPage> {
        Ok(self.tables().find_audit(&filter))
    }

    async fn find_links(&self, after: Option<(i64, i64)>, limit: usize) -> Result<Vec<Link>> {
        let tables = self.tables();
        let links = tables.links.iter().filter(|link| after.is_none_or(|after| (link.chain, link.n) > after));
        Ok(links.take(limit.min(FIND_MAX)).cloned().collect())
    }

    async fn find_places(&self, entries: Vec<i64>) -> Result<BTreeSet<(i64, i64)>> {
        let wanted: BTreeSet<_> = entries.into_iter().take(FIND_MAX).collect();
        let tables = self.tables();
        let holds = |link: &&Link| link.entries.iter().any(|one| wanted.contains(&one.number));
        Ok(tables.links.iter().filter(holds).map(|link| (link.chain, link.n)).collect())
    }

    async fn chain_heads(&self) -> Result<Vec<ChainHead>> {
        let tables = self.tables();
        let head = |link: &Link| ChainHead { chain: link.chain, n: link.n, hash: link.hash.clone() };
        Ok(tables.links.last().map(head).into_iter().collect())
    }

    async fn reject(&self, rejections: Vec<Rejection>) -> Result<()> {
        let mut tables = self.tables();
        tables.reject(rejections);
        Ok(())
    }

    async fn upkeep(&self, _now: Time) -> Result<()> {
        Ok(())
    }

    async fn count_hour(&self, hour: Time) -> Result<()> {
        let mut tables = self.tables();
        tables.counts.retain(|(counted, ..), _| *counted != hour);
        let range = Seq::floor_of(hour)..Seq::floor_of(hour.plus_ms(HOUR_MS));
        let events: Vec<_> = tables.events.range(range).map(|(_, event)| tables.summary(event)).collect();
        for event in events {
            let key = (hour, event.source, event.event_type, event.status.name());
            *tables.counts.entry(key).or_default() += 1;
        }
        Ok(())
    }

    async fn forget(&self, before: Time, after: Seq, limit: usize) -> Result<Forgotten> {
        Ok(self.tables().forget(before, after, limit.min(CLAIM_MAX)))
    }

    async fn find_events(&self, filter: EventFilter) -> Result<EventPage> {
        Ok(self.tables().find_events(&filter))
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
        if let Some((_, seq)) = tables.first_bodies.get(&DedupeKey::new(source, event_id, None)) {
            return Ok(Some(*seq));
        }
        let mut newest = tables.events.values().rev().filter(|event| event.digest_in_key().is_none());
        let found = newest.find(|event| &*event.source == source && event.event_id == event_id);
        Ok(found.map(|event| event.seq))
    }

    async fn find_dead(&self, filter: DeadFilter) -> Result<Vec<DeadLetter>> {
        let tables = self.tables();
        let newest = tables.dead.values().rev().map(|letter| tables.addressed(letter));
        Ok(newest.filter(|letter| filter.matches(letter)).take(filter.limit.min(FIND_MAX)).collect())
    }

    async fn find_dead_groups(&self, filter: DeadFilter) -> Result<Vec<DeadGroup>> {
        Ok(self.tables().find_dead_groups(&filter))
    }

    async fn find_work(&self) -> Result<Vec<Work>> {
        Ok(self.tables().find_work())
    }

    async fn find_nodes(&self) -> Result<Vec<NodeRecord>> {
        Ok(self.tables().nodes.values().take(FIND_MAX).copied().collect())
    }

    async fn find_message(&self, job: Seq) -> Result<Option<Message>> {
        Ok(self.tables().message(job))
    }

    async fn find_messages(&self, event: Seq) -> Result<Vec<Message>> {
        let tables = self.tables();
        let keyed = |(key, job)| Some(Message { key: Some(key), ..tables.message(job)? });
        Ok(tables.effects_of(event).into_iter().filter_map(keyed).collect())
    }

    async fn find_attempts(&self, job: Seq) -> Result<Vec<(i32, Attempt)>> {
        let tables = self.tables();
        let own = tables.attempts.range((job, i32::MIN)..=(job, i32::MAX));
        Ok(own.map(|((_, n), attempt)| (*n, attempt.clone())).collect())
    }

    async fn find_counts(&self, from: Time, to: Time) -> Result<Vec<Count>> {
        let tables = self.tables();
        let within = tables.counts.iter().filter(|((hour, ..), _)| (from..to).contains(hour));
        Ok(within
            .map(|((hour, source, event_type, status), events)| Count {
                hour: *hour,
                source: source.clone(),
                event_type: event_type.clone(),
                status: Status::parse(status).expect("it was one"),
                events: *events,
            })
            .collect())
    }

    async fn find_rejections(&self, filter: RejectionFilter) -> Result<Vec<Rejection>> {
        let tables = self.tables();
        let newest = tables.rejections.values().rev().filter(|one| filter.matches(one));
        Ok(newest.take(filter.limit.min(FIND_MAX)).cloned().collect())
    }

    async fn describe(&self) -> Result<Vec<(String, String)>> {
        Ok(vec![("store".into(), "memory".into())])
    }
}

impl Tables {
    fn next_epoch(&mut self) -> Option<Epoch> {
        if (self.nodes.len() + self.given_up.len()) as i64 >= NODES_MAX {
            self.given_up.pop_first();
        }
        let given_up = self.given_up.iter().map(|(_, epoch)| epoch);
        let taken: BTreeSet<i64> = self.nodes.keys().chain(given_up).map(|epoch| epoch.number()).collect();
        Epoch(self.last_epoch).next_free(|number| taken.contains(&number))
    }

    fn admit(&mut self, arrival: &Arrival, keep: Option<Epoch>) -> Admission {
        let refuses = |first: &FirstBody| first.other == OtherBody::Refused;
        if arrival.first_body.filter(refuses).is_some_and(|first| self.is_other_body(first, arrival.seq)) {
            return Admission::OtherBody;
        }
        let stored = self.dedupe.get(&arrival.key).copied();
        if let Some(seq) = stored.filter(|seq| *seq != arrival.seq) {
            return Admission::Duplicate(seq);
        }
        let noted = arrival.first_body.filter(|first| !refuses(first));
        let id_reused = noted.is_some_and(|first| self.is_other_body(first, arrival.seq));
        let admission = if id_reused { Admission::IdReused } else { Admission::Admitted };
        if stored.is_some() {
            return admission;
        }
        if id_reused {
            self.reused.insert(arrival.seq);
        }
        self.dedupe.insert(arrival.key, arrival.seq);
        self.events.insert(arrival.seq, arrival.clone());
        let job = JobRow {
            owner: keep,
            attempt: i32::from(keep.is_some()),
            task: Task::Settle(arrival.settle()),
            ..JobRow::settle(arrival.seq, arrival.received_at)
        };
        self.jobs.insert(arrival.seq, job);
        admission
    }

    /// Whether another body came under its id before. The first is remembered.
    fn is_other_body(&mut self, first: FirstBody, seq: Seq) -> bool {
        self.first_bodies.entry(first.id).or_insert((first.digest, seq)).0 != first.digest
    }

    fn held(&mut self, lease: Lease) -> Option<&mut JobRow> {
        self.jobs
            .get_mut(&lease.job)
            .filter(|job| job.owner == Some(lease.epoch) && job.attempt == lease.attempt)
    }

    /// No job of the same row is unfinished before it.
    fn has_its_turn(&self, id: Seq, job: &JobRow) -> bool {
        job.fifo.is_none() || !self.jobs.range(..id).any(|(_, earlier)| earlier.fifo == job.fifo)
    }

    fn lease(&mut self, id: Seq, epoch: Epoch) -> Job {
        let job = self.jobs.get_mut(&id).expect("it was just seen");
        job.owner = Some(epoch);
        job.attempt += 1;
        Job {
            lease: Lease { job: id, epoch, attempt: job.attempt },
            task: job.task.clone(),
            lane: job.lane.clone(),
            fifo: job.fifo.clone(),
            due_at: job.due_at,
            event: job.event,
            base: job.base,
            crashes: job.crashes,
        }
    }

    fn note(&mut self, entry: Entry) {
        let number = self.audit.last().map_or(0, |last| last.number) + 1;
        self.audit.push(AuditEntry { number, entry });
    }

    /// Hangs what was noted since on one link.
    fn link(&mut self) {
        let linked = self.links.iter().map(|link| link.entries.len()).sum();
        let entries = self.audit[linked..].to_vec();
        if entries.is_empty() {
            return;
        }
        let last = self.links.last();
        let previous = last.map_or(BEGINNING.to_vec(), |link| link.hash.clone());
        let before = previous.as_slice().try_into().expect("every hash has 32 bytes");
        let hash =
            sekisho_core::audit::link(before, entries.iter().map(|entry| entry.entry.digest())).to_vec();
        let n = last.map_or(0, |link| link.n) + 1;
        self.links.push(Link { chain: CHAIN, n, previous, hash, entries });
    }

    fn effects_of(&self, event: Seq) -> Vec<(String, Seq)> {
        let prefix = effect_prefix(event);
        let from = self.effects.range(prefix.clone()..);
        from.take_while(|(key, _)| key.starts_with(&prefix)).map(|(key, job)| (key.clone(), *job)).collect()
    }

    fn addressed(&self, letter: &DeadLetter) -> DeadLetter {
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
        let index = &self.states.get(&Key::new(state::Kind::Payment, payment))?.index;
        Stake::of(Some(payment.clone()), index.amount, index.currency.clone())
    }

    fn message(&self, id: Seq) -> Option<Message> {
        if let Some(job) = self.jobs.get(&id) {
            let standing = job.owner.map_or(Standing::Waiting(job.due_at), |_| Standing::Running);
            let (lane, event) = (job.home.as_ref().unwrap_or(&job.lane).clone(), job.event);
            return Some(Message { job: id, lane, event, attempts: job.attempt, standing, key: None });
        }
        if let Some(letter) = self.dead.get(&id) {
            let standing = Standing::Dead(letter.death.clone(), letter.at);
            let (lane, event) = (letter.lane.clone(), letter.event);
            return Some(Message { job: id, lane, event, attempts: letter.attempts, standing, key: None });
        }
        self.outcomes.get(&id).map(|ended| Message {
            job: id,
            lane: ended.lane.clone(),
            event: ended.event,
            attempts: ended.attempts,
            standing: Standing::Done(ended.outcome.clone(), ended.at),
            key: None,
        })
    }

    fn summary(&self, event: &Arrival) -> EventSummary {
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
}

impl JobRow {
    fn settle(event: Seq, due_at: Time) -> Self {
        Self {
            task: Task::Settle(Settle::Once),
            lane: Lane::settle(),
            home: None,
            fifo: None,
            due_at,
            event: Some(event),
            owner: None,
            attempt: 0,
            base: 0,
            crashes: 0,
            started: false,
        }
    }

    fn ended(self, outcome: Outcome, about: About, at: Time) -> Ended {
        let lane = self.home.unwrap_or(self.lane);
        Ended { outcome, at, attempts: self.attempt, lane, event: self.event, about }
    }

    fn letter(self, job: Seq, death: DeadReason, at: Time) -> DeadLetter {
        DeadLetter {
            job,
            task: self.task,
            lane: self.home.unwrap_or(self.lane),
            fifo: self.fifo,
            attempts: self.attempt,
            crashes: self.crashes,
            death,
            at,
            event: self.event,
            event_id: None,
            event_type: None,
            source: None,
            about: About::default(),
            stake: None,
        }
    }
}
