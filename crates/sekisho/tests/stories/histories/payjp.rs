//! How PAY.JP tells of charges: one object, as it is by then. What was authorised and not captured stands in `amount_refunded`,
//! together with what was really given back.

use serde_json::{Value, json};

use super::source_of;
use super::stripe::written;
use super::told::Told;
use super::world::{Course, HOUR, Purchase};

pub fn tell(purchase: &Purchase) -> Vec<Told> {
    let mut desk = Desk { purchase, at: purchase.at, told: Vec::new() };
    if purchase.declines > 0 {
        desk.tell("charge.failed", false, false, 0);
        return desk.told;
    }
    match purchase.course {
        Course::PaidByCard => desk.tell("charge.succeeded", true, true, 0),
        Course::Authorised => desk.tell("charge.succeeded", true, false, 0),
        Course::PaidByCapture => {
            desk.tell("charge.succeeded", true, false, 0);
            desk.tell("charge.captured", true, true, purchase.released());
        }
        Course::Cancelled => {
            desk.tell("charge.succeeded", true, false, 0);
            desk.tell("charge.refunded", true, false, purchase.amount);
        }
        Course::Open
        | Course::Expired
        | Course::VoucherOpen
        | Course::VoucherExpired
        | Course::PaidByVoucher
        | Course::Free => unreachable!("PAY.JP takes cards"),
    }
    let mut back = purchase.released();
    for refund in &purchase.refunds {
        back += refund.amount;
        desk.tell("charge.refunded", true, true, back);
    }
    desk.told
}

struct Desk<'p> {
    purchase: &'p Purchase,
    at: i64,
    told: Vec<Told>,
}

impl Desk<'_> {
    fn tell(&mut self, kind: &str, paid: bool, captured: bool, back: i64) {
        let purchase = self.purchase;
        let id = format!("evnt_{}{}", purchase.name, self.told.len());
        let body = json!({
            "id": id, "object": "event", "type": kind, "livemode": purchase.live, "created": self.at,
            "pending_webhooks": 1, "data": self.charge(paid, captured, back),
        });
        self.told.push(Told::new(source_of("payjp", purchase.live), &id, self.at, body));
        self.at += HOUR;
    }

    fn charge(&self, paid: bool, captured: bool, back: i64) -> Value {
        let (purchase, says) = (self.purchase, &self.purchase.says);
        let mut metadata = serde_json::Map::new();
        if let Some(reference) = &says.reference {
            metadata.insert("order_id".into(), json!(written(reference)));
        }
        if let Some(tenant) = &says.tenant {
            metadata.insert("tenant_id".into(), json!(tenant));
        }
        json!({
            "id": purchase.anchor(), "object": "charge", "amount": purchase.amount, "amount_refunded": back,
            "captured": captured, "captured_at": captured.then_some(self.at), "created": purchase.at, "currency": "jpy",
            "customer": null, "description": null, "expired_at": null,
            "failure_code": (!paid).then_some("card_declined"), "failure_message": null, "fee_rate": "3.00",
            "livemode": purchase.live, "metadata": metadata, "paid": paid, "refund_reason": null, "refunded": back > 0,
            "subscription": null,
        })
    }
}
