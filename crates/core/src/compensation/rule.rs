//! One rule: a condition over an order, and what follows once it has held long enough. Rules see no clock: how long a
//! condition has held is a fact of its case.

use crate::rule::{Rule, RuleError};
use crate::time::HOUR_MS;

/// What the probe of holds reports: rules of this trigger go by that, and by no order.
pub const SYSTEM_FAULT: &str = "SYSTEM_FAULT";

#[derive(Clone, Debug)]
pub struct CompensationRule {
    pub name: String,
    /// Rules of one trigger and subject share a case.
    pub trigger: String,
    pub when: Rule,
    pub subject: RuleSubject,
    pub after_ms: i64,
    pub action: RuleAction,
    /// 1 to 3; 0 tells nobody.
    pub level: u8,
    /// `chat`, `mail`, `pager`, or names of channels.
    pub tell: Vec<String>,
    /// Within which somebody must have answered; 0: no answer is due.
    pub respond_within_ms: i64,
    pub is_enabled: bool,
}

/// What a rule is about: the least of an order that its condition names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleSubject {
    Fulfilment,
    Reservation,
    Payment,
    /// No order: what nodes report of themselves.
    System,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleAction {
    None,
    /// All that is left of the payment goes back.
    Refund,
    /// What came beyond what was asked for goes back.
    RefundSurplus,
    /// The provider is asked what became of the payment, again and again while the hold lasts. Opens no case.
    Fetch,
}

impl RuleAction {
    pub const ALL: [Self; 4] = [Self::None, Self::Refund, Self::RefundSurplus, Self::Fetch];

    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Refund => "refund",
            Self::RefundSurplus => "refund_surplus",
            Self::Fetch => "fetch",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.name() == text)
    }

    /// Whether money goes back by it.
    pub const fn refunds(self) -> bool {
        match self {
            Self::None | Self::Fetch => false,
            Self::Refund | Self::RefundSurplus => true,
        }
    }
}

impl CompensationRule {
    /// A rule that does nothing and tells nobody yet.
    pub fn new(name: &str, trigger: &str, when: &str) -> Result<Self, RuleError> {
        let subject = if trigger == SYSTEM_FAULT {
            RuleSubject::System
        } else if when.contains("fulfilment.") {
            RuleSubject::Fulfilment
        } else if when.contains("reservation.") {
            RuleSubject::Reservation
        } else {
            RuleSubject::Payment
        };
        Ok(Self {
            name: name.to_owned(),
            trigger: trigger.to_owned(),
            when: Rule::compile(when)?,
            subject,
            after_ms: 0,
            action: RuleAction::None,
            level: 0,
            tell: Vec::new(),
            respond_within_ms: 0,
            is_enabled: true,
        })
    }
}

/// What holds if nobody writes anything else.
pub fn shipped() -> Vec<CompensationRule> {
    let rule = |name: &str, trigger: &str, when: &str| {
        CompensationRule::new(name, trigger, when).expect("shipped rules are tested")
    };
    let to = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let response = 4 * HOUR_MS;
    vec![
        CompensationRule {
            level: 1,
            tell: to(&["chat"]),
            ..rule(
                "RENDER_FAILURE_FIRST",
                "RENDER_FAILURE",
                "fulfilment.retry_count >= 1 && fulfilment.status != \"done\" && !fulfilment.downgraded && !fulfilment.stopped",
            )
        },
        CompensationRule {
            level: 2,
            tell: to(&["chat", "mail"]),
            respond_within_ms: response,
            ..rule(
                "RENDER_FAILURE_THIRD",
                "RENDER_FAILURE",
                "fulfilment.status == \"failed\" && !fulfilment.downgraded && !fulfilment.stopped",
            )
        },
        CompensationRule {
            after_ms: 24 * HOUR_MS,
            action: RuleAction::Refund,
            level: 3,
            tell: to(&["pager"]),
            ..rule(
                "RENDER_FAILURE_TIMEOUT",
                "RENDER_FAILURE",
                "fulfilment.status == \"failed\" && fulfilment.tier == \"paid\"",
            )
        },
        CompensationRule {
            action: RuleAction::Refund,
            level: 1,
            tell: to(&["chat"]),
            ..rule(
                "EXPIRED_AFTER_PAYMENT",
                "EXPIRED_PAYMENT",
                "reservation.status in [\"expired\", \"cancelled\"] && !reservation.was_confirmed && payment.amount_kept > 0",
            )
        },
        CompensationRule {
            after_ms: 10 * 60_000,
            action: RuleAction::Fetch,
            ..rule(
                "WEBHOOK_DELAY",
                "WEBHOOK_DELAY",
                "reservation.status == \"hold\" && payment.status in [\"unpaid\", \"processing\"]",
            )
        },
        CompensationRule {
            level: 2,
            tell: to(&["chat", "mail"]),
            respond_within_ms: response,
            ..rule(
                "REFUND_FAILED",
                "REFUND_FAILED",
                "payment.attention in [\"refund_failed\", \"refund_given_up\", \"refund_by_hand\", \"refund_held_back\"]",
            )
        },
        CompensationRule {
            level: 2,
            tell: to(&["chat", "mail"]),
            ..rule("SYSTEM_FAULT", SYSTEM_FAULT, "true")
        },
        CompensationRule {
            after_ms: HOUR_MS,
            level: 3,
            tell: to(&["pager", "mail"]),
            ..rule("SYSTEM_FAULT_UNRESOLVED", SYSTEM_FAULT, "true")
        },
        CompensationRule {
            action: RuleAction::RefundSurplus,
            level: 2,
            tell: to(&["mail"]),
            is_enabled: false,
            ..rule("DUPLICATE_PAYMENT", "DUPLICATE_PAYMENT", "payment.attention == \"overpaid\"")
        },
    ]
}
