//! Keys to the API that are made by command: shown once, kept as a hash, gone the moment they are revoked.

use sekisho_core::change::ChangeSet;
use sekisho_core::state::{Index, Key, Kind, State, Write};
use sekisho_core::{Secret, Time};
use sekisho_store::{FIND_MAX, StateFilter, Store};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::every::every;
use super::kept::{self, is_written, load, read};
use super::{Actor, Refusal, Result, TRIES, contended};
use crate::chance;
use crate::config::Scope;

/// What every key begins with, so that it is recognised wherever it turns up.
const PREFIX: &str = "sk_";

/// A key as it is kept; its id is the hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKey {
    pub name: String,
    pub scopes: Vec<Scope>,
    /// The one tenant it may speak for, if it may not speak for all.
    pub tenant: Option<String>,
    /// The first letters, so that it can be told from others.
    pub hint: String,
    pub created_at: Time,
    pub revoked_at: Option<Time>,
}

/// A key that was just made: the only moment at which anybody sees it.
pub struct Made {
    pub secret: Secret,
    pub key: ApiKey,
}

pub async fn create_key(
    store: &dyn Store,
    name: Option<&str>,
    scopes: Vec<Scope>,
    tenant: Option<String>,
    actor: &Actor<'_>,
) -> Result<Made> {
    let secret = format!("{PREFIX}{}", chance::token::<24>());
    let hint = secret[..PREFIX.len() + 6].to_owned();
    let name = &*name.map_or_else(|| format!("key-{hint}"), str::to_owned);
    if name.is_empty() || name.chars().count() > 100 || name.contains(char::is_control) {
        return Err(Refusal::Wrong("the name of a key has 1 to 100 letters".into()));
    }
    if name == "cli" || name.starts_with("cli:") || name.starts_with(PREFIX) {
        return Err(Refusal::Wrong(format!(
            "the name {name} would be taken for somebody at a terminal, or for a key; choose another"
        )));
    }
    if list_keys(store).await?.iter().any(|key| key.name == name && key.revoked_at.is_none()) {
        return Err(Refusal::Conflict(format!(
            "there is a key named {name} already; revoke it or choose another name"
        )));
    }
    let key = ApiKey { name: name.to_owned(), scopes, tenant, hint, created_at: actor.at, revoked_at: None };
    let write = write(&Key::new(Kind::ApiKey, chance::hash(&secret)), 0, &key);
    let entry = actor.entry(
        key.tenant.as_deref(),
        "api_key.created",
        ("api_key", name),
        json!({ "scopes": key.scopes, "hint": key.hint }),
    );
    let set = ChangeSet { writes: vec![write], audit: vec![entry], ..ChangeSet::nothing(actor.at) };
    store.commit(vec![set]).await?;
    Ok(Made { secret: Secret::new(secret), key })
}

/// Takes a key back, by its name or its first letters.
pub async fn revoke_key(store: &dyn Store, which: &str, actor: &Actor<'_>) -> Result<ApiKey> {
    for _ in 0..TRIES {
        let found = all(store).await?.into_iter().find_map(|state| {
            let key: ApiKey = read(&state).ok()?;
            let is_meant = key.revoked_at.is_none() && (key.name == which || key.hint == which);
            is_meant.then_some((state, key))
        });
        let Some((state, mut key)) = found else {
            return Err(Refusal::Missing(format!("no key is named {which}; `sekisho keys` lists them")));
        };
        key.revoked_at = Some(actor.at);
        let write = write(&state.key, state.version, &key);
        let entry = actor.entry(
            key.tenant.as_deref(),
            "api_key.revoked",
            ("api_key", &key.name),
            json!({ "hint": key.hint }),
        );
        let set = ChangeSet { writes: vec![write], audit: vec![entry], ..ChangeSet::nothing(actor.at) };
        if is_written(store, set).await? {
            return Ok(key);
        }
    }
    Err(contended())
}

pub async fn list_keys(store: &dyn Store) -> Result<Vec<ApiKey>> {
    let states = all(store).await?;
    let mut keys: Vec<ApiKey> = states.iter().filter_map(|state| read(state).ok()).collect();
    keys.sort_by_key(|key| key.created_at);
    Ok(keys)
}

/// Every key there ever was.
async fn all(store: &dyn Store) -> Result<Vec<State>> {
    Ok(every(store, StateFilter::all(Kind::ApiKey, FIND_MAX)).await?)
}

/// The key that somebody shows, if it is one of ours and was not taken back.
pub async fn find_key(store: &dyn Store, shown: &str) -> Result<Option<ApiKey>> {
    if !shown.starts_with(PREFIX) {
        return Ok(None);
    }
    let key = Key::new(Kind::ApiKey, chance::hash(shown));
    let found = load(store, &key).await?.and_then(|state| read::<ApiKey>(&state).ok());
    Ok(found.filter(|key| key.revoked_at.is_none()))
}

fn write(id: &Key, version: i64, key: &ApiKey) -> Write {
    let index = Index { tenant: key.tenant.clone(), ..Index::default() };
    Write { index, ..kept::write(id, version, key) }
}
