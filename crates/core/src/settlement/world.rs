//! A small world for tests: a store that is a map, and orders whose events come in every order, again and in batches.

use std::collections::{BTreeMap, BTreeSet};

use super::decide::{Cause, Input, decide, names};
use super::order::Order;
use super::payment::{Derived, Facts, Ours};
use super::reading::References;
use super::{Announcement, Origin, read};
use crate::event::Stored;
use crate::id::Seq;
use crate::money::Currency;
use crate::state::{Kind, Loaded, Posting, State, Write};
use crate::time::Time;

const NOW: Time = Time::from_ms(1_780_000_000_000);
/// More ways are not tried of one story.
const WAYS_MAX: usize = 240;

/// What happens to an order.
#[derive(Clone)]
pub enum Step {
    Event(Stored),
    /// The app posts it, with an amount in yen.
    Posted(&'static str, i64),
}

/// Where an order must end, whichever way its events come.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ending {
    pub status: &'static str,
    pub amount: i64,
    pub received: i64,
    pub refunded: i64,
    pub attention: Option<&'static str>,
    /// What is announced in every order of events.
    pub told: &'static [&'static str],
    /// What is announced only if it is news when it comes.
    pub perhaps: &'static [&'static str],
}

/// Plays the steps in every order, or in many of them, each in batches of its own and with one step again.
pub fn every_way(provider: &'static str, steps: &[Step], ending: &Ending) {
    let all = orders(steps.len());
    let mut first: Option<End> = None;
    for (n, order) in all.iter().enumerate().step_by(all.len().div_ceil(WAYS_MAX)) {
        let mut world = World::new(Origin { provider, livemode: None });
        let mut batch = Vec::new();
        let again = order[n % order.len()];
        for (place, step) in order.iter().chain([&again]).enumerate() {
            batch.push(steps[*step].clone());
            if n >> (place % 6) & 1 == 0 {
                world.settle(std::mem::take(&mut batch));
            }
        }
        world.settle(batch);
        world.check(ending, order);
        let end = world.end();
        assert_eq!(first.get_or_insert_with(|| end.clone()), &end, "{order:?}");
    }
}

/// Every order of so many things.
fn orders(count: usize) -> Vec<Vec<usize>> {
    let Some(last) = count.checked_sub(1) else { return vec![Vec::new()] };
    let shorter = orders(last).into_iter();
    let with_last = shorter.flat_map(|order| {
        (0..=order.len()).rev().map(move |place| {
            let mut longer = order.clone();
            longer.insert(place, last);
            longer
        })
    });
    with_last.collect()
}

pub struct World {
    origin: Origin,
    loaded: Loaded,
    seq: i64,
    postings: Vec<Posting>,
    pub told: Vec<Announcement>,
    posted: BTreeSet<&'static str>,
}

/// All that is known in the end, but for our own ids, which follow the order of arrival.
#[derive(Clone, Debug, PartialEq)]
struct End {
    facts: Vec<Facts>,
    names: BTreeSet<String>,
    books: BTreeMap<(String, String), i64>,
}

impl World {
    pub const fn new(origin: Origin) -> Self {
        Self {
            origin,
            loaded: Loaded { names: BTreeMap::new(), states: BTreeMap::new() },
            seq: 0,
            postings: Vec::new(),
            told: Vec::new(),
            posted: BTreeSet::new(),
        }
    }

    /// Several at once; what the app posts comes by itself.
    pub fn settle(&mut self, steps: Vec<Step>) {
        let mut inputs = Vec::new();
        for step in steps {
            self.seq += 1;
            let seq = Seq::from_i64(self.seq);
            match step {
                Step::Event(event) => {
                    let reading = read(self.origin, &event, &References::default()).unwrap().unwrap();
                    inputs.push(Input { seq, reading, cause: Cause::of(&event) });
                }
                Step::Posted(reference, amount) => {
                    self.decide(&std::mem::take(&mut inputs));
                    if self.posted.insert(reference) {
                        let posted = self.post(seq, reference, amount);
                        self.decide(&[posted]);
                    }
                }
            }
        }
        self.decide(&inputs);
    }

    fn post(&self, seq: Seq, reference: &str, amount: i64) -> Input {
        let ours = Ours {
            amount,
            currency: Currency::parse("jpy"),
            reference: Some(reference.to_owned()),
            ..Ours::default()
        };
        Order { ours, livemode: None }.input(seq, &self.loaded, None, Cause::default()).unwrap()
    }

    /// As a store would: only what is named is loaded, and every guard holds.
    fn decide(&mut self, inputs: &[Input]) {
        let wanted = names(inputs);
        let mut seen = Loaded { states: self.loaded.states.clone(), ..Loaded::default() };
        let known = self.loaded.names.iter().filter(|(name, _)| wanted.contains(*name));
        seen.names.extend(known.map(|(name, key)| (name.clone(), key.clone())));
        for change in decide(inputs, &seen, &|_| false, NOW) {
            assert_eq!(change.refused, None);
            for naming in change.names {
                let was = self.loaded.names.insert(naming.name.clone(), naming.key.clone());
                assert_eq!(was, naming.was, "{} would be stale", naming.name);
            }
            for Write { key, version, facts, index } in change.writes {
                assert_eq!(self.loaded.states.get(&key).map_or(0, |state| state.version), version);
                let state = State {
                    key: key.clone(),
                    version: version + 1,
                    facts,
                    index,
                    created_at: NOW,
                    changed_at: NOW,
                };
                self.loaded.states.insert(key, state);
            }
            self.postings.extend(change.postings);
            self.told.extend(change.announcements);
        }
    }

    pub fn payments(&self) -> Vec<Facts> {
        let states = self.loaded.states.values().filter(|state| state.key.kind == Kind::Payment);
        let facts = states.map(|state| serde_json::from_str::<Facts>(&state.facts).unwrap());
        facts.filter(|facts| facts.merged_into.is_none()).collect()
    }

    /// The sum of an account's lines.
    pub fn booked(&self, account: &str) -> i64 {
        self.postings.iter().filter(|line| line.account == account).map(|line| line.amount).sum()
    }

    fn check(&self, ending: &Ending, order: &[usize]) {
        let payments = self.payments();
        let [facts] = &payments[..] else { panic!("{order:?} ends in {} payments", payments.len()) };
        let derived = Derived::of(facts);
        let found = (derived.status.name(), derived.amount, derived.received, derived.refunded);
        let wanted = (ending.status, ending.amount, ending.received, ending.refunded);
        assert_eq!(found, wanted, "{order:?} {facts:#?}");
        assert_eq!(derived.attention.map(|reason| reason.name()), ending.attention, "{order:?}");
        let ids: BTreeSet<&str> = self.told.iter().map(|told| &*told.id).collect();
        assert_eq!(ids.len(), self.told.len(), "{order:?} announces something twice: {ids:?}");
        let keys: BTreeSet<&str> =
            ids.iter().map(|id| &id[id.find("payment.").expect("it tells of a payment")..]).collect();
        assert_eq!(keys.len(), self.told.len(), "{order:?} announces one thing under two names: {ids:?}");
        for told in ending.told {
            assert!(keys.contains(told), "{order:?} does not announce {told}: {keys:?}");
        }
        let unexpected: Vec<_> =
            keys.iter().filter(|key| !ending.told.contains(key) && !ending.perhaps.contains(key)).collect();
        assert!(unexpected.is_empty(), "{order:?} announces {unexpected:?}");
    }

    fn end(&self) -> End {
        let is_lasting = |name: &String| !name.contains("/order/pay_");
        let mut facts = self.payments();
        for one in &mut facts {
            one.emitted.clear();
            one.names.retain(is_lasting);
            one.ours = one.ours.values().map(|ours| (String::new(), ours.clone())).collect();
        }
        let names = self.loaded.names.keys().filter(|name| is_lasting(name)).cloned().collect();
        let mut books: BTreeMap<(String, String), i64> = BTreeMap::new();
        for line in &self.postings {
            *books.entry((line.account.clone(), line.cause.clone())).or_default() += line.amount;
        }
        books.retain(|_, sum| *sum != 0);
        assert_eq!(books.values().sum::<i64>(), 0);
        End { facts, names, books }
    }
}
