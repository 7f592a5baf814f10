//! Checkout Sessions that are made for an order, by number. A session is one try to pay: the next one is made only when it is
//! known that nobody can pay the one before. A try stands in its payment's facts before the provider is asked, so a session
//! whose answer was lost is asked for under the same key again, and none is made twice.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{CheckoutSession, Facts, SessionStatus, each, greater, is_nothing, tries};
use crate::time::Time;

/// Tries of one payment. Somebody who needs more needs a person.
pub const TRIES_MAX: u32 = 10;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionTry {
    pub wish: SessionWish,
    /// When somebody asked for it last.
    #[serde(skip_serializing_if = "is_nothing")]
    pub asked_at: Option<Time>,
    /// How the provider is asked for it: another idempotency key each.
    #[serde(skip_serializing_if = "is_nothing")]
    pub generations: BTreeMap<u32, SessionGeneration>,
    /// The sessions that the provider made of it, by their ids. One, unless the provider forgot a key.
    #[serde(skip_serializing_if = "is_nothing")]
    pub sessions: BTreeMap<String, SessionPlace>,
    /// Since when nobody is to pay it any more: the provider is told to expire what is open.
    #[serde(skip_serializing_if = "is_nothing")]
    pub closing: Option<Time>,
    /// Why the provider is not asked for it any more.
    #[serde(skip_serializing_if = "is_nothing")]
    pub gave_up: Option<String>,
}

/// What is wanted. Never changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionWish {
    pub at: Time,
    /// `CUSTOMER`, `API:{key}` or `ADMIN:{name}`.
    pub by: String,
    /// Whose `api_key` makes it; empty where the app made it itself.
    #[serde(skip_serializing_if = "is_nothing")]
    pub source: String,
    #[serde(skip_serializing_if = "is_nothing")]
    pub success_url: Option<String>,
    /// Ways to pay; none is the provider's choice.
    #[serde(skip_serializing_if = "is_nothing")]
    pub methods: Vec<String>,
}

/// What is sent under one idempotency key, as far as it depends on when it was decided.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionGeneration {
    pub expires_at: Time,
    /// When the provider answered with a failure that it keeps under the key.
    #[serde(skip_serializing_if = "is_nothing")]
    pub failed_at: Option<Time>,
}

/// Where a session is paid, and until when.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionPlace {
    #[serde(skip_serializing_if = "is_nothing")]
    pub url: Option<String>,
    #[serde(skip_serializing_if = "is_nothing")]
    pub expires_at: Option<Time>,
}

/// What became of a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryFate {
    /// It waits until nobody can pay the one before.
    Waiting,
    /// The provider is being asked, and has not answered.
    Asked,
    /// It can be paid.
    Open,
    /// The customer is through: the money is here, or on its way.
    Complete,
    /// The customer was through, and the money did not come.
    Failed,
    Expired,
    /// The provider made none.
    GaveUp,
}

impl TryFate {
    /// Whether nobody can pay it any more, and nobody has.
    pub const fn is_over(self) -> bool {
        match self {
            Self::Failed | Self::Expired | Self::GaveUp => true,
            Self::Waiting | Self::Asked | Self::Open | Self::Complete => false,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Asked => "asked",
            Self::Open => "open",
            Self::Complete => "complete",
            Self::Failed => "failed",
            Self::Expired => "expired",
            Self::GaveUp => "gave_up",
        }
    }
}

impl SessionTry {
    pub(super) fn join(&mut self, other: &Self) {
        // Both say the same, unless two asked for it at once: then the first counts.
        let nothing = SessionWish::default();
        if self.wish == nothing || other.wish < self.wish && other.wish != nothing {
            self.wish.clone_from(&other.wish);
        }
        greater(&mut self.asked_at, &other.asked_at);
        each(&mut self.generations, &other.generations, SessionGeneration::join);
        each(&mut self.sessions, &other.sessions, SessionPlace::join);
        self.closing = self.closing.into_iter().chain(other.closing).min();
        greater(&mut self.gave_up, &other.gave_up);
    }

    /// The call that counts.
    pub fn newest(&self) -> Option<(u32, &SessionGeneration)> {
        self.generations.last_key_value().map(|(n, generation)| (*n, generation))
    }

    /// Whether the app made its session itself.
    pub fn is_told(&self) -> bool {
        self.wish.source.is_empty()
    }
}

impl SessionGeneration {
    fn join(&mut self, other: &Self) {
        greater(&mut self.expires_at, &other.expires_at);
        greater(&mut self.failed_at, &other.failed_at);
    }
}

impl SessionPlace {
    fn join(&mut self, other: &Self) {
        greater(&mut self.url, &other.url);
        greater(&mut self.expires_at, &other.expires_at);
    }
}

impl Facts {
    pub fn newest_try(&self) -> Option<(u32, &SessionTry)> {
        self.session_tries.last_key_value().map(|(n, one)| (*n, one))
    }

    /// What became of a try of this payment.
    pub fn fate(&self, one: &SessionTry) -> TryFate {
        if one.sessions.is_empty() {
            return match (&one.gave_up, one.generations.is_empty()) {
                (Some(_), _) => TryFate::GaveUp,
                (None, true) => TryFate::Waiting,
                (None, false) => TryFate::Asked,
            };
        }
        let known = || one.sessions.keys().map(|id| self.sessions.get(id));
        let has = |wanted: SessionStatus| known().any(|session| status_of(session) == wanted);
        if known().flatten().any(|session| self.may_bring_money(session)) {
            TryFate::Complete
        } else if has(SessionStatus::Open) {
            TryFate::Open
        } else if has(SessionStatus::Complete) {
            TryFate::Failed
        } else {
            TryFate::Expired
        }
    }

    /// Whether the newest try can still be paid, or is about to be.
    pub fn is_tried(&self) -> bool {
        match self.newest_try().map(|(_, one)| self.fate(one)) {
            Some(TryFate::Waiting | TryFate::Asked | TryFate::Open) => true,
            Some(TryFate::Complete | TryFate::Failed | TryFate::Expired | TryFate::GaveUp) | None => false,
        }
    }

    /// Whether the customer is through with a session, and its money is here or on its way.
    pub fn may_bring_money(&self, session: &CheckoutSession) -> bool {
        session.status == SessionStatus::Complete && session.paid || tries::waits(self, session)
    }

    /// Where the customer pays now, if a session is open: its try, and its place.
    pub fn open_session(&self) -> Option<(u32, &SessionPlace)> {
        let (n, one) = self.newest_try()?;
        let is_open = |id: &String| status_of(self.sessions.get(id)) == SessionStatus::Open;
        let place = one.sessions.iter().filter(|(id, _)| is_open(id)).map(|(_, place)| place);
        place.filter(|_| one.closing.is_none()).find(|place| place.url.is_some()).map(|place| (n, place))
    }

    /// The sessions of a try that somebody could still pay.
    pub fn open_of<'f>(&'f self, one: &'f SessionTry) -> impl Iterator<Item = &'f String> {
        one.sessions.keys().filter(|id| status_of(self.sessions.get(*id)) == SessionStatus::Open)
    }
}

/// What is not known yet may be paid.
fn status_of(session: Option<&CheckoutSession>) -> SessionStatus {
    session.map(|session| session.status).unwrap_or_default()
}
