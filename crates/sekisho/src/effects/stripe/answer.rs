//! What Stripe's answer means for the call (E1): an object, another try, or no use trying.
//!
//! Conflicts, limits, Stripe's own trouble and the network's pass with time; everything else stays as it is until
//! somebody changes something. What Stripe itself says about a retry goes before what its status says.

use sekisho_core::Time;
use sekisho_core::delivery::{self, Answer, Fault};
use sekisho_core::job::Class;
use sekisho_core::queue::Failure;
use serde::Deserialize;

use super::{Object, Page};

/// As much of Stripe's own words as an error holds.
const MESSAGE_MAX: usize = 500;

/// `body_max` is how much of the body was read at most.
pub fn judge<T>(
    answered: &Result<Answer, Fault>,
    body_max: usize,
    now: Time,
    understand: fn(&[u8]) -> Option<T>,
) -> Result<T, Failure> {
    let answer = match answered {
        Ok(answer) => answer,
        Err(fault) => {
            let failure = delivery::judge(&Err(fault.clone()), now);
            return Err(failure.expect_err("a fault is never a success"));
        }
    };
    if !(200..=299).contains(&answer.status) {
        return Err(refused(answer, now));
    }
    if answer.truncated && answer.body.len() >= body_max {
        let error =
            format!("Stripe's answer is larger than {body_max} bytes; ask for fewer objects at a time");
        return Err(Failure::terminal("stripe_too_large", error));
    }
    if answer.truncated {
        return Err(Failure::transient("broken", "Stripe's answer broke off").blaming_destination());
    }
    understand(&answer.body).ok_or_else(|| {
        let error = format!("{} was answered with something that is not Stripe's JSON", answer.status);
        Failure::transient("broken", error).blaming_destination()
    })
}

/// Any JSON object.
pub fn object(body: &[u8]) -> Option<Object> {
    serde_json::from_slice(body).ok().filter(|object: &Object| object.get().starts_with('{'))
}

pub fn page(body: &[u8]) -> Option<Page> {
    serde_json::from_str(object(body)?.get()).ok()
}

fn refused(answer: &Answer, now: Time) -> Failure {
    let said = Said::read(&answer.body);
    let (code, error) = (said.code.as_deref(), said.sentence(answer.status));
    let terminal = |reason| Failure::terminal(reason, &*error);
    let transient = |reason| Failure::transient(reason, &*error);
    let failure = match answer.status {
        // A cursor that Stripe has forgotten is a bad parameter to it, and a missing object to us.
        400..=499 if code == Some("resource_missing") => terminal("stripe_not_found"),
        401 => terminal("stripe_unauthorized"),
        403 => terminal("stripe_forbidden"),
        404 => terminal("stripe_not_found"),
        400 if code == Some("charge_already_refunded") => terminal("stripe_already_refunded"),
        400 if code == Some("charge_disputed") => terminal("stripe_disputed"),
        400 if said.param.as_deref() == Some("amount") => terminal("stripe_amount"),
        409 => transient("stripe_conflict"),
        429 if code == Some("lock_timeout") => transient("stripe_locked"),
        429 => transient("stripe_rate_limited").blaming_destination(),
        300..=399 => terminal("stripe_redirect"),
        400..=499 => terminal("stripe_refused"),
        0..=299 => transient("broken").blaming_destination(),
        500.. => transient("stripe_unavailable").blaming_destination(),
    };
    let class = match answer.header("stripe-should-retry") {
        Some("true") => Class::Transient,
        Some("false") => Class::Terminal,
        Some(_) | None => failure.class,
    };
    Failure { class, ..failure }.after_ms(answer.retry_after_ms(now))
}

/// Stripe's own words.
#[derive(Default, Deserialize)]
struct Said {
    code: Option<String>,
    message: Option<String>,
    param: Option<String>,
}

impl Said {
    fn read(body: &[u8]) -> Self {
        #[derive(Deserialize)]
        struct Body {
            error: Said,
        }

        serde_json::from_slice::<Body>(body).map(|body| body.error).unwrap_or_default()
    }

    fn sentence(&self, status: u16) -> String {
        let mut sentence = format!("Stripe answered {status}");
        if let Some(message) = &self.message {
            sentence.push_str(": ");
            sentence.extend(message.chars().take(MESSAGE_MAX));
        }
        if let Some(code) = &self.code {
            sentence.push_str(" (");
            sentence.extend(code.chars().take(MESSAGE_MAX));
            sentence.push(')');
        }
        sentence
    }
}
