//! A small world for tests: a store that is a map, into which events are settled in whatever batches, with every guard
//! checked as a database would.

mod ways;

use std::collections::BTreeSet;

use crate::settlement::Terms;
use bytes::Bytes;
use serde_json::Value;

use super::decide::{Cause, Input, decide, names};
use super::follow::OrderPolicy;
use super::order::MerchantRequest;
use super::payment::{self, Facts, MerchantOrder};
use super::{CheckoutCall, Fetch, References, RefundCall, billing};
use crate::announcement::Announcement;
use crate::event::{Stored, Trust};
use crate::id::Seq;
use crate::money::Currency;
use crate::slot::Full;
use crate::source_name::Origin;
use crate::state::{Key, Kind, Loaded, Posting, State, Write};
use crate::time::Time;

pub const STRIPE: Origin = Origin { provider: "stripe", livemode: None };

pub const NOW: Time = Time::from_ms(1_780_000_000_000);

pub use ways::{Ending, WorldStep, every_way, orders};

#[derive(Default)]
pub struct World {
    /// Whose events come, where they don't say it themselves.
    provider: &'static str,
    pub loaded: Loaded,
    seq: i64,
    pub postings: Vec<Posting>,
    pub told: Vec<Announcement>,
    pub refunds: Vec<RefundCall>,
    pub checkouts: Vec<CheckoutCall>,
    pub fetches: Vec<Fetch>,
    /// Whether the provider can be asked.
    pub can_fetch: bool,
    /// How long after [`NOW`] it is, in milliseconds.
    pub later_ms: i64,
    pub policy: OrderPolicy,
    /// The moments that orders wait for, with what locks them.
    pub deadlines: BTreeSet<(Time, Key)>,
    /// Those that asked for more places than were free.
    pub declined: Vec<Full>,
}

impl World {
    pub fn of(provider: &'static str) -> Self {
        Self { provider, ..Self::default() }
    }

    pub fn now(&self) -> Time {
        NOW.plus_ms(self.later_ms)
    }

    pub fn next_seq(&mut self) -> Seq {
        self.seq += 1;
        Seq::from_i64(self.seq)
    }

    pub fn event(&mut self, origin: Origin, event: &Value) -> Input {
        let seq = self.next_seq();
        let event = Stored {
            seq,
            received_at: self.now(),
            source: "source".into(),
            event_id: format!("evt_{}", self.seq),
            event_type: event["type"].as_str().unwrap().to_owned(),
            created_at: None,
            object: None,
            account: event["account"].as_str().map(str::to_owned),
            livemode: event["livemode"].as_bool(),
            trust: Trust::Signed,
            headers: "[]".into(),
            body: Bytes::from(event.to_string()),
        };
        let reading = super::read(origin, &event, &References::default()).unwrap().unwrap_or_default();
        Input { seq: event.seq, reading, cause: Cause::of(&event) }
    }

    pub fn hears(&mut self, event: &Value) {
        self.hears_all(std::slice::from_ref(event));
    }

    /// In one batch.
    pub fn hears_all(&mut self, events: &[Value]) {
        let inputs: Vec<Input> = events.iter().map(|event| self.event(STRIPE, event)).collect();
        self.settle(&inputs);
    }

    /// The app posts a payment for the whole installation, of any mode or of one.
    pub fn announces(&mut self, reference: &str, livemode: Option<bool>, tenant: Option<&str>) {
        self.posts(reference, livemode, tenant, true);
    }

    /// The same, of some amount.
    pub fn posts_amount(&mut self, reference: &str, amount: i64) {
        self.post(reference, None, None, true, amount);
    }

    pub fn posts(&mut self, reference: &str, livemode: Option<bool>, tenant: Option<&str>, for_all: bool) {
        self.post(reference, livemode, tenant, for_all, 1000);
    }

    fn post(
        &mut self,
        reference: &str,
        livemode: Option<bool>,
        tenant: Option<&str>,
        for_all: bool,
        amount: i64,
    ) {
        let seq = self.next_seq();
        let ours = MerchantOrder {
            amount,
            currency: Currency::parse("jpy"),
            tenant: tenant.map(str::to_owned),
            reference: Some(reference.to_owned()),
            for_all,
            ..MerchantOrder::default()
        };
        let input = MerchantRequest { ours, livemode }.input(seq, Cause::default());
        self.settle(&[input]);
    }

    /// As a store would: only what is asked for is loaded, and every guard holds.
    pub fn settle(&mut self, inputs: &[Input]) {
        let mut wanted = names(inputs);
        let changes = loop {
            let mut seen = Loaded::default();
            let named = self.loaded.names.iter().filter(|(name, _)| wanted.names.contains(*name));
            seen.names.extend(named.map(|(name, key)| (name.clone(), key.clone())));
            for key in seen.names.values().chain(&wanted.keys) {
                let state = self.loaded.states.get(key);
                seen.states.extend(state.map(|state| (key.clone(), state.clone())));
            }
            let can_fetch = self.can_fetch;
            let (can_fetch, at) = (&|_: &str| can_fetch, self.now());
            let terms = Terms { can_fetch, orders: &self.policy, ..Terms::at(at) };
            match decide(inputs, &wanted, &seen, &terms) {
                Ok(changes) => break changes,
                Err(more) => {
                    assert!(more.names.is_disjoint(&wanted.names) && more.keys.is_disjoint(&wanted.keys));
                    wanted.extend(more);
                }
            }
        };
        for change in changes {
            assert_eq!(change.refused, None);
            let sum: i64 = change.postings.iter().map(|line| line.amount).sum();
            assert_eq!(sum, 0, "{:?}", change.postings);
            for naming in change.names {
                if let Some(was) = &naming.was {
                    assert!(change.writes.iter().any(|write| write.key == *was), "{naming:?} is not guarded");
                }
                let was = self.loaded.names.insert(naming.name.clone(), naming.key.clone());
                assert_eq!(was, naming.was, "{} would be stale", naming.name);
            }
            for write in change.writes {
                let Write { key, version, facts, index } = write;
                assert_eq!(self.loaded.states.get(&key).map_or(0, |state| state.version), version);
                let (created_at, changed_at) = (self.now(), self.now());
                let state =
                    State { key: key.clone(), version: version + 1, facts, index, created_at, changed_at };
                self.loaded.states.insert(key, state);
            }
            self.postings.extend(change.postings);
            self.told.extend(change.announcements);
            self.refunds.extend(change.refunds);
            self.checkouts.extend(change.checkouts);
            self.fetches.extend(change.fetches);
            self.deadlines.extend(change.deadlines.into_iter().map(|one| (one.at, one.anchor)));
            self.declined.extend(change.declined.into_iter().map(|(_, full)| full));
        }
    }

    /// What stands of one kind.
    pub fn states(&self, kind: Kind) -> impl Iterator<Item = &State> {
        self.loaded.states.values().filter(move |state| state.key.kind == kind && state.is_shown())
    }

    pub fn facts(&self) -> impl Iterator<Item = Facts> {
        self.states(Kind::Payment).map(|state| Facts::parse(&state.facts).unwrap())
    }

    pub fn billings(&self) -> impl Iterator<Item = billing::BillingFacts> {
        self.states(Kind::Billing).map(|state| billing::BillingFacts::parse(&state.facts).unwrap())
    }

    /// Every payment that stands, by (reference, status, amount received, mode).
    pub fn payments(&self) -> Vec<(String, String, i64, Option<bool>)> {
        let facts = self.facts();
        let mut all: Vec<_> = facts
            .map(|facts| {
                let derived = payment::Derived::of(&facts);
                let reference = derived.reference.unwrap_or_default();
                (reference, derived.status.name().to_owned(), derived.received, facts.livemode)
            })
            .collect();
        all.sort();
        all
    }

    pub fn told(&self) -> Vec<&str> {
        self.told.iter().map(|told| &*told.event_type).collect()
    }
}
