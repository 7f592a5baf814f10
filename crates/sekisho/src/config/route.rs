//! `[[route]]`: where events go, and how patient Sekisho is with that destination.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use sekisho_core::Secret;
use sekisho_core::delivery::route::Send;
use sekisho_core::delivery::{self, Signer, Signing, address};
use sekisho_core::pattern::Pattern;
use sekisho_core::queue::{Retry, breaker};
use sekisho_core::rule::Rule;
use url::Url;

use super::given::Given;
use super::secret::{resolve, resolve_all};
use super::table::{self, Key, Table};

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
pub struct Draft {
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
    breaker: breaker::Policy,
    allow_private: bool,
}

impl Default for Draft {
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
            breaker: breaker::Policy::default(),
            allow_private: false,
        }
    }
}

const KEYS: &[Key<Draft>] = &[
    Key {
        name: "name",
        example: "\"app\"",
        help: "Letters, digits, - and _.",
        set: |draft, given| {
            draft.name = Some(table::name(given)?);
            Ok(())
        },
    },
    Key {
        name: "url",
        example: "\"https://app.example.com/webhooks\"",
        help: "Where events are sent, by POST. Redirects are not followed. env:NAME and file:PATH work too.",
        set: |draft, given| {
            draft.url = Some(resolve(&given.text()?)?.text);
            Ok(())
        },
    },
    Key {
        name: "secrets",
        example: "[\"env:APP_WEBHOOK_SECRET\"]",
        help: "What requests are signed with, shared with the app. Several while you rotate, the new one first.",
        set: |draft, given| {
            draft.secrets = given.list()?;
            Ok(())
        },
    },
    Key {
        name: "signing",
        example: "\"standard-webhooks\"",
        help: "standard-webhooks, stripe (for handlers that use Stripe's library: only Stripe's events and Sekisho's own), upstash, or none.",
        set: |draft, given| {
            let wanted = || format!("expected one of {}", Signing::names());
            draft.signing = Some(Signing::parse(&given.text()?).ok_or_else(wanted)?);
            Ok(())
        },
    },
    Key {
        name: "events",
        example: "[\"payment_intent.*\", \"*.refunded\"]",
        help: "Types of events it gets, with * for any characters; default: all.",
        set: |draft, given| {
            draft.events = patterns(given)?;
            Ok(())
        },
    },
    Key {
        name: "sources",
        example: "[\"stripe\"]",
        help: "Names of sources it gets events of, with * for any characters; default: all. Hints only if their source is named in full.",
        set: |draft, given| {
            draft.sources = patterns(given)?;
            Ok(())
        },
    },
    Key {
        name: "filter",
        example: "\"event.livemode == true && body.data.object.amount > 1000\"",
        help: "Only events for which this CEL expression is true. `event` and `body` are known; has(body.x) asks for a key.",
        set: |draft, given| {
            let filter = rule(given)?;
            filter.check_condition().map_err(|error| error.to_string())?;
            draft.filter = Some(filter);
            Ok(())
        },
    },
    Key {
        name: "send",
        example: "\"raw\"",
        help: "raw: the provider's request, byte for byte. event: Sekisho's envelope around it. settled: what it resulted in (payment.paid, …).",
        set: |draft, given| {
            draft.send = Send::parse(&given.text()?).ok_or("expected \"raw\", \"event\" or \"settled\"")?;
            Ok(())
        },
    },
    Key {
        name: "headers",
        example: "[\"X-Environment: production\"]",
        help: "Sent along with every request; a value may be env:NAME or file:PATH.",
        set: |draft, given| {
            draft.headers = given.list()?.iter().map(|line| header(line)).collect::<Result<_, _>>()?;
            Ok(())
        },
    },
    Key {
        name: "timeout",
        example: "\"30s\"",
        help: "How long an answer may take, from the connection on; 1s to 15m.",
        set: |draft, given| {
            draft.timeout = between(given, Duration::from_secs(1), Duration::from_mins(15))?;
            Ok(())
        },
    },
    Key {
        name: "concurrency",
        example: "20",
        help: "Requests under way at the same time; 1 to 1000.",
        set: |draft, given| {
            draft.concurrency = given.count(1, 1_000)? as usize;
            Ok(())
        },
    },
    Key {
        name: "rate",
        example: "100",
        help: "Requests a second; default: no limit.",
        set: |draft, given| {
            draft.rate = Some(given.count(1, 1_000_000)? as u32);
            Ok(())
        },
    },
    Key {
        name: "retries",
        example: "3",
        help: "Retries after the first attempt; then the event becomes a dead letter.",
        set: |draft, given| {
            draft.retry.retries = given.count(0, 1_000)? as u32;
            Ok(())
        },
    },
    Key {
        name: "retry_first",
        example: "\"1s\"",
        help: "The wait before the first retry; it doubles each time. An app's Retry-After is honoured.",
        set: |draft, given| {
            let wait = between(given, Duration::from_millis(10), Duration::from_hours(24))?;
            draft.retry.first_ms = wait.as_millis() as i64;
            Ok(())
        },
    },
    Key {
        name: "retry_cap",
        example: "\"1h\"",
        help: "The longest wait between two attempts.",
        set: |draft, given| {
            let wait = between(given, Duration::from_millis(10), Duration::from_hours(24))?;
            draft.retry.cap_ms = wait.as_millis() as i64;
            Ok(())
        },
    },
    Key {
        name: "breaker_failures",
        example: "30",
        help: "After this many failures in a row, deliveries to the destination pause for a while; 0: never.",
        set: |draft, given| {
            draft.breaker.failures = given.count(0, 1_000_000)? as u32;
            Ok(())
        },
    },
    Key {
        name: "fifo",
        example: "\"event.object.id\"",
        help: "A CEL expression that gives a key: events with the same key arrive in order, one at a time.",
        set: |draft, given| {
            draft.fifo = Some(rule(given)?);
            Ok(())
        },
    },
    Key {
        name: "allow_private",
        example: "false",
        help: "Allow a destination inside your own network or on this machine.",
        set: |draft, given| {
            draft.allow_private = given.boolean()?;
            Ok(())
        },
    },
];

impl Table for Draft {
    const NAME: &'static str = "route";
    const ABOUT: &'static str = "One block per destination that events are sent to.";
    const KEYS: &'static [Key<Self>] = KEYS;
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
            breaker: self.breaker,
            allow_private: self.allow_private,
            signer: Arc::new(signer),
        })
    }
}

pub(super) fn patterns(given: &Given) -> Result<Vec<Pattern>, String> {
    let list = given.list()?;
    if list.iter().any(|text| text.trim().is_empty()) {
        return Err("a pattern is empty; write \"*\" for all".into());
    }
    Ok(list.into_iter().map(Pattern::new).collect())
}

fn rule(given: &Given) -> Result<Rule, String> {
    Rule::compile(&given.text()?).map_err(|error| error.to_string())
}

fn between(given: &Given, least: Duration, most: Duration) -> Result<Duration, String> {
    let duration = given.duration()?;
    if (least..=most).contains(&duration) {
        return Ok(duration);
    }
    Err(format!("expected between {} ms and {} s", least.as_millis(), most.as_secs()))
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

/// Headers that the connection or Sekisho itself writes.
const NOT_YOURS: [&str; 8] =
    ["connection", "content-length", "expect", "host", "te", "trailer", "transfer-encoding", "upgrade"];

fn header(line: &str) -> Result<(String, String), String> {
    let wanted = || "expected lines such as \"X-Api-Key: env:NAME\"".to_owned();
    let (name, value) = line.split_once(':').ok_or_else(wanted)?;
    let name = HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| wanted())?;
    if NOT_YOURS.contains(&name.as_str()) || name.as_str().starts_with("sekisho-") {
        return Err(format!("the header {name} is written by Sekisho itself"));
    }
    Ok((name.as_str().to_owned(), value.trim().to_owned()))
}

fn header_value(name: &str, written: &str) -> Result<Secret, String> {
    let value = resolve(written)?.text;
    HeaderValue::from_str(&value).map_err(|_| format!("the value of the header {name} can't be sent"))?;
    Ok(Secret::new(value))
}

#[cfg(test)]
mod tests;
