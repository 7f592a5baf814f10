//! The types that our own announcements have. Whoever signs for another source can call an event of theirs the same, so
//! routes and rules that ask for one of these mean ours, unless they name the source they mean.

/// Every type that Sekisho announces.
pub const TYPES: [&str; 60] = [
    "alert.fired",
    "alert.repeated",
    "alert.resolved",
    "balance.credited",
    "balance.debited",
    "billing.active",
    "billing.cancelled",
    "billing.past_due",
    "billing.paused",
    "billing.payment_succeeded",
    "billing.trialing",
    "billing.unpaid",
    "case.acknowledged",
    "case.overdue",
    "case.raised",
    "case.resolved",
    "channel.paused",
    "channel.resumed",
    "compensation.recorded",
    "delivery.dead",
    "fulfilment.done",
    "fulfilment.downgraded",
    "fulfilment.failed",
    "fulfilment.requested",
    "fulfilment.retrying",
    "notice.failed",
    "inquiry.received",
    "payment.cancelled",
    "payment.checkout_ready",
    "payment.currency_mismatch",
    "payment.dispute_lost",
    "payment.dispute_won",
    "payment.disputed",
    "payment.expired",
    "payment.failed",
    "payment.fee_known",
    "payment.linked",
    "payment.overpaid",
    "payment.paid",
    "payment.partially_refunded",
    "payment.processing",
    "payment.refund_cancelled",
    "payment.refund_failed",
    "payment.refund_given_up",
    "payment.refund_ordered",
    "payment.refund_pending",
    "payment.refund_waiting",
    "payment.refunded",
    "payment.underpaid",
    "payment.unlinked",
    "reservation.cancelled",
    "reservation.confirmed",
    "reservation.expired",
    "reservation.extended",
    "route.paused",
    "route.resumed",
    "source.differs",
    "source.gap_closed",
    "source.key_accepted",
    "source.key_refused",
];

/// News for operators, and no fact of business.
const ALERTS: [&str; 13] = [
    "alert.fired",
    "alert.repeated",
    "alert.resolved",
    "channel.paused",
    "channel.resumed",
    "delivery.dead",
    "notice.failed",
    "route.paused",
    "route.resumed",
    "source.differs",
    "source.gap_closed",
    "source.key_accepted",
    "source.key_refused",
];

pub fn is_alert(event_type: &str) -> bool {
    ALERTS.contains(&event_type)
}

pub fn is_announced(event_type: &str) -> bool {
    TYPES.contains(&event_type)
}

/// Whether it begins as one of ours does: `payment.captured`, which KOMOJU has and we don't.
pub fn is_like_announced(event_type: &str) -> bool {
    let family = |of: &'static str| of.split('.').next().expect("a split has a first part");
    event_type.split_once('.').is_some_and(|(own, _)| TYPES.iter().any(|of| family(of) == own))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn c1_every_announcement_that_is_documented_is_known_and_no_other() {
        let page = include_str!("../../../../docs/operating/settlement.md");
        let table = page.split("| type | when | key |").nth(1).unwrap().split("\n\n").next().unwrap();
        let first_cells = table.lines().skip(2).filter_map(|line| line.split('|').nth(1));
        let told: BTreeSet<_> = first_cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
        assert_eq!(told, TYPES.into());
        assert!(is_announced("payment.paid") && !is_announced("payment.captured"));
        assert!(is_like_announced("payment.captured") && is_like_announced("billing.paused"));
        for other in ["payment_intent.succeeded", "payment", "paymentx.paid", "push", ""] {
            assert!(!is_like_announced(other), "{other}");
        }
    }
}
