//! Why a notice is not sent though it could be: its address is suppressed, or had enough mails within an hour.

use sekisho_core::change::ChangeSet;
use sekisho_core::notification::Suppression;
use sekisho_core::notification::recipient::Recent;
use sekisho_core::queue::Failure;
use sekisho_core::state::{self, Key, Wanted, Write};

use super::pending::PendingNotice;
use crate::engine::Engine;
use crate::jobs::{unavailable, unwritten};
use crate::token;
use crate::transact::{Patience, transact_patiently};

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
    let wanted = Wanted::keys([key.clone()]);
    let counted = transact_patiently(&*engine.store, Patience::SHARED, wanted, |loaded| {
        let at = engine.node.now();
        let recent: Recent = loaded.read(&key).ok().flatten().map(|kept| kept.value).unwrap_or_default();
        let next = recent.with(&pending.id, most, at);
        let mut set = ChangeSet::nothing(at);
        if let Some(next) = next.as_ref().filter(|next| **next != recent) {
            set.writes.push(Write::of(&key, loaded.version(&key), next));
        }
        Ok((set, next.is_none()))
    });
    counted.await.map_err(|error| unwritten(error, "many mails to one address at once"))
}
