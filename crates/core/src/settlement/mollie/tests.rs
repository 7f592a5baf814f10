use bytes::Bytes;

use super::*;
use crate::event::Trust;
use crate::settlement;
use crate::settlement::payment::Facts;
use crate::source_name::{FETCHED, Origin};

const MOLLIE: Origin = Origin { provider: "mollie_classic", livemode: None };

/// As Mollie documents a payment.
fn event(status: &str, more: &str) -> Stored {
    let body = format!(
        r#"{{"id":"mollie_classic/-/test/tr_1#0","type":"mollie_classic.payment","created":1772326800,"livemode":false,"data":{{"object":{{"resource":"payment","id":"tr_5B8cwPMGnU6qLbRvo7qEZo","mode":"test","status":"{status}","createdAt":"2026-03-01T01:00:00+00:00","amount":{{"value":"75.00","currency":"EUR"}},"description":"Order #12345","method":"ideal","metadata":{{"order_id":"order-7","tenant":"office-1","count":3}},"customerId":"cst_1",{more}"sequenceType":"oneoff","profileId":"pfl_1","settlementAmount":null}}}}}}"#
    );
    Stored {
        source: FETCHED.into(),
        event_type: "mollie_classic.payment".into(),
        account: None,
        livemode: Some(false),
        body: Bytes::from(body),
        ..Stored::nothing()
    }
}

fn facts(event: &Stored) -> Facts {
    settlement::read(MOLLIE, event, &References::default()).unwrap().unwrap().payment.unwrap()
}

#[test]
fn d2_a_paid_payment_of_mollies_is_money_for_its_order() {
    let facts = facts(&event("paid", r#""amountRefunded":{"value":"10.00","currency":"EUR"},"#));
    let charge = &facts.charges["tr_5B8cwPMGnU6qLbRvo7qEZo"];
    assert_eq!((charge.captured, charge.refunded), (7_500, 1_000));
    assert_eq!(charge.currency, Currency::parse("eur"));
    assert!(facts.orders.contains("order-7") && facts.tenants.contains("office-1"));
    assert!(facts.names.contains("mollie_classic/-/test/tr_5B8cwPMGnU6qLbRvo7qEZo"));
    assert!(facts.provider_customers.contains("cst_1"));
}

#[test]
fn d2_what_mollie_captured_is_what_was_received() {
    let facts = facts(&event("paid", r#""amountCaptured":{"value":"50.00","currency":"EUR"},"#));
    let id = "tr_5B8cwPMGnU6qLbRvo7qEZo";
    assert_eq!((facts.intents[id].amount, facts.intents[id].received), (7_500, 5_000));
    assert_eq!((facts.charges[id].amount, facts.charges[id].captured), (7_500, 5_000));
}

#[test]
fn d2_what_was_not_paid_is_no_money() {
    for (status, expected) in [
        ("open", IntentStatus::Waiting),
        ("pending", IntentStatus::Processing),
        ("authorized", IntentStatus::Processing),
        ("canceled", IntentStatus::Cancelled),
        ("expired", IntentStatus::Expired),
        ("failed", IntentStatus::Failed),
        ("something new", IntentStatus::Waiting),
    ] {
        let facts = facts(&event(status, r#""details":{"failureReason":"insufficient_funds"},"#));
        let intent = &facts.intents["tr_5B8cwPMGnU6qLbRvo7qEZo"];
        assert_eq!((intent.status, intent.received), (expected, 0), "{status}");
        assert!(facts.charges.is_empty(), "{status}");
    }
}

#[test]
fn d6_nothing_but_an_answer_of_mollies_is_read() {
    let paid = event("paid", "");
    let references = References::default();
    for foreign in [
        Stored { trust: Trust::Hint, ..paid.clone() },
        Stored { source: "mollie".into(), ..paid.clone() },
        Stored { event_type: "mollie_classic.order".into(), ..paid.clone() },
        Stored { event_type: "payment".into(), ..paid },
    ] {
        assert_eq!(settlement::read(MOLLIE, &foreign, &references), Ok(None), "{}", foreign.event_type);
    }
}
