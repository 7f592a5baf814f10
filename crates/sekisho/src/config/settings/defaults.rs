//! What holds when nobody writes anything: the defaults of the table, as values.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use ipnet::IpNet;
use sekisho_core::alert::AlertPolicy;
use sekisho_core::notification::House;
use sekisho_core::notification::template::Templates;
use sekisho_core::reconcile;
use sekisho_core::settlement::References;
use sekisho_core::settlement::follow::OrderPolicy;
use sekisho_core::target::TargetPolicy;
use sekisho_core::user::Rank;
use sekisho_store::StoreUrl;
use tracing::level_filters::LevelFilter;

use crate::config::{
    Admission, Config, Console, Escalation, Gate, Log, LogFormat, Notifications, Pages, Readers,
    Reservations, Retention, Server, Store, Telemetry,
};

impl Default for Config {
    fn default() -> Self {
        Self {
            server: Server {
                listen: ([127, 0, 0, 1], 8787).into(),
                connections_max: 10_000,
                header_timeout: Duration::from_secs(10),
                body_timeout: Duration::from_secs(10),
                idle_timeout: Duration::from_secs(75),
                body_bytes_max: 1 << 20,
                trusted_proxies: 0,
                shutdown_timeout: Duration::from_secs(10),
            },
            store: Store {
                url: StoreUrl::Sqlite("./sekisho-data/sekisho.db".into()),
                allow_unsafe_durability: false,
            },
            gate: Gate { entries: 100_000, redis: None, redis_ttl: Duration::from_hours(24) },
            admission: Admission {
                deadline: Duration::from_millis(1500),
                waiting_max: 8_192,
                waiting_bytes_max: 64 << 20,
            },
            retention: Retention { days: 90 },
            references: References::default(),
            grace: Duration::from_hours(72),
            automatic_refunds_per_hour: 30,
            orders: OrderPolicy::default(),
            escalation: Escalation { chat: "alerts".into(), mail: "mail".into(), pager: "pager".into() },
            reservations: Reservations {
                hold_ms: 30 * 60_000,
                quantity_max: 20,
                probe: true,
                probe_every: Duration::from_mins(1),
            },
            pages: Pages {
                url: None,
                secrets: Vec::new(),
                links: Duration::from_hours(180 * 24),
                inquiries: Duration::from_hours(365 * 24),
                date_word: "投影予定日".into(),
                date_word_en: "the date of projection".into(),
                accent: "#20427f".into(),
            },
            reconcile: reconcile::ReconcilePolicy::default(),
            notifications: Notifications {
                house: House { time_zone: "Asia/Tokyo".into(), ..House::default() },
                templates: None,
                alerts: None,
                reminders: None,
                customers: None,
                remind_at: 9 * 60,
                hourly_per_customer: 10,
                dashboard_url: None,
            },
            templates: Templates::shipped(),
            console: Console {
                url: None,
                user_header: None,
                rank_header: None,
                rank: Rank::Viewer,
                proxies: vec![
                    IpNet::from(IpAddr::from([127, 0, 0, 1])),
                    IpNet::from(IpAddr::from(Ipv6Addr::LOCALHOST)),
                ],
            },
            metrics: Readers::Private,
            alerts: AlertPolicy::default(),
            targets: TargetPolicy::default(),
            telemetry: Telemetry::default(),
            log: Log { format: LogFormat::Auto, level: LevelFilter::INFO, events: 1.0 },
            sources: Vec::new(),
            routes: Vec::new(),
            channels: Vec::new(),
            rules: Vec::new(),
            schedules: Vec::new(),
            keys: Vec::new(),
        }
    }
}
