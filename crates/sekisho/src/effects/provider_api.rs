//! What all providers' APIs have in common: one request to where the operator said, what its answer means, and what is
//! kept of it.
//!
//! Promises: one request per call, within its time-out; whether another try can help is said here; no secret is in an
//! error, a log or a kept answer, and secrets travel over TLS or to this machine only. What an object means is the core's
//! business. Nothing is retried here.

pub mod basic_key;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Uri, header};
use http_body_util::Full;
use sekisho_core::delivery::{self, Answer, Fault};
use sekisho_core::job::Attempt;
use sekisho_core::provider::encode_base64;
use sekisho_core::queue::Failure;
use sekisho_core::{Secret, Time};
use serde_json::value::RawValue;
use tokio::time::Instant;
use url::Url;

use super::call::ApiCall;
use super::http as exchange;
use crate::env::Exchange;

/// An object as the provider wrote it.
pub type ApiObject = Box<RawValue>;
/// A request that is ready, or why it can't be sent.
pub type Ready = Result<Request<Full<Bytes>>, Fault>;
/// What is wrong with an answer, if anything.
pub type Refused = fn(title: &str, answer: &Answer, now: Time) -> Option<Failure>;

/// How an account says that it does not know an object.
pub const NOT_FOUND: &str = "provider_not_found";
/// How it says that a key is wrong, or has no right to do this.
pub const UNAUTHORIZED: &str = "provider_unauthorized";
pub const FORBIDDEN: &str = "provider_forbidden";
/// How it says that the question made no sense.
pub const NOT_TAKEN: &str = "provider_refused";
/// It was not asked: no id of a provider's looks so.
pub const BAD_ID: &str = "provider_bad_id";
/// Its own trouble.
pub const UNAVAILABLE: &str = "provider_unavailable";

/// Largest answer taken: a page of a hundred large objects fits.
pub const BODY_MAX: usize = 16 << 20;
/// Longest id taken. Providers' own are shorter.
pub const ID_MAX: usize = 255;
/// As much of a provider's own words as an error holds.
const MESSAGE_MAX: usize = 500;
const USER_AGENT: HeaderValue = HeaderValue::from_static(concat!("Sekisho/", env!("CARGO_PKG_VERSION")));

/// One provider's API with one source's key. Keeps its connections.
#[derive(Clone, Debug)]
pub struct Api {
    title: &'static str,
    http: exchange::Client,
    base: Url,
    timeout: Duration,
    refused: Refused,
    secrets: Vec<Secret>,
}

impl Api {
    pub fn new(
        title: &'static str,
        base_url: &str,
        timeout: Duration,
        refused: Refused,
    ) -> anyhow::Result<Self> {
        let base = exchange::callable(base_url)?;
        if base.scheme() != "https" && !is_this_machine(&base) {
            bail!("the secret key would travel unencrypted; write https://");
        }
        if base.query().is_some() || base.fragment().is_some() {
            bail!("{title}'s base URL ends before any `?` or `#`");
        }
        let uri: Uri = base.as_str().parse().context("this URL can't be called")?;
        // The operator wrote this address; nobody else chooses where requests go.
        let http = exchange::Client::new(&uri, true)?;
        Ok(Self { title, http, base, timeout, refused, secrets: Vec::new() })
    }

    /// The same; in a given way, if requests do not go over the network.
    #[must_use]
    pub fn by(self, way: Option<Arc<dyn Exchange>>) -> Self {
        match way {
            Some(way) => Self { http: exchange::Client::by(way), ..self },
            None => self,
        }
    }

    /// Hides this too, wherever it is said back to us.
    #[must_use]
    pub fn hiding(mut self, secret: Secret) -> Self {
        self.secrets.push(secret);
        self
    }

    /// `path` goes below the base, and holds nothing that another chose.
    pub fn request(&self, method: Method, path: &str, query: &[(&str, String)]) -> Ready {
        let mut url = self.base.clone();
        url.set_path(&format!("{}/{path}", self.base.path().trim_end_matches('/')));
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut request = Request::new(Full::default());
        *request.method_mut() = method;
        *request.uri_mut() = url.as_str().parse().map_err(|_| unsendable("address"))?;
        request.headers_mut().insert(header::USER_AGENT, USER_AGENT);
        Ok(request)
    }

    /// Sends once.
    pub async fn exchange<T>(
        &self,
        request: Ready,
        now: Time,
        understand: fn(&[u8]) -> Option<T>,
    ) -> ApiCall<T> {
        let started = Instant::now();
        let answered = match request {
            Ok(request) => self.http.exchange(request, BODY_MAX, started + self.timeout).await,
            Err(fault) => Err(fault),
        };
        let took_ms = started.elapsed().as_millis() as i64;
        let result = self
            .judge(&answered, now.plus_ms(took_ms), understand)
            .map_err(|failure| Failure { error: self.hide(&failure.error), ..failure });
        let attempt = self.record(answered.as_ref().ok(), result.as_ref().err(), now, took_ms);
        let is_replayed = answered
            .is_ok_and(|answer| answer.header("idempotent-replayed").is_some_and(|word| word == "true"));
        ApiCall { result, attempt, is_replayed }
    }

    /// An id goes into the path, or into a header: what is none is not sent.
    pub fn unsent<T>(&self, id: &str, now: Time) -> ApiCall<T> {
        let shown: String = id.chars().take(ID_MAX).collect();
        let error = self.hide(&format!("{shown:?} is no id of {}'s; nothing was asked", self.title));
        self.failed(Failure::terminal(BAD_ID, error), now)
    }

    /// Something that this provider does not list.
    pub fn unlisted<T>(&self, what: &str, now: Time) -> ApiCall<T> {
        let error = format!("{} lists no {what}; nothing was asked", self.title);
        self.failed(Failure::terminal("provider_lists_none", error), now)
    }

    fn failed<T>(&self, failure: Failure, now: Time) -> ApiCall<T> {
        let attempt = self.record(None, Some(&failure), now, 0);
        ApiCall { result: Err(failure), attempt, is_replayed: false }
    }

    fn judge<T>(
        &self,
        answered: &Result<Answer, Fault>,
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
        if let Some(failure) = (self.refused)(self.title, answer, now) {
            return Err(failure);
        }
        let title = self.title;
        if answer.truncated && answer.body.len() >= BODY_MAX {
            let error =
                format!("{title}'s answer is larger than {BODY_MAX} bytes; ask for fewer objects at a time");
            return Err(Failure::terminal("provider_too_large", error));
        }
        if answer.truncated {
            let error = format!("{title}'s answer broke off");
            return Err(Failure::transient("broken", error).blaming_destination());
        }
        understand(&answer.body).ok_or_else(|| {
            let error = format!("{} was answered with something that is not {title}'s JSON", answer.status);
            Failure::transient("broken", error).blaming_destination()
        })
    }

    fn record(&self, answer: Option<&Answer>, failure: Option<&Failure>, at: Time, took_ms: i64) -> Attempt {
        let attempt = Attempt::of(answer, failure, at, took_ms);
        let says = |body: &Bytes, secret: &Secret| {
            let secret = secret.expose().as_bytes();
            body.windows(secret.len()).any(|part| part == secret)
        };
        let hidden = |body: Bytes| {
            if !self.secrets.iter().any(|secret| says(&body, secret)) {
                return body;
            }
            Bytes::from(self.hide(&String::from_utf8_lossy(&body)))
        };
        Attempt {
            headers: attempt.headers.map(|headers| self.hide(&headers)),
            body: attempt.body.map(hidden),
            ..attempt
        }
    }

    /// Somebody on the way may say a secret back to us.
    fn hide(&self, text: &str) -> String {
        let hide = |text: String, secret: &Secret| text.replace(secret.expose(), "(hidden)");
        self.secrets.iter().fold(text.to_owned(), hide)
    }
}

/// What a status says of an answer, in the same words for every provider.
pub fn refused(said: &Said, title: &str, answer: &Answer, now: Time) -> Option<Failure> {
    let error = said.sentence(title, answer.status);
    let terminal = |reason| Failure::terminal(reason, &*error);
    let transient = |reason| Failure::transient(reason, &*error);
    let failure = match answer.status {
        200..=299 => return None,
        401 => terminal(UNAUTHORIZED),
        403 => terminal(FORBIDDEN),
        404 => terminal(NOT_FOUND),
        409 => transient("provider_conflict"),
        429 => transient("provider_rate_limited").blaming_destination(),
        300..=399 => terminal("provider_redirect"),
        400..=499 => terminal(NOT_TAKEN),
        0..=199 => transient("broken").blaming_destination(),
        500.. => transient(UNAVAILABLE).blaming_destination(),
    };
    Some(failure.after_ms(answer.retry_after_ms(now)))
}

/// A provider's own words about what is wrong.
#[derive(Default)]
pub struct Said {
    pub code: Option<String>,
    pub message: Option<String>,
}

impl Said {
    pub fn sentence(&self, title: &str, status: u16) -> String {
        let mut sentence = format!("{title} answered {status}");
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

/// Any JSON object.
pub fn object(body: &[u8]) -> Option<ApiObject> {
    serde_json::from_slice(body).ok().filter(|object: &ApiObject| object.get().starts_with('{'))
}

/// A key that can be sent in a header.
pub fn sendable(title: &str, key: &Secret) -> anyhow::Result<()> {
    if key.expose().is_empty() || !key.expose().bytes().all(|letter| letter.is_ascii_graphic()) {
        bail!("{title}'s secret key is empty or holds characters that no key has");
    }
    Ok(())
}

pub fn bearer(key: &Secret) -> Result<HeaderValue, Fault> {
    authorization(&format!("Bearer {}", key.expose()))
}

/// What goes into an `Authorization: Basic`, which is as secret as the password in it.
pub fn basic(user: &str, password: &str) -> Secret {
    Secret::new(encode_base64(format!("{user}:{password}")))
}

pub fn authorization(text: &str) -> Result<HeaderValue, Fault> {
    let mut value = HeaderValue::from_str(text).map_err(|_| unsendable("key"))?;
    value.set_sensitive(true);
    Ok(value)
}

pub fn unsendable(what: &str) -> Fault {
    Fault::Broken(format!("the request's {what} can't be sent"))
}

/// What providers' ids are made of. Nothing in it means anything in a path or a header.
pub fn is_id(text: &str) -> bool {
    let fits = |letter: u8| letter.is_ascii_alphanumeric() || letter == b'_' || letter == b'-';
    (1..=ID_MAX).contains(&text.len()) && text.bytes().all(fits)
}

fn is_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let ip = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
pub mod checks;
