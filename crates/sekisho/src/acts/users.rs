//! Users of the console: what is decided about them, and the password that they change themselves.

use sekisho_core::Time;
use sekisho_core::actor::Actor;
use sekisho_core::audit::Entry;
use sekisho_core::change::ChangeSet;
use sekisho_core::state::Wanted;
use sekisho_core::user::{self, Rank, User, UserAct, UserRefusal, check_password};
use sekisho_store::Store;
use serde_json::json;

use super::password;
use super::session::SessionUser;
use crate::queries::{find_user, users};
use crate::refusal::{Refusal, Result};
use crate::transact::transact;
use crate::types::FieldError;

/// Carries it out. Somebody stays who can let others in: the last admin keeps rank and entry.
pub async fn change_user(store: &dyn Store, name: &str, act: UserAct, actor: &Actor<'_>) -> Result<User> {
    let key = User::key(name);
    let admins = users(store).await?.into_iter().filter(|(_, user)| user.is_admin());
    let admins: Vec<_> = admins.map(|(name, _)| User::key(&name)).collect();
    let wanted = Wanted::keys(admins.iter().chain([&key]).cloned());
    let changed = transact(store, wanted, |loaded| -> Result<_> {
        let user = loaded.read(&key)?.ok_or_else(|| UserRefusal::Unknown(name.to_owned()))?;
        let others = admins.iter().filter_map(|key| loaded.read(key).transpose());
        let others: Vec<_> = others.collect::<std::result::Result<_, _>>()?;
        Ok(user::change_user(user, act, others, actor)?)
    });
    Ok(changed.await?)
}

/// Another password, by whoever knows the old one. Every other session ends.
pub async fn change_password(
    store: &dyn Store,
    known: &SessionUser,
    old: &str,
    new: &str,
    actor: &Actor<'_>,
) -> Result<()> {
    let wrong = |field, what: &str| Refusal::Fields(vec![FieldError::new(field, what.to_owned())]);
    check_password(&known.name, new).map_err(|what| wrong("new", &format!("expected {what}")))?;
    let user = find_user(store, &known.name).await?;
    // Whoever sits at a session they found may not guess for ever.
    let place = format!("session {}", known.hash);
    if user.as_ref().is_some_and(|user| user.shut(&place, actor.at).is_some()) {
        return Err(UserRefusal::ShutOut.into());
    }
    let target = ("user", &*known.name);
    if !password::matches(old, user.as_ref().map(|user| user.password.as_str())).await? {
        update_user(store, &known.name, actor.at, |user| {
            let misses = user.missed(&place, actor.at)?;
            Some(actor.entry(None, "user.refused", target, &json!({ "misses": misses })))
        })
        .await?;
        return Err(wrong("old", "the password is wrong"));
    }
    let kept = password::hash(new).await?;
    update_user(store, &known.name, actor.at, |user| {
        user.password.clone_from(&kept);
        user.sessions.retain(|session| session.hash == known.hash);
        Some(actor.entry(None, "user.password_changed", target, &json!({})))
    })
    .await
}

/// Changes a user; with what the log says of it, if it does.
pub(super) async fn update_user(
    store: &dyn Store,
    name: &str,
    at: Time,
    mut step: impl FnMut(&mut User) -> Option<Entry>,
) -> Result<()> {
    let key = User::key(name);
    let updated = transact(store, Wanted::keys([key.clone()]), |loaded| -> Result<_> {
        let unknown = || UserRefusal::Unknown(name.to_owned());
        let mut user = loaded.read::<User>(&key)?.ok_or_else(unknown)?;
        let audit = step(&mut user.value).into_iter().collect();
        Ok((ChangeSet { writes: vec![user.write()], audit, ..ChangeSet::nothing(at) }, ()))
    });
    Ok(updated.await?)
}

pub(super) fn acting(name: &str, rank: Rank, at: Time) -> Actor<'_> {
    Actor { name, role: rank.role(), tenant: None, at }
}
