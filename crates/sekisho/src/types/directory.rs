//! Tenants, customers, staff and subjects, under the ids that the app uses. What the app writes stands last.

use schemars::JsonSchema;
use sekisho_core::calendar::{Day, Zone};
use sekisho_core::directory::{self as core, own_id};
use sekisho_core::mail_address::MailAddress;
use sekisho_core::state::Key;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tenant {
    pub id: String,
    /// `tenant`
    pub object: String,
    pub name: Option<String>,
    pub language: Option<String>,
    pub time_zone: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Customer {
    pub id: String,
    /// `customer`
    pub object: String,
    pub tenant: Option<String>,
    pub name: Option<String>,
    /// Masked, unless asked for with `addresses=full`.
    pub email: Option<String>,
    pub language: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Staff {
    pub id: String,
    /// `staff`
    pub object: String,
    pub tenant: Option<String>,
    /// Both halves as people read them, family name first.
    pub name: Option<String>,
    pub family_name: Option<String>,
    pub given_name: Option<String>,
    /// Masked, unless asked for with `addresses=full`.
    pub email: String,
    pub language: Option<String>,
    /// Whether reminders are wanted.
    pub notifications: bool,
    /// How many days before a deadline reminders begin.
    pub threshold_days: u16,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Subject {
    pub id: String,
    /// `subject`
    pub object: String,
    pub tenant: Option<String>,
    pub name: String,
    pub renewal_due_on: Option<Day>,
    pub assessment_due_on: Option<Day>,
}

/// One of the directory, whichever list it is in.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Member {
    Tenant(Tenant),
    Customer(Customer),
    Staff(Staff),
    Subject(Subject),
}

impl Member {
    /// With its address masked, unless `whole`.
    pub fn of(key: &Key, member: &core::Member, whole: bool) -> Self {
        let (id, object) = (own_id(key).to_owned(), key.kind.name().to_owned());
        let address = |email: &MailAddress| if whole { email.whole().to_owned() } else { email.masked() };
        let language = |language: Option<sekisho_core::language::Language>| {
            language.map(|language| language.name().to_owned())
        };
        match member.clone() {
            core::Member::Tenant(tenant) => Self::Tenant(Tenant {
                id,
                object,
                name: tenant.name,
                language: language(tenant.language),
                time_zone: tenant.time_zone.as_ref().map(|zone: &Zone| zone.name().to_owned()),
            }),
            core::Member::Customer(customer) => Self::Customer(Customer {
                id,
                object,
                tenant: customer.tenant,
                name: customer.name,
                email: customer.email.as_ref().map(address),
                language: language(customer.language),
            }),
            core::Member::Staff(staff) => Self::Staff(Staff {
                id,
                object,
                name: staff.name(),
                tenant: Some(staff.tenant),
                family_name: staff.family_name,
                given_name: staff.given_name,
                email: address(&staff.email),
                language: language(staff.language),
                notifications: staff.notifications,
                threshold_days: staff.threshold_days,
            }),
            core::Member::Subject(subject) => Self::Subject(Subject {
                id,
                object,
                tenant: Some(subject.tenant),
                name: subject.name,
                renewal_due_on: subject.renewal_due_on,
                assessment_due_on: subject.assessment_due_on,
            }),
        }
    }
}

/// What was deleted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Deleted {
    pub id: String,
    /// What it was: `tenant`, `customer`, `billing`, …
    pub object: String,
    /// `true`
    pub deleted: bool,
    /// The status it had, of billing.
    pub was: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTenant {
    pub id: String,
    pub name: Option<String>,
    /// `en` or `ja`.
    pub language: Option<String>,
    /// IANA, such as `Asia/Tokyo`.
    pub time_zone: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewCustomer {
    pub id: String,
    pub tenant: Option<String>,
    pub name: Option<String>,
    pub email: Option<String>,
    /// `en` or `ja`.
    pub language: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewStaff {
    pub id: String,
    /// Default: the tenant that the key belongs to.
    pub tenant: Option<String>,
    pub family_name: Option<String>,
    pub given_name: Option<String>,
    pub email: String,
    /// `en` or `ja`.
    pub language: Option<String>,
    /// Default: true.
    pub notifications: Option<bool>,
    /// 0 to 365; default: 30.
    pub threshold_days: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSubject {
    pub id: String,
    /// Default: the tenant that the key belongs to.
    pub tenant: Option<String>,
    pub name: String,
    pub renewal_due_on: Option<Day>,
    pub assessment_due_on: Option<Day>,
}
