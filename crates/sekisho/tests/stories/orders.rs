//! F1–F8: orders keep their promises in every life: places are sold once, money ends confirmed, refunded or before a person, and
//! everything is told, raised and recorded once.
//!
//! `life` makes up what customers, operators, the app, the provider and the clock do, with lost answers, several nodes and timers
//! that come early, late or never. `ledger` says from the requirements alone what must be seen; it shares no code with the product.
//!
//! `SEKISHO_ORDERS=1000000 cargo test --release -p sekisho --test stories orders::f1_every_life` plays a million in memory;
//! `SEKISHO_SEED` says which is the first.

mod bugs;
mod desk;
mod ends;
mod ledger;
mod life;
mod links;
mod races;
mod till;
mod watched;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sekisho_store::memory::MemoryStore;
use sekisho_store::{Access, Store};
use tokio::runtime::{Builder, Runtime};

use crate::support::{Place, runtime, seed_or};
use bugs::OrderBug;

/// How many, when nobody says: what two cores play in a minute each, without optimisation.
const IN_MEMORY: u64 = 1_000;
const ON_SQLITE: u64 = 150;
const ON_POSTGRES: u64 = 60;
/// The first of them, when nobody says: the same in every run, so that a change is what makes a difference.
const FIRST: u64 = 1_000;
/// Failing lives that are shown.
const SHOWN_MAX: usize = 3;

#[test]
fn f1_every_life_of_orders_keeps_the_promises() {
    let (first, count) = (seed_or("orders", FIRST), wanted(IN_MEMORY));
    let (policy, failed, started) = (life::policy(), Mutex::new(Vec::new()), Instant::now());
    each(count, |runtime, n| {
        let seed = first.wrapping_add(n);
        let faults = runtime.block_on(life::play(memory(), &policy, seed, None));
        if let Some(fault) = faults.first() {
            println!("SEKISHO_SEED={seed} SEKISHO_ORDERS=1: {}", short(fault));
            failed.lock().unwrap().push((seed, faults));
        }
    });
    let failed = failed.into_inner().unwrap();
    println!("{count} lives in {:.1} s, {} fail", started.elapsed().as_secs_f64(), failed.len());
    assert!(failed.is_empty(), "{}", report(&failed));
}

#[test]
fn f1_every_life_keeps_the_promises_on_sqlite() {
    on(&Place::sqlite(), ON_SQLITE);
}

#[test]
fn f1_every_life_keeps_the_promises_on_postgres() {
    on(&Place::postgres(), ON_POSTGRES);
}

fn on(place: &Place, otherwise: u64) {
    let (first, count) = (seed_or("orders on databases", FIRST), wanted(otherwise));
    let policy = life::policy();
    runtime().block_on(async {
        let store = place.open(Access::Serve { allow_unsafe_durability: false }).await;
        let started = Instant::now();
        for n in 0..count {
            let seed = first.wrapping_add(n);
            let faults = life::play(Arc::clone(&store), &policy, seed, None).await;
            assert!(faults.is_empty(), "{}: {}", place.name, report(&[(seed, faults)]));
        }
        println!("{count} lives on {} in {:.1} s", place.name, started.elapsed().as_secs_f64());
        let mut sums = std::collections::BTreeMap::<_, i64>::new();
        for sum in store.find_sums(None).await.unwrap() {
            *sums.entry((sum.currency, sum.livemode)).or_default() += sum.amount;
        }
        assert!(sums.values().all(|sum| *sum == 0), "{}: {sums:?}", place.name);
    });
}

/// Lives in which each planted bug has to be found, and how long that may take.
const SEARCHED: u64 = 3_000;
const SEARCHED_FOR: Duration = Duration::from_mins(1);

#[test]
fn r33_every_bug_planted_in_orders_is_found() {
    let first = seed_or("bugs planted in orders", FIRST);
    let policy = life::policy();
    let missed = Mutex::new(Vec::new());
    each(OrderBug::ALL.len() as u64, |runtime, n| {
        let (bug, started) = (OrderBug::ALL[n as usize], Instant::now());
        for n in 0..SEARCHED {
            let seed = first.wrapping_add(n);
            let played = catch_unwind(AssertUnwindSafe(|| {
                runtime.block_on(life::play(memory(), &policy, seed, Some(bug)))
            }));
            let faults = played.unwrap_or_else(|_| vec!["the program panicked".to_owned()]);
            // What goes wrong without the bug can't tell of it.
            let is_its = || runtime.block_on(life::play(memory(), &policy, seed, None)).is_empty();
            if let Some(fault) = faults.first().filter(|_| is_its()) {
                let took = started.elapsed();
                println!("{bug:?} is found in life {n}, after {:.1} s: {}", took.as_secs_f64(), short(fault));
                return;
            }
            if started.elapsed() > SEARCHED_FOR {
                break;
            }
        }
        missed.lock().unwrap().push(bug);
    });
    let missed = missed.into_inner().unwrap();
    assert!(missed.is_empty(), "not found in {SEARCHED} lives or {SEARCHED_FOR:?}: {missed:?}");
}

fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::default())
}

/// How many, if somebody says so.
fn wanted(otherwise: u64) -> u64 {
    std::env::var("SEKISHO_ORDERS").ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn short(fault: &str) -> String {
    fault.chars().take(200).collect()
}

fn report(failed: &[(u64, Vec<String>)]) -> String {
    let one = |(seed, faults): &(u64, Vec<String>)| format!("SEKISHO_SEED={seed}\n{}\n", faults.join("\n"));
    let shown: Vec<String> = failed.iter().take(SHOWN_MAX).map(one).collect();
    format!("{} lives break a promise\n{}", failed.len(), shown.join("\n"))
}

/// Does it so often, on every core, with a clock for pauses that waits for nobody.
fn each(count: u64, act: impl Fn(&Runtime, u64) + Sync) {
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
                loop {
                    match next.fetch_add(1, Ordering::Relaxed) {
                        n if n < count => act(&runtime, n),
                        _ => return,
                    }
                }
            });
        }
    });
}
