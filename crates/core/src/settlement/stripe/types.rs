//! The types of Stripe's events that are understood, by the object they carry. Any other type of a known object is
//! skipped: what it means, and whether its object is as usual, nobody here knows.

const TYPES: [(&str, &[&str]); 10] = [
    (
        "payment_intent",
        &[
            "payment_intent.amount_capturable_updated",
            "payment_intent.canceled",
            "payment_intent.created",
            "payment_intent.partially_funded",
            "payment_intent.payment_failed",
            "payment_intent.processing",
            "payment_intent.requires_action",
            "payment_intent.succeeded",
        ],
    ),
    (
        "charge",
        &[
            "charge.captured",
            "charge.expired",
            "charge.failed",
            "charge.pending",
            "charge.refunded",
            "charge.succeeded",
            "charge.updated",
        ],
    ),
    (
        "checkout.session",
        &[
            "checkout.session.async_payment_failed",
            "checkout.session.async_payment_succeeded",
            "checkout.session.completed",
            "checkout.session.expired",
        ],
    ),
    ("refund", &["charge.refund.updated", "refund.created", "refund.failed", "refund.updated"]),
    (
        "dispute",
        &[
            "charge.dispute.closed",
            "charge.dispute.created",
            "charge.dispute.funds_reinstated",
            "charge.dispute.funds_withdrawn",
            "charge.dispute.updated",
        ],
    ),
    ("balance_transaction", &[]),
    (
        "subscription",
        &[
            "customer.subscription.created",
            "customer.subscription.deleted",
            "customer.subscription.paused",
            "customer.subscription.pending_update_applied",
            "customer.subscription.pending_update_expired",
            "customer.subscription.resumed",
            "customer.subscription.trial_will_end",
            "customer.subscription.updated",
        ],
    ),
    (
        "invoice",
        &[
            "invoice.created",
            "invoice.finalization_failed",
            "invoice.finalized",
            "invoice.marked_uncollectible",
            "invoice.overdue",
            "invoice.overpaid",
            "invoice.paid",
            "invoice.payment_action_required",
            "invoice.payment_attempt_required",
            "invoice.payment_failed",
            "invoice.payment_succeeded",
            "invoice.sent",
            "invoice.upcoming",
            "invoice.updated",
            "invoice.voided",
            "invoice.will_be_due",
        ],
    ),
    ("invoice_payment", &["invoice_payment.paid"]),
    ("customer", &["customer.created", "customer.updated"]),
];

/// Whether events of this type are read at all.
pub fn is_read(event_type: &str) -> bool {
    TYPES.iter().any(|(_, types)| types.contains(&event_type))
}

/// Patterns that all of them fit, and few others: so many Stripe takes in one question.
pub const LISTED: [&str; 9] = [
    "charge.*",
    "checkout.session.*",
    "customer.created",
    "customer.subscription.*",
    "customer.updated",
    "invoice.*",
    "invoice_payment.*",
    "payment_intent.*",
    "refund.*",
];

pub(super) fn is_known(object: &str, event_type: &str) -> bool {
    // What was read from Stripe's API comes in as an event of ours.
    let fetched = event_type.strip_prefix("stripe.") == Some(object);
    let mut known = TYPES.iter().filter(|(kind, _)| *kind == object);
    known.any(|(_, types)| fetched || types.contains(&event_type))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Pattern;

    #[test]
    fn e2_every_type_that_is_read_is_listed() {
        let listed = LISTED.map(Pattern::new);
        for (_, types) in TYPES {
            for one in types {
                assert!(listed.iter().any(|pattern| pattern.matches(one)), "{one}");
                assert!(is_read(one));
            }
        }
        assert!(!is_read("product.created"));
    }
}
