//! Why a notice is not sent though it could be: its address is suppressed, or had enough mails within an hour.

use std::time::Duration;

use sekisho_core::change::{ChangeSet, Committed};
use sekisho_core::notification::Suppression;
use sekisho_core::notification::recipient::Recent;
use sekisho_core::queue::Failure;
use sekisho_core::state::{self, Index, Key, Write};

use super::pending::PendingNotice;
use crate::engine::Engine;
use crate::jobs::unavailable;
use crate::token;

/// How often others may be faster who count mails to the same address, and the pause after each.
const COUNT_TRIES: usize = 50;
const COUNT_PAUSE: Duration = Duration::from_millis(20);

/// Why nothing may be sent to its address, if that is so.
pub async fn suppressed(
    engine: &Engine,
    pending: &PendingNotice,
) -> Result<Option<(&'static str, String)>, Failure> {
    let Some(address) = &pending.notice.to else { return Ok(None) };
    let key = Suppression::key(address);
    let loaded = engine.store.load(Vec::new(), vec![key.clone()]).await.map_err(unavailable)?;
    let known = loaded.states.get(&key).and_then(Suppression::read);
    Ok(known.and_then(|known| {
        let turn = known.cause()?;
        let note = turn.note.clone().unwrap_or_else(|| "the address is on the suppression list".into());
        Some((turn.cause.name(), note))
    }))
}

/// Whether its recipient had enough mails within an hour; if not, this one counts from now on.
pub async fn is_over(engine: &Engine, pending: &PendingNotice, most: u32) -> Result<bool, Failure> {
    let Some(to) = pending.notice.to.as_ref().filter(|_| most > 0 && pending.notice.is_counted()) else {
        return Ok(false);
    };
    let key = Key::new(state::Kind::Quota, format!("to/{}", token::hash(to.whole())));
    for _ in 0..COUNT_TRIES {
        let loaded = engine.store.load(Vec::new(), vec![key.clone()]).await.map_err(unavailable)?;
        let state = loaded.states.get(&key);
        let recent: Recent =
            state.and_then(|state| serde_json::from_str(&state.facts).ok()).unwrap_or_default();
        let Some(next) = recent.with(&pending.id, most, engine.node.now()) else { return Ok(true) };
        if next == recent {
            return Ok(false);
        }
        let facts = serde_json::to_string(&next).expect("plain data serialises");
        let version = state.map_or(0, |state| state.version);
        let write = Write { key: key.clone(), version, facts, index: Index::default() };
        let set = ChangeSet { writes: vec![write], ..ChangeSet::nothing(engine.node.now()) };
        let written = engine.store.commit(vec![set]).await.map_err(unavailable)?;
        if matches!(&*written, [Committed::Applied { .. }]) {
            return Ok(false);
        }
        tokio::time::sleep(COUNT_PAUSE).await;
    }
    Err(Failure::transient("contended", "many mails to one address at once"))
}
