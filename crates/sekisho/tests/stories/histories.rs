//! R28, D1–D3, D7: money is right for every history, and nothing of two tenants is ever joined.
//!
//! `scenes` makes up what really happened in a few shops; the providers' files tell it as events, in the shapes of their
//! documentation; `truth` says from the specification alone what the books must show. Events and orders go through the product by
//! its public doors, in several orders and batchings, and the ends are compared. What fails is shrunk and printed with its seed.
//!
//! `SEKISHO_SEED=$RANDOM SEKISHO_HISTORIES=1000000 cargo test --release -p sekisho --test stories histories::d1_money` plays a million.

mod billing;
mod bugs;
mod compare;
mod door;
mod gateway;
mod komoju;
mod payjp;
mod paypal;
mod perfect;
mod play;
mod scenes;
mod sender;
mod shrink;
mod square;
mod stripe;
mod subscription;
mod told;
mod truth;
mod world;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use sekisho_core::Time;

use crate::support::{Place, seed_or};
use bugs::Bug;
use world::World;

/// How many, when nobody says: what two cores play in a few minutes, without optimisation.
const HISTORIES: u64 = 20_000;
/// The first of them, when nobody says: the same in every run, so that a change is what makes a difference.
const FIRST: u64 = 1_000;
/// In how many orders each is played.
const PLAYS: u64 = 2;
/// The clock at the end of every history in memory.
const NOW: i64 = 1_790_000_000;
/// Failing histories that are shrunk and shown.
const SHOWN_MAX: usize = 5;

#[test]
fn d1_money_is_right_for_every_history() {
    let seed = seed_or("histories", FIRST);
    let wanted = std::env::var("SEKISHO_HISTORIES").ok().and_then(|text| text.parse().ok());
    let count = wanted.unwrap_or(HISTORIES);
    let (failed, started) = (Mutex::new(Vec::new()), Instant::now());
    each(count, |n| {
        let seed = seed.wrapping_add(n);
        let world = scenes::history(seed, "", NOW);
        let faults = faults(&world, seed, None);
        if let Some(first) = faults.first() {
            // At once: who cuts a long run short still has what it found.
            println!("SEKISHO_SEED={seed} ends wrong: {first}");
            failed.lock().unwrap().push((seed, faults));
        }
    });
    let failed = failed.into_inner().unwrap();
    println!("{count} histories in {:.1} s, {} fail", started.elapsed().as_secs_f64(), failed.len());
    assert!(failed.is_empty(), "{}", report(&failed, count));
}

/// Histories that a long run found once, when the product or the truth was wrong about them.
const FOUND: [u64; 1] = [28_071];

#[test]
fn d1_histories_that_once_ended_wrong_end_right() {
    for seed in FOUND {
        let world = scenes::history(seed, "", NOW);
        assert_eq!(faults(&world, seed, None), [""; 0], "SEKISHO_SEED={seed}");
    }
}

/// Histories that are told to the real binary, on each store.
const OVER_HTTP: u64 = 30;

#[test]
fn d1_one_node_on_sqlite_ends_every_history_right() {
    let faults = gateway::faults(&Place::sqlite(), 1, OVER_HTTP, seed_or("histories on SQLite", FIRST));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn d1_two_nodes_on_postgres_end_every_history_right() {
    let faults = gateway::faults(&Place::postgres(), 2, OVER_HTTP, seed_or("histories on PostgreSQL", FIRST));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Histories in which each planted bug has to be found.
const SEARCHED: u64 = 1_500;

#[test]
fn r33_every_planted_bug_is_found() {
    let seed = seed_or("planted bugs", FIRST);
    let missed = Mutex::new(Bug::ALL.to_vec());
    each(SEARCHED, |n| {
        let (seed, wanted) = (seed.wrapping_add(n), missed.lock().unwrap().clone());
        let world = scenes::history(seed, "", NOW);
        // What ends wrong without the bug can't tell of it.
        if wanted.is_empty() || !faults(&world, seed, None).is_empty() {
            return;
        }
        for bug in wanted {
            if let Some(fault) = faults(&world, seed, Some(bug)).first() {
                println!("{bug:?} is found in history {n}: {}", fault.lines().next().unwrap_or_default());
                missed.lock().unwrap().retain(|other| *other != bug);
            }
        }
    });
    let missed = missed.into_inner().unwrap();
    assert!(missed.is_empty(), "not found in {SEARCHED} histories: {missed:?}");
}

/// Ends that are made up and bent, to see whether the comparison sees it.
const COMPARED: u64 = 400;

#[test]
fn r33_the_truth_has_no_fault_and_whatever_differs_from_it_has() {
    let seed = seed_or("comparisons", FIRST);
    let mut unseen: Vec<_> = perfect::BENDS.iter().map(|(name, _)| *name).collect();
    for n in 0..COMPARED {
        let world = scenes::history(seed.wrapping_add(n), "", NOW);
        let end = truth::of(&world);
        let perfect = perfect::end(&world, &end);
        assert_eq!(compare::differences(&world, &end, &perfect), [""; 0], "history {n}");
        for (name, bend) in perfect::BENDS {
            let mut bent = perfect.clone();
            if bend(&mut bent, &end) {
                let found = compare::differences(&world, &end, &bent);
                assert!(!found.is_empty(), "history {n}: {name}, and nobody sees it: {bent:?}");
                unseen.retain(|other| other != name);
            }
        }
    }
    assert!(unseen.is_empty(), "never tried in {COMPARED} histories: {unseen:?}");
}

/// What is wrong at the end of a history, in any of its plays.
fn faults(world: &World, seed: u64, bug: Option<Bug>) -> Vec<String> {
    let end = truth::of(world);
    let mut ends: Vec<Vec<String>> = Vec::new();
    for play in 0..PLAYS {
        let steps = play::steps(world, seed.wrapping_mul(31).wrapping_add(play));
        let played = catch_unwind(AssertUnwindSafe(|| door::play(world, &steps, bug)));
        let Ok(seen) = played else { return vec!["the program panicked".to_owned()] };
        let found = compare::differences(world, &end, &seen);
        if !found.is_empty() {
            return found;
        }
        ends.push(compare::standing(world, &seen));
    }
    match ends.windows(2).find(|pair| pair[0] != pair[1]) {
        Some(pair) => {
            vec![format!("two plays end differently:\n{}\n{}", pair[0].join("\n"), pair[1].join("\n"))]
        }
        None => Vec::new(),
    }
}

/// Those that fail, by what is wrong with them, and the first few as small as they get.
fn report(failed: &[(u64, Vec<String>)], count: u64) -> String {
    let mut text = format!("{} of {count} histories end wrong\n", failed.len());
    let mut kinds = BTreeMap::<String, (usize, u64)>::new();
    for (seed, faults) in failed {
        for fault in faults {
            kinds.entry(kind_of(fault)).or_insert((0, *seed)).0 += 1;
        }
    }
    let mut shown: Vec<_> = kinds.iter().map(|(kind, (count, seed))| (*count, kind, *seed)).collect();
    shown.sort_by(|one, other| other.cmp(one));
    for (count, kind, seed) in &shown {
        text += &format!("{count:6} {kind} (SEKISHO_SEED={seed})\n");
    }
    // Making them small may take its time.
    println!("{text}");
    for (_, kind, seed) in shown.iter().take(SHOWN_MAX) {
        let world = scenes::history(*seed, "", NOW);
        let fails =
            |world: &World, seed: u64| faults(world, seed, None).iter().any(|fault| kind_of(fault) == **kind);
        let (smallest, played) = shrink::smallest(world, *seed, fails);
        text += &format!(
            "\n{kind}: SEKISHO_SEED={seed} SEKISHO_HISTORIES=1\n{}",
            shrink::told(&smallest, played)
        );
    }
    text
}

/// A fault without the names in it.
fn kind_of(fault: &str) -> String {
    let mut kind = String::new();
    let mut depth = 0;
    for letter in fault.lines().next().unwrap_or_default().chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ if depth > 0 => {}
            '0'..='9' if kind.ends_with('#') => {}
            '0'..='9' => kind.push('#'),
            _ => kind.push(letter),
        }
    }
    kind.replace("\"office-a\"", "T").replace("\"office-b\"", "T").replace("\"office-c\"", "T")
}

/// Does it so often, on every core.
fn each(count: u64, act: impl Fn(u64) + Sync) {
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    match next.fetch_add(1, Ordering::Relaxed) {
                        n if n < count => act(n),
                        _ => return,
                    }
                }
            });
        }
    });
}

/// A time as PayPal, KOMOJU and Square write it.
fn at_text(seconds: i64) -> String {
    Time::from_seconds(seconds).to_string()
}

/// The source for a provider whose events don't say their mode.
fn source_of(provider: &'static str, live: bool) -> &'static str {
    match (provider, live) {
        (name, true) => name,
        ("paypal", false) => "paypal-test",
        ("komoju", false) => "komoju-test",
        ("payjp", false) => "payjp-test",
        _ => "square-test",
    }
}
