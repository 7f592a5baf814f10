//! Somebody becomes a user by an invitation, which is a link that works once. What is kept of it is a hash.

use sekisho_core::Time;
use sekisho_core::actor::Actor;
use sekisho_core::change::ChangeSet;
use sekisho_core::state::{Wanted, Write};
use sekisho_core::user::{
    self, FIRST_INVITE, Invite, Joining, Rank, User, UserRefusal, check_name, check_password, invite_key,
};
use sekisho_store::Store;
use serde_json::json;

use super::login::{Visitor, place_of};
use super::password;
use super::session::{SessionTicket, new_device, new_session};
use super::users::acting;
use crate::queries::{find_invite, find_open_invite, users};
use crate::refusal::{Refusal, Result};
use crate::token;
use crate::transact::transact;
use crate::types::FieldError;

/// A link for the first admin, if there is nobody yet.
pub async fn first_invite(store: &dyn Store, at: Time) -> Result<Option<String>> {
    if !users(store).await?.is_empty() {
        return Ok(None);
    }
    let (key, token) = (invite_key(FIRST_INVITE), token::generate::<32>());
    let invite = Invite::new(Rank::Admin, token::hash(&token), None, at);
    transact(store, Wanted::keys([key.clone()]), |loaded| -> Result<_> {
        let writes = vec![Write::of(&key, loaded.version(&key), &invite)];
        Ok((ChangeSet { writes, ..ChangeSet::nothing(at) }, ()))
    })
    .await?;
    Ok(Some(token))
}

/// A link for one more user: its token is shown once.
pub async fn invite(store: &dyn Store, rank: Rank, actor: &Actor<'_>) -> Result<(String, Invite)> {
    let token = token::generate::<32>();
    let invite = Invite::new(rank, token::hash(&token), Some(actor.name.to_owned()), actor.at);
    transact(store, Wanted::default(), |_| -> Result<_> {
        let writes = vec![Write::of(&invite_key(&invite.hash), 0, &invite)];
        let target = ("invite", invite.id());
        let audit = vec![actor.entry(None, "user.invited", target, &json!({ "rank": rank }))];
        Ok((ChangeSet { writes, audit, ..ChangeSet::nothing(actor.at) }, ()))
    })
    .await?;
    Ok((token, invite))
}

/// Takes an invitation back: its link leads nowhere from now on.
pub async fn withdraw_invite(store: &dyn Store, id: &str, actor: &Actor<'_>) -> Result<()> {
    let key = find_open_invite(store, id, actor.at).await?.ok_or(UserRefusal::NoInvite)?;
    let withdrawn = transact(store, Wanted::keys([key.clone()]), |loaded| -> Result<_> {
        Ok((user::withdraw_invite(loaded.read(&key)?, actor)?, ()))
    });
    Ok(withdrawn.await?)
}

/// Takes up an invitation: a user, and a session of theirs.
pub async fn join(
    store: &dyn Store,
    token: &str,
    name: &str,
    password: &str,
    from: Visitor<'_>,
) -> Result<SessionTicket> {
    let name = name.trim();
    let wrong = |field, what: &str| Refusal::Fields(vec![FieldError::new(field, format!("expected {what}"))]);
    check_name(name).map_err(|what| wrong("name", what))?;
    check_password(name, password).map_err(|what| wrong("password", what))?;
    let invite = find_invite(store, token, from.at).await?.ok_or(UserRefusal::NoInvite)?;
    let mut user = User::new(invite.rank, password::hash(password).await?, from.at);
    let (session_token, session) = new_session(name, from);
    user.entered(&place_of(from.peer), session);
    let (hash, key, voucher) = (token::hash(token), User::key(name), invite.voucher().map(User::key));
    let invites = [invite_key(&hash), invite_key(FIRST_INVITE)];
    let wanted = Wanted::keys(invites.iter().chain([&key]).chain(&voucher).cloned());
    let actor = acting(name, user.rank, from.at);
    transact(store, wanted, |loaded| -> Result<_> {
        let known = |key| loaded.read::<Invite>(key).transpose();
        let voucher = voucher.as_ref().map_or(Ok(None), |key| loaded.read::<User>(key))?;
        let joining = Joining {
            user: &user,
            is_taken: loaded.states.contains_key(&key),
            invites: invites.iter().filter_map(known).collect::<std::result::Result<_, _>>()?,
            hash: &hash,
            voucher: voucher.as_ref().map(|voucher| &voucher.value),
        };
        Ok((joining.join(&actor)?, ()))
    })
    .await?;
    Ok(SessionTicket { token: session_token, device: new_device(name, &user) })
}
