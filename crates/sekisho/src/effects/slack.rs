//! A message to a Slack channel, by an incoming webhook: one try, and what became of it.
//!
//! Promises: whatever stands in subject or text, nobody is mentioned by it; limits are Slack's own, and what does
//! not fit ends with `…`. Slack does not know a copy when it sees one: a lost answer is uncertain. A message that
//! Slack can't take fails by itself; a webhook that is gone closes the channel.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use sekisho_core::Secret;
use sekisho_core::notification::{Message, Sent};
use serde_json::{Value, json};

use super::post::{self, Copies, Post, ServiceResponse};
use crate::env::Env;

/// What a header block holds.
const HEADER_MAX: usize = 150;
/// What a section holds.
const SECTION_MAX: usize = 3000;

#[derive(Clone, Debug)]
pub struct Settings {
    /// The webhook's address, `https://hooks.slack.com/services/…`: who has it may post.
    pub url: Secret,
    /// For a service on the operator's own network that speaks like Slack.
    pub allow_private: bool,
}

#[derive(Clone, Debug)]
pub struct Slack {
    post: Post,
}

impl Slack {
    pub fn new(settings: Settings, env: &Env) -> anyhow::Result<Self> {
        let url = post::address(settings.url.expose(), settings.allow_private)?;
        let post = Post::new("Slack", Copies::Seen, &url, "application/json", settings.allow_private, env)?;
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
    let title = post::fit(post::headline(message).chars().map(escaped), HEADER_MAX);
    let header = json!({ "type": "header", "text": { "type": "plain_text", "text": title } });
    let text = linked(message.text.trim(), SECTION_MAX);
    // Verbatim: Slack then makes no mentions and links of its own out of what it finds in the text.
    let section = json!({ "type": "section", "text": { "type": "mrkdwn", "text": text, "verbatim": true } });
    let blocks = if text.is_empty() { vec![header] } else { vec![header, section] };
    json!({
        "text": title,
        "blocks": blocks,
        "link_names": false,
        "unfurl_links": false,
        "unfurl_media": false,
    })
}

/// With links where there are web addresses, and nothing else that Slack could take for a command.
fn linked(text: &str, letters_max: usize) -> String {
    let mut rest = text;
    let pieces =
        std::iter::from_fn(|| {
            let letter = rest.chars().next()?;
            let link = link(rest);
            rest = &rest[link.map_or(letter.len_utf8(), str::len)..];
            Some(link.map_or_else(
                || escaped(letter),
                |link| Cow::Owned(format!("<{}>", link.replace('&', "&amp;"))),
            ))
        });
    post::fit(pieces, letters_max)
}

fn escaped(letter: char) -> Cow<'static, str> {
    match letter {
        '&' => Cow::Borrowed("&amp;"),
        '<' => Cow::Borrowed("&lt;"),
        '>' => Cow::Borrowed("&gt;"),
        letter => Cow::Owned(letter.to_string()),
    }
}

/// The web address at the beginning of this text. It ends where Slack's own link would.
fn link(text: &str) -> Option<&str> {
    let scheme = ["https://", "http://"].into_iter().find(|scheme| text.starts_with(scheme))?;
    let is_part = |letter: char| letter.is_ascii_graphic() && !"<>|\"'`".contains(letter);
    let end = text.find(|letter| !is_part(letter)).unwrap_or(text.len());
    let link = text[..end].trim_end_matches(['.', ',', ';', ':', '!', '?', ')', '*', '_', '~']);
    (link.len() > scheme.len()).then_some(link)
}

fn judge(response: &ServiceResponse) -> Sent {
    const ANOTHER: &str = "make a new webhook in Slack and write its address here";
    const ALLOW: &str = "let a Slack admin allow it, or make a new webhook and write its address here";
    match (response.status(), response.words()) {
        (200..=299, _) => response.accepted(None),
        (401 | 403, _) => response.closed("bad_credentials", ALLOW),
        // Of all that 400 may say, these name the webhook and not the message.
        (404 | 410, _) | (400, "user_not_found" | "invalid_token" | "no_service_id") => {
            response.closed("channel_gone", ANOTHER)
        }
        (_, _) => response.otherwise(),
    }
}

#[cfg(test)]
mod tests;
