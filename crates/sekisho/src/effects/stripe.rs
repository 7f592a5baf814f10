//! Stripe's API: what it says of an object, and what it is told to do.
//!
//! Promises: one request per call, within its time-out; whether another try can help is said here ([`answer`]);
//! the secret key is in no error, log or kept answer, and is sent over TLS or to this machine only. Objects come
//! back as Stripe wrote them: what they mean is the core's business. Nothing is retried here.

mod answer;
mod list;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Uri, header};
use http_body_util::Full;
use sekisho_core::delivery::{Answer, Fault};
use sekisho_core::job::Attempt;
use sekisho_core::queue::Failure;
use sekisho_core::{Secret, Time};
use serde_json::value::RawValue;
use tokio::time::Instant;
use url::Url;

use super::http as exchange;
use crate::env::Exchange;
pub use list::{Cursor, Page, Paging, RefundsOf};

/// Where Stripe is.
pub const BASE_URL: &str = "https://api.stripe.com";

/// Largest answer taken: a page of a hundred large objects fits.
const BODY_MAX: usize = 16 << 20;
/// Longest id taken. Stripe's own are shorter.
const ID_MAX: usize = 255;
const USER_AGENT: HeaderValue = HeaderValue::from_static(concat!("Sekisho/", env!("CARGO_PKG_VERSION")));

const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");
/// What is written is understood as this version of the API understands it, whatever the account's own is.
const WRITE_VERSION: HeaderValue = HeaderValue::from_static("2026-10-28.endive");

/// An object as Stripe wrote it.
pub type Object = Box<RawValue>;

/// One call: what came of it, and what is kept of it.
#[derive(Debug)]
pub struct Call<T> {
    pub result: Result<T, Failure>,
    pub attempt: Attempt,
    /// The answer was given before, to the same idempotency key.
    pub is_replayed: bool,
}

/// A refund to be made.
#[derive(Clone, Debug)]
pub struct NewRefund<'a> {
    /// `payment_intent` or `charge`.
    pub object: &'a str,
    pub id: &'a str,
    pub amount: i64,
    pub reason: Option<&'static str>,
    pub metadata: Vec<(&'static str, String)>,
}

/// Speaks to one Stripe account, and keeps its connections.
#[derive(Clone, Debug)]
pub struct Client {
    http: exchange::Client,
    base: Url,
    key: Secret,
    timeout: Duration,
    account: Option<String>,
    version: Option<HeaderValue>,
}

impl Client {
    /// `base_url` without `/v1`, such as [`BASE_URL`].
    pub fn new(base_url: &str, key: Secret, timeout: Duration) -> anyhow::Result<Self> {
        let base = exchange::callable(base_url)?;
        if base.scheme() != "https" && !is_this_machine(&base) {
            bail!("the secret key would travel unencrypted; write https://");
        }
        if base.query().is_some() || base.fragment().is_some() {
            bail!("Stripe's base URL ends before any `?` or `#`");
        }
        if key.expose().is_empty() || !key.expose().bytes().all(|letter| letter.is_ascii_graphic()) {
            bail!("Stripe's secret key is empty or holds characters that no key has");
        }
        let uri: Uri = base.as_str().parse().context("this URL can't be called")?;
        // The operator wrote this address; nobody else chooses where requests go.
        let http = exchange::Client::new(&uri, true)?;
        Ok(Self { http, base, key, timeout, account: None, version: None })
    }

    /// The same, where requests do not go over the network.
    #[must_use]
    pub fn by(self, way: Arc<dyn Exchange>) -> Self {
        Self { http: exchange::Client::by(way), ..self }
    }

    /// Answers in this API version instead of the account's own.
    pub fn with_version(self, version: &str) -> anyhow::Result<Self> {
        let version = HeaderValue::from_str(version).context("this is no API version")?;
        Ok(Self { version: Some(version), ..self })
    }

    /// Reads what belongs to a connected account, over the same connections.
    #[must_use]
    pub fn for_account(&self, account: &str) -> Self {
        Self { account: Some(account.to_owned()), ..self.clone() }
    }

    pub async fn checkout_session(&self, id: &str, now: Time) -> Call<Object> {
        self.object("checkout/sessions", id, now).await
    }

    pub async fn payment_intent(&self, id: &str, now: Time) -> Call<Object> {
        self.object("payment_intents", id, now).await
    }

    pub async fn charge(&self, id: &str, now: Time) -> Call<Object> {
        self.object("charges", id, now).await
    }

    pub async fn balance_transaction(&self, id: &str, now: Time) -> Call<Object> {
        self.object("balance_transactions", id, now).await
    }

    pub async fn refund(&self, id: &str, now: Time) -> Call<Object> {
        self.object("refunds", id, now).await
    }

    pub async fn refunds(&self, of: &RefundsOf, paging: &Paging, now: Time) -> Call<Page> {
        self.page("refunds", paging.query(of.query()), now).await
    }

    pub async fn payment_intents(&self, paging: &Paging, now: Time) -> Call<Page> {
        self.page("payment_intents", paging.query(Vec::new()), now).await
    }

    /// Of these types, `charge.*` included, at most 20; of all types when there are none.
    pub async fn events(&self, types: &[&str], paging: &Paging, now: Time) -> Call<Page> {
        let types = types.iter().map(|one| ("types[]", (*one).to_owned())).collect();
        self.page("events", paging.query(types), now).await
    }

    pub async fn checkout_sessions(&self, paging: &Paging, now: Time) -> Call<Page> {
        self.page("checkout/sessions", paging.query(Vec::new()), now).await
    }

    /// Makes a refund, once for each key: Stripe gives the first answer again.
    pub async fn create_refund(&self, new: &NewRefund<'_>, key: &str, now: Time) -> Call<Object> {
        let mut form =
            vec![(new.object.to_owned(), new.id.to_owned()), ("amount".into(), new.amount.to_string())];
        form.extend(new.reason.map(|reason| ("reason".into(), reason.to_owned())));
        form.extend(new.metadata.iter().map(|(name, value)| (format!("metadata[{name}]"), value.clone())));
        self.create("refunds", &form, key, now).await
    }

    async fn create(&self, path: &str, form: &[(String, String)], key: &str, now: Time) -> Call<Object> {
        let request = self.request(path, &[]).and_then(|request| {
            let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
            let key = HeaderValue::from_str(key).map_err(|_| unsendable("idempotency key"))?;
            let (mut head, _) = request.into_parts();
            head.method = Method::POST;
            head.headers.insert(header::CONTENT_TYPE, FORM);
            head.headers.insert("idempotency-key", key);
            head.headers.entry("stripe-version").or_insert(WRITE_VERSION);
            Ok(Request::from_parts(head, Full::from(body)))
        });
        self.exchange(request, now, answer::object).await
    }

    async fn object(&self, collection: &str, id: &str, now: Time) -> Call<Object> {
        if !is_id(id) {
            return self.unsent(id, now);
        }
        self.read(&format!("{collection}/{id}"), &[], now, answer::object).await
    }

    async fn page(&self, collection: &str, query: Vec<(&str, String)>, now: Time) -> Call<Page> {
        self.read(collection, &query, now, answer::page).await
    }

    async fn read<T>(
        &self,
        path: &str,
        query: &[(&str, String)],
        now: Time,
        understand: fn(&[u8]) -> Option<T>,
    ) -> Call<T> {
        self.exchange(self.request(path, query), now, understand).await
    }

    async fn exchange<T>(
        &self,
        request: Result<Request<Full<Bytes>>, Fault>,
        now: Time,
        understand: fn(&[u8]) -> Option<T>,
    ) -> Call<T> {
        if let Some(account) = self.account.as_deref().filter(|account| !is_id(account)) {
            return self.unsent(account, now);
        }
        let started = Instant::now();
        let answered = match request {
            Ok(request) => self.http.exchange(request, BODY_MAX, started + self.timeout).await,
            Err(fault) => Err(fault),
        };
        let took_ms = started.elapsed().as_millis() as i64;
        let result = answer::judge(&answered, BODY_MAX, now.plus_ms(took_ms), understand)
            .map_err(|failure| Failure { error: self.hide(&failure.error), ..failure });
        let attempt = self.record(answered.as_ref().ok(), result.as_ref().err(), now, took_ms);
        let is_replayed = answered
            .is_ok_and(|answer| answer.header("idempotent-replayed").is_some_and(|word| word == "true"));
        Call { result, attempt, is_replayed }
    }

    fn request(&self, path: &str, query: &[(&str, String)]) -> Result<Request<Full<Bytes>>, Fault> {
        let mut url = self.base.clone();
        url.set_path(&format!("{}/v1/{path}", self.base.path().trim_end_matches('/')));
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut request = Request::new(Full::default());
        *request.uri_mut() = url.as_str().parse().map_err(|_| unsendable("address"))?;
        let headers = request.headers_mut();
        headers.insert(header::USER_AGENT, USER_AGENT);
        let mut key =
            HeaderValue::from_str(&format!("Bearer {}", self.key.expose())).map_err(|_| unsendable("key"))?;
        key.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, key);
        if let Some(account) = &self.account {
            headers
                .insert("stripe-account", HeaderValue::from_str(account).map_err(|_| unsendable("account"))?);
        }
        if let Some(version) = &self.version {
            headers.insert("stripe-version", version.clone());
        }
        Ok(request)
    }

    /// An id goes into the path, or into a header: what is none is not sent.
    fn unsent<T>(&self, id: &str, now: Time) -> Call<T> {
        let shown: String = id.chars().take(ID_MAX).collect();
        let error = self.hide(&format!("{shown:?} is no id of Stripe's; nothing was asked"));
        let failure = Failure::terminal("stripe_bad_id", error);
        let attempt = self.record(None, Some(&failure), now, 0);
        Call { result: Err(failure), attempt, is_replayed: false }
    }

    fn record(&self, answer: Option<&Answer>, failure: Option<&Failure>, at: Time, took_ms: i64) -> Attempt {
        let attempt = Attempt::of(answer, failure, at, took_ms);
        let key = self.key.expose().as_bytes();
        let says_it = |body: &Bytes| body.windows(key.len()).any(|part| part == key);
        let hidden = |body: Bytes| Bytes::from(self.hide(&String::from_utf8_lossy(&body)));
        Attempt {
            headers: attempt.headers.map(|headers| self.hide(&headers)),
            body: attempt.body.map(|body| if says_it(&body) { hidden(body) } else { body }),
            ..attempt
        }
    }

    /// Somebody on the way may say the key back to us.
    fn hide(&self, text: &str) -> String {
        text.replace(self.key.expose(), "(hidden)")
    }
}

fn unsendable(what: &str) -> Fault {
    Fault::Broken(format!("the request's {what} can't be sent"))
}

/// What Stripe's ids are made of. Nothing in it means anything in a path or a header.
fn is_id(text: &str) -> bool {
    let fits = |letter: u8| letter.is_ascii_alphanumeric() || letter == b'_' || letter == b'-';
    (1..=ID_MAX).contains(&text.len()) && text.bytes().all(fits)
}

fn is_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let ip = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests;
