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
    "charge.failed",
    r#"{"id":"evnt_1","object":"event","type":"charge.failed","livemode":false,"created":1772326800,"pending_webhooks":1,"data":{"id":"ch_1","object":"charge","amount":3500,"amount_refunded":0,"captured":false,"captured_at":null,"card":{"id":"car_1","object":"card","brand":"Visa"},"created":1772326800,"currency":"jpy","customer":"cus_1","description":null,"expired_at":null,"failure_code":"card_declined","failure_message":null,"fee_rate":"3.00","livemode":false,"metadata":{"order_id":"order-7","purpose":"book"},"paid":false,"refund_reason":null,"refunded":false,"subscription":null}}"#,
);
const AUTHORIZED: (&str, &str) = (
    "charge.succeeded",
    r#"{"id":"evnt_2","object":"event","type":"charge.succeeded","livemode":false,"created":1772326800,"pending_webhooks":1,"data":{"id":"ch_1","object":"charge","amount":3500,"amount_refunded":0,"captured":false,"captured_at":null,"card":{"id":"car_1","object":"card","brand":"Visa"},"created":1772326800,"currency":"jpy","customer":"cus_1","description":null,"expired_at":null,"failure_code":null,"failure_message":null,"fee_rate":"3.00","livemode":false,"metadata":{"order_id":"order-7","purpose":"book"},"paid":true,"refund_reason":null,"refunded":false,"subscription":null}}"#,
);
const CAPTURED: (&str, &str) = (
    "charge.captured",
    r#"{"id":"evnt_3","object":"event","type":"charge.captured","livemode":false,"created":1772326800,"pending_webhooks":1,"data":{"id":"ch_1","object":"charge","amount":3500,"amount_refunded":0,"captured":true,"captured_at":null,"card":{"id":"car_1","object":"card","brand":"Visa"},"created":1772326800,"currency":"jpy","customer":"cus_1","description":null,"expired_at":null,"failure_code":null,"failure_message":null,"fee_rate":"3.00","livemode":false,"metadata":{"order_id":"order-7","purpose":"book"},"paid":true,"refund_reason":null,"refunded":false,"subscription":null}}"#,
);
const REFUNDED_PARTLY: (&str, &str) = (
    "charge.refunded",
    r#"{"id":"evnt_4","object":"event","type":"charge.refunded","livemode":false,"created":1772326800,"pending_webhooks":1,"data":{"id":"ch_1","object":"charge","amount":3500,"amount_refunded":1500,"captured":true,"captured_at":null,"card":{"id":"car_1","object":"card","brand":"Visa"},"created":1772326800,"currency":"jpy","customer":"cus_1","description":null,"expired_at":null,"failure_code":null,"failure_message":null,"fee_rate":"3.00","livemode":false,"metadata":{"order_id":"order-7","purpose":"book"},"paid":true,"refund_reason":null,"refunded":true,"subscription":null}}"#,
);
const REFUNDED: (&str, &str) = (
    "charge.refunded",
    r#"{"id":"evnt_5","object":"event","type":"charge.refunded","livemode":false,"created":1772326800,"pending_webhooks":1,"data":{"id":"ch_1","object":"charge","amount":3500,"amount_refunded":3500,"captured":true,"captured_at":null,"card":{"id":"car_1","object":"card","brand":"Visa"},"created":1772326800,"currency":"jpy","customer":"cus_1","description":null,"expired_at":null,"failure_code":null,"failure_message":null,"fee_rate":"3.00","livemode":false,"metadata":{"order_id":"order-7","purpose":"book"},"paid":true,"refund_reason":null,"refunded":true,"subscription":null}}"#,
);
const ALL: [(&str, &str); 5] = [FAILED, AUTHORIZED, CAPTURED, REFUNDED_PARTLY, REFUNDED];

fn event((kind, body): (&str, &str)) -> Stored {
    let body = Bytes::from(body.to_owned());
    Stored { event_type: kind.into(), account: None, livemode: Some(false), body, ..Stored::nothing() }
}

fn references() -> References {
    References::default()
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
fn d2_a_captured_charge_is_paid() {
    let part = part(CAPTURED);
    let names = ["payjp/-/test/ch_1"].map(str::to_owned);
    assert_eq!(part.names, BTreeSet::from(names));
    assert_eq!(part.purposes, BTreeSet::from(["book".to_owned()]));
    let (intent, charge) = (&part.intents["ch_1"], &part.charges["ch_1"]);
    assert_eq!((intent.status, intent.amount), (IntentStatus::Succeeded, 3500));
    assert_eq!((charge.status, charge.taken(), charge.currency), (ChargeStatus::Succeeded, 3500, jpy()));
}

#[test]
fn d2_an_authorisation_is_no_payment_and_can_be_released() {
    let authorized = part(AUTHORIZED);
    let intent = &authorized.intents["ch_1"];
    assert_eq!((intent.status, intent.received), (IntentStatus::Processing, 0));
    let released = AUTHORIZED.1.replace("\"amount_refunded\":0", "\"amount_refunded\":3500");
    let released = part(("charge.refunded", &released));
    assert_eq!(released.intents["ch_1"].status, IntentStatus::Cancelled);
    assert!(authorized.charges.is_empty() && released.charges.is_empty());
}

#[test]
fn d2_a_failed_charge_says_why() {
    let facts = part(FAILED);
    let intent = &facts.intents["ch_1"];
    assert_eq!((intent.status, intent.failed), (IntentStatus::Failed, true));
    assert_eq!(intent.failure.as_deref(), Some("card_declined"));
    assert!(facts.charges.is_empty());
}

#[test]
fn d2_only_the_sum_of_refunds_is_known() {
    let refunded = |told: &[(&str, &str)]| joined(told).charges["ch_1"].refunded;
    assert_eq!(refunded(&[CAPTURED, REFUNDED_PARTLY]), 1500);
    assert_eq!(refunded(&[REFUNDED, REFUNDED_PARTLY, CAPTURED]), 3500);
    assert!(joined(&ALL).refunds.is_empty());
}

#[test]
fn d6_what_speaks_of_no_payment_is_left_alone() {
    for (kind, body) in [
        ("customer.created", "{}"),
        ("subscription.renewed", "not even JSON"),
        ("charge.newer", r#"{"data":{"id":"x","object":"newer"}}"#),
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
    assert_eq!(refused(CAPTURED, ":3500", ":-3500"), UnreadableEvent::Amount("-3500".into()));
    assert_eq!(refused(CAPTURED, "\"jpy\"", "\"yen$\""), UnreadableEvent::Currency("yen$".into()));
    assert!(matches!(refused(CAPTURED, ":3500", ":35.5"), UnreadableEvent::Body(_)));
    assert_eq!(refused(CAPTURED, "\"amount\"", "\"other\""), UnreadableEvent::Amount("nothing".into()));
    assert!(matches!(refused(CAPTURED, "\"ch_1\"", "\"\""), UnreadableEvent::Body(_)));
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
fn e2_what_payjp_lists_says_what_its_webhooks_say() {
    let origin = Origin { provider: "payjp", livemode: None };
    for told in ALL {
        let body: Value = serde_json::from_str(told.1).unwrap();
        let (id, kind, object, _) = listed::event("payjp", told.1);
        assert_eq!((Some(&*id), &*kind), (body["id"].as_str(), told.0));
        assert_eq!(object, Some(("charge".to_owned(), "ch_1".to_owned())));
        let fetched = listed::object(ApiProvider::Payjp, None, Some(false), "charge", &body["data"]);
        assert_eq!(fetched.event_type, "payjp.charge");
        // A list tells what was captured, and not that it was the capture that told it: joined, nothing is new.
        let by_list = super::super::untimed(settlement::read(origin, &fetched, &references()).unwrap())
            .unwrap()
            .payment
            .unwrap();
        let by_webhook = part(told);
        let mut both = by_webhook.clone();
        both.join(&by_list);
        assert_eq!(both, by_webhook, "{}", told.0);
    }
}
