//! KOMOJU's API: the list of its payments. Each shows its refunds, so nothing else is listed.
//!
//! What is promised of every call: [`provider_api`].

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sekisho_core::{Secret, Time};
use serde::Deserialize;

use super::call::ApiCall;
use super::listing::{ListedPage, Lister};
use super::provider_api::basic_key::BasicKeyApi;
use super::provider_api::{self, ApiObject};
use crate::env::Exchange;

/// Where KOMOJU is. The key says whether it is live.
pub const BASE_URL: &str = "https://komoju.com";

const PAGE: usize = 100;

/// Speaks to one merchant's account.
#[derive(Clone, Debug)]
pub struct Client(BasicKeyApi);

impl Client {
    pub fn new(base_url: &str, key: Secret, timeout: Duration) -> anyhow::Result<Self> {
        Ok(Self(BasicKeyApi::new("KOMOJU", base_url, key, timeout)?))
    }

    /// The same, where requests do not go over the network.
    #[must_use]
    pub fn by(self, way: Option<Arc<dyn Exchange>>) -> Self {
        Self(self.0.by(way))
    }
}

#[async_trait]
impl Lister for Client {
    fn events_kept_ms(&self) -> Option<i64> {
        None
    }

    async fn events(
        &self,
        _since: Time,
        _until: Time,
        _cursor: Option<&str>,
        now: Time,
    ) -> ApiCall<ListedPage> {
        self.0.unlisted("events", now)
    }

    fn objects(&self) -> &'static [&'static str] {
        &["payment"]
    }

    async fn list(&self, object: &str, since: Time, cursor: Option<&str>, now: Time) -> ApiCall<ListedPage> {
        if object != "payment" {
            return self.0.unlisted(object, now);
        }
        let number = cursor.unwrap_or("1").to_owned();
        let query = [("start_time", since.to_string()), ("per_page", PAGE.to_string()), ("page", number)];
        self.0.get("api/v1/payments", &query, now, page).await
    }
}

#[derive(Deserialize)]
struct Answered {
    data: Vec<ApiObject>,
    page: usize,
    last_page: usize,
}

fn page(body: &[u8]) -> Option<ListedPage> {
    let page: Answered = serde_json::from_str(provider_api::object(body)?.get()).ok()?;
    let is_last = page.data.is_empty() || page.page >= page.last_page;
    Some(ListedPage { items: page.data, next: (!is_last).then(|| (page.page + 1).to_string()) })
}

#[cfg(test)]
mod tests;
