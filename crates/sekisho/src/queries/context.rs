//! What of the configuration an order may need to be answered.

use std::collections::BTreeMap;
use std::sync::Arc;

use sekisho_core::delivery::Route;
use sekisho_core::notification::{House, NotifyRule};
use sekisho_core::settlement::References;
use sekisho_core::settlement::follow::OrderPolicy;
use sekisho_core::source_name::Origin;

use crate::config::{Config, Reservations};

#[derive(Default)]
pub struct OrderContext {
    pub routes: Vec<Route>,
    /// Who is told what, and who speaks.
    pub rules: Vec<NotifyRule>,
    pub house: House,
    /// What is behind each source, and where its events say what they are for.
    pub origins: BTreeMap<String, Origin>,
    pub references: References,
    /// The one account that a source takes, by its name.
    pub accounts: BTreeMap<String, String>,
    /// Names of the sources that events come from.
    pub sources: Vec<String>,
    /// Names of the API keys that stand in the configuration.
    pub keys: Vec<String>,
    /// How orders are decided, and who may be told to give money back.
    pub orders: Arc<OrderPolicy>,
    pub reservations: Reservations,
}

impl OrderContext {
    pub fn of(config: &Config) -> Self {
        let sources = config.sources.iter().map(|source| source.name.to_string());
        Self {
            routes: config.routes.iter().map(|route| route.route.clone()).collect(),
            rules: config.rules(),
            house: config.notifications.house.clone(),
            origins: config.origins(),
            references: config.references.clone(),
            accounts: config.accounts(),
            sources: sources.collect(),
            keys: config.keys.iter().map(|key| key.name.clone()).collect(),
            orders: Arc::new(config.orders()),
            reservations: config.reservations,
        }
    }
}
