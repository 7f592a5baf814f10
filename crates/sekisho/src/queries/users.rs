//! Who may enter the console, and who is invited.

use sekisho_core::Time;
use sekisho_core::state::{Key, Kind, State};
use sekisho_core::user::{FIRST_INVITE, Invite, User, check_name, invite_key, shown_device};
use sekisho_store::{FIND_MAX, StateFilter, Store};

use super::states::{all_pages, load_typed, read};
use crate::refusal::Result;
use crate::token;

/// Every user, by name.
pub async fn users(store: &dyn Store) -> Result<Vec<(String, User)>> {
    let states = all_pages(store, StateFilter::all(Kind::User, FIND_MAX)).await?;
    let mut users: Vec<_> =
        states.iter().map(|state| Ok((state.key.id.clone(), read(state)?))).collect::<Result<_>>()?;
    users.sort_by(|a: &(String, User), b| a.0.cmp(&b.0));
    Ok(users)
}

/// Somebody by name; a name that nobody can have is nobody's.
pub async fn find_user(store: &dyn Store, name: &str) -> Result<Option<User>> {
    if check_name(name).is_err() {
        return Ok(None);
    }
    Ok(load_typed(store, &User::key(name)).await?)
}

/// Whether somebody of this name is kept and was disabled.
pub async fn is_disabled(store: &dyn Store, name: &str) -> Result<bool> {
    let user: Option<User> = load_typed(store, &User::key(name)).await?;
    Ok(user.is_some_and(|user| user.disabled_at.is_some()))
}

/// Whether this browser logged in as this user before.
pub async fn is_known_device(store: &dyn Store, name: &str, device: Option<&str>) -> Result<bool> {
    let (name, Some(device)) = (name.trim(), device) else { return Ok(false) };
    Ok(find_user(store, name).await?.is_some_and(|user| shown_device(name, &user, device).is_some()))
}

/// Invitations that nobody took up or took back, the one that ends first first. Those of somebody who may not give any now
/// are among them: they are worth something again if that changes.
pub async fn open_invites(store: &dyn Store, now: Time) -> Result<Vec<Invite>> {
    let mut open: Vec<_> = find_open(store, now).await?.into_iter().map(|(_, invite)| invite).collect();
    open.sort_by_key(|invite| invite.expires_at);
    Ok(open)
}

/// Where an open invitation is kept.
pub async fn find_open_invite(store: &dyn Store, id: &str, now: Time) -> Result<Option<Key>> {
    let open = find_open(store, now).await?;
    Ok(open.into_iter().find(|(_, invite)| invite.id() == id).map(|(state, _)| state.key))
}

async fn find_open(store: &dyn Store, now: Time) -> Result<Vec<(State, Invite)>> {
    let mut open = Vec::new();
    for state in all_pages(store, StateFilter::all(Kind::Invite, FIND_MAX)).await? {
        let invite: Invite = read(&state)?;
        if invite.is_open(now) {
            open.push((state, invite));
        }
    }
    Ok(open)
}

/// The invitation behind a link, if it can still be taken up.
pub async fn find_invite(store: &dyn Store, token: &str, now: Time) -> Result<Option<Invite>> {
    let hash = token::hash(token);
    for id in [&*hash, FIRST_INVITE] {
        let Some(invite) = load_typed::<Invite>(store, &invite_key(id)).await? else { continue };
        let voucher = match invite.voucher() {
            Some(by) => load_typed(store, &User::key(by)).await?,
            None => None,
        };
        if invite.opens(&hash, voucher.as_ref(), now) {
            return Ok(Some(invite));
        }
    }
    Ok(None)
}
