//! What Sentry is told, as envelopes: an error of this program, or a message of a channel. One try, and what became of it.
//!
//! Promises: what [`super::post`] promises of every message, and that the key is in no error. A message's event has an id made
//! of the message's key, and Sentry keeps the first of an id: so a lost answer is not uncertain, it is just tried again.

use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use sekisho_core::notification::{Message, Sent};
use sekisho_core::{Secret, Time};
use serde_json::{Value, json};
use url::Url;

use super::http as exchange;
use super::post::{self, Copies, Post, ServiceResponse};
use crate::env::Env;
use crate::token;

const AUTH: HeaderName = HeaderName::from_static("x-sentry-auth");
const CLIENT: &str = concat!("sekisho/", env!("CARGO_PKG_VERSION"));
const SUMMARY_MAX: usize = 1_000;
const TEXT_MAX: usize = 8_000;
/// Where it asks for quiet and does not say how long.
const QUIET: Duration = Duration::from_mins(1);
/// And the longest that is believed.
const QUIET_MAX: Duration = Duration::from_hours(1);

/// Where a project of Sentry is, and the key to it: `https://KEY@o1.ingest.sentry.io/42`.
#[derive(Clone)]
pub struct Dsn {
    /// Without key and project.
    base: Url,
    project: String,
    key: Secret,
}

impl std::fmt::Debug for Dsn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Dsn({})", self.base.host_str().unwrap_or_default())
    }
}

impl Dsn {
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let mut base = Url::parse(text.trim()).context("this is no DSN")?;
        let key = base.username().to_owned();
        let (before, project) = base.path().trim_end_matches('/').rsplit_once('/').unwrap_or_default();
        let (before, project) = (before.to_owned(), project.to_owned());
        let is_web = matches!(base.scheme(), "http" | "https") && base.host_str().is_some();
        if !is_web || key.is_empty() || project.is_empty() || base.query().is_some() {
            bail!("expected a DSN such as https://KEY@o1.ingest.sentry.io/42");
        }
        let stripped = base.set_username("").and_then(|()| base.set_password(None));
        stripped.map_err(|()| anyhow::anyhow!("this DSN can't be used"))?;
        base.set_path(&before);
        Ok(Self { base, project, key: Secret::new(key) })
    }

    /// Where spans are taken by OTLP.
    pub fn otlp_url(&self) -> anyhow::Result<String> {
        self.url("integration/otlp/v1/traces").map(Into::into)
    }

    /// What goes with them.
    pub fn otlp_auth(&self) -> (HeaderName, Secret) {
        (AUTH, Secret::new(format!("sentry sentry_key={}", self.key.expose())))
    }

    fn url(&self, path: &str) -> anyhow::Result<Url> {
        post::below(&self.base, &format!("/api/{}/{path}", self.project))
    }
}

/// An error of this program.
#[derive(Clone, Debug)]
pub struct ErrorReport {
    /// 32 hex digits.
    pub id: String,
    pub at: Time,
    pub message: String,
    pub error: Option<String>,
    pub tags: Vec<(&'static str, String)>,
    pub trace: Option<String>,
    pub fingerprint: Vec<String>,
}

/// What became of it.
#[derive(Debug, PartialEq, Eq)]
pub enum Reported {
    Taken,
    /// It does not want this one.
    Refused,
    /// It wants nothing for so long.
    Closed(Duration),
    Unanswered,
}

#[derive(Clone, Debug)]
pub struct Settings {
    pub dsn: Dsn,
    /// For a Sentry on the operator's own network.
    pub allow_private: bool,
}

#[derive(Clone, Debug)]
pub struct Sentry {
    post: Post,
    auth: HeaderValue,
}

impl Sentry {
    pub fn new(settings: &Settings, env: &Env) -> anyhow::Result<Self> {
        let Settings { dsn, allow_private } = settings;
        let url = dsn.url("envelope/")?;
        let url = post::address(exchange::callable(url.as_str())?.as_str(), *allow_private)?;
        let kind = "application/x-sentry-envelope";
        let post = Post::new("Sentry", Copies::Folded, &url, kind, *allow_private, env)?;
        let auth =
            format!("Sentry sentry_version=7, sentry_client={CLIENT}, sentry_key={}", dsn.key.expose());
        let mut auth = HeaderValue::from_str(&auth).context("the key of the DSN can't be sent")?;
        auth.set_sensitive(true);
        Ok(Self { post: post.hiding(dsn.key.clone()), auth })
    }

    /// A message of a channel, as an issue.
    pub async fn send(&self, message: &Message, within: Duration) -> Sent {
        let id = event_id(&message.key);
        match self
            .post
            .send(self.headers(), envelope(&id, &told(message, &id, self.post.wall())), within)
            .await
        {
            Ok(response) => judge(&response, id),
            Err(sent) => sent,
        }
    }

    /// An error of this program.
    pub async fn report(&self, report: &ErrorReport, within: Duration) -> Reported {
        match self.post.send(self.headers(), envelope(&report.id, &failed(report)), within).await {
            Err(_) => Reported::Unanswered,
            Ok(response) => match (quiet(&response), response.status()) {
                (Some(pause), _) => Reported::Closed(pause),
                (None, 200..=299) => Reported::Taken,
                (None, 429 | 500..) => Reported::Closed(QUIET),
                (None, _) => Reported::Refused,
            },
        }
    }

    fn headers(&self) -> HeaderMap {
        HeaderMap::from_iter([(AUTH, self.auth.clone())])
    }
}

/// The same for the same key: Sentry keeps the first.
fn event_id(key: &str) -> String {
    let mut hash = token::hash(key);
    hash.truncate(32);
    hash
}

/// A head, and one item with its length before it.
fn envelope(id: &str, event: &Value) -> Bytes {
    let (head, event) = (json!({ "event_id": id }), event.to_string());
    let item = json!({ "type": "event", "content_type": "application/json", "length": event.len() });
    Bytes::from(format!("{head}\n{item}\n{event}\n"))
}

fn told(message: &Message, id: &str, at: Time) -> Value {
    json!({
        "event_id": id,
        "timestamp": at.to_string(),
        "platform": "other",
        "level": "error",
        "logger": "sekisho.notice",
        "message": { "formatted": post::cut(post::headline(message), SUMMARY_MAX) },
        "tags": { "template": message.template },
        "extra": { "text": post::cut(&message.text, TEXT_MAX), "notice": message.id, "key": message.key },
        "fingerprint": [message.key],
    })
}

fn failed(report: &ErrorReport) -> Value {
    let tags: serde_json::Map<_, _> =
        report.tags.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    let mut event = json!({
        "event_id": report.id,
        "timestamp": report.at.to_string(),
        "platform": "other",
        "level": "error",
        "logger": "sekisho",
        "release": concat!("sekisho@", env!("CARGO_PKG_VERSION")),
        "message": { "formatted": post::cut(&report.message, SUMMARY_MAX) },
        "tags": tags,
        "fingerprint": report.fingerprint,
    });
    if let Some(error) = &report.error {
        event["extra"] = json!({ "error": post::cut(error, TEXT_MAX) });
    }
    if let Some(trace) = &report.trace {
        // It wants a span, too; which one is not known of a line.
        event["contexts"] =
            json!({ "trace": { "trace_id": trace, "span_id": &trace[trace.len().min(16)..] } });
    }
    event
}

/// How long it wants no errors, if it says so: `60:error;transaction:key, 2700:default:organization`, where no category is all.
fn quiet(response: &ServiceResponse) -> Option<Duration> {
    let of_errors = |group: &str| {
        let mut parts = group.trim().split(':');
        let seconds: f64 = parts.next()?.parse().ok()?;
        let categories = parts.next().unwrap_or_default();
        let is_ours =
            categories.is_empty() || categories.split(';').any(|one| matches!(one, "error" | "default"));
        is_ours.then(|| Duration::try_from_secs_f64(seconds).unwrap_or(QUIET_MAX))
    };
    let limits = response.answer.header("x-sentry-rate-limits").unwrap_or_default();
    let pause = limits.split(',').filter_map(of_errors).max();
    let busy = || {
        let after = response.retry_after_ms().map(|ms| Duration::from_millis(ms.unsigned_abs()));
        (response.status() == 429).then(|| after.unwrap_or(QUIET))
    };
    pause.or_else(busy).map(|pause| pause.min(QUIET_MAX))
}

fn judge(response: &ServiceResponse, id: String) -> Sent {
    match response.status() {
        200..=299 => response.accepted(Some(id)),
        401 | 403 => response.closed("bad_credentials", "write the DSN of a project that is there"),
        404 => response.closed("channel_gone", "write the DSN of a project that is there"),
        429 => response.busy(quiet(response).map(|pause| pause.as_millis() as i64)),
        _ => response.otherwise(),
    }
}

#[cfg(test)]
mod tests;
