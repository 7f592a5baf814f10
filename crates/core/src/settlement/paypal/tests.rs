use std::collections::BTreeSet;

use bytes::Bytes;
use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::money::Currency;
use crate::settlement::fetch::listed;
use crate::settlement::spoiled::{odd, spoil};

const APPROVED: (&str, &str) = (
    "CHECKOUT.ORDER.APPROVED",
    r#"{"id":"WH-1","create_time":"2026-03-01T01:00:00.000Z","resource_type":"checkout-order","resource_version":"2.0","event_type":"CHECKOUT.ORDER.APPROVED","resource":{"id":"5O190127TN364715T","status":"APPROVED","intent":"CAPTURE","payer":{"email_address":"customer@example.com","payer_id":"QYR5Z8XDVJNXQ"},"purchase_units":[{"reference_id":"default","custom_id":"order-7","invoice_id":"INV-7","amount":{"currency_code":"JPY","value":"1200"}}]}}"#,
);
const DENIED: (&str, &str) = (
    "PAYMENT.CAPTURE.DENIED",
    r#"{"id":"WH-2","resource_type":"capture","event_type":"PAYMENT.CAPTURE.DENIED","resource":{"id":"7NW873794T343360M","status":"DECLINED","status_details":{"reason":"DECLINED_BY_RISK_FRAUD_FILTERS"},"amount":{"currency_code":"JPY","value":"1200"},"custom_id":"order-7","final_capture":true,"supplementary_data":{"related_ids":{"order_id":"5O190127TN364715T"}}}}"#,
);
const COMPLETED: (&str, &str) = (
    "PAYMENT.CAPTURE.COMPLETED",
    r#"{"id":"WH-3","resource_type":"capture","event_type":"PAYMENT.CAPTURE.COMPLETED","resource":{"id":"27M47624FP291604U","status":"COMPLETED","amount":{"currency_code":"JPY","value":"1200"},"custom_id":"order-7","invoice_id":"INV-7","final_capture":true,"seller_receivable_breakdown":{"gross_amount":{"currency_code":"JPY","value":"1200"},"paypal_fee":{"currency_code":"JPY","value":"83"},"net_amount":{"currency_code":"JPY","value":"1117"}},"supplementary_data":{"related_ids":{"order_id":"5O190127TN364715T"}},"links":[{"href":"https://api.paypal.com/v2/payments/captures/27M47624FP291604U","rel":"self","method":"GET"},{"href":"https://api.paypal.com/v2/checkout/orders/5O190127TN364715T","rel":"up","method":"GET"}]}}"#,
);
const REFUNDED_PARTLY: (&str, &str) = (
    "PAYMENT.CAPTURE.REFUNDED",
    r#"{"id":"WH-4","resource_type":"refund","event_type":"PAYMENT.CAPTURE.REFUNDED","resource":{"id":"1JU08902781691411","status":"COMPLETED","amount":{"currency_code":"JPY","value":"500"},"custom_id":"refund-1","note_to_payer":"damaged","seller_payable_breakdown":{"total_refunded_amount":{"currency_code":"JPY","value":"500"}},"links":[{"href":"https://api.paypal.com/v2/payments/refunds/1JU08902781691411","rel":"self","method":"GET"},{"href":"https://api.paypal.com/v2/payments/captures/27M47624FP291604U","rel":"up","method":"GET"}]}}"#,
);
const REVERSED: (&str, &str) = (
    "PAYMENT.CAPTURE.REVERSED",
    r#"{"id":"WH-5","resource_type":"refund","event_type":"PAYMENT.CAPTURE.REVERSED","resource":{"id":"09E71677NS257044M","status":"COMPLETED","amount":{"currency_code":"JPY","value":"700"},"note_to_payer":"Payment reversed","links":[{"href":"https://api.paypal.com/v2/payments/captures/27M47624FP291604U","rel":"up","method":"GET"}]}}"#,
);
const DISPUTED: (&str, &str) = (
    "CUSTOMER.DISPUTE.CREATED",
    r#"{"id":"WH-6","resource_type":"dispute","event_type":"CUSTOMER.DISPUTE.CREATED","resource":{"dispute_id":"PP-D-1","reason":"MERCHANDISE_OR_SERVICE_NOT_RECEIVED","status":"WAITING_FOR_SELLER_RESPONSE","dispute_life_cycle_stage":"CHARGEBACK","dispute_amount":{"currency_code":"JPY","value":"1200"},"disputed_transactions":[{"seller_transaction_id":"27M47624FP291604U","custom":"order-7"}]}}"#,
);
const RESOLVED: (&str, &str) = (
    "CUSTOMER.DISPUTE.RESOLVED",
    r#"{"id":"WH-7","resource_type":"dispute","event_type":"CUSTOMER.DISPUTE.RESOLVED","resource":{"dispute_id":"PP-D-1","reason":"MERCHANDISE_OR_SERVICE_NOT_RECEIVED","status":"RESOLVED","dispute_life_cycle_stage":"CHARGEBACK","dispute_outcome":{"outcome_code":"RESOLVED_BUYER_FAVOUR"},"dispute_amount":{"currency_code":"JPY","value":"1200"},"disputed_transactions":[{"seller_transaction_id":"27M47624FP291604U"}]}}"#,
);
const ALL: [(&str, &str); 7] = [APPROVED, DENIED, COMPLETED, REFUNDED_PARTLY, REVERSED, DISPUTED, RESOLVED];

fn event((kind, body): (&str, &str)) -> Stored {
    let body = Bytes::from(body.to_owned());
    Stored { event_type: kind.into(), account: None, livemode: None, body, ..Stored::nothing() }
}

fn references() -> References {
    let mut references = References::default();
    references.order.extend(["custom_id", "invoice_id"].map(str::to_owned));
    references
}

fn part(told: (&str, &str)) -> Facts {
    read(&event(told), &references()).unwrap().unwrap().payment.unwrap()
}

fn joined(told: &[(&str, &str)]) -> Facts {
    let mut facts = Facts::default();
    told.iter().for_each(|one| facts.join(&part(*one)));
    facts
}

fn jpy() -> Option<Currency> {
    Currency::parse("jpy")
}

#[test]
fn d2_an_approved_order_waits_for_its_capture() {
    let part = part(APPROVED);
    let names = ["paypal/-/any/5O190127TN364715T"].map(str::to_owned);
    assert_eq!(part.names, BTreeSet::from(names));
    let intent = &part.intents["5O190127TN364715T"];
    assert_eq!((intent.status, intent.amount, intent.received), (IntentStatus::Processing, 1200, 0));
    assert!(part.provider_customers.contains("QYR5Z8XDVJNXQ"));
}

#[test]
fn d2_the_buyer_can_be_told_where_paypal_says_an_address_and_the_merchants_is_not_taken() {
    let email = |body: &str| {
        let facts = part((APPROVED.0, body));
        facts.email().map(|email| email.whole().to_owned())
    };
    assert_eq!(email(APPROVED.1).as_deref(), Some("customer@example.com"));
    let newer = APPROVED.1.replace(
        r#""payer":{"email_address":"customer@example.com","payer_id":"QYR5Z8XDVJNXQ"}"#,
        r#""payment_source":{"paypal":{"email_address":"buyer@example.com","account_id":"QYR5Z8XDVJNXQ"}}"#,
    );
    assert_eq!(email(&newer).as_deref(), Some("buyer@example.com"));
    let payee = newer.replace("payment_source", "payee");
    assert_eq!(email(&payee), None);
    let card =
        newer.replace(r#"{"paypal":{"email_address":"buyer@example.com""#, r#"{"card":{"name":"Hanako""#);
    assert_eq!(email(&card), None);
}

#[test]
fn d2_a_completed_capture_is_paid_with_its_fee() {
    let part = part(COMPLETED);
    assert!(part.names.contains("paypal/-/any/27M47624FP291604U"));
    assert!(part.names.contains("paypal/-/any/5O190127TN364715T"));
    let charge = &part.charges["27M47624FP291604U"];
    assert_eq!((charge.status, charge.captured, charge.refunded), (ChargeStatus::Succeeded, 1200, 0));
    assert_eq!((charge.intent.as_deref(), charge.currency), (Some("5O190127TN364715T"), jpy()));
    let transaction = &part.transactions[charge.transactions.first().unwrap()];
    assert_eq!((transaction.amount, transaction.fee, transaction.net), (1200, 83, 1117));
    let small = COMPLETED.1.replace("\"1117\"", "\"-3\"");
    assert_eq!(self::part((COMPLETED.0, &small)).transactions["27M47624FP291604U"].net, -3);
}

#[test]
fn d2_a_denied_capture_failed_and_a_pending_one_is_open() {
    let charge = &part(DENIED).charges["7NW873794T343360M"];
    assert_eq!((charge.status, charge.captured), (ChargeStatus::Failed, 0));
    assert_eq!(charge.failure.as_deref(), Some("DECLINED_BY_RISK_FRAUD_FILTERS"));
    let pending = COMPLETED.1.replace("\"COMPLETED\"", "\"PENDING\"");
    let charge = &part(("PAYMENT.CAPTURE.PENDING", &pending)).charges["27M47624FP291604U"];
    assert_eq!((charge.status, charge.captured), (ChargeStatus::Pending, 0));
}

#[test]
fn d2_refunds_and_reversals_belong_to_their_capture() {
    let facts = joined(&[REFUNDED_PARTLY, COMPLETED, REVERSED]);
    let refunds: Vec<_> =
        facts.refunds.values().map(|one| (one.status, one.amount, one.charge.as_deref())).collect();
    let capture = Some("27M47624FP291604U");
    assert_eq!(refunds, [(RefundStatus::Succeeded, 700, capture), (RefundStatus::Succeeded, 500, capture)]);
    // A refund's own number is no order.
    assert_eq!(facts.orders, BTreeSet::from(["order-7".to_owned()]));
    let failed = REFUNDED_PARTLY.1.replace("\"COMPLETED\"", "\"FAILED\"");
    let failed = part(("PAYMENT.REFUND.FAILED", &failed));
    assert_eq!(failed.refunds["1JU08902781691411"].status, RefundStatus::Failed);
}

#[test]
fn d2_a_dispute_is_told_by_its_outcome() {
    let status = |told| part(told).disputes["PP-D-1"].status;
    assert_eq!((status(DISPUTED), status(RESOLVED)), (DisputeStatus::NeedsResponse, DisputeStatus::Lost));
    let won = RESOLVED.1.replace("BUYER_FAVOUR", "SELLER_FAVOUR");
    assert_eq!(status((RESOLVED.0, &won)), DisputeStatus::Won);
    let inquiry = DISPUTED.1.replace("CHARGEBACK", "INQUIRY");
    assert_eq!(status((DISPUTED.0, &inquiry)), DisputeStatus::Inquiry);
    assert!(part(DISPUTED).names.contains("paypal/-/any/27M47624FP291604U"));
}

#[test]
fn d6_what_speaks_of_no_payment_is_left_alone() {
    for (kind, body) in [
        ("BILLING.SUBSCRIPTION.CREATED", "{}"),
        ("VAULT.PAYMENT-TOKEN.CREATED", "not even JSON"),
        ("PAYMENT.CAPTURE.COMPLETED", r#"{"resource_type":"newer","resource":{}}"#),
        ("PAYMENT.CAPTURE.COMPLETED", r#"{"resource":{"id":"27M47624FP291604U"}}"#),
    ] {
        assert_eq!(read(&event((kind, body)), &references()), Ok(None), "{kind} {body}");
    }
}

#[test]
fn d2_what_can_be_no_amount_or_currency_is_unreadable() {
    let refused = |(kind, body): (&str, &str), from: &str, to: &str| {
        assert!(body.contains(from), "{body}");
        read(&event((kind, &body.replace(from, to))), &references()).unwrap_err()
    };
    let amount = |text: &str| UnreadableEvent::Amount(format!("{text:?}"));
    assert_eq!(refused(COMPLETED, "\"1200\"", "\"12.5\""), amount("12.5"));
    assert_eq!(refused(REFUNDED_PARTLY, "\"500\"", "\"-500\""), amount("-500"));
    let said = r#""amount":{"currency_code":"JPY","value":"1200"},"#;
    assert_eq!(refused(COMPLETED, said, ""), UnreadableEvent::Amount("nothing".into()));
    assert_eq!(refused(APPROVED, "JPY", "YEN$"), UnreadableEvent::Currency("YEN$".into()));
    assert!(matches!(
        refused(COMPLETED, "27M47624FP291604U\",\"status", "\",\"status"),
        UnreadableEvent::Body(_)
    ));
}

proptest! {
    #[test]
    fn d1_no_body_makes_the_reader_panic(
        which in any::<Index>(), at in any::<Index>(), cut in any::<Index>(), odd in odd(),
    ) {
        let (kind, body) = *which.get(&ALL);
        spoil(body, at, cut, odd, |body| read(&event((kind, body)), &references()));
    }
}

#[test]
fn e2_what_paypal_lists_says_what_its_webhooks_say() {
    for told in ALL {
        let mut body: serde_json::Value = serde_json::from_str(told.1).unwrap();
        body["links"] =
            serde_json::json!([{ "href": "https://api-m.paypal.com/v1/…", "rel": "self", "method": "GET" }]);
        let listed = body.to_string();
        let (id, kind, ..) = listed::event("paypal", &listed);
        assert_eq!((Some(&*id), &*kind), (body["id"].as_str(), told.0));
        let by_list = read(&event((told.0, &listed)), &references()).unwrap();
        assert_eq!(by_list, read(&event(told), &references()).unwrap(), "{}", told.0);
    }
}
