//! PAY.JP's API, version 1: the lists of its events and charges.
//!
//! Lists are newest first and paged by counting from their start, so that something new moves the rest: what is seen
//! twice is known by its id. What is promised of every call: [`provider_api`].

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::{Method, header};
use sekisho_core::delivery::Answer;
use sekisho_core::queue::Failure;
use sekisho_core::time::DAY_MS;
use sekisho_core::{Secret, Time};
use serde::Deserialize;

use super::call::Call;
use super::listing::{Lister, Listing};
use super::provider_api::{self, Api, Object, Ready, Said};
use crate::env::Exchange;

/// Where PAY.JP is. The key says whether it is live.
pub const BASE_URL: &str = "https://api.pay.jp";

/// How far back events are looked for. PAY.JP says nowhere how long it keeps them.
const KEPT_MS: i64 = 30 * DAY_MS;
const PAGE: usize = 100;

/// Speaks to one account.
#[derive(Clone, Debug)]
pub struct Client {
    api: Api,
    /// The key, as it is sent.
    basic: Secret,
}

impl Client {
    pub fn new(base_url: &str, key: Secret, timeout: Duration) -> anyhow::Result<Self> {
        provider_api::sendable("PAY.JP", &key)?;
        let basic = provider_api::basic(key.expose(), "");
        let api = Api::new("PAY.JP", base_url, timeout, refused)?.hiding(key).hiding(basic.clone());
        Ok(Self { api, basic })
    }

    /// The same, where requests do not go over the network.
    #[must_use]
    pub fn by(self, way: Option<Arc<dyn Exchange>>) -> Self {
        Self { api: self.api.by(way), ..self }
    }

    async fn page(
        &self,
        path: &str,
        mut query: Vec<(&str, String)>,
        cursor: Option<&str>,
        now: Time,
    ) -> Call<Listing> {
        let offset: usize = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
        query.extend([("limit", PAGE.to_string()), ("offset", offset.to_string())]);
        let Call { result, attempt, is_replayed } =
            self.api.exchange(self.request(path, &query), now, page).await;
        let result = result.map(|page| {
            let next = (page.has_more && !page.data.is_empty()).then(|| offset + page.data.len());
            Listing { items: page.data, next: next.map(|offset| offset.to_string()) }
        });
        Call { result, attempt, is_replayed }
    }

    fn request(&self, path: &str, query: &[(&str, String)]) -> Ready {
        let mut request = self.api.request(Method::GET, path, query)?;
        let basic = provider_api::authorization(&format!("Basic {}", self.basic.expose()))?;
        request.headers_mut().insert(header::AUTHORIZATION, basic);
        Ok(request)
    }
}

#[async_trait]
impl Lister for Client {
    fn events_kept_ms(&self) -> Option<i64> {
        Some(KEPT_MS)
    }

    async fn events(&self, since: Time, until: Time, cursor: Option<&str>, now: Time) -> Call<Listing> {
        let times = vec![("since", since.seconds().to_string()), ("until", until.seconds().to_string())];
        self.page("v1/events", times, cursor, now).await
    }

    fn objects(&self) -> &'static [&'static str] {
        &["charge"]
    }

    async fn list(&self, object: &str, since: Time, cursor: Option<&str>, now: Time) -> Call<Listing> {
        match object {
            "charge" => {
                self.page("v1/charges", vec![("since", since.seconds().to_string())], cursor, now).await
            }
            _ => self.api.unlisted(object, now),
        }
    }
}

#[derive(Deserialize)]
struct Page {
    data: Vec<Object>,
    has_more: bool,
}

fn page(body: &[u8]) -> Option<Page> {
    serde_json::from_str(provider_api::object(body)?.get()).ok()
}

#[derive(Default, Deserialize)]
struct Trouble {
    error: Mistake,
}

#[derive(Default, Deserialize)]
struct Mistake {
    code: Option<String>,
    message: Option<String>,
}

fn refused(title: &str, answer: &Answer, now: Time) -> Option<Failure> {
    let Trouble { error: Mistake { code, message } } =
        serde_json::from_slice(&answer.body).unwrap_or_default();
    provider_api::refused(&Said { code, message }, title, answer, now)
}

#[cfg(test)]
mod tests;
