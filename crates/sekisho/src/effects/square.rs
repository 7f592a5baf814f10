//! Square's API: the search for its events, and the lists of its payments and refunds.
//!
//! Events can be searched once the operator has switched that on at Square, and by a personal access token only. Lists
//! are seconds behind. What is promised of every call: [`provider_api`].

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
use serde_json::json;

use super::call::Call;
use super::listing::{Lister, Listing};
use super::provider_api::{self, Api, Object, Ready, Said};
use crate::env::Exchange;

/// Where Square is.
pub const BASE_URL: &str = "https://connect.squareup.com";
pub const SANDBOX_URL: &str = "https://connect.squareupsandbox.com";

/// Square finds events of 28 days.
const KEPT_MS: i64 = 28 * DAY_MS;
const PAGE: usize = 100;
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Speaks to one seller's account.
#[derive(Clone, Debug)]
pub struct Client {
    api: Api,
    key: Secret,
}

impl Client {
    pub fn new(base_url: &str, key: Secret, timeout: Duration) -> anyhow::Result<Self> {
        provider_api::sendable("Square", &key)?;
        let api = Api::new("Square", base_url, timeout, refused)?.hiding(key.clone());
        Ok(Self { api, key })
    }

    /// The same, where requests do not go over the network.
    #[must_use]
    pub fn by(self, way: Option<Arc<dyn Exchange>>) -> Self {
        Self { api: self.api.by(way), ..self }
    }

    fn request(&self, method: Method, path: &str, query: &[(&str, String)]) -> Ready {
        let mut request = self.api.request(method, path, query)?;
        request.headers_mut().insert(header::AUTHORIZATION, provider_api::bearer(&self.key)?);
        Ok(request)
    }
}

#[async_trait]
impl Lister for Client {
    fn events_kept_ms(&self) -> Option<i64> {
        Some(KEPT_MS)
    }

    async fn events(&self, since: Time, until: Time, cursor: Option<&str>, now: Time) -> Call<Listing> {
        let times = json!({ "start_at": since.to_string(), "end_at": until.to_string() });
        let mut search = json!({ "limit": PAGE, "query": { "filter": { "created_at": times } } });
        if let Some(cursor) = cursor {
            search["cursor"] = cursor.into();
        }
        let request = self.request(Method::POST, "v2/events", &[]).map(|mut request| {
            request.headers_mut().insert(header::CONTENT_TYPE, JSON);
            *request.body_mut() = Full::from(Bytes::from(search.to_string()));
            request
        });
        self.api.exchange(request, now, page).await
    }

    fn objects(&self) -> &'static [&'static str] {
        &["payment", "refund"]
    }

    async fn list(&self, object: &str, since: Time, cursor: Option<&str>, now: Time) -> Call<Listing> {
        let path = match object {
            "payment" => "v2/payments",
            "refund" => "v2/refunds",
            _ => return self.api.unlisted(object, now),
        };
        let mut query = vec![("begin_time", since.to_string()), ("limit", PAGE.to_string())];
        query.extend(cursor.map(|cursor| ("cursor", cursor.to_owned())));
        self.api.exchange(self.request(Method::GET, path, &query), now, page).await
    }
}

/// An empty list is left out.
#[derive(Deserialize)]
struct Page {
    #[serde(default, alias = "payments", alias = "refunds")]
    events: Vec<Object>,
    cursor: Option<String>,
}

fn page(body: &[u8]) -> Option<Listing> {
    let page: Page = serde_json::from_str(provider_api::object(body)?.get()).ok()?;
    Some(Listing { items: page.events, next: page.cursor.filter(|cursor| !cursor.is_empty()) })
}

#[derive(Default, Deserialize)]
struct Trouble {
    errors: Vec<Mistake>,
}

#[derive(Deserialize)]
struct Mistake {
    code: Option<String>,
    detail: Option<String>,
}

fn refused(title: &str, answer: &Answer, now: Time) -> Option<Failure> {
    let trouble: Trouble = serde_json::from_slice(&answer.body).unwrap_or_default();
    let first = trouble.errors.into_iter().next();
    let said = first.map(|Mistake { code, detail }| Said { code, message: detail }).unwrap_or_default();
    provider_api::refused(&said, title, answer, now)
}

#[cfg(test)]
mod tests;
