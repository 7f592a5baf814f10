use std::collections::BTreeSet;

use bytes::Bytes;
use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::settlement;
use crate::settlement::fetch::listed;
use crate::settlement::payment::Facts;
use crate::settlement::spoiled::{odd, spoil};
use crate::source_name::Origin;

const FAILED: (&str, &str) = (
    "payment.failed",
    r#"{"id":"evt_1","type":"payment.failed","resource":"event","data":{"id":"7mom8rbw56emtroziokdt9q2i","resource":"payment","status":"pending","amount":1000,"tax":100,"customer":null,"payment_deadline":"2026-03-08T14:59:59Z","payment_details":{"type":"konbini","store":"lawson","email":"customer@example.com"},"payment_method_fee":190,"total":1290,"currency":"JPY","description":null,"captured_at":null,"external_order_num":"order-7","metadata":{"tenant":"office-1","count":3}},"created_at":"2026-03-01T01:00:00Z","reason":null}"#,
);
const AUTHORIZED: (&str, &str) = (
    "payment.authorized",
    r#"{"id":"evt_2","type":"payment.authorized","resource":"event","data":{"id":"7mom8rbw56emtroziokdt9q2i","resource":"payment","status":"authorized","amount":1000,"tax":100,"customer":null,"payment_deadline":"2026-03-08T14:59:59Z","payment_details":{"type":"konbini","store":"lawson","email":"customer@example.com"},"payment_method_fee":190,"total":1290,"currency":"JPY","description":null,"captured_at":null,"external_order_num":"order-7","metadata":{"tenant":"office-1","count":3}},"created_at":"2026-03-01T01:00:00Z","reason":null}"#,
);
const CAPTURED: (&str, &str) = (
    "payment.captured",
    r#"{"id":"evt_3","type":"payment.captured","resource":"event","data":{"id":"7mom8rbw56emtroziokdt9q2i","resource":"payment","status":"captured","amount":1000,"tax":100,"customer":null,"payment_deadline":"2026-03-08T14:59:59Z","payment_details":{"type":"konbini","store":"lawson","email":"customer@example.com"},"payment_method_fee":190,"total":1290,"currency":"JPY","description":null,"captured_at":null,"external_order_num":"order-7","metadata":{"tenant":"office-1","count":3}},"created_at":"2026-03-01T01:00:00Z","reason":null}"#,
);
const REFUNDED_PARTLY: (&str, &str) = (
    "payment.refund.created",
    r#"{"id":"evt_4","type":"payment.refund.created","resource":"event","data":{"id":"7mom8rbw56emtroziokdt9q2i","resource":"payment","status":"captured","amount":1000,"tax":100,"customer":null,"payment_deadline":"2026-03-08T14:59:59Z","payment_details":{"type":"konbini","store":"lawson","email":"customer@example.com"},"payment_method_fee":190,"total":1290,"currency":"JPY","description":null,"captured_at":null,"external_order_num":"order-7","metadata":{"tenant":"office-1","count":3},"amount_refunded":500,"refunds":[{"id":"ref_1","resource":"refund","amount":500,"currency":"JPY","payment":"7mom8rbw56emtroziokdt9q2i","description":"damaged","redirect_url":null,"chargeback":false,"created_at":"2026-03-05T01:00:00Z"}]},"created_at":"2026-03-01T01:00:00Z","reason":null}"#,
);
const REFUNDED: (&str, &str) = (
    "payment.refunded",
    r#"{"id":"evt_5","type":"payment.refunded","resource":"event","data":{"id":"7mom8rbw56emtroziokdt9q2i","resource":"payment","status":"refunded","amount":1000,"tax":100,"customer":null,"payment_deadline":"2026-03-08T14:59:59Z","payment_details":{"type":"konbini","store":"lawson","email":"customer@example.com"},"payment_method_fee":190,"total":1290,"currency":"JPY","description":null,"captured_at":null,"external_order_num":"order-7","metadata":{"tenant":"office-1","count":3},"amount_refunded":1290,"refunds":[{"id":"ref_1","resource":"refund","amount":500,"currency":"JPY","payment":"7mom8rbw56emtroziokdt9q2i","description":"damaged","redirect_url":null,"chargeback":false,"created_at":"2026-03-05T01:00:00Z"},{"id":"ref_2","resource":"refund","amount":790,"currency":"JPY","payment":"7mom8rbw56emtroziokdt9q2i","description":null,"redirect_url":"https://komoju.com/refunds/ref_2","chargeback":false,"created_at":"2026-03-06T01:00:00Z"}]},"created_at":"2026-03-01T01:00:00Z","reason":null}"#,
);
const CANCELLED: (&str, &str) = (
    "payment.cancelled",
    r#"{"id":"evt_6","type":"payment.cancelled","resource":"event","data":{"id":"7mom8rbw56emtroziokdt9q2i","resource":"payment","status":"cancelled","amount":1000,"tax":100,"customer":null,"payment_deadline":"2026-03-08T14:59:59Z","payment_details":{"type":"konbini","store":"lawson","email":"customer@example.com"},"payment_method_fee":190,"total":1290,"currency":"JPY","description":null,"captured_at":null,"external_order_num":"order-7","metadata":{"tenant":"office-1","count":3}},"created_at":"2026-03-01T01:00:00Z","reason":null}"#,
);
const ALL: [(&str, &str); 6] = [FAILED, AUTHORIZED, CAPTURED, REFUNDED_PARTLY, REFUNDED, CANCELLED];
const ID: &str = "7mom8rbw56emtroziokdt9q2i";

fn event((kind, body): (&str, &str)) -> Stored {
    let body = Bytes::from(body.to_owned());
    Stored { event_type: kind.into(), account: None, livemode: None, body, ..Stored::nothing() }
}

fn references() -> References {
    let mut references = References::default();
    references.order.push("external_order_num".to_owned());
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
fn d2_at_the_konbini_authorized_means_yet_to_be_paid() {
    let part = part(AUTHORIZED);
    let names = ["komoju/-/any/7mom8rbw56emtroziokdt9q2i"].map(str::to_owned);
    assert_eq!(part.names, BTreeSet::from(names));
    assert_eq!(part.tenants, BTreeSet::from(["office-1".to_owned()]));
    let intent = &part.intents[ID];
    assert_eq!((intent.status, intent.amount, intent.received), (IntentStatus::RequiresAction, 1100, 0));
    assert!(part.charges.is_empty());
    let card = AUTHORIZED.1.replace("konbini", "credit_card");
    assert_eq!(self::part((AUTHORIZED.0, &card)).intents[ID].status, IntentStatus::Processing);
}

#[test]
fn d2_a_captured_payment_is_paid_with_tax_and_the_fee_stands_beside_it() {
    let facts = part(CAPTURED);
    let (intent, charge) = (&facts.intents[ID], &facts.charges[ID]);
    assert_eq!((intent.status, intent.received, intent.failed), (IntentStatus::Succeeded, 1100, false));
    assert_eq!((charge.status, charge.captured, charge.currency), (ChargeStatus::Succeeded, 1100, jpy()));
    assert_eq!(charge.surcharge, 190);
    assert_eq!(facts.email().map(ToString::to_string).as_deref(), Some("c***@example.com"));
    let silent = CAPTURED.1.replace("\"total\":1290,", "");
    assert_eq!(part((CAPTURED.0, &silent)).charges[ID].captured, 1100, "amount and tax");
}

#[test]
fn d2_failed_may_be_tried_again_and_expired_may_not() {
    let failed = &part(FAILED).intents[ID];
    assert_eq!((failed.status, failed.failed), (IntentStatus::Waiting, true));
    let expired = AUTHORIZED.1.replace("\"authorized\"", "\"expired\"");
    assert_eq!(part(("payment.expired", &expired)).intents[ID].status, IntentStatus::Expired);
    assert_eq!(part(CANCELLED).intents[ID].status, IntentStatus::Cancelled);
}

#[test]
fn d2_refunds_are_told_one_by_one() {
    let facts = joined(&[CAPTURED, REFUNDED_PARTLY]);
    assert_eq!((facts.charges[ID].captured, facts.charges[ID].refunded), (1100, 500));
    let facts = joined(&[REFUNDED, REFUNDED_PARTLY]);
    assert_eq!((facts.charges[ID].captured, facts.charges[ID].refunded), (1100, 1290));
    let refunds: Vec<_> = facts.refunds.values().map(|one| (one.status, one.amount)).collect();
    assert_eq!(refunds, [(RefundStatus::Succeeded, 500), (RefundStatus::Succeeded, 790)]);
    let waiting = REFUNDED.1.replace("\"refunded\"", "\"captured\"");
    let counted = part(("payment.refund.created", &waiting));
    assert_eq!(counted.refunds["ref_2"].status, RefundStatus::Succeeded, "the payment counts it");
    let waiting = waiting.replace("\"amount_refunded\":1290", "\"amount_refunded\":500");
    let waiting = part(("payment.refund.created", &waiting));
    assert_eq!(waiting.refunds["ref_2"].status, RefundStatus::RequiresAction);
    let alone =
        r#"{"data":{"id":"ref_1","resource":"refund","amount":500,"currency":"JPY","payment":"pay_1"}}"#;
    let alone = part(("payment.refund.created", alone));
    assert_eq!(alone.refunds["ref_1"].charge.as_deref(), Some("pay_1"));
    assert!(alone.names.contains("komoju/-/any/pay_1"));
}

#[test]
fn d2_a_refund_request_has_no_amount_and_its_bank_account_is_not_kept() {
    let status = |status: &str| {
        let body = format!(
            r#"{{"data":{{"id":"refreq_1","payment":"pay_1","status":"{status}","customer_name":"ｻｲﾄｳ","account_number":"1234567"}}}}"#
        );
        let part = part(("refund_request.updated", &body));
        assert!(part.names.contains("komoju/-/any/pay_1") && part.names.contains("komoju/-/any/refreq_1"));
        assert!(!serde_json::to_string(&part).unwrap().contains("1234567"));
        let refund = &part.refunds["refreq_1"];
        assert_eq!((refund.amount, refund.charge.as_deref()), (0, Some("pay_1")));
        refund.status
    };
    for (word, expected) in [
        ("pending", RefundStatus::Pending),
        ("newer", RefundStatus::Pending),
        ("completed", RefundStatus::Succeeded),
        ("cancelled", RefundStatus::Cancelled),
        ("rejected", RefundStatus::Failed),
    ] {
        assert_eq!(status(word), expected, "{word}");
    }
}

#[test]
fn d6_what_speaks_of_no_payment_is_left_alone() {
    for (kind, body) in [
        ("settlement.created", "{}"),
        ("subscription.captured", "not even JSON"),
        ("payment.newer", r#"{"data":{"id":"x","resource":"newer"}}"#),
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
    assert_eq!(refused(CAPTURED, "1290", "-1290"), UnreadableEvent::Amount("-1480".into()));
    assert_eq!(refused(CAPTURED, ":190", ":1291"), UnreadableEvent::Amount("-1".into()));
    assert_eq!(
        refused(REFUNDED, ":790", ":10000000000001"),
        UnreadableEvent::Amount("10000000000001".into())
    );
    assert_eq!(refused(CAPTURED, "JPY", "YEN$"), UnreadableEvent::Currency("YEN$".into()));
    assert!(matches!(refused(CAPTURED, "1290", "\"1290\""), UnreadableEvent::Body(_)));
    assert_eq!(refused(CAPTURED, "\"currency\"", "\"other\""), UnreadableEvent::Amount("nothing".into()));
    assert!(matches!(refused(CAPTURED, ID, ""), UnreadableEvent::Body(_)));
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
fn e2_what_komoju_lists_says_what_its_webhooks_say() {
    let origin = Origin { provider: "komoju", livemode: None };
    for told in [AUTHORIZED, CAPTURED, REFUNDED_PARTLY, REFUNDED, CANCELLED] {
        let body: Value = serde_json::from_str(told.1).unwrap();
        let fetched = listed::object(ApiProvider::Komoju, None, None, "payment", &body["data"]);
        assert_eq!(fetched.event_type, "komoju.payment");
        let by_list = super::super::untimed(settlement::read(origin, &fetched, &references()).unwrap());
        assert_eq!(by_list, read(&event(told), &references()).unwrap(), "{}", told.0);
    }
    let other =
        listed::object(ApiProvider::Komoju, None, None, "customer", &serde_json::json!({ "id": "1" }));
    assert_eq!(settlement::read(origin, &other, &references()), Ok(None));
}
