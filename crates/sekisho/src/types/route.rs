//! Routes: where events go, and whether the destinations are well.

use schemars::JsonSchema;
use sekisho_core::Time;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Route {
    pub name: String,
    /// Without its query, which may hold a token.
    pub url: String,
    /// `closed`, `open` or `half_open`.
    pub breaker: String,
    /// When it began to fail, while its breaker is not closed.
    pub open_since: Option<Time>,
    /// When the next delivery probes it.
    pub open_until: Option<Time>,
    /// When its oldest waiting message is due.
    pub oldest_due_at: Option<Time>,
}

/// What a reset did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reset {
    pub route: String,
    /// How the breaker stood: `closed`, `open` or `half_open`.
    pub was: String,
}
