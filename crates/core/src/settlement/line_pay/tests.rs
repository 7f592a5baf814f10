use bytes::Bytes;

use super::*;
use crate::event::Trust;
use crate::settlement;
use crate::settlement::payment::Facts;
use crate::source_name::{FETCHED, Origin};

const LINE_PAY: Origin = Origin { provider: "line_pay", livemode: None };
const ID: &str = "2021121600698709510";

/// As LINE Pay documents a transaction.
fn event(status: &str) -> Stored {
    let body = format!(
        r#"{{"type":"line_pay.payment","created":1772326800,"livemode":true,"data":{{"object":{{"transactionId":{ID},"transactionDate":"2021-12-16T00:27:40Z","transactionType":"PAYMENT","productName":"Demo Product","currency":"TWD","payInfo":[{{"method":"CREDIT_CARD","amount":900}},{{"method":"DISCOUNT","amount":100}}],"refundList":[{{"refundTransactionId":"2021121600698710312","transactionType":"PARTIAL_REFUND","refundAmount":-20,"refundTransactionDate":"2021-12-16T00:50:15Z"}}],"orderId":"20211216002","payStatus":"{status}"}}}}}}"#
    );
    Stored {
        source: FETCHED.into(),
        event_type: "line_pay.payment".into(),
        account: None,
        livemode: Some(true),
        body: Bytes::from(body),
        ..Stored::nothing()
    }
}

fn facts(event: &Stored) -> Facts {
    settlement::read(LINE_PAY, event, &References::default()).unwrap().unwrap().payment.unwrap()
}

#[test]
fn d2_a_captured_transaction_is_money_for_its_order() {
    let facts = facts(&event("CAPTURE"));
    let charge = &facts.charges[ID];
    assert_eq!((charge.captured, charge.currency), (100_000, Currency::parse("twd")));
    let refund = &facts.refunds["2021121600698710312"];
    assert_eq!((refund.status, refund.amount), (RefundStatus::Succeeded, 2_000));
    assert!(facts.orders.contains("20211216002"));
    assert!(facts.names.contains(&format!("line_pay/-/live/{ID}")));
}

#[test]
fn d2_an_authorisation_is_no_money() {
    for (status, expected) in [
        ("AUTHORIZATION", IntentStatus::Processing),
        ("VOIDED_AUTHORIZATION", IntentStatus::Cancelled),
        ("EXPIRED_AUTHORIZATION", IntentStatus::Expired),
        ("SOMETHING_NEW", IntentStatus::Waiting),
    ] {
        let facts = facts(&event(status));
        assert_eq!((facts.intents[ID].status, facts.intents[ID].received), (expected, 0), "{status}");
        assert!(facts.charges.is_empty(), "{status}");
    }
}

#[test]
fn d6_nothing_but_an_answer_of_line_pays_is_read() {
    let captured = event("CAPTURE");
    let references = References::default();
    for foreign in [
        Stored { trust: Trust::Hint, ..captured.clone() },
        Stored { source: "line_pay".into(), ..captured.clone() },
        Stored { event_type: "line_pay.callback".into(), ..captured },
    ] {
        assert_eq!(settlement::read(LINE_PAY, &foreign, &references), Ok(None), "{}", foreign.event_type);
    }
}
