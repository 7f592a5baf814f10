//! The same laws on bare facts: nothing is stored or written down, so a million plays fit in a minute.

use std::collections::BTreeMap;

use sekisho_core::settlement::payment::{Derived, Facts, What, due, lines};
use sekisho_core::settlement::{Reading, billing, payment};
use sekisho_lab::rng::Rng;

use super::expected;
use super::scenario::{Scenario, Variant};

/// A scenario with its names as bits, so that who belongs to whom is one comparison.
pub struct Fold<'s> {
    scenario: &'s Scenario,
    variant: Variant,
    told: Vec<Reading>,
    payments: Vec<u64>,
    billings: Vec<u64>,
}

/// Something that is known, under all its names.
struct Known<F> {
    names: u64,
    facts: F,
}

impl<'s> Fold<'s> {
    pub fn new(scenario: &'s Scenario, variant: Variant) -> Self {
        let told = scenario.told(variant);
        let mut bits = BTreeMap::new();
        let mut bits_of = |names: &std::collections::BTreeSet<String>| {
            names.iter().fold(0_u64, |mask, name| {
                let next = bits.len();
                mask | 1 << *bits.entry(name.clone()).or_insert(next)
            })
        };
        let payments =
            told.iter().map(|one| one.payment.as_ref().map_or(0, |part| bits_of(&part.names))).collect();
        let billings =
            told.iter().map(|one| one.billing.as_ref().map_or(0, |part| bits_of(&part.names))).collect();
        assert!(bits.len() <= 64, "{} has too many names", scenario.name);
        Self { scenario, variant, told, payments, billings }
    }

    pub fn play(&self, seed: u64) {
        let mut rng = Rng::new(seed);
        let place = || format!("{} {:?}, seed {seed}", self.scenario.name, self.variant);
        let order = super::order(self.told.len(), &mut rng);
        let mut payments: Vec<Known<Facts>> = Vec::new();
        let mut billings: Vec<Known<billing::Facts>> = Vec::new();
        let mut announced: Vec<(String, String)> = Vec::new();
        let mut batch = 0;
        for (n, told) in order.iter().enumerate() {
            if let Some(part) = &self.told[*told].payment {
                take_in(&mut payments, self.payments[*told], |facts| facts.join(&part.facts), Facts::join);
            }
            if let Some(part) = &self.told[*told].billing {
                take_in(
                    &mut billings,
                    self.billings[*told],
                    |facts| facts.join(&part.facts),
                    billing::Facts::join,
                );
            }
            // A batch ends anywhere; what must follow is asked at its end.
            batch += 1;
            if n + 1 < order.len() && batch < 8 && rng.chance(0.5) {
                continue;
            }
            batch = 0;
            for known in &mut payments {
                let derived = Derived::of(&known.facts);
                check_lines(&known.facts, &derived, &place);
                for due in due(&known.facts, &derived, |_| false) {
                    assert!(known.facts.emitted.insert(due.key.clone()), "{}: {} twice", place(), due.key);
                    if let What::Announce { event_type, .. } = due.what {
                        announced.push((format!("/{}", due.key), event_type.to_owned()));
                    }
                }
            }
            for known in &mut billings {
                let derived = billing::Derived::of(&known.facts);
                for due in billing::due(&known.facts, &derived) {
                    assert!(!known.facts.emitted.contains(&due.key), "{}: {} twice", place(), due.key);
                    known.facts.announce(&due);
                }
            }
        }
        let payments: Vec<_> = payments.into_iter().map(|known| known.facts).collect();
        let billings: Vec<_> = billings.into_iter().map(|known| known.facts).collect();
        for facts in &payments {
            let derived = payment::Derived::of(facts);
            assert!(due(facts, &derived, |_| false).is_empty(), "{}: something was not told", place());
            assert!(derived.refunded <= derived.received, "{}: {derived:?}", place());
        }
        expected::check(self.scenario, self.variant, &payments, &billings, &announced, &place());
    }
}

/// Joins what is said to what is known under any of these names; things that turn out to be one become one.
fn take_in<F: Default>(
    all: &mut Vec<Known<F>>,
    names: u64,
    join: impl FnOnce(&mut F),
    merge: fn(&mut F, &F),
) {
    let mut mine = Known { names, facts: F::default() };
    let mut n = 0;
    while n < all.len() {
        if all[n].names & mine.names == 0 {
            n += 1;
            continue;
        }
        let other = all.swap_remove(n);
        mine.names |= other.names;
        let gained = std::mem::replace(&mut mine.facts, other.facts);
        merge(&mut mine.facts, &gained);
        n = 0;
    }
    join(&mut mine.facts);
    all.push(mine);
}

fn check_lines(facts: &Facts, derived: &Derived, place: &dyn Fn() -> String) {
    let (mut sum, mut came, mut went) = (0, 0, 0);
    for (line, amount) in lines(facts, derived) {
        sum += amount;
        match &*line.cause {
            "captured" if line.account.starts_with("provider/") => came += amount,
            "refunded" if line.account.starts_with("provider/") => went -= amount,
            _ => {}
        }
    }
    assert_eq!(sum, 0, "{}", place());
    assert!((0..=came).contains(&went), "{}: {went} was paid back of {came}", place());
}
