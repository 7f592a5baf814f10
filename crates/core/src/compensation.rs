//! Rules for when something went wrong: what must hold, for how long, what is then done, and who is told. And the record of
//! what was done.

mod rule;

use serde::{Deserialize, Serialize};

use crate::money::Currency;
use crate::time::Time;

pub use rule::{CompensationRule, RuleAction, RuleSubject, shipped};

pub const TAG: &str = "cmp_";

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
