//! Reading from providers what their events leave out. The answer is put in as an event and settled like any other.

use std::sync::Arc;

use sekisho_core::Time;
use sekisho_core::change::ChangeSet;
use sekisho_core::job::{End, Lane, Outcome};
use sekisho_core::queue::{Failure, breaker};
use sekisho_core::settlement::decide::Aggregate as _;
use sekisho_core::settlement::payment::Facts;
use sekisho_core::settlement::{ApiProvider, Fetch};

use super::accounts::{ApiAccounts, Use};
use super::{FAILURES_IN_A_ROW, plain, unavailable};
use crate::effects::provider_api::{BAD_ID, NOT_FOUND, NOT_TAKEN};
use crate::engine::lane::LanePolicy;
use crate::engine::{Engine, Ran, Work};

/// Calls to one provider's API at once, and in a second: Stripe takes 25 of one kind.
const AT_ONCE: usize = 4;
const RATE: u32 = 20;

pub struct Fetcher(Arc<ApiAccounts>);

impl Fetcher {
    pub fn new(accounts: Arc<ApiAccounts>) -> Self {
        Self(accounts)
    }

    /// Asks every account that may know it. One whose key is refused is left alone, and keeps nobody from asking the
    /// others; what only it can know waits for it.
    pub async fn run(&self, engine: &Arc<Engine>, work: &Work, fetch: &Fetch) -> Result<Ran, Failure> {
        let job = &work.job;
        if fetch.after_days > 0 && is_over(engine, fetch).await? {
            let end = End::Done(Outcome::Skipped { note: "what became of it is known".into() });
            return Ok(Ran::Ended(ChangeSet::end(job.lease, end, engine.node.now())));
        }
        let unknown =
            || Failure::terminal("unknown_fetch", format!("unknown kind of fetch: {}", job.task.payload()));
        let (mut called, mut wait_until, mut is_known) = (None, None::<Time>, false);
        for known in self.0.of(fetch.provider, fetch.livemode) {
            is_known = true;
            let now = engine.node.now();
            if let Some(until) = known.left_until(Use::Fetch, now) {
                wait_until = Some(wait_until.map_or(until, |other| other.min(until)));
                continue;
            }
            let call = known.fetch(fetch, now).await.ok_or_else(unknown)?;
            let refused_until = known.judge(&engine.base(), Use::Fetch, call.result.as_ref().err()).await;
            let is_elsewhere = call.result.as_ref().is_err_and(|failure| failure.reason == NOT_FOUND);
            called = Some(call);
            if let Some(until) = refused_until {
                wait_until = Some(wait_until.map_or(until, |other| other.min(until)));
            } else if !is_elsewhere {
                wait_until = None;
                break;
            }
        }
        if !is_known {
            return Err(Failure::terminal("no_api_key", "no source has an api_key for it any more"));
        }
        let went_well = called.as_ref().map(|call| is_reached(call.result.as_ref().err()));
        judge_provider(engine, &Lane::fetch(fetch.provider.name()), went_well);
        let at = engine.node.now();
        let set = match (called.as_ref().map(|call| &call.result), wait_until) {
            (Some(Ok(answer)), _) => {
                let mut event = fetch.arrival(engine.node.next_seq(at), at, answer);
                work.traceparent(&engine.tracer).into_iter().for_each(|trace| event.carry(trace));
                ChangeSet {
                    events: vec![event],
                    ..ChangeSet::end(job.lease, End::Done(Outcome::SUCCESS), at)
                }
            }
            (_, Some(due_at)) => ChangeSet::end(job.lease, End::Wait { due_at }, at),
            (Some(Err(failure)), None) => {
                let unknown = match failure.reason {
                    NOT_FOUND => fetch.when_unknown(job.lease.job, at),
                    BAD_ID | NOT_TAKEN => fetch.when_impossible(),
                    _ => None,
                };
                let end = unknown.unwrap_or_else(|| engine.after(job, failure));
                ChangeSet::end(job.lease, end, at)
            }
            (None, None) => unreachable!("whoever was not asked is waited for"),
        };
        Ok(Ran::Ended(match called {
            Some(call) => set.with_attempt(call.attempt),
            None => set,
        }))
    }
}

/// Whether it came to its end while we waited to ask.
async fn is_over(engine: &Engine, fetch: &Fetch) -> Result<bool, Failure> {
    let name = Facts::full(&fetch.realm().name(&fetch.id));
    let loaded = engine.store.load(vec![name.clone()], Vec::new()).await.map_err(unavailable)?;
    let state = loaded.names.get(&name).and_then(|key| loaded.states.get(key));
    let facts = state.and_then(|state| Facts::parse(&state.facts).ok()).unwrap_or_default();
    Ok(facts.refunds.get(&fetch.id).is_some_and(|refund| !refund.status.is_under_way()))
}

/// One lane for each provider that can be asked.
pub fn lanes() -> impl Iterator<Item = (Lane, LanePolicy)> {
    ApiProvider::ALL.into_iter().map(|provider| (Lane::fetch(provider.name()), policy(AT_ONCE, RATE)))
}

/// How a provider's API may be used.
pub fn policy(at_once: usize, rate: u32) -> LanePolicy {
    let breaker = breaker::Policy { failures: FAILURES_IN_A_ROW, ..breaker::Policy::default() };
    LanePolicy { rate: Some(rate), breaker, ..plain(at_once) }
}

/// Whether the provider can be reached, not whether it liked the question.
pub fn is_reached(failure: Option<&Failure>) -> bool {
    failure.is_none_or(|failure| !failure.blames_destination)
}

/// Tells the lane's breaker how the last call went, if one was made.
pub fn judge_provider(engine: &Arc<Engine>, lane: &Lane, went_well: Option<bool>) {
    let now = engine.node.now();
    let Some(well) = went_well else { return engine.lanes.breaker(lane).unjudged(now) };
    if let Some(breaker) = engine.lanes.breaker(lane).judge(well, now) {
        tracing::warn!(
            error_type = "breaker_changed",
            lane = &*lane.0,
            state = breaker.state(),
            "the breaker of a provider's API changed"
        );
        let (own, lane) = (Arc::clone(engine), lane.clone());
        engine.spawn(async move { own.write_breaker(&lane, &breaker).await });
    }
}
