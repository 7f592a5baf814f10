//! A message to a Discord channel, by a webhook: one try, and what became of it.
//!
//! Promises: whatever stands in subject or text, nobody is mentioned and no link pretends to be another; limits are
//! Discord's own, and what does not fit ends with `…`. Discord waits until the message stands in the channel and
//! names its id. It does not know a copy when it sees one: a lost answer is uncertain.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use sekisho_core::Secret;
use sekisho_core::notification::{Message, Sent};
use serde_json::{Value, json};

use super::post::{self, Copies, Post, ServiceResponse};
use crate::env::Env;

/// What stands above, and in the list of unread messages.
const CONTENT_MAX: usize = 2000;
/// What an embed describes.
const DESCRIPTION_MAX: usize = 4096;

#[derive(Clone, Debug)]
pub struct Settings {
    /// The webhook's address, `https://discord.com/api/webhooks/…`: who has it may post.
    pub url: Secret,
    /// For a service on the operator's own network that speaks like Discord.
    pub allow_private: bool,
}

#[derive(Clone, Debug)]
pub struct Discord {
    post: Post,
}

impl Discord {
    pub fn new(settings: Settings, env: &Env) -> anyhow::Result<Self> {
        let mut url = post::address(settings.url.expose(), settings.allow_private)?;
        // Otherwise it answers before it has the message.
        url.query_pairs_mut().append_pair("wait", "true");
        let post = Post::new("Discord", Copies::Seen, &url, "application/json", settings.allow_private, env)?;
        Ok(Self { post: post.hiding_its_address() })
    }

    pub async fn send(&self, message: &Message, within: Duration) -> Sent {
        let body = Bytes::from(payload(message).to_string());
        match self.post.send(HeaderMap::new(), body, within).await {
            Ok(response) => judge(&response),
            Err(sent) => sent,
        }
    }
}

fn payload(message: &Message) -> Value {
    let text = escaped(message.text.trim(), DESCRIPTION_MAX);
    let embeds = if text.is_empty() { Vec::new() } else { vec![json!({ "description": text })] };
    json!({
        "content": escaped(post::headline(message), CONTENT_MAX),
        "embeds": embeds,
        "allowed_mentions": { "parse": [] },
    })
}

/// Takes the sense from what could mention, hide, or name a link differently. Bold and the like may stay: a `\` in
/// front of every `_` would break addresses.
fn escaped(text: &str, letters_max: usize) -> String {
    // Not even shown as if everybody had been called.
    let quiet = text.replace("@everyone", "@\u{200b}everyone").replace("@here", "@\u{200b}here");
    let pieces = quiet.chars().map(|letter| match letter {
        '\\' | '[' | '<' | '`' | '|' => Cow::Owned(format!("\\{letter}")),
        _ => Cow::Owned(letter.to_string()),
    });
    post::fit(pieces, letters_max)
}

fn judge(response: &ServiceResponse) -> Sent {
    const ANOTHER: &str = "make a new webhook in Discord and write its address here";
    match response.status() {
        200..=299 => response.accepted(response.json()["id"].as_str().map(str::to_owned)),
        401 | 403 => response.closed("bad_credentials", ANOTHER),
        404 | 405 | 410 => response.closed("channel_gone", ANOTHER),
        429 => response.busy(retry_after_ms(response)),
        _ => response.otherwise(),
    }
}

/// The body says it more exactly than the header; the longer counts.
fn retry_after_ms(response: &ServiceResponse) -> Option<i64> {
    let seconds = response.json()["retry_after"].as_f64().filter(|seconds| *seconds > 0.0);
    let exactly = seconds.map(|seconds| (seconds * 1000.0).ceil() as i64);
    exactly.max(response.retry_after_ms())
}

#[cfg(test)]
mod tests;
