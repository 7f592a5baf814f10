//! D1, D4, D5, D7: whatever arrives, in whatever order, the books end the same and never go backwards.
//!
//! Every scenario of the fixtures is played in random orders, with repetitions, in batches of any size, with crashes
//! before a commit and replays after it, with and without a payment that the app announced itself. After each step the
//! laws of money are checked; at the end, what is known must be what the fixtures expect, and what must follow from it
//! must have been told, once.
//!
//! `SEKISHO_SCHEDULES=1000000 cargo test --release -p sekisho --test stories schedules::d1_any` plays a million on the store in
//! memory.

mod expected;
mod scenario;
mod stage;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use futures_util::FutureExt;
use sekisho_lab::rng::Rng;
use sekisho_store::memory::MemoryStore;
use sekisho_store::{Access, Store};

use crate::support::{Place, each_store, runtime, seed};
use scenario::{Scenario, Variant};
use stage::Stage;

/// How many, when nobody says.
const ON_MEMORY: u64 = 2_000;
const ON_DATABASES: u64 = 40;

#[test]
fn d1_any_order_repetition_split_and_crash_ends_in_the_same_books() {
    let (seed, scenarios) = (seed("schedules"), Scenario::all());
    each(wanted(ON_MEMORY), |n| {
        let store = MemoryStore::default();
        let (scenario, variant) = choose(&scenarios, n);
        let play = play(&store, scenario, variant, seed.wrapping_add(n));
        play.now_or_never().expect("memory never waits");
    });
}

/// How many plays, if somebody says so.
fn wanted(otherwise: u64) -> u64 {
    std::env::var("SEKISHO_SCHEDULES").ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Plays so many, on every core.
fn each(count: u64, play: impl Fn(u64) + Sync) {
    let (next, started) = (AtomicU64::new(0), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    match next.fetch_add(1, Ordering::Relaxed) {
                        n if n < count => play(n),
                        _ => return,
                    }
                }
            });
        }
    });
    println!("{count} schedules in {:.1} s", started.elapsed().as_secs_f64());
}

#[test]
fn d1_the_databases_end_in_the_same_books_too() {
    let seed = seed("schedules on databases");
    each_store(|place| {
        runtime().block_on(async {
            let store = place.open(Access::Serve { allow_unsafe_durability: false }).await;
            for n in 0..ON_DATABASES {
                let scenarios = Scenario::all_of_run(n);
                let (scenario, variant) = choose(&scenarios, n);
                play(&*store, scenario, variant, seed.wrapping_add(n)).await;
            }
            books_are_even(place, &*store).await;
        });
    });
}

fn choose(scenarios: &[Scenario], n: u64) -> (&Scenario, Variant) {
    let variants = Variant::ALL.len() as u64;
    let scenario = &scenarios[(n / variants) as usize % scenarios.len()];
    (scenario, Variant::ALL[(n % variants) as usize])
}

async fn play(store: &dyn Store, scenario: &Scenario, variant: Variant, seed: u64) {
    let place = format!("{} {variant:?}, seed {seed}", scenario.name);
    let mut stage = Stage::new(store, place);
    let mut rng = Rng::new(seed);
    let told = scenario.told(variant);
    let mut order = order(told.len(), &mut rng);
    while !order.is_empty() {
        let size = rng.between(1, order.len().min(8) as u64) as usize;
        let batch: Vec<usize> = order.drain(..size).collect();
        let crashes = rng.chance(0.1);
        // The app's word comes through another door, one at a time.
        let (from_app, from_provider): (Vec<usize>, Vec<usize>) =
            batch.iter().partition(|n| **n >= scenario.events.len());
        if !from_app.is_empty() {
            stage.settle(from_app.into_iter().take(1).map(|n| &told[n]), crashes).await;
        }
        stage.settle(from_provider.into_iter().map(|n| &told[n]), crashes).await;
        if crashes {
            order.extend(batch);
        }
    }
    stage.check_the_end(scenario, variant).await;
}

/// Each at least once, some again and again, in any order.
fn order(count: usize, rng: &mut Rng) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for _ in 0..rng.below(count as u64 + 1) {
        order.push(rng.below(count as u64) as usize);
    }
    for n in (1..order.len()).rev() {
        order.swap(n, rng.below(n as u64 + 1) as usize);
    }
    order
}

async fn books_are_even(place: &Place, store: &dyn Store) {
    let mut sums = std::collections::BTreeMap::<_, i64>::new();
    for sum in store.find_sums(None).await.unwrap() {
        *sums.entry((sum.currency, sum.livemode)).or_default() += sum.amount;
    }
    assert!(sums.values().all(|sum| *sum == 0), "{}: {sums:?}", place.name);
}
