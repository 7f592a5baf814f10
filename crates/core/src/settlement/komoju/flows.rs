//! Orders paid by KOMOJU, from the first event to the last, in every order of events.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::event::Stored;
use crate::settlement::world::{Ending, WorldStep, every_way};

const ID: &str = "pay3fj6nnhvws08idzacf6et8";
const POSTED: WorldStep = WorldStep::Posted("order-7", 1100);

fn event(kind: &str, data: &Value) -> WorldStep {
    let body = json!({ "id": "evt_1", "type": kind, "resource": "event", "data": data, "reason": null });
    let body = Bytes::from(body.to_string());
    WorldStep::Event(Stored {
        event_type: kind.into(),
        account: None,
        livemode: None,
        body,
        ..Stored::nothing()
    })
}

/// A konbini payment of 1,000 and 100 tax, for which the customer pays KOMOJU 190 more.
fn payment(kind: &str, status: &str, more: &Value) -> WorldStep {
    let mut data = json!({
        "id": ID, "resource": "payment", "status": status, "amount": 1000, "tax": 100, "payment_method_fee": 190,
        "total": 1290, "currency": "JPY", "customer": null, "external_order_num": "order-7", "metadata": {},
        "payment_deadline": "2026-03-08T14:59:59Z", "amount_refunded": 0, "refunds": [], "refund_requests": [],
        "payment_details": { "type": "konbini", "store": "lawson", "email": "hanako@example.com" },
    });
    for (field, value) in more.as_object().unwrap() {
        data[field] = value.clone();
    }
    event(kind, &data)
}

fn refund(id: &str, amount: i64) -> Value {
    json!({ "id": id, "resource": "refund", "amount": amount, "currency": "JPY", "payment": ID, "chargeback": false })
}

fn request(status: &str) -> Value {
    json!({
        "id": "refreq_1", "payment": ID, "status": status, "description": null, "customer_name": "ｻｲﾄｳ ﾊﾅｺ",
        "bank_name": "サンプル銀行", "bank_code": "0900", "branch_number": "100", "account_number": "1234567",
    })
}

fn authorized() -> WorldStep {
    payment("payment.authorized", "authorized", &json!({}))
}

fn captured() -> WorldStep {
    payment("payment.captured", "captured", &json!({ "captured_at": "2026-03-02T01:00:00Z" }))
}

const PAID: Ending = Ending {
    status: "paid",
    amount: 1100,
    received: 1100,
    refunded: 0,
    attention: None,
    told: &["payment.paid"],
    perhaps: &["payment.processing", "payment.failed/1"],
};

#[test]
fn d2_the_customers_fee_for_the_konbini_is_no_overpayment() {
    every_way("komoju", &[POSTED, authorized(), captured()], &PAID);
    every_way("komoju", &[authorized(), captured()], &PAID);
}

#[test]
fn d2_a_payment_that_failed_can_still_be_paid() {
    let failed = payment("payment.failed", "pending", &json!({}));
    every_way("komoju", &[failed.clone(), authorized(), captured(), POSTED], &PAID);
    let for_good = payment("payment.failed", "failed", &json!({}));
    let unpaid = Ending { status: "failed", received: 0, told: &["payment.failed/1"], ..PAID };
    every_way("komoju", &[for_good, authorized(), POSTED], &unpaid);
}

#[test]
fn d2_a_voucher_that_ran_out_is_expired_and_one_that_was_called_off_is_cancelled() {
    let failed = payment("payment.failed", "pending", &json!({}));
    let expired = payment("payment.expired", "expired", &json!({}));
    let ending = Ending { status: "expired", received: 0, told: &["payment.expired"], ..PAID };
    every_way("komoju", &[POSTED, authorized(), expired.clone(), failed], &ending);
    // Paid at the last minute: the money counts.
    let late = Ending { perhaps: &["payment.processing", "payment.expired"], ..PAID };
    every_way("komoju", &[authorized(), expired, captured()], &late);
    let cancelled = payment("payment.cancelled", "cancelled", &json!({}));
    let ending = Ending { status: "cancelled", received: 0, told: &["payment.cancelled"], ..PAID };
    every_way("komoju", &[authorized(), cancelled, POSTED], &ending);
}

#[test]
fn d2_refunds_in_part_and_whole_count_towards_the_order_with_the_fee_or_without_it() {
    let first = json!({ "amount_refunded": 500, "refunds": [refund("ref_1", 500)] });
    let partly = payment("payment.refund.created", "captured", &first);
    let ending = Ending {
        status: "partially_refunded",
        refunded: 500,
        told: &["payment.paid", "payment.partially_refunded/500"],
        ..PAID
    };
    every_way("komoju", &[POSTED, authorized(), captured(), partly.clone()], &ending);
    for (rest, sum) in [(600, 1100), (790, 1290)] {
        let both =
            json!({ "amount_refunded": sum, "refunds": [refund("ref_1", 500), refund("ref_2", rest)] });
        let whole = payment("payment.refunded", "refunded", &both);
        let ending = Ending {
            status: "refunded",
            refunded: 1100,
            told: &["payment.paid", "payment.refunded/1100"],
            perhaps: &["payment.processing", "payment.partially_refunded/500"],
            ..PAID
        };
        every_way("komoju", &[authorized(), captured(), partly.clone(), whole, POSTED], &ending);
    }
}

#[test]
fn d2_a_refund_request_is_on_its_way_until_its_refund_comes() {
    let asked = event("refund_request.updated", &request("pending"));
    let waiting = Ending { ..PAID };
    every_way("komoju", &[captured(), asked.clone(), POSTED], &waiting);
    let done = event("refund_request.updated", &request("completed"));
    let listed = json!({
        "amount_refunded": 500, "refunds": [refund("ref_1", 500)], "refund_requests": [request("completed")],
    });
    let refunded = payment("payment.refund.created", "captured", &listed);
    let ending = Ending {
        status: "partially_refunded",
        refunded: 500,
        told: &["payment.paid", "payment.partially_refunded/500"],
        ..PAID
    };
    every_way("komoju", &[captured(), asked, done, refunded, POSTED], &ending);
}

#[test]
fn d2_a_refund_request_that_is_rejected_needs_a_person() {
    let asked = event("refund_request.updated", &request("pending"));
    let rejected = event("refund_request.updated", &request("rejected"));
    let ending = Ending {
        attention: Some("refund_failed"),
        told: &["payment.paid", "payment.refund_failed/refreq_1"],
        ..PAID
    };
    every_way("komoju", &[captured(), asked, rejected, POSTED], &ending);
}

#[test]
fn d2_a_chargeback_takes_the_money_back() {
    let mut back = refund("ref_1", 1290);
    back["chargeback"] = true.into();
    let more =
        json!({ "amount_refunded": 1290, "refunds": [back], "payment_details": { "type": "credit_card" } });
    let ending = Ending {
        status: "refunded",
        refunded: 1100,
        told: &["payment.paid", "payment.refunded/1100"],
        ..PAID
    };
    every_way("komoju", &[POSTED, captured(), payment("payment.refunded", "refunded", &more)], &ending);
}
