//! The nodes under torture, the store they share, and the application they deliver to.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::checker::SeenRoute;
use super::clock::{Shim, TortureClock};
use super::{Plan, StoreKind, storm};
use crate::app::{self, Behaviour, DemoApp, Keep};
use crate::postgres::Postgres;
use crate::process::{Server, ServerConfig, ServerOptions};
use crate::proxy::Proxy;
use crate::sqlite;

/// How long a node may take to get ready, on a busy machine and with a database that was just killed.
const READY_WITHIN: Duration = Duration::from_mins(1);

/// Plain, in order, and one whose application is often ill.
pub const ROUTES: [SeenRoute; 3] = [
    SeenRoute { name: "all", only_payments: false, fifo: false },
    SeenRoute { name: "fifo", only_payments: false, fifo: true },
    SeenRoute { name: "flaky", only_payments: true, fifo: false },
];

pub struct Cluster {
    pub nodes: Vec<ClusterNode>,
    pub store: ClusterStore,
    pub app: DemoApp,
}

pub struct ClusterNode {
    pub server: Server,
    pub clock: Option<TortureClock>,
}

pub enum ClusterStore {
    Sqlite { file: PathBuf },
    Postgres { server: Box<Postgres>, database: String, proxy: Option<Proxy> },
}

impl ClusterStore {
    /// With a proxy in between if asked for.
    pub fn open(
        plan: &Plan,
        dir: &Path,
        runtime: &tokio::runtime::Runtime,
        proxied: bool,
    ) -> Result<Self, String> {
        if plan.store == StoreKind::Sqlite {
            return Ok(Self::Sqlite { file: dir.join("sekisho.db") });
        }
        let server = Box::new(Postgres::start()?);
        let database = server.fresh_database()?;
        let port = server.port().ok_or("the torture needs a PostgreSQL of its own")?;
        let proxy = proxied
            .then(|| runtime.block_on(Proxy::start(([127, 0, 0, 1], port).into(), plan.seed)))
            .transpose()
            .map_err(|error| format!("no proxy: {error}"))?;
        Ok(Self::Postgres { server, database, proxy })
    }

    /// What the nodes are told.
    pub fn url(&self) -> String {
        match self {
            Self::Sqlite { file } => format!("sqlite:{}", file.display()),
            Self::Postgres { server, database, proxy: None } => server.url(database),
            Self::Postgres { database, proxy: Some(proxy), .. } => {
                format!("postgres://postgres@{}/{database}", proxy.address())
            }
        }
    }

    /// Asks the database itself, past the product and the proxy.
    pub fn sql(&self, query: &str) -> Result<String, String> {
        match self {
            Self::Sqlite { file } => sqlite::query(file, query),
            Self::Postgres { server, database, .. } => server.psql_in(database, query),
        }
    }

    /// What a proxy in between did.
    pub fn cuts(&self) -> Option<String> {
        let Self::Postgres { proxy: Some(proxy), .. } = self else { return None };
        let counts = proxy.counts();
        let (replies, requests) = (counts.lost_replies, counts.lost_requests);
        Some(format!("connections cut around commits: {replies} after the commit, {requests} before"))
    }

    /// `ok`, or what is wrong with the file, the books, the audit log or the announcements. Nobody else may have the store.
    pub fn integrity(&self, binary: &Path) -> String {
        let file = match self {
            Self::Sqlite { .. } => self.sql("PRAGMA integrity_check").unwrap_or_else(|error| error),
            Self::Postgres { .. } => "ok".into(),
        };
        let mut wrong = if file == "ok" { Vec::new() } else { vec![file] };
        wrong.extend(self.announcements().err());
        for words in [["books", "check"], ["audit", "verify"]] {
            wrong.extend(self.command(binary, words).err());
        }
        if wrong.is_empty() { "ok".into() } else { wrong.join("; ") }
    }

    /// Each payment that has money was announced as paid, once.
    fn announcements(&self) -> Result<(), String> {
        let told =
            self.sql("SELECT count(*) FROM event WHERE source = 'sekisho' AND type = 'payment.paid'")?;
        let paid = self.sql("SELECT count(*) FROM state WHERE kind = 'payment' AND status = 'paid'")?;
        if told != paid || paid == "0" {
            return Err(format!("{paid} payments are paid, and {told} were announced"));
        }
        Ok(())
    }

    fn command(&self, binary: &Path, words: [&str; 2]) -> Result<(), String> {
        let url = match self {
            Self::Sqlite { .. } => self.url(),
            Self::Postgres { server, database, .. } => server.url(database),
        };
        let output = std::process::Command::new(binary).args(words).args(["--store", &url]).output();
        let output = output.map_err(|error| format!("{words:?} did not run: {error}"))?;
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() {
            return Ok(());
        }
        Err(format!("{words:?}: {}{}", said(&output.stdout), said(&output.stderr)))
    }
}

impl Cluster {
    pub fn start(plan: &Plan, dir: &Path, store: ClusterStore, shim: Option<&Shim>) -> Result<Self, String> {
        let app = DemoApp::start_with(app::Settings {
            behaviour: behaviour(plan.seed),
            keep: Keep::Ids,
            ledger: Some(dir.join("processed")),
            ..app::Settings::default()
        })
        .map_err(|error| format!("the application can't start: {error}"))?;
        let (config, url) = (config(&app.url()), store.url());
        let mut nodes = Vec::new();
        for n in 0..plan.nodes() {
            let dir = dir.join(format!("node-{n}"));
            fs::create_dir_all(&dir).map_err(|error| format!("{} can't be made: {error}", dir.display()))?;
            let (clock, mut env) = match shim {
                Some(shim) => shim.clock(&dir).map(|(clock, env)| (Some(clock), env))?,
                None => (None, Vec::new()),
            };
            env.extend(secrets());
            let server = Server::start(ServerOptions {
                config: ServerConfig::Text(config.clone()),
                store: Some(url.clone()),
                env,
                ready_within: READY_WITHIN,
                ..ServerOptions::new(&plan.binary, dir)
            })?;
            nodes.push(ClusterNode { server, clock });
        }
        Ok(Self { nodes, store, app })
    }
}

fn secrets() -> Vec<(OsString, OsString)> {
    vec![
        ("STRIPE_SECRET".into(), storm::SECRET.into()),
        ("APP_SECRET".into(), "whsec_dG9ydHVyZS10b3J0dXJlLXRvcnR1cmU=".into()),
    ]
}

/// Only a fault of ours could bury anything: an application that fails is tried a thousand times. Signatures are
/// taken however wrong a node's clock is, so that it goes on working by it.
fn config(app: &str) -> String {
    let mut text =
        "[[source]]\nname = \"stripe\"\nprovider = \"stripe\"\nsecrets = [\"env:STRIPE_SECRET\"]\n\
                    tolerance = \"49h\"\n"
            .to_owned();
    for route in ROUTES {
        text += &format!(
            "\n[[route]]\nname = \"{name}\"\nurl = \"{app}/{name}\"\nsecrets = [\"env:APP_SECRET\"]\n\
             signing = \"standard-webhooks\"\nallow_private = true\nretries = 1000\nretry_first = \"100ms\"\n\
             retry_cap = \"2s\"\n",
            name = route.name
        );
        if route.fifo {
            text += "fifo = \"body.data.object.id\"\n";
        }
        if route.only_payments {
            text += "events = [\"payment_intent.*\"]\n";
        }
    }
    text
}

fn behaviour(seed: u64) -> Behaviour {
    let late = |ms| Behaviour::Delay(Duration::from_millis(ms), Box::new(Behaviour::Ok));
    let mix = |parts| Behaviour::Mix { seed, parts };
    let paths = [
        ("/all", mix(vec![(1, Behaviour::Drop), (10, late(5))])),
        ("/fifo", mix(vec![(1, Behaviour::Drop), (1, Behaviour::status(500)), (20, late(10))])),
        (
            "/flaky",
            mix(vec![
                (8, Behaviour::status(503)),
                (3, Behaviour::status(500)),
                (4, Behaviour::Drop),
                (20, late(50)),
            ]),
        ),
    ];
    let paths = paths.into_iter().map(|(path, behaviour)| (path.to_owned(), behaviour)).collect();
    Behaviour::Paths(paths, Box::new(Behaviour::status(404)))
}
