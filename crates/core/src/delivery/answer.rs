//! What an app's answer means (C2): done, another try, or no use trying.
//!
//! Everything that is not a clear yes and not an explicit never is worth another try: an app that answers 404 while it
//! is being deployed must not lose events.

use bytes::Bytes;

use crate::job::Attempt;
use crate::queue::Failure;
use crate::time::Time;

/// As much of an answer's body as is read and kept.
pub const BODY_KEPT_BYTES: usize = 64 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    /// Its first [`BODY_KEPT_BYTES`].
    pub body: Bytes,
    pub truncated: bool,
}

impl Attempt {
    /// What is kept of a call: how it was judged, and the beginning of what came back.
    pub fn of(answer: Option<&Answer>, failure: Option<&Failure>, at: Time, took_ms: i64) -> Self {
        let kept = |answer: &Answer| match answer.body.get(..BODY_KEPT_BYTES) {
            // A copy, so that a large answer is not held for its beginning.
            Some(beginning) => Bytes::copy_from_slice(beginning),
            None => answer.body.clone(),
        };
        Self {
            at,
            took_ms,
            status: answer.map(|answer| answer.status.into()),
            reason: failure.map(|failure| failure.reason.to_owned()),
            error: failure.map(|failure| failure.error.clone()),
            headers: answer
                .map(|answer| serde_json::to_string(&answer.headers).expect("texts always serialise")),
            body: answer.map(kept).filter(|body| !body.is_empty()),
        }
    }
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    /// How long it asks to be left alone.
    pub fn retry_after_ms(&self, now: Time) -> Option<i64> {
        self.header("retry-after").and_then(|value| retry_after_ms(value, now))
    }

    /// The app says that no retry can help.
    fn is_final(&self) -> bool {
        self.status == NON_RETRYABLE_STATUS
            && self.header(NON_RETRYABLE).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }
}

const NON_RETRYABLE_STATUS: u16 = 489;
const NON_RETRYABLE: &str = "upstash-nonretryable-error";

/// Why there is no answer. The text says what the network said.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("the name can't be resolved: {0}")]
    Dns(String),
    /// The name leads to a private, loopback or link-local address.
    #[error("{0}: not an address of the public internet")]
    Forbidden(String),
    #[error("no connection: {0}")]
    Connect(String),
    #[error("no secure connection: {0}")]
    Tls(String),
    #[error("no answer in time")]
    Timeout,
    /// The connection ended, or what came was no HTTP.
    #[error("the answer broke off: {0}")]
    Broken(String),
}

pub fn judge(result: &Result<Answer, Fault>, now: Time) -> Result<(), Failure> {
    match result {
        Ok(answer) => judge_answer(answer, now),
        Err(fault) => Err(judge_fault(fault)),
    }
}

fn judge_answer(answer: &Answer, now: Time) -> Result<(), Failure> {
    let status = answer.status;
    let again = |reason, error: &str| Failure::transient(reason, format!("the app answered {status}{error}"));
    let failure = match status {
        200..=299 => return Ok(()),
        _ if answer.is_final() => {
            return Err(Failure::terminal(
                "non_retryable",
                "the app answered 489 with Upstash-NonRetryable-Error: it wants no retry",
            ));
        }
        300..=399 => again("redirect", ": redirects are not followed, write the final address as the url"),
        429 => again("rate_limited", ": too many requests").blaming_destination(),
        400..=499 => again("client_error", ""),
        0..=199 => again("broken", ", which is no final answer").blaming_destination(),
        500.. => again("server_error", "").blaming_destination(),
    };
    Err(failure.after_ms(answer.retry_after_ms(now)))
}

fn judge_fault(fault: &Fault) -> Failure {
    let reason = match fault {
        Fault::Forbidden(_) => {
            let error = format!("{fault}; allow_private = true allows it for this route");
            return Failure::terminal("forbidden_address", error);
        }
        Fault::Dns(_) => "dns",
        Fault::Connect(_) => "connect",
        Fault::Tls(_) => "tls",
        Fault::Timeout => "timeout",
        Fault::Broken(_) => "broken",
    };
    Failure::transient(reason, fault.to_string()).blaming_destination()
}

/// Seconds, or a date. What lies in the past or can't be understood asks for nothing; more digits than there are
/// milliseconds ask for as long as there is.
fn retry_after_ms(value: &str, now: Time) -> Option<i64> {
    let ms = if !value.is_empty() && value.bytes().all(|letter| letter.is_ascii_digit()) {
        value.parse::<i64>().unwrap_or(i64::MAX).saturating_mul(1_000)
    } else {
        let date = jiff::fmt::rfc2822::parse(value).ok()?;
        date.timestamp().as_millisecond().checked_sub(now.ms())?
    };
    (ms > 0).then_some(ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Class;

    const NOW: Time = Time::from_ms(1_770_000_000_000);

    fn answer(status: u16, headers: &[(&str, &str)]) -> Result<Answer, Fault> {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Ok(Answer { status, headers, body: Bytes::new(), truncated: false })
    }

    #[test]
    fn c2_the_answer_decides() {
        let cases = [
            (100, Class::Transient, "broken", true),
            (199, Class::Transient, "broken", true),
            (301, Class::Transient, "redirect", false),
            (304, Class::Transient, "redirect", false),
            (400, Class::Transient, "client_error", false),
            (404, Class::Transient, "client_error", false),
            (410, Class::Transient, "client_error", false),
            (429, Class::Transient, "rate_limited", true),
            (489, Class::Transient, "client_error", false),
            (500, Class::Transient, "server_error", true),
            (503, Class::Transient, "server_error", true),
            (999, Class::Transient, "server_error", true),
        ];
        for status in [200, 201, 202, 204, 299] {
            assert_eq!(judge(&answer(status, &[]), NOW), Ok(()), "{status}");
        }
        for (status, class, reason, blames) in cases {
            let failure = judge(&answer(status, &[]), NOW).unwrap_err();
            assert_eq!((failure.class, failure.reason, failure.blames_destination), (class, reason, blames));
            assert!(failure.error.contains(&status.to_string()), "{}", failure.error);
        }
    }

    #[test]
    fn c2_only_489_with_its_header_is_final() {
        let final_answer = judge(&answer(489, &[("UPSTASH-NonRetryable-Error", "True ")]), NOW).unwrap_err();
        assert_eq!((final_answer.class, final_answer.reason), (Class::Terminal, "non_retryable"));
        assert!(!final_answer.blames_destination);
        for (status, value) in [(489, "false"), (489, ""), (500, "true"), (400, "true")] {
            let failure = judge(&answer(status, &[("Upstash-NonRetryable-Error", value)]), NOW).unwrap_err();
            assert_eq!(failure.class, Class::Transient, "{status} {value}");
        }
        assert_eq!(judge(&answer(200, &[("Upstash-NonRetryable-Error", "true")]), NOW), Ok(()));
    }

    #[test]
    fn c2_no_answer_is_another_try_but_a_forbidden_address_is_not() {
        let text = || "x".to_owned();
        for (fault, reason) in [
            (Fault::Dns(text()), "dns"),
            (Fault::Connect(text()), "connect"),
            (Fault::Tls(text()), "tls"),
            (Fault::Timeout, "timeout"),
            (Fault::Broken(text()), "broken"),
        ] {
            let failure = judge(&Err(fault), NOW).unwrap_err();
            assert_eq!((failure.class, failure.reason), (Class::Transient, reason));
            assert!(failure.blames_destination);
        }
        let failure = judge(&Err(Fault::Forbidden("app.example is 10.0.0.1".into())), NOW).unwrap_err();
        assert_eq!((failure.class, failure.reason), (Class::Terminal, "forbidden_address"));
        assert!(failure.error.contains("allow_private") && !failure.blames_destination);
    }

    #[test]
    fn b3_a_retry_after_is_read_in_seconds_or_as_a_date() {
        let cases = [
            ("120", Some(120_000)),
            (" 5 ", Some(5_000)),
            ("Mon, 02 Feb 2026 02:41:00 GMT", Some(60_000)),
            ("Mon, 02 Feb 2026 02:39:00 GMT", None),
            ("0", None),
            ("-5", None),
            ("1.5", None),
            ("soon", None),
            ("", None),
            ("9223372036854775", Some(9_223_372_036_854_775_000)),
            ("9223372036854776", Some(i64::MAX)),
            ("9223372036854775807", Some(i64::MAX)),
            ("99999999999999999999999", Some(i64::MAX)),
            ("00000000000000000000000", None),
        ];
        for (value, expected) in cases {
            let failure = judge(&answer(503, &[("Retry-After", value)]), NOW).unwrap_err();
            assert_eq!(failure.retry_after_ms, expected, "{value:?}");
        }
    }
}
