//! `[[route]]`: where events go, and how patient Sekisho is with that destination.

mod keys;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use sekisho_core::Secret;
use sekisho_core::delivery::route::Send;
use sekisho_core::delivery::{self, Signer, Signing, address};
use sekisho_core::pattern::Pattern;
use sekisho_core::queue::{Retry, RetryDead, breaker};
use sekisho_core::rule::Rule;
use url::Url;

use super::secret::{resolve, resolve_all};
use super::table::{SettingKey, Table};
use keys::KEYS;

pub(super) use keys::patterns;

/// A route, checked and ready: its rules are compiled, its keys open.
#[derive(Clone)]
pub struct Route {
    pub route: delivery::Route,
    pub url: Url,
    pub timeout: Duration,
    pub concurrency: usize,
    /// Requests a second; `None` is no limit.
    pub rate: Option<u32>,
    pub retry: Retry,
    pub retry_dead: RetryDead,
    pub breaker: breaker::Policy,
    /// The destination may be a private, loopback or link-local address.
    pub allow_private: bool,
    pub signer: Arc<Signer>,
}

impl Route {
    /// The destination as it may be shown: its query may hold a token.
    pub fn shown_url(&self) -> String {
        format!("{}{}", self.url.origin().ascii_serialization(), self.url.path())
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "route {} to {} ({})", self.route.name, self.shown_url(), self.signer.kind().name())
    }
}

/// A route as written, before it is checked.
pub struct RouteDraft {
    name: Option<String>,
    url: Option<String>,
    signing: Option<Signing>,
    secrets: Vec<String>,
    events: Vec<Pattern>,
    sources: Vec<Pattern>,
    filter: Option<Rule>,
    fifo: Option<Rule>,
    send: Send,
    /// Names and references.
    headers: Vec<(String, String)>,
    timeout: Duration,
    concurrency: usize,
    rate: Option<u32>,
    retry: Retry,
    retry_dead: RetryDead,
    breaker: breaker::Policy,
    allow_private: bool,
}

impl Default for RouteDraft {
    fn default() -> Self {
        Self {
            name: None,
            url: None,
            signing: None,
            secrets: Vec::new(),
            events: Vec::new(),
            sources: Vec::new(),
            filter: None,
            fifo: None,
            send: Send::Raw,
            headers: Vec::new(),
            timeout: Duration::from_secs(30),
            concurrency: 20,
            rate: None,
            retry: Retry::default(),
            retry_dead: RetryDead::default(),
            breaker: breaker::Policy::default(),
            allow_private: false,
        }
    }
}

impl Table for RouteDraft {
    const NAME: &'static str = "route";
    const ABOUT: &'static str = "One block per destination that events are sent to.";
    const KEYS: &'static [SettingKey<Self>] = KEYS;
    type Ready = Route;

    fn finish(self, warnings: &mut Vec<String>) -> Result<Route, Vec<String>> {
        let Some(name) = self.name else {
            return Err(vec!["a route needs a name: write name = \"app\"".into()]);
        };
        let owner = format!("route {name}");
        let mut problems = Vec::new();
        let secrets = resolve_all(&owner, &self.secrets, warnings, &mut problems);
        let mut note = |problem: String| problems.push(format!("{owner}: {problem}"));
        let mut headers = Vec::new();
        for (header, written) in self.headers {
            match header_value(&header, &written) {
                Ok(value) => headers.push((header, value)),
                Err(problem) => note(problem),
            }
        }
        if self.retry.cap_ms < self.retry.first_ms {
            note("retry_cap is shorter than retry_first".into());
        }
        let url = match &self.url {
            None => Err("needs a destination: write url = \"https://app.example.com/webhooks\"".into()),
            Some(text) => destination(text, self.allow_private),
        };
        let url = url.map_err(&mut note).ok();
        let signer =
            signer(self.signing, secrets, self.secrets.len(), self.url.as_deref().unwrap_or_default());
        let signer = signer.map_err(&mut note).ok();
        let (Some(url), Some(signer), true) = (url, signer, problems.is_empty()) else {
            return Err(problems);
        };
        Ok(Route {
            route: delivery::Route {
                name,
                sources: self.sources,
                events: self.events,
                filter: self.filter,
                fifo: self.fifo,
                send: self.send,
                speaks_for: signer.kind().speaks_for(),
                headers,
            },
            url,
            timeout: self.timeout,
            concurrency: self.concurrency,
            rate: self.rate,
            retry: self.retry,
            retry_dead: self.retry_dead,
            breaker: self.breaker,
            allow_private: self.allow_private,
            signer: Arc::new(signer),
        })
    }
}

/// Checked as the HTTP client will read it: `http://0x7f.1` is 127.0.0.1 to both.
fn destination(text: &str, allow_private: bool) -> Result<Url, String> {
    let wanted = "its url is no address such as \"https://app.example.com/webhooks\"";
    let url = Url::parse(text).map_err(|error| format!("{wanted}: {error}"))?;
    let host = url.host_str().unwrap_or_default();
    if !matches!(url.scheme(), "http" | "https") || host.is_empty() {
        return Err(wanted.into());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(
            "its url holds a user name or password; write headers = [\"Authorization: env:NAME\"] instead"
                .into(),
        );
    }
    if url.fragment().is_some() {
        return Err("its url has a part after #, which is never sent; leave it out".into());
    }
    let name = host.trim_end_matches('.');
    let literal = host.trim_matches(['[', ']']).parse::<IpAddr>();
    let private = match literal {
        Ok(ip) => !address::is_public(ip),
        Err(_) => name == "localhost" || name.ends_with(".localhost"),
    };
    if private && !allow_private {
        return Err(format!(
            "{host} is not an address of the public internet; if it is meant, write allow_private = true"
        ));
    }
    Ok(url)
}

fn signer(kind: Option<Signing>, secrets: Vec<Secret>, written: usize, url: &str) -> Result<Signer, String> {
    let kind = match (kind, written) {
        (None, 0) => {
            return Err(
                "needs secrets = [\"env:NAME\"] so that the app can trust what it gets, or signing = \"none\""
                    .into(),
            );
        }
        (Some(Signing::None), 1..) => {
            return Err("has secrets but signing = \"none\"; remove one of them".into());
        }
        (Some(kind), _) => kind,
        (None, _) => Signing::StandardWebhooks,
    };
    // A secret that was not found is a problem of its own.
    if secrets.len() < written {
        return Ok(Signer::none());
    }
    Signer::open(kind, secrets, url).map_err(|error| error.to_string())
}

fn header_value(name: &str, written: &str) -> Result<Secret, String> {
    let value = resolve(written)?.text;
    HeaderValue::from_str(&value).map_err(|_| format!("the value of the header {name} can't be sent"))?;
    Ok(Secret::new(value))
}

#[cfg(test)]
mod tests;
