//! R13: memory, SQLite and PostgreSQL give the same answers to the same verbs, whatever the verbs.

use std::sync::Arc;

use sekisho_core::change::{
    Admission, Arrival, ChangeSet, Death, End, Job, Lane, Lease, Next, Outcome, Rejection,
};
use sekisho_core::event::DedupeKey;
use sekisho_core::{Epoch, Seq, Time};
use sekisho_lab::rng::Rng;
use sekisho_store::conformance::Arrivals;
use sekisho_store::memory::MemoryStore;
use sekisho_store::{Access, EventFilter, Joined, Order, Pulse, Status, Store};

use crate::support::{Place, runtime, seed};

const SERVE: Access = Access::Serve { allow_unsafe_durability: false };
const NOW: Time = Time::from_ms(1_780_000_000_000);
const IDS: u64 = 12;
const VERBS: usize = 40;

/// One call, in words that mean the same to every store: nodes and leases by their place in the story.
#[derive(Clone, Debug)]
enum Verb {
    Join,
    Beat { node: usize, n: i64 },
    End { node: usize, n: i64 },
    Admit(Vec<Arrival>),
    Known(Vec<DedupeKey>),
    Claim { node: usize, lane: Lane, limit: usize, now: Time },
    Commit(Vec<(Which, End)>),
    Release(Vec<Which>),
    Sweep(usize),
    Reject(Vec<Rejection>),
    Upkeep,
    FindEvents(EventFilter),
    FindEvent(Seq),
    FindSeq(String, String),
    FindRejections(Option<String>, usize),
}

/// A lease that was once given, shown as it was or changed.
#[derive(Clone, Copy, Debug)]
struct Which {
    lease: usize,
    attempt: i32,
    other_node: bool,
}

/// Thinks of verbs; remembers enough to make them interesting.
struct Author {
    rng: Rng,
    arrivals: Arrivals,
    seqs: Vec<Seq>,
    rows: Vec<Arrival>,
    rejections: i64,
}

impl Author {
    fn new(seed: u64) -> Self {
        let arrivals = Arrivals::new(1);
        Self { rng: Rng::new(seed), arrivals, seqs: vec![Seq::ZERO], rows: Vec::new(), rejections: 0 }
    }

    fn story(&mut self) -> Vec<Verb> {
        let mut verbs = vec![Verb::Join, Verb::Join];
        verbs.extend((0..VERBS).map(|_| self.verb()));
        // Whatever happened, both must agree on everything that can be seen in the end.
        verbs.push(Verb::FindEvents(EventFilter { limit: 1_000, ..EventFilter::default() }));
        verbs.extend(self.seqs.iter().map(|seq| Verb::FindEvent(*seq)));
        verbs.push(Verb::FindRejections(None, 1_000));
        verbs
    }

    fn verb(&mut self) -> Verb {
        match self.rng.below(20) {
            0 => Verb::Join,
            1 => Verb::Beat { node: self.node(), n: self.small() },
            2 => Verb::End { node: self.node(), n: self.small() },
            3..=6 => {
                let count = self.rng.between(1, 5);
                Verb::Admit((0..count).map(|_| self.arrival()).collect())
            }
            7 => Verb::Known((0..self.rng.below(4)).map(|_| self.key()).collect()),
            8..=10 => Verb::Claim {
                node: self.node(),
                lane: if self.rng.chance(0.95) { Lane::settle() } else { Lane("other".into()) },
                limit: self.rng.below(5) as usize,
                now: self.time(),
            },
            11..=13 => {
                let count = self.rng.between(1, 3);
                Verb::Commit((0..count).map(|_| (self.which(), self.end())).collect())
            }
            14 => Verb::Release((0..self.rng.below(3)).map(|_| self.which()).collect()),
            15 => Verb::Sweep(self.rng.below(4) as usize),
            16 => {
                let count = self.rng.below(3);
                Verb::Reject((0..count).map(|_| self.rejection()).collect())
            }
            17 => match self.rng.below(3) {
                0 => Verb::Upkeep,
                1 => Verb::FindRejections(self.maybe_source(), self.rng.below(5) as usize),
                _ => Verb::FindSeq(self.source(), self.id()),
            },
            18 => Verb::FindEvent(*self.rng.pick(&self.seqs).expect("never empty")),
            _ => Verb::FindEvents(self.filter()),
        }
    }

    fn arrival(&mut self) -> Arrival {
        // Sometimes the very same row again, as after an unknown outcome.
        if self.rng.chance(0.2)
            && let Some(row) = self.rng.pick(&self.rows)
        {
            return row.clone();
        }
        let (id, source) = (self.id(), self.source());
        let mut row = self.arrivals.event(&id);
        row.key = DedupeKey::new(&source, &id, None);
        row.source = source.into();
        row.received_at = self.time();
        row.event_type = self.kind();
        row.livemode = [None, Some(true), Some(false)][self.rng.below(3) as usize];
        row.object = self.rng.chance(0.7).then(|| ("payment".into(), format!("pay_{}", self.rng.below(3))));
        row.account = self.rng.chance(0.3).then(|| "acct_1".into());
        row.created_at = self.rng.chance(0.8).then_some(NOW);
        if self.rng.chance(0.2) {
            row.body = bytes::Bytes::from(vec![0, 159, 146, 150, self.rng.below(256) as u8]);
        }
        if self.rng.chance(0.15) {
            row.next = Next::Dead(self.death());
        }
        self.seqs.push(row.seq);
        self.rows.push(row.clone());
        row
    }

    fn end(&mut self) -> End {
        match self.rng.below(4) {
            0 => End::Done(Outcome::Success),
            1 => End::Done(Outcome::Skipped { note: "なし".into() }),
            2 => End::Retry { due_at: self.time() },
            _ => End::Dead(self.death()),
        }
    }

    fn death(&mut self) -> Death {
        Death { reason: "reason".into(), error: format!("error {}", self.rng.below(3)) }
    }

    fn rejection(&mut self) -> Rejection {
        self.rejections += 1;
        Rejection {
            seq: Seq::from_i64(self.rejections * 10),
            at: self.time(),
            source: self.source(),
            peer: "203.0.113.9".into(),
            reason: "bad_signature".into(),
            detail: "x".repeat(self.rng.below(9) as usize),
            request_id: format!("req_{}", self.rejections),
            count: self.rng.between(1, 1_000) as i64,
        }
    }

    fn filter(&mut self) -> EventFilter {
        let pick_seq = |author: &mut Self| author.rng.pick(&author.seqs).copied();
        EventFilter {
            source: self.maybe_source(),
            event_type: self.rng.chance(0.5).then(|| {
                ["payment.paid", "payment.*", "pay%", "payment_*", "*", "Payment.*", ""]
                    [self.rng.below(7) as usize]
                    .into()
            }),
            status: if self.rng.chance(0.5) { self.rng.pick(&Status::ALL).copied() } else { None },
            object_id: self.rng.chance(0.3).then(|| format!("pay_{}", self.rng.below(4))),
            after: if self.rng.chance(0.3) { pick_seq(self) } else { None },
            before: if self.rng.chance(0.3) { pick_seq(self) } else { None },
            order: if self.rng.chance(0.5) { Order::NewestFirst } else { Order::OldestFirst },
            limit: self.rng.below(8) as usize,
        }
    }

    fn which(&mut self) -> Which {
        Which {
            lease: self.rng.below(64) as usize,
            attempt: i32::from(self.rng.chance(0.15)),
            other_node: self.rng.chance(0.1),
        }
    }

    fn key(&mut self) -> DedupeKey {
        DedupeKey::new(&self.source(), &self.id(), None)
    }

    fn id(&mut self) -> String {
        format!("id-{}", self.rng.below(IDS))
    }

    fn kind(&mut self) -> String {
        ["payment.paid", "payment.failed", "payment_%", "pay%x"][self.rng.below(4) as usize].into()
    }

    fn source(&mut self) -> String {
        ["shop", "other"][usize::from(self.rng.chance(0.3))].into()
    }

    fn maybe_source(&mut self) -> Option<String> {
        self.rng.chance(0.4).then(|| self.source())
    }

    fn node(&mut self) -> usize {
        self.rng.below(8) as usize
    }

    fn small(&mut self) -> i64 {
        self.rng.below(3) as i64
    }

    fn time(&mut self) -> Time {
        NOW.plus_ms(self.rng.below(20) as i64)
    }
}

/// Plays a story on one store and writes down every answer, with nodes by their place in the story.
struct Player {
    store: Arc<dyn Store>,
    epochs: Vec<Epoch>,
    leases: Vec<Lease>,
}

impl Player {
    async fn play(store: Arc<dyn Store>, story: &[Verb]) -> Vec<String> {
        let mut player = Self { store, epochs: Vec::new(), leases: Vec::new() };
        let mut answers = Vec::new();
        for verb in story {
            answers.push(player.answer(verb.clone()).await);
        }
        answers
    }

    async fn answer(&mut self, verb: Verb) -> String {
        let store = Arc::clone(&self.store);
        match verb {
            Verb::Join => {
                let Joined { epoch, floor } = store.join(NOW).await.unwrap();
                assert!(self.epochs.iter().all(|earlier| *earlier < epoch), "epochs rise");
                self.epochs.push(epoch);
                format!("{floor:?}")
            }
            Verb::Beat { node, n } => match store.beat(self.epoch(node), n).await.unwrap() {
                Pulse::Ended => "ended".into(),
                Pulse::Alive { peers, .. } => {
                    let mut peers: Vec<_> =
                        peers.iter().map(|peer| (self.place_of(peer.epoch), peer.beat)).collect();
                    peers.sort_unstable();
                    format!("{peers:?}")
                }
            },
            Verb::End { node, n } => format!("{:?}", store.end(self.epoch(node), n).await.unwrap()),
            Verb::Admit(arrivals) => {
                let answers: Vec<Admission> = store.admit(arrivals.into()).await.unwrap();
                format!("{answers:?}")
            }
            Verb::Known(keys) => format!("{:?}", store.known(&keys).await.unwrap()),
            Verb::Claim { node, lane, limit, now } => {
                let jobs = store.claim(self.epoch(node), &lane, limit, now).await.unwrap();
                self.leases.extend(jobs.iter().map(|job| job.lease));
                jobs.iter().map(|job| self.job(job)).collect::<Vec<_>>().join(" ")
            }
            Verb::Commit(sets) => {
                let set = |(which, end)| Some(ChangeSet { lease: self.lease(which)?, end, at: NOW });
                let sets: Vec<_> = sets.into_iter().filter_map(set).collect();
                format!("{:?}", store.commit(sets).await.unwrap())
            }
            Verb::Release(which) => {
                let leases = which.into_iter().filter_map(|which| self.lease(which)).collect();
                format!("{:?}", store.release(leases).await.unwrap())
            }
            Verb::Sweep(limit) => format!("{:?}", store.sweep(limit).await.unwrap()),
            Verb::Reject(rejections) => format!("{:?}", store.reject(rejections).await.unwrap()),
            Verb::Upkeep => format!("{:?}", store.upkeep(NOW).await.unwrap()),
            Verb::FindEvents(filter) => format!("{:?}", store.find_events(filter).await.unwrap()),
            Verb::FindEvent(seq) => format!("{:?}", store.find_event(seq).await.unwrap()),
            Verb::FindSeq(source, id) => format!("{:?}", store.find_seq(&source, &id).await.unwrap()),
            Verb::FindRejections(source, limit) => {
                format!("{:?}", store.find_rejections(source, limit).await.unwrap())
            }
        }
    }

    fn epoch(&self, node: usize) -> Epoch {
        self.epochs[node % self.epochs.len()]
    }

    fn place_of(&self, epoch: Epoch) -> usize {
        self.epochs.iter().position(|own| *own == epoch).expect("a node of this story")
    }

    fn lease(&self, which: Which) -> Option<Lease> {
        let lease = *self.leases.get(which.lease % self.leases.len().max(1))?;
        let epoch = if which.other_node { self.epoch(self.place_of(lease.epoch) + 1) } else { lease.epoch };
        Some(Lease { attempt: lease.attempt + which.attempt, epoch, ..lease })
    }

    fn job(&self, job: &Job) -> String {
        let node = self.place_of(job.lease.epoch);
        format!(
            "{:?} by {node} attempt {} {:?} {}",
            job.lease.job, job.lease.attempt, job.lane, job.event_type
        )
    }
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
        for seed in 0..200 {
            let story = Author::new(seed).story();
            all += &Player::play(Arc::new(MemoryStore::default()), &story).await.join("\n");
        }
    });
    for word in [
        "Admitted",
        "Duplicate",
        "Applied",
        "Lost",
        "ended",
        "attempt 2",
        "attempt 3",
        "Failed",
        "Skipped",
        "Success",
        "Received",
        "true",
        "false",
        "None",
        "Some",
    ] {
        assert!(all.contains(word), "no story ends in {word}");
    }
}
