//! What PostgreSQL's errors mean to us: the row's own fault, a missing partition, or the database's trouble.

use std::io::ErrorKind;

use tokio_postgres::error::SqlState;

use super::durability::Unsafe;
use crate::error::{Error, OpenError};

#[derive(Debug, thiserror::Error)]
pub enum QueryFailure {
    #[error("PostgreSQL reported a failure")]
    Database(#[from] tokio_postgres::Error),
    #[error("PostgreSQL did not answer in time")]
    Silent,
    #[error("the wait for the synchronous standby was cancelled: only the primary has this commit")]
    Doubtful,
    #[error("rows came and went while we looked for them")]
    Restless,
    #[error(transparent)]
    Unsafe(#[from] Unsafe),
}

impl QueryFailure {
    /// A value that can't be stored, whatever the server's state: another try ends the same.
    pub fn refuses_the_row(&self) -> bool {
        matches!(self.class(), "22" | "23" | "54") && !self.misses_a_partition()
    }

    /// No constraint is named: it is the partition bounds that were violated.
    pub fn misses_a_partition(&self) -> bool {
        let Self::Database(error) = self else { return false };
        error
            .as_db_error()
            .is_some_and(|error| *error.code() == SqlState::CHECK_VIOLATION && error.constraint().is_none())
    }

    /// Somebody else wrote the thing or gave the name at the same moment: nothing was written.
    pub fn lost_a_race(&self) -> bool {
        let Self::Database(error) = self else { return false };
        error.as_db_error().is_some_and(|error| {
            *error.code() == SqlState::UNIQUE_VIOLATION
                && matches!(error.constraint(), Some("state_pkey" | "name_pkey"))
        })
    }

    /// Somebody else made it at the same moment, or holds its lock.
    pub fn is_a_race(&self) -> bool {
        let states = [
            SqlState::DUPLICATE_TABLE,
            SqlState::DUPLICATE_OBJECT,
            SqlState::UNIQUE_VIOLATION,
            SqlState::WRONG_OBJECT_TYPE, // attached already
            SqlState::LOCK_NOT_AVAILABLE,
            SqlState::T_R_DEADLOCK_DETECTED,
        ];
        self.state().is_some_and(|state| states.contains(state))
    }

    /// After a failure that we did not foresee, a new connection is the safer one: another primary, another plan.
    pub fn leaves_the_session_well(&self) -> bool {
        match self {
            Self::Database(_) => {
                matches!(self.class(), "22" | "23" | "40" | "54")
                    || self.state() == Some(&SqlState::LOCK_NOT_AVAILABLE)
                    || self.state() == Some(&SqlState::QUERY_CANCELED)
            }
            Self::Doubtful | Self::Restless => true,
            Self::Silent | Self::Unsafe(_) => false,
        }
    }

    /// The server is away, starts, stops, is full of sessions or changes hands: who waits will be let in. Not so with a wrong
    /// password, a database that is not there, a certificate that is not believed, or an address that can't be read.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Database(error) => match error.code() {
                Some(state) => {
                    // Connections, resources, the operator's hand, the system's own trouble; races with others.
                    matches!(self.class(), "08" | "40" | "53" | "57" | "58")
                        || [SqlState::LOCK_NOT_AVAILABLE, SqlState::READ_ONLY_SQL_TRANSACTION].contains(state)
                }
                None => {
                    error.is_closed() || io_kind(error).is_some_and(|kind| kind != ErrorKind::InvalidData)
                }
            },
            Self::Silent | Self::Doubtful | Self::Restless => true,
            Self::Unsafe(_) => false,
        }
    }

    /// The server itself ended the statement, because it took longer than it may.
    pub fn took_too_long(&self) -> bool {
        self.state() == Some(&SqlState::QUERY_CANCELED)
    }

    /// In one line, with what the server said.
    pub fn message(&self) -> String {
        crate::error::chain(self)
    }

    fn state(&self) -> Option<&SqlState> {
        match self {
            Self::Database(error) => error.code(),
            Self::Silent | Self::Doubtful | Self::Restless | Self::Unsafe(_) => None,
        }
    }

    fn class(&self) -> &str {
        self.state().and_then(|state| state.code().get(..2)).unwrap_or_default()
    }
}

/// Only PostgreSQL can be away and come back: SQLite is a file of this machine.
impl Error {
    /// Whether it is the database that is away, and who waits may have it again.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unavailable(source) => {
                source.downcast_ref::<QueryFailure>().is_some_and(QueryFailure::is_passing)
            }
            Self::Corrupt(_) => false,
        }
    }

    /// Whether the database gave it up because it took too long.
    pub(crate) fn took_too_long(&self) -> bool {
        match self {
            Self::Unavailable(source) => {
                source.downcast_ref::<QueryFailure>().is_some_and(QueryFailure::took_too_long)
            }
            Self::Corrupt(_) => false,
        }
    }
}

impl OpenError {
    /// Whether it is the database that is away, and who waits may have it again.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { error, .. } => error.is_passing(),
            Self::InUse { .. } | Self::Unsafe { .. } | Self::Schema { .. } | Self::Tampered { .. } => false,
        }
    }
}

/// What the network said. What TLS has to say about a certificate comes as data that is not valid.
fn io_kind(error: &tokio_postgres::Error) -> Option<ErrorKind> {
    let mut next = std::error::Error::source(error);
    while let Some(source) = next {
        if let Some(io) = source.downcast_ref::<std::io::Error>() {
            return Some(io.kind());
        }
        next = source.source();
    }
    None
}

/// Tables that are not there and pages that can't be read don't heal by waiting; everything else may.
impl From<QueryFailure> for Error {
    fn from(failure: QueryFailure) -> Self {
        let damaged = [SqlState::DATA_CORRUPTED, SqlState::INDEX_CORRUPTED];
        // Missing rights are mended by the operator, and then all is well.
        let forbidden = failure.state() == Some(&SqlState::INSUFFICIENT_PRIVILEGE);
        let hopeless = (matches!(failure.class(), "22" | "23" | "42" | "54") && !forbidden)
            || failure.state().is_some_and(|state| damaged.contains(state));
        if hopeless { Self::corrupt(failure) } else { Self::unavailable(failure) }
    }
}
