//! Keys to the API that people make while Sekisho runs, by command, in the console or by the API itself: shown once, kept as
//! a hash, gone the moment they are revoked. Keys of the configuration are not kept here.
//!
//! What the audit log says of a name is said of one key: no two living keys have the same, nor one that stands in the
//! configuration. The name is claimed in the commit that makes the key, so of two who want it one has it.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::actor::Actor;
use crate::change::ChangeSet;
use crate::state::{Index, Key, Naming, Versioned, Write};
use crate::text::is_hidden;
use crate::time::Time;
use crate::user::Rank;

/// What a key may do; each includes the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Look at anything.
    Read,
    /// Create payments, tenants and customers.
    Write,
    /// Retry, replay, reset.
    Operate,
    /// Make, list and revoke keys: what outlives the key that did it.
    Admin,
}

/// For whoever is asked for one.
pub const SCOPES: &str = "read, write, operate or admin";

impl Scope {
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Operate, Self::Admin];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Operate => "operate",
            Self::Admin => "admin",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }

    /// What a user of the console may do, as a scope.
    pub const fn of_rank(rank: Rank) -> Self {
        match rank {
            Rank::Viewer => Self::Read,
            Rank::Operator => Self::Operate,
            Rank::Admin => Self::Admin,
        }
    }
}

/// What every key begins with, so that it is recognised wherever it turns up.
pub const PREFIX: &str = "sk_";
/// Characters after the prefix that are kept, so that a key can be told from others.
const HINT: usize = 6;
const NAME_MAX: usize = 100;

/// A key as it is kept; its id is the hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKey {
    pub name: String,
    pub scopes: Vec<Scope>,
    /// The one tenant it may speak for, if it may not speak for all.
    pub tenant: Option<String>,
    /// The first characters, so that it can be told from others.
    pub hint: String,
    pub created_at: Time,
    pub revoked_at: Option<Time>,
}

/// What is wanted of a key.
#[derive(Clone, Debug, Default)]
pub struct NewKey {
    /// Without one it is called after its first characters.
    pub name: Option<String>,
    pub scopes: Vec<Scope>,
    pub tenant: Option<String>,
}

/// Why a key is not made, or not revoked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyRefusal {
    #[error(
        "the name of a key has 1 to {NAME_MAX} characters, all of them visible, and no blank at its ends"
    )]
    InvalidName,
    #[error("the name {0} is reserved for commands and keys; choose another")]
    ReservedName(String),
    #[error("the configuration has a key named {0}; choose another name")]
    ConfiguredName(String),
    #[error("a key named {0} already exists; revoke it or choose another name")]
    TakenName(String),
    #[error("no key is named {0}; `sekisho keys` lists them")]
    Unknown(String),
}

impl NewKey {
    /// Nobody gives away more than they have: a scope that is wanted and that whoever has `own` lacks.
    pub fn lacking(&self, own: Scope) -> Option<Scope> {
        self.scopes.iter().copied().find(|scope| *scope > own)
    }

    /// The key of this secret, as it will be kept. `configured` are the names of the keys of the configuration.
    pub fn key(self, secret: &str, configured: &[String], at: Time) -> Result<ApiKey, KeyRefusal> {
        let hint: String = secret.chars().take(PREFIX.len() + HINT).collect();
        let name = self.name.map_or_else(|| Ok(format!("key-{hint}")), check_name)?;
        if configured.contains(&name) {
            return Err(KeyRefusal::ConfiguredName(name));
        }
        Ok(ApiKey { name, scopes: self.scopes, tenant: self.tenant, hint, created_at: at, revoked_at: None })
    }
}

fn check_name(name: String) -> Result<String, KeyRefusal> {
    // A name that looks like another's is, to who reads the audit log, the other's.
    let is_plain = name.trim() == name && !name.contains(is_hidden);
    if name.is_empty() || name.chars().count() > NAME_MAX || !is_plain {
        return Err(KeyRefusal::InvalidName);
    }
    if name == "cli" || name.starts_with("cli:") || name.starts_with(PREFIX) {
        return Err(KeyRefusal::ReservedName(name));
    }
    Ok(name)
}

impl ApiKey {
    /// What keeps two keys from having one name.
    pub fn claim(&self) -> String {
        format!("api_key:{}", self.name)
    }

    /// The widest it has.
    pub fn scope(&self) -> Option<Scope> {
        self.scopes.iter().copied().max()
    }

    pub const fn is_alive(&self) -> bool {
        self.revoked_at.is_none()
    }

    /// Whether somebody who writes this, a name or first characters, means this key.
    pub fn is_called(&self, which: &str) -> bool {
        self.is_alive() && (self.name == which || self.hint == which)
    }

    /// Keeps a new key, under its name. `before` is who had the name.
    pub fn create(
        &self,
        id: &Key,
        before: Option<&Versioned<Self>>,
        actor: &Actor<'_>,
    ) -> Result<ChangeSet, KeyRefusal> {
        if before.is_some_and(|before| before.value.is_alive()) {
            return Err(KeyRefusal::TakenName(self.name.clone()));
        }
        let was = before.map(|before| before.key.clone());
        let details = json!({ "scopes": self.scopes, "hint": self.hint });
        Ok(ChangeSet {
            // Whose name it was is written, too: the version guards the move.
            writes: [self.write(id, 0)]
                .into_iter()
                .chain(before.map(|before| before.value.write(&before.key, before.version)))
                .collect(),
            names: vec![Naming { name: self.claim(), key: id.clone(), was }],
            audit: vec![actor.entry(
                self.tenant.as_deref(),
                "api_key.created",
                ("api_key", &self.name),
                &details,
            )],
            ..ChangeSet::nothing(actor.at)
        })
    }

    fn write(&self, id: &Key, version: i64) -> Write {
        let index = Index { tenant: self.tenant.clone(), ..Index::default() };
        Write { index, ..Write::of(id, version, self) }
    }
}

/// Takes back the key that was found as `which`.
pub fn revoke(
    which: &str,
    found: Option<Versioned<ApiKey>>,
    actor: &Actor<'_>,
) -> Result<(ChangeSet, ApiKey), KeyRefusal> {
    let found = found.filter(|found| found.value.is_called(which));
    let Versioned { key: id, version, value: mut key } =
        found.ok_or_else(|| KeyRefusal::Unknown(which.to_owned()))?;
    key.revoked_at = Some(actor.at);
    let (tenant, details) = (key.tenant.as_deref(), json!({ "hint": key.hint }));
    let set = ChangeSet {
        writes: vec![key.write(&id, version)],
        audit: vec![actor.entry(tenant, "api_key.revoked", ("api_key", &key.name), &details)],
        ..ChangeSet::nothing(actor.at)
    };
    Ok((set, key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::Role;
    use crate::state::Kind;

    const NOW: Time = Time::from_ms(1_780_000_000_000);
    const ACTOR: Actor<'_> = Actor { name: "test", role: Role::Operator, tenant: None, at: NOW };
    const SECRET: &str = "sk_0123456789abcdef";

    fn named(name: &str) -> NewKey {
        NewKey { name: Some(name.to_owned()), scopes: vec![Scope::Read, Scope::Operate], tenant: None }
    }

    fn kept(name: &str, revoked_at: Option<Time>) -> Versioned<ApiKey> {
        let key = named(name).key(SECRET, &[], NOW).unwrap();
        Versioned { key: Key::new(Kind::ApiKey, "old"), version: 3, value: ApiKey { revoked_at, ..key } }
    }

    #[test]
    fn h2_a_key_has_a_name_that_is_nobody_elses() {
        let name = |order: NewKey| order.key(SECRET, &["shop".to_owned()], NOW).map(|key| key.name);
        assert_eq!(name(NewKey::default()).as_deref(), Ok("key-sk_012345"));
        assert_eq!(name(named("app")).as_deref(), Ok("app"));
        assert_eq!(name(named("shop")), Err(KeyRefusal::ConfiguredName("shop".into())));
        for reserved in ["cli", "cli:tomo", "sk_1"] {
            assert_eq!(name(named(reserved)), Err(KeyRefusal::ReservedName(reserved.into())));
        }
        let look_alikes = ["shop ", "\u{3000}shop", "sh\u{202e}po", "shop\u{200e}"];
        for invalid in ["", "a\nb", &"あ".repeat(NAME_MAX + 1)].into_iter().chain(look_alikes) {
            assert_eq!(name(named(invalid)), Err(KeyRefusal::InvalidName), "{invalid}");
        }
    }

    #[test]
    fn h2_the_name_is_claimed_in_the_commit_that_makes_the_key() {
        let key = named("app").key(SECRET, &[], NOW).unwrap();
        let id = Key::new(Kind::ApiKey, "new");
        let set = key.create(&id, None, &ACTOR).unwrap();
        assert_eq!(set.names, [Naming { name: "api_key:app".into(), key: id.clone(), was: None }]);
        assert_eq!(set.writes.iter().map(|write| write.version).collect::<Vec<_>>(), [0]);
        let taken = key.create(&id, Some(&kept("app", None)), &ACTOR);
        assert_eq!(taken, Err(KeyRefusal::TakenName("app".into())));
        let set = key.create(&id, Some(&kept("app", Some(NOW))), &ACTOR).unwrap();
        assert_eq!(set.names[0].was, Some(Key::new(Kind::ApiKey, "old")));
        assert_eq!(set.writes.iter().map(|write| write.version).collect::<Vec<_>>(), [0, 3]);
    }

    #[test]
    fn h2_a_key_is_revoked_once_by_its_name_or_its_first_characters() {
        for which in ["app", "sk_012345"] {
            let (set, key) = revoke(which, Some(kept("app", None)), &ACTOR).unwrap();
            assert_eq!((key.revoked_at, set.writes[0].version), (Some(NOW), 3));
            assert_eq!(set.audit[0].action, "api_key.revoked");
        }
        for (which, found) in
            [("app", Some(kept("app", Some(NOW)))), ("other", Some(kept("app", None))), ("app", None)]
        {
            assert_eq!(revoke(which, found, &ACTOR), Err(KeyRefusal::Unknown(which.into())));
        }
    }

    #[test]
    fn h2_nobody_gives_away_more_than_they_have() {
        let wanted = named("app");
        assert_eq!(wanted.lacking(Scope::Write), Some(Scope::Operate));
        assert_eq!([Scope::Operate, Scope::Admin].map(|own| wanted.lacking(own)), [None, None]);
        let admins = NewKey { scopes: Scope::ALL.into(), ..NewKey::default() };
        let may = |rank: &Rank| admins.lacking(Scope::of_rank(*rank)).is_none();
        assert_eq!(Rank::ALL.into_iter().filter(may).collect::<Vec<_>>(), [Rank::Admin]);
    }

    #[test]
    fn h2_each_scope_includes_the_ones_before_it() {
        assert_eq!(kept("app", None).value.scope(), Some(Scope::Operate));
        assert!(Scope::ALL.is_sorted());
        assert!(Scope::ALL.into_iter().all(|scope| Scope::parse(scope.name()) == Some(scope)));
    }
}
