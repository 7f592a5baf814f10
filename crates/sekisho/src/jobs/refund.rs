//! Giving money back by the provider's API. Each run first asks which refunds there are, then makes the one that is missing:
//! so a refund whose answer was lost is found, and none is made twice. What to do next is the core's
//! ([`refund::next`]); every refund that is seen goes in as an event, and is settled like any other.

use std::sync::Arc;

use sekisho_core::Time;
use sekisho_core::change::{Arrival, ChangeSet, Ended};
use sekisho_core::event::About;
use sekisho_core::job::{Attempt, Class, DeadReason, End, Job, Lane, Outcome};
use sekisho_core::queue::{self, Failure, Retry};
use sekisho_core::settlement::follow::OrderPolicy;
use sekisho_core::settlement::payment::{Facts, Generation, RefundOrder};
use sekisho_core::settlement::refund::{self, Listed, RefundStep};
use sekisho_core::settlement::{self, ApiProvider, Fetch, RefundCall, Terms};
use sekisho_core::state::{Key, Kind, Wanted};

use super::accounts::{ApiAccount, ApiAccounts, Use};
use super::fetch::{is_reached, judge_provider, policy};
use super::unavailable;
use crate::effects::provider_api::{NOT_FOUND, UNAVAILABLE};
use crate::effects::stripe::{self, Paging, RefundRequest, RefundsOf};
use crate::engine::lane::LanePolicy;
use crate::engine::{Engine, Ran, Work};

/// Calls at once, and in a second.
const AT_ONCE: usize = 4;
const RATE: u32 = 10;
/// A refund is worth about three days of trying.
const RETRY: Retry =
    Retry { retries: 300, first_ms: 2_000, factor: 2, cap_ms: 15 * 60_000, jitter_percent: 25 };
/// When it is looked again at what could not be given up, because the store did not answer.
const ABANDON_AGAIN_MS: i64 = 60_000;
/// Refunds of one object that are looked through.
const LISTED_MAX: usize = 1_000;
/// What Stripe passes on as a reason. Others are kept here alone: `fraudulent` would also block the customer there.
const REASONS: [&str; 2] = ["requested_by_customer", "duplicate"];

/// The provider knows better how much is left: what it lists is looked at once more.
const LOOK_AGAIN: [&str; 2] = ["stripe_already_refunded", "stripe_amount"];
const DISPUTED: &str = "stripe_disputed";

pub struct Refunder {
    accounts: Arc<ApiAccounts>,
    orders: Arc<OrderPolicy>,
}

/// One lane for each provider that can give money back.
pub fn lanes() -> impl Iterator<Item = (Lane, LanePolicy)> {
    let can = ApiProvider::ALL.into_iter().filter(|provider| provider.can_refund());
    can.map(|provider| (Lane::refund(provider.name()), policy(AT_ONCE, RATE)))
}

impl Refunder {
    pub fn new(accounts: Arc<ApiAccounts>, orders: Arc<OrderPolicy>) -> Self {
        Self { accounts, orders }
    }

    /// Asks every account that may know the object, until one does.
    pub async fn run(&self, engine: &Arc<Engine>, work: &Work, call: &RefundCall) -> Result<Ran, Failure> {
        let mut run =
            Run { engine, orders: &self.orders, job: &work.job, call, went_well: None, attempt: None };
        let (mut ended, mut wait_until) = (None, None::<Time>);
        for account in self.accounts.of(call.provider, call.livemode).filter(|account| account.refunds) {
            let asked = match account.left_until(Use::Refund, engine.node.now()) {
                Some(until) => Ok(Asked::Refused(until)),
                None => run.ask(account).await,
            };
            match asked {
                Ok(Asked::Elsewhere) => {}
                Ok(Asked::Refused(until)) => {
                    wait_until = Some(wait_until.map_or(until, |other| other.min(until)));
                }
                Ok(Asked::Ended(set)) => ended = Some(set),
                Err(failure) => ended = Some(run.retry(&failure).await),
            }
            if ended.is_some() {
                break;
            }
        }
        judge_provider(engine, &work.job.lane, run.went_well);
        let set = match (ended, wait_until) {
            (Some(ended), _) => ended,
            // The key will be mended, or its rights: that spends no try.
            (None, Some(due_at)) => run.end(End::Wait { due_at }),
            (None, None) => run.nobody_knows_it().await,
        };
        Ok(Ran::Ended(match run.attempt {
            Some(attempt) => set.with_attempt(attempt),
            None => set,
        }))
    }
}

/// What one account answered.
enum Asked {
    /// The object is another account's.
    Elsewhere,
    /// Its key is refused until then.
    Refused(Time),
    Ended(ChangeSet),
}

/// One run of the job.
struct Run<'r> {
    engine: &'r Arc<Engine>,
    orders: &'r OrderPolicy,
    job: &'r Job,
    call: &'r RefundCall,
    /// Whether the provider was reached by the last call, if one was made.
    went_well: Option<bool>,
    attempt: Option<Attempt>,
}

impl Run<'_> {
    async fn ask(&mut self, account: &ApiAccount) -> Result<Asked, Failure> {
        let Some(client) = account.stripe(self.call.account.as_deref()) else { return Ok(Asked::Elsewhere) };
        for is_second_look in [false, true] {
            let found = match self.list(&client).await {
                Ok(found) => found,
                Err(failure) if failure.reason == NOT_FOUND => {
                    account.judge(&self.engine.base(), Use::List, Some(&failure)).await;
                    return Ok(Asked::Elsewhere);
                }
                Err(failure) => return Ok(self.failed(account, &failure).await),
            };
            // That it may look says nothing of what else it may do.
            account.judge(&self.engine.base(), Use::List, None).await;
            let facts = load(self.engine, self.call).await?;
            let amount = match refund::next(&facts, self.call, &listed(&found)?, self.engine.node.now()) {
                RefundStep::Post { amount } => amount,
                step => {
                    let mut set = self.take(step, &facts).await?;
                    set.events.extend(self.arrivals(&found));
                    return Ok(Asked::Ended(set));
                }
            };
            let new = new_refund(&facts, self.call, amount);
            let key = self.call.idempotency_key();
            let answer = client.create_refund(&new, &key, self.engine.node.now()).await;
            let is_replayed = answer.is_replayed;
            let failure = match self.note(answer) {
                Ok(made) => {
                    account.judge(&self.engine.base(), Use::Refund, None).await;
                    let is_ours = |one: Listed| one.order.as_deref() == Some(&self.call.order);
                    if !refund::listed(&made).is_some_and(is_ours) {
                        let error = "the answer is no refund of this order";
                        return Err(Failure::transient("broken", error));
                    }
                    let events = self.arrivals(&[made]);
                    return Ok(Asked::Ended(ChangeSet { events, ..self.end(End::Done(Outcome::SUCCESS)) }));
                }
                Err(failure) => failure,
            };
            return Ok(match failure.reason {
                reason if LOOK_AGAIN.contains(&reason) && !is_second_look => continue,
                DISPUTED => {
                    let reason = DeadReason::terminal("charge_disputed", failure.error);
                    Asked::Ended(self.abandon(reason).await)
                }
                UNAVAILABLE if is_replayed => Asked::Ended(self.keep_failure(&facts).await?),
                _ => self.failed(account, &failure).await,
            });
        }
        unreachable!("the second look ends")
    }

    /// All refunds of the object.
    async fn list(&mut self, client: &stripe::Client) -> Result<Vec<stripe::ApiObject>, Failure> {
        let id = &self.call.id;
        let of = match &*self.call.object {
            "charge" => RefundsOf::Charge(id.clone()),
            _ => RefundsOf::PaymentIntent(id.clone()),
        };
        let (mut found, mut paging) = (Vec::new(), Paging::default());
        loop {
            let answer = client.refunds(&of, &paging, self.engine.node.now()).await;
            let page = self.note(answer)?;
            let older = page.older().filter(|_| page.has_more);
            found.extend(page.data);
            let Some(cursor) = older else { return Ok(found) };
            if found.len() >= LISTED_MAX {
                let error = format!("{id} has more than {LISTED_MAX} refunds");
                return Err(Failure::terminal("too_many_refunds", error));
            }
            paging.cursor = cursor;
        }
    }

    /// A step that asks nothing more of the provider.
    async fn take(&self, step: RefundStep, facts: &Facts) -> Result<ChangeSet, Failure> {
        match step {
            RefundStep::Over(note) => Ok(self.end(End::Done(Outcome::Skipped { note: note.to_owned() }))),
            RefundStep::Met => {
                let met = [self.call.id.clone()].into();
                let set = decided(self.engine, self.orders, self.call, |order| order.met = met).await?;
                let note = "nothing is left: others refunded it".to_owned();
                let end = End::Done(Outcome::Skipped { note });
                Ok(ChangeSet { ends: vec![Ended::new(self.job.lease, end)], ..set })
            }
            RefundStep::Wait { until } => Ok(self.end(End::Wait { due_at: until })),
            RefundStep::Next { amount } => {
                let currency = self.generation(facts).and_then(|call| call.currency);
                let next = Generation { amount, currency, failed_at: None };
                let note = "another call takes its place";
                let end = End::Done(Outcome::Skipped { note: note.to_owned() });
                self.learn(self.call.generation + 1, next, end).await
            }
            RefundStep::GiveUp { reason, error } => {
                let reason = DeadReason::terminal(reason, error);
                Ok(self.abandon(reason).await)
            }
            RefundStep::Post { .. } => unreachable!("it asks the provider"),
        }
    }

    /// The provider keeps a failure under the key: it will say the same again, whatever it did.
    async fn keep_failure(&self, facts: &Facts) -> Result<ChangeSet, Failure> {
        let now = self.engine.node.now();
        let kept = self.generation(facts).cloned().unwrap_or_default();
        let failed = Generation { failed_at: Some(kept.failed_at.unwrap_or(now)), ..kept };
        self.learn(self.call.generation, failed, End::Wait { due_at: now }).await
    }

    fn generation<'f>(&self, facts: &'f Facts) -> Option<&'f Generation> {
        facts.refund_orders.get(&self.call.order)?.calls.get(&self.call.id)?.get(&self.call.generation)
    }

    /// Writes down what is known of a generation of this call, together with the end of the run.
    async fn learn(&self, n: u32, generation: Generation, end: End) -> Result<ChangeSet, Failure> {
        let calls = [(self.call.id.clone(), [(n, generation)].into())].into();
        let mut set = decided(self.engine, self.orders, self.call, |order| order.calls = calls).await?;
        set.jobs.iter_mut().for_each(|job| job.event = self.job.event);
        Ok(ChangeSet { ends: vec![Ended::new(self.job.lease, end)], ..set })
    }

    async fn failed(&self, account: &ApiAccount, failure: &Failure) -> Asked {
        if let Some(until) = account.judge(&self.engine.base(), Use::Refund, Some(failure)).await {
            return Asked::Refused(until);
        }
        // Whatever the provider says of a retry: the next run looks first.
        let class = if failure.reason == UNAVAILABLE { Class::Transient } else { failure.class };
        Asked::Ended(self.retry(&Failure { class, ..failure.clone() }).await)
    }

    /// How a run ends that failed, inside or at the provider: once more, or before a person.
    async fn retry(&self, failure: &Failure) -> ChangeSet {
        let (tries, salt) = (self.job.tries(), self.job.lease.job.as_i64() as u64);
        match queue::after(failure, &RETRY, tries, salt, self.engine.node.now()) {
            End::Dead(reason) => self.abandon(reason).await,
            end => self.end(end),
        }
    }

    async fn nobody_knows_it(&self) -> ChangeSet {
        let reason = if self.went_well.is_some() {
            let error = format!("no account that may refund knows {}", self.call.id);
            DeadReason::terminal("object_not_found", error)
        } else {
            let error = "no source that may know it has refunds = true any more";
            DeadReason::terminal("refunds_not_allowed", error)
        };
        self.abandon(reason).await
    }

    async fn abandon(&self, reason: DeadReason) -> ChangeSet {
        abandon(self.engine, self.orders, self.job, self.call, reason).await
    }

    fn end(&self, end: End) -> ChangeSet {
        ChangeSet::end(self.job.lease, end, self.engine.node.now())
    }

    fn note<T>(&mut self, call: stripe::ApiCall<T>) -> Result<T, Failure> {
        self.went_well = Some(is_reached(call.result.as_ref().err()));
        self.attempt = Some(call.attempt);
        call.result
    }

    /// The refunds that were seen, each as an event. The store leaves out those that came before.
    fn arrivals(&self, refunds: &[stripe::ApiObject]) -> Vec<Arrival> {
        let (call, now) = (self.call, self.engine.node.now());
        let event = |refund: &stripe::ApiObject| {
            let fetch = Fetch {
                provider: call.provider,
                account: call.account.clone(),
                livemode: call.livemode,
                object: "refund".into(),
                id: refund::listed(refund)?.id,
                after_days: 0,
                moment: None,
                trace: None,
            };
            Some(fetch.arrival(self.engine.node.next_seq(now), now, refund))
        };
        refunds.iter().filter_map(event).collect()
    }
}

/// The end of a job whose refund will not be made: a dead letter, and a payment that needs a person.
pub async fn abandon(
    engine: &Engine,
    orders: &OrderPolicy,
    job: &Job,
    call: &RefundCall,
    reason: DeadReason,
) -> ChangeSet {
    let gave_up = [(call.id.clone(), format!("{}: {}", reason.reason, reason.error))].into();
    let at = engine.node.now();
    let dead = |reason, about| Ended { about, ..Ended::new(job.lease, End::Dead(reason)) };
    match decided(engine, orders, call, |order| order.gave_up = gave_up).await {
        Ok(set) => {
            let payment = set.writes.iter().find(|write| write.key.kind == Kind::Payment);
            let about = About {
                payment: payment.map(|write| write.key.id.clone()),
                billing: None,
                tenant: payment.and_then(|write| write.index.tenant.clone()),
            };
            ChangeSet { ends: vec![dead(reason, about)], ..set }
        }
        // A store that can't be read just now must not make it forgotten.
        Err(failure) if failure.class == Class::Transient => {
            ChangeSet::end(job.lease, End::Wait { due_at: at.plus_ms(ABANDON_AGAIN_MS) }, at)
        }
        // Rather a dead letter alone than none.
        Err(_) => ChangeSet { ends: vec![dead(reason, About::default())], ..ChangeSet::nothing(at) },
    }
}

/// What follows for the payment from something that was learnt of the call.
async fn decided(
    engine: &Engine,
    orders: &OrderPolicy,
    call: &RefundCall,
    change: impl FnOnce(&mut RefundOrder),
) -> Result<ChangeSet, Failure> {
    let at = engine.node.now();
    let inputs = [call.input(engine.node.next_seq(at), change)];
    let mut wanted = settlement::names(&inputs);
    loop {
        let (names, keys) = (wanted.names.iter().cloned(), wanted.keys.iter().cloned());
        let loaded = engine.store.load(names.collect(), keys.collect()).await.map_err(unavailable)?;
        match settlement::decide(&inputs, &wanted, &loaded, &Terms::of(at, orders)) {
            Err(more) => wanted.extend(more),
            Ok(changes) => {
                let change = changes.into_iter().next().filter(|change| change.refused.is_none());
                let broken = || Failure::terminal("unreadable_state", "what is kept of it can't be read");
                return Ok(change.ok_or_else(broken)?.into_set(at, || engine.node.next_seq(at)));
            }
        }
    }
}

/// Everything known of the payment whose money it is.
async fn load(engine: &Engine, call: &RefundCall) -> Result<Facts, Failure> {
    let mut wanted = Wanted::names([call.payment_name()]);
    loop {
        let (names, keys) = (wanted.names.iter().cloned(), wanted.keys.iter().cloned());
        let loaded = engine.store.load(names.collect(), keys.collect()).await.map_err(unavailable)?;
        let key = wanted.keys.last().or_else(|| loaded.names.get(&call.payment_name()));
        let Some(state) = key.and_then(|key| loaded.states.get(key)) else { return Ok(Facts::default()) };
        let broken = |error: serde_json::Error| Failure::terminal("unreadable_state", error.to_string());
        let facts = Facts::parse(&state.facts).map_err(broken)?;
        match &facts.merged_into {
            Some(into) => wanted = Wanted::keys([Key::new(Kind::Payment, into)]),
            None => return Ok(facts),
        }
    }
}

/// One that can't be read may be the one we look for.
fn listed(found: &[stripe::ApiObject]) -> Result<Vec<Listed>, Failure> {
    let unreadable = || Failure::transient("broken", "a refund that the provider lists can't be read");
    found.iter().map(|refund| refund::listed(refund).ok_or_else(unreadable)).collect()
}

fn new_refund<'c>(facts: &Facts, call: &'c RefundCall, amount: i64) -> RefundRequest<'c> {
    let wish = facts.refund_orders.get(&call.order).map(|order| &order.wish);
    let reason = wish.and_then(|wish| REASONS.into_iter().find(|reason| *reason == wish.reason));
    let metadata = vec![(refund::ORDER, call.order.clone()), (refund::PAYMENT, call.payment.clone())];
    RefundRequest { object: &call.object, id: &call.id, amount, reason, metadata }
}

#[cfg(test)]
mod tests;
