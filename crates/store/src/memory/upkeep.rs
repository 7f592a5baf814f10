//! Keeping what is bounded within its bounds, and letting go of what was kept long enough.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::ops::Range;

use sekisho_core::change::Rejection;
use sekisho_core::job::past_effects;
use sekisho_core::state::{self, Key, PROVIDER_ACCOUNTS};
use sekisho_core::time::HOUR_MS;
use sekisho_core::{Seq, Time};

use super::Tables;
use crate::{BookedLine, Count, Forgotten, HourMoney, REJECTIONS_MAX, REJECTIONS_OF_NETWORK_MAX, Status};

impl Tables {
    pub(super) fn find_counts(&self, from: Time, to: Time) -> Vec<Count> {
        let within = self.counts.iter().filter(|((hour, ..), _)| (from..to).contains(hour));
        within
            .map(|((hour, source, event_type, status), events)| Count {
                hour: *hour,
                source: source.clone(),
                event_type: event_type.clone(),
                status: Status::parse(status).expect("it was one"),
                events: *events,
            })
            .collect()
    }

    pub(super) fn count_hour(&mut self, hour: Time) {
        self.counts.retain(|(counted, ..), _| *counted != hour);
        let range = Seq::floor_of(hour)..Seq::floor_of(hour.plus_ms(HOUR_MS));
        let events: Vec<_> = self.events.range(range).map(|(_, event)| self.summary(event)).collect();
        for event in events {
            let key = (hour, event.source, event.event_type, event.status.name());
            *self.counts.entry(key).or_default() += 1;
        }
        self.money.retain(|(counted, ..), _| *counted != hour);
        let within = |line: &&BookedLine| (hour..hour.plus_ms(HOUR_MS)).contains(&line.at);
        let at_provider = |line: &&BookedLine| line.posting.account.starts_with(PROVIDER_ACCOUNTS);
        for BookedLine { posting, .. } in self.lines.iter().filter(within).filter(at_provider) {
            let (livemode, currency, cause) = (posting.livemode, &posting.currency, &posting.cause);
            let key = (hour, HourMoney::mode(livemode), currency.clone(), cause.clone());
            let money = self.money.entry(key).or_insert_with(|| HourMoney {
                hour,
                livemode,
                currency: currency.clone(),
                cause: cause.clone(),
                amount: 0,
                lines: 0,
            });
            money.amount += posting.amount;
            money.lines += 1;
        }
    }

    pub(super) fn reject(&mut self, rejections: Vec<Rejection>) {
        let networks: BTreeSet<_> = rejections.iter().map(|one| one.network.clone()).collect();
        let line =
            |one: &Rejection| (one.source.clone(), one.reason.clone(), one.network.clone(), one.hour());
        let mut lines: BTreeMap<_, _> = self.rejections.values().map(|one| (line(one), one.seq)).collect();
        for one in rejections {
            let seq = *lines.entry(line(&one)).or_insert(one.seq);
            match self.rejections.entry(seq) {
                Entry::Occupied(mut known) => known.get_mut().join(&one),
                Entry::Vacant(free) => drop(free.insert(one)),
            }
        }
        for network in networks {
            let of_network = self.rejections.values().rev().filter(|one| one.network == network);
            let old: Vec<_> = of_network.skip(REJECTIONS_OF_NETWORK_MAX).map(|one| one.seq).collect();
            old.iter().for_each(|seq| drop(self.rejections.remove(seq)));
        }
        while self.rejections.len() > REJECTIONS_MAX {
            self.rejections.pop_first();
        }
    }

    pub(super) fn forget(&mut self, before: Time, after: Seq, limit: usize) -> Forgotten {
        let old = self.events.range(..Seq::floor_of(before)).map(|(seq, _)| *seq);
        let old: Vec<_> = old.filter(|seq| *seq > after).take(limit).collect();
        let (found, last) = (old.len(), old.last().copied().unwrap_or(after));
        let mut events = 0;
        for seq in old {
            if self.is_needed(seq) {
                continue;
            }
            events += 1;
            self.events.remove(&seq);
            self.reused.remove(&seq);
            self.dedupe.retain(|_, stored| *stored != seq);
            self.erase(seq);
            for (key, job) in self.effects_of(seq) {
                self.effects.remove(&key);
                self.erase(job);
            }
        }
        let past = past_effects(before).map(|(from, to)| self.erase_effects(from.to_owned()..to, limit));
        let past: usize = past.into_iter().sum();
        let bodies = self.forget_bodies(before, limit);
        let requests = self.forget_requests(before, limit);
        Forgotten { events, next: Forgotten::next(last, &[found, past, bodies, requests], limit) }
    }

    fn is_needed(&self, event: Seq) -> bool {
        self.jobs.values().any(|job| job.event == Some(event))
            || self.dead.values().any(|letter| letter.event == Some(event))
    }

    /// What is remembered of bodies that came first; says how many.
    fn forget_bodies(&mut self, before: Time, limit: usize) -> usize {
        let horizon = Seq::floor_of(before);
        let old = self.first_bodies.iter().map(|(id, (_, seq))| (*seq, *id));
        let mut old: Vec<_> = old.filter(|(seq, _)| *seq < horizon && !self.is_needed(*seq)).collect();
        old.sort_unstable();
        old.truncate(limit);
        for (_, id) in &old {
            self.first_bodies.remove(id);
        }
        old.len()
    }

    /// Finished effects between two keys, with their traces; says how many.
    fn erase_effects(&mut self, keys: Range<String>, limit: usize) -> usize {
        let finished = self
            .effects
            .range(keys)
            .filter(|(_, job)| !self.jobs.contains_key(job) && !self.dead.contains_key(job));
        let finished: Vec<_> = finished.map(|(key, job)| (key.clone(), *job)).take(limit).collect();
        for (key, job) in &finished {
            self.effects.remove(key);
            self.erase(*job);
        }
        finished.len()
    }

    fn forget_requests(&mut self, before: Time, limit: usize) -> usize {
        let requests = self.states.values().filter(|state| state.key.kind == state::Kind::Request);
        let mut old: Vec<_> = requests.filter(|state| state.changed_at < before).collect();
        old.sort_by_key(|state| (state.changed_at, state.key.id.clone()));
        let old: BTreeSet<Key> = old.into_iter().take(limit).map(|state| state.key.clone()).collect();
        self.states.retain(|key, _| !old.contains(key));
        self.names.retain(|_, key| !old.contains(key));
        old.len()
    }

    pub(super) fn forget_meters(&mut self, from: &str, to: &str, limit: usize) -> usize {
        let is_old = |key: &&Key| key.kind == state::Kind::Meter && (from..to).contains(&&*key.id);
        let old: BTreeSet<Key> = self.states.keys().filter(is_old).take(limit).cloned().collect();
        self.states.retain(|key, _| !old.contains(key));
        old.len()
    }

    /// The traces of a finished job.
    fn erase(&mut self, job: Seq) {
        self.outcomes.remove(&job);
        self.attempts.retain(|(of, _), _| *of != job);
    }
}
