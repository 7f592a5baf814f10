//! Who asks: `Authorization: Bearer KEY`. Keys are those of the configuration, those that people made since, and the
//! process' own, which commands on this machine use and which may act in somebody's name.
//!
//! A wrong key leaves a trace, and where many came from, no key is looked at any more that could be guessed. Long random
//! ones pass all the same: nobody shuts them out.

use std::net::Ipv4Addr;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, header};
use sekisho_core::Secret;
use sekisho_core::audit::Role;
use sekisho_core::fulfilment::run_key;
use sekisho_core::link::LinkKeys;
use sekisho_store::Store;

use super::problem;
use crate::attempts::{Attempts, FailedAttempt};
use crate::config::{Key, Scope};
use crate::http::{Problem, RemotePeer};
use crate::{acts, queries, token};

/// Says in whose name a command acts; believed only with the process' own key.
pub const ACTOR: HeaderName = HeaderName::from_static("sekisho-actor");
const ACTOR_LETTERS_MAX: usize = 100;

pub struct Auth {
    keys: Vec<Known>,
    store: Arc<dyn Store>,
    attempts: Arc<Attempts>,
}

/// A key by its hash: what is compared tells nothing about what is kept.
struct Known {
    hash: String,
    name: String,
    scope: Scope,
    is_own: bool,
    /// Short or repeating: somebody patient could guess it.
    is_weak: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Caller {
    pub name: String,
    pub role: Role,
    pub scope: Scope,
    /// The one tenant it may speak for, if it may not speak for all.
    pub tenant: Option<String>,
    /// The one run of a fulfilment it may answer for, if it shows the token of that run and no key.
    pub run: Option<u32>,
}

impl Caller {
    /// Whoever asks for what everybody may see.
    pub const fn nobody() -> Self {
        Self { name: String::new(), role: Role::ApiKey, scope: Scope::Read, tenant: None, run: None }
    }

    /// Whoever shows the token of a run, and may answer for that one.
    pub fn of_run(headers: &HeaderMap, keys: &LinkKeys, fulfilment: &str) -> Option<Self> {
        let run = keys.run_of_token(bearer(headers)?, fulfilment)?;
        Some(Self { name: run_key(fulfilment, run), scope: Scope::Write, run: Some(run), ..Self::nobody() })
    }
}

impl Auth {
    /// `own` is the key of commands on this machine.
    pub fn new(keys: &[Key], own: Option<&Secret>, store: Arc<dyn Store>, attempts: Arc<Attempts>) -> Self {
        let configured = keys.iter().map(|key| Known {
            hash: token::hash(key.secret.expose()),
            name: key.name.clone(),
            scope: key.scope,
            is_own: false,
            is_weak: key.is_weak(),
        });
        let own = own.map(|secret| Known {
            hash: token::hash(secret.expose()),
            name: "cli".into(),
            scope: Scope::Admin,
            is_own: true,
            is_weak: false,
        });
        Self { keys: configured.chain(own).collect(), store, attempts }
    }

    /// Who asks; nobody, if no key is shown.
    pub async fn caller(
        &self,
        headers: &HeaderMap,
        peer: Option<RemotePeer>,
    ) -> Result<Option<Caller>, Problem> {
        if !headers.contains_key(header::AUTHORIZATION) {
            return Ok(None);
        }
        let peer = peer.map_or(Ipv4Addr::UNSPECIFIED.into(), |peer| peer.named);
        let wait = self.attempts.wait(peer);
        let known = match self.configured(headers) {
            Some((caller, is_weak)) => Some(caller).filter(|_| !is_weak || wait.is_none()),
            None => self.made(headers).await?,
        };
        match (known, wait) {
            (Some(caller), _) => Ok(Some(caller)),
            (None, Some(seconds)) => {
                self.attempts.failed(FailedAttempt::ApiKey, peer);
                Err(problem::too_many_keys(seconds))
            }
            (None, None) => {
                let request_id = Some(self.attempts.failed(FailedAttempt::ApiKey, peer).into());
                Err(Problem { request_id, ..problem::no_key() })
            }
        }
    }

    /// Who shows a key that somebody made: by command, in the console or by the API.
    async fn made(&self, headers: &HeaderMap) -> acts::Result<Option<Caller>> {
        let Some(shown) = bearer(headers) else { return Ok(None) };
        let key = queries::find_key(&*self.store, shown).await?;
        Ok(key.and_then(|key| {
            let scope = key.scope()?;
            Some(Caller { name: key.name, role: Role::ApiKey, scope, tenant: key.tenant, run: None })
        }))
    }

    /// Who shows a key of the configuration, or the process' own; and whether it could be guessed.
    fn configured(&self, headers: &HeaderMap) -> Option<(Caller, bool)> {
        let given = token::hash(bearer(headers)?);
        // Hashes are compared, so how long it takes tells nothing about a key.
        let found = self.keys.iter().find(|known| known.hash == given)?;
        let named = headers.get(ACTOR).filter(|_| found.is_own).and_then(|name| name.to_str().ok());
        let named = named.filter(|name| !name.is_empty() && name.len() <= ACTOR_LETTERS_MAX);
        let name = named.unwrap_or(&found.name).to_owned();
        let role = if found.is_own { Role::Operator } else { Role::ApiKey };
        Some((Caller { name, role, scope: found.scope, tenant: None, run: None }, found.is_weak))
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let given = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, key) = given.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

#[cfg(test)]
mod tests {
    use crate::env::Env;
    use sekisho_store::memory::MemoryStore;

    use super::*;
    use crate::checkpoint::rejection::Recorder;

    const STRONG: &str = "0b7cf2a4e1d98365c0ffee41b2a7d9e8";

    fn auth() -> Auth {
        let key = |name: &str, secret, scope| Key { name: name.into(), secret: Secret::new(secret), scope };
        let keys = [key("reader", "reader-reader-reader", Scope::Read), key("strong", STRONG, Scope::Write)];
        let attempts = Arc::new(Attempts::new(Env::system(), Arc::default(), Recorder::default()));
        Auth::new(&keys, Some(&Secret::new("own-own-own-own")), Arc::new(MemoryStore::default()), attempts)
    }

    fn headers(lines: &[(HeaderName, &str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    fn ask(lines: &[(HeaderName, &str)]) -> Option<(String, Scope)> {
        auth().configured(&headers(lines)).map(|(caller, _)| (caller.name, caller.scope))
    }

    #[tokio::test]
    async fn h2_who_guesses_keys_is_told_to_wait_and_nobody_else_is() {
        let auth = auth();
        let actor = acts::Actor { name: "test", role: Role::Operator, tenant: None, at: crate::now() };
        let order = acts::NewKey { name: Some("made".into()), scopes: vec![Scope::Read], tenant: None };
        let made = acts::create_key(&*auth.store, order, &[], &actor).await.unwrap();
        let from = |address: &str| {
            let address = address.parse().unwrap();
            Some(RemotePeer { socket: address, named: address })
        };
        let ask = async |key: &str, address: &str| {
            let key = format!("Bearer {key}");
            let shown = headers(&[(header::AUTHORIZATION, &key)]);
            match auth.caller(&shown, from(address)).await {
                Ok(caller) => Ok(caller.unwrap().name),
                Err(problem) => Err((problem.status, problem.retry_after.is_some())),
            }
        };
        for _ in 0..20 {
            assert_eq!(ask("sk_guess", "192.0.2.1").await, Err((401, false)));
        }
        assert_eq!(ask("sk_guess", "192.0.2.1").await, Err((429, true)));
        assert_eq!(ask("reader-reader-reader", "192.0.2.1").await, Err((429, true)), "it could be guessed");
        assert_eq!(
            ask("reader-reader-reader", "198.51.100.2").await,
            Ok("reader".into()),
            "elsewhere it counts"
        );
        for (key, name) in [(STRONG, "strong"), ("own-own-own-own", "cli"), (made.secret.expose(), "made")] {
            assert_eq!(ask(key, "192.0.2.1").await, Ok(name.into()), "nobody guesses it");
        }
        assert!(auth.caller(&HeaderMap::new(), from("192.0.2.1")).await.unwrap().is_none());
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
