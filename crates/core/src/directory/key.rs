//! Under which key one of the directory is kept, and under which account its money: its tenant, then its own id. The same
//! id in two tenants is two people; what belongs to no tenant has a namespace of its own.
//!
//! Invariant: two that differ in tenant or id have different keys, whatever letters stand in them. The SQL views write the
//! same text: who changes it here changes it there.

use crate::directory::Register;
use crate::state::{Key, Kind};

/// `TENANT/ID`, or `/ID` of what belongs to no tenant. The first `/` parts them: one in a tenant's own id is written `%2F`.
pub fn scoped(tenant: Option<&str>, id: &str) -> String {
    let tenant = tenant.unwrap_or_default().replace('%', "%25").replace('/', "%2F");
    format!("{tenant}/{id}")
}

/// Tenant and id, as [`scoped`] put them together.
pub fn unscoped(text: &str) -> (Option<String>, &str) {
    let (tenant, id) = text.split_once('/').unwrap_or(("", text));
    let tenant = tenant.replace("%2F", "/").replace("%25", "%");
    (Some(tenant).filter(|tenant| !tenant.is_empty()), id)
}

impl Register {
    /// Where one of this list is kept. A tenant is nobody's.
    pub fn key(self, tenant: Option<&str>, id: &str) -> Key {
        match self {
            Self::Tenants => Key::new(Kind::Tenant, id),
            Self::Customers | Self::Staff | Self::Subjects => Key::new(self.kind(), scoped(tenant, id)),
        }
    }
}

/// What the app calls it. Of what is not in the directory: all of the key.
pub fn own_id(key: &Key) -> &str {
    match Register::of(key.kind) {
        None | Some(Register::Tenants) => &key.id,
        Some(Register::Customers | Register::Staff | Register::Subjects) => unscoped(&key.id).1,
    }
}
