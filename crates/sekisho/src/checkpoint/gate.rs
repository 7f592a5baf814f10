//! A cheap memory in front of the store that absorbs retry storms: in this process, or in Redis for many nodes.
//!
//! It is filled only after a commit, and what it believes is confirmed by a read before anybody is answered; so
//! losing it, or restoring an older database under it, changes nothing but speed.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use quick_cache::sync::Cache;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use sekisho_core::event::DedupeKey;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::config;
use crate::env::Env;

#[async_trait]
pub trait Gate: Send + Sync {
    /// Which of these were probably stored before. A hint, no more.
    async fn seen(&self, keys: &[DedupeKey]) -> Vec<bool>;

    /// Remembers what is stored now.
    fn fill(&self, keys: &[DedupeKey]);
}

/// The gate a configuration asks for.
pub fn open(config: &config::Gate, env: &Env) -> Result<Arc<dyn Gate>, redis::RedisError> {
    let local = LocalGate(Cache::new(config.entries));
    Ok(match &config.redis {
        None => Arc::new(local),
        Some(url) => Arc::new(RedisGate::open(local, url.expose(), config.redis_ttl, env)?),
    })
}

pub struct LocalGate(Cache<DedupeKey, ()>);

#[async_trait]
impl Gate for LocalGate {
    async fn seen(&self, keys: &[DedupeKey]) -> Vec<bool> {
        keys.iter().map(|key| self.0.get(key).is_some()).collect()
    }

    fn fill(&self, keys: &[DedupeKey]) {
        keys.iter().for_each(|key| self.0.insert(*key, ()));
    }
}

/// Longest that Redis may hold up a batch.
const REDIS_WAIT: Duration = Duration::from_millis(50);
/// After a failure Redis is left alone for this long.
const REDIS_PAUSE_MS: i64 = 1_000;
/// Batches waiting to be remembered; when Redis is slow, the rest is forgotten.
const FILL_QUEUE: usize = 64;

/// The local gate with Redis behind it.
pub struct RedisGate {
    local: LocalGate,
    connection: ConnectionManager,
    fill: mpsc::Sender<Vec<DedupeKey>>,
    started: Instant,
    paused_until: Arc<AtomicI64>,
}

impl RedisGate {
    fn open(local: LocalGate, url: &str, ttl: Duration, env: &Env) -> Result<Self, redis::RedisError> {
        let settings = ConnectionManagerConfig::new()
            .set_number_of_retries(1)
            .set_min_delay(Duration::from_millis(10))
            .set_max_delay(Duration::from_millis(100))
            .set_connection_timeout(Some(Duration::from_millis(500)))
            .set_response_timeout(Some(REDIS_WAIT));
        let connection = ConnectionManager::new_lazy_with_config(redis::Client::open(url)?, settings)?;
        let (fill, queue) = mpsc::channel(FILL_QUEUE);
        env.spawn(remember(connection.clone(), queue, ttl));
        Ok(Self { local, connection, fill, started: Instant::now(), paused_until: Arc::default() })
    }

    fn elapsed_ms(&self) -> i64 {
        self.started.elapsed().as_millis() as i64
    }

    async fn ask(&self, keys: &[DedupeKey]) -> Option<Vec<bool>> {
        if self.elapsed_ms() < self.paused_until.load(Ordering::Relaxed) {
            return None;
        }
        let mut connection = self.connection.clone();
        let mut command = redis::cmd("MGET");
        keys.iter().for_each(|key| {
            command.arg(name(key));
        });
        let asked =
            tokio::time::timeout(REDIS_WAIT, command.query_async::<Vec<Option<i64>>>(&mut connection)).await;
        match asked {
            Ok(Ok(found)) if found.len() == keys.len() => Some(found.iter().map(Option::is_some).collect()),
            failed => {
                let reason = match failed {
                    Ok(Err(error)) => error.to_string(),
                    _ => "no answer in time".to_owned(),
                };
                tracing::warn!(
                    error_type = "redis_unavailable",
                    reason,
                    "Redis is unavailable; continuing without it"
                );
                self.paused_until.store(self.elapsed_ms() + REDIS_PAUSE_MS, Ordering::Relaxed);
                None
            }
        }
    }
}

#[async_trait]
impl Gate for RedisGate {
    async fn seen(&self, keys: &[DedupeKey]) -> Vec<bool> {
        let mut seen = self.local.seen(keys).await;
        let unknown: Vec<_> =
            keys.iter().zip(&seen).filter(|(_, seen)| !**seen).map(|(key, _)| *key).collect();
        if unknown.is_empty() {
            return seen;
        }
        if let Some(found) = self.ask(&unknown).await {
            let mut found = found.into_iter();
            seen.iter_mut().filter(|seen| !**seen).for_each(|seen| *seen = found.next().unwrap_or(false));
        }
        seen
    }

    fn fill(&self, keys: &[DedupeKey]) {
        self.local.fill(keys);
        // Full queue: Redis is slow or away, and forgetting costs only speed.
        let _ = self.fill.try_send(keys.to_vec());
    }
}

async fn remember(
    mut connection: ConnectionManager,
    mut queue: mpsc::Receiver<Vec<DedupeKey>>,
    ttl: Duration,
) {
    while let Some(keys) = queue.recv().await {
        let mut pipeline = redis::pipe();
        for key in &keys {
            pipeline.cmd("SET").arg(name(key)).arg(1).arg("EX").arg(ttl.as_secs()).ignore();
        }
        let _ = tokio::time::timeout(REDIS_WAIT * 4, pipeline.query_async::<()>(&mut connection)).await;
    }
}

/// `sekisho:` and the key's bytes.
fn name(key: &DedupeKey) -> Vec<u8> {
    [b"sekisho:".as_slice(), key.as_bytes()].concat()
}
