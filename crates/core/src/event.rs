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
    /// This event's own bytes: the whole body, or its part of a batch. Of a hint only what was understood of it, written
    /// anew.
    pub body: Cow<'r, [u8]>,
    pub id_proof: IdProof,
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
            body: Cow::Borrowed(body),
            id_proof: IdProof::Covered,
        }
    }

    /// An event whose id stands where the provider's proof does not reach.
    pub fn with_open_id(id: impl Into<Cow<'r, str>>, kind: impl Into<Cow<'r, str>>, body: &'r [u8]) -> Self {
        Self { id_proof: IdProof::Open(BodyDigest::of(&[body])), ..Self::new(id, kind, body) }
    }
}

/// Whether the provider's proof covers the event's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdProof {
    /// A repeat is a repeat, even if its bytes differ.
    Covered,
    /// Whoever saw one request can send its body under any id, also under one that is yet to come. So the body is part of
    /// what makes the event unique.
    Open(BodyDigest),
}

/// What tells two bodies apart: 16 bytes of SHA-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BodyDigest([u8; 16]);

impl BodyDigest {
    /// Of the parts, joined.
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut hash = digest::Context::new(&digest::SHA256);
        parts.iter().for_each(|part| hash.update(part));
        Self(*hash.finish().as_ref().first_chunk().expect("SHA-256 has 32 bytes"))
    }

    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
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
    /// Read from the provider itself, over TLS and with our key.
    Fetched,
    /// Nothing was proven: a hint that must be confirmed with the provider before it means anything.
    Hint,
}

impl Trust {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Signed => "signed",
            Self::Token => "token",
            Self::Fetched => "fetched",
            Self::Hint => "hint",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Signed, Self::Token, Self::Fetched, Self::Hint].into_iter().find(|trust| trust.name() == text)
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

/// What makes an event unique at a source, by one rule for all providers: its id, with the body where the proof does not
/// cover the id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub key: DedupeKey,
    pub first_body: Option<FirstBody>,
}

impl Identity {
    /// `transmission` is [`Scheme::transmission`](crate::provider::Scheme::transmission).
    pub fn of(source: &str, event: &Event<'_>, transmission: Option<&str>) -> Self {
        let (id, created) = (&*event.id, event.created);
        let open = match event.id_proof {
            IdProof::Open(digest) => Some(digest),
            IdProof::Covered => None,
        };
        let noted = open.map(|digest| FirstBody {
            id: DedupeKey::new(source, id, None),
            digest,
            other: OtherBody::Noted,
        });
        let refused = || FirstBody {
            // No event has an empty id. Whichever source it came by, it is the same transmission.
            id: DedupeKey::made_of(&[b"", b"", transmission.unwrap_or_default().as_bytes()], None),
            digest: BodyDigest::of(&[&event.body]),
            other: OtherBody::Refused,
        };
        Self {
            key: DedupeKey::with_body(source, id, created, open),
            first_body: noted.or_else(|| transmission.map(|_| refused())),
        }
    }
}

/// A body, and an id under which no other body is expected. The store remembers the first that comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FirstBody {
    pub id: DedupeKey,
    pub digest: BodyDigest,
    pub other: OtherBody,
}

/// What becomes of a body when another had come first under its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OtherBody {
    /// It is an event of its own, and shown as one whose id was used before.
    Noted,
    /// It is a forgery.
    Refused,
}

/// 16 bytes: created seconds (0 where not immutable), then 12 bytes of SHA-256 over source, event id and, where the proof
/// does not cover the id, the body's digest. Rising with time, so that index inserts stay at the edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DedupeKey([u8; 16]);

impl DedupeKey {
    /// Of an event whose id the proof covers.
    pub fn new(source: &str, event_id: &str, created: Option<Created>) -> Self {
        Self::with_body(source, event_id, created, None)
    }

    pub fn with_body(
        source: &str,
        event_id: &str,
        created: Option<Created>,
        body: Option<BodyDigest>,
    ) -> Self {
        let names = [source.as_bytes(), event_id.as_bytes()];
        match body {
            None => Self::made_of(&names, created),
            Some(digest) => Self::made_of(&[names[0], names[1], digest.as_bytes()], created),
        }
    }

    fn made_of(parts: &[&[u8]], created: Option<Created>) -> Self {
        let seconds = created
            .filter(|created| created.immutable)
            .and_then(|created| u32::try_from(created.at.seconds()).ok())
            .unwrap_or(0);
        let mut hash = digest::Context::new(&digest::SHA256);
        for (n, part) in parts.iter().enumerate() {
            // Names hold no control characters: what they are cut into can't be mistaken.
            if n > 0 {
                hash.update(&[0]);
            }
            hash.update(part);
        }
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
    pub fn candidates(
        source: &str,
        event_id: &str,
        created_at: Option<Time>,
        body: Option<BodyDigest>,
    ) -> [Self; 2] {
        let created = created_at.map(|at| Created { at, immutable: true });
        [created, None].map(|created| Self::with_body(source, event_id, created, body))
    }

    /// The half that does not depend on the provider's clock.
    pub fn hash(&self) -> &[u8; 12] {
        self.0.last_chunk().expect("16 bytes have a last 12")
    }
}

/// What an event turned out to be about; kept with its outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    pub payment: Option<String>,
    pub billing: Option<String>,
    pub tenant: Option<String>,
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
    fn a4_where_the_proof_does_not_cover_the_id_the_body_is_part_of_the_key() {
        let identity = |event: Event<'_>| Identity::of("shop", &event, None);
        let covered = |body| identity(Event::new("7", "paid", body));
        assert_eq!(covered(b"old"), covered(b"new"), "a repeat is a repeat");
        assert_eq!(covered(b"old").first_body, None);

        let open = |body| identity(Event::with_open_id("7", "paid", body));
        assert_eq!(open(b"old"), open(b"old"));
        assert_ne!(open(b"old").key, open(b"new").key);
        assert_ne!(open(b"old").key, covered(b"old").key);
        let (old, new) = (open(b"old").first_body.unwrap(), open(b"new").first_body.unwrap());
        assert_eq!((old.id, old.other), (new.id, OtherBody::Noted), "one id");
        assert_ne!(old.digest, new.digest);
        assert_eq!(old.id, DedupeKey::new("shop", "7", None), "by which the event is found");
    }

    #[test]
    fn a2_a_transmission_stands_for_one_body_whichever_source_it_came_by() {
        let of = |source, id, body| Identity::of(source, &Event::new(id, "paid", body), Some("T"));
        let (one, other) = (of("a", "1", b"x"), of("b", "2", b"y"));
        assert_eq!(one.key, DedupeKey::new("a", "1", None), "bytes are no part of it");
        let (one, other) = (one.first_body.unwrap(), other.first_body.unwrap());
        assert_eq!((one.id, one.other), (other.id, OtherBody::Refused));
        assert_ne!(one.digest, other.digest);
        assert_ne!(
            one.id,
            Identity::of("a", &Event::new("1", "paid", b"x"), Some("U")).first_body.unwrap().id
        );
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
