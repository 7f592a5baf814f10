//! Who asks: `Authorization: Bearer KEY`. Keys are those of the configuration, those that were made by command, and the
//! process' own, which commands on this machine use and which may act in somebody's name.

use http::{HeaderMap, HeaderName, header};
use sekisho_core::Secret;
use sekisho_core::audit::Role;
use sekisho_store::Store;

use crate::chance;
use crate::config::{Key, Scope};
use crate::transition;

/// Says in whose name a command acts; believed only with the process' own key.
pub const ACTOR: HeaderName = HeaderName::from_static("sekisho-actor");
const ACTOR_LETTERS_MAX: usize = 100;

pub struct Keys(Vec<Known>);

/// A key by its hash: what is compared tells nothing about what is kept.
struct Known {
    hash: String,
    name: String,
    scope: Scope,
    is_own: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Caller {
    pub name: String,
    pub role: Role,
    pub scope: Scope,
    /// The one tenant it may speak for, if it may not speak for all.
    pub tenant: Option<String>,
}

impl Caller {
    /// Whoever asks for what everybody may see.
    pub const fn nobody() -> Self {
        Self { name: String::new(), role: Role::ApiKey, scope: Scope::Read, tenant: None }
    }
}

impl Keys {
    pub fn new(keys: &[Key], own: Option<&Secret>) -> Self {
        let configured = keys.iter().map(|key| Known {
            hash: chance::hash(key.secret.expose()),
            name: key.name.clone(),
            scope: key.scope,
            is_own: false,
        });
        let own = own.map(|secret| Known {
            hash: chance::hash(secret.expose()),
            name: "cli".into(),
            scope: Scope::Operate,
            is_own: true,
        });
        Self(configured.chain(own).collect())
    }

    /// Who shows a key of the configuration, or one that was made by command.
    pub async fn find(&self, headers: &HeaderMap, store: &dyn Store) -> transition::Result<Option<Caller>> {
        if let Some(caller) = self.caller(headers) {
            return Ok(Some(caller));
        }
        let Some(shown) = bearer(headers) else { return Ok(None) };
        let key = transition::find_key(store, shown).await?;
        Ok(key.and_then(|key| {
            let scope = key.scopes.iter().copied().max()?;
            Some(Caller { name: key.name, role: Role::ApiKey, scope, tenant: key.tenant })
        }))
    }

    fn caller(&self, headers: &HeaderMap) -> Option<Caller> {
        let given = chance::hash(bearer(headers)?);
        // Hashes are compared, so how long it takes tells nothing about a key.
        let found = self.0.iter().find(|known| known.hash == given)?;
        let named = headers.get(ACTOR).filter(|_| found.is_own).and_then(|name| name.to_str().ok());
        let named = named.filter(|name| !name.is_empty() && name.len() <= ACTOR_LETTERS_MAX);
        let name = named.unwrap_or(&found.name).to_owned();
        let role = if found.is_own { Role::Operator } else { Role::ApiKey };
        Some(Caller { name, role, scope: found.scope, tenant: None })
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let given = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, key) = given.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        let reader =
            Key { name: "reader".into(), secret: Secret::new("reader-reader-reader"), scope: Scope::Read };
        Keys::new(&[reader], Some(&Secret::new("own-own-own-own")))
    }

    fn ask(lines: &[(HeaderName, &str)]) -> Option<(String, Scope)> {
        let headers = lines.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
        keys().caller(&headers).map(|caller| (caller.name, caller.scope))
    }

    #[test]
    fn h2_only_a_key_that_is_known_opens_anything() {
        let auth = header::AUTHORIZATION;
        for wrong in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer reader",
            "Basic reader-reader-reader",
            "reader-reader-reader",
            "Bearer reader-reader-reader x",
        ] {
            assert_eq!(ask(&[(auth.clone(), wrong)]), None, "{wrong}");
        }
        assert_eq!(ask(&[]), None);
        let found = ask(&[(auth, "bearer reader-reader-reader")]);
        assert_eq!(found, Some(("reader".into(), Scope::Read)));
    }

    #[test]
    fn h2_only_the_process_own_key_acts_in_another_name() {
        let named = |key: &str| ask(&[(header::AUTHORIZATION, key), (ACTOR, "cli:tomo")]).unwrap().0;
        assert_eq!(named("Bearer own-own-own-own"), "cli:tomo");
        assert_eq!(named("Bearer reader-reader-reader"), "reader");
        assert_eq!(ask(&[(header::AUTHORIZATION, "Bearer own-own-own-own")]).unwrap().0, "cli");
    }
}
