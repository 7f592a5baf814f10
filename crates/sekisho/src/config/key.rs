//! `[[key]]`: who may use the API, and for what.

use std::collections::BTreeSet;

use sekisho_core::Secret;

use super::secret::resolve_all;
use super::table::{self, Table};

pub use sekisho_core::api_key::{SCOPES, Scope};

/// An API key, checked and ready.
#[derive(Clone, Debug)]
pub struct Key {
    pub name: String,
    pub secret: Secret,
    /// The widest it has.
    pub scope: Scope,
}

impl Key {
    pub fn may(&self, wanted: Scope) -> bool {
        self.scope >= wanted
    }

    /// Short, of few different letters, or one piece again and again: somebody patient could guess it.
    pub fn is_weak(&self) -> bool {
        let letters: Vec<char> = self.secret.expose().chars().collect();
        let different: BTreeSet<_> = letters.iter().collect();
        let repeats = (1..=letters.len() / 2).any(|n| letters.iter().zip(&letters[n..]).all(|(a, b)| a == b));
        letters.len() < STRONG_LETTERS_MIN || different.len() < STRONG_LETTERS_DIFFERENT || repeats
    }
}

/// Shorter ones can be guessed.
const SECRET_LETTERS_MIN: usize = 16;
/// What falls below these is taken, with a warning.
const STRONG_LETTERS_MIN: usize = 24;
const STRONG_LETTERS_DIFFERENT: usize = 8;

/// A key as written, before it is checked.
#[derive(Default)]
pub struct KeyDraft {
    name: Option<String>,
    secret: Option<String>,
    scope: Option<Scope>,
}

const KEYS: &[table::SettingKey<KeyDraft>] = &[
    table::SettingKey {
        name: "name",
        example: "\"deploys\"",
        help: "Letters, digits, - and _. Recorded in the audit log.",
        set: |draft, given| {
            draft.name = Some(table::name(given)?);
            Ok(())
        },
    },
    table::SettingKey {
        name: "secret",
        example: "\"env:SEKISHO_KEY_DEPLOYS\"",
        help: "env:NAME, file:PATH, or the text itself (with a warning); 16 characters or more.",
        set: |draft, given| {
            draft.secret = Some(given.text()?);
            Ok(())
        },
    },
    table::SettingKey {
        name: "scopes",
        example: "[\"read\"]",
        help: "read to look, write to create payments as well, operate to retry, replay and reset as well, admin to make and revoke keys as well.",
        set: |draft, given| {
            let wanted = "expected a list of \"read\", \"write\", \"operate\" and \"admin\"";
            let scopes: Option<Vec<_>> = given.list()?.iter().map(|name| Scope::parse(name)).collect();
            draft.scope = Some(scopes.ok_or(wanted)?.into_iter().max().ok_or(wanted)?);
            Ok(())
        },
    },
];

impl Table for KeyDraft {
    const NAME: &'static str = "key";
    const ABOUT: &'static str = "One block per key to the API.";
    const KEYS: &'static [table::SettingKey<Self>] = KEYS;
    type Ready = Key;

    fn finish(self, warnings: &mut Vec<String>) -> Result<Key, Vec<String>> {
        let Some(name) = self.name else {
            return Err(vec!["a key needs a name: write name = \"deploys\"".into()]);
        };
        let Some(written) = self.secret else {
            return Err(vec![format!("key {name} needs a secret: write secret = \"env:NAME\"")]);
        };
        let mut problems = Vec::new();
        let secrets = resolve_all(&format!("key {name}"), &[written], warnings, &mut problems);
        let Some(secret) = secrets.into_iter().next() else { return Err(problems) };
        if secret.expose().chars().count() < SECRET_LETTERS_MIN {
            return Err(vec![format!(
                "key {name}: its secret is shorter than {SECRET_LETTERS_MIN} characters; `openssl rand -hex 24` makes one"
            )]);
        }
        let key = Key { name, secret, scope: self.scope.unwrap_or(Scope::Read) };
        if key.is_weak() {
            warnings.push(format!(
                "key {}: its secret could be guessed, it is short or repeats itself; `openssl rand -hex 24` makes a better one",
                key.name
            ));
        }
        Ok(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load::tests::check;

    const LONG: &str = "name = \"k\"\nsecret = \"canary-canary-canary\"\n";

    fn key(keys: &str) -> Result<Key, String> {
        check(&format!("[[key]]\n{keys}"), &[]).map(|mut config| config.keys.remove(0))
    }

    #[test]
    fn h3_a_key_may_look_and_only_if_told_so_operate() {
        let reader = key(LONG).unwrap();
        assert!(reader.may(Scope::Read) && !reader.may(Scope::Operate));
        for scopes in ["[\"operate\"]", "[\"read\", \"operate\"]"] {
            let operator = key(&format!("{LONG}scopes = {scopes}\n")).unwrap();
            assert!(operator.may(Scope::Read) && operator.may(Scope::Operate), "{scopes}");
        }
        assert!(!format!("{reader:?}").contains("canary"));
    }

    #[test]
    fn h3_a_key_that_could_be_guessed_is_warned_of() {
        let is_weak = |secret: &str| {
            Key { name: "k".into(), secret: Secret::new(secret), scope: Scope::Read }.is_weak()
        };
        for weak in [
            "canary-canary-canary-canary",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "0b7cf2a4e1d98365",
            "abababababababababababababab",
        ] {
            assert!(is_weak(weak), "{weak}");
        }
        for strong in
            ["0b7cf2a4e1d98365c0ffee41b2a7d9e8", "3f9a1c5b7d2e8046af13bc9d", "correct horse battery staple"]
        {
            assert!(!is_weak(strong), "{strong}");
        }
        let text = format!("[[key]]\n{LONG}");
        let loaded = crate::config::load(std::path::Path::new("s.toml"), &text, std::iter::empty());
        let warnings = loaded.map(|loaded| loaded.warnings).unwrap_or_default();
        let said =
            warnings.iter().filter(|warning| warning.starts_with("key k: its secret could be guessed"));
        assert!(said.count() == 1 && !warnings.concat().contains("canary"), "{warnings:?}");
    }

    #[test]
    fn h3_what_is_wrong_with_a_key_is_said_without_showing_it() {
        let cases = [
            ("secret = \"x\"\n", "s.toml:1: a key needs a name"),
            ("name = \"k\"\n", "s.toml:1: key k needs a secret"),
            ("name = \"k\"\nsecret = \"canary\"\n", "key k: its secret is shorter than 16 characters"),
            ("name = \"k\"\nsecret = \"env:SEKISHO_NO_SUCH\"\n", "SEKISHO_NO_SUCH is not set"),
            (
                "scopes = []\n",
                "s.toml:2: key.scopes: expected a list of \"read\", \"write\", \"operate\" and \"admin\"",
            ),
            ("scopes = [\"root\"]\n", "s.toml:2: key.scopes: expected a list"),
            ("scopes = \"operate, read\"\n", "s.toml:2: key.scopes: expected a list"),
            ("scope = [\"read\"]\n", "did you mean `scopes`?"),
        ];
        for (keys, expected) in cases {
            let found = key(keys).unwrap_err();
            assert!(found.contains(expected) && !found.contains("canary"), "{keys}\nfound {found}");
        }
        let twice = format!("[[key]]\n{LONG}[[key]]\n{}", LONG.replace("\"k\"", "\"other\""));
        assert!(check(&twice, &[]).unwrap_err().contains("keys k and other have the same secret"));
    }
}
