//! LINE Pay's API: what became of a payment that a callback hinted at.
//!
//! Requests are signed with the channel's secret, which is never sent. LINE Pay says what is wrong in an answer of status
//! 200; a payment that is not confirmed yet is not found. What is promised of every call: [`provider_api`].

use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use http::{HeaderValue, Method};
use sekisho_core::delivery::Answer;
use sekisho_core::provider::line_pay::authorization;
use sekisho_core::queue::Failure;
use sekisho_core::{Secret, Time};
use serde::Deserialize;

use super::call::ApiCall;
use super::provider_api::{
    self, Api, ApiObject, FORBIDDEN, NOT_FOUND, NOT_TAKEN, Said, UNAVAILABLE, is_id, unsendable,
};
use crate::env::Exchange;

/// Where LINE Pay is.
pub const BASE_URL: &str = "https://api-pay.line.me";
pub const SANDBOX_URL: &str = "https://sandbox-api-pay.line.me";

const PAYMENTS: &str = "v3/payments";

/// Speaks for one channel.
#[derive(Clone, Debug)]
pub struct Client {
    api: Api,
    channel: HeaderValue,
    secret: Secret,
}

impl Client {
    pub fn new(base_url: &str, channel: &str, secret: Secret, timeout: Duration) -> anyhow::Result<Self> {
        provider_api::sendable("LINE Pay", &secret)?;
        let Ok(channel) = HeaderValue::from_str(channel) else {
            bail!("LINE Pay's channel id holds characters that no id has");
        };
        let api = Api::new("LINE Pay", base_url, timeout, refused)?.hiding(secret.clone());
        Ok(Self { api, channel, secret })
    }

    /// The same, where requests do not go over the network.
    #[must_use]
    pub fn by(self, way: Option<Arc<dyn Exchange>>) -> Self {
        Self { api: self.api.by(way), ..self }
    }

    pub async fn payment(&self, transaction: &str, now: Time) -> ApiCall<ApiObject> {
        if !is_id(transaction) {
            return self.api.unsent(transaction, now);
        }
        let query = format!("transactionId={transaction}");
        let nonce = now.ms().to_string();
        let signed = authorization(&self.secret, &format!("/{PAYMENTS}"), &query, &nonce);
        let asked = [("transactionId", transaction.to_owned())];
        let request = self.api.request(Method::GET, PAYMENTS, &asked).and_then(|mut request| {
            let headers = request.headers_mut();
            headers.insert("x-line-channelid", self.channel.clone());
            headers.insert(
                "x-line-authorization-nonce",
                HeaderValue::from_str(&nonce).map_err(|_| unsendable("nonce"))?,
            );
            headers.insert("x-line-authorization", provider_api::authorization(&signed)?);
            Ok(request)
        });
        self.api.exchange(request, now, first).await
    }
}

#[derive(Deserialize)]
struct Answered {
    info: Vec<ApiObject>,
}

/// The one transaction that was asked for.
fn first(body: &[u8]) -> Option<ApiObject> {
    serde_json::from_slice::<Answered>(body).ok()?.info.into_iter().next()
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Trouble {
    return_code: Option<String>,
    return_message: Option<String>,
}

fn refused(title: &str, answer: &Answer, now: Time) -> Option<Failure> {
    let Trouble { return_code: code, return_message: message } =
        serde_json::from_slice(&answer.body).unwrap_or_default();
    let said = Said { code, message };
    if let Some(failure) = provider_api::refused(&said, title, answer, now) {
        return Some(failure);
    }
    let error = said.sentence(title, answer.status);
    match said.code.as_deref() {
        None | Some("0000") => None,
        Some("1150") => Some(Failure::terminal(NOT_FOUND, error)),
        Some("1104" | "1105" | "1106") => Some(Failure::terminal(FORBIDDEN, error)),
        Some("9000") => Some(Failure::transient(UNAVAILABLE, error).blaming_destination()),
        Some(_) => Some(Failure::terminal(NOT_TAKEN, error)),
    }
}

#[cfg(test)]
mod tests;
