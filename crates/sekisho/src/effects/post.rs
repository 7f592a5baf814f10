//! What the channels over HTTP share: one message is posted to one address, and what came back is put into words.
//!
//! Promises: what [`super::http`] promises of every request; the call ends within its time; keys, tokens and
//! secret addresses are in no error, answer or debug print. Whether an answer means yes is each channel's
//! business. What no answer means depends on whether the service can tell a second copy from the first
//! ([`Copies`]); `http` does not say how far a request came that broke off, so such a one may have arrived.

mod text;

use std::fmt;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Uri, header};
use http_body_util::Full;
use sekisho_core::delivery::{Answer, BODY_KEPT_BYTES, Fault};
use sekisho_core::notification::{Receipt, Sent};
use sekisho_core::queue::Failure;
use sekisho_core::{Secret, Time};
use serde_json::Value;
use tokio::time::Instant;
use url::Url;

use super::http as exchange;
use crate::env::Env;
pub use text::{cut, fit, headline};

/// As many letters of the other side's own words as are kept.
const WORDS_MAX: usize = 300;
/// A shorter path is no secret, and hiding it would make holes in every sentence.
const SECRET_PATH_MIN: usize = 8;
const USER_AGENT: HeaderValue = HeaderValue::from_static(concat!("Sekisho/", env!("CARGO_PKG_VERSION")));

/// What happens when the same message arrives a second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copies {
    /// It is known for a copy by its id or key: a lost answer is just another try.
    Folded,
    /// People see it twice: after a lost answer nobody knows.
    Seen,
}

/// One address that messages are posted to, and its connections.
#[derive(Clone)]
pub struct Post {
    /// How it is called in sentences.
    service: &'static str,
    copies: Copies,
    env: Env,
    http: exchange::Client,
    uri: Uri,
    headers: HeaderMap,
    hidden: Vec<Secret>,
}

impl Post {
    /// `content_type` of every body.
    pub fn new(
        service: &'static str,
        copies: Copies,
        url: &Url,
        content_type: &'static str,
        allow_private: bool,
        env: &Env,
    ) -> anyhow::Result<Self> {
        let uri: Uri = url.as_str().parse().context("this URL can't be called")?;
        let http = exchange::Client::open(&uri, allow_private, env)?;
        let mut headers = HeaderMap::new();
        headers.insert(header::USER_AGENT, USER_AGENT);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        Ok(Self { service, copies, env: env.clone(), http, uri, headers, hidden: Vec::new() })
    }

    /// By the clock of this node.
    pub fn wall(&self) -> Time {
        self.env.wall()
    }

    /// Whatever comes back, this is not in it.
    pub fn hiding(mut self, secret: Secret) -> Self {
        self.hidden.push(secret);
        self
    }

    /// The address is as good as a key: whoever has it may post.
    pub fn hiding_its_address(self) -> Self {
        let path = self.uri.path().to_owned();
        if path.len() < SECRET_PATH_MIN { self } else { self.hiding(Secret::new(path)) }
    }

    pub fn with_authorization(mut self, mut value: HeaderValue) -> Self {
        value.set_sensitive(true);
        self.headers.insert(header::AUTHORIZATION, value);
        self
    }

    /// Posts once. Without an answer, what that means is the error.
    pub async fn send(&self, own: HeaderMap, body: Bytes, within: Duration) -> Result<ServiceResponse, Sent> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        request.headers_mut().extend(own);
        match self.http.exchange(request, BODY_KEPT_BYTES, Instant::now() + within).await {
            Ok(answer) => Ok(self.response(answer)),
            Err(fault) => Err(self.unanswered(&fault)),
        }
    }

    fn response(&self, answer: Answer) -> ServiceResponse {
        let words = cut(&self.hide(&words(&answer.body)), WORDS_MAX);
        ServiceResponse { service: self.service, copies: self.copies, words, at: self.env.wall(), answer }
    }

    fn unanswered(&self, fault: &Fault) -> Sent {
        let service = self.service;
        let failure = |reason, error: String| {
            Failure::transient(reason, self.hide(&format!("{service}: {error}"))).blaming_destination()
        };
        let lost = |failure| match self.copies {
            Copies::Folded => Sent::Failed(failure),
            Copies::Seen => Sent::Uncertain(failure),
        };
        match fault {
            Fault::Dns(what) => {
                Sent::Failed(failure("dns", format!("its name can't be resolved; nothing was sent: {what}")))
            }
            Fault::Connect(what) => {
                Sent::Failed(failure("connect", format!("no connection; nothing was sent: {what}")))
            }
            Fault::Tls(what) => {
                Sent::Failed(failure("tls", format!("no secure connection; nothing was sent: {what}")))
            }
            Fault::Forbidden(what) => {
                let error = format!(
                    "{what}; write an address of the public internet, or allow_private = true for this channel"
                );
                let error = self.hide(&format!("{service}: {error}"));
                Sent::Closed { failure: Failure::terminal("forbidden_address", error), for_ms: None }
            }
            Fault::Timeout => lost(failure("timeout", "no answer in time".to_owned())),
            Fault::Broken(what) => {
                lost(failure("broken", format!("the connection broke before the answer: {what}")))
            }
        }
    }

    /// Somebody on the way may say a secret back to us.
    fn hide(&self, text: &str) -> String {
        self.hidden.iter().fold(text.to_owned(), |text, secret| text.replace(secret.expose(), "(hidden)"))
    }
}

/// No path: it may be as good as a key.
impl fmt::Debug for Post {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Post({} at {})", self.service, self.uri.host().unwrap_or_default())
    }
}

/// An answer, and the sentences that are made of it.
#[derive(Clone, Debug)]
pub struct ServiceResponse {
    service: &'static str,
    copies: Copies,
    /// The other side's own, for a person.
    words: String,
    /// When it came.
    pub at: Time,
    pub answer: Answer,
}

impl ServiceResponse {
    pub fn status(&self) -> u16 {
        self.answer.status
    }

    /// The body, if it is JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.answer.body).unwrap_or_default()
    }

    pub fn words(&self) -> &str {
        &self.words
    }

    /// Taken, under the other side's own id if it said one.
    pub fn accepted(&self, reference: Option<String>) -> Sent {
        let said = reference.as_deref().unwrap_or(&self.words);
        let answer = format!("{} {}", self.status(), cut(said, WORDS_MAX)).trim_end().to_owned();
        Sent::Accepted(Receipt { answer, reference })
    }

    /// Not taken, and another message would not be either until somebody follows the cure.
    pub fn closed(&self, reason: &'static str, cure: &str) -> Sent {
        Sent::Closed { failure: Failure::terminal(reason, self.sentence(cure)), for_ms: None }
    }

    /// Not taken, because of this message.
    pub fn refused(&self, reason: &'static str, cure: &str) -> Sent {
        Sent::Failed(Failure::terminal(reason, self.sentence(cure)))
    }

    /// Too many at once.
    pub fn busy(&self, retry_after_ms: Option<i64>) -> Sent {
        let failure = Failure::transient("rate_limited", self.sentence("it is tried again later"));
        Sent::Failed(failure.blaming_destination().after_ms(retry_after_ms))
    }

    /// What every service means by the statuses that none of them gives a meaning of its own.
    pub fn otherwise(&self) -> Sent {
        let again = |reason| {
            let failure = Failure::transient(reason, self.sentence("it is tried again later"));
            failure.blaming_destination().after_ms(self.retry_after_ms())
        };
        match self.status() {
            300..=399 => self.closed("redirect", "redirects are not followed: write the final address"),
            429 => self.busy(self.retry_after_ms()),
            408 => Sent::Failed(again("timeout")),
            400..=499 => self.refused("refused", "look at its words, then send it once more"),
            0..=299 => Sent::Failed(again("broken")),
            // Something in between did not hear back from the service itself.
            504 if self.copies == Copies::Seen => Sent::Uncertain(again("timeout")),
            500.. => Sent::Failed(again("server_error")),
        }
    }

    pub fn retry_after_ms(&self) -> Option<i64> {
        self.answer.retry_after_ms(self.at)
    }

    fn sentence(&self, cure: &str) -> String {
        let (service, status) = (self.service, self.status());
        if self.words.is_empty() {
            format!("{service} answered {status}; {cure}")
        } else {
            format!("{service} answered {status}: {}; {cure}", self.words)
        }
    }
}

/// An address that carries a key or a message: over TLS, unless it is on the operator's own network.
pub fn address(url: &str, allow_private: bool) -> anyhow::Result<Url> {
    let url = exchange::callable(url)?;
    if url.scheme() != "https" && !allow_private {
        bail!("the message and its key would travel unencrypted; write https://, or allow_private = true");
    }
    Ok(url)
}

/// A path below a base URL.
pub fn below(base: &Url, path: &str) -> anyhow::Result<Url> {
    if base.query().is_some() || base.fragment().is_some() {
        bail!("the base URL ends before any `?` or `#`");
    }
    let mut url = base.clone();
    url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
    Ok(url)
}

/// `message`, `code` and `errors` of a JSON answer, as most services write them; otherwise the text itself.
fn words(body: &[u8]) -> String {
    let said: Value = serde_json::from_slice(body).unwrap_or_default();
    let Some(message) = said["message"].as_str() else {
        return String::from_utf8_lossy(body).split_whitespace().collect::<Vec<_>>().join(" ");
    };
    let mut words = message.to_owned();
    let errors = said["errors"].as_array().into_iter().flatten();
    errors.filter_map(Value::as_str).for_each(|error| words.extend([", ", error]));
    if let Some(code) = said["code"].as_i64() {
        words.push_str(&format!(" (code {code})"));
    }
    words
}

#[cfg(test)]
pub mod tests;
