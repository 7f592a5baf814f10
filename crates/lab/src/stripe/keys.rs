//! Idempotency keys: the first answer once work began is kept and given again, a 500 like any other.
//!
//! What was refused before any work leaves no trace, so that it can be corrected under the same key. A forgotten
//! key does its work again: that is what a caller must be prepared for.

use std::collections::HashMap;

use super::refusal::StripeRefusal;
use crate::app::Reply;

/// Longest key taken.
const KEY_MAX: usize = 255;

#[derive(Debug, Default)]
pub struct IdempotencyKeys(HashMap<Name, Kept>);

/// Keys of two accounts never meet.
type Name = (String, String);

#[derive(Debug)]
struct Kept {
    /// Method, path and parameters it was first used with.
    used_for: String,
    /// `None` as long as the work goes on.
    answer: Option<Reply>,
}

impl IdempotencyKeys {
    /// The answer given before, `None` when this is the first use. Fails when the key can't be used now.
    pub fn replay(&self, account: &str, key: &str, used_for: &str) -> Result<Option<Reply>, StripeRefusal> {
        if key.is_empty() || key.len() > KEY_MAX {
            return Err(StripeRefusal::new(
                400,
                None,
                format!("Idempotency keys have 1 to {KEY_MAX} characters."),
            ));
        }
        match self.0.get(&name(account, key)) {
            None => Ok(None),
            Some(kept) if kept.used_for != used_for => Err(StripeRefusal::key_of_another(key)),
            Some(Kept { answer: None, .. }) => Err(StripeRefusal::key_in_use()),
            Some(Kept { answer: Some(answer), .. }) => {
                Ok(Some(answer.clone().with_header("idempotent-replayed", "true")))
            }
        }
    }

    pub fn begin(&mut self, account: &str, key: &str, used_for: &str) {
        self.0.insert(name(account, key), Kept { used_for: used_for.to_owned(), answer: None });
    }

    pub fn keep(&mut self, account: &str, key: &str, answer: &Reply) {
        // Forgotten meanwhile: stays forgotten.
        if let Some(kept) = self.0.get_mut(&name(account, key)) {
            kept.answer = Some(answer.clone());
        }
    }

    pub fn forget(&mut self) {
        self.0.clear();
    }
}

fn name(account: &str, key: &str) -> Name {
    (account.to_owned(), key.to_owned())
}
