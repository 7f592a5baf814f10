//! What one run of a job that makes a session does, and what the provider writes of a session.

use serde::Deserialize;

use super::{TRY, generation};
use crate::job::CheckoutCall;
use crate::settlement::payment::{Facts, SessionGeneration, SessionPlace, SessionTry};
use crate::time::Time;

/// How often one try may ask under another idempotency key.
const GENERATIONS_MAX: u32 = 3;
/// How long after a failure that the provider keeps under a key its work may still be done.
pub(super) const SETTLED_AFTER_MS: i64 = 60_000;

/// A session as the provider writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeSession {
    pub id: String,
    pub place: SessionPlace,
    pub intent: Option<String>,
    pub is_open: bool,
    /// Which try of ours it is.
    pub label: Option<String>,
}

impl MadeSession {
    /// `None` when it can't be read.
    pub fn read(session: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Said {
            id: String,
            url: Option<String>,
            expires_at: Option<i64>,
            payment_intent: Option<String>,
            status: Option<String>,
            metadata: Option<serde_json::Map<String, serde_json::Value>>,
        }

        let said: Said = serde_json::from_str(session).ok()?;
        let label = said.metadata.and_then(|metadata| metadata.get(TRY)?.as_str().map(str::to_owned));
        Some(Self {
            place: SessionPlace { url: said.url, expires_at: said.expires_at.map(Time::from_seconds) },
            intent: said.payment_intent,
            is_open: said.status.as_deref() == Some("open"),
            id: said.id,
            label,
        })
    }
}

/// What a job that makes a session does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreateStep {
    /// There is nothing left to do; says why.
    Over(&'static str),
    /// Nobody wants it any more, and the provider was never asked for it.
    Drop,
    /// Ask for it, to be open until then.
    Post {
        expires_at: Time,
    },
    /// Go on under another key.
    Next(SessionGeneration),
    /// Not before then.
    Wait {
        until: Time,
    },
    GiveUp {
        reason: &'static str,
        error: String,
    },
}

/// What to do once it is known that the provider lists no session of this try. `was_asked` says whether it may have been asked
/// before.
pub fn next(facts: &Facts, call: &CheckoutCall, generation: u32, was_asked: bool, now: Time) -> CreateStep {
    let Some(one) = facts.session_tries.get(&call.number) else {
        let error = format!("the payment {} has no try {}", call.payment, call.number);
        return CreateStep::GiveUp { reason: "unknown_try", error };
    };
    let Some((newest, wanted)) = one.newest() else { return CreateStep::Over("it was not asked for") };
    if !one.sessions.is_empty() {
        return CreateStep::Over("the session was made");
    }
    if one.gave_up.is_some() {
        return CreateStep::Over("it was given up");
    }
    if newest > generation {
        return CreateStep::Over("another call took its place");
    }
    let is_unwanted = one.closing.is_some();
    match wanted.failed_at.map(|at| at.plus_ms(SETTLED_AFTER_MS)) {
        Some(until) if now < until => CreateStep::Wait { until },
        Some(_) if is_unwanted => CreateStep::Drop,
        Some(_) => another(facts, call, now),
        None if is_unwanted && !was_asked => CreateStep::Drop,
        None => CreateStep::Post { expires_at: wanted.expires_at },
    }
}

/// The same try under another key, open for as long as the first was to be.
pub fn another(facts: &Facts, call: &CheckoutCall, now: Time) -> CreateStep {
    let newest = facts.session_tries.get(&call.number).and_then(SessionTry::newest);
    match newest {
        Some((n, kept)) if n < GENERATIONS_MAX => CreateStep::Next(generation(kept.expires_at, now)),
        Some(_) | None => {
            let error = format!("the provider was asked under {GENERATIONS_MAX} keys, and made no session");
            CreateStep::GiveUp { reason: "no_session_made", error }
        }
    }
}
