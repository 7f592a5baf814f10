//! Makes a failing history as small as it gets: leaves out whatever it fails without, and writes down the rest.

use super::play::{self, Step};
use super::truth;
use super::world::{Reference, World};

/// Ways of playing that are tried with each smaller history.
const PLAYS: u64 = 8;

/// The smallest history that still fails, and the seed of a play in which it does. Ends, because every round leaves something
/// out.
pub fn smallest(world: World, seed: u64, fails: impl Fn(&World, u64) -> bool) -> (World, u64) {
    let mut found = (world, seed);
    loop {
        let tries = smaller(&found.0).into_iter().flat_map(|world| {
            let seeds = (0..PLAYS).map(|n| found.1.wrapping_add(n));
            seeds.map(move |seed| (world.clone(), seed))
        });
        match tries.into_iter().find(|(world, seed)| fails(world, *seed)) {
            Some(smaller) => found = smaller,
            None => return found,
        }
    }
}

/// Everything that is one thing less.
fn smaller(world: &World) -> Vec<World> {
    let mut all = Vec::new();
    let mut add = |change: &dyn Fn(&mut World)| {
        let mut smaller = world.clone();
        change(&mut smaller);
        all.push(smaller);
    };
    for n in 0..world.subscriptions.len() {
        add(&|world| {
            world.subscriptions.remove(n);
        });
    }
    for n in 0..world.purchases.len() {
        add(&|world| {
            world.purchases.remove(n);
        });
    }
    for n in 0..world.orders.len() {
        add(&|world| without_order(world, n));
    }
    for (n, purchase) in world.purchases.iter().enumerate() {
        for refund in 0..purchase.refunds.len() {
            add(&|world| {
                world.purchases[n].refunds.remove(refund);
            });
        }
        if purchase.dispute.is_some() {
            add(&|world| world.purchases[n].dispute = None);
        }
        if purchase.buyer.is_some() {
            add(&|world| world.purchases[n].buyer = None);
        }
        if purchase.declines > 1 {
            add(&|world| world.purchases[n].declines = 1);
        }
    }
    all
}

fn without_order(world: &mut World, n: usize) {
    world.orders.remove(n);
    world.purchases.retain(|one| one.says.reference != Some(Reference::OurIdOf(n)));
    for purchase in &mut world.purchases {
        if let Some(Reference::OurIdOf(order)) = &mut purchase.says.reference
            && *order > n
        {
            *order -= 1;
        }
    }
}

/// A history for a person to read: what happened, what must come of it, and in which steps it was played.
pub fn told(world: &World, seed: u64) -> String {
    let mut text = String::new();
    for order in &world.orders {
        text += &format!("  {order:?}\n");
    }
    for purchase in &world.purchases {
        text += &format!("  {purchase:?}\n");
    }
    for buyer in
        world.buyers.iter().filter(|buyer| world.subscriptions.iter().any(|one| one.buyer == buyer.id))
    {
        text += &format!("  {buyer:?}\n");
    }
    for subscription in &world.subscriptions {
        text += &format!("  {subscription:?}\n");
    }
    for fault in super::faults(world, seed, None) {
        text += &format!("  WRONG {fault}\n");
    }
    text += &format!("  truth: {:?}\n", truth::of(world));
    for play in 0..super::PLAYS {
        text += &format!("  play {play}:\n");
        for step in play::steps(world, seed.wrapping_mul(31).wrapping_add(play)) {
            text += &match step {
                Step::Post(n) => format!("    post order#{n}\n"),
                Step::Tell(told) => format!("    tell {}\n", told.line()),
                Step::Settle { events: usize::MAX, .. } => "    settle all\n".to_owned(),
                Step::Settle { events, nodes } => format!("    settle {events} at {nodes}\n"),
            };
        }
    }
    text
}
