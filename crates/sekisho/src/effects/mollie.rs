//! Mollie's API: what became of a payment that a classic webhook hinted at.
//!
//! What is promised of every call: [`provider_api`].

use std::sync::Arc;
use std::time::Duration;

use http::{Method, header};
use sekisho_core::delivery::Answer;
use sekisho_core::queue::Failure;
use sekisho_core::{Secret, Time};
use serde::Deserialize;

use super::call::ApiCall;
use super::provider_api::{self, Api, ApiObject, Said, is_id};
use crate::env::Exchange;

/// Where Mollie is. The key says whether it is live.
pub const BASE_URL: &str = "https://api.mollie.com";

/// Speaks to one profile.
#[derive(Clone, Debug)]
pub struct Client {
    api: Api,
    key: Secret,
}

impl Client {
    pub fn new(base_url: &str, key: Secret, timeout: Duration) -> anyhow::Result<Self> {
        provider_api::sendable("Mollie", &key)?;
        let api = Api::new("Mollie", base_url, timeout, refused)?.hiding(key.clone());
        Ok(Self { api, key })
    }

    /// The same, where requests do not go over the network.
    #[must_use]
    pub fn by(self, way: Option<Arc<dyn Exchange>>) -> Self {
        Self { api: self.api.by(way), ..self }
    }

    pub async fn payment(&self, id: &str, now: Time) -> ApiCall<ApiObject> {
        if !is_id(id) {
            return self.api.unsent(id, now);
        }
        let request =
            self.api.request(Method::GET, &format!("v2/payments/{id}"), &[]).and_then(|mut request| {
                request.headers_mut().insert(header::AUTHORIZATION, provider_api::bearer(&self.key)?);
                Ok(request)
            });
        self.api.exchange(request, now, provider_api::object).await
    }
}

#[derive(Default, Deserialize)]
struct Trouble {
    title: Option<String>,
    detail: Option<String>,
}

fn refused(title: &str, answer: &Answer, now: Time) -> Option<Failure> {
    let Trouble { title: code, detail } = serde_json::from_slice(&answer.body).unwrap_or_default();
    provider_api::refused(&Said { code, message: detail }, title, answer, now)
}

#[cfg(test)]
mod tests;
