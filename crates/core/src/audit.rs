//! Who did what to which thing, and how anybody can check that nothing was changed afterwards.
//!
//! Entries that are written together hang on one link, and each link holds the hash of the one before it: who changes,
//! removes or slips in an entry breaks the chain. A chain belongs to one writer; a new one begins with every start. Once
//! an hour the heads of all chains are written down as an entry, so that a whole tail can't vanish either. What was cut
//! off after the newest anchor can't be seen.

pub mod died;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use ring::digest;
use serde::Deserialize;

use crate::id::Seq;
use crate::provider::encode_hex;
use crate::time::Time;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub at: Time,
    /// `None` is the system itself.
    pub actor: Option<String>,
    /// The name of a [`Role`].
    pub role: Option<String>,
    /// `payment.paid`, `dead_letter.retried`, …
    pub action: String,
    /// (kind, id).
    pub target: (String, String),
    pub tenant: Option<String>,
    /// The event that caused it.
    pub event: Option<Seq>,
    /// JSON.
    pub details: String,
}

/// As what somebody acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Sekisho itself: nobody acts by hand.
    System,
    /// An application, or whoever else shows a key to the API.
    ApiKey,
    /// Somebody at the console who may look, and change what is their own.
    Viewer,
    /// Somebody at the console who may act, or at a terminal of the machine.
    Operator,
    /// Somebody at the console who may also say who else may.
    Admin,
    /// A customer, on the page of their order.
    Customer,
}

impl Role {
    pub const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::ApiKey => "api_key",
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
            Self::Customer => "customer",
        }
    }

    /// As an entry says it.
    pub fn of_entry(self) -> Option<String> {
        Some(self.name().to_owned())
    }
}

pub type Hash = [u8; 32];

/// What the first link of a chain follows.
pub const BEGINNING: Hash = [0; 32];

impl Entry {
    /// Every field, each with its length before it, so that no two entries are the same bytes.
    pub fn digest(&self) -> Hash {
        let mut hash = digest::Context::new(&digest::SHA256);
        let mut field = |value: Option<&[u8]>| match value {
            Some(bytes) => {
                hash.update(&(bytes.len() as u64).to_be_bytes());
                hash.update(bytes);
            }
            None => hash.update(&u64::MAX.to_be_bytes()),
        };
        field(Some(&self.at.ms().to_be_bytes()));
        field(self.actor.as_deref().map(str::as_bytes));
        field(self.role.as_deref().map(str::as_bytes));
        field(Some(self.action.as_bytes()));
        field(Some(self.target.0.as_bytes()));
        field(Some(self.target.1.as_bytes()));
        field(self.tenant.as_deref().map(str::as_bytes));
        field(self.event.map(|event| event.as_i64().to_be_bytes()).as_ref().map(<[u8; 8]>::as_slice));
        field(Some(self.details.as_bytes()));
        hash.finish().as_ref().try_into().expect("SHA-256 has 32 bytes")
    }
}

/// The hash of a link: of the one before it, and of its entries in their order.
pub fn link(previous: &Hash, entries: impl IntoIterator<Item = Hash>) -> Hash {
    let mut hash = digest::Context::new(&digest::SHA256);
    hash.update(previous);
    entries.into_iter().for_each(|entry| hash.update(&entry));
    hash.finish().as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// Where the details of an entry say what the body of its event was: its [`seal`].
pub const SEALED: &str = "body_sha256";

/// SHA-256 in hex: who changes a body afterwards finds that the log remembers another.
pub fn seal(bytes: &[u8]) -> String {
    encode_hex(digest::digest(&digest::SHA256, bytes))
}

/// What an anchor is called in the log.
pub const ANCHORED: &str = "audit.anchored";

/// Where every chain ends: (chain, number, hash in hex).
pub fn anchor(heads: &[(i64, i64, String)], at: Time) -> Entry {
    Entry {
        at,
        actor: None,
        role: Role::System.of_entry(),
        action: ANCHORED.into(),
        target: ("audit".into(), "heads".into()),
        tenant: None,
        event: None,
        details: serde_json::json!({ "heads": heads }).to_string(),
    }
}

/// An entry with the number the store gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbered {
    pub number: i64,
    pub entry: Entry,
}

/// A link of a chain as it is stored, with the entries that hang on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditLink {
    pub chain: i64,
    pub n: i64,
    pub previous: Vec<u8>,
    /// Empty when the entries hang on nothing.
    pub hash: Vec<u8>,
    pub entries: Vec<Numbered>,
}

/// Something that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChainFault {
    /// Entries that hang on no link: somebody slipped them in.
    Loose { numbers: Vec<i64> },
    /// An entry on this link was changed, removed or added; these hang on it now.
    Changed { chain: i64, n: i64, numbers: Vec<i64> },
    /// Links are missing between these two numbers.
    Gap { chain: i64, after: i64, before: i64 },
    /// A link does not follow the one before it.
    Torn { chain: i64, n: i64 },
    /// An anchor saw this link, and it is gone or another.
    CutOff { chain: i64, n: i64, anchor: i64 },
}

impl fmt::Display for ChainFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loose { numbers } => {
                write!(f, "entries {numbers:?} have no link in the chain: they were inserted")
            }
            Self::Changed { chain, n, numbers } => write!(
                f,
                "link {n} of chain {chain} does not fit its entries {numbers:?}: one was changed, removed or added"
            ),
            Self::Gap { chain, after, before } => {
                write!(f, "links of chain {chain} are missing between {after} and {before}")
            }
            Self::Torn { chain, n } => {
                write!(f, "link {n} of chain {chain} does not follow the one before it")
            }
            Self::CutOff { chain, n, anchor } => write!(
                f,
                "the anchor in entry {anchor} saw link {n} of chain {chain}, which is gone or another: the log was cut off"
            ),
        }
    }
}

/// Checks links that are shown in the order of their chains and numbers.
#[derive(Debug, Default)]
pub struct AuditCheck {
    pub entries: u64,
    pub links: u64,
    pub anchors: u64,
    pub faults: Vec<ChainFault>,
    last: Option<(i64, i64, Vec<u8>)>,
    /// The beginning of every link's hash: enough to tell one from another.
    seen: BTreeMap<(i64, i64), Short>,
    anchored: BTreeSet<(i64, i64, Short, i64)>,
}

#[derive(Deserialize)]
struct Heads {
    heads: Vec<(i64, i64, String)>,
}

impl AuditCheck {
    pub fn show(&mut self, link: &AuditLink) {
        self.entries += link.entries.len() as u64;
        let numbers = || link.entries.iter().map(|entry| entry.number).collect::<Vec<_>>();
        if link.hash.is_empty() {
            self.faults.push(ChainFault::Loose { numbers: numbers() });
            return;
        }
        self.links += 1;
        let (chain, n) = (link.chain, link.n);
        let (after, expected) = match self.last.take() {
            Some((last, number, hash)) if last == chain => (number, hash),
            _ => (0, BEGINNING.to_vec()),
        };
        if n != after + 1 {
            self.faults.push(ChainFault::Gap { chain, after, before: n });
        } else if link.previous != expected {
            self.faults.push(ChainFault::Torn { chain, n });
        }
        let previous = Hash::try_from(link.previous.as_slice()).unwrap_or(BEGINNING);
        if self::link(&previous, link.entries.iter().map(|one| one.entry.digest())) != *link.hash {
            self.faults.push(ChainFault::Changed { chain, n, numbers: numbers() });
        }
        self.seen.insert((chain, n), short(&encode_hex(&link.hash)));
        self.last = Some((chain, n, link.hash.clone()));
        for anchor in link.entries.iter().filter(|one| one.entry.action == ANCHORED) {
            self.anchors += 1;
            let heads = serde_json::from_str::<Heads>(&anchor.entry.details).map(|heads| heads.heads);
            for (chain, n, hash) in heads.unwrap_or_default() {
                self.anchored.insert((chain, n, short(&hash), anchor.number));
            }
        }
    }

    /// What was found, once everything was shown.
    #[must_use]
    pub fn finish(mut self) -> Self {
        for (chain, n, hash, anchor) in std::mem::take(&mut self.anchored) {
            if self.seen.get(&(chain, n)) != Some(&hash) {
                self.faults.push(ChainFault::CutOff { chain, n, anchor });
            }
        }
        self
    }
}

type Short = [u8; 16];

fn short(hex: &str) -> Short {
    hex.as_bytes().first_chunk().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(action: &str) -> Entry {
        Entry {
            at: Time::from_ms(1),
            actor: Some("tomo".into()),
            role: None,
            action: action.into(),
            target: ("payment".into(), "pay_1".into()),
            tenant: None,
            event: None,
            details: "{}".into(),
        }
    }

    /// Three links of one chain, and one of another that anchors them.
    fn log() -> Vec<AuditLink> {
        let (mut links, mut head, mut number) = (Vec::new(), BEGINNING, 0);
        let mut numbered = |entry| {
            number += 1;
            Numbered { number, entry }
        };
        for n in 1..=3 {
            let entries = vec![numbered(entry("a")), numbered(entry("b"))];
            let hash = link(&head, entries.iter().map(|one| one.entry.digest()));
            links.push(AuditLink { chain: 1, n, previous: head.to_vec(), hash: hash.to_vec(), entries });
            head = hash;
        }
        let heads = [(1, 3, encode_hex(head))];
        let entries = vec![numbered(anchor(&heads, Time::from_ms(2)))];
        let hash = link(&BEGINNING, entries.iter().map(|one| one.entry.digest()));
        links.push(AuditLink { chain: 2, n: 1, previous: BEGINNING.to_vec(), hash: hash.to_vec(), entries });
        links
    }

    fn faults(links: &[AuditLink]) -> Vec<ChainFault> {
        let mut check = AuditCheck::default();
        links.iter().for_each(|link| check.show(link));
        check.finish().faults
    }

    #[test]
    fn d8_an_untouched_log_is_sound_and_any_touch_shows() {
        let log = log();
        assert_eq!(faults(&log), []);

        let mut changed = log.clone();
        changed[1].entries[0].entry.details = r#"{"amount":1}"#.into();
        assert_eq!(faults(&changed), [ChainFault::Changed { chain: 1, n: 2, numbers: vec![3, 4] }]);

        let mut removed = log.clone();
        removed[1].entries.remove(0);
        assert_eq!(faults(&removed), [ChainFault::Changed { chain: 1, n: 2, numbers: vec![4] }]);

        let mut without = log.clone();
        without.remove(1);
        assert_eq!(faults(&without), [ChainFault::Gap { chain: 1, after: 1, before: 3 }]);

        let mut inserted = log.clone();
        let loose = AuditLink {
            chain: 0,
            n: 0,
            previous: Vec::new(),
            hash: Vec::new(),
            entries: log[0].entries.clone(),
        };
        inserted.insert(0, loose);
        assert_eq!(faults(&inserted), [ChainFault::Loose { numbers: vec![1, 2] }]);

        let mut cut = log.clone();
        cut.remove(2);
        assert_eq!(faults(&cut), [ChainFault::CutOff { chain: 1, n: 3, anchor: 7 }]);

        // Who rewrites a link and its entries tears the chain.
        let mut rewritten = log;
        rewritten[1].entries[0].entry.details = r#"{"amount":1}"#.into();
        let previous = Hash::try_from(rewritten[1].previous.as_slice()).unwrap();
        rewritten[1].hash =
            link(&previous, rewritten[1].entries.iter().map(|one| one.entry.digest())).to_vec();
        assert_eq!(faults(&rewritten), [ChainFault::Torn { chain: 1, n: 3 }]);
    }

    #[test]
    fn d8_no_two_entries_have_the_same_bytes() {
        let one = Entry { action: "ab".into(), target: ("c".into(), "d".into()), ..entry("") };
        let other = Entry { action: "a".into(), target: ("bc".into(), "d".into()), ..entry("") };
        assert_ne!(one.digest(), other.digest());
        assert_ne!(entry("a").digest(), Entry { actor: None, ..entry("a") }.digest());
        assert_ne!(
            Entry { actor: Some(String::new()), ..entry("a") }.digest(),
            Entry { actor: None, ..entry("a") }.digest()
        );
    }
}
