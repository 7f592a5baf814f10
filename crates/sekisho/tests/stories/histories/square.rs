//! How Square tells of payments and refunds. An order that is paid in several tenders has one payment for each, tied together by
//! Square's own `order_id`.

use serde_json::{Value, json};

use super::stripe::{fee, written};
use super::told::Told;
use super::world::{Course, HOUR, Purchase, RefundEnd};
use super::{at_text, source_of};

const MERCHANT: &str = "6SSW7HV8K2ST5";

pub fn tell(purchase: &Purchase) -> Vec<Told> {
    let mut desk = Desk { purchase, at: purchase.at, told: Vec::new() };
    let anchor = purchase.anchor();
    if purchase.declines > 0 {
        desk.payment("payment.updated", &anchor, purchase.amount, "FAILED", false);
        return desk.told;
    }
    match purchase.course {
        Course::Authorised => desk.payment("payment.created", &anchor, purchase.amount, "APPROVED", false),
        Course::Cancelled => {
            desk.payment("payment.created", &anchor, purchase.amount, "APPROVED", false);
            desk.payment("payment.updated", &anchor, purchase.amount, "CANCELED", false);
        }
        Course::PaidByCard | Course::PaidByCapture => {
            for (n, tender) in purchase.captures.iter().enumerate() {
                let id = if n == 0 { anchor.clone() } else { format!("{anchor}{n}") };
                desk.payment("payment.created", &id, *tender, "APPROVED", false);
                desk.payment("payment.updated", &id, *tender, "COMPLETED", false);
                if purchase.tells_fee {
                    desk.payment("payment.updated", &id, *tender, "COMPLETED", true);
                }
            }
        }
        Course::Open
        | Course::Expired
        | Course::VoucherOpen
        | Course::VoucherExpired
        | Course::PaidByVoucher
        | Course::Free => unreachable!("Square tells nothing of these"),
    }
    for (n, refund) in purchase.refunds.iter().enumerate() {
        desk.refund("refund.created", n, refund.amount, "PENDING");
        match refund.end {
            RefundEnd::Pending => {}
            RefundEnd::Done => desk.refund("refund.updated", n, refund.amount, "COMPLETED"),
            RefundEnd::Failed => desk.refund("refund.updated", n, refund.amount, "FAILED"),
            RefundEnd::WaitsForCustomer | RefundEnd::Cancelled => unreachable!("not told by Square"),
        }
    }
    desk.told
}

struct Desk<'p> {
    purchase: &'p Purchase,
    at: i64,
    told: Vec<Told>,
}

impl Desk<'_> {
    fn tell(&mut self, kind: &str, what: &str, id: &str, object: Value) {
        let event_id = format!("sqevt{}{}", self.purchase.name, self.told.len());
        let body = json!({
            "merchant_id": MERCHANT, "type": kind, "event_id": event_id, "created_at": at_text(self.at),
            "data": { "type": what, "id": id, "object": { what: object } },
        });
        self.told.push(Told::new(source_of("square", self.purchase.live), &event_id, self.at, body));
        self.at += HOUR;
    }

    fn money(&self, amount: i64) -> Value {
        json!({ "amount": amount, "currency": self.purchase.currency.to_uppercase() })
    }

    fn payment(&mut self, kind: &str, id: &str, amount: i64, status: &str, has_fee: bool) {
        let purchase = self.purchase;
        let mut payment = json!({
            "id": id, "amount_money": self.money(amount), "total_money": self.money(amount), "status": status,
            "source_type": "CARD", "location_id": "S8GWD5R9QB376", "order_id": format!("SQO{}", purchase.name),
            "receipt_url": "https://squareup.com/receipt/preview/x",
        });
        if let Some(reference) = &purchase.says.reference {
            payment["reference_id"] = json!(written(reference));
        }
        if status == "FAILED" {
            let errors = json!([{ "category": "PAYMENT_METHOD_ERROR", "code": "GENERIC_DECLINE" }]);
            payment["card_details"] = json!({ "status": "FAILED", "errors": errors });
        }
        if has_fee {
            let fee = json!({ "type": "INITIAL", "effective_at": at_text(self.at), "amount_money": self.money(fee(amount)) });
            payment["processing_fee"] = json!([fee]);
        }
        self.tell(kind, "payment", id, payment);
    }

    fn refund(&mut self, kind: &str, n: usize, amount: i64, status: &str) {
        let id = format!("sqr{}{n}", self.purchase.name);
        let refund = json!({
            "id": id, "amount_money": self.money(amount), "status": status, "payment_id": self.purchase.anchor(),
            "order_id": format!("SQRO{}{n}", self.purchase.name), "location_id": "S8GWD5R9QB376", "reason": "",
        });
        self.tell(kind, "refund", &id, refund);
    }
}
