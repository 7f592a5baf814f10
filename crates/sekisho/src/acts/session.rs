//! Sessions of the console: a browser that entered is known by its token from then on. What is kept are hashes.

use sekisho_core::Time;
use sekisho_core::actor::Actor;
use sekisho_core::change::ChangeSet;
use sekisho_core::state::Wanted;
use sekisho_core::user::{Rank, Session, User, check_name, proof_of_device};
use sekisho_store::Store;
use serde_json::json;

use super::login::Visitor;
use super::users::update_user;
use crate::refusal::Result;
use crate::token;
use crate::transact::transact;

/// What a browser is given that entered.
pub struct SessionTicket {
    /// The session's.
    pub token: String,
    /// Proves later that this browser logged in before.
    pub device: String,
}

/// Somebody who is known by a session.
#[derive(Clone, Debug)]
pub struct SessionUser {
    pub name: String,
    pub rank: Rank,
    /// Of the session's token.
    pub hash: String,
}

/// A session's token, and what is kept of it.
pub(super) fn new_session(name: &str, from: Visitor<'_>) -> (String, Session) {
    let token = format!("{name}.{}", token::generate::<32>());
    let session = Session::begin(token::hash(&token), from.agent, from.peer, from.at);
    (token, session)
}

pub(super) fn new_device(name: &str, user: &User) -> String {
    proof_of_device(name, user, &token::generate::<16>())
}

/// Who shows this token, if its session lives. That it is in use is noted now and then.
pub async fn find_session(store: &dyn Store, token: &str, now: Time) -> Result<Option<SessionUser>> {
    let Some((name, _)) = token.rsplit_once('.').filter(|(name, _)| check_name(name).is_ok()) else {
        return Ok(None);
    };
    let (key, hash) = (User::key(name), token::hash(token));
    let found = transact(store, Wanted::keys([key.clone()]), |loaded| -> Result<_> {
        let mut set = ChangeSet::nothing(now);
        let user = loaded.read::<User>(&key)?.filter(|user| user.value.session(&hash, now).is_some());
        let Some(mut user) = user else { return Ok((set, None)) };
        if user.value.seen(&hash, now) {
            set.writes.push(user.write());
        }
        Ok((set, Some(SessionUser { name: name.to_owned(), rank: user.value.rank, hash: hash.clone() })))
    });
    Ok(found.await?)
}

/// Ends one session, by the hash of its token.
pub async fn end_session(store: &dyn Store, name: &str, hash: &str, actor: &Actor<'_>) -> Result<()> {
    update_user(store, name, actor.at, |user| {
        user.sessions.retain(|session| session.hash != hash);
        Some(actor.entry(None, "user.left", ("user", name), &json!({})))
    })
    .await
}
