//! What goes wrong with a request, ordered ahead by a test.
//!
//! As text, for the command line: `429`, `429:2` (seconds), `lock_timeout`, `lock_timeout:409`, `in_use`,
//! `disputed`, `500`, `stored_500`, `500_after_work`, `late_work:250`, `late_answer:250` (milliseconds), `cut`,
//! `cut:40` (bytes of the answer).

use std::str::FromStr;
use std::time::Duration;

use super::refusal::StripeRefusal;
use crate::app::Reply;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StripeFault {
    /// 429 before anything was looked at, with `Retry-After` in seconds.
    RateLimited { retry_after_s: Option<u32> },
    /// 429 because somebody else holds the object.
    LockTimeout,
    /// 409 for the same reason.
    LockConflict,
    /// 409 as if another request with this key were under way.
    KeyInUse,
    /// 500 before anything was done; nothing is kept under the key.
    Error,
    /// Any other answer instead of the right one, before anything was done.
    Instead(Reply),
    /// 400 because the charge is disputed, kept under the key and replayed.
    Disputed,
    /// 500 without any work, kept under the key and replayed.
    StoredError,
    /// The work is done, and still the answer is a 500, kept under the key and replayed.
    ErrorAfterWork,
    /// Takes this long before the work is done; the key is in use meanwhile.
    LateWork(Duration),
    /// The work is done at once and the answer comes this much later.
    LateAnswer(Duration),
    /// The work is done, and the connection closes after so many bytes of the answer.
    Cut { after_bytes: usize },
}

impl StripeFault {
    /// The answer of those that come before any work.
    pub(super) fn at_the_door(&self) -> Option<Reply> {
        match self {
            Self::RateLimited { retry_after_s } => {
                let reply = StripeRefusal::rate_limited()
                    .reply()
                    .with_header("stripe-rate-limited-reason", "global-rate");
                Some(match retry_after_s {
                    Some(seconds) => reply.with_header("retry-after", &seconds.to_string()),
                    None => reply,
                })
            }
            Self::LockTimeout => Some(StripeRefusal::lock_timeout().reply()),
            Self::LockConflict => Some(StripeRefusal::lock_conflict().reply()),
            Self::KeyInUse => Some(StripeRefusal::key_in_use().reply()),
            Self::Error => Some(StripeRefusal::server_error().reply()),
            Self::Instead(reply) => Some(reply.clone()),
            Self::Disputed
            | Self::StoredError
            | Self::ErrorAfterWork
            | Self::LateWork(_)
            | Self::LateAnswer(_)
            | Self::Cut { .. } => None,
        }
    }
}

impl FromStr for StripeFault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (word, rest) = text.split_once(':').unwrap_or((text, ""));
        let number = || rest.parse::<u32>().map_err(|_| format!("{text:?} lacks its number"));
        let ms = || number().map(|ms| Duration::from_millis(ms.into()));
        match (word, rest) {
            ("429", "") => Ok(Self::RateLimited { retry_after_s: None }),
            ("429", _) => Ok(Self::RateLimited { retry_after_s: Some(number()?) }),
            ("lock_timeout", "") => Ok(Self::LockTimeout),
            ("lock_timeout", "409") => Ok(Self::LockConflict),
            ("disputed", "") => Ok(Self::Disputed),
            ("in_use", "") => Ok(Self::KeyInUse),
            ("500", "") => Ok(Self::Error),
            ("stored_500", "") => Ok(Self::StoredError),
            ("500_after_work", "") => Ok(Self::ErrorAfterWork),
            ("late_work", _) => Ok(Self::LateWork(ms()?)),
            ("late_answer", _) => Ok(Self::LateAnswer(ms()?)),
            ("cut", "") => Ok(Self::Cut { after_bytes: 0 }),
            ("cut", _) => Ok(Self::Cut { after_bytes: number()? as usize }),
            _ => Err(format!(
                "{text:?} is no fault: 429, lock_timeout, in_use, disputed, 500, stored_500, 500_after_work, \
                 late_work:, late_answer:, cut"
            )),
        }
    }
}
