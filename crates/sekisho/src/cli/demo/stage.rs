//! The places of the demo: a folder, the product in it as its users run it, the application it delivers to, the shop whose
//! payments it hears of, and the planetarium that sells places by it. All of it goes when the stage does.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, bail};
use sekisho_core::Time;
use sekisho_demo::app::{self, Behaviour, DemoApp, Keep, SeenDelivery};
use sekisho_demo::planetarium::{self, Planetarium, PlanetariumSettings, Programme, RefundApi};
use sekisho_demo::postgres::{self, Postgres};
use sekisho_demo::process::{Server, ServerConfig, ServerOptions};
use sekisho_demo::shop::Shop;
use sekisho_store::{Access, EventFilter, OpenError, StoreUrl};
use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::token;

/// Where every event goes as it came, where announcements go, and where videos are asked for.
pub const ARCHIVE: &str = "/archive";
pub const SHOP: &str = "/shop";
pub const RENDERER: &str = "/renderer";

const WEBHOOKS: &str = "/webhooks/stripe";
const READY_WITHIN: Duration = Duration::from_mins(1);
/// As long as the product's time-out below; who answers after `LATE` is not heard any more.
const TIMEOUT: &str = "1s";
const LATE: Duration = Duration::from_millis(1_400);
const SLOW: Duration = Duration::from_millis(200);
/// How long places are kept when their hold is over, in seconds.
const GRACE_S: u64 = 1;
/// From now until the shows begin: customers may cancel until two days before.
const SHOWS_IN_MS: i64 = 30 * 86_400_000;

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
    pub programme: Arc<Programme>,
    /// Of Sekisho's API.
    pub key: String,
    planetarium: Option<Backstage>,
    pub seed: u64,
    pub kind: &'static str,
    pub store: StoreUrl,
    _database: Option<Postgres>,
    _folder: TempDir,
}

/// What the planetarium needs to open.
struct Backstage {
    settings: PlanetariumSettings,
    stripe: RefundApi,
    heard: UnboundedReceiver<SeenDelivery>,
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
        let (tell, heard) = planetarium::deliveries();
        let app = DemoApp::start_with(app::Settings {
            behaviour: moody(seed),
            keep: Keep::Ids,
            tell: Some(tell),
            ..app::Settings::default()
        });
        let app = app.context("the application of the demo can't start")?;
        let [secret, app_secret] = [(); 2].map(|()| format!("whsec_{}", token::generate::<24>()));
        let [key, stripe_key] = ["", "sk_test_"].map(|start| format!("{start}{}", token::generate::<24>()));
        let now = Time::from_seconds(now_seconds());
        let shop = Arc::new(Shop::open(seed, payments, now_seconds() as u64, WEBHOOKS, &secret));
        let programme = Arc::new(Programme::of(seed, payments, &now.plus_ms(SHOWS_IN_MS).to_string()));
        let stripe = RefundApi::start(seed, &stripe_key).context("Stripe's stand-in can't start")?;
        let binary = std::env::current_exe().context("this program can't find itself")?;
        // By the environment: what stands in a command line is seen by everybody on this machine.
        let address = match &store {
            StoreUrl::Sqlite(_) => store.to_string(),
            StoreUrl::Postgres(url) => url.clone(),
        };
        let listen = sekisho_demo::free_address().context("no port is free")?;
        let env = [
            ("SEKISHO_STORE_URL", address),
            ("DEMO_STRIPE", secret.clone()),
            ("DEMO_STRIPE_KEY", stripe_key),
            ("DEMO_APP", app_secret),
            ("DEMO_KEY", key.clone()),
        ];
        let server = Server::start(ServerOptions {
            config: ServerConfig::Text(config(&app.url(), &stripe.url(), &format!("http://{listen}"))),
            env: env.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            listen: Some(listen),
            ready_within: READY_WITHIN,
            ..ServerOptions::new(binary, folder.path())
        });
        let server = server.map_err(anyhow::Error::msg)?;
        let settings = PlanetariumSettings {
            sekisho: listen,
            key: key.clone(),
            webhooks: WEBHOOKS.to_owned(),
            secret,
            renderer: RENDERER.to_owned(),
            grace: Duration::from_secs(GRACE_S),
        };
        let planetarium = Some(Backstage { settings, stripe, heard });
        Ok(Self {
            server,
            app,
            shop,
            programme,
            key,
            planetarium,
            seed,
            kind,
            store,
            _database: database,
            _folder: folder,
        })
    }

    /// Lets the visitors in; once.
    pub fn open_planetarium(&mut self) -> anyhow::Result<Planetarium> {
        let Backstage { settings, stripe, heard } =
            self.planetarium.take().context("the planetarium is open already")?;
        let opened = Planetarium::open(settings, Arc::clone(&self.programme), stripe, heard);
        opened.context("the planetarium can't open")
    }
}

pub fn now_seconds() -> i64 {
    SystemTime::UNIX_EPOCH.elapsed().map_or(0, |age| age.as_secs() as i64)
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
/// retries after short waits, and no breaker, which would also keep the kills from striking deliveries. What takes a day in a
/// shop, such as the refund of a video that can't be made, takes a second.
fn config(app: &str, stripe: &str, own: &str) -> String {
    let route = |name: &str, path: &str, more: &str| {
        format!(
            "\n[[route]]\nname = \"{name}\"\nurl = \"{app}{path}\"\nsecrets = [\"env:DEMO_APP\"]\n{more}\
             allow_private = true\ntimeout = \"{TIMEOUT}\"\nconcurrency = 50\nretries = 100\n\
             retry_first = \"200ms\"\nretry_cap = \"2s\"\nbreaker_failures = 0\n"
        )
    };
    let source = format!(
        "[log]\nlevel = \"warn\"\n\n[[source]]\nname = \"stripe\"\nprovider = \"stripe\"\n\
         secrets = [\"env:DEMO_STRIPE\"]\napi_key = \"env:DEMO_STRIPE_KEY\"\napi_url = \"{stripe}\"\n\
         refunds = true\nreconcile = false\n"
    );
    let archive = route("archive", ARCHIVE, "");
    let shop = route("shop", SHOP, "send = \"settled\"\n");
    let renderer = route("renderer", RENDERER, "events = [\"fulfilment.requested\"]\n");
    let orders = format!(
        "\n[[key]]\nname = \"planetarium\"\nsecret = \"env:DEMO_KEY\"\nscopes = [\"write\"]\n\
         \n[reservations]\ngrace = \"{GRACE_S}s\"\n\n[refunds]\nautomatic_per_hour = 1000\n\
         \n[pages]\nurl = \"{own}\"\n\
         \n[[compensation]]\nname = \"RENDER_FAILURE_TIMEOUT\"\nafter = \"1s\"\n"
    );
    format!("{source}{archive}{shop}{renderer}{orders}")
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
        let [app, stripe, own] = ["http://127.0.0.1:9", "http://127.0.0.1:10", "http://127.0.0.1:11"];
        let secrets = ["env:DEMO_APP", "env:DEMO_STRIPE_KEY", "env:DEMO_STRIPE", "env:DEMO_KEY"];
        let given = |text: String, name: &&str| text.replace(name, &secret);
        let text = secrets.iter().fold(config(app, stripe, own), given);
        let loaded = crate::config::load("demo.toml".as_ref(), &text, std::iter::empty());
        let config = loaded.unwrap_or_else(|problems| panic!("{problems:?}")).config;
        assert_eq!((config.sources.len(), config.routes.len()), (1, 3));
    }
}
