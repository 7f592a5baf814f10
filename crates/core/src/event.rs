//! An event as a provider's file reads it from a request, still borrowing from the body, and the key that
//! makes it unique. Nothing here knows where the event is stored.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use ring::digest;

use crate::id::Seq;
use crate::time::Time;

/// What a provider's file finds in a genuine request. Borrowed: nothing is copied before admission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event<'r> {
    /// The provider's own id: with the source's name, what makes the event unique.
    pub id: Cow<'r, str>,
    pub kind: Cow<'r, str>,
    pub created: Option<Created>,
    /// What the event is about, as the provider names it: `payment_intent` `pi_1`.
    pub object: Option<ObjectRef<'r>>,
    /// The account the event belongs to when one endpoint serves several (Stripe Connect).
    pub account: Option<Cow<'r, str>>,
    pub livemode: Option<bool>,
    /// This event's own bytes: the whole body, or its part of a batch.
    pub body: &'r [u8],
}

impl<'r> Event<'r> {
    pub fn new(id: impl Into<Cow<'r, str>>, kind: impl Into<Cow<'r, str>>, body: &'r [u8]) -> Self {
        Self {
            id: id.into(),
            kind: kind.into(),
            created: None,
            object: None,
            account: None,
            livemode: None,
            body,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectRef<'r> {
    pub kind: Cow<'r, str>,
    pub id: Cow<'r, str>,
}

impl<'r> ObjectRef<'r> {
    pub fn new(kind: impl Into<Cow<'r, str>>, id: impl Into<Cow<'r, str>>) -> Self {
        Self { kind: kind.into(), id: id.into() }
    }
}

/// When the provider says the event was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Created {
    pub at: Time,
    /// Signed, and the same on every delivery of this event: only then may it stand in the dedupe key.
    pub immutable: bool,
}

/// How far a request may be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// The signature covers the body.
    Signed,
    /// A shared token came along; whoever has seen it once can write any body.
    Token,
    /// Nothing was proven: a hint that must be confirmed with the provider before it means anything.
    Hint,
}

impl Trust {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Signed => "signed",
            Self::Token => "token",
            Self::Hint => "hint",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Signed, Self::Token, Self::Hint].into_iter().find(|trust| trust.name() == text)
    }
}

/// An event as the store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub seq: Seq,
    pub received_at: Time,
    pub source: Arc<str>,
    pub event_id: String,
    pub event_type: String,
    pub created_at: Option<Time>,
    /// (kind, id) as the provider names them.
    pub object: Option<(String, String)>,
    pub account: Option<String>,
    pub livemode: Option<bool>,
    pub trust: Trust,
    /// JSON array of [name, value].
    pub headers: Arc<str>,
    pub body: Bytes,
}

impl Stored {
    /// An event with nothing in its fields, to try rules on.
    pub fn nothing() -> Self {
        Self {
            seq: Seq::ZERO,
            received_at: Time::from_ms(0),
            source: "".into(),
            event_id: String::new(),
            event_type: String::new(),
            created_at: None,
            object: Some((String::new(), String::new())),
            account: Some(String::new()),
            livemode: Some(false),
            trust: Trust::Signed,
            headers: "[]".into(),
            body: Bytes::from_static(b"{}"),
        }
    }
}

/// 16 bytes: created seconds (0 where not immutable), then 12 bytes of SHA-256 over source and event id.
/// Rising with time, so that index inserts stay at the edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DedupeKey([u8; 16]);

impl DedupeKey {
    pub fn new(source: &str, event_id: &str, created: Option<Created>) -> Self {
        let seconds = created
            .filter(|created| created.immutable)
            .and_then(|created| u32::try_from(created.at.seconds()).ok())
            .unwrap_or(0);
        let mut hash = digest::Context::new(&digest::SHA256);
        hash.update(source.as_bytes());
        hash.update(&[0]);
        hash.update(event_id.as_bytes());
        let mut key = [0; 16];
        key[..4].copy_from_slice(&seconds.to_be_bytes());
        key[4..].copy_from_slice(&hash.finish().as_ref()[..12]);
        Self(key)
    }

    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Every key the event could be stored under: whether its creation time stands in it is not kept.
    pub fn candidates(source: &str, event_id: &str, created_at: Option<Time>) -> [Self; 2] {
        let created = created_at.map(|at| Created { at, immutable: true });
        [Self::new(source, event_id, created), Self::new(source, event_id, None)]
    }

    /// The half that does not depend on the provider's clock.
    pub fn hash(&self) -> &[u8; 12] {
        self.0.last_chunk().expect("16 bytes have a last 12")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64, immutable: bool) -> Option<Created> {
        Some(Created { at: Time::from_seconds(seconds), immutable })
    }

    #[test]
    fn a4_the_key_names_source_and_event_and_nothing_else() {
        let key = DedupeKey::new("stripe", "evt_1", at(1_770_000_000, true));
        assert_eq!(key, DedupeKey::new("stripe", "evt_1", at(1_770_000_000, true)));
        assert_ne!(key, DedupeKey::new("stripe", "evt_2", at(1_770_000_000, true)));
        assert_ne!(key, DedupeKey::new("stripe2", "evt_1", at(1_770_000_000, true)));
        // The separator keeps ("ab","c") and ("a","bc") apart.
        assert_ne!(DedupeKey::new("ab", "c", None), DedupeKey::new("a", "bc", None));
    }

    #[test]
    fn a4_keys_rise_with_the_providers_clock_and_survive_absurd_dates() {
        let older = DedupeKey::new("s", "z", at(100, true));
        let newer = DedupeKey::new("s", "a", at(101, true));
        assert!(older < newer);
        let plain = DedupeKey::new("s", "a", None);
        for absurd in [-1, i64::MAX, i64::from(u32::MAX) + 1] {
            assert_eq!(DedupeKey::new("s", "a", at(absurd, true)), plain);
        }
        assert_eq!(DedupeKey::new("s", "a", at(100, false)), plain);
    }
}
