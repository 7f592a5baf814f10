//! What is remembered of one thing: its facts, under a version that every write must show. One shape for all kinds, so
//! that a new kind is no new table.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::time::Time;

/// Which thing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub kind: Kind,
    pub id: String,
}

impl Key {
    pub fn new(kind: Kind, id: impl Into<String>) -> Self {
        Self { kind, id: id.into() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Payment,
    Billing,
    Tenant,
    Customer,
    /// Who works for a tenant, and is reminded.
    Staff,
    /// What has deadlines.
    Subject,
    /// One message to one recipient.
    Notice,
    /// A mail address that nothing is sent to.
    Suppression,
    /// How much a channel may still send.
    Quota,
    /// A key to the API.
    ApiKey,
    /// Somebody who may enter the console, with their sessions.
    User,
    /// A link by which somebody becomes a user, once.
    Invite,
    /// A request to the API that must not be carried out twice.
    Request,
    Breaker,
    /// What was found when a source was compared with its provider.
    Reconciliation,
    /// Places that can be sold once.
    Slot,
    /// Who has which places of a slot.
    SlotBlock,
    /// Places that are somebody's, for a while or for good.
    Reservation,
    /// What was paid for and must be made.
    Fulfilment,
    /// What a person should see to.
    Case,
    /// What was done because something had gone wrong.
    Compensation,
    /// What a customer asked by the form of their order's page.
    Inquiry,
    /// The key that links and tokens are signed with, where the configuration has none.
    HouseKey,
    /// What this installation is called: ids of traces are computed from it.
    Installation,
    /// What a node counted in a minute, or all of them in an hour.
    Meter,
    /// How an alert stands.
    Alert,
}

impl Kind {
    pub const ALL: [Self; 26] = [
        Self::Payment,
        Self::Billing,
        Self::Tenant,
        Self::Customer,
        Self::Staff,
        Self::Subject,
        Self::Notice,
        Self::Suppression,
        Self::Quota,
        Self::ApiKey,
        Self::User,
        Self::Invite,
        Self::Request,
        Self::Breaker,
        Self::Reconciliation,
        Self::Slot,
        Self::SlotBlock,
        Self::Reservation,
        Self::Fulfilment,
        Self::Case,
        Self::Compensation,
        Self::Inquiry,
        Self::HouseKey,
        Self::Installation,
        Self::Meter,
        Self::Alert,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Payment => "payment",
            Self::Billing => "billing",
            Self::Tenant => "tenant",
            Self::Customer => "customer",
            Self::Staff => "staff",
            Self::Subject => "subject",
            Self::Notice => "notice",
            Self::Suppression => "suppression",
            Self::Quota => "quota",
            Self::ApiKey => "api_key",
            Self::User => "user",
            Self::Invite => "invite",
            Self::Request => "request",
            Self::Breaker => "breaker",
            Self::Reconciliation => "reconciliation",
            Self::Slot => "slot",
            Self::SlotBlock => "slot_block",
            Self::Reservation => "reservation",
            Self::Fulfilment => "fulfilment",
            Self::Case => "case",
            Self::Compensation => "compensation",
            Self::Inquiry => "inquiry",
            Self::HouseKey => "house_key",
            Self::Installation => "installation",
            Self::Meter => "meter",
            Self::Alert => "alert",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == text)
    }
}

/// A thing as the store has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    pub key: Key,
    /// Raised by every write; 0 is not there yet.
    pub version: i64,
    /// JSON.
    pub facts: String,
    pub index: Index,
    /// When it was written first, and last.
    pub created_at: Time,
    pub changed_at: Time,
}

/// The status of what became part of another, and of what was deleted: both are kept for what leads to them, and shown
/// to nobody.
pub const MERGED: &str = "merged";
pub const DELETED: &str = "deleted";
/// The status of what others lead to before anything is known of it itself: kept for them, and shown to nobody.
pub const UNHEARD: &str = "unheard";

impl State {
    pub fn is_merged(&self) -> bool {
        self.index.status.as_deref() == Some(MERGED)
    }

    pub fn is_deleted(&self) -> bool {
        self.index.status.as_deref() == Some(DELETED)
    }

    pub fn is_shown(&self) -> bool {
        !self.is_merged() && !self.is_deleted() && self.index.status.as_deref() != Some(UNHEARD)
    }
}

/// What lists are filtered by: derived from the facts and rewritten with them, never edited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    pub status: Option<String>,
    pub tenant: Option<String>,
    /// Of a payment who pays, of a notice whom it goes to, of one of the directory its own id.
    pub customer: Option<String>,
    pub livemode: Option<bool>,
    pub amount: Option<i64>,
    pub currency: Option<String>,
    /// Why a person should look at it: `unlinked`, `refund_failed`, …
    pub attention: Option<String>,
}

/// Writes a thing, if its version is still the one that was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    pub key: Key,
    /// As it was loaded; 0 when it must not be there yet.
    pub version: i64,
    pub facts: String,
    pub index: Index,
}

impl Write {
    /// Without what lists are filtered by.
    pub fn of(key: &Key, version: i64, facts: &impl Serialize) -> Self {
        let facts = serde_json::to_string(facts).expect("plain data serialises");
        Self { key: key.clone(), version, facts, index: Index::default() }
    }
}

/// Gives a name to a thing. A name leads to one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Naming {
    pub name: String,
    pub key: Key,
    /// Whose it was, when it moves; the thing it moves away from is written in the same set, so its version guards the
    /// move. Without: the name must be free.
    pub was: Option<Key>,
}

/// What the accounts begin with that hold money at a provider.
pub const PROVIDER_ACCOUNTS: &str = "provider/";

/// One line of the books. The lines of a change set sum to zero, per currency and mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posting {
    pub account: String,
    pub currency: String,
    pub livemode: Option<bool>,
    /// In the currency's smallest unit.
    pub amount: i64,
    /// The payment it belongs to.
    pub payment: String,
    /// Why: `captured`, `refunded`, `fee`, …
    pub cause: String,
}

/// What must be loaded to decide something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    pub names: BTreeSet<String>,
    pub keys: BTreeSet<Key>,
}

impl Wanted {
    pub fn keys(keys: impl IntoIterator<Item = Key>) -> Self {
        Self { keys: keys.into_iter().collect(), ..Self::default() }
    }

    pub fn names(names: impl IntoIterator<Item = String>) -> Self {
        Self { names: names.into_iter().collect(), ..Self::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.keys.is_empty()
    }

    pub fn extend(&mut self, other: Self) {
        self.names.extend(other.names);
        self.keys.extend(other.keys);
    }

    /// Adds a key, unless it was asked for before.
    pub fn want(&mut self, key: Key, asked: &Self) {
        if !asked.keys.contains(&key) {
            self.keys.insert(key);
        }
    }
}

/// What names and keys lead to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Names nobody has are left out.
    pub names: BTreeMap<String, Key>,
    /// Those that are named or were asked for, and exist.
    pub states: BTreeMap<Key, State>,
}

impl Loaded {
    /// The version that a write must show: 0 when it is not there.
    pub fn version(&self, key: &Key) -> i64 {
        self.states.get(key).map_or(0, |state| state.version)
    }

    pub fn read<T: DeserializeOwned>(&self, key: &Key) -> Result<Option<Versioned<T>>, Unreadable> {
        self.states.get(key).map(Versioned::read).transpose()
    }

    /// What a name leads to.
    pub fn read_named<T: DeserializeOwned>(&self, name: &str) -> Result<Option<Versioned<T>>, Unreadable> {
        self.names.get(name).map_or(Ok(None), |key| self.read(key))
    }
}

/// A thing as it was loaded, with its facts read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned<T> {
    pub key: Key,
    pub version: i64,
    pub value: T,
}

/// Its facts are not those of its kind.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Unreadable(#[from] pub serde_json::Error);

impl<T: DeserializeOwned> Versioned<T> {
    pub fn read(state: &State) -> Result<Self, Unreadable> {
        let value = serde_json::from_str(&state.facts)?;
        Ok(Self { key: state.key.clone(), version: state.version, value })
    }
}

impl<T: Serialize> Versioned<T> {
    /// Writes it as it now is, over the version that was loaded.
    pub fn write(&self) -> Write {
        Write::of(&self.key, self.version, &self.value)
    }
}
