//! A message to a program of the operator's own, as signed JSON: one try, and what became of it.
//!
//! Promises: signed by Standard Webhooks, with the message's id as `webhook-id`, which is the same on every try.
//! The receiver tells copies by it, so a lost answer is not uncertain: it is just tried again. Answers mean what
//! they mean of deliveries ([`sekisho_core::delivery::judge`]).

use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use sekisho_core::Secret;
use sekisho_core::delivery::{self, Signer, Signing};
use sekisho_core::notification::{Message, Sent};
use sekisho_core::traceparent::TRACEPARENT;
use serde_json::{Value, json};

use super::http as exchange;
use super::post::{Copies, Post, ServiceResponse};
use crate::env::Env;

#[derive(Clone, Debug)]
pub struct Settings {
    pub url: String,
    /// The first signs; others sign too, so that the receiver can rotate. `whsec_…`.
    pub secrets: Vec<Secret>,
    /// For a receiver on the operator's own network.
    pub allow_private: bool,
}

#[derive(Debug)]
pub struct Webhook {
    post: Post,
    signer: Signer,
}

impl Webhook {
    pub fn new(settings: Settings, env: &Env) -> anyhow::Result<Self> {
        let url = exchange::callable(&settings.url)?;
        let post =
            Post::new("the receiver", Copies::Folded, &url, "application/json", settings.allow_private, env)?;
        let signer = Signer::open(Signing::StandardWebhooks, settings.secrets, &settings.url)
            .context("a webhook channel signs what it sends; write a secret such as whsec_…")?;
        Ok(Self { post, signer })
    }

    pub async fn send(&self, message: &Message, within: Duration) -> Sent {
        let body = Bytes::from(payload(message).to_string());
        let signed = self.signer.sign(&message.id, &body, self.post.wall());
        let trace = message.trace.clone().map(|trace| (TRACEPARENT.to_owned(), trace));
        let sent = headers(signed.into_iter().chain(trace));
        match self.post.send(sent, body, within).await {
            Ok(response) => judge(&response),
            Err(sent) => sent,
        }
    }
}

fn payload(message: &Message) -> Value {
    let mut payload = json!({
        "id": message.id,
        "key": message.key,
        "closes": message.closes,
        "template": message.template,
        "language": message.language.name(),
        "subject": message.subject,
        "text": message.text,
        "data": message.data,
    });
    if let Some(to) = &message.to {
        payload["to"] = json!({ "address": to.address.whole(), "name": to.name });
    }
    payload
}

fn headers(pairs: impl Iterator<Item = (String, String)>) -> HeaderMap {
    let sendable = |(name, value): (String, String)| {
        Some((name.parse::<HeaderName>().ok()?, value.parse::<HeaderValue>().ok()?))
    };
    pairs.filter_map(sendable).collect()
}

fn judge(response: &ServiceResponse) -> Sent {
    match delivery::judge(&Ok(response.answer.clone()), response.at) {
        Ok(()) => response.accepted(None),
        Err(failure) => Sent::Failed(failure),
    }
}

#[cfg(test)]
mod tests;
