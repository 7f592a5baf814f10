//! Dead letters of routes, tried again by themselves: hourly, and when their destination answers again. A timer of each route,
//! so that it happens once however many nodes there are, and goes on after a crash; in waves, so that a destination that is
//! barely back is not overrun. Which letters, and when a wave ends, the core says.

use std::collections::BTreeMap;

use sekisho_core::audit::Role;
use sekisho_core::change::{Act, ChangeSet};
use sekisho_core::job::{Class, End, Lane, Outcome, Timer, Wave, WaveCause};
use sekisho_core::queue::retry_dead::{DeadDelivery, Fate, Proceed, proceed};
use sekisho_core::queue::{Failure, RetryDead};
use sekisho_core::{Seq, Time};
use sekisho_store::{DeadFilter, FIND_MAX, Standing, StoredMessage};

use super::unavailable;
use crate::config::Config;
use crate::engine::{Engine, Ran, Work};

/// Pages of dead letters that one batch is chosen from.
const PAGES_MAX: usize = 10;
/// How soon it is looked what became of a batch; later while nothing is known.
const LOOK_MS: i64 = 500;
const LOOK_MS_MAX: i64 = 30_000;
/// Who acts, as the audit log says it.
const ACTOR: &str = "sekisho";

pub struct DeadRetrier {
    routes: BTreeMap<String, Policy>,
}

struct Policy {
    retry_dead: RetryDead,
    /// Of one round.
    tries: i32,
}

impl DeadRetrier {
    pub fn new(config: &Config) -> Self {
        let on = config.routes.iter().filter(|route| !route.retry_dead.is_off());
        let routes = on.map(|route| {
            let tries = i32::try_from(route.retry.retries).unwrap_or(i32::MAX).saturating_add(1);
            (route.route.name.clone(), Policy { retry_dead: route.retry_dead, tries })
        });
        Self { routes: routes.collect() }
    }

    /// When the next wave of each route begins.
    pub fn due(&self, at: Time) -> impl Iterator<Item = (Timer, Time)> {
        self.routes.iter().map(move |(route, policy)| {
            (Timer::RetryDead { route: route.clone(), wave: None }, policy.retry_dead.next_wave(at))
        })
    }

    pub async fn run(
        &self,
        engine: &Engine,
        work: &Work,
        route: &str,
        wave: Option<&Wave>,
    ) -> Result<Ran, Failure> {
        let (lease, at) = (work.job.lease, engine.node.now());
        let Some(policy) = self.routes.get(route) else {
            let note = format!("this node retries no dead letters of a route {route}");
            return Ok(Ran::Ended(ChangeSet::end(lease, End::Done(Outcome::Skipped { note }), at)));
        };
        let next_hour = wave.is_none().then(|| policy.retry_dead.next_wave(at.max(work.job.due_at)));
        let wave = wave.cloned().unwrap_or_else(|| Wave::new(WaveCause::Hour, at));
        let step = match proceed(&wave, &fates(engine, &wave).await?, at) {
            Proceed::Wait => {
                let due_at = at.plus_ms(((at.ms() - wave.since.ms()) / 4).clamp(LOOK_MS, LOOK_MS_MAX));
                return Ok(Ran::Ended(ChangeSet::end(lease, End::Wait { due_at }, at)));
            }
            Proceed::Stop => None,
            Proceed::NextBatch => policy.take_batch(engine, route, &wave).await?,
        };
        let note = step.as_ref().map(|wave| format!("{} dead letters retried", wave.batch().count()));
        let timer = |wave| Timer::RetryDead { route: route.to_owned(), wave };
        let next = next_hour.map(|due_at| (timer(None), due_at));
        let next = next.into_iter().chain(step.map(|wave| (timer(Some(wave)), at.plus_ms(LOOK_MS))));
        let jobs = next.map(|(timer, due_at)| timer.job(engine.node.next_seq(at), due_at)).collect();
        let end = ChangeSet::end(lease, End::Done(Outcome::Success { note }), at);
        Ok(Ran::Ended(ChangeSet { jobs, ..end }))
    }
}

impl Policy {
    /// The wave with its next batch, which is queued by then; none when nothing is left for it.
    async fn take_batch(&self, engine: &Engine, route: &str, wave: &Wave) -> Result<Option<Wave>, Failure> {
        let letters = self.letters(engine, route).await?;
        let at = engine.node.now();
        let chosen = self.retry_dead.choose(&letters, wave, self.tries, at);
        if chosen.is_empty() {
            return Ok(None);
        }
        let why = match wave.cause {
            WaveCause::Hour => "automatic: tried again at the next full interval",
            WaveCause::Answered => "automatic: the destination answers again",
        };
        let act = Act { at, actor: ACTOR.to_owned(), role: Role::System, reason: why.to_owned() };
        let jobs: Vec<Seq> = chosen.iter().map(|letter| letter.job).collect();
        let taken = engine.store.retry(jobs, act).await.map_err(unavailable)?;
        let batch = chosen.iter().zip(taken).filter(|(_, taken)| *taken);
        let batch: Vec<_> = batch.map(|(letter, _)| (letter.job, letter.attempts)).collect();
        tracing::info!(route, messages = batch.len(), why, "dead letters are retried automatically");
        Ok(Some(wave.with_batch(batch, at)))
    }

    /// Those that may come back, the newest first.
    async fn letters(&self, engine: &Engine, route: &str) -> Result<Vec<DeadDelivery>, Failure> {
        let lane = Some(Lane::to_route(route));
        let class = Some(Class::Transient);
        let mut filter = DeadFilter { lane, class, limit: FIND_MAX, ..DeadFilter::default() };
        let oldest = engine.node.now().plus_ms(-self.retry_dead.within_ms);
        let mut letters = Vec::new();
        for _ in 0..PAGES_MAX {
            let page = engine.store.find_dead(filter.clone()).await.map_err(unavailable)?;
            letters.extend(page.iter().map(|letter| DeadDelivery {
                job: letter.job,
                class: letter.death.class,
                died_at: letter.at,
                attempts: letter.attempts,
            }));
            filter.before = page.last().filter(|_| page.len() == FIND_MAX).map(|last| last.job);
            if filter.before.is_none_or(|last| last.made_at() < oldest) {
                break;
            }
        }
        Ok(letters)
    }
}

/// What became of the last batch.
async fn fates(engine: &Engine, wave: &Wave) -> Result<Vec<Fate>, Failure> {
    let mut fates = Vec::new();
    for (job, attempts) in wave.batch() {
        let message = engine.store.find_message(job).await.map_err(unavailable)?;
        fates.push(message.map_or(Fate::Delivered, |message| fate(&message, attempts)));
    }
    Ok(fates)
}

/// `before` is how many attempts it had when it was taken.
fn fate(message: &StoredMessage, before: i32) -> Fate {
    match message.standing {
        Standing::Done(..) => Fate::Delivered,
        Standing::Running if message.attempts <= before + 1 => Fate::Pending,
        Standing::Waiting(_) if message.attempts <= before => Fate::Pending,
        // An attempt of it ended, and it was not done.
        Standing::Dead(..) | Standing::Running | Standing::Waiting(_) => Fate::FailedAgain,
    }
}
