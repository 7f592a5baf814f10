//! How PayPal tells of orders, captures, refunds and disputes; and its signature, which only a key can make. Amounts are decimal
//! texts; there is no metadata, only `custom_id`.

use serde_json::{Value, json};

use super::stripe::{fee, written};
use super::told::Told;
use super::world::{Course, DAY, Dispute, HOUR, Object, Purchase};
use super::{at_text, source_of};

pub fn tell(purchase: &Purchase) -> Vec<Told> {
    let mut desk = Desk { purchase, at: purchase.at, told: Vec::new() };
    if purchase.declines > 0 {
        desk.capture("PAYMENT.CAPTURE.DENIED", "DECLINED");
        return desk.told;
    }
    desk.approved();
    match purchase.course {
        Course::Authorised => {}
        Course::VoucherOpen => desk.capture("PAYMENT.CAPTURE.PENDING", "PENDING"),
        Course::PaidByVoucher => {
            desk.capture("PAYMENT.CAPTURE.PENDING", "PENDING");
            desk.capture("PAYMENT.CAPTURE.COMPLETED", "COMPLETED");
        }
        Course::PaidByCard => desk.capture("PAYMENT.CAPTURE.COMPLETED", "COMPLETED"),
        Course::Open
        | Course::Expired
        | Course::Cancelled
        | Course::VoucherExpired
        | Course::PaidByCapture
        | Course::Free => unreachable!("PayPal tells nothing of these"),
    }
    let mut back = 0;
    for (n, refund) in purchase.refunds.iter().enumerate() {
        back += refund.amount;
        desk.refunded(n, refund.amount, back);
    }
    if let Some(dispute) = purchase.dispute {
        desk.disputed(dispute);
    }
    desk.told
}

struct Desk<'p> {
    purchase: &'p Purchase,
    at: i64,
    told: Vec<Told>,
}

impl Desk<'_> {
    fn tell(&mut self, kind: &str, resource_type: &str, resource: Value) {
        let id = format!("WH-{}{}", self.purchase.name, self.told.len());
        let body = json!({
            "id": id, "create_time": at_text(self.at), "resource_type": resource_type, "event_type": kind,
            "event_version": "1.0", "summary": "", "resource": resource,
        });
        self.told.push(Told::new(source_of("paypal", self.purchase.live), &id, self.at, body));
        self.at += HOUR;
    }

    fn money(&self, amount: i64) -> Value {
        json!({ "currency_code": self.purchase.currency.to_uppercase(), "value": amount.to_string() })
    }

    fn custom_id(&self, object: Object) -> Option<String> {
        let says = &self.purchase.says;
        says.reference.as_ref().filter(|_| says.reference_on.contains(&object)).map(written)
    }

    fn capture_id(&self) -> String {
        format!("PPC{}", self.purchase.name)
    }

    fn approved(&mut self) {
        let unit = json!({
            "reference_id": "default", "custom_id": self.custom_id(Object::Intent),
            "amount": self.money(self.purchase.amount),
        });
        let order = json!({
            "id": self.purchase.anchor(), "status": "APPROVED", "intent": "CAPTURE", "purchase_units": [unit],
            "payer": { "email_address": "buyer@example.com", "payer_id": "QYR5Z8XDVJNXQ" },
        });
        self.tell("CHECKOUT.ORDER.APPROVED", "checkout-order", order);
    }

    fn capture(&mut self, kind: &str, status: &str) {
        let amount = self.purchase.amount;
        let up = |path: &str, id: &str, rel: &str| json!({ "href": format!("https://api.paypal.com/v2/{path}/{id}"), "rel": rel, "method": "GET" });
        let mut capture = json!({
            "id": self.capture_id(), "status": status, "amount": self.money(amount), "final_capture": true,
            "custom_id": self.custom_id(Object::Charge),
            "supplementary_data": { "related_ids": { "order_id": self.purchase.anchor() } },
            "links": [
                up("payments/captures", &self.capture_id(), "self"),
                up("checkout/orders", &self.purchase.anchor(), "up"),
            ],
        });
        if status == "COMPLETED" && self.purchase.tells_fee {
            capture["seller_receivable_breakdown"] = json!({
                "gross_amount": self.money(amount), "paypal_fee": self.money(fee(amount)),
                "net_amount": self.money(amount - fee(amount)),
            });
        }
        self.tell(kind, "capture", capture);
    }

    fn refunded(&mut self, n: usize, amount: i64, back: i64) {
        let id = format!("PPR{}{n}", self.purchase.name);
        let refund = json!({
            "id": id, "status": "COMPLETED", "amount": self.money(amount), "note_to_payer": "",
            "seller_payable_breakdown": { "total_refunded_amount": self.money(back) },
            "links": [
                { "href": format!("https://api.paypal.com/v2/payments/refunds/{id}"), "rel": "self", "method": "GET" },
                {
                    "href": format!("https://api.paypal.com/v2/payments/captures/{}", self.capture_id()), "rel": "up",
                    "method": "GET",
                },
            ],
        });
        self.tell("PAYMENT.CAPTURE.REFUNDED", "refund", refund);
    }

    fn disputed(&mut self, dispute: Dispute) {
        let end = match dispute {
            Dispute::Won => Some("RESOLVED_SELLER_FAVOUR"),
            Dispute::Lost => Some("RESOLVED_BUYER_FAVOUR"),
            Dispute::Open => None,
            Dispute::LostThenWon | Dispute::Inquiry => unreachable!("not told by PayPal"),
        };
        let about = |status: &str| {
            json!({
                "dispute_id": format!("PPD{}", self.purchase.name), "reason": "MERCHANDISE_OR_SERVICE_NOT_RECEIVED",
                "status": status, "dispute_life_cycle_stage": "CHARGEBACK",
                "dispute_amount": self.money(self.purchase.amount),
                "disputed_transactions": [{ "seller_transaction_id": self.capture_id() }],
            })
        };
        let (opened, mut resolved) = (about("WAITING_FOR_SELLER_RESPONSE"), about("RESOLVED"));
        self.at += DAY;
        self.tell("CUSTOMER.DISPUTE.CREATED", "dispute", opened);
        if let Some(code) = end {
            resolved["dispute_outcome"] = json!({ "outcome_code": code });
            self.tell("CUSTOMER.DISPUTE.RESOLVED", "dispute", resolved);
        }
    }
}

/// What PayPal's signature covers beside ids and time.
pub fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(
            sum ^ u32::from(*byte),
            |sum, _| if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 },
        )
    })
}
