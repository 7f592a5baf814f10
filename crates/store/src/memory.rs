//! The store in memory: the plainest possible reading of [`Store`]'s promises. Tests compare the databases with it.

mod act;
mod admit;
mod chain;
mod commit;
mod filter;
mod find;
mod find_delivery;
mod node;
mod upkeep;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use sekisho_core::change::{Act, Admission, Arrival, ChangeSet, Committed, Rejection, Replayed};
use sekisho_core::event::{About, BodyDigest, DedupeKey, Stored};
use sekisho_core::job::{Attempt, Job, Lane, Lease, Outcome, Settle, Task};
use sekisho_core::state::{Key, State};
use sekisho_core::{Epoch, Seq, Time};

use crate::find::Branches;
use crate::{
    AuditEntry, AuditFilter, AuditLink, AuditPage, BookedLine, CLAIM_MAX, ChainHead, Committers, Count,
    DeadFilter, DeadGroup, DeadLetter, DeliveryCounts, DeliveryFilter, DeliveryPage, Error, EventFilter,
    EventPage, EventRecord, FIND_MAX, Forgotten, HourMoney, Joined, LineFilter, Loaded, NodeRecord,
    PendingWork, Pulse, RejectionFilter, Result, StateFilter, Store, StoredMessage, Sum,
};

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
    /// By hour, mode, currency and cause.
    money: BTreeMap<(Time, i32, String, String), HourMoney>,
    audit: Vec<AuditEntry>,
    links: Vec<AuditLink>,
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
        self.tables().join(now).ok_or_else(Error::crowded)
    }

    async fn beat(&self, epoch: Epoch, n: i64) -> Result<Pulse> {
        Ok(self.tables().beat(epoch, n))
    }

    async fn end(&self, epoch: Epoch, n: i64) -> Result<bool> {
        Ok(self.tables().give_up(epoch, n))
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
        Ok(self.tables().claim(epoch, wants, now))
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
        leases.into_iter().for_each(|lease| tables.release(lease));
        Ok(())
    }

    async fn owned(&self, epoch: Epoch, after: Seq) -> Result<Vec<Lease>> {
        let tables = self.tables();
        let own = tables.jobs.iter().filter(|(id, job)| **id > after && job.owner == Some(epoch));
        Ok(own.map(|(&job, row)| Lease { job, epoch, attempt: row.attempt }).take(CLAIM_MAX).collect())
    }

    async fn adopt(&self, leases: Vec<Lease>) -> Result<Vec<Job>> {
        let mut tables = self.tables();
        Ok(leases.into_iter().filter_map(|lease| tables.adopt(lease)).collect())
    }

    async fn sweep(&self, limit: usize, suspect_after: i32) -> Result<usize> {
        Ok(self.tables().sweep(limit, suspect_after))
    }

    async fn make_due(&self, limit: usize, now: Time) -> Result<usize> {
        Ok(self.tables().make_due(limit, now))
    }

    async fn lanes(&self) -> Result<Vec<(Lane, Time)>> {
        Ok(self.tables().lanes())
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

    async fn cancel(&self, jobs: Vec<Seq>, act: Act) -> Result<Vec<bool>> {
        let mut tables = self.tables();
        let answers = jobs.into_iter().map(|job| tables.cancel(job, &act)).collect();
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

    async fn find_links(&self, after: Option<(i64, i64)>, limit: usize) -> Result<Vec<AuditLink>> {
        let tables = self.tables();
        let links = tables.links.iter().filter(|link| after.is_none_or(|after| (link.chain, link.n) > after));
        Ok(links.take(limit.min(FIND_MAX)).cloned().collect())
    }

    async fn find_places(&self, entries: Vec<i64>) -> Result<BTreeSet<(i64, i64)>> {
        let wanted: BTreeSet<_> = entries.into_iter().take(FIND_MAX).collect();
        let tables = self.tables();
        let holds = |link: &&AuditLink| link.entries.iter().any(|one| wanted.contains(&one.number));
        Ok(tables.links.iter().filter(holds).map(|link| (link.chain, link.n)).collect())
    }

    async fn chain_heads(&self) -> Result<Vec<ChainHead>> {
        let tables = self.tables();
        let head = |link: &AuditLink| ChainHead { chain: link.chain, n: link.n, hash: link.hash.clone() };
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
        self.tables().count_hour(hour);
        Ok(())
    }

    async fn forget(&self, before: Time, after: Seq, limit: usize) -> Result<Forgotten> {
        Ok(self.tables().forget(before, after, limit.min(CLAIM_MAX)))
    }

    async fn forget_meters(&self, from: String, to: String, limit: usize) -> Result<usize> {
        Ok(self.tables().forget_meters(&from, &to, limit.min(CLAIM_MAX)))
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

    async fn find_work(&self) -> Result<Vec<PendingWork>> {
        Ok(self.tables().find_work())
    }

    async fn find_nodes(&self) -> Result<Vec<NodeRecord>> {
        Ok(self.tables().nodes.values().take(FIND_MAX).copied().collect())
    }

    async fn find_message(&self, job: Seq) -> Result<Option<StoredMessage>> {
        Ok(self.tables().message(job))
    }

    async fn find_messages(&self, event: Seq) -> Result<Vec<StoredMessage>> {
        let tables = self.tables();
        let keyed = |(key, job)| Some(StoredMessage { key: Some(key), ..tables.message(job)? });
        Ok(tables.effects_of(event).into_iter().filter_map(keyed).collect())
    }

    async fn find_deliveries(&self, filter: DeliveryFilter) -> Result<DeliveryPage> {
        Ok(self.tables().find_deliveries(&filter))
    }

    async fn find_delivery_counts(&self, events: Vec<Seq>) -> Result<Vec<DeliveryCounts>> {
        Ok(self.tables().delivery_counts(&events))
    }

    async fn find_attempts(&self, job: Seq) -> Result<Vec<(i32, Attempt)>> {
        let tables = self.tables();
        let own = tables.attempts.range((job, i32::MIN)..=(job, i32::MAX));
        Ok(own.map(|((_, n), attempt)| (*n, attempt.clone())).collect())
    }

    async fn find_counts(&self, from: Time, to: Time) -> Result<Vec<Count>> {
        Ok(self.tables().find_counts(from, to))
    }

    async fn find_money(&self, from: Time, to: Time) -> Result<Vec<HourMoney>> {
        let tables = self.tables();
        Ok(tables.money.values().filter(|one| (from..to).contains(&one.hour)).cloned().collect())
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
