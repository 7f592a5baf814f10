//! What may stand in a `[[route]]`, key by key.

use std::time::Duration;

use http::HeaderName;
use sekisho_core::delivery::Signing;
use sekisho_core::delivery::route::Send;
use sekisho_core::pattern::Pattern;
use sekisho_core::rule::Rule;

use super::RouteDraft;
use crate::config::given::Given;
use crate::config::secret::resolve;
use crate::config::table::{self, SettingKey};

pub const KEYS: &[SettingKey<RouteDraft>] = &[
    SettingKey {
        name: "name",
        example: "\"app\"",
        help: "Letters, digits, - and _.",
        set: |draft, given| {
            draft.name = Some(table::name(given)?);
            Ok(())
        },
    },
    SettingKey {
        name: "url",
        example: "\"https://app.example.com/webhooks\"",
        help: "Where events are sent, by POST. Redirects are not followed. env:NAME and file:PATH work too.",
        set: |draft, given| {
            draft.url = Some(resolve(&given.text()?)?.text);
            Ok(())
        },
    },
    SettingKey {
        name: "secrets",
        example: "[\"env:APP_WEBHOOK_SECRET\"]",
        help: "What requests are signed with, shared with the app. Several while you rotate, the new one first.",
        set: |draft, given| {
            draft.secrets = given.list()?;
            Ok(())
        },
    },
    SettingKey {
        name: "signing",
        example: "\"standard-webhooks\"",
        help: "standard-webhooks, stripe (for handlers that use Stripe's library: only Stripe's events and Sekisho's own), upstash, or none.",
        set: |draft, given| {
            let wanted = || format!("expected one of {}", Signing::names());
            draft.signing = Some(Signing::parse(&given.text()?).ok_or_else(wanted)?);
            Ok(())
        },
    },
    SettingKey {
        name: "events",
        example: "[\"payment_intent.*\", \"*.refunded\"]",
        help: "Types of events it gets, with * for any characters; default: all.",
        set: |draft, given| {
            draft.events = patterns(given)?;
            Ok(())
        },
    },
    SettingKey {
        name: "sources",
        example: "[\"stripe\"]",
        help: "Names of sources it gets events of, with * for any characters; default: all. Hints only if their source is named in full.",
        set: |draft, given| {
            draft.sources = patterns(given)?;
            Ok(())
        },
    },
    SettingKey {
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
    SettingKey {
        name: "send",
        example: "\"raw\"",
        help: "raw: the provider's request, byte for byte. event: Sekisho's envelope around it. settled: what it resulted in (payment.paid, …).",
        set: |draft, given| {
            draft.send = Send::parse(&given.text()?).ok_or("expected \"raw\", \"event\" or \"settled\"")?;
            Ok(())
        },
    },
    SettingKey {
        name: "headers",
        example: "[\"X-Environment: production\"]",
        help: "Sent along with every request; a value may be env:NAME or file:PATH.",
        set: |draft, given| {
            draft.headers = given.list()?.iter().map(|line| header(line)).collect::<Result<_, _>>()?;
            Ok(())
        },
    },
    SettingKey {
        name: "timeout",
        example: "\"30s\"",
        help: "How long an answer may take, from the connection on; 1s to 15m.",
        set: |draft, given| {
            draft.timeout = between(given, Duration::from_secs(1), Duration::from_mins(15))?;
            Ok(())
        },
    },
    SettingKey {
        name: "concurrency",
        example: "20",
        help: "Requests under way at the same time; 1 to 1000.",
        set: |draft, given| {
            draft.concurrency = given.count(1, 1_000)? as usize;
            Ok(())
        },
    },
    SettingKey {
        name: "rate",
        example: "100",
        help: "Requests a second; default: no limit.",
        set: |draft, given| {
            draft.rate = Some(given.count(1, 1_000_000)? as u32);
            Ok(())
        },
    },
    SettingKey {
        name: "retries",
        example: "3",
        help: "Retries after the first attempt; then the event becomes a dead letter.",
        set: |draft, given| {
            draft.retry.retries = given.count(0, 1_000)? as u32;
            Ok(())
        },
    },
    SettingKey {
        name: "retry_first",
        example: "\"1s\"",
        help: "The wait before the first retry; it doubles each time. An app's Retry-After is honoured.",
        set: |draft, given| {
            let wait = between(given, Duration::from_millis(10), Duration::from_hours(24))?;
            draft.retry.first_ms = wait.as_millis() as i64;
            Ok(())
        },
    },
    SettingKey {
        name: "retry_cap",
        example: "\"1h\"",
        help: "The longest wait between two attempts.",
        set: |draft, given| {
            let wait = between(given, Duration::from_millis(10), Duration::from_hours(24))?;
            draft.retry.cap_ms = wait.as_millis() as i64;
            Ok(())
        },
    },
    SettingKey {
        name: "retry_dead",
        example: "\"72h\"",
        help: "How long a dead letter of a passing cause is still tried again by itself, when its destination answers again and at every retry_dead_every; \"0s\": never.",
        set: |draft, given| {
            let within = between(given, Duration::ZERO, Duration::from_hours(30 * 24))?;
            draft.retry_dead.within_ms = within.as_millis() as i64;
            Ok(())
        },
    },
    SettingKey {
        name: "retry_dead_every",
        example: "\"1h\"",
        help: "How often dead letters are tried again by themselves; 1s to 24h.",
        set: |draft, given| {
            let every = between(given, Duration::from_secs(1), Duration::from_hours(24))?;
            draft.retry_dead.every_ms = every.as_millis() as i64;
            Ok(())
        },
    },
    SettingKey {
        name: "breaker_failures",
        example: "30",
        help: "After this many failures in a row, deliveries to the destination pause for a while; 0: never.",
        set: |draft, given| {
            draft.breaker.failures = given.count(0, 1_000_000)? as u32;
            Ok(())
        },
    },
    SettingKey {
        name: "breaker_open",
        example: "\"5s\"",
        help: "How long the first pause is; each further one is twice as long, up to breaker_open_max. Then one delivery probes the destination.",
        set: |draft, given| {
            let open = between(given, Duration::from_millis(100), Duration::from_hours(1))?;
            draft.breaker.open_ms = open.as_millis() as i64;
            Ok(())
        },
    },
    SettingKey {
        name: "breaker_open_max",
        example: "\"60s\"",
        help: "The longest pause between two probes.",
        set: |draft, given| {
            let most = between(given, Duration::from_millis(100), Duration::from_hours(1))?;
            draft.breaker.open_max_ms = most.as_millis() as i64;
            Ok(())
        },
    },
    SettingKey {
        name: "fifo",
        example: "\"event.object.id\"",
        help: "A CEL expression that gives a key: events with the same key arrive in order, one at a time.",
        set: |draft, given| {
            draft.fifo = Some(rule(given)?);
            Ok(())
        },
    },
    SettingKey {
        name: "allow_private",
        example: "false",
        help: "Allow a destination inside your own network or on this machine.",
        set: |draft, given| {
            draft.allow_private = given.boolean()?;
            Ok(())
        },
    },
];

pub fn patterns(given: &Given) -> Result<Vec<Pattern>, String> {
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
