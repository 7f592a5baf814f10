//! KOMOJU's API: the list of its payments. Each shows its refunds, so nothing else is listed.
//!
//! What is promised of every call: [`provider_api`].

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::{Method, header};
use sekisho_core::delivery::Answer;
use sekisho_core::queue::Failure;
use sekisho_core::{Secret, Time};
use serde::Deserialize;

use super::call::Call;
use super::listing::{Lister, Listing};
use super::provider_api::{self, Api, Object, Ready, Said};
use crate::env::Exchange;

/// Where KOMOJU is. The key says whether it is live.
pub const BASE_URL: &str = "https://komoju.com";

const PAGE: usize = 100;

/// Speaks to one merchant's account.
#[derive(Clone, Debug)]
pub struct Client {
    api: Api,
    /// The key, as it is sent.
    basic: Secret,
}

impl Client {
    pub fn new(base_url: &str, key: Secret, timeout: Duration) -> anyhow::Result<Self> {
        provider_api::sendable("KOMOJU", &key)?;
        let basic = provider_api::basic(key.expose(), "");
        let api = Api::new("KOMOJU", base_url, timeout, refused)?.hiding(key).hiding(basic.clone());
        Ok(Self { api, basic })
    }

    /// The same, where requests do not go over the network.
    #[must_use]
    pub fn by(self, way: Option<Arc<dyn Exchange>>) -> Self {
        Self { api: self.api.by(way), ..self }
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
        None
    }

    async fn events(&self, _since: Time, _until: Time, _cursor: Option<&str>, now: Time) -> Call<Listing> {
        self.api.unlisted("events", now)
    }

    fn objects(&self) -> &'static [&'static str] {
        &["payment"]
    }

    async fn list(&self, object: &str, since: Time, cursor: Option<&str>, now: Time) -> Call<Listing> {
        if object != "payment" {
            return self.api.unlisted(object, now);
        }
        let number = cursor.unwrap_or("1").to_owned();
        let query = [("start_time", since.to_string()), ("per_page", PAGE.to_string()), ("page", number)];
        self.api.exchange(self.request("api/v1/payments", &query), now, page).await
    }
}

#[derive(Deserialize)]
struct Answered {
    data: Vec<Object>,
    page: usize,
    last_page: usize,
}

fn page(body: &[u8]) -> Option<Listing> {
    let page: Answered = serde_json::from_str(provider_api::object(body)?.get()).ok()?;
    let is_last = page.data.is_empty() || page.page >= page.last_page;
    Some(Listing { items: page.data, next: (!is_last).then(|| (page.page + 1).to_string()) })
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
