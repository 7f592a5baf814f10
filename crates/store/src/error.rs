//! What can go wrong with a store. A guard that does not hold is an answer, not an error.

use sekisho_core::id::NODES_MAX;

pub type Result<T> = std::result::Result<T, Error>;

type Source = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Down, full or out of reach: try again. A write may or may not have happened.
    #[error("the store is not available")]
    Unavailable(#[source] Source),
    /// The store answers something that can't be: a person must look.
    #[error("the store answered something impossible")]
    Corrupt(#[source] Source),
}

impl Error {
    pub fn unavailable(source: impl Into<Source>) -> Self {
        Self::Unavailable(source.into())
    }

    /// As many nodes live as ids can tell apart.
    pub fn crowded() -> Self {
        Self::unavailable(format!(
            "{NODES_MAX} nodes live on this store, and ids can't tell more apart: stop some, this one can join then"
        ))
    }

    pub fn corrupt(source: impl Into<Source>) -> Self {
        Self::Corrupt(source.into())
    }

    /// The whole chain in one line, for a log.
    pub fn chain(&self) -> String {
        chain(self)
    }
}

/// An error and its sources in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let more = source.to_string();
        if !text.ends_with(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        next = source.source();
    }
    text
}

/// Why a store can't be opened, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("can't reach the store {url}: {}", chain(error))]
    Unreachable { url: String, error: Error },
    #[error("another Sekisho is running on {path}; SQLite serves one process (use PostgreSQL for several)")]
    InUse { path: String },
    #[error("the store would not keep what it acknowledged: {what}. {cure}")]
    Unsafe { what: String, cure: String },
    #[error("the store's schema is at version {found}, this program needs {needed}: {cure}")]
    Schema { found: i64, needed: i64, cure: &'static str },
    #[error("migration {number} of the store was changed after it was applied: {what}")]
    Tampered { number: i64, what: String },
}
