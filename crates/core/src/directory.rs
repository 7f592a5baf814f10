//! Who can be told what: tenants with their language and time zone, customers, the staff of a tenant, and the subjects
//! whose deadlines staff are reminded of.
//!
//! Ids are the app's own; those of customers, staff and subjects are their tenant's, so that two tenants may use the same
//! ([`scoped`]). What is kept of each is a plain struct whose fields can't hold what makes no sense; one that was said anew
//! replaces what was said before as a whole. Addresses print masked wherever these are shown or noted.

mod draft;
mod key;
mod view;

use serde::{Deserialize, Serialize};

use crate::calendar::{Day, Zone};
use crate::language::Language;
use crate::mail_address::MailAddress;
use crate::state::{Index, Key, Kind, State};

pub use draft::{DraftEffect, MemberDraft, NoTenant};
pub use key::{own_id, scoped, unscoped};

/// The lists that the directory is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    Tenants,
    Customers,
    Staff,
    Subjects,
}

impl Register {
    pub const ALL: [Self; 4] = [Self::Tenants, Self::Customers, Self::Staff, Self::Subjects];

    /// As paths and commands call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tenants => "tenants",
            Self::Customers => "customers",
            Self::Staff => "staff",
            Self::Subjects => "subjects",
        }
    }

    /// The list that things of this kind are in.
    pub fn of(kind: Kind) -> Option<Self> {
        Self::ALL.into_iter().find(|register| register.kind() == kind)
    }

    pub const fn kind(self) -> Kind {
        match self {
            Self::Tenants => Kind::Tenant,
            Self::Customers => Kind::Customer,
            Self::Staff => Kind::Staff,
            Self::Subjects => Kind::Subject,
        }
    }

    /// One of them, in a sentence.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Tenants => "tenant",
            Self::Customers => "customer",
            Self::Staff => "staff member",
            Self::Subjects => "subject",
        }
    }

    /// What can be said of one, its id first.
    pub const fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Tenants => &["id", "name", "language", "time_zone"],
            Self::Customers => &["id", "tenant", "name", "email", "language"],
            Self::Staff => &[
                "id",
                "tenant",
                "family_name",
                "given_name",
                "email",
                "language",
                "notifications",
                "threshold_days",
            ],
            Self::Subjects => &["id", "tenant", "name", "renewal_due_on", "assessment_due_on"],
        }
    }

    /// What must be said.
    pub const fn needed(self) -> &'static [&'static str] {
        match self {
            Self::Tenants | Self::Customers => &["id"],
            Self::Staff => &["id", "tenant", "email"],
            Self::Subjects => &["id", "tenant", "name"],
        }
    }
}

/// An office: whose customers, staff and subjects these are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tenant {
    pub name: Option<String>,
    /// What its people read, unless one of them says otherwise.
    pub language: Option<Language>,
    /// Where its days begin.
    pub time_zone: Option<Zone>,
}

impl Tenant {
    /// Whose clock it lives by; `otherwise` when it said nothing.
    pub fn zone<'z>(&'z self, otherwise: &'z str) -> &'z str {
        self.time_zone.as_ref().map_or(otherwise, Zone::name)
    }
}

/// Who pays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Customer {
    pub tenant: Option<String>,
    pub name: Option<String>,
    pub email: Option<MailAddress>,
    pub language: Option<Language>,
}

/// Who works for a tenant, and is reminded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Staff {
    pub tenant: String,
    pub family_name: Option<String>,
    pub given_name: Option<String>,
    pub email: MailAddress,
    pub language: Option<Language>,
    /// Whether reminders are wanted.
    pub notifications: bool,
    /// How many days before a deadline reminders begin.
    pub threshold_days: u16,
}

/// Days that a person may be reminded ahead, and how many when nothing is said.
pub const THRESHOLD_DAYS_MAX: u16 = 365;
pub const THRESHOLD_DAYS: u16 = 30;

impl Staff {
    /// As people are called in a letter: family name first.
    pub fn name(&self) -> Option<String> {
        let names: Vec<_> = self.family_name.iter().chain(&self.given_name).map(String::as_str).collect();
        Some(names.join(" ")).filter(|name| !name.is_empty())
    }
}

/// What has deadlines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    pub tenant: String,
    pub name: String,
    pub renewal_due_on: Option<Day>,
    pub assessment_due_on: Option<Day>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Deadline {
    Renewal,
    Assessment,
}

impl Deadline {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Renewal => "renewal",
            Self::Assessment => "assessment",
        }
    }
}

/// A deadline that is near, or over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    pub deadline: Deadline,
    pub on: Day,
    /// 0 is today; negative when it is over.
    pub days_left: i32,
}

impl Subject {
    /// Its deadlines up to so many days after today. Those that are over stay due until somebody says a new day.
    pub fn due_within(&self, today: Day, days: u16) -> Vec<Due> {
        let deadlines =
            [(Deadline::Renewal, self.renewal_due_on), (Deadline::Assessment, self.assessment_due_on)];
        let due = deadlines.into_iter().filter_map(|(deadline, on)| {
            let on = on?;
            Some(Due { deadline, on, days_left: today.days_until(on) })
        });
        due.filter(|due| due.days_left <= i32::from(days)).collect()
    }
}

/// One of the directory, whichever list it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Member {
    Tenant(Tenant),
    Customer(Customer),
    Staff(Staff),
    Subject(Subject),
}

impl Member {
    /// What a list keeps of one.
    pub fn read(register: Register, facts: &str) -> serde_json::Result<Self> {
        Ok(match register {
            Register::Tenants => Self::Tenant(serde_json::from_str(facts)?),
            Register::Customers => Self::Customer(serde_json::from_str(facts)?),
            Register::Staff => Self::Staff(serde_json::from_str(facts)?),
            Register::Subjects => Self::Subject(serde_json::from_str(facts)?),
        })
    }

    /// What is kept; with whole addresses.
    pub fn facts(&self) -> String {
        let facts = match self {
            Self::Tenant(facts) => serde_json::to_string(facts),
            Self::Customer(facts) => serde_json::to_string(facts),
            Self::Staff(facts) => serde_json::to_string(facts),
            Self::Subject(facts) => serde_json::to_string(facts),
        };
        facts.expect("texts, flags and numbers serialise")
    }

    pub const fn register(&self) -> Register {
        match self {
            Self::Tenant(_) => Register::Tenants,
            Self::Customer(_) => Register::Customers,
            Self::Staff(_) => Register::Staff,
            Self::Subject(_) => Register::Subjects,
        }
    }

    /// Whose it is. A tenant is nobody's.
    pub fn tenant(&self) -> Option<&str> {
        match self {
            Self::Tenant(_) => None,
            Self::Customer(customer) => customer.tenant.as_deref(),
            Self::Staff(staff) => Some(&staff.tenant),
            Self::Subject(subject) => Some(&subject.tenant),
        }
    }

    pub const fn email(&self) -> Option<&MailAddress> {
        match self {
            Self::Tenant(_) | Self::Subject(_) => None,
            Self::Customer(customer) => customer.email.as_ref(),
            Self::Staff(staff) => Some(&staff.email),
        }
    }

    /// What lists are filtered by. Of all who share an id, whichever tenant they belong to, the id is the way to them.
    pub fn index(&self, key: &Key) -> Index {
        let id = match self {
            Self::Tenant(_) => None,
            Self::Customer(_) | Self::Staff(_) | Self::Subject(_) => Some(own_id(key).to_owned()),
        };
        Index { tenant: self.tenant().map(str::to_owned), customer: id, ..Index::default() }
    }

    /// Whether this is what is kept already.
    pub fn is_kept_as(&self, state: &State) -> bool {
        !state.is_deleted() && Self::read(self.register(), &state.facts).is_ok_and(|kept| kept == *self)
    }
}

#[cfg(test)]
mod tests;
