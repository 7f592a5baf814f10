//! What the operator wants: one `sekisho.toml`, environment variables over it, secrets by reference.
//!
//! Every key is a line in [`settings`] or in the file of its block ([`source`], [`route`], [`schedule`], [`key`]), with
//! its default, its help and its setter; the example file, the environment overrides and the checks all come from
//! those lines, so they can't drift apart. Anything unknown or senseless is refused at start, with file, line and what
//! to write instead.

mod given;
mod key;
mod load;
mod route;
mod schedule;
mod secret;
mod settings;
mod source;
mod table;
mod whole;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use sekisho_core::Secret;
use sekisho_core::settlement::{Origin, References};
use sekisho_core::timer::DAY_MS;
use sekisho_store::StoreUrl;

pub use key::{Key, Scope};
pub use load::{Glance, Loaded, Problem, example, glance, load, load_sources};
pub use route::Route;
pub use schedule::Schedule;
pub use secret::resolve;
pub use source::{Api, Source, UnusableBody};

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
    pub log: Log,
    pub sources: Vec<Source>,
    pub routes: Vec<Route>,
    pub schedules: Vec<Schedule>,
    pub keys: Vec<Key>,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Log {
    pub format: LogFormat,
    pub level: tracing::level_filters::LevelFilter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Pretty on a terminal, JSON elsewhere.
    Auto,
    Pretty,
    Json,
}

impl Config {
    /// What settling needs to know of each source.
    pub fn origins(&self) -> BTreeMap<String, Origin> {
        let origin =
            |source: &Source| Origin { provider: source.provider.about().name, livemode: source.livemode };
        self.sources.iter().map(|source| (source.name.to_string(), origin(source))).collect()
    }

    /// The folder the default store lives in; generated secrets live there too.
    pub fn data_folder() -> PathBuf {
        PathBuf::from("./sekisho-data")
    }
}
