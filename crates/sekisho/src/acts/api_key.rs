//! Keys to the API, made and revoked while Sekisho runs: by command, in the console, by the API.

use sekisho_core::Secret;
use sekisho_core::actor::Actor;
use sekisho_core::api_key::{self, ApiKey, KeyRefusal, NewKey, PREFIX};
use sekisho_core::state::{Key, Kind, Wanted};
use sekisho_store::Store;

use crate::queries::find_key_called;
use crate::refusal::Result;
use crate::token;
use crate::transact::transact;

/// A key that was just made: the only moment at which anybody sees it.
pub struct CreatedKey {
    pub secret: Secret,
    pub key: ApiKey,
}

/// Makes a key. `configured` are the names of the keys of the configuration.
pub async fn create_key(
    store: &dyn Store,
    order: NewKey,
    configured: &[String],
    actor: &Actor<'_>,
) -> Result<CreatedKey> {
    let secret = format!("{PREFIX}{}", token::generate::<24>());
    let key = order.key(&secret, configured, actor.at)?;
    let id = Key::new(Kind::ApiKey, token::hash(&secret));
    transact(store, Wanted::names([key.claim()]), |loaded| -> Result<_> {
        let before = loaded.read_named(&key.claim())?;
        Ok((key.create(&id, before.as_ref(), actor)?, ()))
    })
    .await?;
    Ok(CreatedKey { secret: Secret::new(secret), key })
}

/// Takes a key back, by its name or its first characters.
pub async fn revoke_key(store: &dyn Store, which: &str, actor: &Actor<'_>) -> Result<ApiKey> {
    let found = find_key_called(store, which).await?;
    let id = found.ok_or_else(|| KeyRefusal::Unknown(which.to_owned()))?;
    let revoked = transact(store, Wanted::keys([id.clone()]), |loaded| -> Result<_> {
        Ok(api_key::revoke(which, loaded.read(&id)?, actor)?)
    });
    Ok(revoked.await?)
}

#[cfg(test)]
mod tests {
    use sekisho_core::Time;
    use sekisho_core::api_key::Scope;
    use sekisho_core::audit::Role;
    use sekisho_store::memory::MemoryStore;

    use super::*;
    use crate::queries::find_key;
    use crate::refusal::Refusal;

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
