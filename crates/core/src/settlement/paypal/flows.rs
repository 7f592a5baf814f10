//! Orders paid by PayPal, from the first event to the last, in every order of events.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::event::Stored;
use crate::settlement::world::{Ending, WorldStep, every_way};

const ORDER: &str = "5O190127TN364715T";
const CAPTURE: &str = "27M47624FP291604U";
const POSTED: WorldStep = WorldStep::Posted("order-7", 1200);

fn yen(value: &str) -> Value {
    json!({ "currency_code": "JPY", "value": value })
}

fn event(kind: &str, resource_type: &str, resource: &Value) -> WorldStep {
    let body = json!({
        "id": "WH-1", "event_version": "1.0", "create_time": "2026-03-01T01:00:00.000Z", "event_type": kind,
        "resource_type": resource_type, "resource_version": "2.0", "resource": resource,
    });
    let body = Bytes::from(body.to_string());
    WorldStep::Event(Stored {
        event_type: kind.into(),
        account: None,
        livemode: None,
        body,
        ..Stored::nothing()
    })
}

fn order(kind: &str, status: &str) -> WorldStep {
    let resource = json!({
        "id": ORDER, "intent": "CAPTURE", "status": status,
        "payer": { "email_address": "hanako@example.com", "payer_id": "QYR5Z8XDVJNXQ" },
        "purchase_units": [{ "reference_id": "default", "custom_id": "order-7", "amount": yen("1200") }],
    });
    event(kind, "checkout-order", &resource)
}

fn capture(kind: &str, id: &str, status: &str) -> WorldStep {
    let mut resource = json!({
        "id": id, "status": status, "amount": yen("1200"), "custom_id": "order-7", "final_capture": true,
        "supplementary_data": { "related_ids": { "order_id": ORDER } },
        "links": [{ "rel": "up", "method": "GET", "href": format!("https://api.paypal.com/v2/checkout/orders/{ORDER}") }],
    });
    if status == "COMPLETED" {
        resource["seller_receivable_breakdown"] =
            json!({ "gross_amount": yen("1200"), "paypal_fee": yen("83"), "net_amount": yen("1117") });
    } else {
        resource["status_details"] = json!({ "reason": "PENDING_REVIEW" });
    }
    event(kind, "capture", &resource)
}

fn refund(kind: &str, id: &str, status: &str, value: &str) -> WorldStep {
    let up = format!("https://api.paypal.com/v2/payments/captures/{CAPTURE}");
    let resource = json!({
        "id": id, "status": status, "amount": yen(value), "links": [{ "rel": "up", "method": "GET", "href": up }],
    });
    event(kind, "refund", &resource)
}

fn dispute(kind: &str, status: &str, outcome: Option<&str>) -> WorldStep {
    let resource = json!({
        "dispute_id": "PP-D-1", "status": status, "reason": "UNAUTHORISED", "dispute_life_cycle_stage": "CHARGEBACK",
        "dispute_amount": yen("1200"), "dispute_outcome": { "outcome_code": outcome },
        "disputed_transactions": [{ "seller_transaction_id": CAPTURE, "custom": "order-7" }],
    });
    event(kind, "dispute", &resource)
}

fn approved() -> WorldStep {
    order("CHECKOUT.ORDER.APPROVED", "APPROVED")
}

fn completed() -> WorldStep {
    capture("PAYMENT.CAPTURE.COMPLETED", CAPTURE, "COMPLETED")
}

const PAID: Ending = Ending {
    status: "paid",
    amount: 1200,
    received: 1200,
    refunded: 0,
    attention: None,
    told: &["payment.paid", "payment.fee_known/1200"],
    perhaps: &["payment.processing", "payment.failed/1"],
};

#[test]
fn d2_an_approved_order_is_paid_by_its_capture() {
    let whole = order("CHECKOUT.ORDER.COMPLETED", "COMPLETED");
    every_way("paypal", &[POSTED, approved(), whole, completed()], &PAID);
    let pending = capture("PAYMENT.CAPTURE.PENDING", CAPTURE, "PENDING");
    every_way("paypal", &[POSTED, approved(), pending.clone(), completed()], &PAID);
    let waits = Ending { status: "processing", received: 0, told: &["payment.processing"], ..PAID };
    every_way("paypal", &[POSTED, approved(), pending], &waits);
}

#[test]
fn d2_a_declined_capture_fails_the_payment_until_another_pays() {
    for (kind, status) in [("PAYMENT.CAPTURE.DENIED", "DECLINED"), ("PAYMENT.CAPTURE.DECLINED", "DECLINED")] {
        let declined = capture(kind, "7NW873794T343360M", status);
        let failed = Ending { status: "failed", received: 0, told: &["payment.failed/1"], ..PAID };
        every_way("paypal", &[POSTED, approved(), declined.clone()], &failed);
        every_way("paypal", &[POSTED, approved(), declined, completed()], &PAID);
    }
}

#[test]
fn d2_an_order_that_nobody_captured_is_expired_and_one_that_is_voided_is_cancelled() {
    let resource = json!({
        "order_id": ORDER, "purchase_units": [{ "reference_id": "default", "custom_id": "order-7" }],
        "payment_source": { "paypal": { "name": "Hanako" } },
    });
    let lapsed = event("CHECKOUT.PAYMENT-APPROVAL.REVERSED", "", &resource);
    let ending = Ending { status: "expired", received: 0, told: &["payment.expired"], ..PAID };
    every_way("paypal", &[POSTED, approved(), lapsed], &ending);
    let ending = Ending { status: "cancelled", received: 0, told: &["payment.cancelled"], ..PAID };
    every_way("paypal", &[POSTED, approved(), order("CHECKOUT.ORDER.VOIDED", "VOIDED")], &ending);
}

#[test]
fn d2_refunds_in_part_and_whole_end_the_same_whichever_comes_first() {
    let first = refund("PAYMENT.CAPTURE.REFUNDED", "1JU08902781691411", "COMPLETED", "500");
    let ending = Ending {
        status: "partially_refunded",
        refunded: 500,
        told: &["payment.paid", "payment.fee_known/1200", "payment.partially_refunded/500"],
        ..PAID
    };
    every_way("paypal", &[POSTED, approved(), completed(), first.clone()], &ending);
    let rest = refund("PAYMENT.CAPTURE.REFUNDED", "2JU08902781691411", "COMPLETED", "700");
    let ending = Ending {
        status: "refunded",
        refunded: 1200,
        told: &["payment.paid", "payment.fee_known/1200", "payment.refunded/1200"],
        perhaps: &["payment.processing", "payment.partially_refunded/500", "payment.partially_refunded/700"],
        ..PAID
    };
    every_way("paypal", &[POSTED, approved(), completed(), first, rest], &ending);
}

#[test]
fn d2_a_refund_that_fails_needs_a_person() {
    let begun = refund("PAYMENT.REFUND.PENDING", "1JU08902781691411", "PENDING", "500");
    let failed = refund("PAYMENT.REFUND.FAILED", "1JU08902781691411", "FAILED", "500");
    let ending = Ending {
        attention: Some("refund_failed"),
        told: &["payment.paid", "payment.fee_known/1200", "payment.refund_failed/1JU08902781691411"],
        perhaps: &["payment.refund_pending/500"],
        ..PAID
    };
    every_way("paypal", &[POSTED, completed(), begun, failed], &ending);
}

#[test]
fn d2_a_lost_dispute_takes_the_money_back_once() {
    let opened = dispute("CUSTOMER.DISPUTE.CREATED", "WAITING_FOR_SELLER_RESPONSE", None);
    let lost = dispute("CUSTOMER.DISPUTE.RESOLVED", "RESOLVED", Some("RESOLVED_BUYER_FAVOUR"));
    let reversed = refund("PAYMENT.CAPTURE.REVERSED", "09E71677NS257044M", "COMPLETED", "1200");
    let ending = Ending {
        status: "refunded",
        refunded: 1200,
        told: &[
            "payment.paid",
            "payment.fee_known/1200",
            "payment.dispute_lost/PP-D-1",
            "payment.refunded/1200",
        ],
        perhaps: &["payment.disputed/PP-D-1"],
        ..PAID
    };
    every_way("paypal", &[POSTED, completed(), opened.clone(), lost, reversed], &ending);
    let won = dispute("CUSTOMER.DISPUTE.RESOLVED", "RESOLVED", Some("RESOLVED_SELLER_FAVOUR"));
    let ending = Ending {
        told: &["payment.paid", "payment.fee_known/1200", "payment.dispute_won/PP-D-1"],
        perhaps: &["payment.disputed/PP-D-1"],
        ..PAID
    };
    every_way("paypal", &[POSTED, completed(), opened, won], &ending);
}
