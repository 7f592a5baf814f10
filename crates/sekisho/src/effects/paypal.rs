//! PayPal's API: the list of its webhooks' events. It has no list of payments that shows what its events show.
//!
//! A request bears a token that PayPal gives for the client's id and secret. The token is kept until shortly before it
//! ends; one that PayPal does not take any more is asked for anew, once. What is promised of every call:
//! [`provider_api`].

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderValue, Method, header};
use http_body_util::Full;
use sekisho_core::delivery::Answer;
use sekisho_core::queue::Failure;
use sekisho_core::time::DAY_MS;
use sekisho_core::{Secret, Time};
use serde::Deserialize;
use tokio::sync::Mutex;
use url::form_urlencoded;

use super::call::ApiCall;
use super::listing::{ListedPage, Lister};
use super::provider_api::{self, Api, ApiObject, Said, UNAUTHORIZED};
use crate::env::Exchange;

/// Where PayPal is.
pub const BASE_URL: &str = "https://api-m.paypal.com";
pub const SANDBOX_URL: &str = "https://api-m.sandbox.paypal.com";

/// How far back events are looked for. PayPal says nowhere how long it keeps them.
const KEPT_MS: i64 = 30 * DAY_MS;
const PAGE: usize = 100;
/// A token is not used in its last minute.
const EARLY_MS: i64 = 60_000;
const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

/// Speaks for one app of PayPal's.
#[derive(Clone, Debug)]
pub struct Client {
    api: Api,
    /// Client id and secret, as they are sent.
    basic: Secret,
    token: Arc<Mutex<Option<Token>>>,
}

#[derive(Clone, Debug)]
struct Token {
    secret: Secret,
    ends_at: Time,
}

impl Client {
    pub fn new(base_url: &str, client_id: &str, key: Secret, timeout: Duration) -> anyhow::Result<Self> {
        provider_api::sendable("PayPal", &key)?;
        let basic = provider_api::basic(client_id, key.expose());
        let api = Api::new("PayPal", base_url, timeout, refused)?.hiding(key).hiding(basic.clone());
        Ok(Self { api, basic, token: Arc::default() })
    }

    /// The same, where requests do not go over the network.
    #[must_use]
    pub fn by(self, way: Option<Arc<dyn Exchange>>) -> Self {
        Self { api: self.api.by(way), ..self }
    }

    /// With a token, kept or new.
    async fn read(&self, query: &[(&str, String)], now: Time) -> ApiCall<ListedPage> {
        let mut kept = self.token.lock().await;
        let usable = kept.clone().filter(|token| token.ends_at > now);
        let is_old = usable.is_some();
        let token = match usable {
            Some(token) => token,
            None => match self.new_token(now).await {
                ApiCall { result: Ok(token), .. } => token,
                ApiCall { result: Err(failure), attempt, is_replayed } => {
                    return ApiCall { result: Err(failure), attempt, is_replayed };
                }
            },
        };
        *kept = Some(token.clone());
        drop(kept);
        let call = self.read_with(&token, query, now).await;
        if !is_old || !call.result.as_ref().is_err_and(|failure| failure.reason == UNAUTHORIZED) {
            return call;
        }
        self.token.lock().await.take_if(|kept| kept.secret == token.secret);
        Box::pin(self.read(query, now)).await
    }

    async fn read_with(&self, token: &Token, query: &[(&str, String)], now: Time) -> ApiCall<ListedPage> {
        let request = self.api.request(Method::GET, "v1/notifications/webhooks-events", query).and_then(
            |mut request| {
                request.headers_mut().insert(header::AUTHORIZATION, provider_api::bearer(&token.secret)?);
                Ok(request)
            },
        );
        self.api.clone().hiding(token.secret.clone()).exchange(request, now, page).await
    }

    async fn new_token(&self, now: Time) -> ApiCall<Token> {
        let request = self.api.request(Method::POST, "v1/oauth2/token", &[]).and_then(|mut request| {
            *request.body_mut() = Full::from(Bytes::from_static(b"grant_type=client_credentials"));
            let basic = provider_api::authorization(&format!("Basic {}", self.basic.expose()))?;
            request.headers_mut().insert(header::AUTHORIZATION, basic);
            request.headers_mut().insert(header::CONTENT_TYPE, FORM);
            Ok(request)
        });
        let ApiCall { result, attempt, is_replayed } = self.api.exchange(request, now, granted).await;
        let result = result.map(|granted| Token {
            secret: Secret::new(granted.access_token),
            ends_at: now.plus_ms(granted.expires_in.saturating_mul(1_000) - EARLY_MS),
        });
        ApiCall { result, attempt, is_replayed }
    }
}

#[async_trait]
impl Lister for Client {
    fn events_kept_ms(&self) -> Option<i64> {
        Some(KEPT_MS)
    }

    async fn events(&self, since: Time, until: Time, cursor: Option<&str>, now: Time) -> ApiCall<ListedPage> {
        let first = || {
            let (since, until) = (since.to_string(), until.to_string());
            vec![("start_time", since), ("end_time", until), ("page_size", PAGE.to_string())]
        };
        let further: Vec<_> =
            cursor.into_iter().flat_map(|cursor| form_urlencoded::parse(cursor.as_bytes())).collect();
        let query = match cursor {
            None => first(),
            Some(_) => further.iter().map(|(name, value)| (&**name, value.clone().into_owned())).collect(),
        };
        self.read(&query, now).await
    }

    fn objects(&self) -> &'static [&'static str] {
        &[]
    }

    async fn list(
        &self,
        object: &str,
        _since: Time,
        _cursor: Option<&str>,
        now: Time,
    ) -> ApiCall<ListedPage> {
        self.api.unlisted(object, now)
    }
}

#[derive(Deserialize)]
struct Granted {
    access_token: String,
    expires_in: i64,
}

fn granted(body: &[u8]) -> Option<Granted> {
    let is_usable =
        |granted: &Granted| provider_api::sendable("", &Secret::new(&*granted.access_token)).is_ok();
    serde_json::from_slice(body).ok().filter(is_usable)
}

#[derive(Deserialize)]
struct Page {
    events: Vec<ApiObject>,
    #[serde(default)]
    links: Vec<Link>,
}

#[derive(Deserialize)]
struct Link {
    href: String,
    rel: String,
}

/// Of the address of the next page only the question is taken: where it is asked is the operator's choice.
fn page(body: &[u8]) -> Option<ListedPage> {
    let page: Page = serde_json::from_slice(body).ok()?;
    let next = page.links.into_iter().find(|link| link.rel == "next");
    let question = next.and_then(|link| Some(link.href.split_once('?')?.1.to_owned()));
    Some(ListedPage { next: question.filter(|_| !page.events.is_empty()), items: page.events })
}

/// Of the token's endpoint: `error` and `error_description`; of all others: `name` and `message`.
#[derive(Default, Deserialize)]
struct Trouble {
    #[serde(alias = "error")]
    name: Option<String>,
    #[serde(alias = "error_description")]
    message: Option<String>,
}

fn refused(title: &str, answer: &Answer, now: Time) -> Option<Failure> {
    let Trouble { name, message } = serde_json::from_slice(&answer.body).unwrap_or_default();
    provider_api::refused(&Said { code: name, message }, title, answer, now)
}

#[cfg(test)]
mod tests;
