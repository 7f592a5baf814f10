//! Making and expiring Checkout Sessions by the provider's API. A run that may not be the first looks for its session before it
//! asks again, so one whose answer was lost is found, also when the provider forgot the idempotency key. What to do next is the
//! core's ([`checkout::next`]); whatever the provider says of a session is joined in the commit that ends the job.

mod learn;
mod order;

use std::sync::Arc;

use sekisho_core::Time;
use sekisho_core::change::{ChangeSet, Ended};
use sekisho_core::event::About;
use sekisho_core::job::{Attempt, CheckoutCall, CheckoutStep, Class, DeadReason, End, Job, Lane, Outcome};
use sekisho_core::queue::{self, Failure, Retry};
use sekisho_core::settlement::checkout::{self, CreateStep, MadeSession};
use sekisho_core::settlement::follow::OrderPolicy;
use sekisho_core::settlement::payment::{SessionGeneration, SessionTry};
use sekisho_core::settlement::{ApiProvider, Change, Input, References, Terms, decide, names};
use sekisho_core::state::Loaded;

use super::accounts::{ApiAccount, ApiAccounts, Use};
use super::fetch::{is_reached, judge_provider, policy};
use super::unwritten;
use crate::config::Config;
use crate::effects::provider_api::{NOT_FOUND, NOT_TAKEN, UNAVAILABLE};
use crate::effects::stripe::{self, Collection, EXPIRES_AT, KEY_REUSED, Paging};
use crate::engine::lane::LanePolicy;
use crate::engine::{Engine, Ran, Work};
use crate::transact::{Decision, transact_in_steps};

/// Calls at once, and in a second.
const AT_ONCE: usize = 8;
const RATE: u32 = 10;
/// A customer waits, so the first come soon; a session is open for a day at most.
const RETRY: Retry =
    Retry { retries: 100, first_ms: 500, factor: 2, cap_ms: 15 * 60_000, jitter_percent: 25 };
/// When it is looked again at what could not be given up, because the store did not answer.
const ABANDON_AGAIN_MS: i64 = 60_000;
/// Sessions that are looked through, and how much before it was asked for: clocks differ.
const LISTED_MAX: usize = 1_000;
const LISTED_BEFORE_MS: i64 = 5 * 60_000;

pub struct SessionMaker {
    accounts: Arc<ApiAccounts>,
    orders: Arc<OrderPolicy>,
    references: References,
}

/// One lane for each provider that has sessions.
pub fn lanes() -> impl Iterator<Item = (Lane, LanePolicy)> {
    let can = ApiProvider::ALL.into_iter().filter(|provider| provider.can_check_out());
    can.map(|provider| (Lane::checkout(provider.name()), policy(AT_ONCE, RATE)))
}

impl SessionMaker {
    pub fn new(config: &Config, accounts: Arc<ApiAccounts>, orders: Arc<OrderPolicy>) -> Self {
        Self { accounts, orders, references: config.references.clone() }
    }

    pub async fn run(&self, engine: &Arc<Engine>, work: &Work, call: &CheckoutCall) -> Result<Ran, Failure> {
        let mut run = Run { of: self, engine, job: &work.job, call, went_well: None, attempt: None };
        let ended = match &call.step {
            CheckoutStep::Create { generation } => run.create(*generation).await,
            CheckoutStep::Expire { session } => run.expire(session).await,
        };
        judge_provider(engine, &work.job.lane, run.went_well);
        let (said, end) = match ended {
            Ok(ended) => ended,
            Err(failure) => run.retry(&failure),
        };
        run.commit(said, end).await?;
        Ok(Ran::Committed)
    }

    /// The end of a job whose session will not be made: a dead letter, and a try that is over.
    pub async fn abandon(
        &self,
        engine: &Engine,
        job: &Job,
        call: &CheckoutCall,
        reason: DeadReason,
    ) -> ChangeSet {
        let at = engine.node.now();
        let about = About { payment: Some(call.payment.clone()), billing: None, tenant: None };
        let end = Ended { about, ..Ended::new(job.lease, End::Dead(reason.clone())) };
        let CheckoutStep::Create { .. } = call.step else {
            return ChangeSet { ends: vec![end], ..ChangeSet::nothing(at) };
        };
        let inputs = [call.input(engine.node.next_seq(at), gave_up(&reason))];
        let mut wanted = names(&inputs);
        loop {
            let (names, keys) = (wanted.names.iter().cloned(), wanted.keys.iter().cloned());
            let Ok(loaded) = engine.store.load(names.collect(), keys.collect()).await else {
                // A store that can't be read just now must not make it forgotten.
                let due_at = at.plus_ms(ABANDON_AGAIN_MS);
                return ChangeSet::end(job.lease, End::Wait { due_at }, at);
            };
            match decide(&inputs, &wanted, &loaded, &Terms::of(at, &self.orders)) {
                Err(more) => wanted.extend(more),
                Ok(changes) => {
                    let change = changes.into_iter().next().filter(|change| change.refused.is_none());
                    let set = change.unwrap_or_default().into_set(at, || engine.node.next_seq(at));
                    return ChangeSet { ends: vec![end], ..set };
                }
            }
        }
    }
}

fn gave_up(reason: &DeadReason) -> SessionTry {
    let gave_up = Some(format!("{}: {}", reason.reason, reason.error));
    SessionTry { gave_up, ..SessionTry::default() }
}

fn skip(note: &str) -> Outset {
    (Vec::new(), End::Done(Outcome::Skipped { note: note.to_owned() }))
}

/// What a run has learnt, and how it ends.
type Outset = (Vec<Input>, End);

/// One run of the job.
struct Run<'r> {
    of: &'r SessionMaker,
    engine: &'r Arc<Engine>,
    job: &'r Job,
    call: &'r CheckoutCall,
    /// Whether the provider was reached by the last call, if one was made.
    went_well: Option<bool>,
    attempt: Option<Attempt>,
}

impl Run<'_> {
    async fn create(&mut self, generation: u32) -> Result<Outset, Failure> {
        let (facts, reservation) = self.load().await?;
        let Some(one) = facts.session_tries.get(&self.call.number) else {
            return Ok(skip("the payment has no such try any more"));
        };
        let Some(account) = self.of.accounts.named(&one.wish.source) else {
            let error = format!("the source {} has no api_key any more", one.wish.source);
            return Ok(self.give_up(&DeadReason::terminal("no_api_key", error)));
        };
        let Some(client) = account.stripe(None) else {
            let error = format!("the source {} makes no sessions", one.wish.source);
            return Ok(self.give_up(&DeadReason::terminal("no_session_made", error)));
        };
        if let Some(due_at) = account.left_until(Use::Checkout, self.now()) {
            return Ok((Vec::new(), End::Wait { due_at }));
        }
        let was_asked = self.job.lease.attempt > 1;
        if was_asked && one.sessions.is_empty() {
            match self.look_for(&client, one.wish.at).await {
                Ok(Some(found)) => return self.learn(&found, None),
                Ok(None) => {}
                Err(failure) => return self.failed(account, &failure).await,
            }
        }
        let expires_at = match checkout::next(&facts, self.call, generation, was_asked, self.now()) {
            CreateStep::Post { expires_at } => expires_at,
            step => return Ok(self.take(step)),
        };
        let Some(new) = self.request(&facts, one, reservation.as_ref(), expires_at) else {
            let reason =
                DeadReason::terminal("no_session_made", "nobody said what it costs, or where to go then");
            return Ok(self.give_up(&reason));
        };
        let answer = client.create_session(&new, &self.call.idempotency_key(), self.now()).await;
        let is_replayed = answer.is_replayed;
        match self.note(answer) {
            Ok(made) => {
                account.judge(&self.engine.base(), Use::Checkout, None).await;
                self.learn(&made, None)
            }
            // Nothing was made under this key, or not what is wanted now.
            Err(failure) if [EXPIRES_AT, KEY_REUSED].contains(&failure.reason) => {
                Ok(self.take(checkout::another(&facts, self.call, self.now())))
            }
            // The provider keeps the failure under the key: it will say the same again, whatever it did.
            Err(failure) if failure.reason == UNAVAILABLE && is_replayed => {
                let kept = one.generations.get(&generation).cloned().unwrap_or_default();
                let failed_at = Some(kept.failed_at.unwrap_or(self.now()));
                let said = self.said(generation, SessionGeneration { failed_at, ..kept });
                Ok((said, End::Wait { due_at: self.now() }))
            }
            Err(failure) => self.failed(account, &failure).await,
        }
    }

    /// A step that asks nothing more of the provider.
    fn take(&self, step: CreateStep) -> Outset {
        match step {
            CreateStep::Over(note) => skip(note),
            CreateStep::Drop => {
                let reason = DeadReason::terminal("not_needed", "nobody waits for it any more");
                let said = self.call.input(self.seq(), gave_up(&reason));
                (vec![said], End::Done(Outcome::Skipped { note: reason.error }))
            }
            CreateStep::Next(generation) => {
                let CheckoutStep::Create { generation: own } = self.call.step else {
                    unreachable!("only what is made has generations")
                };
                let note = "another call takes its place".to_owned();
                (self.said(own + 1, generation), End::Done(Outcome::Skipped { note }))
            }
            CreateStep::Wait { until } => (Vec::new(), End::Wait { due_at: until }),
            CreateStep::GiveUp { reason, error } => self.give_up(&DeadReason::terminal(reason, error)),
            CreateStep::Post { .. } => unreachable!("it asks the provider"),
        }
    }

    /// The session of this try, among those that were made since it was asked for.
    async fn look_for(
        &mut self,
        client: &stripe::Client,
        since: Time,
    ) -> Result<Option<stripe::ApiObject>, Failure> {
        let created_since = Some(since.plus_ms(-LISTED_BEFORE_MS));
        let mut paging = Paging { created_since, ..Paging::default() };
        let (label, mut seen) = (self.call.label(), 0);
        loop {
            let answer = client.list(Collection::CheckoutSessions, &paging, self.now()).await;
            let page = self.note(answer)?;
            let older = page.older().filter(|_| page.has_more);
            seen += page.data.len();
            let is_ours = |one: &stripe::ApiObject| {
                MadeSession::read(one.get()).is_some_and(|made| made.label.as_deref() == Some(&*label))
            };
            if let Some(found) = page.data.into_iter().find(is_ours) {
                return Ok(Some(found));
            }
            // Where so many are made, the key alone must do.
            let Some(cursor) = older.filter(|_| seen < LISTED_MAX) else { return Ok(None) };
            paging.cursor = cursor;
        }
    }

    /// Asks every account that may know the session, until one does.
    async fn expire(&mut self, session: &str) -> Result<Outset, Failure> {
        let (facts, _) = self.load().await?;
        let one = facts.session_tries.get(&self.call.number);
        if !one.is_some_and(|one| facts.open_of(one).any(|open| open == session)) {
            return Ok(skip("nobody can pay it any more"));
        }
        let own = one.map(|one| one.wish.source.as_str()).unwrap_or_default();
        let mut wait_until = None::<Time>;
        let known = || self.of.accounts.of(self.call.provider, self.call.livemode);
        let accounts: Vec<&ApiAccount> =
            known().filter(|one| one.source == own).chain(known().filter(|one| one.source != own)).collect();
        for account in accounts {
            let Some(client) = account.stripe(None) else { continue };
            if let Some(until) = account.left_until(Use::Checkout, self.now()) {
                wait_until = Some(wait_until.map_or(until, |other| other.min(until)));
                continue;
            }
            let answer = client.expire_session(session, &self.call.idempotency_key(), self.now()).await;
            match self.note(answer) {
                Ok(expired) => {
                    account.judge(&self.engine.base(), Use::Checkout, None).await;
                    return self.learn(&expired, None);
                }
                Err(failure) if failure.reason == NOT_FOUND => {}
                // It was complete, or expired by itself: what it is now decides.
                Err(failure) if failure.reason == NOT_TAKEN => {
                    return self.read(&client, account, session).await;
                }
                Err(failure) => return self.failed(account, &failure).await,
            }
        }
        if let Some(due_at) = wait_until {
            return Ok((Vec::new(), End::Wait { due_at }));
        }
        let (reason, error) = match self.went_well {
            Some(_) => ("object_not_found", format!("no account knows {session}")),
            None => ("no_api_key", "no source has an api_key for it any more".to_owned()),
        };
        Ok((Vec::new(), End::Dead(DeadReason::terminal(reason, error))))
    }

    /// What a session is that could not be expired, with the intent that its money comes by.
    async fn read(
        &mut self,
        client: &stripe::Client,
        account: &ApiAccount,
        session: &str,
    ) -> Result<Outset, Failure> {
        let answer = client.retrieve(Collection::CheckoutSessions, session, self.now()).await;
        let found = match self.note(answer) {
            Ok(found) => found,
            Err(failure) => return self.failed(account, &failure).await,
        };
        let read = MadeSession::read(found.get());
        if read.as_ref().is_none_or(|read| read.is_open) {
            return Err(Failure::transient("broken", format!("{session} could not be expired, and is open")));
        }
        let mut intent = None;
        if let Some(id) = read.and_then(|read| read.intent) {
            let answer = client.retrieve(Collection::PaymentIntents, &id, self.now()).await;
            // Without it the money is waited for.
            intent = self.note(answer).ok().map(|found| (id, found));
        }
        self.learn(&found, intent.as_ref())
    }

    async fn failed(&self, account: &ApiAccount, failure: &Failure) -> Result<Outset, Failure> {
        if let Some(due_at) = account.judge(&self.engine.base(), Use::Checkout, Some(failure)).await {
            return Ok((Vec::new(), End::Wait { due_at }));
        }
        // Whatever the provider says of a retry: the next run looks first.
        let class = if failure.reason == UNAVAILABLE { Class::Transient } else { failure.class };
        Err(Failure { class, ..failure.clone() })
    }

    /// How a run ends that failed, inside or at the provider: once more, or before a person.
    fn retry(&self, failure: &Failure) -> Outset {
        let (tries, salt) = (self.job.tries(), self.job.lease.job.as_i64() as u64);
        match queue::after(failure, &RETRY, tries, salt, self.now()) {
            End::Dead(reason) => self.give_up(&reason),
            end => (Vec::new(), end),
        }
    }

    fn give_up(&self, reason: &DeadReason) -> Outset {
        let is_made = matches!(self.call.step, CheckoutStep::Create { .. });
        let said = is_made.then(|| self.call.input(self.seq(), gave_up(reason)));
        (said.into_iter().collect(), End::Dead(reason.clone()))
    }

    fn said(&self, n: u32, generation: SessionGeneration) -> Vec<Input> {
        let generations = [(n, generation)].into();
        vec![self.call.input(self.seq(), SessionTry { generations, ..SessionTry::default() })]
    }

    /// Joins what was learnt with what is known, and ends the job; again, when others were faster.
    async fn commit(&self, inputs: Vec<Input>, end: End) -> Result<(), Failure> {
        let can_fetch = |realm: &str| self.of.accounts.can_fetch(realm);
        let mut wanted = names(&inputs);
        let ended = transact_in_steps(&*self.engine.store, wanted.clone(), |loaded: &Loaded| {
            let at = self.now();
            let terms = Terms { can_fetch: &can_fetch, ..Terms::of(at, &self.of.orders) };
            match decide(&inputs, &wanted, loaded, &terms) {
                Ok(changes) => Ok(Decision::Write(self.end(changes.into_iter().next(), &end, at), ())),
                Err(more) => {
                    wanted.extend(more.clone());
                    Ok(Decision::Load(more))
                }
            }
        });
        ended.await.map_err(|error| unwritten(error, "others changed the same order all the time"))
    }

    fn end(&self, change: Option<Change>, end: &End, at: Time) -> ChangeSet {
        let (refused, set) = match change {
            None => (None, ChangeSet::nothing(at)),
            Some(change) if change.refused.is_some() => (change.refused, ChangeSet::nothing(at)),
            Some(change) => (None, change.into_set(at, || self.engine.node.next_seq(at))),
        };
        let end = refused
            .map_or_else(|| end.clone(), |why| End::Dead(DeadReason::terminal("unreadable_state", why)));
        let about = About { payment: Some(self.call.payment.clone()), billing: None, tenant: None };
        let ended = Ended { about, attempt: self.attempt.clone(), ..Ended::new(self.job.lease, end) };
        ChangeSet { ends: vec![ended], ..set }
    }

    fn note<T>(&mut self, call: stripe::ApiCall<T>) -> Result<T, Failure> {
        self.went_well = Some(is_reached(call.result.as_ref().err()));
        self.attempt = Some(call.attempt);
        call.result
    }

    fn now(&self) -> Time {
        self.engine.node.now()
    }

    fn seq(&self) -> sekisho_core::Seq {
        self.engine.node.next_seq(self.now())
    }
}
