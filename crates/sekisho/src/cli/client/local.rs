//! The API in this process, over the opened store: for commands while no server runs. The caller is the operator of this
//! machine, with a key that is made for this one process.

use std::sync::Arc;

use anyhow::bail;
use axum::Router;
use sekisho_core::Secret;
use sekisho_store::memory::MemoryStore;
use sekisho_store::{Access, OpenError, Store, StoreUrl};

use crate::api::{self, Auth, Settings};
use crate::attempts::Attempts;
use crate::checkpoint::rejection::Recorder;
use crate::cli::Context;
use crate::config::{Config, Glance};
use crate::env::Env;
use crate::jobs::reconcile::Reconciler;
use crate::queries::OrderContext;
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

    pub const fn and_configuration(self) -> Self {
        Self { configuration: true, ..self }
    }
}

/// The endpoints, and the key that opens them.
pub async fn open(context: &Context, needs: Needs) -> anyhow::Result<(Router, String)> {
    let seen = context.glance()?;
    let store: Arc<dyn Store> = match needs.store {
        Some(access) => open_store(&seen, access).await?,
        None => Arc::new(MemoryStore::default()),
    };
    let settings = if needs.configuration { of(&context.load()?.config)? } else { glanced(seen)? };
    let key = token::generate::<24>();
    let attempts = Arc::new(Attempts::new(Env::system(), Arc::default(), Recorder::default()));
    let auth = Auth::new(&[], Some(&Secret::new(key.as_str())), Arc::clone(&store), attempts);
    Ok((api::router(settings, Arc::new(auth), store, None), key))
}

async fn open_store(seen: &Glance, access: Access) -> anyhow::Result<Arc<dyn Store>> {
    // A slip in the path must not make a new, empty store.
    if let StoreUrl::Sqlite(path) = &seen.store
        && !path.exists()
    {
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

/// What is known without any secret at hand.
fn glanced(seen: Glance) -> anyhow::Result<Settings> {
    let Glance { sources, origins, keys, grace, .. } = seen;
    let known = OrderContext { origins, sources, keys, ..OrderContext::default() };
    Ok(Settings { known, grace, ..of(&Config::default())? })
}

fn of(config: &Config) -> anyhow::Result<Settings> {
    Ok(Settings::of(config, Arc::new(Reconciler::alone(config)?)))
}
