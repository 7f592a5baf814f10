//! What commands open themselves, on this machine: the API over the store while no server runs, the store to be examined
//! or migrated. The caller is the operator of this machine, with a key that is made for this one process.

use std::sync::Arc;

use anyhow::bail;
use axum::Router;
use sekisho_core::Secret;
use sekisho_store::memory::MemoryStore;
use sekisho_store::{Access, OpenError, Store, StoreUrl};

use crate::api::{self, ApiSettings, Auth};
use crate::attempts::Attempts;
use crate::checkpoint::rejection::Recorder;
use crate::config::{Config, Glance};
use crate::env::Env;
use crate::jobs::reconcile::Reconciler;
use crate::queries::{self, Condition, OrderContext};
use crate::token;

/// What a command needs where no server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    store: Option<Access>,
    /// The whole configuration with its routes, channels and secrets, not only where the store is.
    configuration: bool,
}

impl Needs {
    /// The store, to look. Servers of this and other machines may run beside it.
    pub const READ: Self = Self { store: Some(Access::Read), configuration: false };
    /// The store, to change something.
    pub const ACT: Self = Self { store: Some(Access::Act), configuration: false };
    /// Nothing but the configuration: there need not be a store yet.
    pub const CONFIGURATION: Self = Self { store: None, configuration: true };

    #[must_use]
    pub const fn and_configuration(self) -> Self {
        Self { configuration: true, ..self }
    }
}

/// The endpoints in this process, and the key that opens them.
pub async fn open_api(
    seen: Glance,
    needs: Needs,
    load: impl FnOnce() -> anyhow::Result<Config>,
) -> anyhow::Result<(Router, String)> {
    let store: Arc<dyn Store> = match needs.store {
        Some(access) => open_store(&seen, access).await?,
        None => Arc::new(MemoryStore::default()),
    };
    let settings = if needs.configuration { of(&load()?)? } else { glanced(seen)? };
    let key = token::generate::<24>();
    let attempts = Arc::new(Attempts::new(Env::system(), Arc::default(), Recorder::default()));
    let auth = Auth::new(&[], Some(&Secret::new(key.as_str())), Arc::clone(&store), attempts);
    Ok((api::router(settings, Arc::new(auth), store, None), key))
}

async fn open_store(seen: &Glance, access: Access) -> anyhow::Result<Arc<dyn Store>> {
    // A slip in the path must not make a new, empty store.
    if !exists(&seen.store) {
        bail!(
            "there is no store at {}: start it with `sekisho serve`, or name another with --store",
            seen.store
        );
    }
    match sekisho_store::open(&seen.store, access).await {
        Ok(store) => Ok(store),
        Err(OpenError::InUse { path }) => bail!(
            "a server runs on {path}, but it can't be reached: it does not answer, or serves without the role \
             `console`. Name it with --server URL --key KEY (but no key decides about users), or stop it and try again"
        ),
        Err(error) => Err(error.into()),
    }
}

/// Whether there is a store: a database server is asked when it is opened.
fn exists(url: &StoreUrl) -> bool {
    match url {
        StoreUrl::Sqlite(path) => path.exists(),
        StoreUrl::Postgres(_) => true,
    }
}

/// What is known without any secret at hand.
fn glanced(seen: Glance) -> anyhow::Result<ApiSettings> {
    let Glance { sources, origins, keys, grace, .. } = seen;
    let known = OrderContext { origins, sources, keys, ..OrderContext::default() };
    Ok(ApiSettings { known, grace, ..of(&Config::default())? })
}

fn of(config: &Config) -> anyhow::Result<ApiSettings> {
    Ok(ApiSettings::of(config, Arc::new(Reconciler::alone(config)?)))
}

/// How a store is, and how these sources compare with their providers; `None` where there is no store yet. Asks the store
/// and no server: the one that runs may be what is ill.
pub async fn examine(url: &StoreUrl, sources: &[&str]) -> anyhow::Result<Option<Condition>> {
    if !exists(url) {
        return Ok(None);
    }
    let store = sekisho_store::open(url, Access::Read).await?;
    queries::condition(&*store, sources).await.map(Some).map_err(|error| anyhow::anyhow!(error.chain()))
}

/// Brings a store's schema up to date.
pub async fn migrate(url: &StoreUrl) -> anyhow::Result<()> {
    sekisho_store::open(url, Access::Migrate).await?;
    Ok(())
}
