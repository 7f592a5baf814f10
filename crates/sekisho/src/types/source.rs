//! Sources, as configured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    pub name: String,
    pub provider: Option<String>,
    /// The mode, if it takes only one.
    pub livemode: Option<bool>,
}
