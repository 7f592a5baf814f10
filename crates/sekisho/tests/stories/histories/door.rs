//! The near door: signed requests go through the provider's check, admission and settling as in the gateway, one after the other
//! in this thread and on the store in memory. What is seen at the end is what the API shows.
//!
//! A [`Bent`] distorts what passes here, so that a planted bug needs no other build of the product.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use sekisho::acts::{self, Actor};
use sekisho::env::Env;
use sekisho::view;
use sekisho_core::audit::Role;
use sekisho_core::change::{Admission, Arrival, ChangeSet, Committed};
use sekisho_core::event::{Event, Identity, Stored};
use sekisho_core::provider::{self, RequestReading};
use sekisho_core::settlement::follow::OrderPolicy;
use sekisho_core::settlement::{self, Cause, Fetch, Input, References, Terms};
use sekisho_core::source_name::{FETCHED, Origin};
use sekisho_core::state::Kind;
use sekisho_core::{Seq, Time};
use sekisho_store::memory::MemoryStore;
use sekisho_store::{EventFilter, FIND_MAX, StateFilter, Store};
use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};

use super::bugs::{Bent, Bug};
use super::compare::Seen;
use super::play::Step;
use super::sender::{self, Source};
use super::stripe;
use super::told::Told;
use super::world::{Key, Order, Shop, World};

/// Plays one way in which a history can happen, and looks at the end.
pub fn play(world: &World, steps: &[Step], bug: Option<Bug>) -> Seen {
    let mut door = Door::new(world, Bent::by(bug));
    for step in steps {
        match step {
            Step::Post(n) => door.post(*n),
            Step::Tell(told) => door.tell(told),
            Step::Settle { events, nodes } => door.settle(*events, *nodes),
        }
    }
    door.look()
}

struct Door<'w> {
    world: &'w World,
    bent: Bent,
    store: MemoryStore,
    at: Time,
    last: Seq,
    waiting: Vec<Stored>,
    /// Our id of every order that was posted.
    posted: Vec<Option<String>>,
    problems: Vec<String>,
    /// Stripe's answers, by id.
    transactions: BTreeMap<String, Value>,
}

/// How long access goes on, as the settings have it when nobody says otherwise.
const GRACE: Duration = Duration::from_hours(72);

/// So often somebody may be too late: each time, somebody else was not.
const ROUNDS_MAX: usize = 100;

/// The store in memory answers at once.
fn now<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("memory never waits")
}

impl<'w> Door<'w> {
    fn new(world: &'w World, bent: Bent) -> Self {
        let at = Time::from_seconds(world.now);
        let by_stripe = world.purchases.iter().filter(|one| one.shop == Shop::Stripe && world.fees);
        let transactions = by_stripe.flat_map(stripe::balance_transactions);
        Self {
            world,
            bent,
            store: MemoryStore::default(),
            at,
            last: Seq::floor_of(at),
            waiting: Vec::new(),
            posted: vec![None; world.orders.len()],
            problems: Vec::new(),
            transactions: transactions.map(|one| (one["id"].as_str().unwrap().to_owned(), one)).collect(),
        }
    }

    fn next_seq(&mut self) -> Seq {
        self.last = Seq::from_i64(self.last.as_i64() + 1);
        self.last
    }

    fn post(&mut self, n: usize) {
        let order = &self.world.orders[n];
        let mut body = posted(order);
        self.bent.order(&mut body);
        let actor = Actor {
            name: "app",
            role: Role::ApiKey,
            tenant: order.tenant.as_deref().filter(|_| order.by == Key::OwnTenant),
            at: self.at,
        };
        match now(acts::create_payment(
            &self.store,
            &Env::system(),
            &OrderPolicy::default(),
            body,
            None,
            &actor,
        )) {
            Ok(answered) => self.posted[n] = answered.answer["id"].as_str().map(str::to_owned),
            Err(refusal) => self.problems.push(format!("order#{n} was refused: {refusal}")),
        }
    }

    fn tell(&mut self, told: &Told) {
        let Some(told) = self.bent.tell(told) else { return };
        let body = filled(&told.body, &self.posted);
        let arrival = self.arrival(&sender::sources()[told.source], body);
        self.admit(arrival);
    }

    /// As the checkpoint makes it of a request that it believes.
    fn arrival(&mut self, source: &Source, body: String) -> Arrival {
        // Signatures go by the real clock: the certificate behind PayPal's is not older than this run.
        let certificate = &sender::paypal().certificate;
        let today = sekisho::now();
        let letter = sender::letter(source, body, today.seconds());
        let mut headers = HeaderMap::new();
        for (name, value) in &letter.headers {
            headers.insert(name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap());
        }
        let request = provider::Request {
            method: &Method::POST,
            headers: &headers,
            query: "",
            body: &letter.body,
            certificate: Some(certificate),
        };
        let verified = provider::verify(&*source.scheme, request, today).unwrap();
        let RequestReading::Events(events) = provider::read(&*source.scheme, &verified).unwrap() else {
            panic!("no handshake")
        };
        let [event]: &[Event<'_>] = &events else { panic!("one event in a request") };
        let transmission = source.scheme.transmission(&verified);
        let identity = Identity::of(source.name, event, transmission.as_deref());
        Arrival {
            key: identity.key,
            first_body: identity.first_body,
            seq: self.next_seq(),
            received_at: self.at,
            source: source.name.into(),
            event_id: event.id.to_string(),
            event_type: event.kind.to_string(),
            created_at: event.created.map(|created| created.at),
            object: event.object.as_ref().map(|object| (object.kind.to_string(), object.id.to_string())),
            account: event.account.as_ref().map(ToString::to_string),
            livemode: event.livemode,
            trust: provider::find(source.provider).expect("a provider we know").about().trust,
            headers: "[]".into(),
            body: Bytes::copy_from_slice(&event.body),
            held: None,
        }
    }

    fn admit(&mut self, arrival: Arrival) {
        let stored = arrival.stored();
        match now(self.store.admit(Arc::from([arrival]), None)).unwrap().pop() {
            Some(Admission::Admitted) => self.waiting.push(stored),
            Some(Admission::Duplicate(_)) => {}
            other => panic!("{other:?}"),
        }
    }

    /// So many that wait; everything, if so many are not there.
    fn settle(&mut self, events: usize, nodes: usize) {
        loop {
            let count = events.min(self.waiting.len()).min(256);
            let batch: Vec<_> = self.waiting.drain(..count).collect();
            let shares: Vec<_> =
                batch.chunks(count.div_ceil(nodes).max(1)).map(|share| self.inputs(share)).collect();
            self.settle_at_once(shares);
            if events != usize::MAX || self.waiting.is_empty() {
                return;
            }
        }
    }

    fn inputs(&mut self, share: &[Stored]) -> Vec<Input> {
        let mut inputs = Vec::new();
        for event in share {
            let origin = if &*event.source == FETCHED {
                Fetch::origin(event)
            } else {
                let source = &sender::sources()[&*event.source];
                Origin { provider: source.provider, livemode: source.livemode }
            };
            match settlement::read(origin, event, &References::default()) {
                Ok(Some(reading)) => inputs.push(Input { seq: event.seq, reading, cause: Cause::of(event) }),
                Ok(None) => {}
                Err(error) => self.problems.push(format!("{} could not be read: {error}", event.event_id)),
            }
        }
        inputs
    }

    /// Every node loads before any of them commits; who was too late does it again.
    fn settle_at_once(&mut self, shares: Vec<Vec<Input>>) {
        let mut left = shares;
        for round in 0.. {
            if left.is_empty() {
                return;
            }
            assert!(round < ROUNDS_MAX, "who is too late stays too late: {left:?}");
            let drafts: Vec<_> = left.iter().map(|share| self.decide(share)).collect();
            let mut late = Vec::new();
            for (share, sets) in left.into_iter().zip(drafts) {
                let mut again = Vec::new();
                for (inputs, set) in sets {
                    match &now(self.store.commit(vec![set])).unwrap()[..] {
                        [Committed::Applied { .. }] => {}
                        [Committed::Stale] => again.extend(inputs),
                        other => panic!("{other:?}"),
                    }
                }
                let again: Vec<_> = again.into_iter().map(|n: usize| share[n].clone()).collect();
                late.extend(Some(again).filter(|again| !again.is_empty()));
            }
            left = late;
        }
    }

    fn decide(&mut self, inputs: &[Input]) -> Vec<(Vec<usize>, ChangeSet)> {
        let mut wanted = settlement::names(inputs);
        let (at, can_fetch) = (self.at, |_: &str| self.world.fees);
        let terms = Terms { can_fetch: &can_fetch, ..Terms::at(at) };
        let changes = loop {
            let (names, keys) =
                (wanted.names.iter().cloned().collect(), wanted.keys.iter().cloned().collect());
            let loaded = now(self.store.load(names, keys)).unwrap();
            match settlement::decide(inputs, &wanted, &loaded, &terms) {
                Ok(changes) => break changes,
                Err(more) => wanted.extend(more),
            }
        };
        let mut sets = Vec::new();
        for change in changes {
            if let Some(refused) = &change.refused {
                self.problems.push(format!("could not be decided: {refused}"));
            }
            for fetch in &change.fetches {
                if let Some(answer) = self.transactions.get(&fetch.id) {
                    let answer = to_raw_value(answer).expect("JSON is JSON");
                    let arrival = fetch.arrival(self.next_seq(), self.at, &answer);
                    self.admit(arrival);
                }
            }
            let at = self.at;
            let inputs = change.inputs.clone();
            let mut set = change.into_set(at, || self.next_seq());
            self.bent.write(&mut set);
            sets.push((inputs, set));
        }
        sets
    }

    fn look(mut self) -> Seen {
        let mut seen = Seen { problems: std::mem::take(&mut self.problems), ..Seen::default() };
        let states = |kind| now(self.store.find_states(StateFilter::all(kind, FIND_MAX))).unwrap();
        for state in states(Kind::Payment).iter().filter(|state| state.is_shown()) {
            seen.payments.push(json!(view::payment(state).unwrap()));
        }
        for state in states(Kind::Billing).iter().filter(|state| state.is_shown()) {
            seen.billings.push(json!(view::billing(state, self.at, GRACE).unwrap()));
        }
        for id in &self.posted {
            let found = id.as_ref().and_then(|id| now(view::find_payment(&self.store, id)).unwrap());
            seen.orders.push(found.map(|found| found.thing.id));
        }
        for order in &self.world.orders {
            let Some(customer) = &order.top_up_of else { continue };
            let found = now(view::find_balance(&self.store, order.tenant.as_deref(), customer)).unwrap();
            seen.balances.insert(customer.clone(), found.map_or(0, |found| balance(&json!(found))));
        }
        let own = EventFilter { source: Some("sekisho".into()), limit: FIND_MAX, ..EventFilter::default() };
        let page = now(self.store.find_events(own)).unwrap();
        let numbers = page.events.iter().map(|event| event.seq).collect();
        for event in now(self.store.load_events(numbers)).unwrap() {
            seen.announcements.push(serde_json::from_slice(&event.body).unwrap());
        }
        self.bent.look(&mut seen);
        seen
    }
}

/// An order as the app posts it.
pub fn posted(order: &Order) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("amount".into(), json!(order.amount));
    body.insert("currency".into(), json!("jpy"));
    let mut add = |field: &str, value: Option<Value>| value.map(|value| body.insert(field.to_owned(), value));
    add("tenant", order.tenant.clone().map(Value::from));
    add("reference", order.reference.clone().map(Value::from));
    add("livemode", order.live.map(Value::from));
    add("customer", order.top_up_of.clone().map(Value::from));
    add("purpose", order.top_up_of.as_ref().map(|_| json!("balance")));
    body
}

/// The body with our ids in it, as far as the app knows them.
pub fn filled(body: &Value, posted: &[Option<String>]) -> String {
    let mut text = body.to_string();
    for (n, id) in posted.iter().enumerate() {
        if let Some(id) = id {
            text = text.replace(&format!("{{pay_of_{n}}}"), id);
        }
    }
    text
}

/// All that a customer has, in whatever mode.
pub fn balance(found: &Value) -> i64 {
    found["balances"].as_array().into_iter().flatten().filter_map(|one| one["balance"].as_i64()).sum()
}
