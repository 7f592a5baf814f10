//! What is behind each source of events.

use std::collections::BTreeMap;

use sekisho_core::event::Stored;
use sekisho_core::settlement::Fetch;
use sekisho_core::source_name::{FETCHED, Origin};

use crate::config::Config;

pub struct Sources {
    origins: BTreeMap<String, Origin>,
    /// The one account that a source takes, by its name.
    accounts: BTreeMap<String, String>,
}

impl Sources {
    pub fn new(config: &Config) -> Self {
        Self { origins: config.origins(), accounts: config.accounts() }
    }

    pub fn origin(&self, event: &Stored) -> Origin {
        if &*event.source == FETCHED {
            return Fetch::origin(event);
        }
        self.origins.get(&*event.source).copied().unwrap_or_default()
    }

    pub fn account(&self, event: &Stored) -> Option<&str> {
        self.accounts.get(&*event.source).map(String::as_str)
    }
}
