//! The product as one life meets it: its acts, its settling, its timers and its refunds, on a store that loses answers, by a clock
//! that is handed in. What fails is done again, as callers and nodes do.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use sekisho::acts::{self, Actor, Answered, HoldDraft, Holds, OnceKey, Refusal, ReservationChange};
use sekisho::config::Config;
use sekisho::env::Env;
use sekisho::types::{AcknowledgeCase, FulfilmentResult, NewReservation, NewSlot, ResolveCase};
use sekisho_core::audit::Role;
use sekisho_core::change::{ChangeSet, Committed};
use sekisho_core::event::{Stored, Trust};
use sekisho_core::job::RefundCall;
use sekisho_core::settlement::follow::{OrderPart, OrderPolicy};
use sekisho_core::settlement::payment::{Facts, Generation};
use sekisho_core::settlement::refund::{self, RefundStep};
use sekisho_core::settlement::{self, Cause, Input, Reading, References, Terms};
use sekisho_core::source_name::Origin;
use sekisho_core::state::{Key, Kind};
use sekisho_core::{Seq, Time};
use sekisho_lab::rng::Rng;
use sekisho_store::Store;
use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};

use super::till::{GivingState, Till};
use super::watched::WatchedStore;

/// So often something may fail or be overtaken before the story gives up.
const TRIES_MAX: usize = 60;
const STRIPE: Origin = Origin { provider: "stripe", livemode: None };

pub struct Desk {
    pub store: Arc<WatchedStore>,
    pub policy: Arc<OrderPolicy>,
    env: Env,
    /// One for each node.
    holds: Vec<Holds>,
    now: Cell<i64>,
    count: Cell<u64>,
    settings: Config,
    pub till: RefCell<Till>,
}

/// Who acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Customer,
    Operator,
    App,
}

impl Desk {
    pub fn open(
        store: WatchedStore,
        policy: OrderPolicy,
        nodes: usize,
        seed: u64,
        mark: &str,
        now: i64,
    ) -> Self {
        let chance = Mutex::new(Rng::new(seed ^ 0x5eed));
        let env = Env::system().with_chance(move |bytes| chance.lock().unwrap().fill(bytes));
        Self {
            store: Arc::new(store),
            policy: Arc::new(policy),
            holds: (0..nodes).map(|_| Holds::new(env.clone(), None)).collect(),
            env,
            now: Cell::new(now),
            count: Cell::new(0),
            settings: Config::default(),
            till: RefCell::new(Till::new(mark)),
        }
    }

    pub fn now(&self) -> i64 {
        self.now.get()
    }

    pub fn at(&self) -> Time {
        Time::from_ms(self.now.get())
    }

    pub fn wait(&self, ms: i64) {
        self.now.set(self.now.get() + ms);
    }

    fn next(&self) -> u64 {
        self.count.set(self.count.get() + 1);
        self.count.get()
    }

    fn seq(&self) -> Seq {
        self.env.fresh_seq(self.at())
    }

    /// Everybody here may touch the things of all tenants.
    fn actor(&self, who: Who) -> Actor<'static> {
        let (name, role) = match who {
            Who::Customer => ("order", Role::Customer),
            Who::Operator => ("tomo", Role::Operator),
            Who::App => ("app", Role::ApiKey),
        };
        Actor { name, role, tenant: None, at: self.at() }
    }

    /// Sets the capacity of a hall; says whether that was allowed.
    pub async fn set_hall(&self, hall: &str, house: Option<&str>, live: bool, capacity: u32) -> bool {
        let body = NewSlot {
            id: hall.to_owned(),
            capacity: Some(capacity),
            starts_at: None,
            title: None,
            livemode: Some(live),
            tenant: house.map(str::to_owned),
        };
        for _ in 0..TRIES_MAX {
            let actor = self.actor(Who::App);
            match acts::set_slot(&*self.store, &self.policy, body.clone(), None, &actor).await {
                Ok(_) => return true,
                Err(Refusal::Conflict(_)) => return false,
                Err(Refusal::Store(_)) => {}
                Err(other) => panic!("{other}"),
            }
        }
        panic!("the store never answers")
    }

    /// Asks for places at one of the nodes; what was answered, or nothing if too few are free.
    pub async fn hold(&self, node: usize, body: &Value) -> Option<Value> {
        let parsed: NewReservation = serde_json::from_value(body.clone()).unwrap();
        let (once, path) = (format!("k{}", self.next()), "/v1/reservations");
        let map: Map<String, Value> = body.as_object().unwrap().clone();
        let request = OnceKey::new("app", None, &format!("{once}{}", body["reference"]), path, &map).unwrap();
        let holds = self.holds[node % self.holds.len()].clone();
        let store: Arc<dyn Store> = self.store.clone();
        for _ in 0..TRIES_MAX {
            let actor = self.actor(Who::App);
            let draft =
                HoldDraft::read(parsed.clone(), self.settings.reservations, &self.policy, &actor).unwrap();
            match holds.hold(&store, &self.policy, draft, Some(request.clone()), self.at()).await {
                Ok(Answered { answer, .. }) => return Some(answer),
                Err(Refusal::Full { .. }) => return None,
                Err(Refusal::Store(_) | Refusal::RetryLater { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
        panic!("the store never answers")
    }

    /// Changes a reservation; says whether that was allowed.
    pub async fn change(&self, id: &str, who: Who, change: &ReservationChange) -> bool {
        for _ in 0..TRIES_MAX {
            let actor = self.actor(who);
            let done =
                acts::change_reservation(&*self.store, &self.env, &self.policy, id, change, None, &actor)
                    .await;
            match done {
                Ok(_) => return true,
                Err(Refusal::Conflict(_)) => return false,
                Err(Refusal::Store(_) | Refusal::RetryLater { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
        panic!("the store never answers")
    }

    pub async fn cancel(&self, id: &str, who: Who, refund: bool) -> bool {
        let cancel = ReservationChange::Cancel { reason: "ill".into(), refund };
        self.change(id, who, &cancel).await
    }

    /// Posts a result of a run; whether it counted, where the first answer arrived.
    pub async fn result(&self, id: &str, run: u32, newest: u32, status: &str) -> Option<bool> {
        let body = FulfilmentResult {
            run: self.store.planted().run(run, newest),
            status: status.to_owned(),
            error: (status == "failed").then(|| "no memory".to_owned()),
            url: None,
        };
        for n in 0..TRIES_MAX {
            let actor = self.actor(Who::App);
            let done =
                acts::take_result(&*self.store, &self.env, &self.policy, id, body.clone(), &actor).await;
            match done {
                Ok(answer) => return (n == 0).then_some(answer.counted),
                Err(Refusal::Store(_) | Refusal::RetryLater { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
        panic!("the store never answers")
    }

    /// An operator allows one more run; says whether that was allowed.
    pub async fn retry(&self, id: &str) -> bool {
        for n in 0..TRIES_MAX {
            let actor = self.actor(Who::Operator);
            match acts::retry_fulfilment(&*self.store, &self.env, &self.policy, id, "mended", &actor).await {
                Ok(_) => return true,
                // The second time it may have been done already.
                Err(Refusal::Conflict(_)) => return n > 0,
                Err(Refusal::Store(_) | Refusal::RetryLater { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
        panic!("the store never answers")
    }

    /// A person says something of a case; whether that was allowed.
    pub async fn say(&self, case: &str, resolves: bool) -> bool {
        for _ in 0..TRIES_MAX {
            let (store, actor) = (&*self.store, self.actor(Who::Operator));
            let said = if resolves {
                let body = ResolveCase { how: "by_hand".into(), note: Some("seen".into()) };
                acts::resolve_case(store, &self.env, &self.policy, case, body, &actor).await
            } else {
                acts::acknowledge_case(
                    store,
                    &self.env,
                    &self.policy,
                    case,
                    AcknowledgeCase { note: None },
                    &actor,
                )
                .await
            };
            match said {
                Ok(_) => return true,
                Err(Refusal::Conflict(_)) => return false,
                Err(Refusal::Store(_) | Refusal::RetryLater { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
        panic!("the store never answers")
    }

    /// The provider's events are settled, by so many nodes at once: each loads before any of them commits.
    pub async fn hear(&self, events: &[Value], nodes: usize) {
        let mut inputs = Vec::new();
        for event in events {
            let mut event = event.clone();
            let whole = event["data"]["object"]["payment_intent"].as_str();
            let whole = whole.and_then(|id| self.till.borrow().takings.get(id).map(|one| one.amount));
            self.store.planted().hear(&mut event, self.at().seconds(), whole.unwrap_or_default());
            let stored = self.stored(&event);
            let reading = settlement::read(STRIPE, &stored, &References::default()).unwrap();
            let cause = Cause::of(&stored);
            inputs.extend(reading.map(|reading| Input { seq: stored.seq, reading, cause }));
        }
        let size = inputs.len().div_ceil(nodes.max(1)).max(1);
        let shares: Vec<Vec<Input>> = inputs.chunks(size).map(<[Input]>::to_vec).collect();
        futures_util::future::join_all(shares.iter().map(|share| self.settle(share))).await;
    }

    fn stored(&self, event: &Value) -> Stored {
        Stored {
            seq: self.seq(),
            received_at: self.at(),
            source: "stripe".into(),
            event_id: format!("evt_{}", self.next()),
            event_type: event["type"].as_str().unwrap().to_owned(),
            created_at: None,
            object: None,
            account: None,
            livemode: event["livemode"].as_bool(),
            trust: Trust::Signed,
            headers: "[]".into(),
            body: Bytes::from(event.to_string()),
        }
    }

    /// Decides inputs and commits each group, until all are written.
    pub async fn settle(&self, inputs: &[Input]) {
        let mut left: Vec<Input> = inputs.to_vec();
        for _ in 0..TRIES_MAX {
            if left.is_empty() {
                return;
            }
            let sets = self.decide(&left).await;
            let mut again = Vec::new();
            for (members, set) in sets {
                let committed = if set.is_empty() {
                    Ok(vec![Committed::Applied { repeated: Vec::new() }])
                } else {
                    self.store.commit(vec![set]).await
                };
                if !matches!(committed.as_deref(), Ok([Committed::Applied { .. }])) {
                    again.extend(members);
                }
            }
            left = again.into_iter().map(|n: usize| left[n].clone()).collect();
        }
        assert!(left.is_empty(), "others are faster all the time");
    }

    async fn decide(&self, inputs: &[Input]) -> Vec<(Vec<usize>, ChangeSet)> {
        let mut wanted = settlement::names(inputs);
        let at = self.at();
        loop {
            let (names, keys) = (wanted.names.iter().cloned(), wanted.keys.iter().cloned());
            let loaded = self.store.load(names.collect(), keys.collect()).await.unwrap();
            match settlement::decide(inputs, &wanted, &loaded, &Terms::of(at, &self.policy)) {
                Err(more) => wanted.extend(more),
                Ok(changes) => {
                    let set = |change: settlement::Change| {
                        assert_eq!(change.refused, None);
                        (change.inputs.clone(), change.into_set(at, || self.seq()))
                    };
                    return changes.into_iter().map(set).collect();
                }
            }
        }
    }

    /// A timer of an order goes off.
    pub async fn fire(&self, kind: &str, id: &str) {
        let part = OrderPart::Deadline(Key::new(Kind::parse(kind).unwrap(), id));
        let reading = Reading { order: vec![part], ..Reading::default() };
        self.settle(&[Input { seq: self.seq(), reading, cause: Cause::system() }]).await;
    }

    /// Takes out the timers that are due, or the first that is not.
    pub fn due(&self, early: bool) -> Vec<(String, String)> {
        let mut written = self.store.written();
        let now = self.now();
        let mut due: Vec<_> = written.timers.iter().filter(|(at, ..)| *at <= now).cloned().collect();
        if early {
            // It stays, and will go off again.
            due.extend(written.timers.iter().find(|(at, ..)| *at > now).cloned());
        }
        written.timers.retain(|(at, ..)| *at > now);
        due.into_iter().map(|(_, kind, id)| (kind, id)).collect()
    }

    pub fn next_timer(&self) -> Option<i64> {
        self.store.written().timers.first().map(|(at, ..)| *at)
    }

    /// One run of a refund's job: look, then make what is missing. Says which refunds were seen, and whether the job is over.
    pub async fn give_back(
        &self,
        call: &RefundCall,
        state: GivingState,
        answer_is_lost: bool,
    ) -> (Vec<String>, bool) {
        let list = || self.till.borrow().list(&call.id);
        let forgets = self.store.planted().forgets_to_look();
        let found = if forgets { Vec::new() } else { list() };
        let listed: Vec<_> =
            found.iter().map(|(_, one)| refund::listed(&to_raw_value(one).unwrap()).unwrap()).collect();
        let ids = |found: &[(String, Value)]| found.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>();
        let facts = self.payment_of(call).await;
        let learn = match refund::next(&facts, call, &listed, self.at()) {
            RefundStep::Over(_) => return (ids(&found), true),
            RefundStep::Wait { .. } => return (ids(&found), false),
            RefundStep::Post { amount } => {
                let mut key = call.idempotency_key();
                if forgets {
                    key += &self.next().to_string();
                }
                self.till.borrow_mut().call(&key, &call.id, amount, &call.order, state);
                if answer_is_lost {
                    return (Vec::new(), false);
                }
                return (ids(&list()), true);
            }
            RefundStep::Met => call.input(self.seq(), |order| order.met = [call.id.clone()].into()),
            RefundStep::Next { amount } => call.input(self.seq(), |order| {
                let currency = sekisho_core::money::Currency::parse("jpy");
                let next = Generation { amount, currency, failed_at: None };
                order.calls = [(call.id.clone(), [(call.generation + 1, next)].into())].into();
            }),
            RefundStep::GiveUp { reason, error } => call.input(self.seq(), |order| {
                order.gave_up = [(call.id.clone(), format!("{reason}: {error}"))].into();
            }),
        };
        self.settle(&[learn]).await;
        (ids(&found), true)
    }

    async fn payment_of(&self, call: &RefundCall) -> Facts {
        let loaded = self.store.load(vec![call.payment_name()], Vec::new()).await.unwrap();
        let mut key = loaded.names.get(&call.payment_name()).cloned();
        while let Some(now) = key {
            let loaded = self.store.load(Vec::new(), vec![now.clone()]).await.unwrap();
            let facts = Facts::parse(&loaded.states[&now].facts).unwrap();
            match &facts.merged_into {
                Some(into) => key = Some(Key::new(Kind::Payment, into)),
                None => return facts,
            }
        }
        Facts::default()
    }

    /// What the API shows now, as JSON.
    pub async fn look(&self, bookings: &[String], halls: &[(String, Option<String>, bool)]) -> Looked {
        use sekisho::queries;
        use sekisho_core::slot::SlotName;
        let (store, policy, at) = (&*self.store, &*self.policy, self.at());
        let mut looked = Looked::default();
        for id in bookings {
            let shown = json!(queries::reservation(store, policy, id, at).await.unwrap());
            if let Some(id) = shown["fulfilment"].as_str() {
                looked
                    .works
                    .insert(id.to_owned(), json!(queries::fulfilment(store, policy, id).await.unwrap()));
            }
            if let Some(payment) = shown["payment"].as_str() {
                let state = queries::payment_state(store, payment).await.unwrap().unwrap();
                looked.payments.insert(id.clone(), json!(sekisho::view::payment(&state).unwrap()));
            }
            looked.bookings.insert(id.clone(), shown);
        }
        for (hall, house, live) in halls {
            let name = SlotName { livemode: *live, tenant: house.clone(), id: hall.clone() };
            looked.halls.push(json!(queries::slot(store, policy, &name.key(), at).await.unwrap()));
        }
        let (cases, log) = {
            let written = self.store.written();
            (written.cases.clone(), written.log.clone())
        };
        for id in cases {
            looked.cases.insert(id.clone(), json!(queries::case(store, policy, &id, at).await.unwrap()));
        }
        for id in log {
            let state = queries::load(store, &Key::new(Kind::Compensation, &*id)).await.unwrap().unwrap();
            looked.log.push(json!(queries::compensation_view(&state).unwrap()));
        }
        looked
    }
}

/// What can be seen from outside, as JSON.
#[derive(Default)]
pub struct Looked {
    pub bookings: std::collections::BTreeMap<String, Value>,
    pub works: std::collections::BTreeMap<String, Value>,
    /// By the booking that they pay.
    pub payments: std::collections::BTreeMap<String, Value>,
    pub halls: Vec<Value>,
    pub cases: std::collections::BTreeMap<String, Value>,
    pub log: Vec<Value>,
}
