use bytes::Bytes;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;

use super::*;
use crate::mail_address::MailAddress;
use crate::settlement;
use crate::settlement::fetch::listed;
use crate::settlement::spoiled::{odd, spoil};
use crate::source_name::Origin;

const APPROVED: (&str, &str) = (
    "payment.created",
    r#"{"merchant_id":"6SSW7HV8K2ST5","type":"payment.created","event_id":"evt-1","created_at":"2026-03-01T01:00:00.000Z","data":{"type":"payment","id":"hYy9pRFVxpDsO1FB05SunFWUe9JZY","object":{"payment":{"id":"hYy9pRFVxpDsO1FB05SunFWUe9JZY","amount_money":{"amount":1000,"currency":"JPY"},"tip_money":{"amount":100,"currency":"JPY"},"total_money":{"amount":1100,"currency":"JPY"},"status":"APPROVED","source_type":"CARD","location_id":"S8GWD5R9QB376","order_id":"03O3USaPaAaFnI6kkwB1JxGgBsUZY","reference_id":"order-7","customer_id":"RDX9Z4XTIZR7MRZJUXNY9HUK6I","receipt_url":"https://squareup.com/receipt/preview/hYy9"}}}}"#,
);
const FAILED: (&str, &str) = (
    "payment.updated",
    r#"{"merchant_id":"6SSW7HV8K2ST5","type":"payment.updated","event_id":"evt-2","created_at":"2026-03-01T01:00:00.000Z","data":{"type":"payment","id":"hYy9pRFVxpDsO1FB05SunFWUe9JZY","object":{"payment":{"id":"hYy9pRFVxpDsO1FB05SunFWUe9JZY","amount_money":{"amount":1000,"currency":"JPY"},"tip_money":{"amount":100,"currency":"JPY"},"total_money":{"amount":1100,"currency":"JPY"},"status":"FAILED","source_type":"CARD","location_id":"S8GWD5R9QB376","order_id":"03O3USaPaAaFnI6kkwB1JxGgBsUZY","reference_id":"order-7","customer_id":"RDX9Z4XTIZR7MRZJUXNY9HUK6I","receipt_url":"https://squareup.com/receipt/preview/hYy9","card_details":{"status":"FAILED","errors":[{"category":"PAYMENT_METHOD_ERROR","code":"GENERIC_DECLINE"}]}}}}}"#,
);
const COMPLETED: (&str, &str) = (
    "payment.updated",
    r#"{"merchant_id":"6SSW7HV8K2ST5","type":"payment.updated","event_id":"evt-3","created_at":"2026-03-01T01:00:00.000Z","data":{"type":"payment","id":"hYy9pRFVxpDsO1FB05SunFWUe9JZY","object":{"payment":{"id":"hYy9pRFVxpDsO1FB05SunFWUe9JZY","amount_money":{"amount":1000,"currency":"JPY"},"tip_money":{"amount":100,"currency":"JPY"},"total_money":{"amount":1100,"currency":"JPY"},"status":"COMPLETED","source_type":"CARD","location_id":"S8GWD5R9QB376","order_id":"03O3USaPaAaFnI6kkwB1JxGgBsUZY","reference_id":"order-7","customer_id":"RDX9Z4XTIZR7MRZJUXNY9HUK6I","receipt_url":"https://squareup.com/receipt/preview/hYy9"}}}}"#,
);
const BOOKED: (&str, &str) = (
    "payment.updated",
    r#"{"merchant_id":"6SSW7HV8K2ST5","type":"payment.updated","event_id":"evt-4","created_at":"2026-03-01T01:00:00.000Z","data":{"type":"payment","id":"hYy9pRFVxpDsO1FB05SunFWUe9JZY","object":{"payment":{"id":"hYy9pRFVxpDsO1FB05SunFWUe9JZY","amount_money":{"amount":1000,"currency":"JPY"},"tip_money":{"amount":100,"currency":"JPY"},"total_money":{"amount":1100,"currency":"JPY"},"status":"COMPLETED","source_type":"CARD","location_id":"S8GWD5R9QB376","order_id":"03O3USaPaAaFnI6kkwB1JxGgBsUZY","reference_id":"order-7","customer_id":"RDX9Z4XTIZR7MRZJUXNY9HUK6I","receipt_url":"https://squareup.com/receipt/preview/hYy9","processing_fee":[{"effective_at":"2026-03-01T03:00:00.000Z","type":"INITIAL","amount_money":{"amount":40,"currency":"JPY"}},{"effective_at":"2026-03-01T03:00:00.000Z","type":"ADJUSTMENT","amount_money":{"amount":-4,"currency":"JPY"}}],"refunded_money":{"amount":400,"currency":"JPY"}}}}}"#,
);
const REFUND_PENDING: (&str, &str) = (
    "refund.created",
    r#"{"merchant_id":"6SSW7HV8K2ST5","type":"refund.created","event_id":"evt-5","created_at":"2026-03-02T01:00:00.000Z","data":{"type":"refund","id":"hYy9_1","object":{"refund":{"id":"hYy9_1","amount_money":{"amount":400,"currency":"JPY"},"status":"PENDING","payment_id":"hYy9pRFVxpDsO1FB05SunFWUe9JZY","order_id":"9ltv0bx5PuvGXUYHYHxYSKEqC3IZY","location_id":"S8GWD5R9QB376","reason":"damaged","processing_fee":[{"amount_money":{"amount":-34,"currency":"JPY"},"type":"INITIAL"}]}}}}"#,
);
const REFUNDED_PARTLY: (&str, &str) = (
    "refund.updated",
    r#"{"merchant_id":"6SSW7HV8K2ST5","type":"refund.updated","event_id":"evt-6","created_at":"2026-03-02T01:00:00.000Z","data":{"type":"refund","id":"hYy9_1","object":{"refund":{"id":"hYy9_1","amount_money":{"amount":400,"currency":"JPY"},"status":"COMPLETED","payment_id":"hYy9pRFVxpDsO1FB05SunFWUe9JZY","order_id":"9ltv0bx5PuvGXUYHYHxYSKEqC3IZY","location_id":"S8GWD5R9QB376","reason":"damaged","processing_fee":[{"amount_money":{"amount":-34,"currency":"JPY"},"type":"INITIAL"}]}}}}"#,
);
const REFUNDED: (&str, &str) = (
    "refund.updated",
    r#"{"merchant_id":"6SSW7HV8K2ST5","type":"refund.updated","event_id":"evt-7","created_at":"2026-03-02T01:00:00.000Z","data":{"type":"refund","id":"hYy9_2","object":{"refund":{"id":"hYy9_2","amount_money":{"amount":700,"currency":"JPY"},"status":"COMPLETED","payment_id":"hYy9pRFVxpDsO1FB05SunFWUe9JZY","order_id":"9ltv0bx5PuvGXUYHYHxYSKEqC3IZY","location_id":"S8GWD5R9QB376","reason":"damaged","processing_fee":[{"amount_money":{"amount":-34,"currency":"JPY"},"type":"INITIAL"}]}}}}"#,
);
const DISPUTED: (&str, &str) = (
    "dispute.state.updated",
    r#"{"merchant_id":"6SSW7HV8K2ST5","type":"dispute.state.updated","event_id":"evt-9","created_at":"2026-03-09T01:00:00.000Z","data":{"type":"dispute","id":"ORSEVtZAJxb37RA1EiGw","object":{"dispute":{"id":"ORSEVtZAJxb37RA1EiGw","dispute_id":"ORSEVtZAJxb37RA1EiGw","amount_money":{"amount":1100,"currency":"JPY"},"disputed_payment":{"payment_id":"hYy9pRFVxpDsO1FB05SunFWUe9JZY"},"reason":"AMOUNT_DIFFERS","state":"LOST","version":6}}}}"#,
);
const ALL: [(&str, &str); 8] =
    [APPROVED, FAILED, COMPLETED, BOOKED, REFUND_PENDING, REFUNDED_PARTLY, REFUNDED, DISPUTED];
const ID: &str = "hYy9pRFVxpDsO1FB05SunFWUe9JZY";

fn event((kind, body): (&str, &str)) -> Stored {
    let body = Bytes::from(body.to_owned());
    Stored {
        event_type: kind.into(),
        account: Some("6SSW7HV8K2ST5".into()),
        livemode: None,
        body,
        ..Stored::nothing()
    }
}

fn references() -> References {
    let mut references = References::default();
    references.order.push("reference_id".to_owned());
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
fn d2_an_approved_payment_is_no_payment_yet() {
    let part = part(APPROVED);
    let realm = "square/6SSW7HV8K2ST5/any";
    let ids = [ID, "03O3USaPaAaFnI6kkwB1JxGgBsUZY"].map(|id| format!("{realm}/{id}"));
    let names = ids.into_iter().collect();
    assert_eq!(part.names, names);
    let intent = &part.intents[ID];
    assert_eq!((intent.status, intent.amount, intent.received), (IntentStatus::Processing, 1000, 0));
    assert!(part.charges.is_empty());
    let cancelled = APPROVED.1.replace("\"APPROVED\"", "\"CANCELED\"");
    assert_eq!(self::part((APPROVED.0, &cancelled)).intents[ID].status, IntentStatus::Cancelled);
}

#[test]
fn d2_a_completed_payment_is_paid_and_its_fee_comes_later() {
    let facts = part(COMPLETED);
    let charge = &facts.charges[ID];
    assert_eq!((charge.status, charge.captured, charge.currency), (ChargeStatus::Succeeded, 1000, jpy()));
    assert_eq!(charge.tip, 100);
    assert_eq!((charge.transactions.first(), facts.transactions.len()), (None, 0));
    let facts = joined(&[BOOKED, COMPLETED]);
    let transaction = &facts.transactions[facts.charges[ID].transactions.first().unwrap()];
    assert_eq!((transaction.amount, transaction.fee, transaction.net), (1100, 36, 1064));
}

#[test]
fn d2_the_buyer_can_be_told_where_square_knows_an_address() {
    let known =
        COMPLETED.1.replace("\"reference_id\"", "\"buyer_email_address\":\"a@example.com\",\"reference_id\"");
    let facts = part((COMPLETED.0, &known));
    assert_eq!(facts.email().map(MailAddress::whole), Some("a@example.com"));
    assert!(part(COMPLETED).emails.is_empty());
}

#[test]
fn d2_a_failed_payment_says_why() {
    let facts = part(FAILED);
    let intent = &facts.intents[ID];
    assert_eq!((intent.status, intent.failed), (IntentStatus::Failed, true));
    assert_eq!(intent.failure.as_deref(), Some("GENERIC_DECLINE"));
}

#[test]
fn d2_refunds_move_up_their_own_rank() {
    let facts = joined(&[REFUNDED_PARTLY, COMPLETED, REFUND_PENDING, REFUNDED]);
    let refunds: Vec<_> =
        facts.refunds.values().map(|one| (one.status, one.amount, one.charge.as_deref())).collect();
    assert_eq!(refunds, [(RefundStatus::Succeeded, 400, Some(ID)), (RefundStatus::Succeeded, 700, Some(ID))]);
    let rejected = REFUNDED.1.replace("\"COMPLETED\"", "\"REJECTED\"");
    let facts = joined(&[(REFUNDED.0, &rejected), REFUNDED]);
    let refund = &facts.refunds["hYy9_2"];
    assert_eq!((refund.status, refund.failure.as_deref()), (RefundStatus::Failed, Some("REJECTED")));
}

#[test]
fn d2_a_lost_dispute_took_the_money() {
    let dispute = &part(DISPUTED).disputes["ORSEVtZAJxb37RA1EiGw"];
    assert_eq!((dispute.status, dispute.amount, dispute.withdrawn), (DisputeStatus::Lost, 1100, 1100));
    assert_eq!(dispute.charge.as_deref(), Some(ID));
    let open = DISPUTED.1.replace("\"LOST\"", "\"EVIDENCE_REQUIRED\"");
    let open = &part(("dispute.created", &open)).disputes["ORSEVtZAJxb37RA1EiGw"];
    assert_eq!((open.status, open.withdrawn), (DisputeStatus::NeedsResponse, 0));
}

#[test]
fn d6_what_speaks_of_no_payment_is_left_alone() {
    for (kind, body) in [
        ("order.created", "{}"),
        ("customer.created", "not even JSON"),
        ("dispute.evidence.added", r#"{"data":{"type":"dispute_evidence","object":{"evidence":{}}}}"#),
        ("payment.updated", r#"{"merchant_id":"M0","data":{"type":"payment","id":"x"}}"#),
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
    assert_eq!(refused(COMPLETED, ":1100", ":-1100"), UnreadableEvent::Amount("-1100".into()));
    assert_eq!(refused(BOOKED, ":-4", ":-10000000000001"), UnreadableEvent::Amount("-10000000000001".into()));
    assert_eq!(
        refused(REFUNDED, "JPY", "UNKNOWN_CURRENCY"),
        UnreadableEvent::Currency("UNKNOWN_CURRENCY".into())
    );
    assert!(matches!(refused(COMPLETED, ":1100", ":\"1100\""), UnreadableEvent::Body(_)));
    assert_eq!(refused(COMPLETED, "_money", "_other"), UnreadableEvent::Amount("nothing".into()));
    assert!(matches!(refused(COMPLETED, ID, ""), UnreadableEvent::Body(_)));
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
fn e2_what_square_lists_says_what_its_webhooks_say() {
    let origin = Origin { provider: "square", livemode: None };
    for told in [APPROVED, FAILED, COMPLETED, BOOKED, REFUND_PENDING, REFUNDED_PARTLY, REFUNDED] {
        let body: Value = serde_json::from_str(told.1).unwrap();
        let kind = body["data"]["type"].as_str().unwrap();
        let object = &body["data"]["object"][kind];
        let fetched = listed::object(ApiProvider::Square, Some("6SSW7HV8K2ST5"), None, kind, object);
        assert_eq!(fetched.event_type, format!("square.{kind}"));
        let by_list = super::super::untimed(settlement::read(origin, &fetched, &references()).unwrap());
        assert_eq!(by_list, read(&event(told), &references()).unwrap(), "{}", told.0);
        let (id, kind_of_event, _, account) = listed::event("square", told.1);
        assert_eq!((Some(&*id), &*kind_of_event), (body["event_id"].as_str(), told.0));
        assert_eq!(account.as_deref(), Some("6SSW7HV8K2ST5"));
    }
    let other = listed::object(ApiProvider::Square, None, None, "invoice", &serde_json::json!({ "id": "1" }));
    assert_eq!(settlement::read(origin, &other, &references()), Ok(None));
}
