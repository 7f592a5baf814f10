//! Rules that are in force for orders, and how they stand for one.

use schemars::JsonSchema;
use sekisho_core::Time;
use serde::{Deserialize, Serialize};

/// What is done when something goes wrong with an order, as shipped or as `[[compensation]]` says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompensationRule {
    pub name: String,
    /// `compensation_rule`.
    pub object: String,
    /// Rules of one trigger share a case.
    pub trigger: String,
    /// A CEL condition over payment, reservation and fulfilment.
    pub when: String,
    /// How long it must have held.
    pub after_seconds: i64,
    /// `none`, `refund` or `refund_surplus`.
    pub action: String,
    /// 1 to 3; 0 tells nobody.
    pub level: u8,
    /// `chat`, `mail`, `pager`, or names of channels.
    pub tell: Vec<String>,
    /// Within which a person must have acknowledged; 0: no answer is due.
    pub respond_within_seconds: i64,
    pub enabled: bool,
}

/// Which rules hold for an order now, and when they act.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RuleCheck {
    /// The id that was asked about.
    pub order: String,
    /// `rule_check`.
    pub object: String,
    pub at: Time,
    pub rules: Vec<CheckedRule>,
}

/// One rule, asked about one part of an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckedRule {
    pub rule: String,
    /// What it was asked about: the id of a fulfilment, a reservation or a payment.
    pub subject: String,
    /// `idle` (does not hold), `waiting` (holds, and acts at `acts_at` if that stays so), `done` (holds and has acted), `stopped`
    /// (holds, but a person resolved its case first) or `unanswered` (has no answer, and so does not hold).
    pub status: String,
    /// Since when it has held.
    pub since: Option<Time>,
    pub acts_at: Option<Time>,
    /// `none`, `refund` or `refund_surplus`.
    pub action: String,
    pub level: u8,
    /// Its case; it is opened once a rule of it holds.
    pub case: String,
    /// Why it has no answer.
    pub error: Option<String>,
}
