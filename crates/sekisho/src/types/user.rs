//! Users of the console.

use schemars::JsonSchema;
use sekisho_core::Time;
use serde::{Deserialize, Serialize};

/// A user, without password and sessions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct User {
    pub name: String,
    /// `viewer`, `operator` or `admin`.
    pub rank: String,
    pub created_at: Time,
    /// The last login.
    pub entered_at: Option<Time>,
    pub disabled_at: Option<Time>,
    /// Too many wrong passwords: no login before this.
    pub shut_until: Option<Time>,
    pub sessions: usize,
}

/// A link that makes somebody a user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Invite {
    /// Where it leads, at the console's own address.
    pub path: String,
    pub rank: String,
    pub expires_at: Time,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewInvite {
    /// `viewer`, `operator` or `admin`; default: `viewer`.
    pub rank: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRank {
    /// `viewer`, `operator` or `admin`.
    pub rank: String,
}
