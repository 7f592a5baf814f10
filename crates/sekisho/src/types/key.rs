//! API keys that people created: by command, in the console or by the API.

use schemars::JsonSchema;
use sekisho_core::Time;
use serde::{Deserialize, Serialize};

/// A key, without its secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApiKey {
    pub name: String,
    /// Its first characters.
    pub hint: String,
    /// `read`, `write`, `operate`, `admin`.
    pub scopes: Vec<String>,
    /// The one tenant it may speak for; null: all.
    pub tenant: Option<String>,
    pub created_at: Time,
    pub revoked_at: Option<Time>,
}

/// A key that was just created.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ApiKeyDetail")]
pub struct NewKeyAnswer {
    #[serde(flatten)]
    pub about: ApiKey,
    /// The secret; it is shown only now.
    pub key: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewApiKey {
    /// Default: `key-` and its first characters.
    pub name: Option<String>,
    /// `read`, `write`, `operate`, `admin`.
    pub scopes: Vec<String>,
    /// The one tenant it may speak for; default: all.
    pub tenant: Option<String>,
}

/// Which key to revoke.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RevokedKey {
    /// Its name, or its first characters.
    pub key: String,
}
