//! Rules for when something went wrong: what must hold, for how long, what is then done, and who is told. And the record of
//! what was done.

mod rule;

use serde::{Deserialize, Serialize};

use crate::money::Currency;
use crate::provider::{encode_hex, sha256};
use crate::time::Time;

pub use rule::{CompensationRule, RuleAction, RuleSubject, SYSTEM_FAULT, shipped};

pub const TAG: &str = "cmp_";
/// Characters of what tells one record from another.
const ID_CHARACTERS: usize = 16;

/// What was done, named by its cause: the same is recorded once, and found from its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompensatedBy<'a> {
    /// A refund order of a payment.
    Order { payment: &'a str, key: &'a str },
    /// A refund that nobody here had asked for.
    Provider { payment: &'a str },
    /// Another claim of a reservation.
    Reassign { reservation: &'a str, claim: u32 },
    /// A person, who resolved an episode of a case.
    Person { case: &'a str, episode: u32 },
}

impl CompensatedBy<'_> {
    /// The id of its record.
    pub fn id(self) -> String {
        let name = match self {
            Self::Order { payment, key } => format!("{payment}/{key}"),
            Self::Provider { payment } => format!("{payment}/provider"),
            Self::Reassign { reservation, claim } => format!("reassign/{reservation}/{claim}"),
            Self::Person { case, episode } => format!("manual/{case}/{episode}"),
        };
        format!("{TAG}{}", &encode_hex(sha256(name.as_bytes()))[..ID_CHARACTERS])
    }
}

/// Something that was done because something had gone wrong. Written once, never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compensation {
    #[serde(rename = "type")]
    pub kind: CompensationKind,
    /// `RENDER_FAILURE`, `EXPIRED_PAYMENT`, …; `CUSTOMER_CANCEL`, `OPERATOR`, `PROVIDER`.
    pub trigger: String,
    pub reservation: Option<String>,
    pub payment: Option<String>,
    pub fulfilment: Option<String>,
    pub amount: Option<i64>,
    pub currency: Option<Currency>,
    /// `SYSTEM`, `ADMIN:{name}`, `API:{key}` or `CUSTOMER`.
    pub resolved_by: String,
    pub notes: Option<String>,
    pub at: Time,
    /// The refund order that it records, with the provider's refunds.
    pub order: Option<String>,
    pub refunds: Vec<String>,
    pub livemode: Option<bool>,
    pub tenant: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum CompensationKind {
    Refund,
    SlotReassign,
    ManualResolution,
}

impl CompensationKind {
    pub const ALL: [Self; 3] = [Self::Refund, Self::SlotReassign, Self::ManualResolution];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Refund => "REFUND",
            Self::SlotReassign => "SLOT_REASSIGN",
            Self::ManualResolution => "MANUAL_RESOLUTION",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records are found by these ids in stores that exist.
    #[test]
    fn f6_a_record_is_known_by_its_cause() {
        let key = "cancel/rsv_1";
        for (by, id) in [
            (CompensatedBy::Order { payment: "pay_1", key }, "cmp_8f9a0fe0eefc6603"),
            (CompensatedBy::Provider { payment: "pay_1" }, "cmp_00ef89cbbf6682c7"),
            (CompensatedBy::Reassign { reservation: "rsv_1", claim: 2 }, "cmp_ad440bc690d98f23"),
            (CompensatedBy::Person { case: "case_1", episode: 1 }, "cmp_4beddcde50d729ab"),
        ] {
            assert_eq!(by.id(), id);
        }
    }
}
