//! Every key that stands in the file once: where it stands, what it means when nobody writes it, and how it is set.

mod alerts;
mod checkout;
mod defaults;
mod orders;
mod pages;
mod reconciliation;
mod telemetry;

use std::net::IpAddr;
use std::time::Duration;

use http::HeaderName;
use ipnet::IpNet;

use sekisho_core::user::Rank;
use sekisho_core::{Secret, schedule};
use sekisho_store::StoreUrl;

pub use telemetry::overlay as overlay_otel;

use super::given::Given;
use super::{Config, LogFormat, Readers};

pub struct Setting {
    pub section: &'static str,
    pub key: &'static str,
    /// As it would be written in TOML.
    pub default: &'static str,
    pub help: &'static str,
    pub set: fn(&mut Config, &Given) -> Result<(), String>,
}

impl Setting {
    /// `SEKISHO_SERVER_LISTEN`
    pub fn variable(&self) -> String {
        format!("SEKISHO_{}_{}", self.section, self.key).to_uppercase()
    }
}

/// In the order of the example file.
pub const SETTINGS: &[Setting] = &[
    Setting {
        section: "server",
        key: "listen",
        default: "\"127.0.0.1:8787\"",
        help: "Address and port. TLS ends at the proxy in front.",
        set: |config, given| {
            let wanted = "expected an address and a port such as \"127.0.0.1:8787\" or \"0.0.0.0:8787\"";
            config.server.listen = given.text()?.parse().map_err(|_| wanted)?;
            Ok(())
        },
    },
    Setting {
        section: "server",
        key: "connections_max",
        default: "10_000",
        help: "Open connections; further ones wait in the kernel's queue.",
        set: |config, given| {
            config.server.connections_max = given.count(1, 1_000_000)? as usize;
            Ok(())
        },
    },
    Setting {
        section: "server",
        key: "header_timeout",
        default: "\"10s\"",
        help: "A client that has not sent its headers by then is disconnected.",
        set: |config, given| {
            config.server.header_timeout = at_least(given.duration()?, Duration::from_millis(100))?;
            Ok(())
        },
    },
    Setting {
        section: "server",
        key: "body_timeout",
        default: "\"10s\"",
        help: "The same for the body; answered 408.",
        set: |config, given| {
            config.server.body_timeout = at_least(given.duration()?, Duration::from_millis(100))?;
            Ok(())
        },
    },
    Setting {
        section: "server",
        key: "idle_timeout",
        default: "\"75s\"",
        help: "How long a connection may stay open between two requests. Longer than a proxy in front keeps it.",
        set: |config, given| {
            config.server.idle_timeout = at_least(given.duration()?, Duration::from_millis(100))?;
            Ok(())
        },
    },
    Setting {
        section: "server",
        key: "body_bytes_max",
        default: "\"1MiB\"",
        help: "Larger bodies are answered 413.",
        set: |config, given| {
            let bytes = given.bytes()?;
            if !(1 << 10..=64 << 20).contains(&bytes) {
                return Err("expected a size between \"1KiB\" and \"64MiB\"".into());
            }
            config.server.body_bytes_max = bytes;
            Ok(())
        },
    },
    Setting {
        section: "server",
        key: "trusted_proxies",
        default: "0",
        help: "Proxies in front that append to X-Forwarded-For; 0 takes the connection's own address.",
        set: |config, given| {
            config.server.trusted_proxies = given.count(0, 16)? as usize;
            Ok(())
        },
    },
    Setting {
        section: "server",
        key: "shutdown_timeout",
        default: "\"10s\"",
        help: "How long requests under way may take to finish after SIGTERM, and then deliveries.",
        set: |config, given| {
            config.server.shutdown_timeout = given.duration()?;
            Ok(())
        },
    },
    Setting {
        section: "store",
        key: "url",
        default: "\"sqlite:./sekisho-data/sekisho.db\"",
        help: "sqlite:PATH, or postgres://user:password@host:5432/database (14 or later); env:NAME and file:PATH work too.",
        set: |config, given| {
            config.store.url = super::secret::resolve(&given.text()?)?.text.parse::<StoreUrl>()?;
            Ok(())
        },
    },
    Setting {
        section: "store",
        key: "allow_unsafe_durability",
        default: "false",
        help: "Start even if the database would lose acknowledged events in a crash. Never in production.",
        set: |config, given| {
            config.store.allow_unsafe_durability = given.boolean()?;
            Ok(())
        },
    },
    Setting {
        section: "gate",
        key: "entries",
        default: "100_000",
        help: "Event ids remembered in memory to answer repeated deliveries without a write; 0 turns it off.",
        set: |config, given| {
            config.gate.entries = given.count(0, 100_000_000)? as usize;
            Ok(())
        },
    },
    Setting {
        section: "gate",
        key: "redis",
        default: "\"\"",
        help: "Share that memory between nodes: redis://host:6379. Its loss changes nothing but speed.",
        set: |config, given| {
            let url = super::secret::resolve(&given.text()?)?.text;
            if !url.is_empty() && !url.starts_with("redis://") {
                return Err("expected an address such as \"redis://127.0.0.1:6379\"".into());
            }
            config.gate.redis = (!url.is_empty()).then(|| Secret::new(url));
            Ok(())
        },
    },
    Setting {
        section: "gate",
        key: "redis_ttl",
        default: "\"24h\"",
        help: "How long Redis remembers an event id.",
        set: |config, given| {
            config.gate.redis_ttl = at_least(given.duration()?, Duration::from_secs(1))?;
            Ok(())
        },
    },
    Setting {
        section: "admission",
        key: "deadline",
        default: "\"1500ms\"",
        help: "An event that is not durably stored by then is answered 503, so that the provider sends it again.",
        set: |config, given| {
            config.admission.deadline = at_least(given.duration()?, Duration::from_millis(50))?;
            Ok(())
        },
    },
    Setting {
        section: "admission",
        key: "waiting_max",
        default: "8_192",
        help: "Events waiting for the store; beyond that new ones are answered 503 at once.",
        set: |config, given| {
            config.admission.waiting_max = given.count(1, 1_000_000)? as usize;
            Ok(())
        },
    },
    Setting {
        section: "admission",
        key: "waiting_bytes_max",
        default: "\"64MiB\"",
        help: "The same, in bytes; at least body_bytes_max.",
        set: |config, given| {
            config.admission.waiting_bytes_max = given.bytes()?;
            Ok(())
        },
    },
    Setting {
        section: "retention",
        key: "days",
        default: "90",
        help: "How long events and their traces are stored. Providers send an event again for up to 35 days.",
        set: |config, given| {
            config.retention.days = given.count(35, 3_650).map_err(|message| {
                format!(
                    "{message}; below 35 an event that a provider sends again would be taken for a new one"
                )
            })? as u32;
            Ok(())
        },
    },
    Setting {
        section: "settlement",
        key: "order",
        default: "[\"metadata.order_id\", \"custom_id\", \"invoice_id\", \"external_order_num\", \"reference_id\", \"orderId\"]",
        help: "Where the provider's objects carry your order's reference; the first that is there counts.",
        set: |config, given| {
            config.references.order = given.list()?;
            Ok(())
        },
    },
    Setting {
        section: "settlement",
        key: "order_if_posted",
        default: "[\"client_reference_id\"]",
        help: "The same, where it may also be a customer's id: it counts only for orders that your app posted.",
        set: |config, given| {
            config.references.order_if_posted = given.list()?;
            Ok(())
        },
    },
    Setting {
        section: "settlement",
        key: "tenant",
        default: "[\"metadata.tenant_id\", \"metadata.tenant\"]",
        help: "The same for your tenant (office, shop) whose money it is.",
        set: |config, given| {
            config.references.tenant = given.list()?;
            Ok(())
        },
    },
    Setting {
        section: "settlement",
        key: "customer",
        default: "[\"metadata.customer_id\", \"metadata.customer\"]",
        help: "The same for your customer.",
        set: |config, given| {
            config.references.customer = given.list()?;
            Ok(())
        },
    },
    Setting {
        section: "settlement",
        key: "purpose",
        default: "[\"metadata.purpose\"]",
        help: "The same for what it is for. \"balance\" credits the customer's balance.",
        set: |config, given| {
            config.references.purpose = given.list()?;
            Ok(())
        },
    },
    Setting {
        section: "settlement",
        key: "grace",
        default: "\"72h\"",
        help: "How long a tenant keeps access beyond what was paid while no word of a renewal or an end has come.",
        set: |config, given| {
            config.grace = given.duration()?;
            Ok(())
        },
    },
    Setting {
        section: "refunds",
        key: "automatic_per_hour",
        default: "30",
        help: "Refunds that rules may order within an hour, over all nodes; more wait until a person releases them.",
        set: |config, given| {
            config.automatic_refunds_per_hour = given.count(0, 1_000_000)? as usize;
            Ok(())
        },
    },
    orders::HOLD,
    orders::GRACE,
    orders::DELAYED_MAX,
    orders::CANCEL_UNTIL,
    orders::LATE_PAYMENT,
    orders::QUANTITY_MAX,
    orders::PROBE,
    orders::PROBE_EVERY,
    orders::ATTEMPTS,
    orders::TIMEOUT,
    orders::RETRY_WAIT,
    orders::KEEP_AFTER_REFUND,
    orders::CHAT,
    orders::MAIL,
    orders::PAGER,
    checkout::SOURCE,
    checkout::RETRIES,
    checkout::METHODS,
    pages::URL,
    pages::SECRETS,
    pages::LINKS,
    pages::INQUIRIES,
    pages::DATE_WORD,
    pages::DATE_WORD_EN,
    pages::ACCENT,
    reconciliation::EVERY,
    reconciliation::OVERLAP,
    reconciliation::GRACE,
    reconciliation::EVENTS,
    Setting {
        section: "notifications",
        key: "language",
        default: "\"ja\"",
        help: "The default language of recipients: ja or en.",
        set: |config, given| {
            let wanted = "expected \"ja\" or \"en\"";
            config.notifications.house.language = given.text()?.parse().map_err(|_| wanted)?;
            Ok(())
        },
    },
    Setting {
        section: "notifications",
        key: "time_zone",
        default: "\"Asia/Tokyo\"",
        help: "The time zone of times in messages, and of reminders to tenants without one.",
        set: |config, given| {
            let zone = given.text()?;
            schedule::zone(&zone)?;
            config.notifications.house.time_zone = zone;
            Ok(())
        },
    },
    Setting {
        section: "notifications",
        key: "brand",
        default: "\"\"",
        help: "The sender's name: your shop or service, as customers know it; default: the mail's sender.",
        set: |config, given| {
            config.notifications.house.brand.name = given.text()?;
            Ok(())
        },
    },
    Setting {
        section: "notifications",
        key: "brand_url",
        default: "\"\"",
        help: "Its address on the web.",
        set: |config, given| {
            config.notifications.house.brand.url = link(given)?;
            Ok(())
        },
    },
    Setting {
        section: "notifications",
        key: "support",
        default: "\"\"",
        help: "Where customers turn to: a mail address, or the address of a page.",
        set: |config, given| {
            config.notifications.house.brand.support = Some(given.text()?).filter(|text| !text.is_empty());
            Ok(())
        },
    },
    Setting {
        section: "notifications",
        key: "operators",
        default: "[]",
        help: "Mail addresses of those who run this.",
        set: |config, given| {
            let each = given.list()?.into_iter().map(|text| {
                text.parse().map_err(|_| {
                    format!("{text:?} is no mail address; expected one such as \"ops@example.jp\"")
                })
            });
            config.notifications.house.operators = each.collect::<Result<_, _>>()?;
            Ok(())
        },
    },
    Setting {
        section: "notifications",
        key: "templates",
        default: "\"\"",
        help: "A folder with templates of your own; `sekisho templates export DIR` writes one to begin with.",
        set: |config, given| {
            config.notifications.templates =
                Some(given.text()?).filter(|text| !text.is_empty()).map(Into::into);
            Ok(())
        },
    },
    Setting {
        section: "notifications",
        key: "alerts",
        default: "\"\"",
        help: "The [[channel]] for alerts to operators; without one nobody hears of dead letters, silent sources or paused channels.",
        set: |config, given| {
            config.notifications.alerts = Some(given.text()?).filter(|text| !text.is_empty());
            Ok(())
        },
    },
    Setting {
        section: "notifications",
        key: "reminders",
        default: "\"\"",
        help: "The [[channel]] for daily reminders of deadlines to staff; default: none are sent.",
        set: |config, given| {
            config.notifications.reminders = Some(given.text()?).filter(|text| !text.is_empty());
            Ok(())
        },
    },
    Setting {
        section: "notifications",
        key: "customers",
        default: "\"\"",
        help: "The mail [[channel]] by which customers hear of their orders: confirmed, expired, cancelled, not made, refunded; default: they hear nothing.",
        set: |config, given| {
            config.notifications.customers = Some(given.text()?).filter(|text| !text.is_empty());
            Ok(())
        },
    },
    Setting {
        section: "notifications",
        key: "remind_at",
        default: "\"09:00\"",
        help: "When, on the clock of each tenant; on a quarter of an hour.",
        set: |config, given| {
            config.notifications.remind_at = quarter(&given.text()?)?;
            Ok(())
        },
    },
    Setting {
        section: "notifications",
        key: "hourly_per_customer",
        default: "10",
        help: "Mails to one customer's address within an hour; what is over that is held back, and can be resent. 0 is no limit.",
        set: |config, given| {
            config.notifications.hourly_per_customer = given.count(0, 1_000)? as u32;
            Ok(())
        },
    },
    Setting {
        section: "notifications",
        key: "dashboard_url",
        default: "\"\"",
        help: "Where a reminder leads; {tenant} stands for the office: https://app.example.jp/offices/{tenant}",
        set: |config, given| {
            config.notifications.dashboard_url = link(given)?;
            Ok(())
        },
    },
    Setting {
        section: "console",
        key: "url",
        default: "\"\"",
        help: "Where browsers find the console, if a proxy is in front: https://sekisho.example.jp",
        set: |config, given| {
            config.console.url = link(given)?.map(|url| url.trim_end_matches('/').to_owned());
            Ok(())
        },
    },
    Setting {
        section: "console",
        key: "user_header",
        default: "\"\"",
        help: "The header in which an authenticating proxy names the user, such as \"Remote-User\". It must remove what clients send under that name.",
        set: |config, given| {
            config.console.user_header = header(given)?;
            Ok(())
        },
    },
    Setting {
        section: "console",
        key: "rank_header",
        default: "\"\"",
        help: "The same for what they may do: viewer, operator or admin.",
        set: |config, given| {
            config.console.rank_header = header(given)?;
            Ok(())
        },
    },
    Setting {
        section: "console",
        key: "rank",
        default: "\"viewer\"",
        help: "The role of users for whom that proxy sends only the name.",
        set: |config, given| {
            let wanted = "expected \"viewer\", \"operator\" or \"admin\"";
            config.console.rank = Rank::parse(&given.text()?).ok_or(wanted)?;
            Ok(())
        },
    },
    Setting {
        section: "console",
        key: "proxies",
        default: "[\"127.0.0.1/32\", \"::1/128\"]",
        help: "Addresses of that proxy; the header is ignored from any other.",
        set: |config, given| {
            let each = given.list()?.into_iter().map(|text| {
                let wanted = || format!("{text:?} is no network; expected one such as \"10.0.0.0/8\"");
                text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).map_err(|_| wanted())
            });
            config.console.proxies = each.collect::<Result<_, _>>()?;
            Ok(())
        },
    },
    Setting {
        section: "telemetry",
        key: "metrics",
        default: "\"private\"",
        help: "Who may read /metrics without a key: private (this machine and private addresses), open (anyone) or off (no one, not even with a key).",
        set: |config, given| {
            config.metrics = match given.text()?.as_str() {
                "private" => Readers::Private,
                "open" => Readers::Everybody,
                "off" => Readers::Nobody,
                _ => return Err("expected \"private\", \"open\" or \"off\"".into()),
            };
            Ok(())
        },
    },
    telemetry::OTLP,
    telemetry::OTLP_HEADERS,
    telemetry::SAMPLE,
    telemetry::SERVICE,
    telemetry::TRACE_URL,
    telemetry::SENTRY_DSN,
    alerts::EVERY,
    alerts::OFF,
    alerts::DIVISOR,
    alerts::PUBLISH_FAILURES,
    alerts::WORKER_ERRORS,
    alerts::DEAD_LETTERS,
    alerts::DEAD_LETTERS_OLD,
    alerts::SLOW,
    alerts::REJECTIONS,
    alerts::WRONG_SECRET,
    alerts::UNUSUAL,
    alerts::SILENT,
    alerts::RECONCILIATION,
    alerts::MAIL_FAILURES,
    alerts::LATE,
    alerts::STALLED,
    alerts::DESTINATION_DOWN,
    alerts::PUBLISH,
    alerts::WORKER,
    alerts::RETRY,
    alerts::NEW_DEAD_LETTERS,
    alerts::MAIL,
    Setting {
        section: "log",
        key: "format",
        default: "\"auto\"",
        help: "pretty, json, or auto: pretty on a terminal, JSON elsewhere.",
        set: |config, given| {
            config.log.format = match given.text()?.as_str() {
                "auto" => LogFormat::Auto,
                "pretty" => LogFormat::Pretty,
                "json" => LogFormat::Json,
                _ => return Err("expected \"auto\", \"pretty\" or \"json\"".into()),
            };
            Ok(())
        },
    },
    Setting {
        section: "log",
        key: "level",
        default: "\"info\"",
        help: "error, warn, info, debug or trace.",
        set: |config, given| {
            let wanted = "expected \"error\", \"warn\", \"info\", \"debug\" or \"trace\"";
            config.log.level = given.text()?.parse().map_err(|_| wanted)?;
            Ok(())
        },
    },
    telemetry::LOG_EVENTS,
];

/// Where a reader is led; nothing but the web.
fn link(given: &Given) -> Result<Option<String>, String> {
    let text = given.text()?;
    if text.is_empty() {
        return Ok(None);
    }
    let is_web = text.starts_with("https://") || text.starts_with("http://");
    if !is_web || text.contains(|letter: char| letter.is_whitespace() || letter.is_control()) {
        return Err("expected an address such as \"https://app.example.jp\"".into());
    }
    Ok(Some(text))
}

fn header(given: &Given) -> Result<Option<HeaderName>, String> {
    let text = given.text()?;
    let wanted = "expected the name of a header such as \"Remote-User\"";
    Some(text)
        .filter(|text| !text.is_empty())
        .map(|text| text.parse().map_err(|_| wanted.to_owned()))
        .transpose()
}

/// Minutes since midnight.
fn quarter(text: &str) -> Result<i64, String> {
    let wanted = || "expected a time on a quarter of an hour such as \"09:00\" or \"17:45\"".to_owned();
    let (hour, minute) = text.split_once(':').ok_or_else(wanted)?;
    let two = |text: &str| Some(text).filter(|text| text.len() == 2)?.parse::<i64>().ok();
    let (hour, minute) = two(hour).zip(two(minute)).ok_or_else(wanted)?;
    if !(0..24).contains(&hour) || !(0..60).contains(&minute) || minute % 15 != 0 {
        return Err(wanted());
    }
    Ok(hour * 60 + minute)
}

fn at_least(duration: Duration, least: Duration) -> Result<Duration, String> {
    if duration < least { Err(format!("expected at least {} ms", least.as_millis())) } else { Ok(duration) }
}
