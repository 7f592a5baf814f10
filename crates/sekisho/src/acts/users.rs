//! Who may enter the console. Somebody becomes a user by an invitation, which is a link that works once; enters with a
//! password; and is known from then on by a session's token. What is kept are hashes.
//!
//! The first invitation is made by whoever starts the server, while there is no user. It has a fixed id, so that of
//! several nodes and several starts only the newest one works, and once.

use sekisho_core::Time;
use sekisho_core::change::ChangeSet;
use sekisho_core::state::{Key, Kind, State, Write};
use sekisho_core::user::{Act, Invite, Rank, Session, User, check_name, check_password};
use sekisho_store::{FIND_MAX, StateFilter, Store};
use serde_json::json;

use super::all_pages::all_pages;
use super::login::{Ticket, new_device, place_of};
use super::typed_state::{is_written, load, read, write};
use super::{Actor, FieldError, Refusal, Result, TRIES, contended, password};
use crate::token;

/// The invitation of whoever comes first.
const FIRST: &str = "first";
const AGENT_LETTERS_MAX: usize = 200;

/// Where somebody enters from.
#[derive(Clone, Copy)]
pub struct Visitor<'a> {
    pub agent: &'a str,
    pub peer: &'a str,
    /// What its browser shows to have logged in before.
    pub device: Option<&'a str>,
    pub at: Time,
}

/// Somebody who is known by a session.
#[derive(Clone, Debug)]
pub struct Known {
    pub name: String,
    pub rank: Rank,
    /// Of the session's token.
    pub hash: String,
}

/// A link for the first admin, if there is nobody yet.
pub async fn first_invite(store: &dyn Store, at: Time) -> Result<Option<String>> {
    if !users(store).await?.is_empty() {
        return Ok(None);
    }
    let (key, token) = (Key::new(Kind::Invite, FIRST), token::generate::<32>());
    for _ in 0..TRIES {
        let version = load(store, &key).await?.map_or(0, |state| state.version);
        let invite = Invite::new(Rank::Admin, token::hash(&token), None, at);
        let set = ChangeSet { writes: vec![write(&key, version, &invite)], ..ChangeSet::nothing(at) };
        if is_written(store, set).await? {
            return Ok(Some(token));
        }
    }
    Err(contended())
}

/// A link for one more user: its token is shown once.
pub async fn invite(store: &dyn Store, rank: Rank, actor: &Actor<'_>) -> Result<(String, Invite)> {
    let token = token::generate::<32>();
    let invite = Invite::new(rank, token::hash(&token), Some(actor.name.to_owned()), actor.at);
    let write = write(&Key::new(Kind::Invite, &invite.hash), 0, &invite);
    let audit = vec![actor.entry(None, "user.invited", ("invite", invite.id()), json!({ "rank": rank }))];
    let set = ChangeSet { writes: vec![write], audit, ..ChangeSet::nothing(actor.at) };
    if is_written(store, set).await? { Ok((token, invite)) } else { Err(contended()) }
}

/// Invitations that nobody took up or took back, the one that ends first first. Those of somebody who may not give any now
/// are among them: they are worth something again if that changes.
pub async fn open_invites(store: &dyn Store, now: Time) -> Result<Vec<Invite>> {
    let mut open: Vec<_> =
        find_open_invites(store, now).await?.into_iter().map(|(_, invite)| invite).collect();
    open.sort_by_key(|invite| invite.expires_at);
    Ok(open)
}

async fn find_open_invites(store: &dyn Store, now: Time) -> Result<Vec<(State, Invite)>> {
    let mut open = Vec::new();
    for state in all_pages(store, StateFilter::all(Kind::Invite, FIND_MAX)).await? {
        let invite: Invite = read(&state)?;
        if invite.is_open(now) {
            open.push((state, invite));
        }
    }
    Ok(open)
}

/// Takes an invitation back: its link leads nowhere from now on.
pub async fn withdraw_invite(store: &dyn Store, id: &str, actor: &Actor<'_>) -> Result<()> {
    for _ in 0..TRIES {
        let open = find_open_invites(store, actor.at).await?;
        let (state, mut invite) =
            open.into_iter().find(|(_, invite)| invite.id() == id).ok_or_else(no_invite)?;
        invite.withdrawn_by = Some(actor.name.to_owned());
        let details = json!({ "rank": invite.rank, "by": invite.by });
        let set = ChangeSet {
            writes: vec![write(&state.key, state.version, &invite)],
            audit: vec![actor.entry(None, "user.invitation_withdrawn", ("invite", id), details)],
            ..ChangeSet::nothing(actor.at)
        };
        if is_written(store, set).await? {
            return Ok(());
        }
    }
    Err(contended())
}

/// The invitation behind a link, if it can still be taken up.
pub async fn find_invite(store: &dyn Store, token: &str, now: Time) -> Result<Option<Invite>> {
    Ok(load_invite(store, token, now).await?.map(|(_, invite)| invite))
}

async fn load_invite(store: &dyn Store, token: &str, now: Time) -> Result<Option<(State, Invite)>> {
    let hash = token::hash(token);
    let keys = [Key::new(Kind::Invite, &hash), Key::new(Kind::Invite, FIRST)];
    let loaded = store.load(Vec::new(), keys.to_vec()).await?.states;
    for state in loaded.into_values() {
        let invite: Invite = read(&state)?;
        if invite.hash == hash && invite.is_open(now) && is_vouched(store, &invite).await? {
            return Ok(Some((state, invite)));
        }
    }
    Ok(None)
}

/// Whether whoever gave it could still give it. At a terminal, anybody can.
async fn is_vouched(store: &dyn Store, invite: &Invite) -> Result<bool> {
    let Some(by) = invite.by.as_ref().filter(|by| check_name(by).is_ok()) else { return Ok(true) };
    let state = load(store, &Key::new(Kind::User, by)).await?;
    let user = state.map(|state| read::<User>(&state)).transpose()?;
    Ok(user.as_ref().is_none_or(User::is_admin))
}

/// Takes up an invitation: a user, and a session of theirs.
pub async fn join(
    store: &dyn Store,
    token: &str,
    name: &str,
    password: &str,
    from: Visitor<'_>,
) -> Result<Ticket> {
    let name = name.trim();
    let wrong = |field, what: &str| Refusal::Fields(vec![FieldError::new(field, format!("expected {what}"))]);
    check_name(name).map_err(|what| wrong("name", what))?;
    check_password(name, password).map_err(|what| wrong("password", what))?;
    let (state, mut invite) = load_invite(store, token, from.at).await?.ok_or_else(no_invite)?;
    let kept = password::hash(password).await?;
    let mut user = User::new(invite.rank, kept, from.at);
    let token = begin(&mut user, name, &place_of(from.peer), from);
    let ticket = Ticket { token, device: new_device(name, &user) };
    invite.used_by = Some(name.to_owned());
    let key = Key::new(Kind::User, name);
    if load(store, &key).await?.is_some() {
        return Err(Refusal::Conflict(format!("a user named {name} already exists; choose another name")));
    }
    let actor = acting(name, user.rank, from.at);
    let mut writes = vec![write(&state.key, state.version, &invite), write(&key, 0, &user)];
    writes.extend(closed_first(store, &state.key, name).await?);
    let set = ChangeSet {
        writes,
        audit: vec![actor.entry(
            None,
            "user.joined",
            ("user", name),
            json!({ "rank": user.rank, "by": invite.by }),
        )],
        ..ChangeSet::nothing(from.at)
    };
    if is_written(store, set).await? { Ok(ticket) } else { Err(no_invite()) }
}

/// Once there is somebody, the link for whoever comes first is void, by whichever link they came.
async fn closed_first(store: &dyn Store, taken: &Key, name: &str) -> Result<Option<Write>> {
    let key = Key::new(Kind::Invite, FIRST);
    let Some(state) = load(store, &key).await?.filter(|state| state.key != *taken) else { return Ok(None) };
    let mut first: Invite = read(&state)?;
    if first.used_by.is_some() {
        return Ok(None);
    }
    first.used_by = Some(name.to_owned());
    Ok(Some(write(&key, state.version, &first)))
}

fn no_invite() -> Refusal {
    Refusal::Missing("this invitation is used, expired or unknown; ask for another".into())
}

/// Who shows this token, if its session lives.
pub async fn find_session(store: &dyn Store, token: &str, now: Time) -> Result<Option<Known>> {
    let Some((name, _)) = token.rsplit_once('.').filter(|(name, _)| check_name(name).is_ok()) else {
        return Ok(None);
    };
    let Some(state) = load(store, &Key::new(Kind::User, name)).await? else { return Ok(None) };
    let (mut user, hash) = (read::<User>(&state)?, token::hash(token));
    if user.session(&hash, now).is_none() {
        return Ok(None);
    }
    let rank = user.rank;
    if user.seen(&hash, now) {
        // Another request may be faster; then it has noted the same.
        let set =
            ChangeSet { writes: vec![write(&state.key, state.version, &user)], ..ChangeSet::nothing(now) };
        store.commit(vec![set]).await?;
    }
    Ok(Some(Known { name: name.to_owned(), rank, hash }))
}

/// Ends one session, by the hash of its token.
pub async fn end_session(store: &dyn Store, name: &str, hash: &str, actor: &Actor<'_>) -> Result<()> {
    change(store, name, actor.at, |user| {
        user.sessions.retain(|session| session.hash != hash);
        Ok(Some(actor.entry(None, "user.left", ("user", name), json!({}))))
    })
    .await
    .map(drop)
}

/// Carries it out. Somebody stays who can let others in: the last admin keeps rank and entry.
pub async fn change_user(store: &dyn Store, name: &str, act: Act, actor: &Actor<'_>) -> Result<User> {
    let key = Key::new(Kind::User, name);
    for _ in 0..TRIES {
        let missing = || Refusal::Missing(format!("there is no user {name}"));
        let state = load(store, &key).await?.ok_or_else(missing)?;
        let mut user: User = read(&state)?;
        let was_admin = user.is_admin();
        let (action, details) = user.carry_out(act, actor.at);
        let mut writes = vec![write(&key, state.version, &user)];
        if was_admin && !user.is_admin() {
            // The one who stays is written too, as they are: two who put each other out can't both succeed.
            let (stays, known) = other_admin(store, name).await?;
            writes.push(write(&stays.key, stays.version, &known));
        }
        let audit = vec![actor.entry(None, action, ("user", name), details)];
        if is_written(store, ChangeSet { writes, audit, ..ChangeSet::nothing(actor.at) }).await? {
            return Ok(user);
        }
    }
    Err(contended())
}

/// Somebody else who can let people in.
async fn other_admin(store: &dyn Store, without: &str) -> Result<(State, User)> {
    for state in all_pages(store, StateFilter::all(Kind::User, FIND_MAX)).await? {
        let user: User = read(&state)?;
        if state.key.id != without && user.is_admin() {
            return Ok((state, user));
        }
    }
    Err(Refusal::Conflict(format!("{without} is the last admin: make another user admin first")))
}

/// Another password, by whoever knows the old one. Every other session ends.
pub async fn change_password(
    store: &dyn Store,
    known: &Known,
    old: &str,
    new: &str,
    actor: &Actor<'_>,
) -> Result<()> {
    let wrong = |field, what: &str| Refusal::Fields(vec![FieldError::new(field, what.to_owned())]);
    check_password(&known.name, new).map_err(|what| wrong("new", &format!("expected {what}")))?;
    let state = load(store, &Key::new(Kind::User, &known.name)).await?;
    let user = state.map(|state| read::<User>(&state)).transpose()?;
    // Whoever sits at a session they found may not guess for ever.
    let place = format!("session {}", known.hash);
    if user.as_ref().is_some_and(|user| user.shut(&place, actor.at).is_some()) {
        let detail = "too many wrong passwords: wait a quarter of an hour".to_owned();
        return Err(Refusal::RetryLater { detail, seconds: 15 * 60 });
    }
    if !password::matches(old, user.as_ref().map(|user| user.password.as_str())).await? {
        change(store, &known.name, actor.at, |user| {
            let told = user.missed(&place, actor.at);
            let entry = |misses| json!({ "misses": misses });
            Ok(told.map(|misses| actor.entry(None, "user.refused", ("user", &known.name), entry(misses))))
        })
        .await?;
        return Err(wrong("old", "the password is wrong"));
    }
    let kept = password::hash(new).await?;
    let details = json!({});
    change(store, &known.name, actor.at, |user| {
        user.password.clone_from(&kept);
        user.sessions.retain(|session| session.hash == known.hash);
        Ok(Some(actor.entry(None, "user.password_changed", ("user", &known.name), details.clone())))
    })
    .await
    .map(drop)
}

/// Whether somebody of this name is kept and was shut out.
pub async fn is_disabled(store: &dyn Store, name: &str) -> Result<bool> {
    let state = load(store, &Key::new(Kind::User, name)).await?;
    let user = state.map(|state| read::<User>(&state)).transpose()?;
    Ok(user.is_some_and(|user| user.disabled_at.is_some()))
}

/// Every user, by name.
pub async fn users(store: &dyn Store) -> Result<Vec<(String, User)>> {
    let states = all_pages(store, StateFilter::all(Kind::User, FIND_MAX)).await?;
    let mut users: Vec<_> =
        states.iter().map(|state| Ok((state.key.id.clone(), read(state)?))).collect::<Result<_>>()?;
    users.sort_by(|a: &(String, User), b| a.0.cmp(&b.0));
    Ok(users)
}

/// Reads, changes and writes a user, again when others were faster; with what the log says of it, if it does.
pub(super) async fn change(
    store: &dyn Store,
    name: &str,
    at: Time,
    mut step: impl FnMut(&mut User) -> Result<Option<sekisho_core::audit::Entry>>,
) -> Result<User> {
    let key = Key::new(Kind::User, name);
    for _ in 0..TRIES {
        let missing = || Refusal::Missing(format!("there is no user {name}"));
        let state = load(store, &key).await?.ok_or_else(missing)?;
        let mut user: User = read(&state)?;
        let entry = step(&mut user)?;
        let write = write(&key, state.version, &user);
        let audit = entry.into_iter().collect();
        let set = ChangeSet { writes: vec![write], audit, ..ChangeSet::nothing(at) };
        if is_written(store, set).await? {
            return Ok(user);
        }
    }
    Err(contended())
}

/// Begins a session, from this place. Answers its token.
pub(super) fn begin(user: &mut User, name: &str, place: &str, from: Visitor<'_>) -> String {
    let token = format!("{name}.{}", token::generate::<32>());
    let agent = from.agent.chars().filter(|letter| !letter.is_control()).take(AGENT_LETTERS_MAX).collect();
    let (began_at, seen_at, peer) = (from.at, from.at, from.peer.to_owned());
    user.entered(place, Session { hash: token::hash(&token), began_at, seen_at, agent, peer });
    token
}

pub(super) fn acting(name: &str, rank: Rank, at: Time) -> Actor<'_> {
    Actor { name, role: rank.role(), tenant: None, at }
}
