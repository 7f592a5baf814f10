//! An incident for whoever is on call, by PagerDuty's Events API v2: one try, and what became of it.
//!
//! Promises: the incident has the message's key, by which PagerDuty folds what is told again into the incident that
//! is open; a message that closes the incident of its key resolves it. So a lost answer is not uncertain: it is just tried again. Limits are PagerDuty's own, and what does not
//! fit ends with `…` or is left out and says so.

use std::time::Duration;

use anyhow::bail;
use bytes::Bytes;
use http::HeaderMap;
use sekisho_core::Secret;
use sekisho_core::notification::{Message, Sent};
use serde_json::{Value, json};

use super::post::{self, Copies, Post, ServiceResponse};
use crate::env::Env;
use crate::token;

/// Where PagerDuty is. Accounts in Europe have `https://events.eu.pagerduty.com`.
pub const BASE_URL: &str = "https://events.pagerduty.com";

const DEDUP_KEY_MAX: usize = 255;
const SUMMARY_MAX: usize = 1024;
/// More than anybody reads at three in the morning.
const TEXT_MAX: usize = 10_000;
/// Largest event that PagerDuty takes.
const EVENT_BYTES_MAX: usize = 512 << 10;

#[derive(Clone, Debug)]
pub struct Settings {
    /// Without `/v2/enqueue`, such as [`BASE_URL`].
    pub url: String,
    /// The integration key of a service's Events API v2 integration.
    pub routing_key: Secret,
    /// For a service on the operator's own network that speaks like PagerDuty.
    pub allow_private: bool,
}

#[derive(Clone, Debug)]
pub struct PagerDuty {
    post: Post,
    routing_key: Secret,
}

impl PagerDuty {
    pub fn new(settings: Settings, env: &Env) -> anyhow::Result<Self> {
        if settings.routing_key.expose().is_empty() {
            bail!(
                "PagerDuty's routing key is empty; write the integration key of an Events API v2 integration"
            );
        }
        let base = post::address(&settings.url, settings.allow_private)?;
        let url = post::below(&base, "/v2/enqueue")?;
        let post =
            Post::new("PagerDuty", Copies::Folded, &url, "application/json", settings.allow_private, env)?;
        Ok(Self { post: post.hiding(settings.routing_key.clone()), routing_key: settings.routing_key })
    }

    pub async fn send(&self, message: &Message, within: Duration) -> Sent {
        let key = dedup_key(&message.key);
        let body = Bytes::from(self.event(message, &key));
        match self.post.send(HeaderMap::new(), body, within).await {
            Ok(response) => judge(&response, key),
            Err(sent) => sent,
        }
    }

    fn event(&self, message: &Message, key: &str) -> String {
        if message.closes {
            let routing_key = self.routing_key.expose();
            return json!({ "routing_key": routing_key, "event_action": "resolve", "dedup_key": key })
                .to_string();
        }
        let whole = self.event_with(message, key, &message.data);
        if whole.len() <= EVENT_BYTES_MAX {
            return whole;
        }
        self.event_with(message, key, &json!("left out: too large for PagerDuty"))
    }

    fn event_with(&self, message: &Message, key: &str, data: &Value) -> String {
        let event = json!({
            "routing_key": self.routing_key.expose(),
            "event_action": "trigger",
            "dedup_key": key,
            "payload": {
                "summary": post::cut(post::headline(message), SUMMARY_MAX),
                "source": "sekisho",
                "severity": "critical",
                "custom_details": {
                    "id": message.id,
                    "template": message.template,
                    "text": post::cut(&message.text, TEXT_MAX),
                    "data": data,
                },
            },
        });
        event.to_string()
    }
}

/// The same for the same key, whatever its length.
fn dedup_key(key: &str) -> String {
    if key.encode_utf16().count() <= DEDUP_KEY_MAX {
        return key.to_owned();
    }
    format!("sha256:{}", token::hash(key))
}

fn judge(response: &ServiceResponse, key: String) -> Sent {
    const KEY: &str = "write the integration key of a service's Events API v2 integration";
    match response.status() {
        200..=299 => response.accepted(Some(key)),
        401 | 403 => response.closed("bad_credentials", KEY),
        404 => response.closed("channel_gone", "write PagerDuty's base URL without a path"),
        _ => response.otherwise(),
    }
}

#[cfg(test)]
mod tests;
