//! What Stripe's answer means for the call (E1), where it says more than its status does.
//!
//! What Stripe itself says about a retry goes before what its status says.

use sekisho_core::Time;
use sekisho_core::delivery::Answer;
use sekisho_core::job::Class;
use sekisho_core::queue::Failure;
use serde::Deserialize;

use super::StripePage;
use crate::effects::provider_api::{self, NOT_FOUND};

/// A session was to end too soon, or too late, by the time the request came.
pub const EXPIRES_AT: &str = "stripe_expires_at";
/// The key was used with other parameters before.
pub const KEY_REUSED: &str = "stripe_key_reused";

pub fn page(body: &[u8]) -> Option<StripePage> {
    serde_json::from_str(provider_api::object(body)?.get()).ok()
}

pub fn refused(title: &str, answer: &Answer, now: Time) -> Option<Failure> {
    let ErrorBody { kind, code, message, param } = ErrorBody::read(&answer.body);
    let said = provider_api::Said { code, message };
    let failure = provider_api::refused(&said, title, answer, now)?;
    let reason = match (answer.status, said.code.as_deref()) {
        // A cursor that Stripe has forgotten is a bad parameter to it, and a missing object to us.
        (400..=499, Some("resource_missing")) => NOT_FOUND,
        (400, Some("charge_already_refunded")) => "stripe_already_refunded",
        (400, Some("charge_disputed")) => "stripe_disputed",
        (400, _) if param.as_deref() == Some("amount") => "stripe_amount",
        (400, _) if param.as_deref() == Some("expires_at") => EXPIRES_AT,
        (400, _) if kind.as_deref() == Some("idempotency_error") => KEY_REUSED,
        (429, Some("lock_timeout")) => "stripe_locked",
        _ => failure.reason,
    };
    let class = match answer.header("stripe-should-retry") {
        Some("true") => Class::Transient,
        Some("false") => Class::Terminal,
        Some(_) | None if reason == NOT_FOUND => Class::Terminal,
        Some(_) | None => failure.class,
    };
    let blames_destination = failure.blames_destination && reason != "stripe_locked";
    Some(Failure { class, reason, blames_destination, ..failure })
}

/// Stripe's own words.
#[derive(Default, Deserialize)]
struct ErrorBody {
    #[serde(rename = "type")]
    kind: Option<String>,
    code: Option<String>,
    message: Option<String>,
    param: Option<String>,
}

impl ErrorBody {
    fn read(body: &[u8]) -> Self {
        #[derive(Deserialize)]
        struct Body {
            error: ErrorBody,
        }

        serde_json::from_slice::<Body>(body).map(|body| body.error).unwrap_or_default()
    }
}
