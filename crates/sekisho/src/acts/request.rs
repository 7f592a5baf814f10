//! Orders that must not be carried out twice: whoever sends one again under the same key gets the first answer again.
//!
//! The answer is written in the order's own transaction, so either both are there or neither.

use sekisho_core::state::{Key, Kind, Loaded, Write};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::refusal::{Refusal, Result};
use crate::token;

/// Most characters of a key.
const KEY_MAX: usize = 255;

/// Which order this is, if its sender says so.
#[derive(Clone, Debug)]
pub struct OnceKey {
    key: Key,
    /// Of what was ordered: the same key for something else is a mistake.
    hash: String,
}

/// What came of an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answered {
    pub answer: Value,
    /// Carried out before: this is the answer of then.
    #[serde(skip)]
    pub repeated: bool,
}

#[derive(Serialize, Deserialize)]
struct Facts {
    hash: String,
    answer: Value,
}

impl OnceKey {
    /// `caller` keeps the keys of different callers apart, and a tenant the answers of one from another's. The order counts
    /// as what it says, not as it was written.
    pub fn new(
        caller: &str,
        tenant: Option<&str>,
        key: &str,
        path: &str,
        order: &Map<String, Value>,
    ) -> Result<Self> {
        if key.is_empty() || key.chars().count() > KEY_MAX || key.contains(char::is_control) {
            return Err(Refusal::Invalid(format!("Idempotency-Key: expected 1 to {KEY_MAX} characters")));
        }
        let order = serde_json::to_string(order).expect("JSON serialises");
        let what = [path, tenant.unwrap_or_default(), &*order].join("\0");
        let id = token::hash(&format!("{caller}\0{key}"));
        Ok(Self { key: Key::new(Kind::Request, id), hash: token::hash(&what) })
    }

    /// What must be loaded to know whether it was carried out before.
    pub fn key(&self) -> Key {
        self.key.clone()
    }

    /// The answer of then, if this order has a key and was carried out before.
    pub fn repeated(request: Option<&Self>, loaded: &Loaded) -> Result<Option<Answered>> {
        request.map_or(Ok(None), |request| request.answered(loaded))
    }

    fn answered(&self, loaded: &Loaded) -> Result<Option<Answered>> {
        let Some(state) = loaded.states.get(&self.key) else { return Ok(None) };
        let broken =
            |_| Refusal::Conflict("what was remembered of this Idempotency-Key can't be read".into());
        let facts: Facts = serde_json::from_str(&state.facts).map_err(broken)?;
        if facts.hash != self.hash {
            let detail = "this Idempotency-Key was used for another request; use a new one for a new request";
            return Err(Refusal::Conflict(detail.into()));
        }
        Ok(Some(Answered { answer: facts.answer, repeated: true }))
    }

    /// Remembers the answer.
    pub fn write(&self, answer: &Value) -> Write {
        Write::of(&self.key, 0, &Facts { hash: self.hash.clone(), answer: answer.clone() })
    }
}
