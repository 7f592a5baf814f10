//! Connections that lie idle: a few, for a short while, and proven alive before they are used again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::session::SmtpSession;
use crate::env::Env;

/// Most that lie idle.
const SESSIONS_MAX: usize = 5;
/// How long one lies idle. Servers close theirs after a minute or more.
const IDLE_MAX: Duration = Duration::from_secs(20);
/// How long one may take to show that it lives.
const PROOF_MAX: Duration = Duration::from_secs(2);
/// How long saying goodbye may take.
const GOODBYE_MAX: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct Pool {
    env: Env,
    idle: Mutex<Idle>,
}

#[derive(Debug, Default)]
struct Idle {
    /// The one that was used last comes last.
    sessions: Vec<(Instant, SmtpSession)>,
    is_watched: bool,
}

impl Pool {
    pub fn new(env: Env) -> Self {
        Self { env, idle: Mutex::default() }
    }

    /// One that answers. If one does not, the others are not asked: that takes longer than a new one.
    pub async fn take(&self) -> Option<SmtpSession> {
        let mut session = self.newest()?;
        if timeout(PROOF_MAX, session.is_alive()).await == Ok(true) {
            return Some(session);
        }
        self.locked().sessions.clear();
        None
    }

    fn newest(&self) -> Option<SmtpSession> {
        let mut idle = self.locked();
        // If the newest lay too long, so did the others: the watch closes them.
        idle.sessions.pop_if(|(since, _)| since.elapsed() < IDLE_MAX).map(|(_, session)| session)
    }

    /// Keeps it for the next mail, if it is fit for one and there is room.
    pub fn park(self: &Arc<Self>, session: SmtpSession) {
        let mut idle = self.locked();
        if !session.is_fit() || idle.sessions.len() >= SESSIONS_MAX {
            return;
        }
        idle.sessions.push((Instant::now(), session));
        if !std::mem::replace(&mut idle.is_watched, true) {
            self.env.spawn(watch(Arc::downgrade(self)));
        }
    }

    /// Those that lay too long; `None` once nothing is left to watch.
    fn expired(&self) -> Option<Vec<SmtpSession>> {
        let mut idle = self.locked();
        if idle.sessions.is_empty() {
            idle.is_watched = false;
            return None;
        }
        let expired = idle.sessions.extract_if(.., |(since, _)| since.elapsed() >= IDLE_MAX);
        Some(expired.map(|(_, session)| session).collect())
    }

    fn locked(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes what lies too long, for as long as anything lies there.
async fn watch(pool: Weak<Pool>) {
    loop {
        sleep(IDLE_MAX).await;
        let Some(expired) = pool.upgrade().and_then(|pool| pool.expired()) else { return };
        for mut session in expired {
            let _ = timeout(GOODBYE_MAX, session.quit()).await;
        }
    }
}
