//! How a history reaches the gateway: in any order, in batches of any size, with repetitions; some of it late, because the
//! provider's first try was lost. The app posts its orders before, among or after the events.

use sekisho_lab::rng::Rng;

use super::told::{self, Told};
use super::world::{When, World};

#[derive(Clone, Debug)]
pub enum Step {
    /// The app posts an order of the history.
    Post(usize),
    /// A provider sends, perhaps for the second time.
    Tell(Told),
    /// So many of the events that wait are settled together, by one node or by two at once.
    Settle { events: usize, nodes: usize },
}

/// One of the ways in which a history can happen.
pub fn steps(world: &World, seed: u64) -> Vec<Step> {
    let mut rng = Rng::new(seed);
    let mut told = told::all(world);
    match rng.below(5) {
        0 => {}
        1 => told.reverse(),
        _ => shuffle(&mut told, &mut rng),
    }
    let mut steps: Vec<_> = told.iter().cloned().map(Step::Tell).collect();
    // Lost on the way, and sent again later; or heard, and sent again all the same.
    for _ in 0..rng.below(3).min(steps.len() as u64) {
        let lost = rng.below(steps.len() as u64) as usize;
        let step = steps.remove(lost);
        steps.push(step);
    }
    for _ in 0..rng.below(told.len() as u64 / 3 + 1).min(told.len() as u64) {
        let again = told[rng.below(told.len() as u64) as usize].clone();
        steps.insert(rng.below(steps.len() as u64 + 1) as usize, Step::Tell(again));
    }
    for (n, order) in world.orders.iter().enumerate() {
        let place = match order.when {
            When::Before => 0,
            When::Among => rng.below(steps.len() as u64 + 1) as usize,
            When::After => steps.len(),
        };
        steps.insert(place, Step::Post(n));
    }
    let eagerness = *rng.pick(&[1.0, 0.5, 0.2, 0.05]).expect("four of them");
    let mut played = Vec::new();
    for step in steps {
        // An order that is posted after the events finds them settled.
        let is_late = matches!(step, Step::Post(n) if world.orders[n].when == When::After);
        if is_late {
            played.push(Step::Settle { events: usize::MAX, nodes: 1 });
        }
        played.push(step);
        if rng.chance(eagerness) {
            played.push(Step::Settle {
                events: rng.between(1, 12) as usize,
                nodes: if rng.chance(0.15) { 2 } else { 1 },
            });
        }
    }
    played.push(Step::Settle { events: usize::MAX, nodes: 1 });
    played
}

fn shuffle<T>(all: &mut [T], rng: &mut Rng) {
    for n in (1..all.len()).rev() {
        all.swap(n, rng.below(n as u64 + 1) as usize);
    }
}
