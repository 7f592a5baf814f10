//! Square's API: the search for its events, and the lists of its payments and refunds.
//!
//! Events can be searched once the operator has switched that on at Square, and by a personal access token only. Payments
//! are listed by location, so locations are listed first; refunds are listed for all. Lists are seconds behind. What is
//! promised of every call: [`provider_api`].

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

use super::call::ApiCall;
use super::listing::{ListedPage, Lister};
use super::provider_api::{self, Api, ApiObject, Ready, Said, is_id};
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

    async fn get<T>(
        &self,
        path: &str,
        query: &[(&str, String)],
        now: Time,
        understand: fn(&[u8]) -> Option<T>,
    ) -> ApiCall<T> {
        self.api.exchange(self.request(Method::GET, path, query), now, understand).await
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

    async fn events(&self, since: Time, until: Time, cursor: Option<&str>, now: Time) -> ApiCall<ListedPage> {
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

    async fn list(&self, object: &str, since: Time, cursor: Option<&str>, now: Time) -> ApiCall<ListedPage> {
        let mut query = vec![("begin_time", since.to_string()), ("limit", PAGE.to_string())];
        match (object, cursor.map(Place::read)) {
            // The first page is empty, and leads to the first location.
            ("payment", None) => self.get("v2/locations", &[], now, locations).await,
            ("payment", Some(place)) => {
                query.push(("location_id", place.location().to_owned()));
                query.extend(place.cursor.map(|cursor| ("cursor", cursor.to_owned())));
                let ApiCall { result, attempt, is_replayed } =
                    self.get("v2/payments", &query, now, page).await;
                let result =
                    result.map(|page| ListedPage { next: place.after(page.next.as_deref()), ..page });
                ApiCall { result, attempt, is_replayed }
            }
            ("refund", _) => {
                query.extend(cursor.map(|cursor| ("cursor", cursor.to_owned())));
                self.get("v2/refunds", &query, now, page).await
            }
            _ => self.api.unlisted(object, now),
        }
    }
}

/// Where a list of payments stands: the locations that are left, the one that is read first, and Square's own cursor there.
struct Place<'c> {
    locations: &'c str,
    cursor: Option<&'c str>,
}

impl<'c> Place<'c> {
    /// Ids hold letters and digits alone.
    fn read(text: &'c str) -> Self {
        let (locations, cursor) = text.split_once(' ').unwrap_or((text, ""));
        Self { locations, cursor: Some(cursor).filter(|cursor| !cursor.is_empty()) }
    }

    fn location(&self) -> &'c str {
        self.locations.split(',').next().unwrap_or_default()
    }

    /// The next page of this location, or the first of the next.
    fn after(&self, next: Option<&str>) -> Option<String> {
        match next {
            Some(next) => Some(format!("{} {next}", self.locations)),
            None => self.locations.split_once(',').map(|(_, rest)| rest.to_owned()),
        }
    }
}

#[derive(Deserialize)]
struct Locations {
    #[serde(default)]
    locations: Vec<Location>,
}

#[derive(Deserialize)]
struct Location {
    id: String,
}

fn locations(body: &[u8]) -> Option<ListedPage> {
    let Locations { locations } = serde_json::from_str(provider_api::object(body)?.get()).ok()?;
    let ids: Vec<_> = locations.into_iter().map(|one| one.id).filter(|id| is_id(id)).collect();
    Some(ListedPage { items: Vec::new(), next: Some(ids.join(",")).filter(|ids| !ids.is_empty()) })
}

/// An empty list is left out.
#[derive(Deserialize)]
struct Page {
    #[serde(default, alias = "payments", alias = "refunds")]
    events: Vec<ApiObject>,
    cursor: Option<String>,
}

fn page(body: &[u8]) -> Option<ListedPage> {
    let page: Page = serde_json::from_str(provider_api::object(body)?.get()).ok()?;
    Some(ListedPage { items: page.events, next: page.cursor.filter(|cursor| !cursor.is_empty()) })
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
