//! How KOMOJU tells of payments: one object, as it is by then, with its refunds inside. At the konbini the customer pays
//! KOMOJU's fee on top; it stands in `total` and is not the shop's money.

use serde_json::{Value, json};

use super::stripe::written;
use super::told::Told;
use super::world::{Course, HOUR, Purchase};
use super::{at_text, source_of};

/// What the customer pays KOMOJU at the till.
const VOUCHER_FEE: i64 = 190;

pub fn tell(purchase: &Purchase) -> Vec<Told> {
    let mut desk = Desk { purchase, at: purchase.at, told: Vec::new(), refunded: Vec::new() };
    if purchase.declines > 0 {
        desk.tell("payment.failed", "failed");
        return desk.told;
    }
    match purchase.course {
        Course::Authorised | Course::VoucherOpen => desk.tell("payment.authorized", "authorized"),
        Course::VoucherExpired | Course::Expired => {
            desk.tell("payment.authorized", "authorized");
            desk.tell("payment.expired", "expired");
        }
        Course::Cancelled => {
            desk.tell("payment.authorized", "authorized");
            desk.tell("payment.cancelled", "cancelled");
        }
        Course::PaidByCard => desk.tell("payment.captured", "captured"),
        Course::PaidByVoucher | Course::PaidByCapture => {
            desk.tell("payment.authorized", "authorized");
            desk.tell("payment.captured", "captured");
        }
        Course::Open | Course::Free => unreachable!("KOMOJU tells nothing of these"),
    }
    for refund in &purchase.refunds {
        desk.refunded.push(refund.amount);
        desk.tell("payment.refund.created", "captured");
        if desk.refunded.iter().sum::<i64>() == purchase.amount {
            desk.tell("payment.refunded", "refunded");
        }
    }
    desk.told
}

struct Desk<'p> {
    purchase: &'p Purchase,
    at: i64,
    told: Vec<Told>,
    refunded: Vec<i64>,
}

impl Desk<'_> {
    fn tell(&mut self, kind: &str, status: &str) {
        let purchase = self.purchase;
        let id = format!("evt_k{}{}", purchase.name, self.told.len());
        let body = json!({
            "id": id, "type": kind, "resource": "event", "created_at": at_text(self.at), "reason": null,
            "data": self.payment(status),
        });
        self.told.push(Told::new(source_of("komoju", purchase.live), &id, self.at, body));
        self.at += 12 * HOUR;
    }

    fn payment(&self, status: &str) -> Value {
        let purchase = self.purchase;
        let is_voucher =
            matches!(purchase.course, Course::VoucherOpen | Course::VoucherExpired | Course::PaidByVoucher);
        let fee = if is_voucher && purchase.refunds.is_empty() { VOUCHER_FEE } else { 0 };
        let tax = purchase.amount / 11;
        let refunds = self.refunded.iter().enumerate().map(|(n, amount)| {
            json!({
                "id": format!("ref{}{n}", purchase.name), "resource": "refund", "amount": amount, "currency": "JPY",
                "payment": purchase.anchor(), "description": null, "redirect_url": null, "chargeback": false,
                "created_at": at_text(self.at),
            })
        });
        let refunds = refunds.collect::<Vec<_>>();
        let says = &purchase.says;
        json!({
            "id": purchase.anchor(), "resource": "payment", "status": status, "amount": purchase.amount - tax, "tax": tax,
            "customer": null, "payment_deadline": at_text(purchase.at + 96 * HOUR),
            "payment_details": { "type": if is_voucher { "konbini" } else { "credit_card" } },
            "payment_method_fee": fee, "total": purchase.amount + fee, "currency": purchase.currency.to_uppercase(),
            "description": null, "captured_at": (status == "captured").then(|| at_text(self.at)),
            "external_order_num": says.reference.as_ref().map(written),
            "metadata": says.tenant.as_ref().map_or(json!({}), |tenant| json!({ "tenant_id": tenant })),
            "amount_refunded": self.refunded.iter().sum::<i64>(), "refunds": refunds,
        })
    }
}
