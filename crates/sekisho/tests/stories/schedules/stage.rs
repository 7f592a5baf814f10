//! One play on one store: settles batches as the worker does, and watches that nothing goes backwards.

use std::collections::{BTreeMap, BTreeSet};

use sekisho_core::change::{ChangeSet, Committed};
use sekisho_core::settlement::{Cause, Input, Reading, Terms, billing, decide, names, payment};
use sekisho_core::state::{Key, Kind, Loaded, Posting};
use sekisho_core::{Seq, Time};
use sekisho_store::Store;

use super::expected;
use super::scenario::{Scenario, Variant};

pub struct Stage<'s> {
    store: &'s dyn Store,
    /// Where to look when something is wrong.
    place: String,
    seq: i64,
    at: Time,
    names: BTreeSet<String>,
    pub announced: Vec<(String, String)>,
    postings: Vec<Posting>,
}

impl<'s> Stage<'s> {
    pub fn new(store: &'s dyn Store, place: String) -> Self {
        Self {
            store,
            place,
            seq: 0,
            at: Time::from_seconds(1_790_000_000),
            names: BTreeSet::new(),
            announced: Vec::new(),
            postings: Vec::new(),
        }
    }

    fn next_seq(&mut self) -> Seq {
        // Ids of different plays in one database must differ: the place is part of them.
        self.seq += 1;
        let hash =
            self.place.bytes().fold(7_i64, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
        Seq::from_i64(((hash & 0x3fff_ffff) << 20) + self.seq)
    }

    /// Loads, decides and commits, unless the process dies before the commit.
    pub async fn settle<'r>(&mut self, batch: impl Iterator<Item = &'r Reading>, crashes: bool) {
        let mut inputs = Vec::new();
        for reading in batch {
            let seq = self.next_seq();
            inputs.push(Input { seq, reading: reading.clone(), cause: Cause::default() });
        }
        let mut wanted = names(&inputs);
        let (before, changes) = loop {
            let keys = wanted.keys.iter().cloned().collect();
            let loaded = self.store.load(wanted.names.iter().cloned().collect(), keys).await.unwrap();
            match decide(&inputs, &wanted, &loaded, &Terms::at(self.at)) {
                Ok(changes) => break (loaded, changes),
                Err(more) => wanted.extend(more),
            }
        };
        self.names.extend(wanted.names);
        if crashes {
            return;
        }
        let mut sets = Vec::new();
        for change in changes {
            assert_eq!(change.refused, None, "{}", self.place);
            self.check_postings(&change.postings);
            let made = change.announcements.into_iter();
            let events = made.map(|told| told.arrival(self.next_seq())).collect::<Vec<_>>();
            for event in &events {
                let told = (event.event_id.clone(), event.event_type.clone());
                assert!(!self.announced.contains(&told), "{}: {told:?} was told before", self.place);
                self.announced.push(told);
            }
            sets.push(ChangeSet {
                writes: change.writes,
                names: change.names,
                postings: change.postings,
                audit: change.audit,
                events,
                ..ChangeSet::nothing(self.at)
            });
        }
        for answer in self.store.commit(sets).await.unwrap() {
            let Committed::Applied { repeated } = answer else { panic!("{}: {answer:?}", self.place) };
            assert!(repeated.is_empty(), "{}: an announcement was stored before", self.place);
        }
        self.check_nothing_went_back(&before).await;
    }

    /// Every change of the books is even, and what is paid back was there.
    fn check_postings(&mut self, postings: &[Posting]) {
        assert_eq!(postings.iter().map(|line| line.amount).sum::<i64>(), 0, "{}: {postings:?}", self.place);
        self.postings.extend(postings.iter().cloned());
        let at_the_provider = |cause: &str| -> i64 {
            let own = self.postings.iter().filter(|line| line.cause == cause);
            own.filter(|line| line.account.starts_with("provider/")).map(|line| line.amount).sum()
        };
        let (came, went) = (at_the_provider("captured"), -at_the_provider("refunded"));
        assert!((0..=came).contains(&went), "{}: {went} was paid back of {came}", self.place);
    }

    /// Each fact that was known is still known, or something greater: joining the past to the present adds nothing.
    async fn check_nothing_went_back(&self, before: &Loaded) {
        let keys: Vec<Key> = before.states.keys().cloned().collect();
        let after = self.store.load(Vec::new(), keys).await.unwrap();
        for (key, was) in &before.states {
            let now = &after.states[key];
            match key.kind {
                Kind::Payment => {
                    let [was, now] = [was, now].map(|state| payment::Facts::parse(&state.facts).unwrap());
                    let mut joined = now.clone();
                    joined.join(&was);
                    joined.clusters.clone_from(&now.clusters);
                    joined.names.clone_from(&now.names);
                    assert!(joined == now || now.merged_into.is_some(), "{}: {was:?}\n{now:?}", self.place);
                }
                Kind::Billing => {
                    let [was, now] =
                        [was, now].map(|state| billing::BillingFacts::parse(&state.facts).unwrap());
                    let mut joined = now.clone();
                    joined.join(&was);
                    joined.clusters.clone_from(&now.clusters);
                    joined.names.clone_from(&now.names);
                    assert!(joined == now || now.merged_into.is_some(), "{}: {was:?}\n{now:?}", self.place);
                }
                Kind::Tenant
                | Kind::Customer
                | Kind::Staff
                | Kind::Subject
                | Kind::Notice
                | Kind::Suppression
                | Kind::Quota
                | Kind::ApiKey
                | Kind::User
                | Kind::Invite
                | Kind::Request
                | Kind::Breaker
                | Kind::Reconciliation
                | Kind::Slot
                | Kind::SlotBlock
                | Kind::Reservation
                | Kind::Fulfilment
                | Kind::Case
                | Kind::Compensation
                | Kind::Inquiry
                | Kind::HouseKey
                | Kind::Installation
                | Kind::Meter
                | Kind::Alert => {}
            }
        }
    }

    pub async fn check_the_end(&self, scenario: &Scenario, variant: Variant) {
        let loaded = self.store.load(self.names.iter().cloned().collect(), Vec::new()).await.unwrap();
        let of = |kind: Kind| {
            loaded.states.values().filter(move |state| state.key.kind == kind && state.is_shown())
        };
        let payments: Vec<_> =
            of(Kind::Payment).map(|state| payment::Facts::parse(&state.facts).unwrap()).collect();
        let billings: Vec<_> =
            of(Kind::Billing).map(|state| billing::BillingFacts::parse(&state.facts).unwrap()).collect();
        for facts in &payments {
            let derived = payment::Derived::of(facts);
            assert_eq!(
                payment::due(facts, &derived, |_| false),
                [],
                "{}: something was not told",
                self.place
            );
            assert!(derived.refunded <= derived.received, "{}: {derived:?}", self.place);
        }
        for facts in &billings {
            let derived = billing::BillingDerived::of(facts);
            assert!(billing::due(facts, &derived).is_empty(), "{}: something was not told", self.place);
        }
        self.check_the_books(&payments);
        expected::check(scenario, variant, &payments, &billings, &self.announced, &self.place);
    }

    /// What was posted, bit by bit, is what the facts say at the end.
    fn check_the_books(&self, payments: &[payment::Facts]) {
        let mut posted: BTreeMap<(String, String, String), i64> = BTreeMap::new();
        for line in &self.postings {
            let name = (line.currency.clone(), line.cause.clone(), line.account.clone());
            *posted.entry(name).or_default() += line.amount;
        }
        posted.retain(|_, amount| *amount != 0);
        let mut wanted: BTreeMap<(String, String, String), i64> = BTreeMap::new();
        for facts in payments {
            for (line, amount) in payment::lines(facts, &payment::Derived::of(facts)) {
                *wanted.entry((line.currency.into(), line.cause, line.account)).or_default() += amount;
            }
        }
        wanted.retain(|_, amount| *amount != 0);
        assert_eq!(posted, wanted, "{}", self.place);
    }
}
