//! Places that are asked for. Requests wait as webhooks do: whoever is free takes all that came meanwhile, decides them
//! together and commits them at once, so a hundred holds of one slot cost one version of it and not a hundred. Probes go the
//! same way.

mod answers;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sekisho_core::change::{ChangeSet, Committed};
use sekisho_core::reservation::ReservationFacts;
use sekisho_core::settlement::follow::{HoldProbe, OrderPart, OrderPolicy, view};
use sekisho_core::settlement::{Cause, Change, Input, Reading, Terms, decide, names, order};
use sekisho_core::slot::Full;
use sekisho_core::state::{Key, Kind, Loaded, Wanted};
use sekisho_core::{Seq, Time};
use sekisho_store::Store;
use serde_json::Value;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::Instant;

use super::request::{Answered, OnceKey};
use super::reservation::HoldDraft;
use crate::env::Env;
use crate::refusal::{Refusal, Result};
use crate::telemetry::OrderFigures;
use crate::transact::transact_apart;
use answers::AnswerWindow;

/// Holds that are decided together.
const BATCH: usize = 256;
/// Holds that may wait; more are told to come again.
const WAITING_MAX: usize = 4_096;
/// Batches under way at once: while one is written, the next is decided.
const AT_ONCE: usize = 2;
/// How often they are decided again together because others were faster; then each goes alone, so often.
const ROUNDS_TOGETHER: usize = 3;
const ROUNDS_ALONE: usize = 10;
const PAUSE: Duration = Duration::from_millis(5);

/// Where holds wait. Cheap to clone.
#[derive(Clone)]
pub struct Holds(Arc<Inner>);

struct Inner {
    env: Env,
    figures: Option<OrderFigures>,
    answers: AnswerWindow,
    waiting: Mutex<Vec<Waiting>>,
    hands: Arc<Semaphore>,
}

struct Waiting {
    wanted: Wish,
    at: Time,
    answer: oneshot::Sender<Result<Answered>>,
}

/// What somebody waits for.
enum Wish {
    Places(Box<HoldDraft>, Option<OnceKey>),
    Probe(HoldProbe),
}

impl Wish {
    fn request(&self) -> Option<&OnceKey> {
        match self {
            Self::Places(_, request) => request.as_ref(),
            Self::Probe(_) => None,
        }
    }

    /// What no two may be asked for under at once.
    fn claim(&self) -> Option<String> {
        match self {
            Self::Places(draft, _) => draft.claim(),
            Self::Probe(_) => None,
        }
    }

    fn input(&self, seq: Seq) -> Input {
        match self {
            Self::Places(draft, _) => draft.input(seq),
            Self::Probe(probe) => {
                let reading = Reading { order: vec![OrderPart::Probe(probe.clone())], ..Reading::default() };
                Input { seq, reading, cause: Cause::system() }
            }
        }
    }
}

/// What a probe does to its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeStep {
    Take,
    GiveBack,
}

impl Holds {
    pub fn new(env: Env, figures: Option<OrderFigures>) -> Self {
        let hands = Arc::new(Semaphore::new(AT_ONCE));
        let answers = AnswerWindow::default();
        Self(Arc::new(Inner { env, figures, answers, waiting: Mutex::default(), hands }))
    }

    /// How the requests about reservations were answered lately.
    pub fn answers(&self) -> &AnswerWindow {
        &self.0.answers
    }

    /// Takes a place that nobody sees, or gives it back, as any request for places.
    pub async fn probe(
        &self,
        store: &Arc<dyn Store>,
        policy: &Arc<OrderPolicy>,
        by: &str,
        step: ProbeStep,
        at: Time,
    ) -> Result<()> {
        let probe = HoldProbe { by: by.to_owned(), takes: step == ProbeStep::Take };
        self.wait(store, policy, Wish::Probe(probe), at).await.map(drop)
    }

    /// Asks for places, and waits for the answer.
    pub async fn hold(
        &self,
        store: &Arc<dyn Store>,
        policy: &Arc<OrderPolicy>,
        draft: HoldDraft,
        request: Option<OnceKey>,
        at: Time,
    ) -> Result<Answered> {
        let began = Instant::now();
        let answer = self.wait(store, policy, Wish::Places(Box::new(draft), request), at).await;
        if let Some(figures) = &self.0.figures {
            figures.held(answer.as_ref().map(drop), began.elapsed());
        }
        answer
    }

    async fn wait(
        &self,
        store: &Arc<dyn Store>,
        policy: &Arc<OrderPolicy>,
        wanted: Wish,
        at: Time,
    ) -> Result<Answered> {
        let (answer, answered) = oneshot::channel();
        {
            let mut waiting = self.0.waiting.lock().expect("no code panics here");
            if waiting.len() >= WAITING_MAX {
                return Err(busy());
            }
            waiting.push(Waiting { wanted, at, answer });
        }
        self.set_to_work(store, policy);
        answered.await.unwrap_or_else(|_| Err(busy()))
    }

    /// Has a free hand take what waits. What was taken is finished, whether or not its callers still wait.
    fn set_to_work(&self, store: &Arc<dyn Store>, policy: &Arc<OrderPolicy>) {
        let Ok(hand) = Arc::clone(&self.0.hands).try_acquire_owned() else { return };
        let (holds, store, policy) = (self.clone(), Arc::clone(store), Arc::clone(policy));
        self.0.env.spawn(async move {
            loop {
                let batch = holds.take();
                if batch.is_empty() {
                    break;
                }
                work(&*store, &holds.0.env, &policy, batch).await;
            }
            drop(hand);
            // Who came between the last look and now found all hands at work.
            if !holds.0.waiting.lock().expect("no code panics here").is_empty() {
                holds.set_to_work(&store, &policy);
            }
        });
    }

    fn take(&self) -> Vec<Waiting> {
        let mut waiting = self.0.waiting.lock().expect("no code panics here");
        let count = waiting.len().min(BATCH);
        waiting.drain(..count).collect()
    }
}

fn busy() -> Refusal {
    Refusal::RetryLater {
        detail: "too many reservations are being made at once; try again".into(),
        seconds: 1,
    }
}

async fn work(store: &dyn Store, env: &Env, policy: &OrderPolicy, batch: Vec<Waiting>) {
    let mut left = batch;
    for _ in 0..ROUNDS_TOGETHER {
        if left.is_empty() {
            return;
        }
        left = round(store, env, policy, left).await;
    }
    for waiting in left {
        let mut again = vec![waiting];
        for n in 0..ROUNDS_ALONE {
            again = round(store, env, policy, again).await;
            if again.is_empty() {
                break;
            }
            tokio::time::sleep(PAUSE * (n as u32 + 1)).await;
        }
        again.into_iter().for_each(|waiting| drop(waiting.answer.send(Err(busy()))));
    }
}

/// One of a round: as an input, and what became of it.
struct Entry {
    input: Input,
    /// What is answered once its set is written.
    answer: Option<Result<Answered>>,
}

/// Decides and commits what waits; gives back what must be decided again.
async fn round(store: &dyn Store, env: &Env, policy: &OrderPolicy, waiting: Vec<Waiting>) -> Vec<Waiting> {
    // Two that name one thing can't be decided together: the second must see the first.
    let (mut claimed, mut later, mut now) = (BTreeSet::new(), Vec::new(), Vec::new());
    for one in waiting {
        let names = one.wanted.claim().into_iter().chain(one.wanted.request().map(|one| one.key().id));
        let names: Vec<String> = names.collect();
        if names.iter().any(|name| claimed.contains(name)) {
            later.push(one);
        } else {
            claimed.extend(names);
            now.push(one);
        }
    }
    let mut entries: Vec<Entry> = now
        .iter()
        .map(|one| Entry { input: one.wanted.input(env.fresh_seq(one.at)), answer: None })
        .collect();
    let inputs: Vec<Input> = entries.iter().map(|entry| entry.input.clone()).collect();
    let mut wanted = names(&inputs);
    for (one, input) in now.iter().zip(&inputs) {
        wanted.extend(Wanted::keys(one.wanted.request().map(OnceKey::key)));
        wanted.extend(Wanted::keys(new_keys(input)));
    }
    let decided = transact_apart(store, wanted, |wanted, loaded| {
        decide_all(&now, &mut entries, wanted, loaded, (env, policy))
    })
    .await;
    let mut again: BTreeSet<usize> = BTreeSet::new();
    match decided {
        Ok(answers) => {
            for (members, committed) in answers {
                if !matches!(committed, Committed::Applied { .. }) {
                    again.extend(members);
                }
            }
        }
        Err(error) => {
            let detail = error.chain();
            for entry in &mut entries {
                entry.answer = Some(Err(Refusal::Store(sekisho_store::Error::unavailable(detail.clone()))));
            }
        }
    }
    for (n, (one, entry)) in now.into_iter().zip(entries).enumerate() {
        match entry.answer {
            Some(answer) if !again.contains(&n) => drop(one.answer.send(answer)),
            _ => later.push(one),
        }
    }
    later
}

/// What each asks for, as sets that can be written apart. Those that are answered already are in none.
fn decide_all(
    waiting: &[Waiting],
    entries: &mut [Entry],
    wanted: &Wanted,
    loaded: &Loaded,
    (env, policy): (&Env, &OrderPolicy),
) -> std::result::Result<Vec<(ChangeSet, Vec<usize>)>, Wanted> {
    let (mut places, mut inputs) = (Vec::new(), Vec::new());
    for (n, (one, entry)) in waiting.iter().zip(entries.iter_mut()).enumerate() {
        entry.answer = answered_before(one, entry, loaded);
        let is_id_taken = new_keys(&entry.input).any(|key| loaded.states.contains_key(&key));
        if entry.answer.is_none() && !is_id_taken {
            places.push(n);
            inputs.push(entry.input.clone());
        }
    }
    let Some(at) = waiting.iter().map(|one| one.at).max() else { return Ok(Vec::new()) };
    let changes = decide(&inputs, wanted, loaded, &Terms::of(at, policy))?;
    let mut sets = Vec::new();
    for change in changes {
        let members: Vec<usize> = change.inputs.iter().map(|n| places[*n]).collect();
        for (place, n) in change.inputs.iter().zip(&members) {
            let declined = change.declined.iter().find(|(declined, _)| declined == place);
            entries[*n].answer =
                Some(answer(&change, &entries[*n].input, declined.map(|(_, full)| *full), at, policy));
        }
        let mut set = change.into_set(at, || env.fresh_seq(at));
        for n in &members {
            let request = waiting[*n].wanted.request();
            if let (Some(request), Some(Ok(answered))) = (request, &entries[*n].answer) {
                set.writes.push(request.write(&answered.answer));
            }
        }
        sets.push((set, members));
    }
    Ok(sets)
}

/// The first answer, of what was asked for before; or why its reference can't be had.
fn answered_before(one: &Waiting, entry: &Entry, loaded: &Loaded) -> Option<Result<Answered>> {
    match OnceKey::repeated(one.wanted.request(), loaded) {
        Ok(None) => {}
        Ok(Some(answered)) => return Some(Ok(answered)),
        Err(refusal) => return Some(Err(refusal)),
    }
    let taken = order::taken(&entry.input, loaded)?;
    let reference = match &one.wanted {
        Wish::Places(draft, _) => draft.reference().unwrap_or_default(),
        Wish::Probe(_) => "",
    };
    Some(Err(Refusal::Conflict(format!("the reference {reference:?} belongs to {}", taken.id))))
}

/// The ids that it would have.
fn new_keys(input: &Input) -> impl Iterator<Item = Key> {
    let hold = input.reading.hold();
    let reservation = hold.map(|hold| Key::new(Kind::Reservation, &*hold.id));
    let payment = hold.and_then(|hold| hold.reservation.ours.payment.clone());
    reservation.into_iter().chain(payment.map(|id| Key::new(Kind::Payment, id)))
}

fn answer(
    change: &Change,
    input: &Input,
    full: Option<Full>,
    at: Time,
    policy: &OrderPolicy,
) -> Result<Answered> {
    if let Some(full) = full {
        let seconds =
            full.free_at.map(|free_at| (free_at.ms() - at.ms()).max(0).unsigned_abs().div_ceil(1_000));
        return Err(Refusal::Full { free: full.free, retry_after_seconds: seconds });
    }
    if let Some(refused) = &change.refused {
        return Err(Refusal::Conflict(refused.clone()));
    }
    // A probe asks for no reservation.
    let Some(hold) = input.reading.hold() else {
        return Ok(Answered { answer: Value::Null, repeated: false });
    };
    let key = Key::new(Kind::Reservation, &*hold.id);
    let write = change.writes.iter().find(|write| write.key == key);
    let write = write.ok_or_else(|| Refusal::Conflict("nothing would change".into()))?;
    let facts: ReservationFacts =
        serde_json::from_str(&write.facts).map_err(sekisho_store::Error::corrupt)?;
    let answer: Value = view::reservation_with_link(&hold.id, &facts, at, policy);
    Ok(Answered { answer, repeated: false })
}
