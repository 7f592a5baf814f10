//! Suppressions: addresses that nothing is sent to.

use schemars::JsonSchema;
use sekisho_core::Time;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Suppression {
    /// `sup_…`
    pub id: String,
    /// `suppression`
    pub object: String,
    /// Masked, unless asked for with `addresses=full`.
    pub address: String,
    /// False once it was released.
    pub suppressed: bool,
    /// `bounce`, `complaint`, `manual` or `released`: the last that happened.
    pub cause: Option<String>,
    pub note: Option<String>,
    /// Who did it, if it was a person.
    pub by: Option<String>,
    pub at: Option<Time>,
    pub history: Vec<SuppressionTurn>,
}

/// It was suppressed, or released.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SuppressionTurn {
    pub at: Time,
    pub cause: String,
    pub note: Option<String>,
    pub by: Option<String>,
}

/// Which address to suppress or release, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    pub address: String,
    /// Recorded in the audit log.
    pub reason: String,
}
