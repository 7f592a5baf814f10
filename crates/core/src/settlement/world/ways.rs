//! Orders whose events come in every order, again and in batches, and where each must end.

use std::collections::{BTreeMap, BTreeSet};

use super::World;
use crate::event::Stored;
use crate::settlement::decide::{Cause, Input};
use crate::settlement::payment::{Attention, Derived, Facts};
use crate::settlement::{References, read};
use crate::source_name::Origin;

/// More ways are not tried of one story.
const WAYS_MAX: usize = 240;

/// What happens to an order.
#[derive(Clone)]
pub enum WorldStep {
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
pub fn every_way(provider: &'static str, steps: &[WorldStep], ending: &Ending) {
    let all = orders(steps.len());
    let mut first: Option<End> = None;
    for (n, order) in all.iter().enumerate().step_by(all.len().div_ceil(WAYS_MAX)) {
        let mut world = World::of(provider);
        let mut batch = Vec::new();
        let again = order[n % order.len()];
        for (place, step) in order.iter().chain([&again]).enumerate() {
            batch.push(steps[*step].clone());
            if n >> (place % 6) & 1 == 0 {
                world.steps(std::mem::take(&mut batch));
            }
        }
        world.steps(batch);
        world.check(ending, order);
        let end = world.end();
        assert_eq!(first.get_or_insert_with(|| end.clone()), &end, "{order:?}");
    }
}

/// Every order of so many things.
pub fn orders(count: usize) -> Vec<Vec<usize>> {
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

/// All that is known in the end, but for our own ids, which follow the order of arrival.
#[derive(Clone, Debug, PartialEq)]
struct End {
    facts: Vec<Facts>,
    books: BTreeMap<(String, String), i64>,
}

impl World {
    /// Several at once; what the app posts comes by itself.
    pub fn steps(&mut self, steps: Vec<WorldStep>) {
        let mut inputs = Vec::new();
        for step in steps {
            match step {
                WorldStep::Event(event) => {
                    let origin = Origin { provider: self.provider, livemode: None };
                    let reading = read(origin, &event, &References::default()).unwrap().unwrap();
                    inputs.push(Input { seq: self.next_seq(), reading, cause: Cause::of(&event) });
                }
                WorldStep::Posted(reference, amount) => {
                    self.settle(&std::mem::take(&mut inputs));
                    let is_new = !self.facts().any(|facts| !facts.ours.is_empty());
                    if is_new {
                        self.posts_amount(reference, amount);
                    }
                }
            }
        }
        self.settle(&inputs);
    }

    /// The sum of an account's lines.
    pub fn booked(&self, account: &str) -> i64 {
        self.postings.iter().filter(|line| line.account == account).map(|line| line.amount).sum()
    }

    fn check(&self, ending: &Ending, order: &[usize]) {
        let payments: Vec<Facts> = self.facts().collect();
        let [facts] = &payments[..] else { panic!("{order:?} ends in {} payments", payments.len()) };
        let derived = Derived::of(facts);
        let found = (derived.status.name(), derived.amount, derived.received, derived.refunded);
        let wanted = (ending.status, ending.amount, ending.received, ending.refunded);
        assert_eq!(found, wanted, "{order:?} {facts:#?}");
        assert_eq!(derived.attention.map(Attention::name), ending.attention, "{order:?}");
        let ids: BTreeSet<&str> = self.told.iter().map(|told| &*told.id).collect();
        assert_eq!(ids.len(), self.told.len(), "{order:?} announces something twice: {ids:?}");
        // Of what needs a person, a case is told, too.
        let of_payment: Vec<_> = ids.iter().filter(|id| !id.contains("case.")).collect();
        let keys: BTreeSet<&str> =
            of_payment.iter().map(|id| &id[id.find("payment.").expect("it tells of a payment")..]).collect();
        assert_eq!(keys.len(), of_payment.len(), "{order:?} announces one thing under two names: {ids:?}");
        for told in ending.told {
            assert!(keys.contains(told), "{order:?} does not announce {told}: {keys:?}");
        }
        let unexpected: Vec<_> =
            keys.iter().filter(|key| !ending.told.contains(key) && !ending.perhaps.contains(key)).collect();
        assert!(unexpected.is_empty(), "{order:?} announces {unexpected:?}");
    }

    fn end(&self) -> End {
        let is_lasting = |name: &String| !name.contains("/id/pay_");
        let mut facts: Vec<Facts> = self.facts().collect();
        for one in &mut facts {
            (one.born, one.clusters) = (None, Vec::new());
            one.emitted.clear();
            one.names.retain(is_lasting);
            // A case is called after the payment, whose id depends on what came first.
            one.members.retain(|id| !id.starts_with(crate::case::TAG));
            one.ours = one.ours.values().map(|ours| (String::new(), ours.clone())).collect();
        }
        let mut books: BTreeMap<(String, String), i64> = BTreeMap::new();
        for line in &self.postings {
            *books.entry((line.account.clone(), line.cause.clone())).or_default() += line.amount;
        }
        books.retain(|_, sum| *sum != 0);
        assert_eq!(books.values().sum::<i64>(), 0);
        End { facts, books }
    }
}
