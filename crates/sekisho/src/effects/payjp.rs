//! PAY.JP's API, version 1: the lists of its events and charges.
//!
//! Lists are newest first and paged by counting from their start, so that something new moves the rest: what is seen
//! twice is known by its id. What is promised of every call: [`provider_api`].

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sekisho_core::time::DAY_MS;
use sekisho_core::{Secret, Time};
use serde::Deserialize;

use super::call::ApiCall;
use super::listing::{ListedPage, Lister};
use super::provider_api::basic_key::BasicKeyApi;
use super::provider_api::{self, ApiObject};
use crate::env::Exchange;

/// Where PAY.JP is. The key says whether it is live.
pub const BASE_URL: &str = "https://api.pay.jp";

/// How far back events are looked for. PAY.JP says nowhere how long it keeps them.
const KEPT_MS: i64 = 30 * DAY_MS;
const PAGE: usize = 100;

/// Speaks to one account.
#[derive(Clone, Debug)]
pub struct Client(BasicKeyApi);

impl Client {
    pub fn new(base_url: &str, key: Secret, timeout: Duration) -> anyhow::Result<Self> {
        Ok(Self(BasicKeyApi::new("PAY.JP", base_url, key, timeout)?))
    }

    /// The same, where requests do not go over the network.
    #[must_use]
    pub fn by(self, way: Option<Arc<dyn Exchange>>) -> Self {
        Self(self.0.by(way))
    }

    async fn page(
        &self,
        path: &str,
        mut query: Vec<(&str, String)>,
        cursor: Option<&str>,
        now: Time,
    ) -> ApiCall<ListedPage> {
        let offset: usize = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
        query.extend([("limit", PAGE.to_string()), ("offset", offset.to_string())]);
        let ApiCall { result, attempt, is_replayed } = self.0.get(path, &query, now, page).await;
        let result = result.map(|page| {
            let next = (page.has_more && !page.data.is_empty()).then(|| offset + page.data.len());
            ListedPage { items: page.data, next: next.map(|offset| offset.to_string()) }
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
        let times = vec![("since", since.seconds().to_string()), ("until", until.seconds().to_string())];
        self.page("v1/events", times, cursor, now).await
    }

    fn objects(&self) -> &'static [&'static str] {
        &["charge"]
    }

    async fn list(&self, object: &str, since: Time, cursor: Option<&str>, now: Time) -> ApiCall<ListedPage> {
        match object {
            "charge" => {
                self.page("v1/charges", vec![("since", since.seconds().to_string())], cursor, now).await
            }
            _ => self.0.unlisted(object, now),
        }
    }
}

#[derive(Deserialize)]
struct Page {
    data: Vec<ApiObject>,
    has_more: bool,
}

fn page(body: &[u8]) -> Option<Page> {
    serde_json::from_str(provider_api::object(body)?.get()).ok()
}

#[cfg(test)]
mod tests;
