//! Who acts, when, and whose things they may touch: a person at the console or a terminal, or an app with its key.

use serde_json::Value;

use crate::audit::{Entry, Role};
use crate::change::Act;
use crate::time::Time;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actor<'a> {
    pub name: &'a str,
    pub role: Role,
    /// The one tenant whose things it may touch, if it may not touch all.
    pub tenant: Option<&'a str>,
    pub at: Time,
}

/// An actor of one tenant reached for what is not its tenant's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this key belongs to the tenant {own}; it has no access to other tenants")]
pub struct ForeignTenant {
    pub own: String,
}

impl Actor<'_> {
    /// Whether it may touch what belongs to this tenant; `None` is nobody's.
    pub fn may_touch(&self, tenant: Option<&str>) -> bool {
        self.tenant.is_none() || self.tenant == tenant
    }

    pub fn check_tenant(&self, tenant: Option<&str>) -> Result<(), ForeignTenant> {
        match self.tenant {
            Some(own) if tenant != Some(own) => Err(ForeignTenant { own: own.to_owned() }),
            _ => Ok(()),
        }
    }

    /// What they did, for the audit log.
    pub fn entry(&self, tenant: Option<&str>, action: &str, target: (&str, &str), details: &Value) -> Entry {
        Entry {
            at: self.at,
            actor: Some(self.name.to_owned()),
            role: self.role.of_entry(),
            action: action.to_owned(),
            target: (target.0.to_owned(), target.1.to_owned()),
            tenant: tenant.or(self.tenant).map(str::to_owned),
            event: None,
            details: details.to_string(),
        }
    }

    /// What they do by hand, for the store to do and to note.
    pub fn act(&self, reason: &str) -> Act {
        Act { at: self.at, actor: self.name.to_owned(), role: self.role, reason: reason.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h2_an_actor_of_one_tenant_touches_only_what_is_its_own() {
        let all = Actor { name: "tomo", role: Role::Operator, tenant: None, at: Time::from_ms(1) };
        let of_a = Actor { tenant: Some("a"), ..all };
        for tenant in [None, Some("a"), Some("b")] {
            assert!(all.may_touch(tenant) && all.check_tenant(tenant).is_ok());
            assert_eq!(of_a.may_touch(tenant), tenant == Some("a"));
            assert_eq!(of_a.check_tenant(tenant).is_ok(), tenant == Some("a"));
        }
        let tenant = |entry: Entry| entry.tenant;
        assert_eq!(tenant(of_a.entry(None, "x", ("y", "z"), &Value::Null)).as_deref(), Some("a"));
        assert_eq!(tenant(all.entry(Some("b"), "x", ("y", "z"), &Value::Null)).as_deref(), Some("b"));
    }
}
