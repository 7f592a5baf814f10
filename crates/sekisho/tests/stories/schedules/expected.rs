//! What the fixtures expect, word by word.

use sekisho_core::Time;
use sekisho_core::settlement::payment::{PaymentStatus, RefundStatus};
use sekisho_core::settlement::{billing, payment};
use serde_json::{Value, json};

use super::scenario::{Scenario, Variant};

pub fn check(
    scenario: &Scenario,
    variant: Variant,
    payments: &[payment::Facts],
    billings: &[billing::BillingFacts],
    announced: &[(String, String)],
    place: &str,
) {
    let expected = scenario.expected.as_object().unwrap();
    if expected.contains_key("subscription_status") {
        let [billing] = billings else { panic!("{place}: {} billings", billings.len()) };
        for (field, wanted) in expected {
            assert_eq!(of_billing(field, billing).as_ref(), Some(wanted), "{place}: {field} of {billing:?}");
        }
        return;
    }
    let [facts] = payments else { panic!("{place}: {} payments", payments.len()) };
    let derived = payment::Derived::of(facts);
    let told = |kind: &str| announced.iter().filter(|(_, told)| told == kind).count();
    for (field, wanted) in expected.iter().filter(|(field, _)| *field != "note") {
        let found = match &**field {
            "fulfil_count" => json!(told("payment.paid")),
            "order_ref" => {
                let order = wanted.as_str().unwrap();
                let found = derived.reference.as_deref().unwrap_or_default();
                assert!(found.starts_with(order), "{place}: {found}");
                continue;
            }
            other => of_payment(other, facts, &derived),
        };
        assert_eq!(found, *wanted, "{place}: {field}");
    }
    let credited = usize::from(variant == Variant::TopUp && scenario.order.is_some() && derived.received > 0);
    let key = format!("/balance.credited/{}", derived.received);
    assert_eq!(announced.iter().filter(|(id, _)| id.ends_with(&key)).count(), credited, "{place}");
}

fn of_payment(field: &str, facts: &payment::Facts, derived: &payment::Derived) -> Value {
    match field {
        "session_status" => json!(facts.session_status()),
        "payment_status" => json!(derived.payment_status()),
        "settled" => json!(derived.received > 0),
        "failed" => json!(derived.status == PaymentStatus::Failed),
        "refunded" => json!(derived.status == PaymentStatus::Refunded),
        "amount_received" => json!(derived.received),
        "amount_refunded" => json!(derived.refunded),
        "fee" => json!(derived.fee),
        "net" => json!(derived.net),
        "currency" => json!(derived.currency),
        "refund_count" => json!(facts.refunds.len()),
        "refund_status" => json!(facts.refunds.values().map(|refund| refund.status).max()),
        "manual_attention" => {
            json!(
                facts.refunds.values().any(|one| one.status == RefundStatus::Failed)
                    && derived.attention.is_some()
            )
        }
        "disputed" => json!(derived.disputed),
        "dispute_status" => json!(derived.dispute_status),
        "dispute_fee" => json!(derived.dispute_fee),
        "net_of_dispute" => json!(derived.net_of_dispute),
        other => panic!("nobody knows what {other} means"),
    }
}

fn of_billing(field: &str, facts: &billing::BillingFacts) -> Option<Value> {
    let derived = billing::BillingDerived::of(facts);
    let invoices = || facts.invoices.iter();
    Some(match field {
        "subscription_status" => match derived.status {
            billing::BillingStatus::Cancelled => json!("canceled"),
            other => json!(other.name()),
        },
        "access" => json!(derived.access(Time::from_seconds(1_782_872_182), billing::GRACE)),
        "paid_invoices" => json!(derived.paid_invoices),
        "amount_paid_total" => json!(derived.amount_paid_total),
        "paid_through" => json!(derived.paid_through.map(Time::seconds)),
        "invoice_status" => invoices().map(|(id, invoice)| (id.clone(), json!(invoice.status))).collect(),
        "links" => {
            let links: Value =
                invoices().map(|(id, invoice)| (id.clone(), json!(invoice.intents.first()))).collect();
            json!({ "invoice_to_payment_intent": links })
        }
        _ => return None,
    })
}
