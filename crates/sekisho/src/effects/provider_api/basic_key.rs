//! An API whose secret key travels as the user of `Authorization: Basic`, without a password, and which is only read:
//! PAY.JP's and KOMOJU's. Both say what is wrong in the same form.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, header};
use sekisho_core::delivery::Answer;
use sekisho_core::queue::Failure;
use sekisho_core::{Secret, Time};
use serde::Deserialize;

use super::{Api, Ready, Said, authorization, basic, refused, sendable};
use crate::effects::call::ApiCall;
use crate::env::Exchange;

/// Speaks to one account.
#[derive(Clone, Debug)]
pub struct BasicKeyApi {
    api: Api,
    /// The key, as it is sent.
    basic: Secret,
}

impl BasicKeyApi {
    pub fn new(title: &'static str, base_url: &str, key: Secret, timeout: Duration) -> anyhow::Result<Self> {
        sendable(title, &key)?;
        let basic = basic(key.expose(), "");
        let api = Api::new(title, base_url, timeout, judged)?.hiding(key).hiding(basic.clone());
        Ok(Self { api, basic })
    }

    /// The same, where requests do not go over the network.
    #[must_use]
    pub fn by(self, way: Option<Arc<dyn Exchange>>) -> Self {
        Self { api: self.api.by(way), ..self }
    }

    pub async fn get<T>(
        &self,
        path: &str,
        query: &[(&str, String)],
        now: Time,
        understand: fn(&[u8]) -> Option<T>,
    ) -> ApiCall<T> {
        self.api.exchange(self.request(path, query), now, understand).await
    }

    /// Something that this provider does not list.
    pub fn unlisted<T>(&self, what: &str, now: Time) -> ApiCall<T> {
        self.api.unlisted(what, now)
    }

    fn request(&self, path: &str, query: &[(&str, String)]) -> Ready {
        let mut request = self.api.request(Method::GET, path, query)?;
        let basic = authorization(&format!("Basic {}", self.basic.expose()))?;
        request.headers_mut().insert(header::AUTHORIZATION, basic);
        Ok(request)
    }
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

fn judged(title: &str, answer: &Answer, now: Time) -> Option<Failure> {
    let Trouble { error: Mistake { code, message } } =
        serde_json::from_slice(&answer.body).unwrap_or_default();
    refused(&Said { code, message }, title, answer, now)
}
