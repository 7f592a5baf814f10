//! What the operator wants: one `sekisho.toml`, environment variables over it, secrets by reference.
//!
//! Every key is a line in [`settings`] or in the file of its block ([`source`], [`route`], [`channel`], [`notify`],
//! [`schedule`], [`key`]), with its default, its help and its setter; the example file, the environment overrides and the checks all come from
//! those lines, so they can't drift apart. Anything unknown or senseless is refused at start, with file, line and what
//! to write instead.

mod channel;
mod compensation;
mod given;
mod key;
mod load;
mod notify;
pub mod overrides;
mod reference;
mod route;
mod schedule;
mod secret;
mod settings;
mod source;
mod table;
mod telemetry;
mod told;
mod whole;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use http::HeaderName;
use ipnet::IpNet;
use sekisho_core::Secret;
use sekisho_core::alert::AlertPolicy;
use sekisho_core::link::LinkKeys;
use sekisho_core::mail_address::MailAddress;
use sekisho_core::notification::template::Templates;
use sekisho_core::notification::{House, NotifyRule, To};
use sekisho_core::pattern::Pattern;
use sekisho_core::reconcile;
use sekisho_core::settlement::checkout::{CheckoutPolicy, CheckoutSource};
use sekisho_core::settlement::follow::{LinkPolicy, OrderPolicy};
use sekisho_core::settlement::{self, References, refund};
use sekisho_core::source_name::{OWN, Origin};
use sekisho_core::target::TargetPolicy;
use sekisho_core::time::DAY_MS;
use sekisho_core::user::Rank;

use crate::effects::mail::Mailbox;

pub use crate::effects::channel::ChannelKind;
pub use channel::Channel;
pub use key::{Key, SCOPES, Scope};
pub use load::{ConfigProblem, Glance, LoadedConfig, glance, load, load_sources};
pub use reference::{example, markdown};
pub use route::Route;
pub use schedule::Schedule;
pub use secret::resolve;
pub use sekisho_store::StoreUrl;
pub use source::{Api, Source, UnusableBody};
pub use telemetry::Telemetry;

/// Where the configuration is looked for when none is named.
pub const FILE: &str = "sekisho.toml";

#[derive(Debug)]
pub struct Config {
    pub server: Server,
    pub store: Store,
    pub gate: Gate,
    pub admission: Admission,
    pub retention: Retention,
    /// Where events say what they are for.
    pub references: References,
    /// How long access lasts beyond what was paid.
    pub grace: Duration,
    /// Refunds that rules may order in an hour, over all nodes; more wait for a person.
    pub automatic_refunds_per_hour: usize,
    /// How orders are decided; who may refund comes in by [`Config::orders`].
    pub orders: OrderPolicy,
    pub reservations: Reservations,
    pub pages: Pages,
    pub escalation: Escalation,
    /// How what providers list is compared with what came.
    pub reconcile: reconcile::ReconcilePolicy,
    pub notifications: Notifications,
    /// The shipped ones, and the user's own over them.
    pub templates: Templates,
    pub console: Console,
    /// Who may read the figures without a key.
    pub metrics: Readers,
    pub telemetry: Telemetry,
    /// When operators are called.
    pub alerts: AlertPolicy,
    /// What is to be reached.
    pub targets: TargetPolicy,
    pub log: Log,
    pub sources: Vec<Source>,
    pub routes: Vec<Route>,
    pub channels: Vec<Channel>,
    pub rules: Vec<NotifyRule>,
    pub schedules: Vec<Schedule>,
    pub keys: Vec<Key>,
}

/// By which channels cases are told, where there are channels of these names.
#[derive(Clone, Debug)]
pub struct Escalation {
    pub chat: String,
    pub mail: String,
    pub pager: String,
}

/// What a request for places may ask for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reservations {
    /// How long a hold lasts if nothing else is said.
    pub hold_ms: i64,
    pub quantity_max: u32,
    /// Whether it is tried, again and again, that places can be held.
    pub probe: bool,
    pub probe_every: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    pub listen: SocketAddr,
    pub connections_max: usize,
    pub header_timeout: Duration,
    pub body_timeout: Duration,
    pub idle_timeout: Duration,
    pub body_bytes_max: usize,
    pub trusted_proxies: usize,
    pub shutdown_timeout: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    pub url: StoreUrl,
    pub allow_unsafe_durability: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    pub entries: usize,
    /// The address may hold a password.
    pub redis: Option<Secret>,
    pub redis_ttl: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission {
    pub deadline: Duration,
    pub waiting_max: usize,
    pub waiting_bytes_max: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    pub days: u32,
}

impl Retention {
    pub fn kept_ms(self) -> i64 {
        i64::from(self.days) * DAY_MS
    }
}

/// What holds for everything that is told.
#[derive(Clone, Debug)]
pub struct Notifications {
    pub house: House,
    /// The folder of the user's own templates.
    pub templates: Option<PathBuf>,
    /// The channel that operators hear of trouble by.
    pub alerts: Option<String>,
    /// The channel that staff are reminded by.
    pub reminders: Option<String>,
    /// The channel that customers hear of their orders by.
    pub customers: Option<String>,
    /// When, on the clock of each tenant: minutes since midnight.
    pub remind_at: i64,
    /// Mails to one customer within an hour; 0 is no limit.
    pub hourly_per_customer: u32,
    /// `{tenant}` stands for the office.
    pub dashboard_url: Option<String>,
}

/// The pages on which customers see their orders.
#[derive(Clone, Debug)]
pub struct Pages {
    /// Where customers find them; `None` is nowhere.
    pub url: Option<String>,
    /// What links are signed with; if empty, with a key that is kept in the store.
    pub secrets: Vec<Secret>,
    pub links: Duration,
    /// How long what customers ask is kept.
    pub inquiries: Duration,
    /// What the pages call the day that an order is for.
    pub date_word: String,
    pub date_word_en: String,
    /// `#rrggbb`.
    pub accent: String,
}

/// The web pages for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Console {
    /// Where people find it, if not at the address it listens on.
    pub url: Option<String>,
    /// In which header a proxy says who somebody is, and as what they come in.
    pub user_header: Option<HeaderName>,
    pub rank_header: Option<HeaderName>,
    /// What somebody may do of whom the proxy says only the name.
    pub rank: Rank,
    /// From where such headers are believed.
    pub proxies: Vec<IpNet>,
}

impl Console {
    /// Whether browsers come by TLS, so that cookies are for TLS alone.
    pub fn is_secure(&self) -> bool {
        self.url.as_ref().is_some_and(|url| url.starts_with("https://"))
    }
}

/// Who may read `/metrics` without a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// This machine and its private network; others need a key.
    Private,
    Everybody,
    /// There is no such page.
    Nobody,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Log {
    pub format: LogFormat,
    pub level: tracing::level_filters::LevelFilter,
    /// The share of processed events that have a line.
    pub events: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Pretty on a terminal, JSON elsewhere.
    Auto,
    Pretty,
    Json,
}

/// Notices that failed in so long are one alert.
const ALERT_EVERY_MS: i64 = 10 * 60_000;

impl Config {
    /// Who is told what: the operator's rules, and what operators hear of trouble.
    pub fn rules(&self) -> Vec<NotifyRule> {
        let mut rules = self.rules.clone();
        rules.extend(self.escalations());
        rules.extend(self.news_of_orders());
        let alerts = self.notifications.alerts.as_ref();
        if let Some(channel) =
            alerts.and_then(|name| self.channels.iter().find(|channel| channel.name == *name))
        {
            let alert = |name: &str, events: &str, every_ms| NotifyRule {
                name: name.to_owned(),
                events: vec![Pattern::new(events)],
                sources: vec![Pattern::new(OWN)],
                filter: None,
                to: if channel.is_mail() { To::Operators } else { To::Place },
                channel: channel.name.clone(),
                template: "operator-alert".into(),
                every_ms,
            };
            rules.push(alert("sekisho-alerts", "alert.*", None));
            rules.push(alert("sekisho-channels", "channel.*", None));
            rules.push(alert("sekisho-keys", "source.key_*", None));
            for (name, news) in
                [("sekisho-gaps", "source.gap_closed"), ("sekisho-differences", "source.differs")]
            {
                rules.push(alert(name, news, None));
            }
            rules.push(alert("sekisho-routes", "route.*", None));
            rules.push(alert("sekisho-notices", "notice.failed", Some(ALERT_EVERY_MS)));
            rules.push(alert("sekisho-deliveries", "delivery.dead", Some(ALERT_EVERY_MS)));
        }
        rules
    }

    /// Who speaks, when nobody said so: whoever the first mail channel sends as.
    fn name_the_house(&mut self) {
        let sender = self.channels.iter().find_map(|channel| match &channel.kind {
            ChannelKind::Smtp(mail) => Some(&mail.from),
            ChannelKind::Slack { .. }
            | ChannelKind::Discord { .. }
            | ChannelKind::Webhook { .. }
            | ChannelKind::PagerDuty { .. }
            | ChannelKind::Twilio { .. }
            | ChannelKind::Sentry { .. } => None,
        });
        let brand = &mut self.notifications.house.brand.name;
        if brand.is_empty() {
            let domain =
                |address: &MailAddress| address.whole().rsplit('@').next().unwrap_or_default().to_owned();
            let of_sender = |sender: &Mailbox| sender.name.clone().unwrap_or_else(|| domain(&sender.address));
            *brand = sender.map_or_else(|| "Sekisho".to_owned(), of_sender);
        }
    }

    /// What settling needs to know of each source.
    pub fn origins(&self) -> BTreeMap<String, Origin> {
        let origin =
            |source: &Source| Origin { provider: source.provider.about().name, livemode: source.livemode };
        self.sources.iter().map(|source| (source.name.to_string(), origin(source))).collect()
    }

    /// The sources that take the events of one account only.
    pub fn accounts(&self) -> BTreeMap<String, String> {
        let bound = |source: &Source| Some((source.name.to_string(), source.account.clone()?));
        self.sources.iter().filter_map(bound).collect()
    }

    /// Who may be told to give money back.
    fn refunds(&self) -> refund::RefundPolicy {
        let may = |source: &Source| {
            let api = source.api.as_ref().filter(|api| api.refunds)?;
            let provider = settlement::ApiProvider::parse(source.provider.about().name)?;
            Some((provider, api.livemode.or(source.livemode)))
        };
        refund::RefundPolicy {
            accounts: self.sources.iter().filter_map(may).collect(),
            automatic_per_hour: self.automatic_refunds_per_hour,
        }
    }

    /// The sources, as far as sessions can be made with them.
    fn checkout_sources(&self) -> Vec<CheckoutSource> {
        let source = |source: &Source| CheckoutSource {
            name: source.name.to_string(),
            can_check_out: settlement::ApiProvider::parse(source.provider.about().name)
                .is_some_and(settlement::ApiProvider::can_check_out),
            has_key: source.api.is_some(),
            livemode: source.api.as_ref().and_then(|api| api.livemode).or(source.livemode),
        };
        self.sources.iter().map(source).collect()
    }

    /// What customers and renderers are handed, signed with these keys.
    pub fn links(&self, keys: LinkKeys) -> LinkPolicy {
        let api = self.console_url();
        let lasts_ms = i64::try_from(self.pages.links.as_millis()).unwrap_or(i64::MAX);
        LinkPolicy { keys, pages: self.pages.url.clone(), lasts_ms, api: Some(api) }
    }

    /// Where people find the console, and apps the API.
    pub fn console_url(&self) -> String {
        self.console.url.clone().unwrap_or_else(|| format!("http://{}", self.server.listen))
    }

    /// How orders are decided, with who may be told to give money back.
    pub fn orders(&self) -> OrderPolicy {
        let checkout = CheckoutPolicy { sources: self.checkout_sources(), ..self.orders.checkout.clone() };
        OrderPolicy { refunds: self.refunds(), checkout, ..self.orders.clone() }
    }

    /// The folder the default store lives in; generated secrets live there too.
    pub fn data_folder() -> PathBuf {
        PathBuf::from("./sekisho-data")
    }
}
