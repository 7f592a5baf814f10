//! The places of the demo: a folder, the product in it as its users run it, the application it delivers to, and the
//! shop whose payments it hears of. All of it goes when the stage does.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, bail};
use sekisho_demo::app::{self, Behaviour, DemoApp, Keep};
use sekisho_demo::postgres::{self, Postgres};
use sekisho_demo::process::{Server, ServerConfig, ServerOptions};
use sekisho_demo::shop::Shop;
use sekisho_store::{Access, EventFilter, OpenError, StoreUrl};
use tempfile::TempDir;
use tokio::runtime::Handle;

use crate::token;

/// Where every event goes as it came, and where announcements go.
pub const ARCHIVE: &str = "/archive";
pub const SHOP: &str = "/shop";

const WEBHOOKS: &str = "/webhooks/stripe";
const READY_WITHIN: Duration = Duration::from_mins(1);
/// As long as the product's time-out below; who answers after `LATE` is not heard any more.
const TIMEOUT: &str = "1s";
const LATE: Duration = Duration::from_millis(1_400);
const SLOW: Duration = Duration::from_millis(200);

/// Which store the user asked for.
pub enum WantedStage {
    Sqlite,
    Private,
    Database(StoreUrl),
}

impl WantedStage {
    pub fn parse(store: Option<&str>) -> anyhow::Result<Self> {
        match store {
            None | Some("sqlite") => Ok(Self::Sqlite),
            Some("postgres" | "postgresql") => Ok(Self::Private),
            Some(text) => match text.parse() {
                Ok(url @ StoreUrl::Postgres(_)) => Ok(Self::Database(url)),
                Ok(StoreUrl::Sqlite(_)) | Err(_) => bail!(
                    "--store is `sqlite`, `postgres`, or the postgres://… address of an empty database here: the demo \
                     makes its own SQLite file and removes it again"
                ),
            },
        }
    }

    pub const fn name(&self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Private | Self::Database(_) => "PostgreSQL",
        }
    }
}

/// Order matters: dropped from the top, so that who uses a thing goes before it.
pub struct Stage {
    pub server: Server,
    pub app: DemoApp,
    pub shop: Arc<Shop>,
    pub seed: u64,
    pub kind: &'static str,
    pub store: StoreUrl,
    _database: Option<Postgres>,
    _folder: TempDir,
}

impl Stage {
    pub fn set(wanted: WantedStage, payments: u32, seed: u64, handle: &Handle) -> anyhow::Result<Self> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let kind = wanted.name();
        let folder = tempfile::Builder::new().prefix("sekisho-demo-").tempdir();
        let folder = folder.context("the demo needs a temporary folder")?;
        let (store, database) = match wanted {
            WantedStage::Sqlite => (StoreUrl::Sqlite(folder.path().join("sekisho.db")), None),
            WantedStage::Private => {
                let (url, database) = private()?;
                (url, Some(database))
            }
            WantedStage::Database(url) => {
                handle.block_on(require_empty(&url))?;
                (url, None)
            }
        };
        let app = DemoApp::start_with(app::Settings {
            behaviour: moody(seed),
            keep: Keep::Ids,
            ..app::Settings::default()
        });
        let app = app.context("the application of the demo can't start")?;
        let secret = format!("whsec_{}", token::generate::<24>());
        let now = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |age| age.as_secs());
        let shop = Arc::new(Shop::open(seed, payments, now, WEBHOOKS, &secret));
        let binary = std::env::current_exe().context("this program can't find itself")?;
        // By the environment: what stands in a command line is seen by everybody on this machine.
        let address = match &store {
            StoreUrl::Sqlite(_) => store.to_string(),
            StoreUrl::Postgres(url) => url.clone(),
        };
        let app_secret = format!("whsec_{}", token::generate::<24>());
        let env = [("SEKISHO_STORE_URL", address), ("DEMO_STRIPE", secret), ("DEMO_APP", app_secret)];
        let server = Server::start(ServerOptions {
            config: ServerConfig::Text(config(&app.url())),
            env: env.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            ready_within: READY_WITHIN,
            ..ServerOptions::new(binary, folder.path())
        });
        let server = server.map_err(anyhow::Error::msg)?;
        Ok(Self { server, app, shop, seed, kind, store, _database: database, _folder: folder })
    }
}

fn private() -> anyhow::Result<(StoreUrl, Postgres)> {
    if !postgres::is_installed() {
        bail!(
            "--store postgres needs PostgreSQL's own programs, and there are none in /usr/lib/postgresql or on the PATH: \
             install them (Debian: `apt install postgresql`), name an empty database with --store postgres://…, or leave \
             --store out to use SQLite"
        );
    }
    let database = Postgres::start().map_err(anyhow::Error::msg)?;
    let url = database.fresh_url().map_err(anyhow::Error::msg)?;
    let url = url.parse().map_err(|error| anyhow::anyhow!("{url}: {error}"))?;
    Ok((url, database))
}

/// The proof counts everything that is stored, so nothing else may be.
async fn require_empty(url: &StoreUrl) -> anyhow::Result<()> {
    let store = match sekisho_store::open(url, Access::Read).await {
        Err(OpenError::Schema { found: 0, .. }) => return Ok(()),
        opened => opened?,
    };
    if store.find_events(EventFilter { limit: 1, ..EventFilter::default() }).await?.events.is_empty() {
        return Ok(());
    }
    bail!("{url} holds events already: name an empty database, or write --store postgres for a private one")
}

/// Nothing may be buried because the application is ill for a while, and nobody wants to wait long afterwards: many
/// retries after short waits, and no breaker, which would also keep the kills from striking deliveries.
fn config(app: &str) -> String {
    let route = |name: &str, path: &str, more: &str| {
        format!(
            "\n[[route]]\nname = \"{name}\"\nurl = \"{app}{path}\"\nsecrets = [\"env:DEMO_APP\"]\n{more}\
             allow_private = true\ntimeout = \"{TIMEOUT}\"\nconcurrency = 50\nretries = 100\n\
             retry_first = \"200ms\"\nretry_cap = \"2s\"\nbreaker_failures = 0\n"
        )
    };
    let source = "[log]\nlevel = \"warn\"\n\n[[source]]\nname = \"stripe\"\nprovider = \"stripe\"\n\
                  secrets = [\"env:DEMO_STRIPE\"]\n";
    let archive = route("archive", ARCHIVE, "");
    let shop = route("shop", SHOP, "send = \"settled\"\n");
    format!("{source}{archive}{shop}")
}

/// An application on an ordinary day: mostly well.
pub fn moody(seed: u64) -> Behaviour {
    let late = |by| Behaviour::Delay(by, Box::new(Behaviour::Ok));
    let parts = vec![
        (1, Behaviour::status(500)),
        (1, Behaviour::Silent),
        (1, late(LATE)),
        (1, Behaviour::Drop),
        (2, late(SLOW)),
    ];
    Behaviour::Mix { seed, parts }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h6_the_store_is_one_of_the_demos_own_or_a_named_database() {
        let name = |text| WantedStage::parse(text).map(|wanted| wanted.name());
        assert_eq!(name(None).unwrap(), "SQLite");
        assert_eq!(name(Some("sqlite")).unwrap(), "SQLite");
        assert_eq!(name(Some("postgres")).unwrap(), "PostgreSQL");
        assert!(matches!(WantedStage::parse(Some("postgres://u@h/d")), Ok(WantedStage::Database(_))));
        for wrong in ["sqlite:mine.db", "mysql", ""] {
            let error = name(Some(wrong)).unwrap_err().to_string();
            assert!(error.contains("postgres://"), "{wrong}: {error}");
        }
    }

    #[test]
    fn h6_the_generated_configuration_is_valid() {
        let secret = format!("whsec_{}", token::generate::<24>());
        let text =
            config("http://127.0.0.1:9").replace("env:DEMO_APP", &secret).replace("env:DEMO_STRIPE", &secret);
        let loaded = crate::config::load("demo.toml".as_ref(), &text, std::iter::empty());
        let config = loaded.unwrap_or_else(|problems| panic!("{problems:?}")).config;
        assert_eq!((config.sources.len(), config.routes.len()), (1, 2));
    }
}
