//! Keys to the API that are made by command: shown once, kept as a hash, gone the moment they are revoked.

use sekisho_core::change::ChangeSet;
use sekisho_core::state::{Index, Key, Kind, Naming, State, Write};
use sekisho_core::{Secret, Time};
use sekisho_store::{FIND_MAX, StateFilter, Store};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::all_pages::all_pages;
use super::typed_state::{self, is_written, load, read};
use super::{Actor, Refusal, Result, TRIES, contended};
use crate::config::Scope;
use crate::token;

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

/// What is wanted of a key.
#[derive(Clone, Debug, Default)]
pub struct NewKey {
    /// Without one it is called after its first letters.
    pub name: Option<String>,
    pub scopes: Vec<Scope>,
    pub tenant: Option<String>,
}

impl ApiKey {
    /// The widest it has.
    pub fn scope(&self) -> Option<Scope> {
        self.scopes.iter().copied().max()
    }
}

/// Makes a key. `configured` are the names of the keys of the configuration: what the audit log says of a name is said of
/// one key.
pub async fn create_key(
    store: &dyn Store,
    order: NewKey,
    configured: &[String],
    actor: &Actor<'_>,
) -> Result<Made> {
    let secret = format!("{PREFIX}{}", token::generate::<24>());
    let hint = secret[..PREFIX.len() + 6].to_owned();
    let NewKey { name, scopes, tenant } = order;
    let name = name.map_or_else(|| Ok(format!("key-{hint}")), check_name)?;
    if configured.contains(&name) {
        return Err(Refusal::Conflict(format!(
            "the configuration has a key named {name}; choose another name"
        )));
    }
    let key = ApiKey { name, scopes, tenant, hint, created_at: actor.at, revoked_at: None };
    let id = Key::new(Kind::ApiKey, token::hash(&secret));
    for _ in 0..TRIES {
        let loaded = store.load(vec![name_of(&key)], Vec::new()).await?;
        // Order matters: the name is taken in the same commit, so of two who want it one has it.
        let mut naming = Naming { name: name_of(&key), key: id.clone(), was: None };
        let mut writes = vec![write(&id, 0, &key)];
        if let Some(state) = loaded.names.get(&naming.name).and_then(|old| loaded.states.get(old)) {
            let old: ApiKey = read(state)?;
            if old.revoked_at.is_none() {
                return Err(Refusal::Conflict(format!(
                    "a key named {} already exists; revoke it or choose another name",
                    key.name
                )));
            }
            naming.was = Some(state.key.clone());
            writes.push(write(&state.key, state.version, &old));
        }
        let entry = actor.entry(
            key.tenant.as_deref(),
            "api_key.created",
            ("api_key", &key.name),
            json!({ "scopes": key.scopes, "hint": key.hint }),
        );
        let set =
            ChangeSet { writes, names: vec![naming], audit: vec![entry], ..ChangeSet::nothing(actor.at) };
        if is_written(store, set).await? {
            return Ok(Made { secret: Secret::new(secret), key });
        }
    }
    Err(contended())
}

fn check_name(name: String) -> Result<String> {
    if name.is_empty() || name.chars().count() > 100 || name.contains(char::is_control) {
        return Err(Refusal::Invalid("the name of a key has 1 to 100 characters".into()));
    }
    if name == "cli" || name.starts_with("cli:") || name.starts_with(PREFIX) {
        return Err(Refusal::Invalid(format!(
            "the name {name} is reserved for commands and keys; choose another"
        )));
    }
    Ok(name)
}

/// What keeps two keys from having one name.
fn name_of(key: &ApiKey) -> String {
    format!("api_key:{}", key.name)
}

/// The widest scope of a key that speaks for this tenant now.
pub async fn strongest_key(store: &dyn Store, tenant: &str) -> Result<Option<Scope>> {
    let keys = list_keys(store).await?;
    let own = keys.iter().filter(|key| key.revoked_at.is_none() && key.tenant.as_deref() == Some(tenant));
    Ok(own.filter_map(ApiKey::scope).max())
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
    Ok(all_pages(store, StateFilter::all(Kind::ApiKey, FIND_MAX)).await?)
}

/// The key that somebody shows, if it is one of ours and was not taken back.
pub async fn find_key(store: &dyn Store, shown: &str) -> Result<Option<ApiKey>> {
    if !shown.starts_with(PREFIX) {
        return Ok(None);
    }
    let key = Key::new(Kind::ApiKey, token::hash(shown));
    let found = load(store, &key).await?.and_then(|state| read::<ApiKey>(&state).ok());
    Ok(found.filter(|key| key.revoked_at.is_none()))
}

fn write(id: &Key, version: i64, key: &ApiKey) -> Write {
    let index = Index { tenant: key.tenant.clone(), ..Index::default() };
    Write { index, ..typed_state::write(id, version, key) }
}

#[cfg(test)]
mod tests {
    use sekisho_core::audit::Role;
    use sekisho_store::memory::MemoryStore;

    use super::*;

    const ACTOR: Actor<'_> =
        Actor { name: "test", role: Role::Operator, tenant: None, at: Time::from_ms(1_780_000_000_000) };

    fn order(name: &str) -> NewKey {
        NewKey { name: Some(name.to_owned()), scopes: vec![Scope::Read], tenant: None }
    }

    #[tokio::test]
    async fn h2_no_two_living_keys_have_one_name() {
        let store = MemoryStore::default();
        let create = async |name: &str| create_key(&store, order(name), &["shop".to_owned()], &ACTOR).await;
        create("app").await.unwrap();
        for taken in ["app", "shop"] {
            assert!(matches!(create(taken).await, Err(Refusal::Conflict(_))), "{taken}");
        }
        revoke_key(&store, "app", &ACTOR).await.unwrap();
        let again = create("app").await.unwrap();
        assert!(find_key(&store, again.secret.expose()).await.unwrap().is_some());
        assert!(matches!(create("app").await, Err(Refusal::Conflict(_))), "again one is enough");
    }
}
