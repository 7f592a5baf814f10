//! One event of each usual Stripe type, as Stripe sends it. All ids in them are made up.

pub const STRIPE: &[(&str, &str)] = &[
    ("charge.dispute.closed", include_str!("../../fixtures/stripe/charge.dispute.closed.json")),
    ("charge.dispute.created", include_str!("../../fixtures/stripe/charge.dispute.created.json")),
    (
        "charge.dispute.funds_reinstated",
        include_str!("../../fixtures/stripe/charge.dispute.funds_reinstated.json"),
    ),
    (
        "charge.dispute.funds_withdrawn",
        include_str!("../../fixtures/stripe/charge.dispute.funds_withdrawn.json"),
    ),
    ("charge.dispute.updated", include_str!("../../fixtures/stripe/charge.dispute.updated.json")),
    ("charge.failed", include_str!("../../fixtures/stripe/charge.failed.json")),
    ("charge.refund.updated", include_str!("../../fixtures/stripe/charge.refund.updated.json")),
    ("charge.refunded", include_str!("../../fixtures/stripe/charge.refunded.json")),
    ("charge.succeeded", include_str!("../../fixtures/stripe/charge.succeeded.json")),
    ("charge.updated", include_str!("../../fixtures/stripe/charge.updated.json")),
    (
        "checkout.session.async_payment_failed",
        include_str!("../../fixtures/stripe/checkout.session.async_payment_failed.json"),
    ),
    (
        "checkout.session.async_payment_succeeded",
        include_str!("../../fixtures/stripe/checkout.session.async_payment_succeeded.json"),
    ),
    ("checkout.session.completed", include_str!("../../fixtures/stripe/checkout.session.completed.json")),
    ("checkout.session.expired", include_str!("../../fixtures/stripe/checkout.session.expired.json")),
    ("customer.created", include_str!("../../fixtures/stripe/customer.created.json")),
    (
        "customer.subscription.created",
        include_str!("../../fixtures/stripe/customer.subscription.created.json"),
    ),
    (
        "customer.subscription.deleted",
        include_str!("../../fixtures/stripe/customer.subscription.deleted.json"),
    ),
    (
        "customer.subscription.updated",
        include_str!("../../fixtures/stripe/customer.subscription.updated.json"),
    ),
    ("invoice.created", include_str!("../../fixtures/stripe/invoice.created.json")),
    ("invoice.finalized", include_str!("../../fixtures/stripe/invoice.finalized.json")),
    ("invoice.paid", include_str!("../../fixtures/stripe/invoice.paid.json")),
    ("invoice.payment_failed", include_str!("../../fixtures/stripe/invoice.payment_failed.json")),
    ("invoice.payment_succeeded", include_str!("../../fixtures/stripe/invoice.payment_succeeded.json")),
    ("invoice_payment.paid", include_str!("../../fixtures/stripe/invoice_payment.paid.json")),
    ("payment_intent.created", include_str!("../../fixtures/stripe/payment_intent.created.json")),
    (
        "payment_intent.partially_funded",
        include_str!("../../fixtures/stripe/payment_intent.partially_funded.json"),
    ),
    (
        "payment_intent.payment_failed",
        include_str!("../../fixtures/stripe/payment_intent.payment_failed.json"),
    ),
    (
        "payment_intent.requires_action",
        include_str!("../../fixtures/stripe/payment_intent.requires_action.json"),
    ),
    ("payment_intent.succeeded", include_str!("../../fixtures/stripe/payment_intent.succeeded.json")),
    ("refund.created", include_str!("../../fixtures/stripe/refund.created.json")),
    ("refund.failed", include_str!("../../fixtures/stripe/refund.failed.json")),
    ("refund.updated", include_str!("../../fixtures/stripe/refund.updated.json")),
];

/// What stands in every made-up id, to be replaced so that each triggered event is about objects of its own.
pub const TAG: &str = "testD";
