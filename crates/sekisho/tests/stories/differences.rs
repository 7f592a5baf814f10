//! R13: memory, SQLite and PostgreSQL give the same answers to the same verbs, whatever the verbs.

mod author;
mod player;

use std::sync::Arc;

use sekisho_core::audit::Entry;
use sekisho_core::change::{Act, Arrival, Rejection};
use sekisho_core::event::{About, DedupeKey};
use sekisho_core::job::{Attempt, End, Lane, NewJob, Settle};
use sekisho_core::state::{Key, Naming, Posting, Write};
use sekisho_core::time::HOUR_MS;
use sekisho_core::{Seq, Time};
use sekisho_store::memory::MemoryStore;
use sekisho_store::{
    Access, AuditFilter, DeadFilter, DeliveryFilter, EventFilter, LineFilter, RejectionFilter, StateFilter,
};

use crate::support::{Place, runtime, seed};
use author::Author;
use player::Player;

const SERVE: Access = Access::Serve { allow_unsafe_durability: false };
const NOW: Time = Time::from_ms(1_780_000_000_000);
/// When everything is due and everything is old.
const LATER: Time = NOW.plus_ms(10 * HOUR_MS);
/// The only route with fifos: what is parked there, a store may or may not list among its lanes.
const ORDERED: &str = "ordered";
const ROUTES: [&str; 3] = ["a", "b", ORDERED];

/// One call, in words that mean the same to every store: nodes and leases by their place in the story.
#[derive(Clone, Debug)]
enum Verb {
    Join,
    Beat { node: usize, n: i64 },
    End { node: usize, n: i64 },
    Leave(usize),
    Admit { rows: Vec<Arrival>, keep: Option<usize> },
    Known(Vec<DedupeKey>),
    Claim { node: usize, wants: Vec<(Lane, usize)>, now: Time },
    Commit(Vec<Set>),
    Start(Vec<Which>),
    Release(Vec<Which>),
    Owned(usize),
    Adopt(Vec<Which>),
    AdoptOwned(usize),
    Sweep { limit: usize, suspect_after: i32 },
    Lanes,
    LoadEvents(Vec<Seq>),
    Revive(Vec<Seq>, Act),
    Discard(Vec<Seq>, Act),
    Cancel(Vec<Seq>, Act),
    Replay(Vec<Seq>, Settle, Act),
    Load(Vec<String>, Vec<Key>),
    FindBranches(String),
    FindStates(StateFilter),
    FindSums(Option<String>),
    FindLines(LineFilter),
    FindAudit(AuditFilter),
    FindFault,
    Reject(Vec<Rejection>),
    Upkeep,
    CountHour(Time),
    Forget { before: Time, after: Seq, limit: usize },
    FindEvents(EventFilter),
    FindEvent(Seq),
    FindSeq(String, String),
    FindDead(DeadFilter),
    FindDeadGroups(DeadFilter),
    FindWork,
    FindNodes,
    FindMessage(Seq),
    FindMessages(Seq),
    FindDeliveries(DeliveryFilter),
    FindDeliveryCounts(Vec<Seq>),
    FindAttempts(Seq),
    FindCounts(Time, Time),
    FindMoney(Time, Time),
    FindRejections(RejectionFilter),
}

/// A lease that was once given, the newest first, shown as it was or changed.
#[derive(Clone, Copy, Debug)]
struct Which {
    lease: usize,
    attempt: i32,
    other_node: bool,
}

#[derive(Clone, Debug)]
struct Set {
    at: Time,
    ends: Vec<Ending>,
    jobs: Vec<Draft>,
    writes: Vec<Write>,
    names: Vec<Naming>,
    postings: Vec<Posting>,
    audit: Vec<Entry>,
    events: Vec<Arrival>,
    keep: Option<usize>,
}

impl Set {
    fn nothing(at: Time) -> Self {
        Self {
            at,
            ends: Vec::new(),
            jobs: Vec::new(),
            writes: Vec::new(),
            names: Vec::new(),
            postings: Vec::new(),
            audit: Vec::new(),
            events: Vec::new(),
            keep: None,
        }
    }
}

#[derive(Clone, Debug)]
struct Ending {
    which: Which,
    end: End,
    attempt: Option<Attempt>,
    about: About,
}

/// A job to be queued, as far as it can be known before the story is played.
#[derive(Clone, Debug)]
struct Draft {
    job: NewJob,
    /// A delivery of what the ending job is about: how often it was repeated by force.
    delivery: Option<usize>,
    owner: Option<usize>,
}

fn lanes() -> Vec<Lane> {
    let mut lanes = vec![Lane::settle(), Lane::timer(), Lane::suspect()];
    lanes.extend(ROUTES.map(Lane::to_route));
    lanes
}

fn compare(place: fn() -> Place, stories: u64) {
    let first = seed("differences");
    runtime().block_on(async {
        for n in 0..stories {
            let seed = first.wrapping_add(n);
            let story = Author::new(seed).story();
            let expected = Player::play(Arc::new(MemoryStore::default()), &story).await;
            let place = place();
            let found = Player::play(place.open(SERVE).await, &story).await;
            for (step, verb) in story.iter().enumerate() {
                assert_eq!(
                    expected[step], found[step],
                    "SEKISHO_SEED={seed}: memory (left) and {} (right) differ at step {step}: {verb:?}",
                    place.name
                );
            }
        }
    });
}

#[test]
fn r13_memory_and_sqlite_give_the_same_answers() {
    compare(Place::sqlite, 300);
}

#[test]
fn r13_memory_and_postgresql_give_the_same_answers() {
    compare(Place::postgres, 40);
}

/// A comparison is worth what its stories do: they must reach every kind of answer.
#[test]
fn r13_the_stories_reach_every_kind_of_answer() {
    let mut all = String::new();
    runtime().block_on(async {
        for seed in 0..800 {
            let story = Author::new(seed).story();
            all += &Player::play(Arc::new(MemoryStore::default()), &story).await.join("\n");
        }
    });
    for word in [
        "Admitted",
        "Duplicate",
        "IdReused",
        "OtherBody",
        "id_reused: true",
        "Applied { repeated: [] }",
        "Applied { repeated: [Seq",
        "Lost",
        "Stale",
        "ended",
        "attempt: 2",
        "attempt: 3",
        "base: 1",
        "base: 2",
        "crashes: 1",
        "crashes: 2",
        r#"lane: Lane("suspect")"#,
        r#"lane: Lane("timer")"#,
        r#"fifo: Some("0")"#,
        "Failed",
        "Skipped",
        "Success",
        "Received",
        "Queued",
        "Unfinished",
        "Unknown",
        "Waiting",
        "Running",
        "Done(Success",
        "Done(Skipped",
        "Done(Discarded",
        "Dead(DeadReason",
        "Transient",
        "dead_letter.retried",
        "dead_letter.discarded",
        "delivery.cancelled",
        "DeliveryRecord {",
        "last: Some(LastCall",
        "failed: 1, cancelled: 0",
        "failed: 0, cancelled: 1",
        "event.replayed",
        "Forgotten { events: 0, next: Some",
        "Forgotten { events: 1, next: Some",
        "Forgotten { events: 2, next: None",
        "Attempt {",
        "Count {",
        "events: 2 }",
        "State {",
        "Loaded {",
        "Sum {",
        "BookedLine {",
        "payment.noted",
        "payment: Some",
        "version: 3",
        "Rejection {",
        "DeadGroup {",
        "at_risk: [Risk {",
        "Stake {",
        "Work {",
        "retrying: 1",
        "NodeRecord {",
        "next: Some(Seq",
        "next: Some(1",
        "true",
        "false",
        "None",
        "Some",
    ] {
        assert!(all.contains(word), "no story ends in {word}");
    }
}
