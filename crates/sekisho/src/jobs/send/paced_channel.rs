//! A channel this node can send by, with its room and its pace.
//!
//! The pace is kept by all nodes together: moments to send at are reserved in the store, a few at once. A moment that
//! passed while nobody had room is lost, so that what piled up never goes out as a burst.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sekisho_core::Time;
use sekisho_core::change::ChangeSet;
use sekisho_core::job::Lane;
use sekisho_core::notification::{Doubt, Limits, Quota, Reserved, Tries};
use sekisho_core::queue::Failure;
use sekisho_core::queue::breaker::Policy;
use sekisho_core::state::{self, Key, Wanted, Write};
use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;

use crate::config;
use crate::engine::Engine;
use crate::engine::lane::LanePolicy;
use crate::env::{Channel, Env};
use crate::jobs::{FAILURES_IN_A_ROW, unwritten};
use crate::transact::{Patience, transact_patiently};

/// Messages in hand for each conversation: those that wait for their next try must not keep others from theirs.
const IN_HAND: usize = 4;
/// A store that was this slow once is not waited for so long again.
const TOOK_MAX_MS: i64 = 1_000;

pub struct PacedChannel {
    pub name: String,
    pub lane: Lane,
    pub channel: Box<dyn Channel>,
    pub is_mail: bool,
    pub tries: Tries,
    /// What the channel says of doubt, whoever a message is for.
    pub doubt: Option<Doubt>,
    /// Conversations at the same time.
    pub room: Semaphore,
    concurrency: usize,
    limits: Limits,
    /// Where all nodes keep which moments were given out.
    quota: Key,
    waiting: AtomicUsize,
    moments: Mutex<Moments>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Paced {
    Now,
    /// Nothing more today.
    UsedUp {
        until: Time,
    },
}

#[derive(Default)]
struct Moments {
    ahead: VecDeque<Time>,
    /// How long it took to get some: those that come will be needed so much later.
    took_ms: i64,
}

impl PacedChannel {
    pub fn new(config: &config::Channel, env: &Env) -> anyhow::Result<Self> {
        Ok(Self {
            name: config.name.clone(),
            lane: Lane::by_channel(&config.name),
            channel: config.open(env)?,
            is_mail: config.is_mail(),
            tries: config.tries,
            doubt: config.doubt,
            room: Semaphore::new(config.concurrency),
            concurrency: config.concurrency,
            limits: config.limits,
            quota: Key::new(state::Kind::Quota, &config.name),
            waiting: AtomicUsize::new(0),
            moments: Mutex::default(),
        })
    }

    pub fn policy(&self) -> LanePolicy {
        let breaker = Policy { failures: FAILURES_IN_A_ROW, ..Policy::default() };
        LanePolicy { concurrency: IN_HAND * self.concurrency, rate: None, breaker }
    }

    /// Waits for the next moment to send at; or says from when on there is one.
    pub async fn pace(&self, engine: &Engine) -> Result<Paced, Failure> {
        if self.limits.is_free() {
            return Ok(Paced::Now);
        }
        let waiting = Waiting::new(&self.waiting);
        // Held while it waits: the next one's moment is later, so nobody waits longer for that.
        let mut moments = self.moments.lock().await;
        let mut is_fresh = false;
        loop {
            while let Some(moment) = moments.ahead.pop_front() {
                let ahead_ms = moment.ms() - engine.node.now().ms();
                // A store that is slower than the gap must not keep the only one who waits from ever having a moment.
                if ahead_ms >= -self.limits.gap_ms || (is_fresh && moments.ahead.is_empty()) {
                    tokio::time::sleep(Duration::from_millis(ahead_ms.max(0) as u64)).await;
                    return Ok(Paced::Now);
                }
            }
            is_fresh = true;
            let began = Instant::now();
            let from = engine.node.now().plus_ms(moments.took_ms);
            let wanted = waiting.count().clamp(1, self.limits.block());
            let reserved = self.reserve(engine, wanted, from).await?;
            moments.took_ms = (began.elapsed().as_millis() as i64).min(TOOK_MAX_MS);
            match reserved {
                Reserved::At(reserved, _) => moments.ahead.extend(reserved),
                Reserved::UsedUp { until } => return Ok(Paced::UsedUp { until }),
            }
        }
    }

    /// Takes moments from all nodes' common store of them.
    async fn reserve(&self, engine: &Engine, wanted: usize, from: Time) -> Result<Reserved, Failure> {
        let key = &self.quota;
        let loads = Wanted::keys([key.clone()]);
        let reserved = transact_patiently(&*engine.store, Patience::SHARED, loads, |loaded| {
            let at = engine.node.now();
            let quota: Quota = loaded.read(key).ok().flatten().map(|kept| kept.value).unwrap_or_default();
            let reserved = quota.reserve(self.limits, wanted, from.max(at));
            let mut set = ChangeSet::nothing(at);
            if let Reserved::At(_, after) = &reserved {
                set.writes.push(Write::of(key, loaded.version(key), after));
            }
            Ok((set, reserved))
        });
        reserved.await.map_err(|error| unwritten(error, "others reserved the same moments all the time"))
    }
}

/// Counts itself among those that wait, until it is dropped.
struct Waiting<'c>(&'c AtomicUsize);

impl<'c> Waiting<'c> {
    fn new(count: &'c AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
